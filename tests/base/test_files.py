"""Text files are read or refused with a sentence, and a reader never sees half of one."""

import gzip
import os

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.base.files import (
    gfile_for,
    match_files,
    name_in_folder,
    read_json,
    read_text,
    replacing,
    write_json,
    write_text,
)

pytestmark = pytest.mark.usefixtures("opened_by")


@given(text=st.text(st.characters(codec="utf-8")).filter(lambda text: not text.startswith("\ufeff")))
def test_text_survives_writing_and_reading(text, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "text.txt"
    write_text(path, text)
    assert path.read_bytes() == text.encode()
    assert read_text(path, "the text") == text
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_text(path, "the text") == text, "a byte order mark is no part of it"


def test_missing_folders_are_made_and_old_text_is_replaced(tmp_path):
    path = tmp_path / "a" / "b" / "text.txt"
    for text in ("a longer old text", "new"):
        write_text(path, text)
    assert path.read_text() == "new"
    assert [file.name for file in path.parent.iterdir()] == ["text.txt"]


def test_failed_write_leaves_the_old_text(tmp_path):
    path = tmp_path / "text.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write(b"new")
        raise RuntimeError("disk full")
    assert path.read_text() == "old"


def test_new_text_appears_at_once(tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    write_text(path, "old")
    gfile = gfile_for(str(path))
    real_rename = gfile.rename

    def rename(source, target, overwrite=False):
        assert path.read_text() == "old"
        real_rename(source, target, overwrite)
        assert path.read_text() == "new"

    monkeypatch.setattr(gfile, "rename", rename)
    write_text(path, "new")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't read the settings .*file: no such file"),
        ("가\n나\n".encode() + "다".encode("cp949"), "file, line 3: not valid UTF-8 but, by its looks, CP949; "),
        (gzip.compress(b"{}", mtime=0), "file, line 1: not valid UTF-8"),
        (b'{\n"a": }', "file, line 2: not valid JSON"),
        (b"", "file, line 1: not valid JSON"),
        (b"[1]", "file must hold one JSON object. Received: list"),
    ],
)
def test_unreadable_settings_are_named(tmp_path, content, message):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(path, "the settings")
    with pytest.raises(InputError, match=f"can't read the text {tmp_path}"):
        read_text(tmp_path, "the text")


def test_json_is_readable_by_people_and_keeps_its_order(tmp_path):
    values = {"나": [1, 2.5], "가": None}
    write_json(tmp_path / "values.json", values)
    assert list(read_json(tmp_path / "values.json", "the values").items()) == list(values.items())
    text = (tmp_path / "values.json").read_text(encoding="utf-8")
    assert '\n  "나": [' in text and text.endswith("}\n")


@pytest.fixture
def folder(tmp_path):
    """A folder with a few files and a folder in it."""
    for name in ("b.txt", "a.txt", "c.json", "[old] d.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.txt").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["b.txt"], ["b.txt"]),
        (["b.txt", "a.txt"], ["a.txt", "b.txt"]),
        (["[ab].txt", "b*", "b.txt"], ["a.txt", "b.txt"]),
        (["*.txt"], ["[old] d.txt", "a.txt", "b.txt"]),
        (["[old] d.txt"], ["[old] d.txt"]),
    ],
)
def test_patterns_give_sorted_files_each_once(folder, patterns, expected):
    found = match_files([f"{folder}/{pattern}" for pattern in patterns], "input_file")
    assert found == [f"{folder}/{name}" for name in expected]


@pytest.mark.parametrize("base", ["{tmp_path}", "ram://names"])
@pytest.mark.parametrize("name", ["[old]", "what?", "all*", "run[1]/part [2]"])
def test_folder_that_exists_is_no_glob(tmp_path, base, name):
    folder = f"{base.format(tmp_path=tmp_path)}/{name}"
    write_text(f"{folder}/a.txt", "")
    for pattern in ("a.txt", "*.txt", "[ab].txt"):
        assert match_files([f"{folder}/{pattern}"], "input_file") == [f"{folder}/a.txt"]


def test_folders_may_be_globs(tmp_path):
    for name in ("run1/a.txt", "run2/a.txt", "run[3]/a.txt"):
        write_text(tmp_path / name, "")
    found = match_files([f"{tmp_path}/run[12]/*.txt"], "input_file")
    assert found == [f"{tmp_path}/run{number}/a.txt" for number in (1, 2)]


@pytest.mark.parametrize("path", ["b.txt", "./b.txt", ".//b.txt", "folder.txt/../b.txt", "./[ab].txt", ".//b*"])
def test_same_file_has_the_same_path(folder, monkeypatch, path):
    monkeypatch.chdir(folder)
    expected = "folder.txt/../b.txt" if ".." in path else "b.txt"
    found = [name for name in match_files([path, f"{folder}//./{path}"], "input_file") if not name.endswith("a.txt")]
    assert found == sorted([f"{folder}/{expected}", expected])


def test_folder_stands_for_the_files_in_it_that_end_as_asked(tmp_path):
    for name in ("b.txt", "a.json", "c.csv", ".hidden.txt", "deeper/d.txt"):
        write_text(tmp_path / "data[1]" / name, "")
    (tmp_path / "data[1]" / "folder.txt").mkdir()
    found = match_files([f"{tmp_path}/data[1]/"], "input_file", (".txt", ".json"))
    assert found == [f"{tmp_path}/data[1]/a.json", f"{tmp_path}/data[1]/b.txt"]
    with pytest.raises(InputError, match=r"`input_file`: no .gz, .jsonl file in .*data"):
        match_files([f"{tmp_path}/data[1]"], "input_file", (".gz", ".jsonl"))


@pytest.mark.parametrize("pattern", ["*.gz", "gone.txt", "folder.txt", "gone/*.txt"])
def test_pattern_without_a_file_is_named(folder, pattern):
    with pytest.raises(InputError) as failure:
        match_files([f"{folder}/a.txt", f"{folder}/{pattern}"], "input_file")
    assert str(failure.value) == f"`input_file`: no file matches {folder}/{pattern}"


def test_nothing_is_renamed_over_a_file_unless_asked(tmp_path, opened_by):
    write_text(tmp_path / "a", "a")
    write_text(tmp_path / "b", "b")
    paths = [str(tmp_path / name) for name in "ab"]
    gfile = gfile_for(paths[0])
    with pytest.raises(FileExistsError if opened_by == "python" else tf.errors.AlreadyExistsError):
        gfile.rename(*paths)
    gfile.rename(*paths, overwrite=True)
    assert gfile.listdir(str(tmp_path)) == ["b"] and gfile.stat(paths[1]).length == 1
    gfile.rmtree(str(tmp_path))
    assert not gfile.exists(str(tmp_path))


def test_file_system_that_cannot_be_reached_is_named():
    with pytest.raises(InputError, match=r"`input_file`: can't look for nowhere://a/\*"):
        match_files(["nowhere://a/*"], "input_file")


@pytest.mark.parametrize("folder", ["", "data", "/data", "gs://bucket/data"])
def test_name_in_a_folder_is_a_path_there(folder):
    path = name_in_folder(folder, "[1] shard.tfrecord", "list.json")
    assert (os.path.dirname(path), os.path.basename(path)) == (folder, "[1] shard.tfrecord")


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "/a", "a/b", "gs://a/b", None, 7])
def test_name_that_leads_out_of_its_folder_is_refused(name):
    with pytest.raises(InputError, match=r"list\.json names .*, which is not a file in data; correct the name"):
        name_in_folder("data", name, "list.json")
