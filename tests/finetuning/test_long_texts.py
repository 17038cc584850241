"""A text of 100,000 characters, whole or as one word: every task reads, encodes and predicts it."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.finetuning import TASKS, Classification, Entities, MultipleChoice, Regression
from albert_tf.finetuning.datasets import DATASETS, DataFiles

CHARACTERS, LENGTH = 100_000, 128
ANSWER = "부산"
_SENTENCE = "비가 오는 날이었다. 그는 아침에 집을 나섰다. "
_END = f"기차를 타고 {ANSWER}에 갔다."
WORDS = (_SENTENCE * CHARACTERS)[: CHARACTERS - len(_END) - 1] + " " + _END
TEXTS = {"words": WORDS, "one word": "가나다라마" * (CHARACTERS // 5)}


def write_rows(path, text):
    path.write_text(f"document\tlabel\n{text}\t0\n짧다\t1\n")


def write_questions(path, text):
    answer = text[-7:-5]
    question = {"id": "1", "question": "어디?", "answers": [{"text": answer, "answer_start": len(text) - 7}]}
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": text, "qas": [question]}]}]}))


def write_choices(path, text):
    path.write_text(json.dumps({"passage": text, "question": "어디?", "options": [ANSWER, text], "answer": 0}) + "\n")


def write_tags(path, text):
    count = len(text.split())
    path.write_text(f"{text}\t{' '.join(['O'] * (count - 1) + ['LOC-B'])}\n")


def with_squad(name):
    return lambda config: TASKS[name](config, metrics="korquad")


# By the names of TASKS: how the task is made, and how its file is written.
CASES = {
    "classify": (lambda config: Classification(config, files=DATASETS["tsv"]), write_rows),
    "score": (lambda config: Regression(config, DataFiles(is_regression=True, metrics=("pearson",))), write_rows),
    "squad": (with_squad("squad"), write_questions),
    "squad_v2": (with_squad("squad_v2"), write_questions),
    "race": (lambda config: MultipleChoice(config, num_choices=2), write_choices),
    "tag": (lambda config: Entities(config, ("LOC",), "words"), write_tags),
}


@pytest.fixture(params=sorted(TASKS))
def case(request):
    """Makes the task of a name and writes its file: tasks that are added need a line above."""
    return CASES[request.param]


@pytest.fixture(params=sorted(TEXTS))
def text(request):
    """A text of so many characters."""
    assert len(TEXTS[request.param]) == CHARACTERS
    return TEXTS[request.param]


def compute_outputs(task, model, features):
    """Returns what the task's predictions need, of batches of rows."""
    names = [name for name in task.batch_spec(LENGTH) if name in features]
    parts = []
    for begin in range(0, len(features["input_ids"]), 512):
        batch = {name: tf.constant(features[name][begin : begin + 512]) for name in names}
        parts.append({name: values.numpy() for name, values in task.outputs(batch, model=model).items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_long_text_is_read_encoded_and_predicted(case, text, tmp_path, sample_tokenizer):
    make, write = case
    task = make(tiny_config(len(sample_tokenizer.vocabulary), max_position_embeddings=LENGTH))
    write(tmp_path / "long", text)
    examples = task.read(str(tmp_path / "long"))
    features = task.encode(examples, sample_tokenizer, LENGTH)
    assert features["input_ids"].shape[-1] == LENGTH
    assert task.describe("long", examples, features)
    predictions = task.predict(examples, features, compute_outputs(task, task.make_model(), features))
    assert len(predictions) == len(examples)
    task.write_predictions(str(tmp_path / task.predictions_file), examples, predictions)
    task.score(examples, predictions)
    for name, write_report in task.reports().items():
        write_report(str(tmp_path / name), examples, predictions)


@pytest.mark.parametrize("name", ["squad", "squad_v2"])
def test_answer_at_the_end_of_a_long_text_is_in_a_window(name, tmp_path, sample_tokenizer):
    make, write = CASES[name]
    task = make(tiny_config(len(sample_tokenizer.vocabulary)))
    write(tmp_path / "long", WORDS)
    questions = task.read(str(tmp_path / "long"))
    features = task.encode(questions, sample_tokenizer, LENGTH)
    (row,) = np.flatnonzero(features["start_positions"] > 0)
    assert row == len(features["input_ids"]) - 1 > 100
    first, last = (features[f"{end}_positions"][row] - features["context_positions"][row] for end in ("start", "end"))
    offsets = features["context_offsets"][row]
    assert ANSWER in WORDS[offsets[first][0] : offsets[last][1]]


def test_every_word_of_a_long_sentence_is_read_once(tmp_path, sample_tokenizer):
    make, write = CASES["tag"]
    task = make(tiny_config(len(sample_tokenizer.vocabulary)))
    write(tmp_path / "long", WORDS)
    (text,) = examples = task.read(str(tmp_path / "long"))
    features = task.encode(examples, sample_tokenizer, LENGTH)
    read = np.concatenate([units[:, 0] for units in features["units"]])
    assert read.tolist() == list(range(len(text.units)))
