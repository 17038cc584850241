"""The whole road with a SentencePiece model: data, pre-training, conversion, fine-tuning, export, predictions."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import sentencepiece_training
import tensorflow as tf
from runs import write_model

import albert_tf
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.tokenization import load_tokenizer

REVIEWS = [("a good model that trains well", "1"), ("the run ends with an error", "0")]


@pytest.fixture
def english_config(tiny_config, english_tokenizer):
    return dataclasses.replace(tiny_config, vocab_size=len(english_tokenizer))


@pytest.fixture
def run_as_user(run_script):
    """Runs a script that is to succeed, and returns what it printed."""

    def run(name, **flag_values):
        result = run_script(name, **flag_values)
        assert (result.code, result.errors) == (0, ""), result.errors
        return result.output

    return run


@pytest.fixture
def create(run_script, english_model_file, tmp_path):
    """Builds data of English lines; flags may be added, replaced or, with None, left out."""
    lines = sentencepiece_training.english_lines()[:400]
    documents = ["\n".join(lines[begin : begin + 8]) for begin in range(0, len(lines), 8)]
    (tmp_path / "corpus.txt").write_text("\n\n".join(documents), "utf-8")
    usual = {
        "input_file": tmp_path / "corpus.txt",
        "output_file": tmp_path / "data" / "train.tfrecord",
        "spm_model_file": english_model_file,
        "vocab_file": english_model_file.with_suffix(".vocab"),
        "max_seq_length": 64,
    }
    return lambda **changes: run_script("create_pretraining_data.py", **{**usual, **changes})


def served(folder, name, **texts):
    model = tf.saved_model.load(str(folder))
    return model.signatures[name](**{key: tf.constant(values) for key, values in texts.items()})


@pytest.mark.slow
def test_model_is_pretrained_converted_finetuned_exported_and_asked(
    create, run_as_user, english_tokenizer, english_config, english_model_file, write_config, tmp_path
):
    assert create().code == 0
    data, run = tmp_path / "data", tmp_path / "run"
    manifest = json.loads((data / "manifest.json").read_text())
    assert manifest["tokenizer"]["identity"] == english_tokenizer.identity == load_tokenizer(data).identity
    assert manifest["vocab_size"] == len(english_tokenizer) and 1.2 < manifest["tokens"] / manifest["words"] < 3
    training = {"train_batch_size": 4, "eval_batch_size": 4, "num_train_steps": 3, "num_warmup_steps": 1}
    files = {"input_file": data / "train.tfrecord", "albert_config_file": write_config(english_config)}
    run_as_user("run_pretraining.py", **files, output_dir=run, **training)
    assert {"spiece.model", "tokenizer.json"} <= {path.name for path in run.iterdir()}
    assert not (run / "vocab.txt").exists()

    # Out to Google's form and back, where only 30k-clean.model tells the tokenizer.
    google, ours = tmp_path / "google", tmp_path / "ours"
    run_as_user("convert_checkpoint.py", **{"from": "albert_tf", "to": "google"}, input_path=run, output_dir=google)
    (google / "tokenizer.json").unlink()
    (google / "spiece.model").rename(google / "30k-clean.model")
    told = run_as_user(
        "convert_checkpoint.py", **{"from": "google", "to": "albert_tf"}, input_path=google, output_dir=ours
    )
    assert "tokenizer: SentencePiece with form=google, lower_case=true" in told

    (tmp_path / "train.tsv").write_text("document\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in REVIEWS * 4))
    flags = {"task_name": "tsv", "data_dir": tmp_path, "init_checkpoint": ours, "output_dir": tmp_path / "classified"}
    flags |= {"train_step": 3, "train_batch_size": 4, "max_seq_length": 32}
    flags |= {"spm_model_file": english_model_file, "vocab_file": english_model_file.with_suffix(".vocab")}
    run_as_user("run_classifier.py", do_train=True, **flags)
    texts = [text for text, _ in REVIEWS]
    predictor = albert_tf.load(tmp_path / "classified")
    expected = predictor.predict(texts)
    assert predictor.tokenizer.identity == english_tokenizer.identity

    run_as_user("convert_checkpoint.py", input_path=run, output_dir=tmp_path / "published")
    assert load_tokenizer(tmp_path / "published").identity == english_tokenizer.identity
    for folder in ("classified", "published"):
        run_as_user("export_model.py", model_dir=tmp_path / folder, output_dir=tmp_path / "exports" / folder)
    found = served(tmp_path / "exports" / "classified" / "1", "serving_default", text=texts)
    assert found["label"].numpy().astype(str).tolist() == [each["label"] for each in expected]
    probabilities = [max(each["probabilities"].values()) for each in expected]
    np.testing.assert_allclose(found["probability"], probabilities, atol=1e-4)

    exported = tmp_path / "exports" / "published" / "1"
    text = "The model, in 2010, cost 16, Café."
    pieces = served(exported, "pieces", text=[text])
    encoding = english_tokenizer.encode(text)
    assert [piece.decode() for piece in pieces["pieces"].numpy()[0]] == encoding.tokens
    assert list(zip(pieces["begins"].numpy()[0], pieces["ends"].numpy()[0])) == encoding.offsets
    guesses = served(exported, "fill_mask", text=["the [MASK] is good", "no mask"])["guesses"].numpy()
    assert guesses.shape == (2, 1, 10) and guesses[0, 0, 0].decode() in english_tokenizer.vocabulary
    assert load_tokenizer(exported / "assets.extra").identity == english_tokenizer.identity


@pytest.fixture
def english_checkpoint(english_config, english_tokenizer, tmp_path) -> pathlib.Path:
    """A folder of a model with random weights, its config and SentencePiece tokenizer."""
    return write_model(tmp_path / "checkpoint", AlbertForPreTraining(english_config), english_tokenizer)


@pytest.mark.usefixtures("without_training")
def test_model_without_settings_beside_a_checkpoint_is_used_as_flags_say(run_as_user, english_checkpoint, tmp_path):
    (english_checkpoint / "tokenizer.json").unlink()
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("document\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in REVIEWS * 4))
    flags = {"task_name": "tsv", "data_dir": tmp_path, "init_checkpoint": english_checkpoint, "do_train": True}
    run_as_user("run_classifier.py", output_dir=tmp_path / "run", strip_accents=False, **flags)
    settings = load_tokenizer(tmp_path / "run").to_dict()
    assert settings["lower_case"] and settings["split_number_commas"] and not settings["strip_accents"]


@pytest.mark.slow
def test_data_says_words_and_starts_them_at_spaces(create, english_tokenizer, run_script, tmp_path):
    assert create(held_out_fraction=0).code == 0
    starts = pieces = 0
    for record in tf.data.TFRecordDataset(str(tmp_path / "data" / "train.tfrecord")):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        ids, boundary = (features[name].int64_list.value for name in ("input_ids", "token_boundary"))
        for piece, is_start in zip((english_tokenizer.vocabulary.pieces[each] for each in ids), boundary):
            if piece.startswith("▁"):
                assert is_start, piece
            starts, pieces = starts + is_start, pieces + (piece != "<pad>")
    assert 0.4 < starts / pieces < 0.9
    inspected = run_script("create_pretraining_data.py", inspect=tmp_path / "data" / "train.tfrecord")
    assert inspected.code == 0 and "▁" in inspected.output


@pytest.mark.slow
def test_several_workers_build_the_same_data(create, tmp_path):
    assert create().code == 0
    paths = sorted((tmp_path / "data").iterdir())
    before = {path.name: path.read_bytes() for path in paths}
    assert create(num_workers=2, output_file=tmp_path / "other" / "train.tfrecord").code == 0
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}
    assert {"spiece.model", "tokenizer.json", "train.tfrecord"} <= before.keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spm_model_file": "a.model"}, "can't read the SentencePiece model a.model: no such file"),
        ({"spm_model_file": "{corpus}"}, "corpus.txt is not a SentencePiece model; name the .model file that"),
        ({"vocab_file": "{corpus}"}, "corpus.txt does not list the pieces of --spm_model_file="),
        (
            {"spm_model_file": None, "vocab_file": "{model}"},
            "30k-clean.model is a file of SentencePiece; name its .model in",
        ),
        ({"spm_model_file": None, "vocab_file": None}, "--vocab_file is missing; see --help"),
        ({"split_punctuation": False}, "--split_punctuation does not apply to the SentencePiece model"),
    ],
)
def test_bad_flags_end_in_a_sentence(create, english_model_file, tmp_path, changes, message):
    places = {
        "{corpus}": tmp_path / "corpus.txt",
        "{model}": english_model_file,
        "{vocab}": english_model_file.with_suffix(".vocab"),
    }
    result = create(**{name: places.get(value, value) for name, value in changes.items()})
    assert result.code == 1 and message in result.errors and result.errors.count("\n") == 1
    assert not (tmp_path / "data" / "manifest.json").exists()


@pytest.mark.slow
def test_flag_that_contradicts_the_settings_is_refused(create, english_tokenizer, tmp_path):
    english_tokenizer.save(tmp_path / "model")
    path = tmp_path / "model" / "spiece.model"
    result = create(spm_model_file=path, strip_accents=False)
    assert result.code == 1 and f"--strip_accents=False contradicts {tmp_path}/model/tokenizer.json" in result.errors
    assert create(spm_model_file=path, output_file=tmp_path / "model" / "train.tfrecord", strip_accents=True).code == 0


def test_settings_of_flags_travel_with_the_data(create, tmp_path):
    assert create(do_lower_case=False, strip_accents=False, split_number_commas=False, vocab_file=None).code == 0
    settings = load_tokenizer(tmp_path / "data").to_dict()
    assert {value for value in settings.values() if type(value) is bool} == {False}
    assert "is there already" in create(overwrite=False).errors
