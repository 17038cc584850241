"""What the tests of tokenization share."""

import gzip

import pytest


@pytest.fixture
def real_lines(shared_data) -> list[str]:
    """Every different line of the real pre-training text and of the movie reviews."""
    lines = set((shared_data / "nsmc" / "ratings_train.txt").read_text(encoding="utf-8").split("\n"))
    for path in (shared_data / "corpus").glob("*.txt.gz"):
        lines.update(gzip.decompress(path.read_bytes()).decode().split("\n"))
    return sorted(lines)
