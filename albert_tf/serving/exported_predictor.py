"""An exported SavedModel as a Python object, asked as the folder is that it was exported from."""

import collections.abc
import os
import typing

import numpy as np

from albert_tf.asked_texts import TextTask, list_inputs, read_strings
from albert_tf.exports import DEFAULT, LENGTHS, rows_of
from albert_tf.loaded_model import LoadedModel
from albert_tf.serving.encoder_model import (
    check_masked,
    check_masks_are_read,
    check_pooling,
    count_cut_masked,
    describe_guess,
    groups_of_one_length,
    normalized,
    pool,
)
from albert_tf.serving.exported import EXTRA_FOLDER, ExportedModel
from albert_tf.serving.replaced_pieces import find_replaced
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK

_PIECES, _FILL_MASK, _FIND_REPLACED = "pieces", "fill_mask", "find_replaced"
# What an export gives of a model that was fine-tuned, by one of its outputs; others read long texts in windows.
_CUTS_TEXTS = ("probabilities", "score", "mean")


class ExportedPredictor(LoadedModel):
    """What `export_model.py` has made of a model; its graphs answer, and its tokenizer counts.

    ```python
    albert_tf.load("served/nsmc").predict(["정말 재밌어요"])  # [{"label": "1", "probabilities": {...}}]
    albert_tf.load("served/small").fill_mask(["배우들의 연기가 정말 [MASK]."])
    ```

    Args:
        folder: The `output_dir` of the export, of which the newest version is taken, or the folder of a version.

    Attributes:
        exported: The graphs.
        card: What model_card.json says of it.
        tokenizer: What texts are encoded with.

    Raises:
        InputError: The folder holds no export.
    """

    def __init__(self, folder: str | os.PathLike):
        self.exported = ExportedModel(folder)
        self.card = self.exported.card
        self._signatures, self.results = self.exported.signatures, self.card.get("metrics", {})
        self.task = TextTask(tuple(self.card["input_fields"]), tuple(self.card.get("input_columns", ())))
        self.tokenizer = load_tokenizer(os.path.join(self.exported.folder, EXTRA_FOLDER))
        self.max_seq_length, self.num_cut = self.card["max_seq_length"], 0
        self.take_encoder_settings(self.card.get("encoder", {}))

    @property
    def abilities(self) -> tuple[str, ...]:
        if _PIECES not in self._signatures:
            return ("predict",)
        return (*(name for name in (_FILL_MASK, _FIND_REPLACED) if name in self._signatures), "encode", "similarity")

    def predict(self, inputs: collections.abc.Sequence[typing.Any], batch_size: int = 64) -> list[typing.Any]:
        """Returns a prediction for each input, in order, with what the graph gives of it."""
        self._check("predict")
        texts = self.task.examples_of(list_inputs(inputs))
        self._count_cuts(texts)
        self.add_unknown(*find_unknown_words(self.tokenizer, texts))
        found = []
        for begin in range(0, len(texts), batch_size):
            found += self._rows(DEFAULT, [list(map(replace_halves, row)) for row in texts[begin : begin + batch_size]])
        return list(map(_prediction, found))

    def fill_mask(self, texts, top_k=5):
        self._check("fill_mask")
        texts = read_strings(texts)
        check_masked(texts, top_k, self._signatures[_FILL_MASK]["outputs"]["guesses"][1][-1])
        rows = self._rows(_FILL_MASK, [[text] for text in texts]) if texts else []
        self.add_unknown(*find_unknown_words(self.tokenizer, [tuple(text.split(MASK)) for text in texts]))
        for number, (text, row) in enumerate(zip(texts, rows)):
            check_masks_are_read(number, text.count(MASK), len(row["guesses"]), self.max_seq_length)
        if texts:
            self.add_cut(count_cut_masked(self.tokenizer, texts, self.max_seq_length))
        return [
            [
                [
                    describe_guess(self.tokenizer, self.tokenizer.vocabulary.id_of(piece), probability)
                    for piece, probability in zip(pieces[:top_k], probabilities)
                ]
                for pieces, probabilities in zip(row["guesses"], row["probabilities"])
            ]
            for row in rows
        ]

    def find_replaced(self, texts):
        self._check(_FIND_REPLACED)
        return find_replaced(self, texts, lambda some: self._rows(_FIND_REPLACED, [[text] for text in some]))

    def encode(self, texts, pooling=None):
        self._check("encode")
        normalizes = pooling is None and self.normalizes
        pooling = pooling or self.pooling
        check_pooling(pooling, self.card["config"].get("is_causal", False))
        texts = read_strings(texts)
        vectors = np.zeros([len(texts), self.card["config"]["hidden_size"]], np.float32)
        for rows in groups_of_one_length(np.array([len(text) for text in texts])):
            found = self.exported.answer(_PIECES, {"text": [texts[row] for row in rows]})
            mask = np.arange(found["embeddings"].shape[1]) < found[LENGTHS][:, None]
            vectors[rows] = pool(found["embeddings"], mask.astype(np.int32), pooling)
        inputs = [(text,) for text in texts]
        self._count_cuts(inputs)
        self.add_unknown(*find_unknown_words(self.tokenizer, inputs))
        return normalized(vectors) if normalizes else vectors

    def _rows(self, signature, texts):
        names = self._signatures[signature]["inputs"]
        return rows_of(self.exported.answer(signature, dict(zip(names, zip(*texts)))))

    def _check(self, ability):
        if ability not in self.abilities:
            raise self.cannot(ability)

    def _described(self):
        return f"{self.exported.folder}, an export,"

    def _count_cuts(self, texts):
        """Counts the inputs that are cut, as a graph can't; those of other tasks are read in windows."""
        outputs = self._signatures[DEFAULT]["outputs"]
        cuts = "doc_stride" not in self.card and any(name in outputs for name in _CUTS_TEXTS)
        if not texts or not cuts:
            return
        columns = [self.tokenizer.encode_ids(list(column)).row_lengths().numpy() for column in zip(*texts)]
        self.add_cut(int(np.count_nonzero(sum(columns) + 1 + len(columns) > self.max_seq_length)))


def _prediction(row):
    """Returns what a graph says of a text in the words of the task's own predictions."""
    if "probabilities" in row and "label" not in row:  # any number of labels
        return {"labels": row["labels"], "probabilities": dict(zip(row["labels"], row["probabilities"]))}
    if "probabilities" in row:
        return {"label": row["label"], "probabilities": dict(zip(row["labels"], row["probabilities"]))}
    if "types" in row:
        entities = zip(row["types"], row["begins"], row["ends"], row["texts"])
        return {"entities": [dict(zip(("type", "begin", "end", "text"), each)) for each in entities]}
    if "answer" in row:
        is_there = row["begin"] >= 0
        place = {name: row[name] if is_there else None for name in ("begin", "end")}
        return {"text": row["answer"], **place, **{name: row[name] for name in ("score", "null_odds") if name in row}}
    return row
