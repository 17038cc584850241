"""A causal model from blocks of documents to labels, an export and what it can't be asked."""

import json

import numpy as np
import pytest
from runs import read_results

import albert_tf
from albert_tf.base.errors import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gpt_file(tiny_config, write_config):
    """Path of the config of a tiny GPT."""
    return write_config(
        tiny_config.replace(
            is_causal=True,
            norm_position="pre",
            language_model_head="tied",
            embedding_size=16,
            type_vocab_size=0,
            pooler=False,
            hidden_dropout_prob=0.1,
        )
    )


@pytest.fixture(scope="module")
def blocks(build_shards):
    """A folder of shards of blocks."""
    return build_shards(32, 5, packing="document_blocks", short_seq_prob=0.0)


@pytest.fixture
def on_blocks(blocks, gpt_file):
    """Flags that say so."""
    return {"input_file": blocks / "train.tfrecord", "albert_config_file": gpt_file}


@pytest.fixture
def trained(pretrain, on_blocks, folder_of_run):
    """The folder of a causal run, evaluated; not to be changed."""
    if not folder_of_run.exists():
        result = pretrain(**on_blocks, output_dir=folder_of_run).succeeded()
        assert "(a causal_lm_loss that needs no context)" in result.output
    return folder_of_run


def test_bits_per_character_are_those_of_the_whole_held_out_text(trained, blocks):
    results = read_results(trained)
    split = json.loads((blocks / "manifest.json").read_text())["splits"]["held_out"]
    # What is predicted is each piece of the text, and the end of each document.
    num_predicted = split["tokens"] + split["documents"]
    bits = results["causal_lm_loss"] / np.log(2) * num_predicted
    assert results["bits_per_character"] == pytest.approx(bits / split["characters"], rel=1e-5)
    assert results["loss"] == results["causal_lm_loss"] and 0 <= results["causal_lm_accuracy"] < 1
    assert not (trained / "untrained.json").exists() or not json.loads((trained / "untrained.json").read_text())


def test_labels_are_read_off_the_last_piece_and_exported(trained, classify, run_script, tmp_path):
    classify(do_train=True, init_checkpoint=trained, output_dir=tmp_path / "classifier").succeeded()
    settings = json.loads((tmp_path / "classifier" / "run_settings.json").read_text())
    assert settings["pooling"] == "last"
    model = albert_tf.load(tmp_path / "classifier")
    texts = ["정말 재미있는 영화", "별로"]
    expected = model.predict(texts)
    run_script("export_model.py", model_dir=tmp_path / "classifier", output_dir=tmp_path / "exported").finished()
    for found, each in zip(albert_tf.load(tmp_path / "exported").predict(texts), expected):
        assert found["label"] == each["label"]
        assert found["probabilities"] == pytest.approx(each["probabilities"], abs=1e-5)
    result = classify(do_train=True, init_checkpoint=trained, pooling="first", output_dir=tmp_path / "blind")
    blind = " reads the first piece, which sees nothing of the text (is_causal=true); use "
    assert result.code == 1 and result.errors == f"error: --pooling=first{blind}--pooling=last\n"
    with pytest.raises(InputError) as error:
        albert_tf.fit(texts, ["1", "0"], model=trained, pooling="first", output_dir=tmp_path / "blind")
    assert str(error.value) == f"`pooling=first`{blind}`pooling=last`"


def test_causal_model_has_no_masks_to_fill(trained):
    model = albert_tf.load(trained)
    assert model.abilities == ("generate", "score", "choose", "encode", "similarity")
    with pytest.raises(InputError) as error:
        model.fill_mask(["오늘은 [MASK]"])
    assert str(error.value) == (
        f"{trained} was not pre-trained to fill in what is missing, and so it has no fill_mask; it has generate, "
        "score, choose, encode, similarity"
    )
    assert np.isfinite(model.encode(["오늘은 맑다"], pooling="last")).all()
    assert -100 < model.score(["오늘은 맑다"])[0]["score"] < 0
    card = (trained / "README.md").read_text()
    assert "pipeline_tag: text-generation" in card and "fill_mask" not in card


def test_vectors_of_texts_are_not_read_off_the_piece_that_sees_none(trained, run_script, tmp_path):
    run_script("export_model.py", model_dir=trained, output_dir=tmp_path / "exported").finished()
    texts = ["오늘은 맑다", "별로"]
    for model in (albert_tf.load(trained), albert_tf.load(tmp_path / "exported")):
        with pytest.raises(InputError) as error:
            model.encode(texts, pooling="first")
        told = "`pooling=first` reads a piece that in a model of is_causal=true sees no text; use `pooling=last`"
        assert str(error.value) == told
        for pooling in ("last", "mean"):
            first, second = model.encode(texts, pooling=pooling)
            assert (first != second).any()
