"""A LiteRT model with its tokenizer as a Python object: texts in, predictions out, without TensorFlow."""

import collections.abc
import concurrent.futures
import os
import queue
import typing

import numpy as np

from albert_tf.asked_texts import TextTask, list_inputs
from albert_tf.errors import InputError, first_line, with_extra
from albert_tf.exports import batches_at_once, check_files, threads_per_batch
from albert_tf.files import read_bytes
from albert_tf.litert.files import FAST_TOKENIZER_FILE, LITERT_FILE, read_card
from albert_tf.litert.inputs import FastInputs, pad
from albert_tf.loaded_model import LoadedModel
from albert_tf.text_windows import mean_over_windows, sigmoid, softmax


class LiteRTPredictor(LoadedModel):
    """What `export_model.py --format=litert` has made of a classifier or a regression; it predicts as `Predictor` does.

    ```python
    predictor = albert_tf.load("served/nsmc_litert")
    predictor.predict(["정말 재밌어요", "시간이 아깝다"])
    # [{"label": "1", "probabilities": {"0": 0.02, "1": 0.98}}, {"label": "0", ...}]
    ```

    Args:
        folder: As `find_litert` returns it.

    Attributes:
        card: What model_card.json says of it.
        thresholds: Where a text may have several labels, from which probability on it has each, float32 [labels];
            else None.

    Raises:
        InputError: It can't be used, or ai-edge-litert is missing.
    """

    def __init__(self, folder: str | os.PathLike):
        self._place, self.card = os.fspath(folder), read_card(folder)
        self.results = self.card.get("metrics", {})
        self.task = TextTask(tuple(self.card["input_fields"]), tuple(self.card.get("input_columns", ())))
        self.max_seq_length, self.num_cut = self.card["max_seq_length"], 0
        thresholds = self.card.get("thresholds")
        self.thresholds = None if thresholds is None else np.array(thresholds, np.float32)
        self._path, self._stride = os.path.join(folder, LITERT_FILE), self.card.get("doc_stride")
        # Kept, for by the time that another interpreter is needed the file may be one of another model.
        self._content = read_bytes(self._path, "the model")
        check_files(self.card, self._place)
        self._inputs = FastInputs(
            os.path.join(folder, FAST_TOKENIZER_FILE),
            self.max_seq_length,
            self.card["special_tokens_in_text"],
            self.card["truncation"],
        )
        self._num_threads = threads_per_batch(self.card)
        # An interpreter computes for one at a time; there come to be as many as are asked at once.
        self._idle = queue.LifoQueue()
        interpreter = self._load()
        self._check_labels(interpreter)
        self._idle.put(interpreter)
        self._workers = concurrent.futures.ThreadPoolExecutor(batches_at_once(self.card), "litert")

    def predict(self, inputs: collections.abc.Sequence[typing.Any], batch_size: int = 4) -> list[typing.Any]:
        """Returns a prediction for each input, in order.

        Args:
            inputs: Texts, or tuples of two where the model reads pairs.
            batch_size: How many are computed at once; those of about one length are.

        Raises:
            InputError: An input is not what the model reads.
        """
        texts = self.task.examples_of(list_inputs(inputs))
        if not texts:
            return []
        segments = self._inputs.tokenize(texts)
        self.add_unknown(*self._inputs.find_unknown_words(texts, segments))
        predictions = [self._prediction(values) for values in self._compute_segments(segments, batch_size)]
        self.add_cut(self._inputs.num_cut - self.num_cut)
        return predictions

    def compute(self, texts: collections.abc.Sequence[tuple[str, ...]], batch_size: int = 4) -> np.ndarray:
        """Returns the model's only output, float32 [N, labels], or [N] of a regression.

        Args:
            texts: N tuples of one text, or of two where the model reads pairs; at least one.
            batch_size: As for `predict`.
        """
        return self._compute_segments(self._inputs.tokenize(texts), batch_size)

    def _compute_segments(self, segments, batch_size):
        if self._stride is None:
            return self._compute_encodings(self._inputs.join(segments), batch_size)
        encodings, rows = self._inputs.split_into_windows(segments, self._stride)
        means = mean_over_windows(self._compute_encodings(encodings, batch_size), np.array(rows))
        if means.ndim == 1:
            return means
        return softmax(means) if self.thresholds is None else sigmoid(means)

    def _compute_encodings(self, encodings, batch_size):
        order = sorted(range(len(encodings)), key=lambda number: len(encodings[number]))
        groups = [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]
        inputs = [pad([encodings[number] for number in group]) for group in groups]
        if len(inputs) == 1:  # from one thread to the next takes time
            return self._compute_group(*inputs)[np.argsort(order)]
        values = list(self._workers.map(self._compute_group, inputs))
        return np.concatenate(values)[np.argsort(order)]

    def _described(self):
        return f"{self._place}, a LiteRT export,"

    def _check_labels(self, interpreter):
        shape = interpreter.get_output_details()[0]["shape_signature"]
        num_labels, num_outputs = len(self.card["labels"]), shape[1] if len(shape) > 1 else 0
        if num_labels != num_outputs:
            raise InputError(
                f"{self._path} has {num_outputs} labels, and the model card beside it {num_labels}; the files are not "
                "of one export, so export the model anew"
            )

    def _prediction(self, values):
        labels = self.card["labels"]
        if not labels:
            return {"score": float(values)}
        probabilities = dict(zip(labels, map(float, values)))
        if self.thresholds is not None:
            given = [labels[number] for number in np.flatnonzero(values >= self.thresholds)]
            return {"labels": given, "probabilities": probabilities}
        return {"label": labels[values.argmax()], "probabilities": probabilities}

    def _compute_group(self, inputs):
        try:
            interpreter = self._idle.get_nowait()
        except queue.Empty:
            interpreter = self._load()
        try:
            return run(interpreter, inputs)
        finally:
            self._idle.put(interpreter)

    def _load(self):
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            needed = f"{self._path} needs ai-edge-litert ({error}); pip install {with_extra('litert')}"
            raise InputError(needed) from error
        try:
            return Interpreter(model_content=self._content, num_threads=self._num_threads)
        except ValueError as error:
            raise InputError(f"{self._path} can't be loaded ({first_line(error)}); export the model anew") from error


def run(interpreter: typing.Any, inputs: collections.abc.Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns a LiteRT model's only output for its inputs by name, of whatever shape."""
    details = interpreter.get_input_details()
    for detail in details:
        interpreter.resize_tensor_input(detail["index"], inputs[detail["name"]].shape)
    interpreter.allocate_tensors()
    for detail in details:
        interpreter.set_tensor(detail["index"], inputs[detail["name"]])
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
