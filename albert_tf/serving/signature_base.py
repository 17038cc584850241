"""The seam between an export and what a kind of model can be asked."""

import abc
import collections.abc
import re

import tensorflow as tf

from albert_tf.serving.loading import TrainedModel
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.model_inputs import pack_segments
from albert_tf.tokenization.vocabulary import MASK

Tensors = dict[str, tf.Tensor]

# Larger groups hardly make better use of a CPU, and pad more.
_GROUP_SIZE = 8


def compute_by_length(function: collections.abc.Callable[[Tensors], Tensors], batch: Tensors) -> Tensors:
    """Returns a function's outputs for a batch, computed in groups of about one length: short texts first.

    The batch is the encoder's inputs, int32 [N, S] each, and other features of each text, [N, up to S, ...]. Of a
    group's part of it, int32 [B, T], the function returns tensors [B, ...], of which [N, ...] is returned, or, with a
    row for each token, [B, T, ...], of which it is [N, S, ...], 0 where it computed none.
    """
    traced = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None, None, *values.shape[2:]], values.dtype, name) for name, values in batch.items()}
    )
    specs = traced.structured_outputs
    lengths = tf.reduce_sum(batch["input_mask"], axis=1)
    order = tf.argsort(lengths, stable=True)
    count, length = tf.unstack(tf.shape(batch["input_mask"]))
    num_groups = tf.maximum(1, -(-count // _GROUP_SIZE))  # one of none where there is no text

    def compute_group(number, arrays):
        rows = order[number * _GROUP_SIZE : (number + 1) * _GROUP_SIZE]
        longest = tf.where(count > 0, tf.reduce_max(tf.gather(lengths, rows)), length)
        outputs = traced(**{name: tf.gather(values, rows)[:, :longest] for name, values in batch.items()})
        padded = {
            name: _pad_pieces(values, length - longest) if _is_of_pieces(specs[name]) else values
            for name, values in outputs.items()
        }
        return number + 1, {name: array.write(number, padded[name]) for name, array in arrays.items()}

    # A single group goes through the loop, too: a graph with the model in it twice takes twice as long to load.
    arrays = {name: tf.TensorArray(spec.dtype, num_groups, infer_shape=False) for name, spec in specs.items()}
    _, arrays = tf.while_loop(lambda number, _: number < num_groups, compute_group, (0, arrays), parallel_iterations=1)
    places = tf.argsort(order)
    found = {name: tf.gather(array.concat(), places) for name, array in arrays.items()}
    return {name: tf.ensure_shape(values, specs[name].shape) for name, values in found.items()}


def _is_of_pieces(spec):
    return spec.shape.rank > 1 and spec.shape[1] is None


def _pad_pieces(values, count):
    return tf.pad(values, [[0, 0], [0, count], *[[0, 0]] * (values.shape.rank - 2)])


# All that Python's \s takes for a space; there is none above.
_SPACES = [code_point for code_point in range(0x3001) if re.match(r"\s", chr(code_point))]


def slices(values: tf.RaggedTensor, rows: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.RaggedTensor:
    """Returns parts of rows of values [N, (values)], [M, (values)]: their rows, begins and ends there, int [M] each."""
    starts = tf.gather(tf.cast(values.row_starts(), tf.int32), rows)
    positions = tf.ragged.range(starts + begins, starts + ends)
    return positions.with_values(tf.gather(values.values, positions.values))


def substrings(characters: tf.RaggedTensor, rows: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Returns parts of texts, string [M]; arguments as for `slices` of int32 characters [N, (characters)]."""
    return tf.strings.unicode_encode(slices(characters, rows, begins, ends), "UTF-8")


def is_space(characters: tf.Tensor) -> tf.Tensor:
    """Returns which characters are spaces, bool of the shape of int32 `characters`."""
    spaces = tf.constant(_SPACES)
    places = tf.minimum(tf.searchsorted(spaces, characters), len(_SPACES) - 1)
    return tf.equal(tf.gather(spaces, places), characters)


class TextInputs:
    """Encodes strings, padded to the longest of a batch and no further; too long ones are cut, of pairs the longer."""

    def __init__(self, tokenizer: Tokenizer, max_seq_length: int):
        self._tokenizer, self._max_seq_length = tokenizer, max_seq_length

    def encode(self, *texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the encoder's inputs, int32 [N, S] each, of texts or pairs of texts, string [N]."""
        return self.pack(*(self._tokenizer.encode_ids(text) for text in texts))

    def encode_masked(self, text: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.RaggedTensor]:
        """Encodes texts string [N] in which each "[MASK]" stands for an unknown token.

        Returns the encoder's inputs, int32 [N, S], and the positions of the masks that were not cut off, int32 [N,
        (masks)].
        """
        vocabulary = self._tokenizer.vocabulary
        vocabulary.require(MASK)
        parts = tf.strings.split(text, MASK)
        ids = parts.with_flat_values(self._tokenizer.encode_ids(parts.flat_values))
        # Every part but the first comes after a mask.
        masks = tf.fill([tf.size(parts.flat_values), 1], vocabulary.id_of(MASK))
        with_masks = tf.concat([tf.RaggedTensor.from_tensor(masks), ids.values], axis=1)
        batch = self.pack(ids.with_values(with_masks).merge_dims(1, 2)[:, 1:])
        is_mask = tf.equal(batch["input_ids"], vocabulary.id_of(MASK))
        positions = tf.tile(tf.range(tf.shape(is_mask)[1])[None], [tf.shape(is_mask)[0], 1])
        return batch, tf.ragged.boolean_mask(positions, is_mask)

    def pack(self, *segments: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        """Returns the encoder's inputs, int32 [N, S] each, of the ids of one or two texts, int32 [N, (pieces)]."""
        return pack_segments(segments, self._tokenizer.vocabulary, self._max_seq_length, pads_to_longest=True)


Outputs = dict[str, tf.Tensor]


class Signatures(abc.ABC):
    """The functions that an export has, and the model that they share.

    Inputs are string tensors [N] under the names of the task's `input_fields`; the tokenizer is part of the graph.
    Every output has a row for each of the N texts, as TensorFlow Serving's row format needs it; shorter rows are filled
    up, and `LENGTHS` says how many columns of each row are there. Lengths and batch sizes are free; texts of about one
    length are computed together.
    """

    def __init__(self, trained: TrainedModel):
        self._model, self._task, self._tokenizer = trained.model, trained.task, trained.tokenizer
        self._max_seq_length = trained.max_seq_length
        self._inputs = TextInputs(trained.tokenizer, trained.max_seq_length)

    @abc.abstractmethod
    def functions(self) -> dict[str, collections.abc.Callable[..., Outputs]]:
        """Returns the functions by the names of the signatures; `DEFAULT` is among them."""

    def _task_outputs(self, batch):
        return compute_by_length(lambda group: self._task.outputs(group, self._model), batch)

    def trace(self) -> dict[str, collections.abc.Callable[..., Outputs]]:
        """Returns the functions as graphs to save, for any number of strings."""
        return {name: self.trace_one(name) for name in self.functions()}

    def trace_one(self, name: str) -> collections.abc.Callable[..., Outputs]:
        """Returns the graph of one of the functions."""
        function = self.functions()[name]
        fields = ("text",) if self._task is None else self._task.input_fields
        specs = [tf.TensorSpec([None], tf.string, field) for field in fields]

        def compute(*texts):
            # What is no UTF-8 becomes U+FFFD here, so that all parts of the graph read the same characters.
            return function(*(tf.strings.unicode_transcode(text, "UTF-8", "UTF-8") for text in texts))

        return tf.function(compute, autograph=False, input_signature=specs).get_concrete_function()
