"""A fine-tuned folder as a Python object: texts in, predictions out."""

import collections.abc
import os
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import TASKS, runner
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import CONFIG_FILE, find_checkpoint, load_weights
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.training.devices.strategy import strategy_of
from albert_tf.training.outputs import make_output_function
from albert_tf.training.run_folder.guard import SETTINGS_FILE, read_settings


class Predictor:
    """Tokenizer, task and model of a fine-tuned folder; they predict what `--do_predict` does.

    ```python
    predictor = albert_tf.load("run/nsmc")
    predictor.predict(["정말 재밌어요", "시간이 아깝다"])
    # [{"label": "1", "probabilities": {"0": 0.02, "1": 0.98}}, {"label": "0", ...}]
    ```

    Args:
        folder: The --output_dir of a command that fine-tunes; of its checkpoints the best is taken.

    Attributes:
        task: What it was fine-tuned for.
        tokenizer: What texts are encoded with.
        max_seq_length: Longest input in pieces; what is longer is cut, or read in windows, as in training.

    Raises:
        InputError: The folder holds no fine-tuned model.
    """

    def __init__(self, folder: str | os.PathLike):
        folder = os.fspath(folder)
        settings = read_settings(folder)
        kinds = {kind.__name__: kind for kind in TASKS.values()}
        if settings is None or settings.get("objective") not in kinds:
            found = "no run" if settings is None else f"a run of {settings.get('command', 'another kind')}"
            raise InputError(
                f"{folder} holds {found}, not a fine-tuned model with its {SETTINGS_FILE}; name the --output_dir of "
                "run_classifier.py or of another command that fine-tunes"
            )
        config = AlbertConfig.from_json_file(os.path.join(folder, CONFIG_FILE))
        self.tokenizer = KoreanWordPieceTokenizer.load(folder)
        self.max_seq_length = settings["max_seq_length"]
        self.task = kinds[settings["objective"]].from_settings(config, settings)
        self._model = self.task.make_model()
        variables = named_variables(self._model)
        checkpoint = find_checkpoint(folder, "albert_tf.load")
        _, missing, _ = load_weights(checkpoint, variables, "albert_tf.load")
        if not self._model.reads_pooler:  # models of other libraries have none where none is read
            missing = [name for name in missing if not name.startswith("encoder/pooler/")]
        if missing:
            raise InputError(f"albert_tf.load: {checkpoint} lacks {missing[0]}; it is not of this task")
        strategy = strategy_of(variables)
        self._is_fixed = isinstance(strategy, tf.distribute.TPUStrategy)
        self._compute = make_output_function(strategy, lambda batch: self.task.outputs(batch, self._model))

    def predict(self, inputs: collections.abc.Sequence[typing.Any], batch_size: int = 64) -> list[typing.Any]:
        """Returns a prediction for each input, in order.

        Args:
            inputs: Texts, or tuples of texts where the task reads pairs; see the task's `examples_of`.
            batch_size: How many are computed at once.

        Raises:
            InputError: An input is not what the task reads.
        """
        examples = self.task.examples_of(inputs)
        if not examples:
            return []
        features = self.task.encode(examples, self.tokenizer, self.max_seq_length)
        encoded = runner.EncodedFile("", examples, features, self.max_seq_length)
        return runner.compute_predictions(
            self.task, encoded, batch_size, lambda _, dataset: self._compute(dataset), self._is_fixed
        )
