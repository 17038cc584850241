"""[unused] slots become pieces that text leads to; every other id stays."""

import pytest
from text_strategies import SCHEMES

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.vocabulary_report import assign_unused

RESERVED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
PIECES = {
    "continuation": [*RESERVED, "가", "나", "##가", "##나", "[unused2]"],
    "end_of_word": [*RESERVED, "가", "나", "가_", "나_", "[unused2]"],
}


def tokenizer_of(scheme, **settings):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES[scheme], "vocab.txt"), wordpiece_scheme=scheme, **settings)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_slots_are_filled_in_order_and_other_ids_stay(scheme):
    before = tokenizer_of(scheme)
    added = ["나가", "##다", "!"] if scheme == "continuation" else ["나가", "다_", "!_"]
    after = assign_unused(before, added)
    assert after.vocabulary.pieces == [*RESERVED[:5], *added[:2], *PIECES[scheme][7:-1], added[2]]
    assert after.identity != before.identity
    text = "나가 가다 ! 나" if scheme == "continuation" else "나가나 가다 ! 나"
    pieces = ["나가", "가", "##다", "!", "나"] if scheme == "continuation" else ["나가", "나_", "가", "다_", "!_", "나"]
    assert after.tokenize(text) == pieces
    assert assign_unused(before, added[:1]).vocabulary.pieces[6:] == PIECES[scheme][6:]


def test_more_pieces_than_slots_go_behind():
    after = assign_unused(tokenizer_of("continuation"), ["다", "라", "마", "바", "##바"])
    assert after.vocabulary.pieces == [*RESERVED[:5], "다", "라", "가", "나", "##가", "##나", "마", "바", "##바"]
    assert after.tokenize("바바 가") == ["바", "##바", "가"]


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        ("가", "there already, with id 7"),
        ("[MASK]", "it is reserved"),
        ("[unused9]", "it is reserved"),
        ("", "text without spaces"),
        ("##", "text without spaces"),
        ("나 가", "text without spaces"),
        ("ABC", "the tokenizer makes of it abc, so no text"),
        ("나.", "the tokenizer makes of it 나 ., so no text"),
        ("##!", "the tokenizer makes of it 가 !, so no text"),
        ("\u1112\u1161", "the tokenizer makes of it 하, so no text"),
        ("\u200b", "the tokenizer makes of it nothing, so no text"),
        ("하" * 86, "more than 256 bytes"),
    ],
)
def test_piece_that_cannot_be_one_is_refused(piece, reason):
    with pytest.raises(InputError) as failure:
        assign_unused(tokenizer_of("continuation"), ["다", piece])
    assert str(failure.value).startswith(f'"{piece}" can\'t be a piece of vocab.txt: ') and reason in str(failure.value)


def test_what_normalisation_changes_depends_on_the_settings():
    tokenizer = tokenizer_of("continuation", lower_case=False, split_punctuation=False)
    assert assign_unused(tokenizer, ["ABC", "나."]).tokenize("ABC 나.") == ["ABC", "나."]


def test_underscore_inside_a_piece_is_no_mark():
    with pytest.raises(InputError, match="no text would ever lead to it"):
        assign_unused(tokenizer_of("end_of_word"), ["나_가"])


@pytest.mark.parametrize(("pieces", "message"), [(["다", "다"], "it is named twice"), ([], "there is no piece to add")])
def test_pieces_must_be_there_once(pieces, message):
    with pytest.raises(InputError, match=message):
        assign_unused(tokenizer_of("continuation"), pieces)
