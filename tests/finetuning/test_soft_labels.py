"""A teacher's answers are learnt beside the labels: losses against float64, and what texts without labels change."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import (
    Classification,
    ConditionalQuestionAnswering,
    Entities,
    MultiLabel,
    MultipleChoice,
    QuestionAnswering,
    Regression,
)
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.soft_labels import HAS_LABEL, TAUGHT, SoftLabels
from albert_tf.finetuning.tasks.labelled_text import LabelledText
from albert_tf.finetuning.tasks.tag_alignment import IGNORED
from albert_tf.runs.settings.classifier import ClassifierSettings

CONFIG = tiny_config()
SOFT = SoftLabels(weight=0.25, temperature=3.0)
DRAWS = np.random.default_rng(0)
WEIGHTS = np.array([1, 1, 1, 0], np.float32)  # the last one fills the batch up
HAS = np.array([1, 0, 1, 1], np.float32)


class Fixed:
    """Stands in for a model: whatever it is given, it answers the same."""

    def __init__(self, **outputs):
        self._outputs = {name: tf.constant(values, tf.float32) for name, values in outputs.items()}

    def __call__(self, batch, training=False, dropout_seed=None):
        return self._outputs


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def divergence(taught, logits, temperature=3.0):
    known, found = log_softmax(taught / temperature), log_softmax(logits / temperature)
    return temperature**2 * (np.exp(known) * (known - found)).sum(axis=-1)


def mixed(losses, soft_losses, has_label):
    return np.where(has_label > 0, 0.75 * losses + 0.25 * soft_losses, soft_losses)


def batch_of(features):
    return {name: tf.constant(values) for name, values in {**features, "example_weights": WEIGHTS}.items()}


def loss_of(task, features, **outputs):
    """Returns the loss that is trained with, its weight, and what an evaluation of the same batch computes."""
    task.soft_labels, batch = SOFT, batch_of(features)
    (name,) = task.loss_coefficients
    found, evaluated = (task.compute(batch, training, None, Fixed(**outputs)) for training in (True, False))
    np.testing.assert_allclose(found[name][1], task.loss_weights(batch)[name])
    return *map(float, found[name]), evaluated


@pytest.mark.parametrize("task", [Classification(CONFIG, ("a", "b", "c")), MultipleChoice(CONFIG, 3)])
def test_labels_and_probabilities_are_mixed(task):
    labels = np.array([0, 0, 2, 1], np.int32)
    logits, taught = DRAWS.normal(size=[2, 4, 3])
    features = {"label_ids": labels, HAS_LABEL: HAS, TAUGHT: taught.astype(np.float32)}
    loss, weight, evaluated = loss_of(task, features, logits=logits)
    losses = -log_softmax(logits)[np.arange(4), labels]
    assert weight == 3 and loss == pytest.approx((mixed(losses, divergence(taught, logits), HAS) * WEIGHTS).sum(), 1e-5)
    right = (logits.argmax(-1) == labels) * HAS * WEIGHTS
    assert float(evaluated["accuracy"][0]) == right.sum() and float(evaluated["accuracy"][1]) == 2


def test_text_without_label_is_of_no_class():
    logits, taught = DRAWS.normal(size=[2, 4, 3])
    features = {"label_ids": np.array([0, 0, 2, 1], np.int32), HAS_LABEL: HAS, TAUGHT: taught.astype(np.float32)}
    weighted = Classification(CONFIG, ("a", "b", "c"), class_weights=(5.0, 1.0, 3.0))
    _, weight, _ = loss_of(weighted, features, logits=logits)
    assert weight == 5 + 1 + 3


def test_several_labels_are_each_learnt():
    labels = DRAWS.integers(0, 2, [4, 3]).astype(np.float32)
    logits, taught = DRAWS.normal(size=[2, 4, 3])
    task = MultiLabel(CONFIG, ("a", "b", "c"), dataclasses.replace(DATASETS["tsv"], metrics=("micro_f1",)))
    features = {"label_values": labels, HAS_LABEL: HAS, TAUGHT: taught.astype(np.float32)}
    loss, _, _ = loss_of(task, features, logits=logits)
    losses = np.log1p(np.exp(np.where(labels > 0, -logits, logits))).mean(axis=-1)
    pairs = (np.stack([each, 0 * each], axis=-1) for each in (taught, logits))
    expected = mixed(losses, divergence(*pairs).mean(axis=-1), HAS)
    assert loss == pytest.approx((expected * WEIGHTS).sum(), 1e-5)


def test_numbers_are_mixed():
    scores, labels, taught = DRAWS.normal(size=[3, 4]).astype(np.float32)
    features = {"label_values": labels, HAS_LABEL: HAS, TAUGHT: taught[:, None]}
    loss, _, _ = loss_of(Regression(CONFIG), features, logits=scores[:, None])
    expected = mixed((scores - labels) ** 2, (scores - taught) ** 2, HAS)
    assert loss == pytest.approx((expected * WEIGHTS).sum(), 1e-5)


def test_tags_are_mixed_where_a_word_is_read():
    task = Entities(CONFIG, ("PS",))
    logits, taught = DRAWS.normal(size=[2, 4, 5, 3])
    ids = DRAWS.integers(0, 3, [4, 5]).astype(np.int32)
    ids[:, 3:] = IGNORED
    loss, weight, _ = loss_of(
        task, {"label_ids": ids, HAS_LABEL: HAS, TAUGHT: taught.astype(np.float32)}, logits=logits
    )
    losses = -np.take_along_axis(log_softmax(logits), np.maximum(ids, 0)[..., None], -1)[..., 0]
    expected = mixed(losses, divergence(taught, logits), HAS[:, None]) * (ids != IGNORED) * WEIGHTS[:, None]
    assert weight == 9 and loss == pytest.approx(expected.sum(), 1e-5)


def spans():
    """Returns logits of both ends, a teacher's, and features of which the second row's answer nobody knows."""
    start, end, taught_start, taught_end = DRAWS.normal(size=[4, 4, 6])
    features = {
        "start_positions": np.array([1, -1, 0, 1], np.int32),
        "end_positions": np.array([2, -1, 0, 1], np.int32),
        "teacher_start_logits": taught_start.astype(np.float32),
        "teacher_end_logits": taught_end.astype(np.float32),
        "input_mask": (np.arange(6) < 4).astype(np.int32) * np.ones([4, 1], np.int32),
    }
    expected = 0
    for found, known, name in ((start, taught_start, "start"), (end, taught_end, "end")):
        losses = -log_softmax(found)[np.arange(4), np.maximum(features[f"{name}_positions"], 0)]
        expected += 0.5 * mixed(losses, divergence(known[:, :4], found[:, :4]), HAS)
    return features, {"start_logits": start, "end_logits": end}, (expected * WEIGHTS).sum()


@pytest.mark.parametrize("may_be_unanswerable", [False, True])
def test_spans_are_mixed_and_padding_is_no_answer(may_be_unanswerable):
    features, outputs, expected = spans()
    task = QuestionAnswering(CONFIG, may_be_unanswerable=may_be_unanswerable)
    loss, weight, _ = loss_of(task, features, **outputs)
    assert weight == 3 and loss == pytest.approx(expected, 1e-5)


def test_spans_given_their_beginning_are_mixed_and_whether_there_is_an_answer():
    features, outputs, expected = spans()
    found, taught = DRAWS.normal(size=[2, 4])
    starts = np.array([1, 3, 0, 1], np.int32)
    features |= {"teacher_null_logits": taught.astype(np.float32), "teacher_start_positions": starts}
    task, seen = ConditionalQuestionAnswering(CONFIG, may_be_unanswerable=True), []
    task.soft_labels = SOFT

    def model(batch, **_):
        seen.append(batch["start_positions"].numpy())
        return {name: tf.constant(values, tf.float32) for name, values in {**outputs, "null_logits": found}.items()}

    assert features.keys() | {"example_weights", "input_ids", "segment_ids"} == task.batch_spec(6).keys()
    losses = task.compute(batch_of(features), True, None, model)
    np.testing.assert_array_equal(seen, [starts])
    assert float(losses["span_loss"][0]) == pytest.approx(expected, 1e-5)
    has_none = features["start_positions"] == 0
    hard = np.log1p(np.exp(np.where(has_none, -found, found)))
    pairs = (np.stack([each, 0 * each], axis=-1) for each in (taught, found))
    answerability = (mixed(hard, divergence(*pairs), HAS) * WEIGHTS).sum()
    assert float(losses["answerability_loss"][0]) == pytest.approx(answerability, 1e-5)
    assert {float(losses[name][1]) for name in task.loss_coefficients} == {3.0}
    assert {float(weight) for weight in task.loss_weights(batch_of(features)).values()} == {3.0}


def test_labels_are_mapped_by_name():
    task = Classification(CONFIG, ("bad", "good"))
    predictions = [{"probabilities": {"good": 0.9, "bad": 0.1}}, {"probabilities": {"good": 0.0, "bad": 1.0}}]
    teacher = types.SimpleNamespace(predict=lambda examples: predictions)
    examples = [LabelledText("a", None, None, 1), LabelledText("b", None, None, 2)]
    found = task.soft_features(examples, {}, teacher)[TAUGHT]
    np.testing.assert_allclose(np.exp(found), [[0.1, 0.9], [1.0, 0.0]], atol=1e-6)
    assert np.isfinite(found).all()
    assert task.differs_from(Classification(CONFIG, ("good", "bad"))) is None
    for other in (("good", "fine"), ("good", "bad", "fine")):
        difference = task.differs_from(Classification(CONFIG, other))
        assert difference == f"has the labels {', '.join(other)}, but here they are bad, good"


@pytest.mark.parametrize(
    ("labels", "names", "found"),
    [
        (("NEUTRAL", "Entailment"), ("entailment", "neutral"), ("neutral", "entailment")),
        (("LABEL_0", "LABEL_1"), ("1", "0"), ("0", "1")),
        (("LABEL_0", "LABEL_1"), ("긍정", "부정"), ("LABEL_0", "LABEL_1")),
        (("A", "b"), ("a", "A"), ("A", "b")),
        (("a", "b"), ("a", "A"), ("a", "b")),
        (("LABEL_0", "0"), ("0", "1"), ("LABEL_0", "0")),
    ],
)
def test_labels_are_the_same_in_another_spelling_if_that_is_clear(labels, names, found):
    pairs = DataFiles(text_column="one", text_pair_column="other")
    task = Classification(CONFIG, labels).reading_as(Classification(CONFIG, names, pairs))
    assert task.labels == found and task.input_columns == ("one", "other")


def test_types_stay_and_words_are_read_where_the_task_reads_words():
    task = Entities(CONFIG, ("PS", "LC")).reading_as(Entities(CONFIG, ("LC", "PS"), "words"))
    assert task.types == ("PS", "LC") and task.reads_words


def test_teacher_of_another_scale_is_told(capsys):
    examples = [LabelledText("a", None, str(number), 1) for number in range(5)]
    for factor, is_told in ((1.0, False), (0.2, True)):
        answers = [{"score": factor * number} for number in range(5)]
        teacher = types.SimpleNamespace(predict=lambda _, answers=answers: answers)
        found = Regression(CONFIG).soft_features(examples, {}, teacher)
        np.testing.assert_allclose(found[TAUGHT][:, 0], factor * np.arange(5), rtol=1e-6)
        assert ("check that it was fine-tuned on the same scale" in capsys.readouterr().out) == is_told


@pytest.mark.parametrize("label_column", ["label", "good,bad"])
def test_labels_of_texts_without_labels_are_not_read(tmp_path, label_column):
    path = tmp_path / "texts.jsonl"
    rows = ['{"document": "글", "label": ["a", "a"], "good": 7}', '{"document": "다른 글", "label": {"a": 1}}']
    path.write_text("\n".join(rows), encoding="utf-8")
    files = dataclasses.replace(DATASETS["tsv"], label_column=label_column, metrics=("micro_f1",))
    kinds = [MultiLabel(CONFIG, ("good", "bad"), files)]
    kinds += [Classification(CONFIG, ("good", "bad")), Regression(CONFIG, dataclasses.replace(DATASETS["tsv"]))]
    for task in kinds:
        found = task.read_unlabelled(str(path))
        assert [(each.text, each.label) for each in found] == [("글", None), ("다른 글", None)]


@pytest.mark.parametrize(
    ("values", "named"),
    [((1.5, 1.0), "teacher_weight"), ((float("nan"), 1.0), "teacher_weight"), ((0.5, 0.0), "teacher_temperature")]
    + [((0.5, bad), "teacher_temperature") for bad in (float("inf"), None)],
)
def test_values_that_can_not_be_are_refused(values, named):
    with pytest.raises(InputError, match=f"`{named}` must be"):
        ClassifierSettings(teacher_weight=values[0], teacher_temperature=values[1])
