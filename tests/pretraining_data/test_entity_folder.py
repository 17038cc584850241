"""A folder of entity vectors: read as any program writes it, and refused where it can't be used."""

import numpy as np
import pytest

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.entities import read_entity_vectors

VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "entities.txt").write_text("가\n나 다\n라\n")
    np.save(tmp_path / "entity_vectors.npy", VECTORS)
    return tmp_path


def test_folder_is_read_as_it_was_written(folder):
    for dtype in (np.float32, np.float64):
        np.save(folder / "entity_vectors.npy", VECTORS.astype(dtype))
        names, vectors = read_entity_vectors(folder, "`entity_vectors`")
        assert names == ["가", "나 다", "라"]
        np.testing.assert_array_equal(vectors, VECTORS, strict=True)


@pytest.mark.parametrize(
    "vectors, message",
    [
        (VECTORS[:2], "`entity_vectors`: 3 names in entities.txt, but 2 vectors"),
        (VECTORS[0], r"must hold a vector of floats for each name. Received: float32 \[2\]"),
        (VECTORS * np.nan, "entity_vectors.npy holds NaN, infinity, or a number too large for float32"),
        (VECTORS.astype(np.float64) * 1e300, "entity_vectors.npy holds NaN, infinity, or a number too large for fl"),
        (np.array([None]), "entity_vectors.npy is not a NumPy file"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(folder, vectors, message):
    np.save(folder / "entity_vectors.npy", vectors, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        read_entity_vectors(folder, "`entity_vectors`")


def test_damaged_files_are_refused(folder):
    (folder / "entity_vectors.npy").write_bytes(b"no vectors")
    with pytest.raises(InputError, match=r"entity_vectors.npy is not a NumPy file"):
        read_entity_vectors(folder, "`entity_vectors`")
    (folder / "entity_vectors.npy").unlink()
    with pytest.raises(InputError, match="can't read the entity vectors"):
        read_entity_vectors(folder, "`entity_vectors`")


def test_a_name_that_stands_twice_is_refused(folder):
    for twice in ("가", "\u1100\u1161"):  # as macOS writes it, in jamo
        (folder / "entities.txt").write_text(f"가\n나\n{twice}\n")
        with pytest.raises(InputError, match=r"`entity_vectors`: 가 appears in entities.txt twice"):
            read_entity_vectors(folder, "`entity_vectors`")
