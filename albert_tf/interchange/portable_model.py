"""A model on its way from one format to another, and what readers and writers of formats share."""

import collections.abc
import dataclasses
import math

import numpy as np

from albert_tf.base.checkpoint_files import CheckpointReader
from albert_tf.base.errors import InputError, shorten
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS
from albert_tf.interchange.variables import Naming, Task, entries, num_blocks, projects
from albert_tf.tokenization import Tokenizer

PROJECTION = "encoder/embedding_hidden_mapping_in/"
_POOLER = "encoder/pooler/"
# Begins the notes on variables that nobody reads.
NO_PART = "left, because it is no part of the model: "
# A format may lack one of these as a whole, but not a part of it.
_OF_DISCRIMINATORS = "replaced_token_head/"
_PARTS_THAT_MAY_LACK = (_POOLER, "masked_lm_head/", "sentence_order_head/", _OF_DISCRIMINATORS)

# More is a mistake in the file: the deepest models of the kind have 48 layers.
_MOST_LAYERS = 1000
_LARGEST_SIZE = 2**31

# How much of a matrix is read at once to be transposed.
_PART_BYTES = 16 * 2**20


class Caveat(str):
    """A sentence on why answers differ from the source's, which whoever asks the model is told."""


@dataclasses.dataclass(frozen=True)
class Weight:
    """A variable that is read when it is needed, so that a conversion holds one at a time."""

    shape: tuple[int, ...]
    load: collections.abc.Callable[[], np.ndarray]  # called once for each use
    # Returns the rows from one to another; None where values can't be read in parts.
    load_rows: collections.abc.Callable[[int, int], np.ndarray] | None = None

    def read(self) -> np.ndarray:
        """Returns the values as float32; an InputError if one is no number or not finite."""
        values = self.load()
        try:
            values = np.asarray(values).astype(np.float32, copy=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"a variable of shape {list(self.shape)} holds something other than numbers; it can't be converted"
            ) from error
        if not np.isfinite(values).all():
            raise InputError(
                f"a variable of shape {list(self.shape)} holds NaN or infinity, so training had diverged; use "
                "an earlier checkpoint"
            )
        return values


def transposed(weight: Weight) -> Weight:
    """Returns a matrix transposed, without a second copy in memory where it can be read in parts."""
    num_columns, num_rows = weight.shape

    def load():
        if weight.load_rows is None:
            return weight.read().T
        values = np.empty((num_rows, num_columns), np.float32)
        step = max(1, _PART_BYTES // (4 * num_rows))
        for first in range(0, num_columns, step):
            values[:, first : first + step] = weight.load_rows(first, min(first + step, num_columns)).T
        return values

    return Weight((num_rows, num_columns), load)


class Values(collections.abc.Mapping):
    """A mapping of names to values, each of which is read when it is asked for."""

    def __init__(self, weights: dict[str, Weight]):
        self._weights = weights

    def __getitem__(self, name):
        return self._weights[name].read()

    def __iter__(self):
        return iter(self._weights)

    def __len__(self):
        return len(self._weights)


def checkpoint_weights(reader: CheckpointReader) -> dict[str, Weight]:
    def weight(name):
        return Weight(tuple(reader.shapes[name]), lambda: reader.read([name])[name])

    return {name: weight(name) for name in reader.shapes}


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """Options for what the files of a format may not say.

    Attributes:
        vocab_file: A vocabulary to take instead of the tokenizer beside the checkpoint.
        spm_model_file: A SentencePiece model to take instead.
        do_lower_case: Whether letters are lower-cased; None for what the files say, or else that they are.
        strip_accents: Whether accents are dropped; None for what the files say, or else as letters are lower-cased.
        split_number_commas: Whether a piece of SentencePiece that ends in a digit and a comma is cut; None for yes.
        task: The task of the head, a key of `finetuning.TASKS`, where the files don't say.
        albert_config_file: The config, where it does not lie beside the checkpoint.
    """

    vocab_file: str | None = None
    spm_model_file: str | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    split_number_commas: bool | None = None
    task: str | None = None
    albert_config_file: str | None = None

    @property
    def named_task(self) -> Task | None:
        """The class of `task`."""
        return TASKS[self.task] if self.task else None


@dataclasses.dataclass
class PortableModel:
    """A model as it is between two formats."""

    config: AlbertConfig
    weights: dict[str, Weight]  # by our names, those of the head included
    task: Task | None = None  # what the head is for; None without or if nobody knows
    labels: tuple[str, ...] | None = None  # of the head in the order of their ids
    settings: dict = dataclasses.field(default_factory=dict)  # of the head's run, by the names of run_settings.json
    tokenizer: Tokenizer | None = None
    sentencepiece_file: str | None = None  # a SentencePiece model that lay beside it, if not the tokenizer's
    untrained: frozenset[str] = frozenset()  # variables that are as random as they began
    notes: list[str] = dataclasses.field(default_factory=list)  # what was left or is missing, and why, a sentence each
    max_seq_length: int | None = None  # of the longest input, in tokens; None for as many as it has positions
    gives_probability: bool = False  # whether a head of one output gives what a sigmoid is taken of
    vectors: dict = dataclasses.field(default_factory=dict)  # what `read_vectors` returns; empty for as usual

    @property
    def longest_sequence(self) -> int:
        """The length of the longest input, in tokens, as far as anything says."""
        said = (self.settings.get("max_seq_length"), self.vectors.get("max_seq_length"), self.max_seq_length)
        return min(self.config.longest_sequence, *(length or self.config.longest_sequence for length in said))

    @property
    def num_parameters(self) -> int:
        return sum(math.prod(weight.shape) for weight in self.weights.values())

    @property
    def has_head(self) -> bool:
        return any(name.startswith("head/") for name in self.weights)

    @property
    def num_outputs(self) -> int:
        """The number of outputs of the head; 0 if it has no such layer."""
        bias = self.weights.get("head/dense/bias")
        return bias.shape[0] if bias else 0

    def has(self, part: str) -> bool:
        """Whether there are the variables of a part, such as "masked_lm_head"."""
        return any(name.startswith(f"{part}/") for name in self.weights)


def take_weights(
    naming: Naming,
    config: AlbertConfig,
    found: dict[str, Weight],
    source: str,
    task: Task | None = None,
    outputs: int = 0,
    encoder_prefix: str = "",
) -> tuple[dict[str, Weight], list[str]]:
    """Returns a model's variables in a file by our names, and sentences on what is missing and what is left.

    An InputError, which names `source`, if a variable is missing, has another shape than the config says, or is one too
    many of the encoder, whose names begin with `encoder_prefix`.
    """
    check_plausible(config, len(found), source)
    wanted = entries(naming, config, task, outputs)
    weights, missing = {}, []
    for name, entry in wanted.items():
        if entry.name not in found:
            missing.append(name)
            continue
        weight = found[entry.name]
        if tuple(weight.shape) != entry.their_shape:
            raise InputError(
                f"{source}: {entry.name} has shape {list(weight.shape)}, and by the config beside it it should have "
                f"{list(entry.their_shape)}; replace it with the config that the weights were made with"
            )
        weights[name] = _in_shape(weight, entry, entry.shape)
    notes = _check_missing(missing, weights, wanted, source)
    used = {wanted[name].name for name in weights}
    left = [name for name in found if name not in used]
    extra = [name for name in left if encoder_prefix and name.startswith(encoder_prefix)]
    if extra:
        raise InputError(
            f"{source}: {shorten(extra[0])} is not part of the encoder that the config beside it describes; replace it "
            "with the config that the weights were made with"
        )
    if not projects(config) and naming.always_projects:
        weights = _without_projection(weights, source)
    return weights, [*notes, *(f"{NO_PART}{name}" for name in left)]


def check_plausible(config: AlbertConfig, num_variables: int, source: str) -> None:
    """Checks that a file may hold the model that a config describes, before anything of that size is made."""
    sizes = {name: value for name, value in config.to_dict().items() if isinstance(value, int)}
    for name, value in sizes.items():
        if value > _LARGEST_SIZE:
            raise InputError(f"{source}: {name} in the config beside it is more than any model has; correct it")
    if config.num_hidden_layers * config.inner_group_num > _MOST_LAYERS:
        raise InputError(
            f"{source}: {config.num_hidden_layers} layers of {config.inner_group_num} blocks are more than any model "
            "has; correct num_hidden_layers in the config beside it"
        )
    if max(num_blocks(config)) > num_variables:
        raise InputError(
            f"{source}: its {num_variables} variables can't be the {max(num_blocks(config))} blocks that the config "
            "beside it describes; replace it with the config that the weights were made with"
        )


def _check_missing(missing, weights, wanted, source):
    """Returns sentences on the parts that are missing as a whole; anything less is an error."""
    for name in missing:
        part = next((part for part in _PARTS_THAT_MAY_LACK if name.startswith(part)), None)
        if part is None or any(loaded.startswith(part) for loaded in weights):
            raise InputError(f"{source}: the variable {wanted[name].name} is missing; the file is not whole")
    parts = [part.strip("/") for part in _PARTS_THAT_MAY_LACK if any(name.startswith(part) for name in missing)]
    # Nearly all models lack it, and nobody misses it.
    parts = [part for part in parts if part != _OF_DISCRIMINATORS.strip("/")]
    return [f"not in it, and so initialized at random where it is needed: {', '.join(parts)}"] if parts else []


def _without_projection(weights, source):
    """Returns weights without the projection, which our model lacks; an InputError if it changes anything."""
    kernel, bias = (weights[f"{PROJECTION}{end}"].read() for end in ("kernel", "bias"))
    if not np.array_equal(kernel, np.eye(len(kernel), dtype=np.float32)) or bias.any():
        raise InputError(
            f"{source}: embedding_hidden_mapping_in changes embeddings that have the hidden size already, which models "
            "of albert_tf don't; this model can't be converted"
        )
    return {name: weight for name, weight in weights.items() if not name.startswith(PROJECTION)}


def give_weights(naming: Naming, model: PortableModel) -> tuple[dict[str, Weight], list[str]]:
    """Returns a model's variables by the names of a format, and sentences on those that it has no place for."""
    wanted = entries(naming, model.config, model.task, model.num_outputs)
    weights = dict(model.weights)
    if not projects(model.config) and naming.always_projects:
        size = model.config.hidden_size
        weights[f"{PROJECTION}kernel"] = Weight((size, size), lambda: np.eye(size, dtype=np.float32))
        weights[f"{PROJECTION}bias"] = Weight((size,), lambda: np.zeros(size, np.float32))
    given = {}
    for name, entry in wanted.items():
        if name in weights:
            given[entry.name] = _in_shape(weights.pop(name), entry, entry.their_shape)
    parts = list(dict.fromkeys(name.split("/")[0] for name in weights))
    return given, [f"left, because the format has no place for it: {part}" for part in parts]


def _in_shape(weight, entry, shape):
    """Returns a variable of a format in our shape, or one of ours in the format's."""
    if entry.spelling.is_transposed:
        return transposed(weight)
    return weight if weight.shape == shape else Weight(shape, lambda: weight.read().reshape(shape))
