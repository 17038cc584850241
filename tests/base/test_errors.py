"""Errors: of the operating system, one sentence, whoever raised it; and of packages that are missing."""

import errno
import os

import pytest
import tensorflow as tf

from albert_tf.base import errors
from albert_tf.base.errors import describe_file_error, naming


def of_system(code, *names):
    return OSError(code, os.strerror(code), *names)


def of_tensorflow(message):
    return tf.errors.UnknownError(None, None, message)


FULL = "can't read or write /data/a (No space left on device); free some space there, or choose another place"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (of_system(errno.ENOSPC, "/data/a"), FULL),
        (of_system(errno.ENOSPC), FULL.replace("/data/a", "a file")),
        (OSError(errno.ENOSPC, "HDF5: write failed,\nbuf = 0x5, offset = 7", "/data/a"), FULL),
        (of_tensorflow("/data/a; No space left on device"), FULL),
        (of_tensorflow("{{function_node __wrapped__SaveV2}} /data/a; No space left on device [Op:SaveV2]"), FULL),
        (
            of_system(errno.EROFS, b"/data/a"),
            "can't read or write /data/a (Read-only file system); correct its permissions, or choose another place",
        ),
        (
            of_system(errno.EXDEV, "/data/a", None, "/data/b"),
            "can't read or write /data/b (Invalid cross-device link); put the path right",
        ),
        (
            of_tensorflow("Error executing an HTTP request: code 403 for gs://bucket/a\nmore"),
            "Error executing an HTTP request: code 403 for gs://bucket/a; correct that and repeat the command",
        ),
    ],
)
def test_error_is_described(error, sentence):
    assert describe_file_error(error) == sentence


@pytest.mark.parametrize(
    "error",
    [
        ValueError("No space left on device"),
        of_system(errno.EPIPE),
        OSError("of a library"),
        of_tensorflow("XLA failed"),
    ],
)
def test_error_of_another_kind_is_left_alone(error):
    assert describe_file_error(error) is None


def test_file_without_a_name_in_the_error_gets_one():
    for names, expected in (((), "/data/a"), (("/data/b",), "/data/b")):
        with pytest.raises(OSError, match="No space") as raised, naming("/data/a"):
            raise of_system(errno.ENOSPC, *names)
        assert raised.value.filename == expected


@pytest.mark.parametrize(("files", "expected"), [(["setup.py"], "-e '{folder}[serve]'"), ([], "'albert_tf[serve]'")])
def test_extra_is_installed_from_the_checkout_if_there_is_one(tmp_path, monkeypatch, files, expected):
    for name in files:
        (tmp_path / name).touch()
    monkeypatch.setattr(errors, "_CHECKOUT", str(tmp_path))
    assert errors.with_extra("serve") == expected.format(folder=tmp_path)
