"""Exact match, F1 and ROUGE-W of answers, worked out by hand."""

import numpy as np
import pytest

from albert_tf.finetuning.tasks.squad import METRICS, best_threshold, rules_named_by


def compare(name, prediction, *answers, may_be_unanswerable=False):
    return METRICS[name].compare(prediction, list(answers), may_be_unanswerable)


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "f1"),
    [
        ("The Denver Broncos!", "denver broncos", 1, 1),
        ("an apple a day", "apple day", 1, 1),
        ("theatre", "atre", 0, 0),  # articles are words of their own
        ("Broncos", "Denver Broncos", 0, 2 / 3),  # precision 1, recall 1/2
        ("the red red car", "red car", 0, 4 / 5),  # two of three words, each counted once
        ("U.S.", "US", 1, 1),
        ("U S", "US", 0, 0),
        ("state-of-the-art", "stateoftheart", 1, 1),  # punctuation goes before articles do
        ("the", "a", 1, 0),  # nothing is left of either, as in the script of 1.1
    ],
)
def test_squad(prediction, answer, exact, f1):
    assert compare("squad", prediction, answer) == pytest.approx((exact, f1))


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "f1"),
    [
        ("이순신은", "이순신", 0, 6 / 7),  # three of four characters, and three of three
        ("《천국의 계단》", "천국의 계단", 1, 1),
        ("천국의계단", "천국의 계단", 0, 1),  # spaces count for the exact match alone
        ("'용팔이'", "‘용팔이’", 1, 1),
        ("(주)한국", "주 한국", 1, 1),  # brackets separate words
        ("3.1운동", "31운동", 1, 1),  # other punctuation doesn't
        ("2001년", "2010년", 0, 1),  # the same characters in another order
        ("ABC 방송", "abc 방송", 1, 1),
        ("a 마을", "마을", 0, 4 / 5),  # Korean has no articles
    ],
)
def test_korquad(prediction, answer, exact, f1):
    assert compare("korquad", prediction, answer) == pytest.approx((exact, f1))


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "overlap"),
    [
        ("이순신은", "이순신", 0, 6 / 7),
        ("2001년", "2010년", 0, 2 * 2 / 10),  # "20" is the longest run, 2 of 5 and 2 of 5
        ("《용팔이》", "용팔이", 0, 2 * 3 / 8),
        ('"용팔이"', "용팔이", 1, 1),
        ("강감찬", "을지문덕", 0, 0),
        ("", "이순신", 0, 0),
    ],
)
def test_klue(prediction, answer, exact, overlap):
    assert compare("klue", prediction, answer) == pytest.approx((exact, overlap))


@pytest.mark.parametrize("name", METRICS)
def test_best_of_several_answers_counts_for_each_measure(name):
    assert compare(name, "서울", "서울", "서울 특별시") == (1, 1)
    assert compare(name, "서울 특별시", "서울", "서울 특별시") == (1, 1)


@pytest.mark.parametrize("name", METRICS)
def test_no_answer_is_right_where_there_is_none(name):
    assert compare(name, "", may_be_unanswerable=True) == (1, 1)
    assert compare(name, "서울", may_be_unanswerable=True) == (0, 0)
    assert compare(name, "", "서울", may_be_unanswerable=True) == (0, 0)
    assert compare(name, "", ".", may_be_unanswerable=True) == (1, 1)
    assert compare(name, "서울", "서울", ".", may_be_unanswerable=True) == (1, 1)


@pytest.mark.parametrize(("name", "score"), [("squad", 0), ("korquad", 0), ("klue", 1)])
def test_answer_of_which_nothing_is_left_beside_others_counts_with_klue_alone(name, score):
    """SQuAD 2.0's script leaves such answers out, KLUE's does not."""
    assert compare(name, "", "서울", ".", may_be_unanswerable=True) == (score, score)


@pytest.mark.parametrize(
    ("version", "name", "named"),
    [
        ("KorQuAD_v1.0_dev", "dev.json", ("korquad", "KorQuAD_v1.0_dev")),
        ("KorQuAD_v1.0_dev", "squad_dev.json", ("korquad", "KorQuAD_v1.0_dev")),
        ("1.1", "dev-v1.1.json", ("squad", "dev-v1.1.json")),
        (1.1, "dev.json", ("squad", "1.1")),
        ("v2.0", "train.json", ("squad", "v2.0")),
        ("v1.1", "klue-mrc-v1.1_dev.json", ("klue", "klue-mrc-v1.1_dev.json")),
        (None, "squad_kor_v1.json", ("korquad", "squad_kor_v1.json")),
        (1, "ko_nia_normal_squad_all.json", None),  # whose form is SQuAD's
        ("v1.1", "dev.json", None),
        (None, "my_dev-v1.1.json", None),
        ([], "dev.json", None),
    ],
)
def test_rules_follow_from_what_a_file_calls_itself(version, name, named):
    assert rules_named_by(version, name) == named


def test_best_threshold_answers_what_gains():
    scores, has_answer = np.array([1.0, 0.5, 0.0, 0.0, 1.0]), np.array([True, True, False, False, True])
    null_odds = np.array([-3.0, 1.0, 0.5, 2.0, 5.0])
    # Nothing: 2 of 5. Up to -3: 3. Up to 0.5: 2. Up to 1: 2.5. Up to 2: 1.5. All: 2.5.
    assert best_threshold(scores, has_answer, null_odds) == (60.0, -3.0)
    # Those with an answer first: 2 and 1, 0.5 and 1 more.
    assert best_threshold(scores, has_answer, np.array([-3.0, 1.0, 9.0, 9.0, 5.0])) == (90.0, 5.0)
    # To answer nothing is best.
    assert best_threshold(np.array([0.0, 0.2]), np.array([False, True]), np.array([1.0, 2.0])) == (50.0, 0.0)
