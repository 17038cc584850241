"""`albert_tf.load` takes any folder, and what comes of it says what it has and has not."""

import json
import shutil

import numpy as np
import pytest

import albert_tf
from albert_tf.asking.model import ABILITIES, Model
from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.serving.exporting import export_model

SHIPPED = "models/albert_ko_small"
TEXTS = ["정말 재밌어요", "", "배우들의 연기가 훌륭하고 " * 8, "시간이 아깝다 ㅠㅠ"]
MASKED = ["이 영화 정말 [MASK]", "[MASK] 연기가 정말 [MASK] 좋았다"]


@pytest.fixture(scope="module")
def shipped():
    return albert_tf.load()


def check_same_guesses(found, expected):
    for of_text, of_text_expected in zip(found, expected, strict=True):
        for guesses, guesses_expected in zip(of_text, of_text_expected, strict=True):
            assert [each["text"] for each in guesses] == [each["text"] for each in guesses_expected]
            probabilities = [[each["probability"] for each in list_] for list_ in (guesses, guesses_expected)]
            np.testing.assert_allclose(*probabilities, rtol=1e-3)


def test_shipped_model_is_found_from_anywhere(tmp_path, monkeypatch, shipped):
    monkeypatch.chdir(tmp_path)
    assert albert_tf.load(SHIPPED).abilities == shipped.abilities
    assert shipped.abilities == ("fill_mask", "score", "choose", "encode", "similarity")


@pytest.mark.slow
def test_similarity_is_the_cosine_of_the_vectors(shipped):
    pairs = [("정말 재밌어요", "진짜 재미있다"), ("비가 온다", "비가 온다"), ("", "비가 온다")]
    first, second = (shipped.encode(list(texts)).astype(float) for texts in zip(*pairs))
    expected = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    with pytest.warns(UserWarning, match="not taught which texts are alike"):
        found = shipped.similarity(pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.dtype == np.float32 and shipped.similarity([]).shape == (0,)
    with pytest.raises(InputError, match="input 1 must be a tuple of two strings"):
        shipped.similarity([("가", "나"), "다"])


def test_only_vectors_that_were_taught_are_compared_without_a_warning(recwarn):
    model = albert_tf.load(SHIPPED)
    model.learnt_to_compare = True
    model.similarity([("비가 온다", "비가 내린다")])
    assert not [warning for warning in recwarn if "taught" in str(warning.message)]


@pytest.mark.slow
def test_export_of_a_pretrained_model_is_asked_as_the_folder_is(exported_shipped, shipped):
    found = albert_tf.load(exported_shipped)
    assert found.abilities == ("fill_mask", "encode", "similarity")
    check_same_guesses(found.fill_mask(MASKED, top_k=3), shipped.fill_mask(MASKED, top_k=3))
    for pooling in ("mean", "first", "last"):
        np.testing.assert_allclose(found.encode(TEXTS, pooling), shipped.encode(TEXTS, pooling), atol=2e-5)
    np.testing.assert_allclose(found.similarity([TEXTS[:2]]), shipped.similarity([TEXTS[:2]]), atol=1e-5)
    with pytest.warns(UserWarning, match="longer than the 128 pieces"):
        found.encode(["좋다 " * 200, "좋다"])
    assert found.num_cut == 1
    for ask, message in (
        (lambda: found.predict(["좋다"]), "1, an export, has no predict; it has fill_mask, encode, similarity"),
        (lambda: found.fill_mask(["좋다"]), r"input 0 has no \[MASK\]"),
        (lambda: found.fill_mask(["좋다 [MASK]"], top_k=11), "top_k must be a whole number from 1 to 10. "),
        (lambda: found.fill_mask(["좋다 " * 200 + "[MASK]"]), r"input 0: a \[MASK\] lies beyond the 128 pieces"),
    ):
        with pytest.raises(InputError, match=message):
            ask()


@pytest.mark.slow
def test_folder_of_transformers_is_asked_as_the_one_it_was_made_of(tmp_path, shipped):
    pytest.importorskip("safetensors")
    folder = tmp_path / "theirs"
    convert_checkpoint("albert_tf", "huggingface", SHIPPED, str(folder))
    found = albert_tf.load(folder)
    check_same_guesses(found.fill_mask(MASKED), shipped.fill_mask(MASKED))
    np.testing.assert_allclose(found.encode(TEXTS), shipped.encode(TEXTS), atol=1e-5)
    with pytest.raises(InputError, match=f"{folder} was pre-trained and not fine-tuned"):
        found.predict(["좋다"])
    (folder / "albert_tf_tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "MecabTokenizer"}')
    with pytest.raises(InputError, match=f"{folder}: no tokenizer: {folder}/tokenizer_config.json"):
        albert_tf.load(folder)


@pytest.mark.slow
def test_encoder_alone_gives_vectors_and_no_guesses(tmp_path, shipped):
    """As `AlbertModel.save_pretrained` of transformers leaves it, without heads and their names."""
    safetensors = pytest.importorskip("safetensors.numpy")
    convert_checkpoint("albert_tf", "huggingface", SHIPPED, str(tmp_path / "whole"))
    shutil.copytree(tmp_path / "whole", tmp_path / "bare")
    weights = safetensors.load_file(tmp_path / "bare" / "model.safetensors")
    bare = {name.removeprefix("albert."): value for name, value in weights.items() if name.startswith("albert.")}
    safetensors.save_file(bare, tmp_path / "bare" / "model.safetensors")
    config = json.loads((tmp_path / "bare" / "config.json").read_text())
    (tmp_path / "bare" / "config.json").write_text(json.dumps({**config, "architectures": ["AlbertModel"]}))
    found = albert_tf.load(tmp_path / "bare")
    np.testing.assert_allclose(found.encode(TEXTS), shipped.encode(TEXTS), atol=1e-5)
    assert found.abilities == ("encode", "similarity")
    with pytest.raises(InputError, match="bare has no masked_lm_head, which guesses missing pieces; it has encode, "):
        found.fill_mask(MASKED)
    convert_checkpoint("huggingface", "albert_tf", str(tmp_path / "bare"), str(tmp_path / "ours"))
    export_model(tmp_path / "ours", tmp_path / "served")
    assert albert_tf.load(tmp_path / "served").abilities == ("encode", "similarity")


def test_every_ability_is_a_method():
    assert all(callable(getattr(Model, name)) for name in ABILITIES)


def test_model_says_what_it_is(shipped):
    assert repr(shipped).startswith("<Model: ") and "has fill_mask, score, choose, encode, similarity>" in repr(shipped)


def test_table_is_no_list_of_texts(shipped):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"text": ["가", "나"], "label": [0, 1]})
    with pytest.raises(InputError, match="that is a table; pass a column of it, such as table"):
        shipped.encode(table)
    assert shipped.encode(table["text"]).shape == (2, 128)


def test_package_lists_what_it_offers_and_prints_nothing(capfd):
    assert {"load", "fit", "tokenization", "modeling"} <= set(dir(albert_tf))
    assert all(hasattr(albert_tf, name) for name in dir(albert_tf))
    assert "albert_tf.load()" in albert_tf.__doc__
    with pytest.raises(AttributeError, match="module 'albert_tf' has no attribute 'lode'"):
        albert_tf.lode  # noqa: B018
