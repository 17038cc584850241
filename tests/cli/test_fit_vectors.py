"""Vectors that `albert_tf.fit` teaches: asked, exported and converted, they are the same."""

import csv
import warnings

import numpy as np
import pytest
import tensorflow as tf
from runs import write_model

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.exporting import export_model

PAIRS = [
    (f"{word} 온다", f"{word} 내린다")
    for word in ("비가", "눈이", "꽃비가", "함박눈이", "안개가", "서리가", "별이", "해가")
]
TEXTS = ["비가 온다", "눈이 내린다 ㅋㅋ", "해가 " * 30, ""]


@pytest.fixture(scope="module")
def start(tiny_config, sample_tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    tf.keras.utils.set_random_seed(3)
    return str(write_model(folder, AlbertForPreTraining(tiny_config), sample_tokenizer))


@pytest.fixture(scope="module")
def taught(start, tmp_path_factory, quick_to_trace):
    folder = tmp_path_factory.mktemp("taught") / "run"
    numbers = [5.0, 1.0, 4.0, 2.5, 0.5, 3.0, 1.5, 2.0]
    settings = {"learning_rate": 0.01, "num_train_steps": 80, "max_seq_length": 16, "train_batch_size": 8}
    return folder, albert_tf.fit(
        PAIRS, numbers, start, folder, kind="vectors", dev=(PAIRS, numbers), early_stopping=0, **settings
    )


@pytest.mark.slow
def test_cosines_come_to_follow_the_numbers(taught):
    _, model = taught
    assert model.learnt_to_compare and model.abilities == ("encode", "similarity", "predict")
    assert model.results["spearman"] > 0.75
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cosines = model.similarity(PAIRS)
    np.testing.assert_allclose([each["score"] for each in model.predict(PAIRS)], cosines, atol=1e-5)


@pytest.mark.slow
def test_vectors_are_the_same_exported_and_converted(taught, tmp_path):
    folder, model = taught
    expected = model.encode(TEXTS)
    export_model(str(folder), str(tmp_path / "export"))
    convert_checkpoint("albert_tf", "huggingface", str(folder), str(tmp_path / "theirs"))
    convert_checkpoint("huggingface", "albert_tf", str(tmp_path / "theirs"), str(tmp_path / "ours"))
    convert_checkpoint("albert_tf", "albert_tf", str(folder), str(tmp_path / "published"), weights_dtype="float32")
    for name in ("export", "theirs", "ours", "published"):
        found = albert_tf.load(tmp_path / name)
        assert found.learnt_to_compare and found.max_seq_length == 16 and "fill_mask" not in found.abilities, name
        np.testing.assert_allclose(found.encode(TEXTS), expected, atol=1e-5, err_msg=name)
    assert "model.similarity(" in (folder / "README.md").read_text()


@pytest.mark.slow
def test_sentence_transformers_makes_the_same_vectors(taught, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    folder, model = taught
    convert_checkpoint("albert_tf", "huggingface", str(folder), str(tmp_path / "theirs"))
    theirs = library.SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    np.testing.assert_allclose(theirs.encode(TEXTS), model.encode(TEXTS), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("learns_from", "text_pair_column"), [("pairs", "second"), ("texts", None)])
def test_command_learns_vectors_without_labels(
    start, tmp_path, run_script, quick_to_trace, learns_from, text_pair_column
):
    with open(tmp_path / "train.csv", "w", newline="") as file:
        csv.writer(file).writerows([("first", "second"), *PAIRS])
    flags = {
        "task_name": "csv",
        "data_dir": tmp_path,
        "text_column": "first",
        "text_pair_column": text_pair_column,
        "vectors": learns_from,
        "init_checkpoint": start,
        "dev_fraction": 0.25,
        "max_seq_length": 16,
        "num_train_steps": 2,
        "do_train": True,
        "do_eval": True,
        "output_dir": tmp_path / "run",
    }
    assert "held-out at step 2: " in run_script("run_classifier.py", **flags).succeeded().output
    model = albert_tf.load(tmp_path / "run")
    assert model.learnt_to_compare
    if text_pair_column is None:
        with pytest.raises(InputError, match="so there is no pair to predict; use encode and similarity"):
            model.predict(["비가 온다"])


def test_settings_of_one_text_are_refused_with_vectors(start, tmp_path, run_script):
    flags = {"task_name": "csv", "data_dir": tmp_path, "text_column": "first", "do_train": True, "output_dir": tmp_path}
    result = run_script("run_classifier.py", **flags, init_checkpoint=start, vectors="texts", pooling="mean")
    assert result.code and "can't be used with --vectors; leave one of them out" in result.errors


def test_labels_of_pairs_are_not_passed_over(start, tmp_path, run_script):
    (tmp_path / "train.csv").write_text("first,second,label\n비가 온다,비가 내린다,1\n비가 온다,잠이 온다,0\n")
    flags = {"task_name": "csv", "data_dir": tmp_path, "text_column": "first", "text_pair_column": "second"}
    for regression, message in (
        (False, f"{tmp_path}/train.csv, line 2: labels under label, but --vectors=pairs takes all pairs for such as"),
        (True, "--vectors=pairs takes all pairs for such as belong together; use --vectors=numbers"),
    ):
        result = run_script(
            "run_classifier.py",
            **flags,
            regression=regression,
            vectors="pairs",
            init_checkpoint=start,
            do_train=True,
            output_dir=tmp_path / "run",
        )
        assert result.code and message in result.errors
