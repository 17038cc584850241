"""Vocabulary files: pieces, ids, errors of one sentence, and [unused] slots that become pieces."""

import numpy as np
import pytest
from text_strategies import SCHEMES

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary_report import assign_unused


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    ["[UNK]\n나\n##는\n", "[UNK]\n나\n##는", "[UNK]\r\n나\r\n##는\r\n", "\ufeff[UNK]\n나\n##는\n"],
    ids=["plain", "no newline at the end", "carriage returns", "byte order mark"],
)
def test_line_number_is_the_id(tmp_path, content):
    vocabulary = Vocabulary.from_file(write(tmp_path / "vocab.txt", content))
    assert vocabulary.pieces == ["[UNK]", "나", "##는"]
    assert [vocabulary.id_of(piece) for piece in vocabulary.pieces] == [0, 1, 2]
    assert len(vocabulary) == 3 and "나" in vocabulary and "는" not in vocabulary


def test_file_round_trip(tmp_path):
    vocabulary = Vocabulary(["[UNK]", "가", "a b", "\u2028", "[unused0]"])
    vocabulary.to_file(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == "[UNK]\n가\na b\n\u2028\n[unused0]\n".encode()
    again = Vocabulary.from_file(tmp_path / "vocab.txt")
    assert again.pieces == vocabulary.pieces and again.sha256 == vocabulary.sha256


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[PAD]\n나\n", r"vocab\.txt has no \[UNK\]; add it on a separate line"),
        ("[UNK]\n나\n너\n나\n", r"vocab\.txt, line 4: 나 is on line 2 too; remove one"),
        ("[UNK]\n\n나\n", r"vocab\.txt, line 2: an empty line; every line must hold one piece"),
        ("", r"vocab\.txt, line 1: an empty line; every line must hold one piece"),
        (b"[UNK]\n\xff\xff\n", r"vocab\.txt, line 2: not valid UTF-8; convert the vocabulary to UTF-8"),
    ],
    ids=["no unknown", "duplicate", "empty line", "empty file", "not UTF-8"],
)
def test_broken_files_are_refused_in_one_sentence(tmp_path, content, message):
    with pytest.raises(InputError, match=message) as error:
        Vocabulary.from_file(write(tmp_path / "vocab.txt", content))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("piece", ["a\nb", "a\r", "\ud800"])
def test_a_piece_that_no_line_can_hold_is_refused(piece):
    with pytest.raises(InputError, match=r"the vocabulary, line 2: '.*' can't be a line of a file"):
        Vocabulary(["[UNK]", piece])


@pytest.mark.parametrize("missing", ["[PAD]", "[CLS]", "[SEP]", "[MASK]"])
def test_special_tokens_are_required_where_they_are_needed(tmp_path, missing):
    pieces = [piece for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if piece != missing]
    vocabulary = Vocabulary.from_file(write(tmp_path / "vocab.txt", "\n".join(pieces)))
    vocabulary.require(*pieces)
    with pytest.raises(InputError) as error:
        vocabulary.require("[PAD]", "[CLS]", "[SEP]", "[MASK]")
    assert str(error.value) == f"{tmp_path / 'vocab.txt'} has no {missing}; add it on a separate line"


def test_real_pieces_are_neither_special_nor_unused():
    pieces = ["[PAD]", "나", "[unused0]", "[UNK]", "[unused]", "[unused12]", "##[MASK]", "[MASK]"]
    ids = Vocabulary(pieces).real_piece_ids
    assert ids.dtype == np.int32
    assert [pieces[i] for i in ids] == ["나", "[unused]", "##[MASK]"]


@pytest.mark.parametrize("pieces", [["[UNK]", "가", "나"], ["[UNK]", "나"], ["[UNK]", "나", "가", "다"]])
def test_hash_tells_vocabularies_apart(pieces):
    assert Vocabulary(pieces).sha256 != Vocabulary(["[UNK]", "나", "가"]).sha256


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
        ("##", "text without spaces"),
        ("나 가", "text without spaces"),
        ("ABC", "the tokenizer makes of it abc, so no text"),
        ("나.", "the tokenizer makes of it 나 ., so no text"),
        ("##!", "the tokenizer makes of it 가 !, so no text"),
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
