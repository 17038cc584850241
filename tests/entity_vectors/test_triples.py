"""Triples: how a file is read, and which of them are held out."""

import gzip
import unicodedata

import numpy as np
import pytest

from albert_tf.entity_vectors.triples import read_triples, split
from albert_tf.errors import InputError


def test_names_are_read_in_nfc_and_each_triple_once(tmp_path):
    lines = ["세종\t아들\t문종", "", " 문종 \t아버지\t세종\r", unicodedata.normalize("NFD", "세종\t아들\t문종"), "  "]
    for name, opened in (("a.tsv", open), ("a.tsv.gz", gzip.open)):
        with opened(tmp_path / name, "wt", encoding="utf-8", newline="") as file:
            file.write("\ufeff" + "\n".join(lines))
        found = read_triples(tmp_path / name)
        assert (found.entities, found.relations, found.num_repeated) == (["세종", "문종"], ["아들", "아버지"], 1)
        assert found.ids.tolist() == [[0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    "content, message",
    [
        ("a\tb\tc\nd\te\n", r"triples.tsv, line 2: a triple must be .* separated by tabs. Received: 'd e'"),
        ("a\tb\tc\td\n", "triples.tsv, line 1: a triple must be"),
        ("a\t \tc\n", "triples.tsv, line 1: a triple must be"),
        ("\n", "there must be at least two entities, and there are 0"),
        ("a\tb\ta\n", "there must be at least two entities, and there are 1"),
        (
            "Head\trelation\tTail\na\tb\tc\n",
            "line 1: .Head relation Tail. names the columns, and is no triple",
        ),
    ],
)
def test_what_is_no_triple_is_refused(tmp_path, content, message):
    (tmp_path / "triples.tsv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_triples(tmp_path / "triples.tsv")


def test_another_encoding_is_told_with_its_line(tmp_path):
    (tmp_path / "triples.tsv").write_bytes(b"a\tb\tc\n" + "세종대왕\t아들\t문종".encode("cp949"))
    with pytest.raises(InputError, match=r"line 2: not valid UTF-8 but, by its looks, CP949"):
        read_triples(tmp_path / "triples.tsv")


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.95])
def test_what_is_held_out_is_known_from_the_rest(fraction):
    generator = np.random.default_rng(3)
    ids = np.unique(np.stack([generator.integers(size, size=400) for size in (40, 4, 40)], axis=1), axis=0)
    learnt, held_out = split(ids, fraction, 7)
    joined = np.concatenate([learnt, held_out])
    np.testing.assert_array_equal(joined[np.lexsort(joined.T[::-1])], ids)
    if fraction < 0.9:
        assert len(held_out) == int(len(ids) * fraction)
    else:
        assert 0 < len(held_out) < int(len(ids) * fraction)
    assert set(held_out[:, [0, 2]].ravel()) <= set(learnt[:, [0, 2]].ravel())
    assert set(held_out[:, 1]) <= set(learnt[:, 1])
    assert all(np.array_equal(one, other) for one, other in zip(split(ids, fraction, 7), (learnt, held_out)))
