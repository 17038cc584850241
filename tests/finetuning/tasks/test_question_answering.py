"""The task: from logits to losses, answers, scores and files, and what it tells of its data."""

import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from questions import CHARACTERS, character_tokenizer, entry, make_question, write_squad
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS, ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.tasks.question_windows import SpanOptions, WindowOptions, best_spans
from albert_tf.finetuning.tasks.squad import Answer, Question

TOKENIZER = character_tokenizer()
CONFIG = tiny_config(len(TOKENIZER.vocabulary))
TASK = QuestionAnswering(CONFIG)


def logits_of(features):
    """Returns made-up outputs that are 9 where an answer that is known starts and ends, else small and random."""
    draws = np.random.default_rng(0)
    outputs = {}
    for name in ("start", "end"):
        values = draws.uniform(size=features["input_ids"].shape)
        positions = features[f"{name}_positions"]
        rows = np.flatnonzero(positions >= 0)
        values[rows, positions[rows]] = 9.0
        outputs[f"{name}_logits"] = values.astype(np.float32)
    return outputs


def answer(task, questions, max_seq_length=40, outputs=None):
    features = task.encode(questions, TOKENIZER, max_seq_length)
    return task.predict(questions, features, outputs or logits_of(features))


def test_answer_is_cut_from_the_text_as_given():
    (prediction,) = answer(TASK, [make_question("가나는  한국의 É1!", "한국의 É1")])
    assert (prediction["text"], prediction["begin"], prediction["end"]) == ("한국의 É1", 5, 11)
    assert prediction["nbest"][0]["text"] == "한국의 É1"
    assert "null_odds" not in prediction


@st.composite
def questions_with_answers(draw):
    """Draws a text, and a span of it that begins and ends with a character of its own."""
    context = draw(st.text(st.sampled_from(CHARACTERS + "ABC   \n\u3000\u200b"), min_size=1, max_size=60))
    places = [place for place, character in enumerate(context) if character in CHARACTERS]
    if not places:
        return make_question(context + "가", "가")
    begin = draw(st.sampled_from(places))
    end = 1 + draw(st.sampled_from([place for place in places if begin <= place < begin + 12]))
    return make_question(context, answers=(Answer(context[begin:end], begin),))


@pytest.mark.slow
@settings(max_examples=50)
@given(questions_with_answers(), st.integers(30, 60), st.integers(1, 40))
def test_what_a_model_is_sure_of_is_answered_to_the_character(question, max_seq_length, doc_stride):
    task = QuestionAnswering(CONFIG, WindowOptions(doc_stride))
    (prediction,) = answer(task, [question], max_seq_length)
    expected = question.answers[0]
    assert (prediction["text"], prediction["begin"], prediction["end"]) == (expected.text, expected.begin, expected.end)


def test_best_spans_are_those_of_all_pairs():
    draws = np.random.default_rng(1)
    start, end, is_allowed = draws.normal(size=9), draws.normal(size=9), draws.uniform(size=[9, 4]) < 0.7
    is_allowed &= np.arange(9)[:, None] + np.arange(4) < 9
    pairs = [(start[i] + end[i + j], i, i + j) for i in range(9) for j in range(4) if is_allowed[i, j]]
    found = best_spans(start, end, is_allowed, 5)
    assert sorted(zip(found.scores, found.firsts, found.lasts)) == sorted(pairs)[-5:]


def test_best_answers_of_all_windows_are_told_once_each_and_add_up_to_one():
    task = QuestionAnswering(CONFIG, span_options=SpanOptions(n_best_size=4, max_answer_length=3))
    (prediction,) = answer(task, [make_question("가 나 가 나 다라마바사각 " * 4, "다라마")], 20)
    texts = [each["text"] for each in prediction["nbest"]]
    assert texts[0] == "다라마" and len(set(texts)) == 4
    assert all(len(text.replace(" ", "")) <= 3 for text in texts)
    scores = np.array([each["score"] for each in prediction["nbest"]])
    assert (np.diff(scores) <= 0).all()
    probabilities = [each["probability"] for each in prediction["nbest"]]
    np.testing.assert_allclose(probabilities, np.exp(scores) / np.exp(scores).sum(), rtol=1e-6)


def test_question_and_special_pieces_are_no_answer():
    question = make_question("가나")
    features = TASK.encode([question], TOKENIZER, 20)
    outputs = {name: np.full([1, 20], 9.0) for name in ("start_logits", "end_logits")}
    for values in outputs.values():
        values[:, 5:7] = [1.0, 0.0]  # the text
    (prediction,) = TASK.predict([question], features, outputs)
    assert [each["text"] for each in prediction["nbest"]] == ["가", "가나", "나"]


def test_logits_may_be_shorter_than_the_windows():
    """As the runner returns them where all batches are cut."""
    question = make_question("가나다", "나다")
    features = TASK.encode([question], TOKENIZER, 40)
    cut = {name: values[:, : features["input_mask"].sum()] for name, values in logits_of(features).items()}
    assert TASK.predict([question], features, cut)[0]["text"] == "나다"


@pytest.mark.parametrize(("threshold", "text"), [(-1.5, ""), (-0.5, "나")])
def test_no_answer_where_the_first_piece_is_better_by_the_threshold(threshold, text):
    task = QuestionAnswering(CONFIG, may_be_unanswerable=True, null_threshold=threshold)
    question = make_question("가나", "나")
    features = task.encode([question], TOKENIZER, 20)
    outputs = {name: np.zeros([1, 20], np.float32) for name in ("start_logits", "end_logits")}
    outputs["start_logits"][0, [0, 6]] = 2.0, 3.0  # [CLS] and the answer
    (prediction,) = task.predict([question], features, outputs)
    assert (prediction["null_odds"], prediction["text"]) == (-1.0, text)
    assert prediction["nbest"][0]["text"] == "나"


def test_one_window_that_holds_the_answer_is_enough():
    task = QuestionAnswering(CONFIG, may_be_unanswerable=True)
    (prediction,) = answer(task, [make_question("가나다라마바사각" * 4, "바사")], 16)
    assert prediction["text"] == "바사" and prediction["null_odds"] < 0


def test_text_without_pieces_has_no_answer():
    for may_be_unanswerable in (False, True):
        task = QuestionAnswering(CONFIG, may_be_unanswerable=may_be_unanswerable)
        (prediction,) = answer(task, [make_question(" ")])
        assert (prediction["text"], prediction["begin"], prediction["nbest"]) == ("", None, [])


def predictions_of(*texts, null_odds=None):
    predictions = [{"id": str(number), "text": text, "nbest": [{"text": text}]} for number, text in enumerate(texts)]
    for prediction, odds in zip(predictions, null_odds or []):
        prediction["null_odds"] = odds
    return predictions


def test_score_is_in_percent():
    questions = [make_question("이순신은 장군이다", "이순신"), make_question("서울", "서울")]
    assert TASK.score(questions, predictions_of("이순신은", "서울")) == pytest.approx(
        {"exact_match": 50.0, "f1": 100 * (6 / 7 + 1) / 2}
    )
    squad = QuestionAnswering(CONFIG, metrics="squad").score(questions, predictions_of("이순신은", "서울"))
    assert squad == {"exact_match": 50.0, "f1": 50.0}
    assert TASK.selection_metric == "f1" and QuestionAnswering(CONFIG, metrics="klue").selection_metric == "rouge_w"
    klue = QuestionAnswering(CONFIG, metrics="klue").score(questions, predictions_of("이순신은", "서울"))
    assert klue == pytest.approx({"exact_match": 50.0, "rouge_w": 100 * (6 / 7 + 1) / 2})


def test_score_with_unanswerable_questions():
    task = QuestionAnswering(CONFIG, may_be_unanswerable=True, metrics="squad")
    questions = [
        make_question("a big dog", "big dog"),
        make_question("red", "red"),
        *[make_question("x", is_impossible=True)] * 2,
    ]
    predictions = predictions_of("dog", "red", "x", "x", null_odds=[-2.0, 1.0, 0.5, 3.0])
    predictions[1]["text"] = predictions[3]["text"] = ""
    assert task.score(questions, predictions) == pytest.approx(
        {
            "exact_match": 25.0,
            "f1": 25 * (2 / 3 + 1),
            "HasAns_exact": 0.0,
            "HasAns_f1": 100 / 3,
            "HasAns_total": 2,
            "NoAns_exact": 50.0,
            "NoAns_f1": 50.0,
            "NoAns_total": 2,
            # By exact match: nothing 2, up to -2: 2, to 0.5: 1, to 1: 2, all: 1.
            "best_exact": 50.0,
            "best_exact_thresh": 0.0,
            # By F1: 2, 2 2/3, 1 2/3, 2 2/3, 1 2/3.
            "best_f1": 100 * (2 + 2 / 3) / 4,
            "best_f1_thresh": -2.0,
        }
    )


def test_every_answer_to_what_has_none_costs_where_thresholds_are_compared():
    """SQuAD's script takes a lone article for no answer in its scores, but not where it looks for a threshold."""
    task = QuestionAnswering(CONFIG, may_be_unanswerable=True, metrics="squad")
    questions = [make_question("the x", is_impossible=True), make_question("red", "red")]
    scores = task.score(questions, predictions_of("the", "red", null_odds=[-1.0, 1.0]))
    assert scores["exact_match"] == scores["NoAns_exact"] == 100.0
    # Nothing: 1 of 2, up to -1: 0, all: 1.
    assert (scores["best_exact"], scores["best_exact_thresh"]) == (50.0, 0.0)
    assert (scores["best_f1"], scores["best_f1_thresh"]) == (50.0, 0.0)


def test_worst_answers_come_first(tmp_path):
    questions = [
        make_question("가나다", "가나", id="near", question="가?"),
        make_question("가나다", "다", id="far", question="나?"),
        make_question("가나다", "가", id="right"),
        Question("none", "다?", "가나다", is_impossible=True),
    ]
    task = QuestionAnswering(CONFIG, may_be_unanswerable=True, metrics="korquad")
    write_errors = task.reports()["errors.tsv"]
    write_errors(str(tmp_path / "errors.tsv"), questions, predictions_of("가나다", "가", "가", ""))
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "id\tquestion\tanswers\tprediction\tf1",
        "far\t나?\t다\t가\t0.0",
        "near\t가?\t가나\t가나다\t80.0",
    ]


def test_score_without_unanswerable_questions_leaves_their_means_out():
    scores = QuestionAnswering(CONFIG, may_be_unanswerable=True).score(
        [make_question("서울", "서울")], predictions_of("서울", null_odds=[0.0])
    )
    assert scores["NoAns_total"] == 0 and "NoAns_exact" not in scores
    assert all(np.isfinite(list(scores.values())))


@pytest.mark.parametrize("may_be_unanswerable", [False, True])
def test_files_of_predictions_stand_side_by_side(tmp_path, may_be_unanswerable):
    task, name = QuestionAnswering(CONFIG, may_be_unanswerable=may_be_unanswerable), "predictions-dev-1234.json"
    questions = [make_question("가나", "나", id="1"), make_question("가나", "나", id="2")]
    predictions = answer(task, questions)
    task.write_predictions(str(tmp_path / "new" / name), questions, predictions)
    written = {path.name: json.loads(path.read_text()) for path in (tmp_path / "new").iterdir()}
    expected = {name: {"1": "나", "2": "나"}, f"nbest_{name}": {each["id"]: each["nbest"] for each in predictions}}
    if may_be_unanswerable:
        expected["null_odds-dev-1234.json"] = {each["id"]: each["null_odds"] for each in predictions}
    assert written == expected


def test_what_is_told_before_training():
    questions = [
        make_question("가나", "나", id="1"),
        make_question("가나", id="2", answers=(Answer("나", 0),)),
        make_question("다\u1100\u1161라", id="3", answers=(Answer("\u1100", 1),)),  # the first half of a character
        make_question("가나", id="4", is_impossible=True),
    ]
    task = QuestionAnswering(CONFIG, may_be_unanswerable=True)
    assert task.describe("train.json", questions, task.encode(questions, TOKENIZER, 20)) == [
        "4 questions about 2 texts in train.json: 4 windows of up to 20 pieces",
        "1 of the questions have no answer",
        "1 answers begin or end within a piece: what is learnt for them is a little longer",
        "warning: 1 answers are not at their answer_start, the first of them that of question 2; these questions are "
        "not trained on",
    ]


def test_unanswerable_questions_are_refused_where_none_are_expected(tmp_path):
    path = write_squad(tmp_path / "a.json", [("가나", [entry("1", None, is_impossible=True), entry("2", "나", 1)])])
    with pytest.raises(InputError, match=r"a\.json: 1 questions have no answer, the first of them 1; pass `version_2"):
        TASK.read(path)
    assert len(TASK.read(path, needs_labels=False)) == 2
    assert len(QuestionAnswering(CONFIG, may_be_unanswerable=True).read(path)) == 2


@pytest.mark.parametrize("name", ["squad", "squad_v2"])
def test_tasks_train(name):
    task = TASKS[name](CONFIG)
    model = task.make_model()
    features = task.encode([make_question("가나 다라", "다라"), make_question("가", is_impossible=True)], TOKENIZER, 16)
    batch = {each: tf.constant(features[each]) for each in task.batch_spec(16) if each in features}
    batch["example_weights"] = tf.ones([2])
    found = task.compute(batch, True, tf.constant([1, 2]), model)
    assert found.keys() == {*task.loss_coefficients, *task.metric_names}
    assert all(np.isfinite(float(value)) for value, _ in found.values())
    ends = {"start_accuracy", "end_accuracy"}  # of the one that holds its answer
    assert all(float(weight) == (1.0 if name in ends else 2.0) for name, (_, weight) in found.items())


def found_spans(starts, ends, start_log_probs, end_log_probs, null_logits):
    """Returns what a search of one window found, as arrays."""
    return {
        "start_positions": np.array([starts], np.int32),
        "end_positions": np.array([ends], np.int32),
        "start_log_probs": np.array([start_log_probs], np.float32),
        "end_log_probs": np.array([end_log_probs], np.float32),
        "null_logits": np.array([null_logits], np.float32),
    }


def conditional(outputs, question, **options):
    task = ConditionalQuestionAnswering(CONFIG, **options)
    (prediction,) = task.predict([question], task.encode([question], TOKENIZER, 20), outputs)
    return prediction


def test_conditional_head_chooses_the_most_probable_span():
    question = make_question("가 나 다 라")  # at positions 5 to 8
    # The better first piece has the worse last ones.
    outputs = found_spans([5, 6], [[5, 8], [8, 6]], [-0.5, -1.0], [[-2.0, -3.0], [-0.1, -0.3]], -4.0)
    prediction = conditional(outputs, question)
    assert [each["text"] for each in prediction["nbest"]] == ["나 다 라", "나", "가", "가 나 다 라"]
    assert (prediction["text"], prediction["begin"], prediction["end"]) == ("나 다 라", 2, 7)
    assert prediction["nbest"][0]["score"] == pytest.approx(-1.1)


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (1.0, "가")])
def test_conditional_head_says_by_itself_that_there_is_no_answer(threshold, text):
    outputs = found_spans([5], [[5]], [-0.1], [[-0.1]], 0.5)
    prediction = conditional(outputs, make_question("가"), may_be_unanswerable=True, null_threshold=threshold)
    assert (prediction["text"], prediction["null_odds"]) == (text, 0.5)


def test_what_a_search_did_not_find_is_no_span():
    """Too few spans, outputs that were filled up with 0, [SEP], a last piece before the first, and a long answer."""
    outputs = found_spans(
        [5, 5, 0, 9, 7, 5], [[5], [6], [0], [9], [6], [8]], [-0.1, -1e30, 0.0, -0.2, -0.3, -0.4], [[-0.1]] * 6, 0.0
    )
    prediction = conditional(outputs, make_question("가 나 다 라"), span_options=SpanOptions(max_answer_length=3))
    assert [each["text"] for each in prediction["nbest"]] == ["가"]


@pytest.mark.slow
def test_conditional_head_finds_spans_of_the_text_in_batches_of_several_lengths():
    tf.keras.utils.set_random_seed(0)
    task = ConditionalQuestionAnswering(CONFIG, span_options=SpanOptions(start_n_top=30, end_n_top=30, n_best_size=500))
    model = task.make_model()
    questions = [make_question("가나"), make_question("다라마바사각 한국의 가나")]
    features = task.encode(questions, TOKENIZER, 40)
    outputs = []
    for row, length in ((0, 8), (1, 24)):
        names = ("input_ids", "input_mask", "segment_ids")
        batch = {name: tf.constant(features[name][row : row + 1, :length]) for name in names}
        outputs.append({name: values.numpy() for name, values in task.outputs(batch, model).items()})
    short, long = outputs
    filled = {}
    for name, values in long.items():
        missing = [(0, to - at) for to, at in zip((1, *values.shape[1:]), short[name].shape)]
        filled[name] = np.concatenate([np.pad(short[name], missing), values])
    first, second = task.predict(questions, features, filled)
    assert {each["text"] for each in first["nbest"]} == {"가", "나", "가나"}
    num_pieces = len(TOKENIZER.tokenize(questions[1].context))
    spans = {(each["begin"], each["end"]) for each in second["nbest"]}
    assert len(spans) == num_pieces * (num_pieces + 1) / 2


def losses(logits, positions):
    """Returns the cross-entropies of the first rows, in float64."""
    logits, rows = logits[: len(positions)].astype(np.float64), np.arange(len(positions))
    return np.log(np.exp(logits).sum(axis=1)) - logits[rows, positions]


def computed(objective, batch, **logits):
    """Returns what an objective computes of the logits of a model."""
    batch = {name: tf.constant(values) for name, values in batch.items()}
    outputs = {name: tf.constant(values) for name, values in logits.items()}
    results = objective.compute(batch, training=True, dropout_seed=None, model=lambda *_, **__: outputs)
    assert set(results) == {*objective.loss_coefficients, *objective.metric_names}
    weights = objective.loss_weights(batch)
    assert all(float(weights[name]) == float(results[name][1]) for name in objective.loss_coefficients)
    return {name: (float(total), float(weight)) for name, (total, weight) in results.items()}


def test_loss_is_the_mean_over_both_ends_and_skips_unknown_answers_and_examples_of_no_weight():
    start_logits, end_logits = np.random.default_rng(0).normal(size=(2, 5, 6)).astype(np.float32)
    starts, ends = [1, 2, 0, 5, -1], [3, 2, 1, 5, -1]
    batch = {"start_positions": starts, "end_positions": ends, "example_weights": [1.0, 1.0, 1.0, 0.0, 1.0]}
    start_logits[0, 1] = start_logits[2, 0] = 9.0  # so that some guess is right
    objective = QuestionAnswering(AlbertConfig(vocab_size=30))
    results = computed(objective, batch, start_logits=start_logits, end_logits=end_logits)
    expected = (losses(start_logits, starts[:3]) + losses(end_logits, ends[:3])).sum() / 2
    assert results["span_loss"] == (pytest.approx(expected, rel=1e-5), 3.0)
    # The third holds no answer: that [CLS] is found there says nothing of how answers are found.
    right = (start_logits.argmax(axis=1) == starts)[:2].sum()
    assert results["start_accuracy"] == (right, 2.0)
    assert right > 0


def test_where_there_may_be_no_answer_losses_are_those_of_both_ends_and_of_whether_there_is_one():
    start_logits, end_logits = np.random.default_rng(0).normal(size=(2, 5, 6)).astype(np.float32)
    null_logits = np.array([0.5, -2.0, 3.0, -1.0, 0.1], np.float32)
    starts, ends = [1, 2, 0, 0, -1], [3, 2, 0, 0, -1]  # the last is unknown
    batch = {"start_positions": starts, "end_positions": ends, "example_weights": [1.0, 1.0, 1.0, 0.0, 1.0]}
    objective = ConditionalQuestionAnswering(AlbertConfig(vocab_size=30))
    logits = {"start_logits": start_logits, "end_logits": end_logits, "null_logits": null_logits}
    results = computed(objective, batch, **logits)
    assert objective.loss_coefficients == {"span_loss": 1.0, "answerability_loss": 0.5}
    span_loss = (losses(start_logits, starts[:3]) + losses(end_logits, ends[:3])).sum() / 2
    is_impossible = 1 / (1 + np.exp(-null_logits[:3].astype(np.float64)))
    answerability_loss = -np.log([1 - is_impossible[0], 1 - is_impossible[1], is_impossible[2]]).sum()
    assert results["span_loss"] == (pytest.approx(span_loss, rel=1e-5), 3.0)
    assert results["answerability_loss"] == (pytest.approx(answerability_loss, rel=1e-5), 3.0)
    assert results["answerability_accuracy"][0] == 2.0  # the first is wrong
