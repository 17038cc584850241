"""The task of finding entities: its loss, what it predicts, writes and measures, and the best sequence of tags."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.finetuning import Entities, runner
from albert_tf.finetuning.tasks.entities import best_sequence, labels_for
from albert_tf.finetuning.tasks.tagged_text import METRICS, TaggedText, units_of
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


def test_tag_of_another_type_is_named_with_its_line(task, tmp_path):
    (tmp_path / "other.tsv").write_text("하나\tO\n둘\tNUM-B\n")
    with pytest.raises(InputError, match=r"other\.tsv, line 2: the tag B-NUM belongs to none of the types LOC, PER; "):
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


def hide(text, tag_of_hidden):
    """Puts a zero-width space before each word of characters that are tagged; it gets the tag that a function says."""
    hidden, tags, units = "", [], dict(zip(text.units, text.tags))
    for place, character in enumerate(text.text):
        tag = units.get((place, place + 1))
        if tag and not text.text[:place][-1:].strip():
            hidden += "\u200b"
            tags.append(tag_of_hidden(tag))
        hidden += character
        tags += [tag] if tag else []
    return TaggedText(hidden, units_of(hidden, are_words=False), tuple(tags), text.line)


@pytest.mark.parametrize("tag_of_hidden", [lambda tag: tag, lambda tag: "I-LC"], ids=["same", "other"])
def test_characters_that_are_not_read_count_nowhere(sample_tokenizer, tmp_path, tag_of_hidden):
    """Neither where they are tagged as what follows, nor as anything else."""
    task = Entities(tiny_config(len(sample_tokenizer)), ("PS", "LC"), "characters", tuple(METRICS))
    plain_texts = [
        TaggedText(text, units_of(text, are_words=False), tuple(tags.split()), line)
        for line, (text, tags) in enumerate(
            [
                ("김 철수 서울", "B-PS I-PS I-PS B-LC I-LC"),
                ("부산 이영희", "B-LC I-LC O O O"),
                ("가 나", "O O"),
                ("서 울 시", "B-LC I-LC I-LC"),
            ]
        )
    ]
    texts = [hide(text, tag_of_hidden) for text in plain_texts]
    predictions = {}
    for kind, examples in (("plain", plain_texts), ("hidden", texts)):
        features = task.encode(examples, sample_tokenizer, 16)
        found_ids = np.maximum(features["label_ids"], 0)
        found_ids[1, 1], found_ids[3, 3] = 0, task.labels.index("B-LC")  # two mistakes
        predictions[kind] = task.predict(examples, features, {"found_ids": found_ids})
        name = task.describe("a.tsv", examples, features)[0]
        assert name == "4 sentences in a.tsv, with 4 entities of 2 types"
    assert task.score(texts, predictions["hidden"]) == task.score(plain_texts, predictions["plain"])
    assert 0 < task.score(texts, predictions["hidden"])["entity_macro_f1"] < 1
    assert predictions["hidden"][3]["unread"] == [0, 2, 4] and "unread" not in predictions["plain"][3]
    assert predictions["hidden"][0]["entities"][0] == {"type": "PS", "begin": 1, "end": 6, "text": "김 \u200b철수"}
    (write_errors,) = task.reports().values()
    for kind, examples in (("plain", plain_texts), ("hidden", texts)):
        write_errors(str(tmp_path / kind), examples, predictions[kind])
    assert (tmp_path / "hidden").read_text().replace("\u200b", "").count("\n") == 3
    lines = task.describe("a.tsv", texts, task.encode(texts, sample_tokenizer, 16))
    assert lines[-1] == "10 characters are left out: the tokenizer removes them entirely"


@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_trace")
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


def test_files_whose_words_stand_in_other_columns_are_told(tmp_path, capsys):
    numbered, plain = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    numbered.write_text("".join(f"{number}\t{word}\tO\n" for number, word in enumerate("가나다", 1)))
    plain.write_text("가\tO\n나\tO\n")
    task = Entities(tiny_config(30), ("PER",), form="conll")
    assert [text.text for path in (numbered, plain) for text in task.read(str(path))] == ["가 나 다", "가 나"]
    [warning] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert warning.startswith(f"warning: words are read off column 1 of {plain}, and off column 2 of {numbered}; ")


LABELS = labels_for(("A", "B"))


def best_by_trying_all(logits):
    """Returns the allowed tags [n] with the highest sum of logits [n, T], in float64."""
    allowed = [
        ids
        for ids in itertools.product(range(len(LABELS)), repeat=len(logits))
        if all(
            not LABELS[tag].startswith("I-") or LABELS[before][2:] == LABELS[tag][2:]
            for before, tag in itertools.pairwise(ids)
        )
    ]
    return max(allowed, key=lambda ids: sum(logits[place, tag] for place, tag in enumerate(ids)))


def test_no_allowed_sequence_is_better():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=[12, 6, len(LABELS)]).astype(np.float32)
    is_read = generator.random([12, 6]) < 0.7
    is_read[0] = False
    found = best_sequence(tf.constant(logits), tf.constant(is_read), LABELS).numpy()
    assert found.dtype == np.int32 and found.shape == (12, 6)
    for row in range(12):
        expected = best_by_trying_all(logits[row, is_read[row]].astype(np.float64))
        assert found[row, is_read[row]].tolist() == list(expected)


def test_an_entity_may_go_on_from_an_earlier_part():
    logits = np.full([1, 2, len(LABELS)], -5.0, np.float32)
    logits[:, :, LABELS.index("I-A")] = 5.0
    found = best_sequence(tf.constant(logits), tf.constant([[True, True]]), LABELS)
    assert found.numpy().tolist() == [[LABELS.index("I-A")] * 2]


def test_it_compiles_for_one_shape():
    logits = tf.random.stateless_normal([3, 8, len(LABELS)], [1, 2])
    is_read = tf.ones([3, 8], tf.bool)
    compute = tf.function(lambda *inputs: best_sequence(*inputs, LABELS), jit_compile=True, autograph=False)
    np.testing.assert_array_equal(compute(logits, is_read), best_sequence(logits, is_read, LABELS))
