"""What errors say about packages that are missing."""

import pytest

from albert_tf.base import errors


@pytest.mark.parametrize(("files", "expected"), [(["setup.py"], "-e '{folder}[serve]'"), ([], "'albert_tf[serve]'")])
def test_extra_is_installed_from_the_checkout_if_there_is_one(tmp_path, monkeypatch, files, expected):
    for name in files:
        (tmp_path / name).touch()
    monkeypatch.setattr(errors, "_CHECKOUT", str(tmp_path))
    assert errors.with_extra("serve") == expected.format(folder=tmp_path)
