"""A LiteRT model with its tokenizer: raw strings in, arrays or predictions out, without TensorFlow."""

import collections.abc
import concurrent.futures
import os
import queue
import typing

import numpy as np

from albert_tf.asking.answers import ValueAnswer
from albert_tf.asking.backend import Export, Predicted
from albert_tf.asking.cards import CARD_FILE, FAST_TOKENIZER_FILE, batches_at_once, check_files, threads_per_batch
from albert_tf.errors import InputError, first_line, with_extra
from albert_tf.files import read_bytes
from albert_tf.json_types import check_types
from albert_tf.litert.inputs import FastInputs, pad
from albert_tf.text_windows import mean_over_windows, sigmoid, softmax

_TEXTS_AT_ONCE = 4


class LiteRTBackend(Export):
    """A LiteRT export of a classifier or a regression.

    Args:
        folder: Of a version.
        card: As `Format.read_card` returns it.
        path: Of the model in the folder.

    Raises:
        InputError: It can't be used, or ai-edge-litert is missing.
    """

    def __init__(self, folder: str, card: dict[str, typing.Any], path: str):
        super().__init__(folder, card)
        tokenizer_file = os.path.join(folder, FAST_TOKENIZER_FILE)
        self._check_card(tokenizer_file)
        self.place, self._path, self._stride = f"{folder}, a LiteRT export,", path, card.get("doc_stride")
        # Kept, for by the time that another interpreter is needed the file may be one of another model.
        self._content = read_bytes(path, "the model")
        check_files(card, folder)
        options = self.max_seq_length, card["special_tokens_in_text"], card["truncation"]
        self._inputs = FastInputs(tokenizer_file, *options)
        self._num_threads = threads_per_batch(card)
        # An interpreter computes for one at a time; there come to be as many as are asked at once.
        self._idle = queue.LifoQueue()
        interpreter = self._load()
        self._check_labels(interpreter)
        self._idle.put(interpreter)
        self._workers = concurrent.futures.ThreadPoolExecutor(batches_at_once(card), "litert")

    @property
    def signatures(self):
        """Those that the SavedModel has, which read texts; in the card stands that of the file, which reads ids."""
        outputs = self.answer.outputs()
        return {name: {"inputs": self.card["input_fields"], "outputs": outputs[name]} for name in outputs}

    def compute(self, signature, inputs):
        columns = [
            [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in inputs[name]]
            for name in self.card["input_fields"]
        ]
        values = self._values(self._inputs.tokenize(list(zip(*columns))), _TEXTS_AT_ONCE)
        return self.answer.columns(signature, values)

    def predict(self, examples, batch_size):
        segments, num_cut = self._inputs.tokenize(examples), self._inputs.num_cut
        unknown = self._inputs.find_unknown_words(examples, segments)
        predictions = list(map(self.answer.of_values, self._values(segments, batch_size or _TEXTS_AT_ONCE)))
        return Predicted(predictions, self._inputs.num_cut - num_cut, unknown)

    def _values(self, segments, batch_size):
        """Returns the model's only output, float32 [N, labels], or [N] of a regression."""
        if self._stride is None:
            return self._compute_encodings(self._inputs.join(segments), batch_size)
        encodings, rows = self._inputs.split_into_windows(segments, self._stride)
        means = mean_over_windows(self._compute_encodings(encodings, batch_size), np.array(rows))
        if means.ndim == 1:
            return means
        return sigmoid(means) if self.answer.needs_thresholds else softmax(means)

    def _compute_encodings(self, encodings, batch_size):
        order = sorted(range(len(encodings)), key=lambda number: len(encodings[number]))
        groups = [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]
        inputs = [pad([encodings[number] for number in group]) for group in groups]
        if len(inputs) == 1:  # from one thread to the next takes time
            return self._compute_group(*inputs)[np.argsort(order)]
        values = list(self._workers.map(self._compute_group, inputs))
        return np.concatenate(values)[np.argsort(order)]

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

    def _check_card(self, tokenizer_file):
        """Checks that it is of a task whose answers need no TensorFlow, and says how texts are encoded."""
        if not isinstance(self.answer, ValueAnswer):
            raise InputError(
                f"{self.folder} holds a model for {self.card['task']}, whose answers need TensorFlow; load the folder "
                "that it was exported from, or what export_model.py --format=saved_model writes of that one"
            )
        if not os.path.exists(tokenizer_file):
            raise InputError(
                f"{self.folder} has no {FAST_TOKENIZER_FILE}: its tokenizer is one that the tokenizers library can't "
                "express; export it with export_model.py --format=saved_model"
            )
        check_types(self.card, {}, os.path.join(self.folder, CARD_FILE), ("special_tokens_in_text", "truncation"))

    def _check_labels(self, interpreter):
        shape = interpreter.get_output_details()[0]["shape_signature"]
        num_labels, num_outputs = len(self.card["labels"]), shape[1] if len(shape) > 1 else 0
        if bool(num_outputs) != ("probabilities" in self.answer.needs):
            raise InputError(
                f'{self.folder}: the card\'s "answer" is {self.answer.name}, which it does not give; export it anew'
            )
        if num_labels != num_outputs:
            raise InputError(
                f"{self._path} has {num_outputs} labels, and the model card beside it {num_labels}; the files are not "
                "of one export, so export the model anew"
            )


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
