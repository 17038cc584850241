"""The files of a data set are found in its folder by their names."""

import pytest
from tables import save_dataset, save_splits

from albert_tf.base.errors import InputError
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
        (
            ["data/train-00001-of-00002-0123456789abcdef.csv", "data/train-00000-of-00002-fedcba9876543210.csv"],
            DATASETS["csv"].train,
            ["data/train-00000-of-00002-fedcba9876543210.csv", "data/train-00001-of-00002-0123456789abcdef.csv"],
            None,
        ),
        (["data/dev.csv", "train.csv"], DATASETS["csv"].train, ["train.csv"], ""),
        (["train_10.tsv", "train_9.tsv"], DATASETS["tsv"].train, ["train_9.tsv", "train_10.tsv"], None),
        (
            ["train.tsv", "train_2.tsv"],
            DATASETS["tsv"].train,
            ["train.tsv"],
            "warning: of FOLDER, train.tsv is read, and train_2.tsv is not; is that right?\n",
        ),
    ],
)
def test_several_files_of_one_part_are_read_or_named(tmp_path, capsys, there, names, found, told):
    (tmp_path / "data").mkdir()
    for name in there:
        (tmp_path / name).touch()
    assert find_files(str(tmp_path), names) == tuple(f"{tmp_path}/{name}" for name in found)
    assert told is None or capsys.readouterr().out == told.replace("FOLDER", str(tmp_path))


@pytest.mark.parametrize(
    "there",
    [
        "train-00001-of-00002.csv",
        "train-0-of-2.csv train-1-of-2.csv train-3.csv",
        "train-0-of-1-0123456789abcdef.csv train-0-of-1-fedcba9876543210.csv",
    ],
)
def test_numbered_files_must_be_one_whole_set(tmp_path, there):
    for name in there.split():
        (tmp_path / name).touch()
    with pytest.raises(
        InputError, match=r"is one of . files, of which some lack or others lie among; put one complete set there"
    ):
        find_files(str(tmp_path), DATASETS["csv"].train)


def test_splits_that_were_saved_are_found(tmp_path, capsys):
    files, folder = DATASETS["datasets"], tmp_path / "saved"
    save_splits(folder, train={"a": ["가"]}, validation={"a": ["나"]}, dev={"a": ["다"]})
    assert find_files(str(folder), files.train) == (f"{folder}/train/data-00000-of-00001.arrow",)
    assert capsys.readouterr().out == ""
    assert find_files(str(folder), files.dev) == (f"{folder}/validation/data-00000-of-00001.arrow",)
    warning = f"warning: of {folder}, validation is read, and dev is not; is that right?\n"
    assert capsys.readouterr().out == warning
    assert find_files(str(folder), files.test) == find_files(str(folder), files.dev)
    message = r"has no train.csv, but is a folder that datasets has saved; run_classifier.py --task_name=datasets reads"
    with pytest.raises(InputError, match=message):
        find_files(str(folder), DATASETS["csv"].train)
    save_splits(tmp_path / "unsplit", unsupervised={"a": ["가"]})
    with pytest.raises(InputError, match=r"` has no split train \(there is unsupervised\); save one of that name"):
        find_files(str(tmp_path / "unsplit"), files.train)
    with pytest.raises(InputError, match=r"` has no split train \(datasets has saved nothing there\)"):
        find_files(str(folder / "train" / ".." / ".."), files.train)


def test_one_data_set_that_was_saved_is_what_is_trained_on(tmp_path):
    save_dataset(tmp_path / "saved", {"a": ["가", "나"]}, num_shards=2)
    files = DATASETS["datasets"]
    expected = tuple(f"{tmp_path}/saved/data-{index:05d}-of-00002.arrow" for index in range(2))
    assert find_files(str(tmp_path / "saved"), files.train) == expected
    with pytest.raises(InputError, match=r"has no split validation or dev .* \(there is train\); save one"):
        find_files(str(tmp_path / "saved"), files.dev)


def test_folder_without_the_file_says_what_there_is(tmp_path):
    names = DATASETS["csv"].train
    with pytest.raises(InputError, match=r"` has no train.csv; give the file that name$"):
        find_files(str(tmp_path), names)
    path = tmp_path / "reviews.csv"
    path.touch()
    with pytest.raises(InputError, match=r"` has no train.csv; give the file that name \(there is reviews.csv\)$"):
        find_files(str(tmp_path), names)
    with pytest.raises(
        InputError, match=r"reviews.csv` is a file; name the folder that holds it, and rename the file to"
    ):
        find_files(str(path), names)
    with pytest.raises(InputError, match=r"nowhere`: there is no such folder$"):
        find_files(str(tmp_path / "nowhere"), names)
