"""The model behind the page: an export, or any folder that `albert_tf.load` takes; all are asked the same way."""

import os
import typing

import albert_tf
from albert_tf.errors import InputError
from albert_tf.exports import DEFAULT, rows_of
from albert_tf.litert import LiteRTPredictor, find_litert
from albert_tf.serving.attention import Attention, read_attention
from albert_tf.serving.exported import EXTRA_FOLDER, ExportedModel, newest_version
from albert_tf.serving.predictor import Predictor
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.vocabulary import MASK

PRETRAINING = "pretraining"

_NUM_GUESSES = 10


class PlaygroundModel:
    """A model to try.

    Args:
        folder: Of a model, fine-tuned or not, or of an export.

    Attributes:
        task: The name of the `FinetuningTask` that it was trained for, or `PRETRAINING`.
        inputs: What is asked: the names of the texts.

    Raises:
        InputError: The folder holds no model.
    """

    def __init__(self, folder: str | os.PathLike):
        self._model = _load(folder)
        if isinstance(self._model, PretrainedModel):
            self.task, self.inputs = PRETRAINING, ["text"]
        elif isinstance(self._model, Predictor):
            self.task, self.inputs = type(self._model.task).__name__, [*self._model.task.input_fields]
        else:
            self.task, self.inputs = self._model.card["task"], self._model.card["input_fields"]
        self._tokenizer = self._find_tokenizer(folder)

    @property
    def shows_attention(self) -> bool:
        """Whether it can tell what it looks at: an export can't, nor a model that reads a text once for each option."""
        return isinstance(self._model, Predictor | PretrainedModel) and self.task != "MultipleChoice"

    @property
    def num_layers_and_heads(self) -> tuple[int, int]:
        """How many layers can be looked into, and how many heads each has."""
        config = self._model.model.config
        return config.num_hidden_layers * config.inner_group_num, config.num_attention_heads

    def ask(self, texts: list[str]) -> typing.Any:
        """Returns what `predict` says of one input; of a pre-trained model the guesses, a {piece: probability} a mask.

        Raises:
            InputError: It is not what the model reads.
        """
        if isinstance(self._model, ExportedModel):
            signature = "fill_mask" if self.task == PRETRAINING else DEFAULT
            found = self._model.answer(signature, {name: [text] for name, text in zip(self.inputs, texts)})
            return _prediction_of(rows_of(found)[0])
        if isinstance(self._model, PretrainedModel):
            (masks,) = self._model.fill_mask(texts, top_k=_NUM_GUESSES)
            return [{guess["piece"]: guess["probability"] for guess in mask} for mask in masks]
        if self.task == "MultipleChoice":
            options = texts[-1].splitlines()
            (found,) = self._model.predict([(*texts[:-1], options)])
            named = zip(found["probabilities"].items(), options)
            return {"probabilities": {f"{letter}. {option}": value for (letter, value), option in named}}
        return self._model.predict([tuple(texts)])[0]

    def pieces(self, text: str) -> list[tuple[str, int, int]]:
        """Returns the pieces of a text, and from which character to before which each goes."""
        pieces, start = [], 0
        for part in text.split(MASK) if self.task == PRETRAINING else [text]:
            if start:
                pieces.append((MASK, start - len(MASK), start))
            encoding = self._tokenizer.encode(part)
            spans = zip(encoding.tokens[1:-1], encoding.offsets[1:-1])
            pieces += [(piece, start + begin, start + end) for piece, (begin, end) in spans]
            start += len(part) + len(MASK)
        return pieces

    def attention(self, texts: list[str], max_pieces: int) -> Attention:
        """Returns what the model looks at when it reads texts; see `read_attention`."""
        return read_attention(self._model, *texts, max_pieces=max_pieces)

    def _find_tokenizer(self, folder):
        if isinstance(self._model, ExportedModel):
            return load_tokenizer(os.path.join(self._model.folder, EXTRA_FOLDER))
        if isinstance(self._model, LiteRTPredictor):
            return load_tokenizer(find_litert(folder))
        return self._model.tokenizer


def _load(folder):
    try:
        version = newest_version(os.fspath(folder))
    except InputError:  # no SavedModel
        return albert_tf.load(folder)
    return ExportedModel(version)


def _prediction_of(row):
    """Returns a row of an export as `Predictor.predict` and `PretrainedModel.fill_mask` would say it."""
    if "guesses" in row:
        return [dict(zip(*mask)) for mask in zip(row["guesses"], row["probabilities"])]
    if "labels" in row:
        return {"probabilities": dict(zip(row["labels"], row["probabilities"]))}
    if "types" in row:
        places = zip(row["types"], row["begins"], row["ends"])
        return {"entities": [{"type": kind, "begin": begin, "end": end} for kind, begin, end in places]}
    return {**row, "begin": None} if row.get("begin") == -1 else row
