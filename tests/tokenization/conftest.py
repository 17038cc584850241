"""What the tests of tokenization share."""

import gzip

import pytest
from hypothesis import settings

# How long a test takes says nothing about the code: the first call of a TensorFlow op takes longer than all others.
settings.register_profile("without_deadline", deadline=None)
settings.load_profile("without_deadline")


@pytest.fixture
def real_lines(shared_data) -> list[str]:
    """Every different line of the real pre-training text and of the movie reviews."""
    lines = set((shared_data / "nsmc" / "ratings_train.txt").read_text(encoding="utf-8").split("\n"))
    for path in (shared_data / "corpus").glob("*.txt.gz"):
        lines.update(gzip.decompress(path.read_bytes()).decode().split("\n"))
    return sorted(lines)
