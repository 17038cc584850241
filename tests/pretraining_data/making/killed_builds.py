"""Helpers for builds that end early: how they end, and a corpus in every format."""

import gzip
import itertools
import json

from tables import write_table


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def kill_at(monkeypatch, owner, name, number):
    """Lets call `number`, from 0, of a function end the process before it does anything."""
    real, calls = getattr(owner, name), itertools.count()

    def function(*arguments, **keywords):
        if next(calls) == number:
            raise Killed
        return real(*arguments, **keywords)

    monkeypatch.setattr(owner, name, function)


def content_of(documents, name, tmp_path):
    """Returns a corpus of some format as the bytes of its file."""
    texts = ["\n".join(sentences) for sentences in documents]
    if name.endswith(".parquet"):
        options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
        write_table(tmp_path / "written.parquet", {"text": texts}, rows_per_group=7, **options)
        return (tmp_path / "written.parquet").read_bytes()
    content = "\n\n".join(texts).encode()
    if ".jsonl" in name:
        content = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode()
    return gzip.compress(content, 0, mtime=0) if name.endswith(".gz") else content
