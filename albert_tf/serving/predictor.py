"""A fine-tuned folder as a Python object: texts in, predictions out."""

import collections.abc
import os
import typing

from albert_tf.asked_texts import list_inputs
from albert_tf.finetuning import runner
from albert_tf.finetuning.task import CUT, count_cut
from albert_tf.modeling.layers import named_variables
from albert_tf.serving.encoder_model import EncoderModel
from albert_tf.serving.loading import load_finetuned
from albert_tf.tokenization.unknown_words import find_unknown_words, holds_unknown
from albert_tf.training.devices.batches import suitable_lengths
from albert_tf.training.devices.strategy import strategy_of
from albert_tf.training.outputs import make_output_function


class Predictor(EncoderModel):
    """Tokenizer, task and model of a fine-tuned folder; they predict what `do_predict` does.

    What is longer than `max_seq_length` is cut, or read in windows, as in training.

    ```python
    predictor = albert_tf.load("run/nsmc")
    predictor.predict(["정말 재밌어요", "시간이 아깝다"])
    # [{"label": "1", "probabilities": {"0": 0.02, "1": 0.98}}, {"label": "0", ...}]
    ```

    Args:
        folder: The `output_dir` of a command that fine-tunes; of its checkpoints the best is taken.
        place: What errors call the folder; by default as it is called.

    Raises:
        InputError: The folder holds no fine-tuned model.
    """

    def __init__(self, folder: str | os.PathLike, place: str | None = None):
        loaded = load_finetuned(folder, "albert_tf.load")
        super().__init__(loaded, place or os.fspath(folder))
        self.task = loaded.task
        strategy = strategy_of(named_variables(self.model))
        self._lengths = suitable_lengths(strategy)
        self._compute = make_output_function(strategy, lambda batch: self.task.outputs(batch, self.model))

    def predict(self, inputs: collections.abc.Sequence[typing.Any], batch_size: int = 64) -> list[typing.Any]:
        """Returns a prediction for each input, in order.

        Args:
            inputs: Texts, or tuples of texts where the task reads pairs; see the task's `examples_of`.
            batch_size: How many are computed at once.

        Raises:
            InputError: An input is not what the task reads.
        """
        examples = self.task.examples_of(list_inputs(inputs))
        if not examples:
            return []
        features = self.task.encode(examples, self.tokenizer, self.max_seq_length)
        self.add_cut(count_cut(features.get(CUT, ())))
        candidates = holds_unknown(self.tokenizer, features["input_ids"])
        self.add_unknown(*find_unknown_words(self.tokenizer, list(map(self.task.texts_of, examples)), candidates))
        encoded = runner.EncodedFile("", examples, features, self.max_seq_length)
        return runner.compute_predictions(
            self.task, encoded, batch_size, lambda _, dataset: self._compute(dataset), self._lengths
        )

    def _described(self):
        return f"{self._place}, which was fine-tuned,"
