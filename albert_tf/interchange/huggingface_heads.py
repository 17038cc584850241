"""The heads in folders of Hugging Face's transformers: their tasks, and the names of their outputs."""

import dataclasses
import typing

from albert_tf.base.errors import InputError, shorten
from albert_tf.finetuning import TASKS, QuestionAnswering
from albert_tf.finetuning.task import OF_SPAN, OF_TEXT
from albert_tf.interchange.portable_model import Caveat, Weight
from albert_tf.interchange.variables import Naming, Task

# The last step of a cross-encoder in earlier versions of sentence-transformers.
_OLD_ACTIVATION = "sbert_ce_default_activation_function"
_OUTPUT_LAYER = ("head/dense/kernel", "head/dense/bias")


@dataclasses.dataclass(frozen=True)
class Head:
    """The head in a folder, if there is one."""

    outputs: int = 0  # how many numbers it gives; 0 if there is none
    task: Task | None = None  # what it is for; None if there is none or it isn't clear
    labels: tuple[str, ...] | None = None  # in our order; None where outputs have no names
    order: tuple[int, ...] | None = None  # which of its outputs each of ours is; None for the same
    notes: tuple[str, ...] = ()  # sentences on it
    gives_probability: bool = False  # whether its only output is one that a sigmoid is taken of

    def in_our_order(self, weights: dict[str, Weight]) -> dict[str, Weight]:
        """Returns a model's variables, by our names, with the outputs of its head in our order."""
        if self.order is None:
            return weights
        return weights | {name: _reordered(weights[name], self.order) for name in _OUTPUT_LAYER if name in weights}


def _reordered(weight, order):
    return Weight(weight.shape, lambda: weight.read()[..., list(order)])


def find_head(
    values: dict[str, typing.Any], naming: Naming, found: dict[str, Weight], given: Task | None, source: str
) -> Head:
    """Returns the head that a config and variables describe; `given` is the task that a setting names."""
    last_layers = {head: f"{layers['head/dense']}.weight" for head, layers in naming.heads.items()}
    layer = next((found[name] for name in last_layers.values() if name in found), None)
    if layer is None:
        return Head()
    outputs = (*layer.shape, 0)[0]
    if last_layers.get(OF_SPAN) in found:
        return Head(outputs, QuestionAnswering)
    task = given or _task_of_class(values, outputs)
    if task is None and values.get("problem_type") == "regression":
        return Head(
            outputs,
            notes=(
                f"{source}: problem_type=regression, and the head gives {outputs} numbers for a text, which no task "
                "of albert_tf does",
            ),
        )
    if task is None or task.kind.num_outputs:
        is_number = task is not None and task.kind.head is OF_TEXT
        return Head(outputs, task, gives_probability=is_number and _gives_probability(values, source))
    names, notes = _labels(values.get("id2label"), outputs, source)
    labels, order = task.own_labels(names)
    if order is None or order == tuple(range(outputs)):
        return Head(outputs, task, labels, notes=notes)
    notes += (f"the outputs of the head were put into the order of albert_tf: {', '.join(labels)}",)
    return Head(outputs, task, labels, order, notes)


def _gives_probability(values, source):
    """Whether transformers' pipeline, or sentence-transformers' CrossEncoder, takes a sigmoid of one output."""
    of_sentences = values.get("sentence_transformers")
    names = (of_sentences if isinstance(of_sentences, dict) else {}).get("activation_fn"), values.get(_OLD_ACTIVATION)
    name = next((str(name) for name in names if name is not None), None)
    if name is None:
        return values.get("problem_type") != "regression"
    kind = name.rpartition(".")[2]
    if kind not in ("Identity", "Sigmoid"):
        raise InputError(f"{source}: the activation {shorten(name)} of a cross-encoder is not computed by albert_tf")
    return kind == "Sigmoid"


def _task_of_class(values, outputs):
    """Returns the task of the class that a config names; of several that of its problem_type, if it fits."""
    name, problem_type = class_in(values), values.get("problem_type")
    tasks = [task for task in TASKS.values() if (ending := task.kind.head.hf_class) and name.endswith(ending)]
    if not tasks or tasks[0].kind.hf_problem_type is None:
        return next(iter(tasks), None)
    task = next((task for task in tasks if task.kind.hf_problem_type == problem_type), tasks[0])
    if task is tasks[0] and outputs == 1:  # one label of one is none
        return next(task for task in tasks if task.kind.num_outputs == 1)
    return task if task.kind.num_outputs in (None, outputs) else None


def class_in(values: dict[str, typing.Any]) -> str:
    """Returns the class that a config names; an empty string if it names none."""
    architectures = values.get("architectures")
    name = architectures[0] if isinstance(architectures, list) and architectures else ""
    return name if isinstance(name, str) else ""


def _labels(id2label, outputs, source):
    """Returns the labels in the order of their ids, LABEL_0 and so on where they lack names, and sentences."""
    if isinstance(id2label, dict) and len(id2label) == outputs:
        labels = [id2label.get(str(number)) for number in range(outputs)]
        if all(type(label) in (str, int) for label in labels):
            return tuple(map(str, labels)), ()
    labels = tuple(f"LABEL_{number}" for number in range(outputs))
    if id2label is None:
        return labels, ()
    return labels, (
        Caveat(
            f"{source}: id2label does not name the {outputs} outputs of the head by the ids 0 to {outputs - 1}, so "
            f"they are called {labels[0]} to {labels[-1]}; correct it if the labels have names"
        ),
    )
