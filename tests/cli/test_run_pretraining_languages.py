"""Two languages and their pairs from tables to a run, its resumption, its labels and its exports."""

import json
import pathlib

import numpy as np
import pytest

import albert_tf

pytestmark = pytest.mark.slow

LANGUAGES = "korean,english,korean+english"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, sample_corpus):
    """Files of two languages, and a table of pairs; both languages are Korean, which nothing here can tell."""
    folder = tmp_path_factory.mktemp("texts")
    lines = [line for path in sample_corpus for line in pathlib.Path(path).read_text().split("\n") if line][:120]
    (folder / "korean.txt").write_text("\n\n".join(lines[:80]))
    (folder / "english.txt").write_text("\n\n".join(lines[80:]))
    rows = ["korean\tenglish", *(f"{one[:20]}\t{other[:20]}" for one, other in zip(lines[:60], lines[60:]))]
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")
    return [folder / name for name in ("korean.txt", "english.txt", "pairs.tsv")]


@pytest.fixture
def create(run_script, corpus, sample_tokenizer_dir):
    """Builds shards in a folder of what the languages name."""

    def run(folder, languages=LANGUAGES, files=corpus, **flag_values):
        result = run_script(
            "create_pretraining_data.py",
            input_file=",".join(map(str, files)),
            languages=languages,
            objective="translation",
            vocab_file=f"{sample_tokenizer_dir}/vocab.txt",
            output_file=folder / "train.tfrecord",
            max_seq_length=32,
            held_out_fraction=0.2,
            **flag_values,
        ).succeeded()
        told = ", ".join(dict.fromkeys(languages.split(","))).replace("+", " with ")
        assert f"languages: {told}\n" in result.output
        return folder

    return run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory.mktemp("two_languages")


@pytest.fixture
def on_languages(create, folders, tiny_config, write_config):
    """Flags of a run of both objectives in turns."""
    data = folders / "data"
    if not data.exists():
        create(data)
        (folders / "config.json").write_text(json.dumps(tiny_config.replace(num_languages=2).to_dict()))
    return {"input_file": data / "train-*", "albert_config_file": folders / "config.json", "language_exponent": 0.5}


@pytest.fixture
def trained(pretrain, on_languages, folders):
    """The folder of a run, evaluated; not to be changed."""
    folder = folders / "run"
    if not folder.exists():
        result = pretrain(**on_languages, output_dir=folder).succeeded()
        assert "languages, texts and pairs step by step in turns: korean " in result.output
        assert "korean+english" in result.output and "50.0% of the examples drawn" in result.output
        assert "(a masked_lm_loss that needs no context)" in result.output
    return folder


def test_other_shares_of_languages_are_another_run(pretrain, on_languages, trained):
    result = pretrain(**{**on_languages, "language_exponent": 0.7}, output_dir=trained)
    assert result.code == 1 and "language_exponent" in result.errors and result.errors.count("\n") == 1


def test_labels_and_exports_need_no_language(trained, classify, run_script, tmp_path):
    classify(do_train=True, do_eval=False, init_checkpoint=trained, output_dir=tmp_path / "classifier").succeeded()
    texts = ["정말 재미있는 영화", "별로"]
    expected = albert_tf.load(tmp_path / "classifier").predict(texts)
    run_script("export_model.py", model_dir=tmp_path / "classifier", output_dir=tmp_path / "exported").finished()
    for found, each in zip(albert_tf.load(tmp_path / "exported").predict(texts), expected):
        assert found["probabilities"] == pytest.approx(each["probabilities"], abs=1e-5)
    assert albert_tf.load(trained).fill_mask(["오늘은 [MASK]"])[0]


def test_model_of_one_language_begins_one_of_two(pretrain, on_languages, checkpoint, without_training):
    result = pretrain(**on_languages, init_checkpoint=checkpoint, do_eval=False).succeeded()
    assert "encoder/embeddings/language_embeddings" in result.output
    languages = without_training[0].weights["encoder/embeddings/language_embeddings"]
    assert languages.shape == (2, 8) and np.isfinite(languages).all()


def test_what_does_not_go_together_is_one_sentence(pretrain, on_languages, shards, config_file, tmp_path):
    of_one = {"input_file": shards / "train.tfrecord"}
    for changes, message in (
        ({"language_exponent": -0.5}, "--language_exponent=-0.5 must be from 0 (all languages alike) to 1"),
        (
            {**of_one, "albert_config_file": config_file},
            "--language_exponent: the data don't declare more than one language",
        ),
        ({**of_one, "language_exponent": None}, "embeddings of 2 languages (num_languages), and the data don't say"),
    ):
        result = pretrain(**{**on_languages, **changes}, output_dir=tmp_path / "refused")
        assert result.code == 1 and message in result.errors and result.errors.count("\n") == 1
        assert not (tmp_path / "refused").exists()
