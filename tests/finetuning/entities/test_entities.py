"""The task of finding entities: its loss, what it predicts, writes and measures."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.errors import InputError
from albert_tf.finetuning import Entities, runner
from albert_tf.training import RunSettings, TrainingRun

LINES = [
    "서울에 간 김철수 씨가 웃었다\tLOC-B O PER-B PER-I O",
    "영화가 좋다\tO O",
    "이 영화는 부산에서 찍었다고 이영희 감독이 말했다\tO O LOC-B O PER-B O O",
]
SETTINGS = RunSettings(num_train_steps=30, train_batch_size=3, learning_rate=0.01, optimizer="adamw", eval_batch_size=2)


@pytest.fixture
def task(sample_tokenizer):
    return Entities(tiny_config(len(sample_tokenizer)), ("LOC", "PER"), "words")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "train.tsv").write_text("\n".join(LINES) + "\n")
    return str(tmp_path / "train.tsv")


def test_loss_is_the_mean_over_the_tagged_positions(task, path, sample_tokenizer):
    file = runner.load_file(task, path, sample_tokenizer, 24)
    batch = {name: file.features[name] for name in ("input_ids", "input_mask", "segment_ids", "label_ids")}
    batch["example_weights"] = np.array([1, 0, 1], np.float32)
    tf.keras.utils.set_random_seed(0)
    model = task.make_model()
    logits = model(batch)["logits"].numpy().astype(np.float64)
    losses = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(
        logits, np.maximum(batch["label_ids"], 0)[..., None], -1
    ).squeeze(-1)
    counted = (batch["label_ids"] >= 0) & np.array([[True], [False], [True]])
    total, weight = task.compute(batch, False, None, model)["tag_loss"]
    assert float(weight) == float(task.loss_weights(batch)["tag_loss"]) == counted.sum() == 12
    np.testing.assert_allclose(total, losses[counted].sum(), rtol=1e-5)


def test_training_file_is_described(task, path, sample_tokenizer):
    for length, parts in ((24, []), (8, [f"long sentences are read in parts: {5} in all"])):
        file = runner.load_file(task, path, sample_tokenizer, length)
        lines = task.describe(path, file.examples, file.features)
        assert lines[0] == f"3 sentences in {path}, with 4 entities of 2 types"
        assert len(lines) == 1 + len(parts)


def test_tag_of_another_type_is_named_with_its_line(task, tmp_path):
    (tmp_path / "other.tsv").write_text("하나\tO\n둘\tNUM-B\n")
    with pytest.raises(InputError, match=r"other\.tsv, line 2: the tag B-NUM is of none of the types LOC, PER; "):
        task.read(str(tmp_path / "other.tsv"))


def test_sentences_with_most_mistakes_come_first(task, path, tmp_path):
    texts = task.read(path)
    found = [
        [
            {"type": "LOC", "begin": 0, "end": 3, "text": "서울에"},
            {"type": "PER", "begin": 6, "end": 9, "text": "김철수"},
        ],
        [],
        [{"type": "PER", "begin": 6, "end": 10, "text": "부산에서"}],
    ]
    (write_errors,) = task.reports().values()
    write_errors(str(tmp_path / "errors.tsv"), texts, [{"entities": entities} for entities in found])
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "line\tmissed\twrong\ttext",
        f"3\tLOC 부산에서 (6-10), PER 이영희 (16-19)\tPER 부산에서 (6-10)\t{texts[2].text}",
        f"1\tPER 김철수 씨가 (6-12)\tPER 김철수 (6-9)\t{texts[0].text}",
    ]


def test_model_that_finds_no_entity_is_doubted(task, path):
    texts = task.read(str(path))
    nothing = [{"entities": [], "tags": []}] * len(texts)
    assert task.doubts(texts, nothing) == [
        "no entity is found in 3 sentences, as if nothing had been learnt; try more steps or another --learning_rate"
    ]
    assert not task.doubts(texts, [*nothing[1:], {"entities": ["x"], "tags": []}])


@pytest.mark.slow
def test_entities_are_learnt_written_and_found_again(task, path, tmp_path, sample_tokenizer):
    tf.keras.utils.set_random_seed(1)
    run = TrainingRun(tmp_path / "run", task, task.make_model(), SETTINGS, sample_tokenizer)
    file = runner.load_file(task, path, sample_tokenizer, 12)
    assert runner.train(run, file, file)
    results = runner.evaluate(run, file)
    predictions = runner.predict(run, file, 2)
    texts = [line.partition("\t")[0] for line in LINES]
    rows = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == texts
    assert [row["entities"] for row in rows] == [prediction["entities"] for prediction in predictions]
    for text, prediction in zip(texts, predictions):
        for entity in prediction["entities"]:
            assert text[entity["begin"] : entity["end"]] == entity["text"]
    assert results["entity_f1"] == pytest.approx(1.0), "three sentences can be learnt by heart"
    assert predictions[0]["entities"] == [
        {"type": "LOC", "begin": 0, "end": 3, "text": "서울에"},
        {"type": "PER", "begin": 6, "end": 12, "text": "김철수 씨가"},
    ]
    assert albert_tf.load(tmp_path / "run").predict(texts) == predictions
