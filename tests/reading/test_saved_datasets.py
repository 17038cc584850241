"""Folders that the library datasets saved are read with it, and its caches are refused."""

import sys

import pytest
from tables import save_dataset, save_splits, write_table

from albert_tf.base.errors import InputError
from albert_tf.reading.documents import CorpusReader, find_corpus_files
from albert_tf.reading.rows import RowFile
from albert_tf.reading.tables import saved_splits


def sentences(path):
    return list(CorpusReader(find_corpus_files([str(path)], "input_file")).sentences())


def test_folder_of_a_dataset_is_its_files(tmp_path, capsys):
    save_dataset(tmp_path / "saved", {"text": ["하나\n둘", "셋"]}, num_shards=2)
    assert sentences(tmp_path / "saved") == ["하나", "둘", "셋"] == sentences(f"{tmp_path}/saved/")
    assert capsys.readouterr().out == ""


def test_of_splits_train_is_read_and_the_others_are_named(tmp_path, capsys):
    folder = tmp_path / "saved"
    save_splits(folder, test={"text": ["시험"]}, train={"text": ["하나"]})
    assert sentences(folder) == ["하나"] and sentences(folder / "test") == ["시험"]
    expected = "of its splits, train is read, and test not; name the folders of the splits to read others"
    assert capsys.readouterr().out == f"{folder}: {expected}\n"
    save_splits(tmp_path / "other", dev={"text": ["하나"]})
    with pytest.raises(InputError, match=r"`input_file`: .*/other has no split train to read, but it has dev; name"):
        sentences(tmp_path / "other")


def test_labels_have_the_names_that_datasets_gave_them(tmp_path):
    save_dataset(tmp_path / "saved", {"text": list("가나다"), "label": [1, 0, -1]}, {"label": ["부정", "긍정"]})
    [path] = saved_splits(str(tmp_path / "saved"))["train"]
    rows = RowFile(path)
    assert [row.values for row in rows] == [
        {"text": text, "label": label} for text, label in zip("가나다", ("긍정", "부정", None))
    ]
    assert rows.label_names == {"label": ("부정", "긍정")} and rows.form == "Arrow"


def test_folder_that_is_not_whole_is_refused(tmp_path):
    save_dataset(tmp_path / "saved", {"text": ["하나"]})
    (tmp_path / "saved" / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(InputError, match=r"datasets can't load .*/saved .*; copy or save it again") as error:
        sentences(tmp_path / "saved")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["alone/data.arrow", "saved/cache-0123456789abcdef.arrow", "alone"])
def test_cache_is_refused(tmp_path, name):
    for folder in ("alone", "saved"):
        (tmp_path / folder).mkdir()
    (tmp_path / "alone" / "data.arrow").touch()
    (tmp_path / "saved" / "cache-0123456789abcdef.arrow").touch()
    (tmp_path / "saved" / "state.json").write_text("{}")
    with pytest.raises(InputError, match="arrow is a part or the cache of a data set; name the folder that datasets"):
        sentences(tmp_path / name)


def test_without_datasets_a_folder_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "state.json").write_text("{}")
    (tmp_path / "data.arrow").touch()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"was saved by the library datasets, which is not installed; pip install .*"):
        sentences(tmp_path)
    with pytest.raises(InputError, match=r"data.arrow was saved by the library datasets, which is not installed"):
        RowFile(str(tmp_path / "data.arrow"))
    write_table(tmp_path / "a.parquet", {"text": ["하나"]})
    assert sentences(tmp_path / "*.parquet") == ["하나"]
