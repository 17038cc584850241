"""Folders that the library datasets saved are read as a corpus, and nothing beside their files."""

import json

import pytest
from tables import save_dataset, save_splits

from albert_tf.corpus.reader import CorpusReader, find_corpus_files
from albert_tf.errors import InputError

MUST_NAME = 'state.json must name .arrow files of its folder under "_data_files", each once; copy all of the folder'


def sentences(folder):
    return list(CorpusReader(find_corpus_files([str(folder)], "input_file")).sentences())


def test_folder_of_a_dataset_is_its_files_and_not_those_of_its_cache(tmp_path, capsys):
    save_dataset(tmp_path / "saved", {"text": ["하나", "둘"]}, {"text": ["셋"]})
    assert sentences(tmp_path / "saved") == ["하나", "둘", "셋"] == sentences(f"{tmp_path}/saved/")
    assert capsys.readouterr().out == ""


def test_of_splits_train_is_read_and_the_others_are_named(tmp_path, capsys):
    folder = tmp_path / "saved"
    save_splits(folder, test={"text": ["시험"]}, train={"text": ["하나"]}, unlabelled={"text": ["둘"]})
    assert sentences(folder) == ["하나"] and sentences(folder / "unlabelled") == ["둘"]
    expected = "of its splits, train is read, and test, unlabelled not; name the folders of the splits to read others"
    assert capsys.readouterr().out == f"{folder}: {expected}\n"
    save_splits(tmp_path / "other", dev={"text": ["하나"]})
    with pytest.raises(InputError, match=r"`input_file`: .*/other has no split train to read, but it has dev; name"):
        sentences(tmp_path / "other")


def test_cache_is_read_where_it_is_named_alone(tmp_path, capsys):
    save_dataset(tmp_path / "saved", {"text": ["하나"]})
    (tmp_path / "saved" / "state.json").unlink()
    cache = f"{tmp_path}/saved/cache-0123456789abcdef.arrow"
    for pattern in ("saved", "saved/*.arrow"):
        assert sentences(tmp_path / pattern) == ["하나"]
        warning = f"warning: {cache} belongs to the cache of datasets and is not read; name it explicitly to read it\n"
        assert capsys.readouterr().out == warning
    assert sentences(cache) == ["from the cache"]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "state.json, line 1: not valid JSON"),
        ({}, MUST_NAME),
        ({"_data_files": ["data.arrow"]}, MUST_NAME),
        ({"_data_files": [{}]}, "state.json names null, which is not a file in"),
        ({"_data_files": [{"filename": "../other/data.arrow"}]}, 'names "../other/data.arrow", which is not a file in'),
        ({"_data_files": [{"filename": "gone.arrow"}]}, MUST_NAME),
        ({"_data_files": [{"filename": "state.json"}]}, MUST_NAME),
        ({"_data_files": [{"filename": "data-00000-of-00001.arrow"}] * 2}, MUST_NAME),
        ({"_indices_data_files": [{"filename": "indices.arrow"}]}, "picks rows out of the files"),
    ],
)
def test_folder_that_is_not_whole_is_refused(tmp_path, state, message):
    save_dataset(tmp_path / "saved", {"text": ["하나"]})
    (tmp_path / "saved" / "state.json").write_text(state if isinstance(state, str) else json.dumps(state))
    with pytest.raises(InputError, match=message):
        sentences(tmp_path / "saved")


def test_splits_that_are_not_there_are_missed(tmp_path):
    save_splits(tmp_path)
    with pytest.raises(InputError, match=r"dataset_dict.json belongs to a data set whose splits are missing; copy"):
        sentences(tmp_path)
