"""Giving a vocabulary pieces, first in its [unused] slots, so that the ids of all others stay."""

import re

from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import UNUSED, Vocabulary, is_reserved
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, MAX_BYTES_PER_PIECE, fits, piece_text
from albert_tf.tokenization.words import END_OF_WORD

_ANY_LETTER = "가"


def assign_unused(tokenizer: KoreanWordPieceTokenizer, pieces: list[str]) -> KoreanWordPieceTokenizer:
    """Returns a tokenizer with pieces in the place of its first [unused] slots, and the rest behind all others.

    It has another identity, and a model takes it by `init_checkpoint` of pre-training. Pieces are spelled as in a
    vocabulary file, with ## or _ where the scheme asks for it. Raises InputError for none, or what can't be a piece.
    """
    slots = [index for index, piece in enumerate(tokenizer.vocabulary.pieces) if UNUSED.fullmatch(piece)]
    if not pieces:
        raise InputError("there is no piece to add; name at least one")
    for number, piece in enumerate(pieces):
        reason = _reason_against(tokenizer, piece) or ("it is named twice" if piece in pieces[:number] else None)
        if reason:
            raise InputError(f'"{piece}" can\'t be a piece of {tokenizer.vocabulary.source}: {reason}; leave it out')
    assigned = [*tokenizer.vocabulary.pieces, *pieces[len(slots) :]]
    for slot, piece in zip(slots, pieces):
        assigned[slot] = piece
    settings = {name: value for name, value in tokenizer.to_dict().items() if name != "vocab_sha256"}
    return KoreanWordPieceTokenizer(Vocabulary(assigned, tokenizer.vocabulary.source), **settings)


def _reason_against(tokenizer, piece):
    text = piece_text(piece, tokenizer.wordpiece_scheme)
    if is_reserved(piece):
        return "it is reserved"
    if piece in tokenizer.vocabulary:
        return f"it is there already, with id {tokenizer.vocabulary.id_of(piece)}"
    if not text or re.search(r"\s", piece):
        return "it must be text without spaces"
    if not fits(text):
        return f"it has more than {MAX_BYTES_PER_PIECE} bytes"
    words = _words_around(tokenizer, piece, text)
    if words != _expected_words(tokenizer, piece, text):
        return f"the tokenizer makes of it {' '.join(words) or 'nothing'}, so no text would ever lead to it"
    return None


def _words_around(tokenizer, piece, text):
    """Returns the words of a text in which the piece ought to match."""
    if tokenizer.wordpiece_scheme == "end_of_word":
        text = f"{text.removesuffix(END_OF_WORD)} {_ANY_LETTER}"
    elif piece.startswith(CONTINUATION_PREFIX):
        text = _ANY_LETTER + text
    return [word.decode() for word in tokenizer.split_words([text])[0].numpy()]


def _expected_words(tokenizer, piece, text):
    if tokenizer.wordpiece_scheme == "end_of_word":
        return [text.removesuffix(END_OF_WORD) + END_OF_WORD, _ANY_LETTER]
    return [_ANY_LETTER + text] if piece.startswith(CONTINUATION_PREFIX) else [text]
