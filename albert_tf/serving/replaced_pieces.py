"""Which pieces of texts were replaced, as ELECTRA's discriminator or its export tells."""

import collections.abc
import typing

import numpy as np

from albert_tf.asked_texts import read_strings
from albert_tf.errors import InputError
from albert_tf.loaded_model import LoadedModel
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK

# Texts that are asked for in one call.
_TEXTS_AT_ONCE = 64

# Of some texts, returns the "pieces", "begins", "ends" and "probabilities" of each, without [CLS] and [SEP].
Ask = collections.abc.Callable[[list[str]], list[dict[str, list]]]


def find_replaced(
    model: LoadedModel, texts: collections.abc.Sequence[str], ask: Ask
) -> list[list[dict[str, typing.Any]]]:
    """Returns what is known of each piece of each text; values and errors are those of `PretrainedModel`.

    The model's tokenizer reads the texts; it counts those that are cut, or hold unknown words.
    """
    texts = read_strings(texts)
    for number, text in enumerate(texts):
        if MASK in text:
            raise InputError(
                f"input {number} has a {MASK}, which a model that finds replaced pieces has never seen; write a word "
                "in its place"
            )
    if not texts:
        return []
    model.add_unknown(*find_unknown_words(model.tokenizer, [(text,) for text in texts]))
    room = model.max_seq_length - model.tokenizer.vocabulary.num_special(1)
    model.add_cut(int(np.count_nonzero(model.tokenizer.encode_ids(texts).row_lengths().numpy() > room)))
    found = []
    for begin in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[begin : begin + _TEXTS_AT_ONCE]
        found += map(_describe_pieces, some, ask(some))
    return found


def _describe_pieces(text, row):
    columns = zip(*(row[name] for name in ("pieces", "begins", "ends", "probabilities")))
    return [
        {"piece": piece, "text": text[begin:end], "begin": begin, "end": end, "probability": probability}
        for piece, begin, end, probability in columns
    ]
