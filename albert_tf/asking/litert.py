"""A LiteRT model with its tokenizer: raw strings in, arrays or predictions out, without TensorFlow."""

import collections.abc
import concurrent.futures
import os
import queue
import re
import typing

import numpy as np

from albert_tf.asking.answers import ValueAnswer
from albert_tf.asking.backend import Export, Predicted
from albert_tf.asking.cards import CARD_FILE, FAST_TOKENIZER_FILE, batches_at_once, check_files, threads_per_batch
from albert_tf.base.errors import InputError, first_line, with_extra
from albert_tf.base.files import read_bytes, replace_halves
from albert_tf.base.settings import check_types
from albert_tf.base.texts import (
    MOST_LOOKED_AT,
    ODD_TO_SECOND,
    check_truncation,
    kept_lengths,
    lacking_characters,
    mean_over_windows,
    sigmoid,
    softmax,
)

# Texts to what a model reads, by the `tokenizers` library and NumPy: the numbers of `tokenization.model_inputs`.

# A longer word is [UNK], as in the graph; the `tokenizers` library counts characters, and takes so many of them.
_MAX_BYTES_PER_WORD = 600
# What is shown of words that the vocabulary lacks.
_MOST_SHOWN, _MOST_CHARACTERS = 3, 30
# A word without a blank may be that long if it has more characters: NFKC makes up to 33 bytes of one.
_MANY_CHARACTERS = _MAX_BYTES_PER_WORD // 33


class FastInputs:
    """Encodes texts or pairs as `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`, the longer text cut off.

    The file is what `tokenization.huggingface` made of a tokenizer. Raises InputError if `truncation`, which says which
    text of a pair keeps the odd piece, is none of `TRUNCATIONS`.
    """

    def __init__(
        self,
        tokenizer_file: str,
        max_seq_length: int,
        special_tokens_in_text: bool = False,
        truncation: str = ODD_TO_SECOND,
    ):
        import tokenizers

        self._tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
        self._tokenizer.encode_special_tokens = not special_tokens_in_text  # the file can't say so
        added = self._tokenizer.get_added_tokens_decoder().values() if special_tokens_in_text else ()
        self._special_tokens = re.compile(f"({'|'.join(re.escape(token.content) for token in added) or '(?!)'})")
        model = self._tokenizer.model
        is_wordpiece = isinstance(model, tokenizers.models.WordPiece)
        # A character has up to four bytes, so that a word of fewer characters is short in either way.
        self._limits_words = is_wordpiece and 4 * model.max_input_chars_per_word > _MAX_BYTES_PER_WORD
        self._unknown_ids = {self._tokenizer.token_to_id(name) for name in ("[UNK]", "<unk>")} - {None}
        self.max_seq_length, self.num_cut = max_seq_length, 0
        self._truncation = check_truncation(truncation)

    def tokenize(self, texts: list[tuple[str, ...]]) -> list[tuple]:
        """Returns a `tokenizers.Encoding` of each text of each input, uncut and without special tokens."""
        columns = [
            self._tokenizer.encode_batch([self._without_long_words(text) for text in column], add_special_tokens=False)
            for column in zip(*texts)
        ]
        return list(zip(*columns))

    def join(self, segments: list[tuple]) -> list:
        """Returns a `tokenizers.Encoding` of each input; those too long are cut in place, and counted in `num_cut`."""
        return [self._join(*each) for each in segments]

    def split_into_windows(self, segments: list[tuple], stride: int) -> tuple[list, list[int]]:
        """Returns a `tokenizers.Encoding` of each window, and which input it is of; inputs have one text, cut in place.

        The stride is from the beginning of one window to the next's.
        """
        room = self.max_seq_length - 2
        overlap = room - min(stride, max(1, room // 2))
        encodings, rows = [], []
        for row, (whole,) in enumerate(segments):
            whole.truncate(room, stride=overlap)
            for part in (whole, *whole.overflowing):
                encodings.append(self._tokenizer.post_process(part))
                rows.append(row)
        return encodings, rows

    def find_unknown_words(
        self, texts: list[tuple[str, ...]], segments: list[tuple]
    ) -> tuple[int, list[str], list[str]]:
        """Finds them as `tokenization.unknown_words` does; `segments` are as of `tokenize`, uncut."""
        found = [words for words in map(self._unknown_words, texts, segments) if words]
        words = [word for words in found[:MOST_LOOKED_AT] for word in words]
        shown = [word if len(word) <= _MOST_CHARACTERS else f"{word[:_MOST_CHARACTERS]}..." for word in words]
        characters = lacking_characters(words, self._are_unknown)
        return len(found), list(dict.fromkeys(shown))[:_MOST_SHOWN], characters

    def _unknown_words(self, texts, encodings):
        """Returns the words of an input's texts that the vocabulary can't spell."""
        return [
            read[slice(*place)]
            for text, encoding in zip(texts, encodings)
            if not self._unknown_ids.isdisjoint(encoding.ids)
            for read in [self._without_long_words(text)]
            for piece_id, place in zip(encoding.ids, encoding.offsets)
            if piece_id in self._unknown_ids
        ]

    def _are_unknown(self, characters):
        encodings = self._tokenizer.encode_batch(characters, add_special_tokens=False)
        return [not self._unknown_ids.isdisjoint(encoding.ids) for encoding in encodings]

    def _without_long_words(self, text):
        """Returns a text with a word that the library takes to be too long in place of each that the graph does."""
        text = replace_halves(text)
        if not self._limits_words or max(map(len, text.split(" "))) <= _MANY_CHARACTERS:
            return text
        # Every second part is a special token, which must stay as it is.
        parts = self._special_tokens.split(text)
        parts[::2] = map(self._shortened, parts[::2])
        return "".join(parts)

    def _shortened(self, text):
        normal = self._tokenizer.normalizer.normalize_str(text)
        long = [
            place
            for word, place in self._tokenizer.pre_tokenizer.pre_tokenize_str(normal)
            if len(word.encode()) > _MAX_BYTES_PER_WORD
        ]
        for begin, end in reversed(long):
            normal = f"{normal[:begin]} {'x' * (_MAX_BYTES_PER_WORD + 1)} {normal[end:]}"
        return normal if long else text

    def _join(self, *segments):
        room = self.max_seq_length - self._tokenizer.num_special_tokens_to_add(len(segments) > 1)
        lengths = kept_lengths([len(segment) for segment in segments], room, self._truncation)
        self.num_cut += sum(map(len, segments)) > room
        for segment, length in zip(segments, lengths):
            segment.truncate(length)
        return self._tokenizer.post_process(*segments)


def pad(encodings: list) -> dict[str, np.ndarray]:
    """Returns int32 [N, S] `input_ids`, `input_mask` and `segment_ids` of N encodings; S is the longest's length."""
    shape = len(encodings), max(map(len, encodings))
    inputs = {name: np.zeros(shape, np.int32) for name in ("input_ids", "input_mask", "segment_ids")}
    for row, encoding in enumerate(encodings):
        length = len(encoding)
        inputs["input_ids"][row, :length] = encoding.ids
        inputs["input_mask"][row, :length] = 1
        inputs["segment_ids"][row, :length] = encoding.type_ids
    return inputs  # what is behind a text is masked, whatever its id


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
                "that it was exported from, or a SavedModel of that"
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
                f'{self.folder}: the card\'s "answer", {self.answer.name}, is not what it gives; export it anew'
            )
        if num_labels != num_outputs:
            raise InputError(
                f"{self._path} has {num_outputs} labels, and the model card beside it {num_labels}; export it anew"
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
