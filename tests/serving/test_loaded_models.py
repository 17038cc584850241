"""`albert_tf.load` takes any folder; what comes of it answers as the model itself, and says what it has not."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.asking.model import ABILITIES, Model
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.finetuning import Classification, runner
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.serving import loading
from albert_tf.serving.exporting import export_model
from albert_tf.training import RunSettings, TrainingRun

SHIPPED = "models/albert_ko_small"
TEXTS = ["정말 재밌어요", "", "배우들의 연기가 훌륭하고 " * 8, "시간이 아깝다 ㅠㅠ"]
MASKED = ["이 영화 정말 [MASK]", "[MASK] 연기가 정말 [MASK] 좋았다"]


@pytest.fixture(scope="module")
def model():
    return albert_tf.load()


def check_same_guesses(found, expected):
    for of_text, of_text_expected in zip(found, expected, strict=True):
        for guesses, guesses_expected in zip(of_text, of_text_expected, strict=True):
            assert [each["text"] for each in guesses] == [each["text"] for each in guesses_expected]
            probabilities = [[each["probability"] for each in list_] for list_ in (guesses, guesses_expected)]
            np.testing.assert_allclose(*probabilities, rtol=1e-3)


def test_shipped_model_is_found_from_anywhere(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    assert albert_tf.load(SHIPPED).abilities == model.abilities
    assert model.abilities == ("fill_mask", "score", "choose", "encode", "similarity")


@pytest.mark.slow
def test_similarity_is_the_cosine_of_the_vectors(model):
    pairs = [("정말 재밌어요", "진짜 재미있다"), ("비가 온다", "비가 온다"), ("", "비가 온다")]
    first, second = (model.encode(list(texts)).astype(float) for texts in zip(*pairs))
    expected = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    with pytest.warns(UserWarning, match="not taught which texts are alike"):
        found = model.similarity(pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.dtype == np.float32 and model.similarity([]).shape == (0,)
    with pytest.raises(InputError, match="input 1 must be a tuple of two strings"):
        model.similarity([("가", "나"), "다"])


def test_only_vectors_that_were_taught_are_compared_without_a_warning(recwarn):
    model = albert_tf.load(SHIPPED)
    model.learnt_to_compare = True
    model.similarity([("비가 온다", "비가 내린다")])
    assert not [warning for warning in recwarn if "taught" in str(warning.message)]


@pytest.mark.slow
def test_export_of_a_pretrained_model_is_asked_as_the_folder_is(exported_shipped, model):
    found = albert_tf.load(exported_shipped)
    assert found.abilities == ("fill_mask", "encode", "similarity")
    check_same_guesses(found.fill_mask(MASKED, top_k=3), model.fill_mask(MASKED, top_k=3))
    for pooling in ("mean", "first", "last"):
        np.testing.assert_allclose(found.encode(TEXTS, pooling), model.encode(TEXTS, pooling), atol=2e-5)
    np.testing.assert_allclose(found.similarity([TEXTS[:2]]), model.similarity([TEXTS[:2]]), atol=1e-5)
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
def test_encoder_alone_gives_vectors_and_no_guesses(tmp_path, model):
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
    np.testing.assert_allclose(found.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    assert found.abilities == ("encode", "similarity")
    with pytest.raises(InputError, match="bare has no masked_lm_head, which guesses missing pieces; it has encode, "):
        found.fill_mask(MASKED)
    convert_checkpoint("huggingface", "albert_tf", str(tmp_path / "bare"), str(tmp_path / "ours"))
    export_model(tmp_path / "ours", tmp_path / "served")
    assert albert_tf.load(tmp_path / "served").abilities == ("encode", "similarity")


def test_every_ability_is_a_method():
    assert all(callable(getattr(Model, name)) for name in ABILITIES)


def test_model_says_what_it_is(model):
    assert repr(model).startswith("<Model: ") and "has fill_mask, score, choose, encode, similarity>" in repr(model)


def test_table_is_no_list_of_texts(model):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"text": ["가", "나"], "label": [0, 1]})
    with pytest.raises(InputError, match="that is a table; pass a column of it, such as table"):
        model.encode(table)
    assert model.encode(table["text"]).shape == (2, 128)


def test_package_lists_what_it_offers_and_prints_nothing(capfd):
    assert {"load", "fit", "tokenization", "modeling"} <= set(dir(albert_tf))
    assert all(hasattr(albert_tf, name) for name in dir(albert_tf))
    assert "albert_tf.load()" in albert_tf.__doc__
    with pytest.raises(AttributeError, match="module 'albert_tf' has no attribute 'lode'"):
        albert_tf.lode  # noqa: B018


OPINIONS = ["좋다", "정말 재미있고 배우들의 연기도 훌륭한 영화였다", "나쁘다", "", "그저 그렇다"]
SETTINGS = RunSettings(num_train_steps=2, train_batch_size=2, learning_rate=0.01, optimizer="adamw", eval_batch_size=2)


def finetune(folder, task, lines, tokenizer):
    """Trains a task for two steps on a file of these lines, and returns what the run itself predicts."""
    (folder / "train.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    tf.keras.utils.set_random_seed(1)
    run = TrainingRun(folder / "run", task, task.make_model(), SETTINGS, tokenizer)
    file = runner.load_file(task, str(folder / "train.tsv"), tokenizer, 24)
    assert runner.train(run, file)
    return runner.predict(run, file, 2)


@pytest.fixture
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.mark.slow
def test_labels_are_those_that_the_run_predicts(tmp_path, config, sample_tokenizer):
    lines = [["document", "label"], *([text, "ab"[number % 2]] for number, text in enumerate(OPINIONS))]
    expected = finetune(tmp_path, Classification(config, ("b", "a")), lines, sample_tokenizer)
    predictor = albert_tf.load(tmp_path / "run")
    found = predictor.predict(OPINIONS, batch_size=2)
    assert [prediction["label"] for prediction in found] == [prediction["label"] for prediction in expected]
    assert [list(prediction["probabilities"]) for prediction in found] == [["b", "a"]] * len(OPINIONS)
    for prediction, other in zip(found, expected):
        np.testing.assert_allclose(
            list(prediction["probabilities"].values()), list(other["probabilities"].values()), rtol=1e-5
        )
    assert predictor.predict([]) == []
    # Half a surrogate pair is no character.
    assert predictor.predict(["좋\ud800다\udc00"]) == predictor.predict(["좋다"])
    for inputs, message in (
        ("좋다", "pass a list of inputs, even for a single one. Received: '좋다'"),
        (None, "pass a list of inputs, even for a single one. Received: None (NoneType)"),
        ({"text": "좋다"}, "pass a list of inputs, even for a single one. Received: "),
        ([("좋다", "나쁘다")], "input 0 must be a string. Received: "),
        (["좋다", None], "input 1 must be a string. Received: None (NoneType)"),
        (["좋다", float("nan")], "input 1 must be a string. Received: nan (float)"),
    ):
        with pytest.raises(InputError) as error:
            predictor.predict(inputs)
        assert str(error.value).startswith(message)
    with pytest.warns(UserWarning, match="longer than the 24 pieces that the model reads, and their ends are left out"):
        predictor.predict(["좋다 " * 30, "좋다", "나쁘다 " * 40])
    assert predictor.num_cut == 2


def test_folder_without_a_finetuned_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no fine-tuned model with its run_settings"):
        albert_tf.load(tmp_path)
    with pytest.raises(InputError, match="nowhere: there is no such folder; name the folder of a"):
        albert_tf.load(tmp_path / "nowhere")
    (tmp_path / "run_settings.json").write_text('{"command": "run_pretraining", "objective": "AlbertPretraining"}')
    with pytest.raises(InputError, match=r"albert_tf.load: no checkpoint at "):
        albert_tf.load(tmp_path)


def test_folder_around_several_trials_names_the_best_one(tmp_path):
    (tmp_path / "trials.json").write_text('{"best": "seed_3", "trials": []}')
    with pytest.raises(InputError) as failure:
        albert_tf.load(tmp_path)
    assert str(failure.value) == f"{tmp_path} holds several trials; name the folder of one, such as {tmp_path}/seed_3"


@pytest.mark.parametrize("place", ["", "2"])
@pytest.mark.parametrize("file", ["saved_model.pb", "model.onnx"])
def test_export_that_can_not_be_asked_is_refused(tmp_path, place, file):
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / file).touch()
    with pytest.raises(InputError, match=rf"{file} can't be used in this way \(docs/serving\.md says how\); name the"):
        albert_tf.load(tmp_path)


def test_results_are_found_wherever_a_run_lies(tmp_path):
    for folder in (str(tmp_path), f"ram://{tmp_path.name}"):
        assert loading._results(folder) == {}
        write_json(os.path.join(folder, "eval_results.json"), {"accuracy": 0.5})
        assert loading._results(folder) == {"accuracy": 0.5}


def states_of(model, text):
    """Returns the last states of one text, without padding: float32 [S, H]."""
    vocabulary = model.tokenizer.vocabulary
    ids = [vocabulary.id_of("[CLS]"), *model.tokenizer.encode(text).ids[1:-1], vocabulary.id_of("[SEP]")]
    return model.model.encoder({"input_ids": tf.constant([ids])})["sequence_output"][0].numpy()


@pytest.mark.slow
def test_vectors_are_means_of_the_states_of_pieces(model):
    found = {pooling: model.encode(TEXTS, pooling=pooling) for pooling in ("mean", "first", "last")}
    for row, text in enumerate(TEXTS):
        states = states_of(model, text)
        pieces = states[1:-1] if len(states) > 2 else states[:1]
        np.testing.assert_allclose(found["mean"][row], pieces.astype(float).mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(found["first"][row], states[0], atol=1e-5)
        np.testing.assert_allclose(found["last"][row], pieces[-1], atol=1e-5)
    assert found["mean"].dtype == np.float32 and model.encode([]).shape == (0, model.backend.trained.config.hidden_size)


def test_many_texts_are_encoded_as_each_alone(model):
    texts = [f"{text} {number}" for number in range(20) for text in TEXTS]
    np.testing.assert_allclose(model.encode(texts)[37:39], model.encode(texts[37:39]), atol=1e-5)


def test_masks_get_the_most_probable_pieces_in_order(model):
    texts = ["[MASK] 연기가 정말 [MASK] 좋았다", "이 영화 정말 [MASK]"]
    found = model.fill_mask(texts, top_k=3)
    assert [len(of_text) for of_text in found] == [2, 1]
    vocabulary = model.tokenizer.vocabulary
    for text, of_text in zip(texts, found):
        ids = [vocabulary.id_of("[CLS]")]
        for number, part in enumerate(text.split("[MASK]")):
            ids += [vocabulary.id_of("[MASK]")] * (number > 0) + model.tokenizer.encode(part).ids[1:-1]
        ids.append(vocabulary.id_of("[SEP]"))
        positions = [place for place, each in enumerate(ids) if each == vocabulary.id_of("[MASK]")]
        inputs = {"input_ids": tf.constant([ids]), "masked_lm_positions": tf.constant([positions])}
        logits = model.model(inputs)["masked_lm_logits"][0].numpy().astype(float)
        probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        for guesses, of_mask in zip(of_text, probabilities, strict=True):
            best = np.argsort(-of_mask)[:3]
            assert [guess["piece"] for guess in guesses] == [vocabulary.pieces[each] for each in best]
            np.testing.assert_allclose([guess["probability"] for guess in guesses], of_mask[best], rtol=1e-4)


def test_piece_that_goes_on_with_a_word_is_shown_as_its_text(model):
    guesses = [guess for guess in model.fill_mask(["재미있[MASK]"], top_k=200)[0][0] if guess["piece"][:2] == "##"]
    assert guesses and all(guess["text"] == guess["piece"][2:] for guess in guesses)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.predict(["좋다"]), "albert_ko_small was pre-trained and not fine-tuned: in Python "),
        (lambda model: model.task, "fine-tune it, by albert_tf.fit or run_classifier.py --init_checkpoint"),
        (lambda model: model.fill_mask(["좋다 [MASK]", "좋다"]), r"input 1 has no \[MASK\]; write it where a piece is"),
        (lambda model: model.fill_mask("좋다 [MASK]"), "pass a list of inputs, even for a single one. Received: "),
        (lambda model: model.fill_mask(["[MASK]"], top_k=0), "top_k must be a whole number from 1 to 8000. "),
        (lambda model: model.fill_mask(["좋다 " * 200 + "[MASK]"]), r"input 0: a \[MASK\] lies beyond the 128 pieces"),
        (lambda model: model.encode(["좋다", 3]), r"input 1 must be a string. Received: 3 \(int\)"),
        (lambda model: model.encode(["좋다"], "max"), "pooling must be one of mean, first, last, all. Received: 'max'"),
    ],
)
def test_what_a_pretrained_model_can_not_be_asked_is_one_sentence(model, ask, message):
    with pytest.raises(InputError, match=message):
        ask(model)


def test_long_texts_are_cut_and_counted(model):
    before = model.num_cut
    with pytest.warns(UserWarning, match="longer than the 128 pieces that the model reads"):
        model.encode(["좋다 " * 200, "좋다"])
    assert model.num_cut == before + 1
