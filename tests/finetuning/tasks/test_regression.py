"""Fine-tuning to numbers: the loss against NumPy, what is read and written, and what is measured."""

import numpy as np
import pytest
import tensorflow as tf
from encoded_examples import LENGTH, make_features
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import Regression
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.tasks.labelled_text import LabelledText

FILES = DataFiles(label_column="score", metrics=("pearson", "f1_at_3"), is_regression=True)
TASK = Regression(tiny_config(max_position_embeddings=LENGTH), FILES)


def test_loss_is_the_mean_squared_error():
    features = make_features(6)
    values = np.linspace(-1, 5, 6, dtype=np.float32)
    weights = np.array([1, 1, 1, 1, 0, 0], np.float32)
    batch = {**features, "label_values": values, "example_weights": weights}
    tf.keras.utils.set_random_seed(0)
    model = TASK.make_model()
    scores = TASK.outputs(batch, model)["scores"].numpy().astype(np.float64)
    total, weight = TASK.compute(batch, False, None, model)["squared_error"]
    assert float(weight) == float(TASK.loss_weights(batch)["squared_error"]) == 4
    np.testing.assert_allclose(total, ((scores - values)[:4] ** 2).sum(), rtol=1e-5)


def test_numbers_are_read_encoded_and_described(tmp_path, sample_tokenizer):
    path = tmp_path / "train.tsv"
    path.write_text("document\tscore\n좋다\t4.5\n나쁘다\t-1\n")
    examples = TASK.read(str(path))
    np.testing.assert_array_equal(TASK.encode(examples, sample_tokenizer, 8)["label_values"], [4.5, -1.0])
    assert TASK.describe(str(path), examples, {}) == [f"2 examples in {path}: from -1 to 4.5, on average 1.75"]


@pytest.mark.parametrize(
    ("label", "told"),
    [("", "nothing under score"), *((each, f"'{each}' is not a number") for each in ("셋", "nan", "inf"))],
)
def test_what_is_no_number_is_named_with_its_line(tmp_path, label, told):
    path = tmp_path / "train.tsv"
    path.write_text(f"document\tscore\n좋다\t4.5\n나쁘다\t{label}\n")
    with pytest.raises(InputError, match=rf"train\.tsv, line 3: {told}; correct the row"):
        TASK.read(str(path))


def test_file_to_predict_needs_no_numbers(tmp_path, sample_tokenizer):
    path = tmp_path / "test.tsv"
    path.write_text("document\n좋다\n")
    (example,) = TASK.read(str(path), needs_labels=False)
    assert TASK.encode([example], sample_tokenizer, 8)["label_values"] == [0.0]


def test_largest_differences_come_first(tmp_path):
    examples = [LabelledText(text, f"{text}2", label, line) for line, (text, label) in enumerate(("a0", "b5", "c3"), 2)]
    (write,) = TASK.reports().values()
    write(str(tmp_path / "errors.tsv"), examples, [{"score": score} for score in (0.5, 2.0, 3.0)])
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "line\tlabel\tprediction\tdifference\ttext\ttext_pair",
        "3\t5\t2.0000\t-3.0000\tb\tb2",
        "2\t0\t0.5000\t+0.5000\ta\ta2",
        "4\t3\t3.0000\t+0.0000\tc\tc2",
    ]


def test_predictions_are_written_and_measured(tmp_path):
    examples = [LabelledText("하나", None, label, line) for line, label in enumerate(("1", "3", "5"))]
    predictions = TASK.predict(examples, {}, {"scores": np.array([0.5, 2.0, 3.5], np.float32)})
    TASK.write_predictions(str(tmp_path / "predictions.tsv"), examples, predictions)
    lines = (tmp_path / "predictions.tsv").read_text().splitlines()
    assert lines == ["text\tlabel\tprediction", "하나\t1\t0.5000", "하나\t3\t2.0000", "하나\t5\t3.5000"]
    assert TASK.score(examples, predictions) == pytest.approx({"pearson": 1.0, "f1_at_3": 2 * 0.5 / 1.5})
