"""The files of a data set are found in its folder by their names."""

import pytest

from albert_tf.errors import InputError
from albert_tf.finetuning.datasets import DATASETS, find_files


def test_first_name_that_exists_is_taken(tmp_path):
    (tmp_path / "dev.tsv").touch()
    assert find_files(str(tmp_path), DATASETS["tsv"].test) == (f"{tmp_path}/dev.tsv",)
    (tmp_path / "test.tsv").touch()
    assert find_files(str(tmp_path), DATASETS["tsv"].test) == (f"{tmp_path}/test.tsv",)
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path), DATASETS["nsmc"].dev)
    assert str(error.value) == (
        f"`data_dir={tmp_path}` has no ratings_dev.txt or ratings_test.txt; give the file that name"
    )


@pytest.mark.parametrize(
    ("there", "names", "found", "told"),
    [
        (["val.tsv"], DATASETS["tsv"].dev, ["val.tsv"], ""),
        (["train.csv.gz"], DATASETS["csv"].train, ["train.csv.gz"], ""),
        (
            ["snli_1.0_train.ko.tsv", "multinli.train.ko.tsv", "train.tsv"],
            DATASETS["kornli"].train,
            ["multinli.train.ko.tsv", "snli_1.0_train.ko.tsv"],
            "2 files of FOLDER are read as one: multinli.train.ko.tsv, snli_1.0_train.ko.tsv\n",
        ),
        (
            ["train-00001-of-00002.parquet", "train-00000-of-00002.parquet"],
            DATASETS["parquet"].train,
            ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"],
            "2 files of FOLDER are read as one: train-00000-of-00002.parquet, train-00001-of-00002.parquet\n",
        ),
        (["train_10.tsv", "train_9.tsv"], DATASETS["tsv"].train, ["train_9.tsv", "train_10.tsv"], None),
        (
            ["train.tsv", "train_2.tsv"],
            DATASETS["tsv"].train,
            ["train.tsv"],
            "warning: of FOLDER, train.tsv is read, and train_2.tsv is not; is that right?\n",
        ),
        (
            ["dev.tsv", "validation.tsv"],
            DATASETS["tsv"].dev,
            ["dev.tsv"],
            "warning: of FOLDER, dev.tsv is read, and validation.tsv is not; is that right?\n",
        ),
    ],
)
def test_several_files_of_one_part_are_read_or_named(tmp_path, capsys, there, names, found, told):
    for name in there:
        (tmp_path / name).touch()
    assert find_files(str(tmp_path), names) == tuple(f"{tmp_path}/{name}" for name in found)
    assert told is None or capsys.readouterr().out == told.replace("FOLDER", str(tmp_path))


@pytest.mark.parametrize("there", ["train-00001-of-00002.csv", "train-0-of-2.csv train-1-of-2.csv train-3.csv"])
def test_numbered_files_must_be_whole(tmp_path, there):
    for name in there.split():
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"is one of 2 files, and (number 0|one set of them) is missing; put all"):
        find_files(str(tmp_path), DATASETS["csv"].train)


def test_folder_without_the_file_says_what_there_is(tmp_path):
    names = DATASETS["csv"].train
    with pytest.raises(InputError, match=r"` has no train.csv; give the file that name$"):
        find_files(str(tmp_path), names)
    path = tmp_path / "reviews.csv"
    path.touch()
    with pytest.raises(InputError, match=r"` has no train.csv; give the file that name \(there is reviews.csv\)$"):
        find_files(str(tmp_path), names)
    with pytest.raises(InputError, match=r"reviews.csv` is a file; name the folder that has it, and call it train.csv"):
        find_files(str(path), names)
    with pytest.raises(InputError, match=r"nowhere`: there is no such folder$"):
        find_files(str(tmp_path / "nowhere"), names)
