"""`albert_tf.pretrain` computes what the commands that build data and pre-train compute."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import varied_data

import albert_tf
from albert_tf.base.errors import InputError

TEXTS = ["\n".join(varied_data.text_of(8 * document + line) for line in range(8)) for document in range(30)]
# Of the model, of the data, and of the training.
TINY = {"max_seq_length": 32, "num_train_steps": 4, "num_warmup_steps": 1, "train_batch_size": 4}


@pytest.fixture(scope="module")
def vocabulary(sample_tokenizer, tmp_path_factory):
    """A folder with a tokenizer."""
    folder = tmp_path_factory.mktemp("vocabulary")
    sample_tokenizer.save(str(folder))
    return str(folder)


@pytest.fixture
def pretrain(vocabulary, tiny_config, tmp_path):
    """Pre-trains a tiny model on `TEXTS` in a folder of the test's own."""

    def run(data=TEXTS, config=tiny_config, output_dir=tmp_path / "run", **settings):
        return albert_tf.pretrain(data, config, output_dir, **{"vocabulary": vocabulary, **TINY, **settings})

    return run


def weights_of(folder):
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith("model/")}


@pytest.mark.slow
def test_pretrain_trains_what_the_commands_train(pretrain, vocabulary, config_file, tmp_path, run_script, capfd):
    model = pretrain()
    assert len(model.fill_mask(["영화가 [MASK]."], top_k=3)[0][0]) == 3
    told = capfd.readouterr().out
    assert "30 documents, " in told and "unigram entropy of the held-out text: " in told
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n\n".join(TEXTS) + "\n", encoding="utf-8")
    data, run = tmp_path / "data", tmp_path / "commanded"
    lengths = {"max_seq_length": TINY["max_seq_length"]}
    run_script(
        "create_pretraining_data.py",
        input_file=corpus,
        output_file=data / "train.tfrecord",
        vocab_file=pathlib.Path(vocabulary) / "vocab.txt",
        held_out_fraction=0.3,
        **lengths,
    ).succeeded()
    assert (data / "train.tfrecord").read_bytes() == (tmp_path / "run" / "data" / "train.tfrecord").read_bytes()
    flags = {name: value for name, value in TINY.items() if name not in lengths}
    run_script(
        "run_pretraining.py",
        input_file=data / "train.tfrecord",
        albert_config_file=config_file,
        output_dir=run,
        do_eval=True,
        **flags,
    ).succeeded()
    for name, value in weights_of(run).items():
        np.testing.assert_array_equal(weights_of(tmp_path / "run")[name], value, err_msg=name)
    # The same call finds all of it finished.
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.index")}
    pretrain()
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.index")} == before
    refused = (
        ({"data": TEXTS[::-1]}, "run holds a model of other texts; choose another `output_dir`"),
        ({"learning_rate": 0.5}, "`learning_rate` is 0.5, and was 0.00176"),
        ({"model": str(run)}, "`init_checkpoint` is .*/commanded/.*, and was None"),
    )
    for changes, message in refused:
        with pytest.raises(InputError, match=message):
            pretrain(**changes)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.index")} == before
    # Shards are taken as they are, by the same seed to the same weights.
    pretrain(data, output_dir=tmp_path / "again")
    for name, value in weights_of(run).items():
        np.testing.assert_array_equal(weights_of(tmp_path / "again")[name], value, err_msg=name)


@pytest.mark.slow
def test_other_objectives_models_and_vocabularies(pretrain, tiny_config, tmp_path, capsys):
    few = {"num_train_steps": 1, "num_warmup_steps": 0}
    small = {**tiny_config.to_dict(), "vocab_size": 77}
    first = pretrain(config=small, objective="electra", generator_size=0.5, **few)
    assert first.find_replaced(["영화가 좋다"])
    assert "the config has a vocab_size of 77, and the vocabulary " in capsys.readouterr().out
    settings = json.loads((tmp_path / "run" / "run_settings.json").read_text(encoding="utf-8"))
    assert (settings["objective"], settings["generator_size"]) == ("electra", 0.5)
    pretrain(config=None, output_dir=tmp_path / "further", model=str(tmp_path / "run"), objective="roberta", **few)
    settings = json.loads((tmp_path / "further" / "run_settings.json").read_text(encoding="utf-8"))
    assert settings["init_checkpoint"]["path"].startswith(str(tmp_path / "run"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rat": 1e-4}, "`learning_rat` is not a setting of a training; did you mean learning_rate?"),
        ({"learning_rate": "5e-5"}, "`learning_rate` must be a number above 0. Received: 5e-5"),
        ({"masked_lm_prob": 1.5}, "`masked_lm_prob` must be a number, at least 0.001 and at most 0.9. Received: 1.5"),
        ({"steps": 8}, "`steps` is called num_train_steps here"),
        ({"input_file": "x"}, "`input_file` is not a setting of a training"),
        ({"objective": "bart"}, "`objective` must be one of albert, bert, "),
        ({"verbose": 3}, "`verbose` must be a whole number from 0 to 2"),
        ({"data": 5}, r"`data` must be a list of texts, or the path of files or shards. Received: 5 \(int\)"),
        ({"data": []}, "`data` must be a list of texts"),
        ({"config": "nowhere.json"}, "nowhere.json"),
        ({"model": "nowhere"}, "`model`: no checkpoint at nowhere"),
        ({"vocabulary": "nowhere"}, "`vocabulary=nowhere` holds no tokenizer.json; name a folder that has one"),
        ({"max_seq_length": 4096}, "`max_seq_length`.*4096"),
    ],
)
def test_mistakes_are_named_and_leave_no_run(pretrain, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        pretrain(**changes)
    assert not (tmp_path / "run" / "run_settings.json").exists()
