"""Which pieces of a text a discriminator takes for replaced ones: in Python, and as its export answers."""

import json

import numpy as np
import pytest
import tensorflow as tf
from asked_models import MAX_SEQ_LENGTH, answers_of, features_of
from tiny_config import tiny_config

import albert_tf
from albert_tf.asking.answers import rows_of
from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.replaced_tokens import AlbertForReplacedTokens
from albert_tf.serving.exporting import export_model
from albert_tf.serving.loading import TrainedModel
from albert_tf.training.run_folder.guard import SETTINGS_FILE

TEXTS = ["오늘은 맑다", "정말 재미있고 배우들의 연기도 훌륭한 영화였다. " * 3, "", "ㅋㅋㅋㅋ ＡＢＣ", " \t "]


@pytest.fixture(scope="module")
def asked(sample_tokenizer):
    tf.keras.utils.set_random_seed(2)
    model = AlbertForReplacedTokens(tiny_config(len(sample_tokenizer), initializer_range=0.5))
    return TrainedModel(model, sample_tokenizer, MAX_SEQ_LENGTH, None, "model.ckpt-1", {}, fills_masks=False)


@pytest.fixture(scope="module")
def folder(asked, tmp_path_factory):
    """A folder as run_pretraining.py leaves one, as far as it is asked."""
    folder = tmp_path_factory.mktemp("electra")
    values = {f"model/{name}": variable.numpy() for name, variable in named_variables(asked.model).items()}
    write_checkpoint(str(folder / "model.ckpt-1"), values)
    (folder / "albert_config.json").write_text(json.dumps(asked.config.to_dict()))
    asked.tokenizer.save(folder)
    (folder / SETTINGS_FILE).write_text('{"command": "run_pretraining.py", "objective": "electra"}')
    return folder


def test_graph_gives_each_piece_what_the_head_says_of_it(asked, sample_tokenizer):
    outputs = answers_of(asked, "find_replaced")(TEXTS)
    features = features_of(TEXTS, sample_tokenizer)
    expected = 1 / (1 + np.exp(-asked.model(features)["replaced_token_logits"].numpy().astype(np.float64)))
    pieces = sample_tokenizer.vocabulary.pieces
    for number, row in enumerate(rows_of(outputs)):
        length = features["input_mask"][number].sum()
        assert row["pieces"] == [pieces[each] for each in features["input_ids"][number, 1 : length - 1]]
        np.testing.assert_allclose(row["probabilities"], expected[number, 1 : length - 1], rtol=1e-4, atol=1e-6)
    assert not outputs["probabilities"][2].any() and outputs["lengths"].tolist()[2] == 0
    assert outputs["lengths"][1] == MAX_SEQ_LENGTH - 2
    assert np.ptp(outputs["probabilities"][1]) > 0.1


def test_folder_and_its_export_name_the_characters_of_each_piece(folder, tmp_path):
    model = albert_tf.load(folder)
    export_model(folder, tmp_path / "served")
    served = albert_tf.load(tmp_path / "served")
    assert model.abilities == served.abilities == ("find_replaced", "encode", "similarity")
    expected = model.find_replaced(TEXTS)
    for text, pieces in zip(TEXTS, expected):
        assert all(piece["text"] == text[piece["begin"] : piece["end"]] for piece in pieces)
        assert all(0 < piece["probability"] < 1 for piece in pieces)
    assert "".join(piece["text"] for piece in expected[0]) == "오늘은맑다" and expected[2] == expected[4] == []
    for found, pieces in zip(served.find_replaced(TEXTS), expected):
        assert [{**piece, "probability": None} for piece in found] == [{**each, "probability": None} for each in pieces]
        np.testing.assert_allclose(
            [piece["probability"] for piece in found], [each["probability"] for each in pieces], rtol=1e-4, atol=1e-6
        )
    assert model.find_replaced([]) == served.find_replaced([]) == []


def test_text_with_a_mask_is_refused(folder):
    with pytest.raises(InputError, match=r"input 1 has a \[MASK\], which this model has never seen"):
        albert_tf.load(folder).find_replaced(["맑다", "오늘은 [MASK]"])


def test_discriminator_without_its_head_says_so(asked):
    headless = asked.__class__(
        asked.model, asked.tokenizer, MAX_SEQ_LENGTH, None, "", {}, frozenset(["replaced_token_head/dense/kernel"])
    )
    assert "find_replaced" not in headless.abilities and "find_replaced" in asked.abilities
    assert headless.why_not("find_replaced") == "has no replaced_token_head, which finds replaced pieces"
