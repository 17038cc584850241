"""Any number of labels a text: how files write them, what is learnt, how it is decided and measured."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import MultiLabel
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.metrics import count_found
from albert_tf.finetuning.tasks.labelled_text import LabelledText, labels_of_sets
from albert_tf.finetuning.tasks.multi_label import METRICS, best_thresholds, cross_fitted_thresholds

CONFIG, LABELS = tiny_config(), ("가", "나", "다")


def task_of(separator=",", **files):
    return MultiLabel(CONFIG, LABELS, DataFiles(**files), separator)


def labelled(*sets):
    return [LabelledText("글", None, each, line) for line, each in enumerate(sets)]


def random_sets(seed):
    generator = np.random.default_rng(seed)
    flags = generator.random([2, 60, len(LABELS)]) < [0.6, 0.3, 0.0]
    return [[tuple(itertools.compress(LABELS, row)) for row in each] for each in flags], flags


def read(tmp_path, name, content, needs_labels=True, task=None):
    (tmp_path / name).write_text(content, encoding="utf-8")
    return [example.label for example in (task or task_of()).read(str(tmp_path / name), needs_labels)]


def test_files_write_labels_between_separators_or_as_lists(tmp_path):
    rows = "document\tlabel\n글\t가,다\n글\t\n글\t 나 \n"
    assert read(tmp_path, "a.tsv", rows) == [("가", "다"), (), ("나",)]
    assert read(tmp_path, "b.tsv", "document\tlabel\n글\t가|다\n", task=task_of("|")) == [("가", "다")]
    assert read(tmp_path, "c.csv", 'document,label\n글,"가,나"\n') == [("가", "나")]
    lines = [{"document": "글", "label": each} for each in (["나", "가"], [], "다")]
    assert read(tmp_path, "d.jsonl", "\n".join(map(json.dumps, lines))) == [("나", "가"), (), ("다",)]
    numbers = MultiLabel(CONFIG, ("2", "15"), DATASETS["tsv"])
    assert read(tmp_path, "e.jsonl", '{"document": "글", "label": [2, 15]}', task=numbers) == [("2", "15")]
    assert read(tmp_path, "f.tsv", "document\tlabel\n글\t-\n글\t가\n", needs_labels=False) == [None, ("가",)]
    assert read(tmp_path, "g.tsv", "document\n글\n", needs_labels=False) == [None]


def test_files_have_a_column_of_1_and_0_for_each_label(tmp_path, capsys):
    by_column = task_of(label_column="가,나, 다")
    header = "document\t가\t다\t나\tother\n"
    rows = f"{header}글\t1\t0\t1\t5\n글\t0\t0\t0\t5\n글\t0\t1.0\tFalse\t5\n"
    assert read(tmp_path, "a.tsv", rows, task=by_column) == [("가", "나"), (), ("다",)]
    told = capsys.readouterr().out
    assert "document is the text, 가, 나, 다 the labels where they hold 1; other not read" in told
    lines = [
        {"document": "글", "가": 1, "나": False, "다": 1.0},
        {"document": "글", "가": None, "나": None, "다": None},
    ]
    content = "\n".join(map(json.dumps, lines))
    assert read(tmp_path, "b.jsonl", content, needs_labels=False, task=by_column) == [("가", "다"), None]
    assert read(tmp_path, "c.tsv", "document\n글\n", needs_labels=False, task=by_column) == [None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("document\t가\t나\t다\n글\t1\t2\t0\n", "line 2: 나 holds '2'; each of several label columns must hold 1 or 0"),
        ("document\t가\t다\n글\t1\t0\n", "line 1: no column named 나"),
    ],
)
def test_other_columns_of_labels_are_refused(tmp_path, content, message):
    with pytest.raises(InputError) as error:
        read(tmp_path, "a.tsv", content, task=task_of(label_column="가,나,다"))
    assert f"{tmp_path / 'a.tsv'}, {message}" in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "document\tlabel\n글\t가,\n", "line 2: an empty label under label, '가,'"),
        ("a.tsv", "document\tlabel\n글\t가\n글\t나,나\n", "line 3: a label appears twice"),
        ("a.tsv", "document\tlabel\n글\t가|나\n", "line 2: label '가|나' is not in the list 가, 나, 다"),
        ("a.jsonl", '{"document": "글", "label": null}', "line 1: nothing under label"),
        ("a.jsonl", '{"document": "글", "label": [["가"]]}', "line 1: label holds a list"),
        ("a.jsonl", '{"document": "글", "label": {"가": 1}}', "line 1: label holds an object"),
    ],
)
def test_other_forms_are_refused_with_file_and_line(tmp_path, name, content, message):
    with pytest.raises(InputError) as error:
        read(tmp_path, name, content)
    assert f"{tmp_path / name}, {message}" in str(error.value)


def test_labels_are_those_of_all_sets():
    assert labels_of_sets(labelled(("나",), (), ("다", "가"))) == LABELS
    with pytest.raises(InputError, match="no label at all"):
        labels_of_sets(labelled((), ()))


def test_loss_is_the_mean_binary_cross_entropy():
    generator = np.random.default_rng(0)
    logits, flags = generator.normal(size=[4, 3]) * 5, generator.integers(0, 2, [4, 3])
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    batch = {"label_values": tf.constant(flags, tf.float32), "example_weights": tf.constant(weights, tf.float32)}
    loss, weight = task_of().compute(batch, False, None, lambda *_, **__: {"logits": tf.constant(logits, tf.float32)})[
        "multi_label_loss"
    ]
    probabilities = 1 / (1 + np.exp(-logits))
    losses = -np.log(np.where(flags == 1, probabilities, 1 - probabilities)).mean(axis=1)
    assert float(weight) == 3.0
    np.testing.assert_allclose(float(loss), (losses * weights).sum(), rtol=1e-6)


def test_measures_are_those_of_scikit_learn():
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    (truth, found), flags = random_sets(1)
    counts = count_found(truth, found, kinds=LABELS)
    for average in ("micro", "macro"):
        expected = f1_score(*flags, average=average, zero_division=0)
        assert METRICS[f"{average}_f1"](counts) == pytest.approx(expected)
    assert METRICS["micro_f1"](count_found([()], [()], kinds=LABELS)) == 0.0


def test_thresholds_give_each_label_its_best_f1():
    generator = np.random.default_rng(2)
    truth = generator.random([40, 3]) < [0.5, 0.1, 0.0]
    probabilities = np.round(generator.random([40, 3]), 1).astype(np.float32)  # with many equal ones

    def f1(label, threshold):
        found = probabilities[:, label] >= threshold
        return 2 * (found & truth[:, label]).sum() / (found.sum() + truth[:, label].sum())

    found = best_thresholds(truth, probabilities)
    assert found.dtype == np.float32 and found[2] == 0.5
    for label in (0, 1):
        best = max(f1(label, threshold) for threshold in np.linspace(0, 1, 1001))
        assert f1(label, found[label]) == pytest.approx(best)
    close = np.nextafter(np.float32(0.3), np.float32(1)).astype(np.float32)
    both = best_thresholds(np.array([[True], [False]]), np.array([[close], [np.float32(0.3)]]))
    assert both == close


def test_score_is_of_thresholds_that_other_texts_chose():
    generator = np.random.default_rng(4)
    truth = generator.random([400, 3]) < 0.2
    noise = generator.random([400, 3]).astype(np.float32)
    thresholds = cross_fitted_thresholds(truth, noise)
    changed = truth.copy()
    changed[7] = ~truth[7]  # what a text has decides nothing of its own labels
    np.testing.assert_array_equal(cross_fitted_thresholds(changed, noise)[7], thresholds[7])
    assert len({row.tobytes() for row in thresholds}) > 1
    task, examples = task_of(), labelled(*(tuple(np.array(LABELS)[row]) for row in truth))
    scored = task.score(
        examples, task.decide_on_held_out(examples, task.predict(examples, {}, {"probabilities": noise}))
    )
    on_the_same = task.score(examples, task.predict(examples, {}, {"probabilities": noise}))
    assert scored["macro_f1"] < on_the_same["macro_f1"]  # what is noise does not look as if something were known


def test_labels_above_their_thresholds_are_given(tmp_path):
    task, examples = task_of(), labelled(("가",), ("가", "나"), ())
    outputs = {"probabilities": np.array([[0.3, 0.1, 0.4], [0.4, 0.4, 0.0], [0.1, 0.2, 0.1]], np.float32)}
    before = task.predict(examples, {}, outputs)
    assert [each["labels"] for each in before] == [[], [], []] and list(before[0]["probabilities"]) == list(LABELS)
    task.decide_on_held_out(examples, before)
    decided = task.predict(examples, {}, outputs)
    assert [each["labels"] for each in decided] == [["가"], ["가", "나"], []]
    assert task.score(examples, decided) == {"micro_f1": 1.0, "macro_f1": pytest.approx(2 / 3)}
    task.reports()["thresholds.json"](str(tmp_path / "thresholds.json"), examples, decided)
    other = task_of()
    other.restore(str(tmp_path))
    assert other.predict(examples, {}, outputs) == decided
    task.reports()["errors.tsv"](str(tmp_path / "errors.tsv"), examples, before)
    lines = (tmp_path / "errors.tsv").read_text().splitlines()
    assert lines == ["line\tlabels\tprediction\tmissed\twrong\ttext", "1\t가,나\t\t가,나\t\t글", "0\t가\t\t가\t\t글"]


@pytest.mark.parametrize("content", ['{"가": 0.5, "나": 0.5}', '{"가": 0.5, "나": 0.5, "다": 7}', "[]", "{"])
def test_changed_thresholds_are_refused(tmp_path, content):
    (tmp_path / "thresholds.json").write_text(content)
    with pytest.raises(InputError, match=r"thresholds\.json"):
        task_of().restore(str(tmp_path))


def test_rule_that_reads_nothing_gives_the_labels_that_score_best():
    examples = labelled(("가",), ("가", "나"), ("가", "나"), ())
    rule, scores = task_of().blind_scores(examples)
    assert rule == "always '가', '나'" and scores["micro_f1"] == pytest.approx(2 * 5 / (8 + 5))


def test_linear_model_leaves_the_thresholds_of_the_run():
    pytest.importorskip("sklearn")
    task = task_of()
    train = [LabelledText(f"{label}{label} 말 {n}", None, (label,), n) for label in LABELS for n in range(4)]
    train.append(LabelledText("가가 나나 말", None, ("가", "나"), 9))
    assert task.score(train, task.linear_model().predict(train, train))["micro_f1"] > 0.9
    assert task.thresholds.tolist() == [0.5] * 3
