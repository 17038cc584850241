"""A linear model beside the evaluation: computed once, and never in the way of a run."""

import importlib.util
import itertools
import types

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import Classification, Entities, MultipleChoice, Regression, runner
from albert_tf.finetuning.baselines import LINEAR_FILE, choose_share, linear_scores
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.tasks import entities as linear_tagger
from albert_tf.finetuning.tasks.labelled_text import LabelledText
from albert_tf.finetuning.tasks.tagged_text import TaggedText, units_of

pytest.importorskip("sklearn")

CONFIG = tiny_config()
TEXTS = ("참 좋다", "정말 좋다", "좋은 영화", "참 싫다", "정말 싫다", "싫은 영화")
TRAIN = [LabelledText(text, None, "1" if "좋" in text else "0", line) for line, text in enumerate(TEXTS)]
DEV = [LabelledText("너무 좋다", None, "1", 1), LabelledText("너무 싫다", None, "0", 2)]


@pytest.fixture
def run(tmp_path):
    lines = []
    return types.SimpleNamespace(
        objective=Classification(CONFIG),
        output_dir=str(tmp_path),
        is_chief=True,
        log=lambda text, *_: lines.append(text),
        lines=lines,
    )


@pytest.fixture
def files(tmp_path):
    for name in ("train", "dev", "other"):
        (tmp_path / name).write_text(name)
    return {
        name: runner.EncodedFile(str(tmp_path / name), DEV if name == "dev" else TRAIN, {}, 8)
        for name in ("train", "dev", "other")
    }


def of_model(task, train, dev):
    scores = task.score(dev, task.linear_model().predict(train, dev))
    return {task.selection_metric: scores[task.selection_metric]}


def test_classes_of_texts_and_of_pairs():
    assert of_model(Classification(CONFIG), TRAIN, DEV) == {"accuracy": 1.0}
    three = [LabelledText(f"{label} {text}", None, label, 0) for label in "가나다" for text in ("좋다", "말")]
    assert of_model(Classification(CONFIG, ("가", "나", "다")), three, three) == {"accuracy": 1.0}
    words = ("사과", "바다", "구름", "나무")
    pairs = [LabelledText(a, b, str(int(a == b)), 0) for a, b in itertools.product(words, words)]
    assert of_model(Classification(CONFIG, files=DataFiles(metrics=("f1",))), pairs, pairs) == {"f1": 1.0}


def test_numbers():
    many = [LabelledText("좋다 " * n + "싫다 " * (5 - n), None, str(n), n) for n in range(6)]
    scores = of_model(Regression(CONFIG, DATASETS["klue_sts"]), many, many)
    assert scores["pearson"] > 0.9


def test_entities_of_texts_with_a_unit_or_none():
    def tagged(text, *tags):
        return TaggedText(text, units_of(text, are_words=True), tags, 1)

    train = [
        tagged("김 철수 간다", "B-PS", "I-PS", "O"),
        tagged("박 영희 온다", "B-PS", "I-PS", "O"),
        tagged("간다", "O"),
    ]
    task = Entities(CONFIG, ("PS",), "words")
    assert of_model(task, train * 3, [*train, tagged("")]) == {"entity_f1": 1.0}
    # Two tags are told apart by one number.
    assert linear_tagger.tag([tagged("서울 간다", "B-LC", "O")] * 3, [tagged("서울 간다")]) == [["B-LC", "O"]]


def test_tags_are_the_best_allowed_sequence():
    tags = ("B-LC", "I-LC", "B-PS", "I-PS", "O")
    scores = np.random.default_rng(0).normal(size=[5, len(tags)])

    def is_allowed(sequence):
        return all(
            not tags[tag].startswith("I-") or (before is not None and tags[before][1:] == tags[tag][1:])
            for before, tag in zip((None, *sequence), sequence)
        )

    sequences = filter(is_allowed, itertools.product(range(len(tags)), repeat=5))
    best = max(sequences, key=lambda sequence: sum(scores[unit, tag] for unit, tag in enumerate(sequence)))
    allowed = linear_tagger._allowed_successions(tags)
    assert linear_tagger._best_sequence(scores, allowed) == list(best)


def test_share_is_drawn_from_all_texts_and_stays_within_the_limit():
    lengths = [1 + n % 7 for n in range(1000)]
    chosen = choose_share(lengths, 500)
    assert chosen == sorted(chosen) == choose_share(lengths, 500)
    assert 480 < sum(lengths[index] for index in chosen) <= 500 and chosen[-1] > 900
    assert choose_share(lengths, 10**6) == list(range(1000))
    assert len(choose_share([9, 9], 5)) == 1


def test_model_is_trained_once_for_a_run_and_its_trials(run, files, tmp_path, monkeypatch):
    found = linear_scores(run, files["train"], files["dev"])
    assert found.scores == {"accuracy": 1.0} and str(found).endswith("trained on the 6 examples")
    monkeypatch.setattr("albert_tf.finetuning.tasks.classification.classify", None)
    assert linear_scores(run, files["train"], files["dev"]) == found
    assert linear_scores(run, None, files["dev"]) == found  # --do_eval alone
    assert linear_scores(run, None, files["other"]) is None
    (tmp_path / "trial").mkdir()
    run.output_dir = str(tmp_path / "trial")
    assert linear_scores(run, files["train"], files["dev"]) == found
    assert (tmp_path / "trial" / LINEAR_FILE).read_bytes() == (tmp_path / LINEAR_FILE).read_bytes()
    assert not run.lines


def test_other_files_and_broken_ones_are_computed_anew(run, files, tmp_path):
    linear_scores(run, files["train"], files["dev"])
    before = (tmp_path / LINEAR_FILE).read_text()
    assert linear_scores(run, files["other"], files["dev"]) is not None
    assert (tmp_path / LINEAR_FILE).read_text() != before
    (tmp_path / LINEAR_FILE).write_text("{")
    assert linear_scores(run, None, files["dev"]) is None
    assert linear_scores(run, files["train"], files["dev"]) is not None
    assert (tmp_path / LINEAR_FILE).read_text() == before


@pytest.mark.parametrize("reason", ["fails", "missing"])
def test_run_goes_on_where_scikit_learn_fails_or_is_missing(run, files, tmp_path, monkeypatch, reason):
    (tmp_path / "dev").write_text(reason)  # no other test's
    if reason == "missing":
        find_spec = importlib.util.find_spec
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "sklearn" else find_spec(name))
    else:
        monkeypatch.setattr(files["train"].examples[0].__class__, "texts", property(lambda self: 1 / 0))
    assert linear_scores(run, files["train"], files["dev"]) is None
    expected = {"missing": "pip install scikit-learn", "fails": "ZeroDivisionError: division by zero"}[reason]
    assert len(run.lines) == 1 and expected in run.lines[0]
    assert not (tmp_path / LINEAR_FILE).exists()


def test_workers_that_write_nothing_and_tasks_without_a_model_compute_none(run, files):
    run.is_chief = False
    assert linear_scores(run, files["train"], files["dev"]) is None
    run.is_chief, run.objective = True, MultipleChoice(CONFIG)
    assert linear_scores(run, files["train"], files["dev"]) is None
