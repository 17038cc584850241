"""The model behind the page: an export, or any folder that holds a trained model; all are asked the same way."""

import collections.abc
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.asked_texts import OPTIONS
from albert_tf.errors import InputError
from albert_tf.exports import DEFAULT, rows_of
from albert_tf.finetuning import MultipleChoice
from albert_tf.finetuning.choice_files import LETTERS
from albert_tf.litert import LiteRTExport, find_litert
from albert_tf.litert.inputs import kept_lengths
from albert_tf.serving.exported import EXTRA_FOLDER, ExportedModel, newest_version
from albert_tf.serving.loading import TrainedModel, load_trained
from albert_tf.serving.signatures import make_signatures
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, SEP

FILL_MASK = "fill_mask"


class Attention(typing.NamedTuple):
    """What a model looks at when it reads a text, or two.

    Attributes:
        pieces: The S pieces of the texts, special tokens among them.
        probabilities: float32 [layers, heads, S, S]: how much each piece, a row, looks at each other one.
    """

    pieces: list[str]
    probabilities: np.ndarray


class PlaygroundModel:
    """A model to try.

    Args:
        folder: Of an export, a SavedModel or LiteRT's, or of what a command that trains has written, or a published
            model.

    Attributes:
        task: What it was trained for, the name of a `FinetuningTask`, or "pretraining".
        signatures: The inputs of each of its signatures.
        num_choices: How many options it chooses from, a line of its last input each; 0 where it doesn't choose.

    Raises:
        InputError: The folder holds no model, or one that can't be asked in this way.
    """

    def __init__(self, folder: str | os.PathLike):
        self._trained, self.num_choices = None, 0
        export, tokenizer_folder = _find_export(os.fspath(folder))
        if export is not None:
            self.task = export.card["task"]
            self.signatures = {name: about["inputs"] for name, about in export.signatures.items()}
            self._tokenizer = load_tokenizer(tokenizer_folder)
            self._answer = export.answer
            return
        self._trained = load_trained(folder, "--model_dir")
        task = self._trained.task
        self.task = type(task).__name__ if task is not None else "pretraining"
        self._tokenizer = self._trained.tokenizer
        if isinstance(task, MultipleChoice):
            self.num_choices = task.settings()["num_choices"]
            self.signatures, self._answer = {DEFAULT: list(task.input_fields)}, _choosing(self._trained)
        else:
            self.signatures, self._answer = _traced(self._trained)

    @property
    def inputs(self) -> list[str]:
        """What is asked: the names of the texts."""
        return self.signatures[DEFAULT]

    @property
    def guesses_masks(self) -> bool:
        """Whether it guesses what is missing, as pre-trained models do."""
        return FILL_MASK in self.signatures

    @property
    def shows_attention(self) -> bool:
        """Whether it can tell what it looks at: an export can't, nor a model that reads a text once for each option."""
        return self._trained is not None and not self.num_choices

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
        columns = {name: [replace_halves(text)] for name, text in zip(self.signatures[signature], texts, strict=True)}
        return rows_of(self._answer(signature, columns))[0]

    def pieces(self, text: str) -> list[tuple[str, int, int]]:
        """Returns the pieces of a text, and from which character to before which each goes."""
        text = replace_halves(text)
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

    def attention(self, *texts: str, max_pieces: int) -> Attention:
        """Returns what the model looks at when it reads texts, of which the first pieces are taken.

        Args:
            *texts: One text, or two where it reads pairs.
            max_pieces: So many are taken at most, of two texts fewer of the longer one first.
        """
        parts = [[piece for piece, *_ in self.pieces(text)] for text in texts]
        lengths = kept_lengths([len(part) for part in parts], max_pieces - 1 - len(parts))
        pieces, segments = [CLS], [0]
        for number, (part, length) in enumerate(zip(parts, lengths)):
            pieces += [*part[:length], SEP]
            segments += [number] * (length + 1)
        inputs = {
            "input_ids": tf.constant([[self._tokenizer.vocabulary.id_of(piece) for piece in pieces]]),
            "segment_ids": tf.constant([segments]),
        }
        # The model itself is asked, and not its encoder: some change what the encoder reads.
        found = self._trained.model(inputs, output_attentions=True)["attentions"]
        return Attention(pieces, np.stack([layer[0].numpy() for layer in found]))


def _find_export(folder):
    """Returns the export in a folder, and where its tokenizer lies; None twice where there is none."""
    litert = find_litert(folder)
    if litert is not None:
        return LiteRTExport(litert), litert
    try:
        version = newest_version(folder)
    except InputError:
        return None, None
    return ExportedModel(version), os.path.join(version, EXTRA_FOLDER)


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


def _choosing(trained: TrainedModel) -> collections.abc.Callable[..., dict[str, np.ndarray]]:
    """Returns a function like `ExportedModel.answer`: the options of a question, and how probable each is."""

    def answer(_, columns):
        options = [text.splitlines() for text in columns[OPTIONS]]
        questions = trained.task.examples_of(list(zip(columns["passage"], columns["question"], options)))
        features = trained.task.encode(questions, trained.tokenizer, trained.max_seq_length)
        batch = {name: tf.constant(features[name]) for name in trained.task.batch_spec(None) if name in features}
        outputs = trained.task.outputs(batch, trained.model)
        labels = [[f"{letter}. {option}".encode() for letter, option in zip(LETTERS, each)] for each in options]
        return {"labels": np.array(labels, object), "probabilities": outputs["probabilities"].numpy()}

    return answer
