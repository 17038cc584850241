"""Fine-tuning to label texts: batches, loss, predictions, mistakes and the plot of them."""

import numpy as np
import pytest
import tensorflow as tf
from encoded_examples import LENGTH, make_features
from matplotlib import font_manager
from rounding import independent_errors
from tiny_config import tiny_config

from albert_tf.finetuning import Classification
from albert_tf.finetuning.batches import Examples
from albert_tf.finetuning.tasks import classification
from albert_tf.finetuning.tasks.classification import (
    confusion_matrix,
    drawable,
    f1_of_each,
    hangul_font,
    plot_confusion_matrix,
)
from albert_tf.finetuning.tasks.labelled_text import LabelledText, balanced_class_weights
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator, make_output_function

CONFIG = tiny_config(max_position_embeddings=LENGTH, initializer_range=0.5)  # so that labels differ in probability
TASK = Classification(CONFIG, ("a", "b", "c"))


def make_model(strategy):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        return TASK.make_model()


def numpy_probabilities(features):
    logits = make_model(tf.distribute.get_strategy())(features)["logits"].numpy().astype(np.float64)
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


@pytest.mark.slow
def test_predictions_of_replicas_are_probabilities_in_order():
    features = make_features(13)
    examples = Examples(features, TASK.batch_spec(None))
    strategy = make_strategy(num_cpu_replicas=4)
    model = make_model(strategy)
    compute = make_output_function(strategy, lambda batch: TASK.outputs(batch, model))
    outputs = compute(examples.eval_dataset(12))
    probabilities = outputs["probabilities"][np.argsort(examples.order_of_evaluation)]
    # A block rounds 20 values and the terms of six products, 100 in all; for both, the largest of 39 probabilities is 3
    # deviations off, and 16 * 0.5**2, which the variance of the last products' terms adds up to, enlarge the error.
    np.testing.assert_allclose(probabilities, numpy_probabilities(features), atol=12 * independent_errors(2 * 120))


@pytest.mark.slow
def test_evaluation_is_the_mean_over_all_examples():
    features = make_features(13)
    strategy = make_strategy(num_cpu_replicas=2)
    dataset = Examples(features, TASK.batch_spec(None)).eval_dataset(4)
    results = Evaluator(strategy, TASK, {"model": make_model(strategy)}).evaluate(dataset)
    probabilities, labels = numpy_probabilities(features), features["label_ids"]
    loss = -np.log(probabilities[np.arange(13), labels]).mean()
    accuracy = (probabilities.argmax(axis=-1) == labels).mean()
    assert results == pytest.approx({"loss": loss, "classification_loss": loss, "accuracy": accuracy}, rel=1e-5)


def test_class_weights_count_in_training_alone():
    features = make_features(12)
    batch = {**features, "example_weights": np.ones(12, np.float32)}
    weights = (0.5, 1.0, 3.0)
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
    config = CONFIG.replace(**dict.fromkeys(names, 0.0))
    task = Classification(config, ("a", "b", "c"), class_weights=weights)
    tf.keras.utils.set_random_seed(0)
    model = task.make_model()
    labels = features["label_ids"]
    losses = -np.log(task.outputs(features, model)["probabilities"].numpy()[np.arange(12), labels])
    of_labels = np.array(weights)[labels]
    total, weight = task.compute(batch, True, tf.constant([1, 2]), model)["classification_loss"]
    assert float(weight) == float(task.loss_weights(batch)["classification_loss"]) == pytest.approx(of_labels.sum())
    np.testing.assert_allclose(total, (losses * of_labels).sum(), rtol=1e-4)
    held_out, count = task.compute(batch, False, None, model)["classification_loss"]
    assert float(count) == 12
    np.testing.assert_allclose(held_out, losses.sum(), rtol=1e-4)


def test_balanced_weights_let_all_labels_count_alike():
    examples = [LabelledText("a", None, label, 1) for label in "aaab"]
    weights = balanced_class_weights(("a", "b", "c"), examples)
    assert weights == pytest.approx((4 / 6, 4 / 2, 1.0))
    assert 3 * weights[0] == pytest.approx(weights[1])
    other = LabelledText("a", None, "d", 1)
    assert balanced_class_weights(("a", "b", "c"), [*examples, other]) == weights, "those of no label are left out"


@pytest.mark.parametrize(
    ("examples", "lines"),
    [
        (
            [LabelledText("좋다", None, "b", 2), LabelledText('그 "말', None, None, 3)],
            ["text\tlabel\tprediction\tp(a)\tp(b)", "좋다\tb\tb\t0.2500\t0.7500", '그 "말\t\ta\t0.9000\t0.1000'],
        ),
        (
            [LabelledText("하나", "둘", "a", 2), LabelledText("둘", "셋", "a", 2)],
            [
                "text\ttext_pair\tlabel\tprediction\tp(a)\tp(b)",
                "하나\t둘\ta\tb\t0.2500\t0.7500",
                "둘\t셋\ta\ta\t0.9000\t0.1000",
            ],
        ),
    ],
)
def test_predictions_file_has_a_line_for_each_example(tmp_path, examples, lines):
    task, probabilities = Classification(CONFIG, ("a", "b")), np.array([[0.25, 0.75], [0.9, 0.1]], np.float32)
    path = tmp_path / "new" / "predictions.tsv"
    task.write_predictions(str(path), examples, task.predict(examples, {}, {"probabilities": probabilities}))
    assert path.read_text().splitlines() == lines


def prediction(label, probability):
    return {"label": label, "probabilities": {label: probability}}


def test_surest_mistakes_come_first(tmp_path):
    examples = [LabelledText(text, None, label, line) for line, (text, label) in enumerate(("a0", "b1", "c1", "d0"), 2)]
    predictions = [prediction("1", 0.6), prediction("1", 0.99), prediction("0", 0.9), prediction("0", 0.7)]
    write_errors = Classification(tiny_config()).reports()["errors.tsv"]
    write_errors(str(tmp_path / "errors.tsv"), examples, predictions)
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "line\tlabel\tprediction\tprobability\ttext",
        "4\t1\t0\t0.9000\tc",
        "2\t0\t1\t0.6000\ta",
    ]


def test_f1_of_each_label_is_that_of_scikit_learn():
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    counts = confusion_matrix(list("aabbc"), list("abbbb"), ("a", "b", "c"))
    np.testing.assert_array_equal(counts, [[1, 1, 0], [0, 2, 0], [0, 1, 0]])
    expected = f1_score(list("aabbc"), list("abbbb"), labels=("a", "b", "c"), average=None, zero_division=0)
    np.testing.assert_allclose(f1_of_each(counts), expected)


@pytest.mark.parametrize("labels", [("부정", "긍정"), ("$", "$$"), tuple(map(str, range(120)))], ids=len)
def test_confusion_matrix_is_drawn(tmp_path, labels):
    examples = [LabelledText("a", None, label, 2) for label in labels]
    plot_confusion_matrix(str(tmp_path / "a.png"), examples, [prediction(labels[0], 0.9)] * len(labels), labels)
    content = (tmp_path / "a.png").read_bytes()
    # A width of more than 65,535 pixels, as a thousand labels would take, couldn't be drawn.
    assert content.startswith(b"\x89PNG") and int.from_bytes(content[16:20], "big") < 7000


def test_numbers_that_stand_for_labels_are_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("albert_tf.finetuning.tasks.classification.hangul_font", lambda: None)
    labels = ("긍정", "부정")
    examples = [LabelledText("a", None, label, 2) for label in labels]
    plot_confusion_matrix(str(tmp_path / "a.png"), examples, [prediction("긍정", 0.9)] * 2, labels)
    said = capsys.readouterr().out
    assert "apt install fonts-nanum" in said and said.endswith("in the plot label 0 is 긍정, label 1 is 부정\n")


@pytest.fixture
def no_fonts(monkeypatch):
    """A machine without a font that has Hangul."""
    latin = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", latin)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [font.fname for font in latin])


def test_only_korean_labels_become_numbers_where_no_font_has_them(no_fonts):
    assert drawable(("0", "1")) == (("0", "1"), None)
    assert hangul_font() is None
    assert drawable(("부정", "긍정"), "piece") == (["piece 0", "piece 1"], None)


def test_font_that_was_just_installed_is_found(no_fonts, monkeypatch, tmp_path):
    path = str(tmp_path / "NanumGothic.ttf")
    installed = font_manager.FontEntry(fname=path, name="NanumGothic")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [path])
    monkeypatch.setattr(
        font_manager.fontManager, "addfont", lambda found: font_manager.fontManager.ttflist.append(installed)
    )
    assert drawable(("부정", "긍정")) == (("부정", "긍정"), "NanumGothic")
    assert classification.hangul_font() == "NanumGothic"
