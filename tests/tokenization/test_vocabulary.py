"""Vocabulary files: pieces, ids, and errors of one sentence."""

import numpy as np
import pytest

from albert_tf.base.errors import InputError
from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS


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


@pytest.mark.parametrize("name", ["kcbert_30000", "koelectra_32200", "krbert_char_16424"])
def test_published_vocabularies_can_be_trained_with(shared_data, name):
    Vocabulary.from_file(shared_data / "vocabs" / f"{name}.txt").require(*SPECIAL_TOKENS)


def test_seed_vocabulary_lacks_padding_only(shared_data):
    vocabulary = Vocabulary.from_file(shared_data / "vocabs" / "ilhoonkim_nsmc_26383.txt")
    assert len(vocabulary) == 26383
    vocabulary.require("[CLS]", "[SEP]", "[MASK]", "[UNK]")
    with pytest.raises(InputError, match=r"26383\.txt has no \[PAD\]"):
        vocabulary.require("[PAD]")


def test_real_pieces_are_neither_special_nor_unused():
    pieces = ["[PAD]", "나", "[unused0]", "[UNK]", "[unused]", "[unused12]", "##[MASK]", "[MASK]"]
    ids = Vocabulary(pieces).real_piece_ids
    assert ids.dtype == np.int32
    assert [pieces[i] for i in ids] == ["나", "[unused]", "##[MASK]"]


@pytest.mark.parametrize("pieces", [["[UNK]", "가", "나"], ["[UNK]", "나"], ["[UNK]", "나", "가", "다"]])
def test_hash_tells_vocabularies_apart(pieces):
    assert Vocabulary(pieces).sha256 != Vocabulary(["[UNK]", "나", "가"]).sha256
