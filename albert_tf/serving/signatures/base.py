"""The seam between an export and what a kind of model can be asked."""

import abc
import collections.abc
import inspect

import tensorflow as tf

from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures.by_length import compute_by_length
from albert_tf.serving.signatures.text_inputs import TextInputs

Outputs = dict[str, tf.Tensor]


class Signatures(abc.ABC):
    """The functions that an export has, and the model that they share.

    Inputs are string tensors [N] under the names of the functions' arguments; the tokenizer is part of the graph.
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
        specs = [tf.TensorSpec([None], tf.string, name) for name in inspect.signature(function).parameters]

        def compute(*texts):
            # What is no UTF-8 becomes U+FFFD here, so that all parts of the graph read the same characters.
            return function(*(tf.strings.unicode_transcode(text, "UTF-8", "UTF-8") for text in texts))

        return tf.function(compute, autograph=False, input_signature=specs).get_concrete_function()
