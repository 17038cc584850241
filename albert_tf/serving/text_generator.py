"""Texts in, continued texts out."""

import collections.abc
import hashlib
import itertools
import re
import typing

import numpy as np

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.decoder import Decoder, GenerationOptions, Prompts, rounded_length
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, SEP

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


# Why a text ended.
DOCUMENT, MAX_PIECES, POSITIONS = "document", "max_pieces", "positions"


class TextGenerator:
    """Continues texts as documents of the pre-training data would go on.

    Args:
        model: Predicts the next token of such documents.
        tokenizer: The one that the model was pre-trained with.
    """

    def __init__(self, model: AlbertForPreTraining, tokenizer: Tokenizer):
        self._tokenizer, self._num_positions = tokenizer, model.config.longest_sequence
        tokenizer.vocabulary.require(CLS, SEP)
        self._begin_id, self._end_id = (tokenizer.vocabulary.id_of(token) for token in (CLS, SEP))
        self._decoder = Decoder(model, may_come(tokenizer), tokenizer.starts_word, self._end_id)

    def generate(self, texts: list[str], options: GenerationOptions, batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns the continuation of each text: "text" with it, "continuation", "num_pieces" and "stopped_by".

        Args:
            texts: Strings without half characters.
            options: Of the continuation.
            batch_size: Most texts that are computed at once.

        Raises:
            InputError: A text leaves no room, or has a "[MASK]".
        """
        _check_no_mask(texts)
        prompts = encode_prompts(self._tokenizer, texts)
        self._check_room(prompts)
        answers = [{} for _ in texts]
        order = np.argsort([len(ids) for ids in prompts], kind="stable")  # so that little is padding
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            found = self._decode([texts[row] for row in rows], [prompts[row] for row in rows], options, batch_size)
            for row, new_ids in zip(rows, found):
                answers[row] = self._answer(texts[row], prompts[row], new_ids, options)
        return answers

    def check_room(self, texts: list[str]) -> None:
        """Checks that there are positions for continuations of texts.

        Raises:
            InputError: There are none, or a text has a "[MASK]"; the message begins with "input" and its number.
        """
        _check_no_mask(texts)
        self._check_room(encode_prompts(self._tokenizer, texts))

    def _check_room(self, prompts):
        for number, ids in enumerate(prompts):
            if len(ids) >= self._num_positions:
                raise InputError(
                    f"input {number} has {len(ids) - 1} pieces, which with [CLS] leave no room in the model's "
                    f"{self._num_positions} positions for what comes after them; shorten it"
                )

    def _decode(self, texts, prompts, options, batch_size):
        num_rows = min(batch_size, 1 << (len(texts) - 1).bit_length())  # few numbers of rows are compiled
        lengths = np.ones(num_rows, np.int32)
        lengths[: len(texts)] = [len(ids) for ids in prompts]
        limits = np.zeros(num_rows, np.int32)
        limits[: len(texts)] = np.minimum(options.max_pieces, self._num_positions - lengths[: len(texts)])
        length = rounded_length(int((lengths + limits).max()), self._num_positions)
        ids = np.full([num_rows, length], self._begin_id, np.int32)  # which comes nowhere else
        draws = np.zeros([num_rows, length], np.float32)
        starts_word = np.zeros(num_rows, bool)
        for row, (text, pieces) in enumerate(zip(texts, prompts)):
            ids[row, : len(pieces)] = pieces
            draws[row] = _draws(text, options.seed, length)
            # Of a text that the tokenizer removes there is no word to go on with.
            starts_word[row] = ends_in_space(text) or len(pieces) == 1
        ids, counts = self._decoder(Prompts(ids, lengths, limits, starts_word, draws), options)
        return [ids[row, lengths[row] : counts[row]] for row in range(len(texts))]

    def _answer(self, text, prompt_ids, new_ids, options):
        stopped_by = MAX_PIECES if len(new_ids) == options.max_pieces else POSITIONS
        if len(new_ids) and new_ids[-1] == self._end_id:
            stopped_by, new_ids = DOCUMENT, new_ids[:-1]
        continuation = continuation_text(self._tokenizer, text, prompt_ids, new_ids)
        return {
            "text": text + continuation,
            "continuation": continuation,
            "num_pieces": len(new_ids),
            "stopped_by": stopped_by,
        }


def _check_no_mask(texts):
    for number, text in enumerate(texts):
        if MASK in text:
            raise InputError(
                f"input {number} contains {MASK}, but texts are only continued at their ends; take it out, or use "
                "fill_mask"
            )


def count_stopped(answers: collections.abc.Iterable[dict[str, typing.Any]], by: str) -> int:
    """Returns how many texts ended for a reason; an error in place of an answer has none."""
    return sum(answer.get("stopped_by") == by for answer in answers)


def _draws(text, seed, count):
    """Returns uniform numbers for a text, float32 [count]; those of a larger count begin with the same."""
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, np.uint32)]).random(count, np.float32)
