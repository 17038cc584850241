"""Fixtures of the tests of tokenization."""

import functools
import gzip
import re

import pytest
import sentencepiece_training

_PLAIN = re.compile("[ -~가-힣ㄱ-ㅣ]*")


@pytest.fixture
def real_lines(shared_data) -> list[str]:
    """Different lines of the real pre-training text and of the movie reviews.

    Each fourth that holds a character outside ASCII and Hangul, and each 64th of the other 248,000.
    """
    return _read_lines(shared_data)


@functools.cache
def _read_lines(folder):
    lines = set((folder / "nsmc" / "ratings_train.txt").read_text(encoding="utf-8").split("\n"))
    for path in (folder / "corpus").glob("*.txt.gz"):
        lines.update(gzip.decompress(path.read_bytes()).decode().split("\n"))
    plain = sorted(line for line in lines if _PLAIN.fullmatch(line))
    return sorted([*sorted(lines.difference(plain))[::4], *plain[::64]])


@pytest.fixture(scope="module")
def english_model(english_model_file) -> bytes:
    """A model of English text, as the original's are."""
    return english_model_file.read_bytes()


@pytest.fixture(scope="module")
def korean_model(sample_lines) -> bytes:
    """A model of Korean text that normalises nothing."""
    return sentencepiece_training.train_model(sample_lines, 3000, normalization_rule_name="identity")


@pytest.fixture(scope="module")
def models(english_model, korean_model) -> dict[str, bytes]:
    """Both, by language."""
    return {"english": english_model, "korean": korean_model}
