"""Files of a corpus."""

import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes bytes, compressed if the name says so, and returns the path."""

    def write_file(content, name="corpus.txt"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(path)

    return write_file
