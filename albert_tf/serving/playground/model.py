"""The model behind the page: an export, or any folder that holds a trained model; both are asked the same way."""

import collections.abc
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.exports import DEFAULT, rows_of
from albert_tf.serving.exported import EXTRA_FOLDER, ExportedModel, newest_version
from albert_tf.serving.loading import TrainedModel, load_trained
from albert_tf.serving.signatures import make_signatures
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, SEP

FILL_MASK = "fill_mask"


class Attention(typing.NamedTuple):
    """What a model looks at when it reads a text.

    Attributes:
        pieces: The S pieces of the text, special tokens among them.
        probabilities: float32 [layers, heads, S, S]: how much each piece, a row, looks at each other one.
    """

    pieces: list[str]
    probabilities: np.ndarray


class PlaygroundModel:
    """A model to try.

    Args:
        folder: Of an export, or of what a command that trains has written, or a published model.

    Attributes:
        task: What it was trained for, the name of a `FinetuningTask`, or "pretraining".
        signatures: The inputs of each of its signatures.

    Raises:
        InputError: The folder holds no model, or one that can't be asked about lone texts.
    """

    def __init__(self, folder: str | os.PathLike):
        self._trained = None
        if _is_export(os.fspath(folder)):
            export = ExportedModel(folder)
            self.task = export.card["task"]
            self.signatures = {name: about["inputs"] for name, about in export.signatures.items()}
            self._tokenizer = load_tokenizer(os.path.join(export.folder, EXTRA_FOLDER))
            self._answer = export.answer
        else:
            self._trained = load_trained(folder, "--model_dir")
            self.task = type(self._trained.task).__name__ if self._trained.task is not None else "pretraining"
            self._tokenizer = self._trained.tokenizer
            self.signatures, self._answer = _traced(self._trained)

    @property
    def inputs(self) -> list[str]:
        """What is asked: the names of one or two texts."""
        return self.signatures[DEFAULT]

    @property
    def guesses_masks(self) -> bool:
        """Whether it guesses what is missing, as pre-trained models do."""
        return FILL_MASK in self.signatures

    @property
    def shows_attention(self) -> bool:
        """Whether it can tell what it looks at; an export has no way to ask for it."""
        return self._trained is not None

    @property
    def num_layers(self) -> int:
        """How many layers can be looked into."""
        return self._trained.config.num_hidden_layers * self._trained.config.inner_group_num

    @property
    def num_heads(self) -> int:
        """How many heads each layer has."""
        return self._trained.config.num_attention_heads

    def ask(self, *texts: str, signature: str = DEFAULT) -> dict[str, typing.Any]:
        """Returns what a signature says of one input, JSON values by name."""
        columns = {name: [_characters(text)] for name, text in zip(self.signatures[signature], texts, strict=True)}
        return rows_of(self._answer(signature, columns))[0]

    def pieces(self, text: str) -> list[tuple[str, int, int]]:
        """Returns the pieces of a text, and from which character to before which each goes."""
        text = _characters(text)
        parts = text.split(MASK) if self.guesses_masks else [text]
        pieces, start = [], 0
        for part in parts:
            if start:
                pieces.append((MASK, start - len(MASK), start))
            encoding = self._tokenizer.encode(part)
            spans = zip(encoding.tokens[1:-1], encoding.offsets[1:-1])
            pieces += [(piece, start + begin, start + end) for piece, (begin, end) in spans]
            start += len(part) + len(MASK)
        return pieces

    def attention(self, text: str, max_pieces: int) -> Attention:
        """Returns what the model looks at when it reads a text, of which the first pieces are taken."""
        pieces = [CLS, *(piece for piece, *_ in self.pieces(text)[: max_pieces - 2]), SEP]
        ids = tf.constant([[self._tokenizer.vocabulary.id_of(piece) for piece in pieces]])
        found = self._trained.model.encoder({"input_ids": ids}, output_attentions=True)["attentions"]
        return Attention(pieces, np.stack([layer[0].numpy() for layer in found]))


def _is_export(folder):
    try:
        newest_version(folder)
    except InputError:
        return False
    return True


def _traced(
    trained: TrainedModel,
) -> tuple[dict[str, list[str]], collections.abc.Callable[..., dict[str, np.ndarray]]]:
    """Returns the inputs of the signatures that an export would have, and a function like `ExportedModel.answer`."""
    functions = make_signatures(trained).trace()
    inputs = {
        name: [spec.name for spec in function.structured_input_signature[0]] for name, function in functions.items()
    }

    def answer(signature, columns):
        outputs = functions[signature](*(tf.constant(columns[name], tf.string) for name in inputs[signature]))
        return {name: value.numpy() for name, value in outputs.items()}

    return inputs, answer


def _characters(text):
    """Returns a text in which every half of a surrogate pair, which is no character, is replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
