"""Encodes texts to continue, and decodes their continuations."""

import itertools
import re

import numpy as np

from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import CLS, SEP

# A word that stands behind a text whose end is a space, so that the tokenizer sees the space.
_PROBE = "가"

# The continuation scheme doesn't tell where a mark had spaces around it. Closing marks follow on what is before them,
# what comes after an opening one follows on it, and the same mark follows on itself (^^, ~~).
_BEFORE_CLOSING = re.compile(r" (?=[.,!?…:;~%)\]}〉》」』”’])")
_AFTER_OPENING = re.compile(r"(?<=[(\[{〈《「『“‘]) ")
_BETWEEN_EQUAL = re.compile(r"(?<=([^\w\s])) (?=\1)")

# In the end-of-word scheme the last word of a sentence has no mark, and so no space before the next sentence.
_SENTENCE_BORDER = re.compile(r"(?<=[.!?…])(?=[가-힣])")


def encode_prompts(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    """Returns the tokens of texts to continue, int32 each: [CLS], as documents begin in training, and the text.

    There is no [SEP], with which documents end. If the text breaks off in a word, the next token may continue it; if a
    space ends the text, the last word is whole.
    """
    cls_id = tokenizer.vocabulary.id_of(CLS)
    if getattr(tokenizer, "wordpiece_scheme", None) == "end_of_word":
        # The last piece of a word says whether a space follows, which the tokenizer sees only before a further word.
        words = tokenizer.encode_words([text + _PROBE * ends_in_space(text) for text in texts]).to_list()
        known = (row[: len(row) - ends_in_space(text)] for text, row in zip(texts, words))
        rows = [[*itertools.chain(*row)] for row in known]
    else:
        rows = tokenizer.encode_ids(texts).to_list()
    return [np.array([cls_id, *row], np.int32) for row in rows]


def ends_in_space(text: str) -> bool:
    """Whether the next word of a text is a new one: it ends in a space, or is empty."""
    return not text or text[-1].isspace()


def may_come(tokenizer: Tokenizer) -> np.ndarray:
    """Returns the tokens that may come after a text, bool [V]: those that stand for text, and [SEP], which ends it."""
    allowed = np.zeros(len(tokenizer.vocabulary), bool)
    allowed[tokenizer.vocabulary.real_piece_ids] = True
    allowed[tokenizer.vocabulary.id_of(SEP)] = True
    return allowed


def continuation_text(tokenizer: Tokenizer, text: str, prompt_ids: np.ndarray, new_ids: np.ndarray) -> str:
    """Returns the text to append, so that it reads on: with a space where the tokens say or need one."""
    before = tokenizer.decode(prompt_ids)
    found = tokenizer.decode([*prompt_ids, *new_ids])[len(before) :]
    # What is done to marks depends on the character before.
    last = text[-1:]
    scheme = getattr(tokenizer, "wordpiece_scheme", None)
    if scheme == "continuation" and tokenizer.split_punctuation:
        for pattern in (_BEFORE_CLOSING, _AFTER_OPENING, _BETWEEN_EQUAL):
            found = pattern.sub("", last + found)[len(last) :]
    elif scheme == "end_of_word":
        found = _SENTENCE_BORDER.sub(" ", last + found)[len(last) :]
    return found.lstrip(" ") if ends_in_space(text) else found
