"""A record of each fine-tuning task for whatever converts, plans or compares models, and the heads that tasks share."""

import dataclasses
import typing

from albert_tf.asking.answers import Answer
from albert_tf.config import AlbertConfig

# The kind of a layer, and its sizes: fields of the config, numbers, or "outputs", how many the head has.
Layer = tuple[str, tuple[str | int, ...]]


@dataclasses.dataclass(frozen=True, eq=False)
class Head:
    """The layers that answers are read off, beside an encoder.

    Attributes:
        layers: Every layer by name, those that a config may leave out among them.
        hf_class: The end of the names of those classes of transformers that have such a head; None if none has.
        beyond_others: A field of the config, its one value that other libraries compute, what they compute in place of
            the others, and how to train with that one; None if they compute all.
    """

    layers: typing.Mapping[str, Layer]
    hf_class: str | None = None
    beyond_others: tuple[str, typing.Any, str, str] | None = None

    @property
    def reads_whole_text(self) -> bool:
        """Whether its outputs are those of a whole text, and not of its pieces."""
        return "head/transform" in self.layers

    def not_computed_elsewhere(self, config: AlbertConfig) -> tuple[str, str] | None:
        """Returns the part of a model that other libraries don't compute, and how to train without; None for none."""
        if self.beyond_others is None:
            return None
        field, usual, reason, how = self.beyond_others
        value = getattr(config, field)
        return None if value == usual else (f"{field}={str(value).lower()}: {reason}", how)


_OUTPUT: Layer = ("output", ("hidden_size", "outputs"))
# The second layer is left out where `classification_head` is "pooled".
_OF_TEXTS = {"head/dense": _OUTPUT, "head/transform": ("linear", ("hidden_size", "hidden_size"))}
_POOLS = ("classifier_pooling", "first", "its models read a text's label off [CLS]", "`pooling=first`")
_READS_PIECES = ("character_ngrams", False, "its models read only pieces", "run_ner.py --nocharacter_ngrams")
_ALIGNED = "its models read a text as it is"
_ALIGNS = ("question_alignment", "none", _ALIGNED, "run_squad.py --question_alignment=none")

OF_TEXT = Head(_OF_TEXTS, "ForSequenceClassification", _POOLS)
OF_OPTION = Head(_OF_TEXTS, "ForMultipleChoice", _POOLS)
OF_PIECE = Head({"head/dense": _OUTPUT}, "ForTokenClassification", _READS_PIECES)
OF_SPAN = Head({"head/dense": _OUTPUT}, "ForQuestionAnswering", _ALIGNS)
OF_CONDITIONAL_SPAN = Head(
    {
        "head/start": ("linear", ("hidden_size", 1)),
        "head/end_transform": ("linear", ("twice_hidden_size", "hidden_size")),
        "head/end_layer_norm": ("norm", ("hidden_size",)),
        "head/end": ("linear", ("hidden_size", 1)),
        "head/null_transform": ("linear", ("twice_hidden_size", "hidden_size")),
        "head/null_kernel": ("vector", ("hidden_size", 1)),
    },
    beyond_others=_ALIGNS,
)


@dataclasses.dataclass(frozen=True, eq=False)
class TaskKind:
    """A task as the rest of the library knows it.

    Attributes:
        name: For the TPU planner, and as `task` of a conversion.
        answer: How exports spell its predictions; None for a task that can't be exported.
        num_outputs: Of the head; None for one for each label.
        hf_problem_type: Its name in configs of transformers, which tells tasks with the same class apart.
        deciding_file: The file in a run's folder that answers are decided by, which other formats have no place for.
    """

    name: str
    head: Head = Head({})
    answer: type[Answer] | None = None
    num_outputs: int | None = None
    hf_problem_type: str | None = None
    deciding_file: str | None = None
