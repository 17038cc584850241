"""Fixtures of the tests of other libraries' folders."""

import pytest
from huggingface_conversion import to_theirs
from random_models import CONFIGS, write_ours


@pytest.fixture
def transformers():
    """The library; it needs torch to compute anything."""
    pytest.importorskip("torch", reason="compares with transformers, which needs torch")
    return pytest.importorskip("transformers", reason="compares with transformers")


@pytest.fixture
def theirs(tmp_path):
    """A folder as transformers writes it."""
    folder, _ = write_ours(tmp_path / "first", CONFIGS["albert"])
    to_theirs(folder, tmp_path / "theirs")
    return tmp_path / "theirs"
