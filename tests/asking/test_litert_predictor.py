"""LiteRT exports as Python objects: the SavedModel's answers, in a process without TensorFlow."""

import itertools
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import odd_texts
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.asking.batch_prediction import BatchOptions, predict_file
from albert_tf.asking.cards import FAST_TOKENIZER_FILE
from albert_tf.asking.litert import FastInputs, pad
from albert_tf.base.errors import InputError
from albert_tf.base.files import sha256_of
from albert_tf.base.texts import TRUNCATIONS, kept_lengths
from albert_tf.finetuning import Classification
from albert_tf.modeling.kernels.elementwise import gelu_erf
from albert_tf.serving import exporting
from albert_tf.serving.exporting import to_litert, trace_for_ids
from albert_tf.serving.formats import FORMATS, find_export
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures.base import TextInputs
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.huggingface import takes_special_tokens_in_text, to_tokenizers
from albert_tf.tokenization.model_inputs import pack_segments

MAX_SEQ_LENGTH = 24
TEXTS = [*odd_texts.TEXTS, "[CLS] 영화 [SEP] [MASK]"]


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.fixture
def export(tmp_path, monkeypatch, sample_tokenizer):
    """Exports a task, and returns the folder of all versions."""

    def export_as(task, tokenizer=sample_tokenizer, **options):
        tf.keras.utils.set_random_seed(1)
        trained = TrainedModel(task.make_model(), tokenizer, MAX_SEQ_LENGTH, task, "model.ckpt-1", {})
        monkeypatch.setattr(exporting, "load_trained", lambda *_, **__: trained)
        folder = str(tmp_path / options["model_format"])
        exporting.export_model("", folder, **options)
        return folder

    return export_as


@pytest.fixture
def litert():
    return pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")


@pytest.mark.slow
def test_export_is_asked_without_tensorflow_and_a_damaged_one_refused(litert, export, config, tmp_path):
    task = Classification(config, ("나쁨", "좋음", "보통"))
    folder = export(task, model_format="litert")
    predictor = albert_tf.load(folder)
    found = predictor.predict(TEXTS, batch_size=3)
    assert predictor.predict([]) == []
    with pytest.raises(InputError, match="input 1 must be a string"):
        predictor.predict(["좋다", None])

    other = pathlib.Path(shutil.copytree(folder, tmp_path / "other"))
    (other / "1" / "model.tflite").write_bytes(b"another model")
    with pytest.raises(InputError, match=r"model.tflite is damaged, or not the one that was exported with"):
        albert_tf.load(other)
    card = json.loads((other / "1" / "model_card.json").read_text())
    card["files"]["model.tflite"] = sha256_of(str(other / "1" / "model.tflite"))
    (other / "1" / "model_card.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match=r"model.tflite can't be loaded \(.*\); export the model anew"):
        albert_tf.load(other)

    # A file of them, and a process that never sees TensorFlow.
    (tmp_path / "in.txt").write_text("좋다\n영화\n", encoding="utf-8")
    assert predict_file(predictor, str(tmp_path / "in.txt"), str(tmp_path / "out.jsonl"), BatchOptions()) == (2, 0)
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])["label"] == found[0]["label"]
    program = (
        f"import sys, albert_tf; print(albert_tf.load({folder!r}).predict(['좋다'])[0]['label']); "
        "assert not {'tensorflow', 'keras', 'absl'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found[0]["label"]


@pytest.mark.parametrize("num_texts", [1, 2])
def test_inputs_are_those_of_the_graph(sample_tokenizer, tmp_path, num_texts):
    (tmp_path / FAST_TOKENIZER_FILE).write_text(to_tokenizers(sample_tokenizer).to_str(), encoding="utf-8")
    columns = [TEXTS, TEXTS[::-1]][:num_texts]
    fast = FastInputs(str(tmp_path / FAST_TOKENIZER_FILE), MAX_SEQ_LENGTH)
    found = pad(fast.join(fast.tokenize(list(zip(*columns)))))
    expected = TextInputs(sample_tokenizer, MAX_SEQ_LENGTH).encode(*map(tf.constant, columns))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("special_tokens_in_text", [False, True])
def test_special_tokens_in_texts_are_read_as_in_the_graph(sample_tokenizer, tmp_path, special_tokens_in_text):
    options = {"form": "bert", "keep_emoji": False, "special_tokens_in_text": special_tokens_in_text}
    tokenizer = KoreanWordPieceTokenizer(sample_tokenizer.vocabulary, **options)
    (tmp_path / FAST_TOKENIZER_FILE).write_text(to_tokenizers(tokenizer).to_str(), encoding="utf-8")
    is_taken = takes_special_tokens_in_text(tokenizer)
    fast = FastInputs(str(tmp_path / FAST_TOKENIZER_FILE), 64, is_taken)
    texts = ["[MASK] 영화 [SEP][mask]", "정말[CLS]" + "가" * 201 + "[MASK]", *TEXTS]
    assert is_taken == special_tokens_in_text
    for text, found in zip(texts, fast.join(fast.tokenize([(text,) for text in texts]))):
        assert found.ids == tokenizer.encode(text).ids, text


def test_word_of_too_many_bytes_is_unknown_as_in_the_graph(sample_tokenizer, tmp_path):
    (tmp_path / FAST_TOKENIZER_FILE).write_text(to_tokenizers(sample_tokenizer).to_str(), encoding="utf-8")
    fast = FastInputs(str(tmp_path / FAST_TOKENIZER_FILE), MAX_SEQ_LENGTH)
    words = [
        "가" * 200,
        "가" * 201,
        "a" * 600,
        "a" * 601,
        "가" * 300,
        "!" + "ㅋ" * 201 + "?좋다",
        "ﷺ" * 19,
        "\x1c".join("가" * 201),
    ]
    texts = ["\t\u3000".join(["영화", *chosen, "좋다"]) for chosen in itertools.combinations(words, 2)]
    texts += [f"영화 {word} 좋다" for word in words]
    texts.append("좋다 \ud800 영화")
    for text, found in zip(texts, fast.join(fast.tokenize([(text,) for text in texts]))):
        expected = sample_tokenizer.encode(text).ids[:-1]
        assert found.ids == [*expected[: MAX_SEQ_LENGTH - 1], sample_tokenizer.vocabulary.id_of("[SEP]")], text


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_texts_are_cut_as_in_the_graph(sample_tokenizer, truncation):
    room = MAX_SEQ_LENGTH - 3
    lengths = list(itertools.product([0, 1, 5, 9, 10, 11, 12, 20, 21, 22, 40], repeat=2))
    segments = [tf.ragged.constant([[7] * pair[side] for pair in lengths], dtype=tf.int32) for side in (0, 1)]
    packed = pack_segments(segments, sample_tokenizer.vocabulary.with_truncation(truncation), MAX_SEQ_LENGTH)
    second = tf.reduce_sum(packed["segment_ids"], axis=1) - 1
    both = tf.reduce_sum(packed["input_mask"], axis=1) - 3
    for pair, first, other in zip(lengths, (both - second).numpy(), second.numpy()):
        assert kept_lengths(list(pair), room, truncation) == [first, other], pair


def test_newest_version_is_found(tmp_path):
    assert find_export(tmp_path) is None
    for version in ("2", "10", "notes"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "model.tflite").touch()
    assert find_export(tmp_path) == (FORMATS["litert"], str(tmp_path / "10"))
    assert find_export(tmp_path / "2") == (FORMATS["litert"], str(tmp_path / "2"))
    # A SavedModel that was exported later is not passed over for an older model.
    (tmp_path / "11").mkdir()
    (tmp_path / "11" / "saved_model.pb").touch()
    assert find_export(tmp_path) == (FORMATS["saved_model"], str(tmp_path / "11"))


def test_what_needs_tensorflow_is_said(tmp_path):
    (tmp_path / "model.tflite").touch()

    def message():
        with pytest.raises(InputError) as error:
            albert_tf.load(tmp_path)
        return str(error.value)

    assert message().startswith(f"{tmp_path}/model.tflite can't be used in this way")
    card = {"labels": [], "signatures": {}, "input_fields": ["text"], "max_seq_length": 8, "files": {"a": "0"}}
    card["config"] = tiny_config().to_dict()
    (tmp_path / "model_card.json").write_text(json.dumps({**card, "task": "Entities", "answer": "entities"}))
    assert message().startswith(f"{tmp_path} holds a model for Entities, whose answers need TensorFlow")
    (tmp_path / "model_card.json").write_text(json.dumps({**card, "task": "Classification", "answer": "label"}))
    assert message().startswith(f"{tmp_path} has no fast_tokenizer.json: its tokenizer is one that")


@pytest.mark.slow
def test_files_of_two_exports_are_refused(litert, export_classifier, tmp_path):
    folder = pathlib.Path(shutil.copytree(find_export(export_classifier("litert")).folder, tmp_path / "copy"))
    tokenizer, card = folder / FAST_TOKENIZER_FILE, folder / "model_card.json"
    whole, values = tokenizer.read_text(encoding="utf-8"), json.loads(card.read_text(encoding="utf-8"))
    tokenizer.write_text(whole.replace('"lowercase":true', '"lowercase":false', 1) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"fast_tokenizer.json is damaged, or not the one that was exported"):
        albert_tf.load(folder)
    tokenizer.write_text(whole, encoding="utf-8")
    card.write_text(json.dumps({**values, "labels": ["하나", "둘", "셋"]}), encoding="utf-8")
    with pytest.raises(InputError, match="has 2 labels, and the model card beside it 3; export it anew"):
        albert_tf.load(folder)


@pytest.mark.slow
def test_tokenizer_that_can_not_be_expressed_has_no_second_file(litert, export, config, sample_tokenizer):
    of_google = KoreanWordPieceTokenizer(sample_tokenizer.vocabulary, form="google", keep_emoji=False)
    folder = export(Classification(config, ("a", "b")), of_google, model_format="litert")
    with pytest.raises(InputError, match="its tokenizer is one that the tokenizers library can't express"):
        albert_tf.load(folder)


def test_converter_says_nothing_of_its_own(caplog, capfd):
    task = Classification(tiny_config(30), ("a", "b"))
    trained = TrainedModel(task.make_model(), None, 24, task, "model.ckpt-1", {})  # the function doesn't keep it
    to_litert(trace_for_ids(trained), "float32")
    assert (caplog.text, *capfd.readouterr()) == ("", "", "")


def test_gelu_of_other_encoders_fits_into_litert():
    function = tf.function(lambda values: {"outputs": gelu_erf(values)}, input_signature=[tf.TensorSpec([None, 4])])
    interpreter = tf.lite.Interpreter(model_content=to_litert(function.get_concrete_function(), "float32"))
    values = np.linspace(-4, 4, 12, dtype=np.float32).reshape(3, 4)
    interpreter.resize_tensor_input(0, values.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    outputs = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(outputs, gelu_erf(tf.constant(values)), atol=1e-6)
