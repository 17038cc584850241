"""Multiple choice: what is encoded, the loss against NumPy, what is read and written, and what is measured."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import MultipleChoice
from albert_tf.finetuning.batches import Examples
from albert_tf.finetuning.tasks.multiple_choice import LEVELS, Question, encode_questions, read_questions

LENGTH = 24
CONFIG = tiny_config(max_position_embeddings=LENGTH)
TASK = MultipleChoice(CONFIG, num_choices=3)
RACE_TASK = MultipleChoice(CONFIG, 2, levels=LEVELS)
WEATHER = Question("비가 온다.", "무엇이 오나?", ("비", "눈", "바람"), 0, "1")
BLANK = Question("나는 밥을 먹었다. 맛있었다.", "나는 _ 먹었다.", ("밥을", "떡을", "국을"), 2, "2")
ARTICLE = {
    "article": "비가 온다.",
    "questions": ["무엇이 오나?", "비가 _."],
    "options": [["비", "눈"], ["온다", "간다"]],
    "answers": ["A", "B"],
    "id": "middle1.txt",
}


@pytest.fixture
def write_lines(tmp_path):
    def write(*lines):
        path = tmp_path / "train.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return str(path)

    return write


@pytest.fixture
def write_race(tmp_path):
    """Writes articles by level and name of the file, and returns the path of the folder."""

    def write(**levels):
        for level, files in levels.items():
            (tmp_path / "train" / level).mkdir(parents=True)
            for name, article in files.items():
                text = article if isinstance(article, str) else json.dumps(article)
                (tmp_path / "train" / level / f"{name}.txt").write_text(text)
        return str(tmp_path / "train")

    return write


def line(**changes):
    """Returns a line of JSON lines; a value may be replaced or, with None, left out."""
    values = {"passage": "비가 온다.", "question": "무엇이 오나?", "options": ["비", "눈", "바람"], "answer": 1}
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def inputs_of(tokenizer, passage_ids, qa_ids, length):
    """Returns ids, mask and segments of `[CLS] passage [SEP] qa [SEP]`, made by hand."""
    cls, sep = (tokenizer.vocabulary.id_of(token) for token in ("[CLS]", "[SEP]"))
    ids = [cls, *passage_ids, sep, *qa_ids, sep]
    first = len(passage_ids) + 2
    rows = [ids, [1] * len(ids), [0] * first + [1] * (len(ids) - first)]
    return [row + [0] * (length - len(row)) for row in rows]


def test_each_option_is_encoded_with_the_passage(sample_tokenizer):
    features = TASK.encode([WEATHER, BLANK], sample_tokenizer, LENGTH)
    assert features["input_ids"].shape == (2, 3, LENGTH) and features["input_ids"].dtype == np.int32
    np.testing.assert_array_equal(features["label_ids"], [0, 2])
    for row, question in enumerate((WEATHER, BLANK)):
        for column, option in enumerate(question.options):
            text = f"나는 {option} 먹었다." if question is BLANK else f"무엇이 오나? {option}"
            passage, qa = (ids.tolist() for ids in sample_tokenizer.encode_ids([question.passage, text]).numpy())
            expected = inputs_of(sample_tokenizer, passage, qa, LENGTH)
            for name, values in zip(("input_ids", "input_mask", "segment_ids"), expected):
                assert features[name][row, column].tolist() == values


@pytest.mark.parametrize(("max_qa_length", "kept"), [(3, 3), (100, 6)])  # half of 16 less 3 special tokens
def test_last_pieces_of_the_question_and_the_first_of_the_passage_are_kept(sample_tokenizer, max_qa_length, kept):
    long = Question("비가 오고 눈이 온다. " * 5, "어제는 무엇이 어디에 왔나? " * 3, ("비", "눈"), None, "1")
    features = encode_questions(sample_tokenizer, [long], 16, max_qa_length)
    for column, option in enumerate(long.options):
        passage, qa = sample_tokenizer.encode_ids([long.passage, f"{long.question} {option}"]).to_list()
        assert len(qa) > 6 and len(passage) > 13
        ids, mask, segments = inputs_of(sample_tokenizer, passage[: 13 - kept], qa[-kept:], 16)
        assert features["input_ids"][0, column].tolist() == ids
        assert features["input_mask"][0, column].tolist() == mask
        assert features["segment_ids"][0, column].tolist() == segments


def test_many_questions_are_encoded_as_each_by_itself(sample_tokenizer, monkeypatch):
    monkeypatch.setattr("albert_tf.finetuning.tasks.multiple_choice._QUESTIONS_AT_ONCE", 2)
    questions = [WEATHER, BLANK, WEATHER, BLANK, BLANK]
    together = TASK.encode(questions, sample_tokenizer, LENGTH)
    for row, question in enumerate(questions):
        alone = TASK.encode([question], sample_tokenizer, LENGTH)
        for name, values in together.items():
            np.testing.assert_array_equal(values[row], alone[name][0])


def test_batches_are_cut_to_their_longest_option(sample_tokenizer):
    features = TASK.encode([WEATHER, BLANK], sample_tokenizer, LENGTH)
    assert TASK.batch_spec(None)["input_ids"].shape.as_list() == [None, 3, None]
    longest = features["input_mask"].sum(axis=-1).max()
    (batch,) = Examples(features, TASK.batch_spec(None)).eval_dataset(2)
    assert batch["input_ids"].shape == (2, 3, -(-longest // 8) * 8)
    (batch,) = Examples(features, TASK.batch_spec(LENGTH)).eval_dataset(2)
    assert batch["input_ids"].shape == (2, 3, LENGTH)


def test_loss_is_the_cross_entropy_over_the_options(sample_tokenizer):
    tf.keras.utils.set_random_seed(0)
    task = MultipleChoice(tiny_config(len(sample_tokenizer), max_position_embeddings=LENGTH), 3)
    features = task.encode([WEATHER, BLANK, BLANK], sample_tokenizer, LENGTH)
    batch = {name: features[name] for name in task.batch_spec(LENGTH) if name in features}
    batch["example_weights"] = np.array([1, 1, 0], np.float32)
    model = task.make_model()
    probabilities = task.outputs(batch, model)["probabilities"].numpy().astype(np.float64)
    assert probabilities.shape == (3, 3)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    found = task.compute(batch, False, None, model)
    total, weight = found["multiple_choice_loss"]
    assert float(weight) == float(task.loss_weights(batch)["multiple_choice_loss"]) == 2
    np.testing.assert_allclose(total, -np.log(probabilities[[0, 1], [0, 2]]).sum(), rtol=1e-5)
    right, _ = found["accuracy"]
    assert float(right) == (probabilities[:2].argmax(axis=-1) == [0, 2]).sum()


def test_operations_are_those_of_all_options():
    spec = {"input_ids": tf.TensorSpec([2, 3, LENGTH])}
    one = {"input_ids": tf.TensorSpec([6, 1, LENGTH])}
    assert TASK.flops(spec) == TASK.flops(one) > 0


def test_json_lines_are_read(write_lines):
    path = write_lines(line(), line(answer="C", id="q7"), line(answer=0))
    questions = TASK.read(path)
    assert questions[0] == Question("비가 온다.", "무엇이 오나?", ("비", "눈", "바람"), 1, "1")
    assert [(question.answer, question.name) for question in questions] == [(1, "1"), (2, "q7"), (0, "3")]
    assert TASK.describe(path, questions, {}) == [f"3 questions with 3 options each in {path}"]


def test_articles_of_race_are_read(write_race):
    middle2 = {**ARTICLE, "id": "middle2.txt", "answers": ["B", "A"]}
    path = write_race(high={"9": {**ARTICLE, "id": "high9.txt"}}, middle={"2": middle2, "1": ARTICLE})
    questions = RACE_TASK.read(path)
    assert [question.name for question in questions] == [
        *("middle1.txt:1", "middle1.txt:2", "middle2.txt:1", "middle2.txt:2", "high9.txt:1", "high9.txt:2")
    ]
    assert [question.answer for question in questions] == [0, 1, 1, 0, 0, 1]
    assert questions[-1] == Question("비가 온다.", "비가 _.", ("온다", "간다"), 1, "high9.txt:2", "high")
    assert RACE_TASK.describe(path, questions, {}) == [f"6 questions with 2 options each in {path} (4 middle, 2 high)"]
    assert [question.level for question in read_questions(path, ("high",))] == ["high", "high"]


def test_all_articles_in_one_file_stand_for_the_others(write_race):
    lines = "\n".join(json.dumps({**ARTICLE, "id": name}, ensure_ascii=False) for name in ("a", "b"))
    path = write_race(middle={"1": ARTICLE, "all": lines})
    assert [question.name for question in RACE_TASK.read(path)] == ["a:1", "a:2", "b:1", "b:2"]


@pytest.mark.parametrize("answer", [None, "", "?"])
def test_answers_are_needed_only_where_they_are_used(write_lines, sample_tokenizer, answer):
    path = write_lines(line(answer=answer))
    (question,) = TASK.read(path, needs_labels=False)
    assert question.answer is None
    assert TASK.encode([question], sample_tokenizer, LENGTH)["label_ids"] == [0]
    with pytest.raises(InputError, match=r"train\.jsonl, line 1: no answer; add it, or leave the question out"):
        TASK.read(path)


def test_articles_without_answers_can_be_predicted(write_race):
    path = write_race(middle={"1": {name: value for name, value in ARTICLE.items() if name != "answers"}})
    assert [question.answer for question in RACE_TASK.read(path, needs_labels=False)] == [None, None]
    with pytest.raises(InputError, match=r"1\.txt, question 1: no answer; "):
        RACE_TASK.read(path)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object; correct it"),
        (line(passage=None), "no text of the passage; add it, or leave the question out"),
        (line(options="비"), "options must be a list of 2 to 26 texts. Received: '비'"),
        (line(options=["비", "눈"]), "2 options, but the model chooses from 3; give as many"),
        (line(answer="D"), "the answer must be a letter from A to C or an index from 0 to 2. Received: 'D'"),
        (line(answer=True), "the answer must be a letter from A to C or an index from 0 to 2. Received: True"),
    ],
)
def test_bad_line_is_named(write_lines, bad, message):
    path = write_lines(line(), bad)
    with pytest.raises(InputError) as error:
        TASK.read(path)
    assert str(error.value).startswith(f"{path}, line 2: {message}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions": "?"}, ": no list of questions; correct the file"),
        ({"answers": ["A"]}, ": 2 questions, 2 lists of options and 1 answers; give every question one of each"),
        ({"options": [["비", "눈"], ["온다", "간다", "_"]]}, ", question 2: 3 options, but the model chooses from 2; "),
    ],
)
def test_bad_article_is_named(write_race, changes, message):
    path = write_race(middle={"1": {**ARTICLE, **changes}})
    with pytest.raises(InputError) as error:
        RACE_TASK.read(path)
    assert str(error.value).startswith(f"{path}/middle/1.txt{message}")


def test_lines_and_articles_that_can_not_be_used_may_be_left_out(write_lines, write_race, capsys):
    path = write_lines(line(options="비"), line(), "{", line(answer=9), line())
    with pytest.raises(InputError, match=r"line 1: options must .*; or pass `on_bad_row=skip` to leave such entries"):
        read_questions(path)
    assert len(read_questions(path, on_bad_row="skip")) == 2
    told = capsys.readouterr().out
    assert told.startswith(f"warning: 3 entries left out; the first: {path}, line 1: options must be a list of 2 to 26")
    articles = {"1": {**ARTICLE, "questions": "?"}, "2": {**ARTICLE, "answers": ["A", "C"]}}
    folder = write_race(middle=articles)
    (question,) = read_questions(folder, LEVELS, 2, on_bad_row="skip")
    assert question.question == "무엇이 오나?"
    told = capsys.readouterr().out
    assert told.startswith(
        f"warning: 2 entries left out; the first: {folder}/middle/1.txt: no list of questions; correct the file\n"
    )


def test_nothing_to_read_is_told(tmp_path, write_lines):
    with pytest.raises(InputError, match="has no folder middle or high; unpack RACE there as it is published"):
        RACE_TASK.read(str(tmp_path))
    with pytest.raises(InputError, match=r"train\.jsonl has no questions"):
        TASK.read(write_lines(""))
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").write_text("{}")
    with pytest.raises(InputError, match="saved is a folder that datasets has saved; write JSON lines of passage"):
        RACE_TASK.read(str(tmp_path / "saved"))


@pytest.mark.parametrize("value", [("비가 온다.", "무엇이?"), ("비가 온다.", "무엇이?", ["비", "눈"])])
def test_question_of_another_kind_is_refused(value):
    (question,) = TASK.examples_of([("비가 온다.", "무엇이 오나?", ["비", "눈", "바람"])])
    assert question == Question("비가 온다.", "무엇이 오나?", ("비", "눈", "바람"), None, "0")
    with pytest.raises(InputError, match=r"input 0 must be a passage, a question and a list of 3 options\. Received: "):
        TASK.examples_of([value])


def test_surest_mistakes_come_first(tmp_path):
    questions = [BLANK, WEATHER, WEATHER]
    predictions = [
        {"label": letter, "option": question.options["ABC".index(letter)], "probabilities": {letter: probability}}
        for question, letter, probability in zip(questions, "ACA", (0.6, 0.9, 1.0))
    ]
    (write,) = TASK.reports().values()
    write(str(tmp_path / "errors.tsv"), questions, predictions)
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "id\tlabel\tprediction\tprobability\tquestion\tanswer\tchosen",
        "1\tA\tC\t0.9000\t무엇이 오나?\t비\t바람",
        "2\tC\tA\t0.6000\t나는 _ 먹었다.\t국을\t밥을",
    ]


def test_predictions_are_written_and_measured(tmp_path):
    questions = [
        Question("글", f"{level}\t?", ("ㄱ", "ㄴ"), answer, f"{level}{number}", level)
        for number, (level, answer) in enumerate([("middle", 1), ("middle", 0), ("high", 1), ("high", None)])
    ]
    probabilities = np.array([[0.25, 0.75], [0.125, 0.875], [0.0, 1.0], [0.75, 0.25]])
    predictions = RACE_TASK.predict(questions, {}, {"probabilities": probabilities})
    assert predictions[0] == {"label": "B", "option": "ㄴ", "probabilities": {"A": 0.25, "B": 0.75}}
    RACE_TASK.write_predictions(str(tmp_path / "predictions.tsv"), questions, predictions)
    assert (tmp_path / "predictions.tsv").read_text().splitlines() == [
        "id\tquestion\tlabel\tprediction\tp(A)\tp(B)",
        "middle0\tmiddle ?\tB\tB\t0.2500\t0.7500",
        "middle1\tmiddle ?\tA\tB\t0.1250\t0.8750",
        "high2\thigh ?\tB\tB\t0.0000\t1.0000",
        "high3\thigh ?\t\tA\t0.7500\t0.2500",
    ]
    assert RACE_TASK.score(questions[:3], predictions[:3]) == {
        "accuracy": pytest.approx(2 / 3),
        "middle_accuracy": 0.5,
        "high_accuracy": 1.0,
    }
    assert RACE_TASK.score(questions[:2], predictions[:2]) == {"accuracy": 0.5, "middle_accuracy": 0.5}


def test_task_is_made_of_the_settings_of_its_run():
    task = MultipleChoice(CONFIG, 5, 32, ("high",))
    settings = json.loads(json.dumps(task.settings()))
    assert MultipleChoice.from_settings(CONFIG, settings).settings() == settings
    assert RACE_TASK.scores_predictions and not task.scores_predictions and not TASK.scores_predictions
