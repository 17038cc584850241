"""The seam between a fine-tuning task and what uses it: the runner, and whatever converts, plans or compares models."""

import abc
import collections.abc
import dataclasses
import types
import typing

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import Answer
from albert_tf.base.errors import InputError
from albert_tf.base.settings import check_types
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import Key
from albert_tf.finetuning.linear_models import LinearModel
from albert_tf.finetuning.soft_labels import HAS_LABEL, TAUGHT, SoftLabels
from albert_tf.objectives import Objective
from albert_tf.objectives.objective import Batch, BatchSpec
from albert_tf.reading.rows import write_rows
from albert_tf.tokenization import Tokenizer

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


Features = dict[str, np.ndarray]

# Of features that `encode` returns: how many pieces of a text are left out for its length.
CUT = "pieces_cut"
# Of more texts than this share it is a warning that they are cut.
_FEW = 0.01

# Of settings: whether nothing told what the model's texts are, as in the files of other libraries.
TEXTS_ARE_ASSUMED = "texts_are_assumed"

# What `reports` calls the list of mistakes.
ERRORS_FILE = "errors.tsv"


class FinetuningTask(Objective):
    """An objective that also reads examples, encodes them, turns a model's outputs into predictions, and scores them.

    Examples and predictions are whatever the task makes them; the runner only hands them on. In the methods below
    `examples` are what `read` or `read_unlabelled` returned, `features` what `encode` made of them, N rows, and
    `predictions` what `predict` returned for them.

    Attributes:
        kind: Its record in the registry of tasks; an empty one if it isn't registered.
        scores_predictions: Whether `score` finds what the objective's metrics don't, so that evaluation needs
            predictions.
        may_hide_pieces: Whether a training text without a few of its tokens still has its label.
        predicts_numbers: Whether a number is learnt, and not a label or a place.
        adds_dropout: Whether small models have more dropout than their config, where nobody says how much.
        highest_learning_rate: The peak rate of small models where nobody says one; None for that of classifiers.
        usual_max_seq_length: In tokens, where nobody says it; None to choose it by the lengths of the texts.
        setting_types: The types of the settings of a run that `from_settings` needs, as for `check_types`.
        reads_beside_ids: Whether `outputs` needs more of a batch than ids, mask and segments.
        soft_labels: How a teacher's answers are learnt; None where there is no teacher.
        answers_pieces: Whether each token has an answer, so that a teacher must read the same tokens.
        thresholds: From which probability on a text has each label, where it may have several.
        labels: In the order of the model's outputs; none where something else is learnt.
        error_columns: The columns of the list of mistakes, as `mistake` fills them; empty for no list.
        input_fields: The parts of one of the inputs of `examples_of`, in order.
        input_columns: Their columns in the files that the task reads; empty where they have none.
        encoder_settings: How vectors of texts are made, where that is learnt; as `read_encoder_settings` returns it.
    """

    title = "fine-tuning loss"
    kind = TaskKind("")
    predictions_file: str = "predictions.tsv"
    scores_predictions: bool = False
    may_hide_pieces: bool = False
    predicts_numbers: bool = False
    adds_dropout: bool = True
    highest_learning_rate: float | None = None
    usual_max_seq_length: int | None = None
    setting_types: collections.abc.Mapping[str, typing.Any] = types.MappingProxyType({})
    reads_beside_ids: bool = False
    soft_labels: SoftLabels | None = None
    answers_pieces: bool = False
    labels: tuple[str, ...] = ()
    thresholds: collections.abc.Sequence[float] = ()
    error_columns: tuple[str, ...] = ()
    input_fields: tuple[str, ...] = ("text",)
    input_columns: tuple[str, ...] = ()
    encoder_settings: collections.abc.Mapping[str, str] = types.MappingProxyType({})

    def weights(self, batch: Batch) -> tf.Tensor:
        """Returns how much each example, or each answer to be learnt of it, counts in the loss: float32 [B, ...]."""
        return batch["example_weights"]

    def loss_weights(self, batch):
        return dict.fromkeys(self.loss_coefficients, tf.reduce_sum(self.weights(batch)))

    def taught_spec(self, *shape: int | None) -> BatchSpec:
        """Returns the features of a teacher's answers, `TAUGHT` of [None, *shape]; none where there is no teacher."""
        if self.soft_labels is None:
            return {}
        return {HAS_LABEL: tf.TensorSpec([None], tf.float32), TAUGHT: tf.TensorSpec([None, *shape], tf.float32)}

    @abc.abstractmethod
    def read(self, path: str, needs_labels: bool = True) -> list[typing.Any]:
        """Returns the examples of a file, in order.

        Args:
            path: The file.
            needs_labels: Whether each example must have its answer, as for training and evaluation.

        Raises:
            InputError: The file can't be used; the message names file and line.
        """

    @abc.abstractmethod
    def encode(self, examples: list[typing.Any], tokenizer: Tokenizer, max_seq_length: int) -> Features:
        """Returns arrays [N, ...] by name: the features of `batch_spec` but for `example_weights`, which is added.

        N may be larger than the number of examples, where a long text becomes several windows. Whatever else `predict`
        needs, such as the example of each window, goes under names that `batch_spec` doesn't have; so does `CUT`, int32
        [N, ...], where texts may be cut. InputError if the vocabulary lacks a special token.
        """

    def read_unlabelled(self, path: str) -> list[typing.Any]:
        """Returns the examples of a file without the answers that it may hold; errors as of `read`."""
        raise InputError(f"{type(self).__name__} can't learn from texts without labels; leave `unlabelled_file` out")

    @classmethod
    def names_of_outputs(cls, settings: dict[str, typing.Any]) -> tuple[str, ...]:
        """Returns the names of the outputs of a run's head, from its settings; none of tasks without labels."""
        return tuple(settings.get("labels", ()))

    def order_of_head(self, settings, source):
        """Returns it by the names of the outputs, which must be the same ones."""
        # Those of another library's folder may be spelled otherwise, as for `reading_as`.
        if settings.get("objective") != self.identity()["objective"]:
            return None
        given = self.names_of_outputs(check_types(settings, self.setting_types, source))
        own = self.names_of_outputs(self.settings())
        if settings.get(TEXTS_ARE_ASSUMED) is True:
            given = tuple(_names_of(given, own))
        if sorted(given) != sorted(own):
            return None
        return () if given == own else tuple(map(given.index, own))

    def reading_as(self, other: "FinetuningTask") -> "FinetuningTask":
        """Returns this task for texts in the form that another of its class reads; its outputs stay what they are.

        It is for models that don't say what their texts are. Labels that differ from the other's in letter case alone,
        or are its numbers as LABEL_0, are its labels.
        """
        own = self.settings()
        kept = {name: own[name] for name in ("labels", "types") if name in own}
        if "labels" in kept:
            kept["labels"] = _names_of(kept["labels"], other.settings()["labels"])
        return type(self).from_settings(self.config, {**other.settings(), **kept})

    def differs_from(self, other: "FinetuningTask") -> str | None:
        """Returns why a teacher of this class can't teach this task, as in "has other labels", None if it can."""
        return None

    def soft_features(self, examples: list[typing.Any], features: Features, teacher: typing.Any) -> Features:
        """Returns a `Teacher`'s answers for each row, under the names that `batch_spec` has for them."""
        return {TAUGHT: self.taught(examples, teacher.predict(examples))}

    def taught(self, examples: list[typing.Any], predictions: list[typing.Any]) -> np.ndarray:
        """Returns a teacher's predictions for examples as numbers, float32 [N, ...] as `taught_spec` has it."""
        raise InputError(f"{type(self).__name__} can't learn from a teacher; leave `teacher` out")

    @abc.abstractmethod
    def outputs(self, batch: Batch, **models: tf.keras.Model) -> dict[str, tf.Tensor]:
        """Returns the tensors that predictions are made of, float [B, ...] by name; runs inside a replica."""

    @abc.abstractmethod
    def predict(self, examples: list[typing.Any], features: Features, outputs: Features) -> list[typing.Any]:
        """Returns a prediction for each example, from what `outputs` returned for all batches, N rows."""

    @abc.abstractmethod
    def write_predictions(self, path: str, examples: list[typing.Any], predictions: list[typing.Any]) -> None:
        """Writes predictions to a file, by way of a temporary name."""

    def score(self, examples: list[typing.Any], predictions: list[typing.Any]) -> dict[str, float]:
        """Returns how good predictions are, by the names of the measures; called if `scores_predictions`."""
        return {}

    def blind_scores(self, examples: list[typing.Any]) -> tuple[str, dict[str, float]]:
        """Returns a rule that reads no text, and its scores on a dev file by measure; by default there is none."""
        return "", {}

    def linear_model(self) -> LinearModel | None:
        """Returns a linear model of the examples that `read` returns, to compare with; None if there is none.

        Where it is given only some of them, they are chosen by `text_and_label`.
        """
        return None

    def decide_on_held_out(self, examples: list[typing.Any], predictions: list[typing.Any]) -> list[typing.Any]:
        """Settles how predictions are decided, as by thresholds, on the run's own dev file; returns them decided so."""
        return predictions

    def restore(self, folder: str) -> None:
        """Restores what `decide_on_held_out` settled for a folder's run; InputError if a file can't be used."""

    def reports(self) -> dict[str, collections.abc.Callable[[str, list[typing.Any], list[typing.Any]], None]]:
        """Returns the files to write after an evaluation: a function of (path, examples, predictions) for each."""
        return {ERRORS_FILE: self._write_errors} if self.error_columns else {}

    def mistake(self, example: typing.Any, prediction: typing.Any) -> tuple[float, list[str]] | None:
        """Returns how bad a mistake is, and what its line says under `error_columns`; None if there is none."""

    def _write_errors(self, path, examples, predictions):
        write_errors(path, self.error_columns, map(self.mistake, examples, predictions))

    def describe(self, path: str, examples: list[typing.Any], features: Features) -> list[str]:
        """Returns lines to print about a training file before training starts."""
        return [f"{len(examples):,} examples in {path}"]

    def limits_elsewhere(self) -> list[str]:
        """Returns a sentence for each obstacle to using the model in transformers, or to the same answers there."""
        found = self.kind.head.not_computed_elsewhere(self.config)
        if found is None:
            return []
        what, how = found
        return [f"transformers can't express {what}; to convert this model for it later, train with {how.strip('`')}"]

    def describe_cuts(self, features: Features, max_seq_length: int, where: str = "") -> str | None:
        """Returns how many texts are cut, and by how much, None if none is."""
        if CUT not in features:
            return None
        limit = length_limit(max_seq_length, self.config.longest_sequence)
        return describe_cuts(features[CUT], features["input_mask"].sum(), "text", where, limit)

    def examples_of(self, inputs: collections.abc.Sequence[typing.Any]) -> list[typing.Any]:
        """Returns examples without answers of texts, or tuples of them; InputError if one is of another kind."""
        raise InputError(f"{type(self).__name__} can't predict texts that are in no file")

    def texts_of(self, example: typing.Any) -> tuple[str, ...]:
        """Returns the texts of an example, to tell of words that the vocabulary can't spell; by default none."""
        return ()

    def text_and_label(self, example: typing.Any) -> Key:
        """Returns the text and the label that a share of a file is chosen by, the same share of each label.

        Examples with equal texts come to one side; the label is "" where there are none to keep the shares of, and a
        tuple of labels where a text may have several. InputError if no share can be chosen for this task.
        """
        raise InputError(f"{type(self).__name__} needs a separate file to evaluate on; leave `dev_fraction` out")

    @classmethod
    def own_labels(cls, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
        """Returns the labels of a head from elsewhere, and which of its outputs each is; None for the same order."""
        return names, None

    @classmethod
    def from_head(cls, config: AlbertConfig, labels: tuple[str, ...], gives_probability: bool) -> "FinetuningTask":
        """Returns the task of a head from elsewhere, given its `own_labels`; InputError if they can't be the task's.

        `gives_probability` says whether a sigmoid is taken of its only output.
        """
        return cls(config)

    @classmethod
    def from_settings(cls, config: AlbertConfig, settings: dict[str, typing.Any]) -> "FinetuningTask":
        """Returns the task of a run by its settings, with what `settings` returned among them."""
        own = {name: settings[name] for name in cls.setting_types}
        return cls(config, **{name: tuple(each) if isinstance(each, list) else each for name, each in own.items()})

    def settings(self) -> dict[str, typing.Any]:
        """Returns JSON values by name that tell this task from others; a run is resumed with the same ones.

        By default these are the attributes that `setting_types` names, for `from_settings` to give to the constructor.
        """
        own = {name: getattr(self, name) for name in self.setting_types}
        return {name: list(each) if isinstance(each, tuple) else each for name, each in own.items()}


def write_errors(path: str, columns: collections.abc.Iterable[str], mistakes: collections.abc.Iterable) -> None:
    """Writes the lines of mistakes below the names of their columns, the worst first."""
    found = sorted(filter(None, mistakes), key=lambda each: -each[0])
    write_rows(path, [columns, *(line for _, line in found)])


def describe_cuts(cut: np.ndarray, kept: int, what: str, where: str, limit: str) -> str | None:
    """Returns how many texts are cut, and by how much; None if none is."""
    # `cut` int [N, ...] are the pieces left out of each, `kept` those that are not of all together; `what` one of the
    # texts is called, as in "text", `where` they are, as in "in train.tsv"; `limit` also says what may be done about
    # it.
    count = count_cut(cut)
    if not count:
        return None
    warning = "warning: " if count > _FEW * len(cut) else ""
    are = f"{count:,} of {len(cut):,} {what}s{where and f' {where}'} {'are' if count > 1 else 'is'} cut"
    lost = f"{cut.sum() / (cut.sum() + kept):.1%} of all pieces are left out, {cut.max():,} of one {what} at most"
    return f"{warning}{are}: {lost}; {limit}"


def count_cut(cut: np.ndarray) -> int:
    """Returns how many texts are cut, given how many pieces of each are left out, int [N, ...]."""
    cut = np.asarray(cut)
    return int(np.count_nonzero(cut.reshape([len(cut), -1]).any(axis=1))) if cut.size else 0


def length_limit(max_seq_length: int, longest_sequence: int) -> str:
    """Returns the `limit` of `describe_cuts` where it is the length of a sequence."""
    if max_seq_length < longest_sequence:
        return f"max_seq_length is {max_seq_length}, and can be raised to {longest_sequence}"
    return f"the model reads {max_seq_length} pieces, so divide longer texts, or train a model that reads more"


def _names_of(labels, names):
    """Returns labels in the spelling of a list of names that equals them but for the spelling; otherwise the labels."""

    def plain(label):
        return label.removeprefix("LABEL_").casefold()

    known = {plain(name): name for name in names}
    is_clear = len(known) == len(names) and sorted(map(plain, labels)) == sorted(known)
    return [known[plain(label)] for label in labels] if is_clear else labels
