"""Folders of transformers as --init_checkpoint: converted once, kept with the run, told apart by what they hold."""

import json
import shutil

import pytest
from runs import write_model

import albert_tf
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.modeling import AlbertForPreTraining

# ELECTRA's encoder, and RoBERTa's where [PAD] has the id 0, as in the sample's vocabulary.
FAMILIES = {
    "electra": {"pooler": False, "classification_head": "dense_gelu"},
    "roberta": {"type_vocab_size": 1, "position_offset": 1, "classification_head": "dense_tanh", "embedding_size": 16},
}


@pytest.fixture(scope="module")
def write_theirs(tiny_config, sample_tokenizer, tmp_path_factory):
    """Writes a model with random weights as transformers does, and returns its folder."""

    def write(family):
        folder = tmp_path_factory.mktemp(family)
        config = tiny_config.replace(model_type=family, sharing="none", hidden_act="gelu_erf", **FAMILIES[family])
        write_model(folder / "ours", AlbertForPreTraining(config), sample_tokenizer)
        convert_checkpoint("albert_tf", "huggingface", str(folder / "ours"), str(folder / "theirs"))
        return folder / "theirs"

    return write


@pytest.mark.slow
def test_model_of_transformers_is_fine_tuned_gone_on_with_and_asked(classify, write_theirs, tmp_path):
    theirs = write_theirs("electra")
    (theirs / "README.md").write_text("---\nlicense: cc-by-sa-4.0\n---\n")
    flags = {"init_checkpoint": theirs, "do_train": True}
    result = classify(**flags).succeeded()
    run = tmp_path / "run"
    assert f"wrote {run}/converted_model" in result.output
    assert json.loads((run / "albert_config.json").read_text())["model_type"] == "electra"
    card = (run / "README.md").read_text()
    assert "tags: [electra, tensorflow]" in card and 'license: "cc-by-sa-4.0"' in card

    result = classify(**flags, license="mit")
    assert result.code == 0 and "converted_model:" not in result.output
    assert result.output.count("warning: the model that this one started from is under cc-by-sa-4.0") == 1
    (run / "converted_model" / "converted_from.json").unlink()  # killed before it was written
    result = classify(**flags)
    assert result.code == 0 and f"wrote {run}/converted_model" in result.output
    predictions = albert_tf.load(run).predict(["정말 재미있다", "별로"])
    assert all(set(prediction["probabilities"]) == {"0", "1"} for prediction in predictions)

    settings = json.loads((theirs / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps({**settings, "initializer_range": 0.5}))
    result = classify(**flags)
    assert result.code == 1
    assert f"{run}/converted_model was converted from another model than {theirs} holds now" in result.errors


@pytest.mark.slow
def test_what_can_not_be_converted_leaves_no_run(classify, write_theirs, tmp_path):
    theirs = tmp_path / "theirs"
    shutil.copytree(write_theirs("electra"), theirs)
    settings = json.loads((theirs / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps({**settings, "model_type": "funnel"}))
    result = classify(init_checkpoint=theirs, do_train=True)
    assert result.code == 1 and "model_type=funnel can't be converted" in result.errors
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_vocabulary_of_transformers_is_read_as_the_model_beside_it_does(
    run_script, write_theirs, sample_corpus, without_training, tmp_path
):
    theirs = tmp_path / "theirs"
    shutil.copytree(write_theirs("roberta"), theirs)
    for name in ("albert_tf_tokenizer.json", "tokenizer.json"):
        (theirs / name).unlink()
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": False}
    (theirs / "tokenizer_config.json").write_text(json.dumps(settings))
    data = {
        "input_file": sample_corpus[:2],
        "vocab_file": theirs / "vocab.txt",
        "output_file": tmp_path / "data" / "train.tfrecord",
        "max_seq_length": 32,
        "objective": "roberta",
        "held_out_fraction": 0,
    }
    result = run_script("create_pretraining_data.py", do_lower_case=False, **data)
    assert result.code == 1 and "do_lower_case=False contradicts the tokenizer's files" in result.errors
    assert run_script("create_pretraining_data.py", **data).code == 0
    tokenizer = json.loads((tmp_path / "data" / "tokenizer.json").read_text())
    assert tokenizer["form"] == "bert" and tokenizer["lower_case"] is True
    result = run_script(
        "run_pretraining.py",
        input_file=tmp_path / "data" / "train.tfrecord",
        init_checkpoint=theirs,
        output_dir=tmp_path / "run",
        train_batch_size=4,
        num_train_steps=1,
        num_warmup_steps=0,
    ).finished()
    assert "new, from random weights: sentence_order_head\n" in result.output
    assert "the vocabulary is not" not in result.output
