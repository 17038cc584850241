"""Exports with fewer bytes, and for other runtimes: smaller, and nearly or exactly the same numbers."""

import collections
import dataclasses
import os

import numpy as np
import pytest
import tensorflow as tf
from asked_models import answers_of, trained
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import Classification, MultipleChoice, QuestionAnswering
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.serving import compression, exporting
from albert_tf.serving.compression import PackedWeight
from albert_tf.serving.exporting import trace_for_ids
from albert_tf.serving.formats import find_export, open_export
from albert_tf.serving.loading import TrainedModel

TEXTS = ["좋다", "", "정말 재미있는 영화였다 " * 3]


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.fixture
def export(tmp_path, monkeypatch, sample_tokenizer):
    """Exports a task, or a pre-trained model, and returns the folder."""

    def export_as(task_or_model, seed=1, **options):
        is_model = isinstance(task_or_model, tf.keras.Model)
        task = None if is_model else task_or_model

        def load(*_, dtype="float32"):
            tf.keras.utils.set_random_seed(seed)
            model = task_or_model if is_model else task.make_model(dtype=dtype)
            return TrainedModel(model, sample_tokenizer, 64, task, "model.ckpt-1", {})

        monkeypatch.setattr(exporting, "load_trained", load)
        return exporting.export_model("", str(tmp_path / "export"), **options)

    return export_as


def _product_dtypes(model):
    graph = model._loaded.signatures["serving_default"].graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return collections.Counter(tf.dtypes.as_dtype(node.attr["T"].type) for node in nodes if node.op == "MatMul")


def bytes_of(folder):
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)


def read_card(folder):
    found = find_export(folder)
    return found.format.read_card(found.folder)


def test_kernels_are_read_in_bfloat16_and_rows_of_tables_added_in_float32():
    values = np.random.default_rng(0).normal(size=[40, 50]).astype(np.float32)
    # A bfloat16 is the upper half of a float32, to the nearest, of two the even one.
    bits = values.view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    for name, dtype in (("a/kernel", tf.bfloat16), ("b/word_embeddings", tf.float32)):
        packed = PackedWeight(name, values)
        found = tf.convert_to_tensor(packed)
        assert (found.dtype, packed.stored.dtype) == (dtype, tf.bfloat16)
        np.testing.assert_array_equal(tf.cast(found, tf.float32), rounded)


@pytest.mark.slow
def test_few_weights_are_constants_and_many_are_variables(export, config, monkeypatch):
    def exported():
        """Returns how many variables of weights an export has, and what it answers."""
        folder = export(Classification(config, ("나쁨", "좋음")))
        names = [name for name, _ in tf.train.list_variables(os.path.join(folder, "variables", "variables"))]
        answers = open_export(folder).compute("serving_default", {"text": TEXTS})
        return sum("weights/" in name for name in names), answers["probabilities"]

    num_tables, found = exported()
    monkeypatch.setattr(compression, "_MAX_CONSTANT_BYTES", 0)
    num_variables, expected = exported()
    assert 0 < num_tables < num_variables
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("most_constant_bytes", [0, 2**20])
def test_smaller_exports_answer_as_their_rounded_weights_do_and_keep_them(
    export, config, sample_tokenizer, monkeypatch, most_constant_bytes
):
    """Also where two of them are loaded into one process."""
    monkeypatch.setattr(compression, "_MAX_CONSTANT_BYTES", most_constant_bytes)
    task = Classification(config, ("나쁨", "좋음"))
    folders = [export(task, weight_type="bfloat16", seed=seed) for seed in (1, 2)]
    together = [open_export(folder) for folder in folders]
    for seed, folder, model in zip((1, 2), folders, together):
        assert read_card(folder)["weights"] == "bfloat16"
        assert _product_dtypes(model)[tf.bfloat16] >= 4  # heads stay in float32
        found = model.compute("serving_default", {"text": TEXTS})["probabilities"]
        expected = answers_of(trained(task, sample_tokenizer, seed, 64))(TEXTS)["probabilities"]
        assert found.dtype == np.float32 and 0 < np.abs(found - expected).max() < 0.02
    other = trained(task, sample_tokenizer, 1, 64)
    assert np.abs(answers_of(other)(TEXTS)["probabilities"] - expected).max() > 0.05
    if not most_constant_bytes:
        size = 4 * sum(variable.shape.num_elements() for variable in named_variables(other.model).values())
        assert bytes_of(os.path.join(folders[0], "variables")) < 0.65 * size


@pytest.mark.slow
def test_vectors_of_a_model_that_computes_in_bfloat16_are_float32(export, config, sample_tokenizer):
    tf.keras.utils.set_random_seed(1)
    folder = export(AlbertForPreTraining(config, dtype="mixed_bfloat16"), weight_type="bfloat16")
    small = open_export(folder)
    assert list(small.signatures) == ["serving_default", "pieces", "fill_mask"]
    outputs = {name: dtype for each in small.signatures.values() for name, (dtype, _) in each["outputs"].items()}
    assert outputs["mean"] == outputs["embeddings"] == outputs["probabilities"] == "float32"
    assert "bfloat16" not in outputs.values()
    tf.keras.utils.set_random_seed(1)
    model = AlbertForPreTraining(config)
    expected = answers_of(TrainedModel(model, sample_tokenizer, 64, None, "", {}))(TEXTS)["mean"]
    np.testing.assert_allclose(small.compute("serving_default", {"text": TEXTS})["mean"], expected, atol=0.1)
    assert bytes_of(os.path.join(folder, "variables")) < 0.65 * 4 * model.count_params()


def ids_of(tokenizer, texts):
    return {name: value.numpy() for name, value in tokenizer(texts, padding=True, return_tensors="tf").items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make_task", "weight_type", "tolerance"),
    [
        (None, "float32", 1e-4),
        (
            lambda config: Classification(dataclasses.replace(config, classifier_pooling="aligned"), "ab"),
            "float32",
            1e-4,
        ),
        (QuestionAnswering, "float16", 0.02),
        (lambda config: Classification(config, ("a", "b")), "int8", 0.5),
    ],
)
def test_litert_computes_what_the_model_does(export, config, sample_tokenizer, make_task, weight_type, tolerance):
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    subject = AlbertForPreTraining(config) if make_task is None else make_task(config)
    folder = export(subject, weight_type=weight_type, model_format="litert")
    assert sorted(os.listdir(folder)) == [
        "fast_tokenizer.json",
        "model.tflite",
        "model_card.json",
        "tokenizer.json",
        "vocab.txt",
    ]
    batch = ids_of(sample_tokenizer, TEXTS)
    expected = trace_for_ids(exporting.load_trained())(**{name: tf.constant(batch[name]) for name in batch})

    interpreter = litert.Interpreter(os.path.join(folder, "model.tflite"))
    for detail in interpreter.get_input_details():
        interpreter.resize_tensor_input(detail["index"], batch[detail["name"]].shape)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], batch[detail["name"]])
    interpreter.invoke()
    names = sorted(expected)
    assert list(read_card(folder)["signatures"]["serving_default"]["outputs"]) == names
    for name, detail in zip(names, interpreter.get_output_details(), strict=True):
        found = interpreter.get_tensor(detail["index"])
        np.testing.assert_allclose(found, expected[name], atol=tolerance * np.abs(expected[name]).max())


@pytest.mark.slow
def test_onnx_computes_what_the_model_does(export, config, sample_tokenizer):
    pytest.importorskip("tf2onnx", reason="needs tf2onnx: pip install 'albert_tf[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    folder = export(AlbertForPreTraining(config), model_format="onnx")
    batch = ids_of(sample_tokenizer, TEXTS)
    expected = trace_for_ids(exporting.load_trained())(**{name: tf.constant(batch[name]) for name in batch})
    session = runtime.InferenceSession(os.path.join(folder, "model.onnx"))
    names = [output.name for output in session.get_outputs()]
    assert sorted(names) == sorted(expected)
    for name, found in zip(names, session.run(None, batch)):
        np.testing.assert_allclose(found, expected[name], atol=1e-4)


def test_what_can_not_be_converted_is_said(export, config):
    with pytest.raises(InputError, match="a model fine-tuned for MultipleChoice can't be exported to other runtimes"):
        export(MultipleChoice(config, 3), model_format="litert")
    task = Classification(config, ("a", "b"))
    for model_format, weight_type, advice in (
        ("onnx", "int8", "float32, or `format=litert`, which can"),
        ("saved_model", "float16", "float32 or bfloat16, or `format=litert`, which can"),
        ("saved_model", "int8", "float32 or bfloat16, or `format=litert`, which can"),
        ("litert", "bfloat16", "float32 or float16 or int8, or `format=saved_model`, which can"),
    ):
        message = f"`format={model_format}` can't store `weights={weight_type}`; use {advice}"
        with pytest.raises(InputError, match=message):
            export(task, model_format=model_format, weight_type=weight_type)
