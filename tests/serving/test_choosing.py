"""Labels without training: what of a template counts, how answers are compared, and mistakes in what is asked."""

import pytest
import syllables

from albert_tf.base.errors import InputError
from albert_tf.serving.choosing import Template, describe_accuracy, draw_examples, read_template
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

pytestmark = pytest.mark.usefixtures("quick_to_trace")

PIECES = [*syllables.PIECES, "##사가"]
TOKENIZER = KoreanWordPieceTokenizer(Vocabulary(PIECES))
ANSWERS = {"good": "나", "bad": "다라"}


@pytest.fixture(scope="module")
def models():
    return syllables.make_models(TOKENIZER, 24)


def log_probability(model, pieces, position, label):
    ids = [PIECES.index(piece) for piece in pieces]
    return syllables.log_probabilities(model, ids)[position, PIECES.index(label)]


def test_masked_answer_is_scored_within_words_given_all_else(models):
    """A josa behind the answer counts, and so does the piece that the answer shares with what stands before it."""
    (found,) = models.masked.choose(["가"], "{text} 바{answer}마.", ANSWERS)
    tail = [".", "[SEP]"]
    first = ["[CLS]", "가", "바", "[MASK]", "[MASK]", *tail]
    expected = log_probability(models.masked, first, 3, "##나")
    expected += log_probability(models.masked, ["[CLS]", "가", "바", "##나", "[MASK]", *tail], 4, "##마")
    good = found["answers"]["good"]
    assert good["score"] == pytest.approx(expected, abs=1e-5)
    assert good["per_character"] == pytest.approx(expected / 2, abs=1e-5)
    without = log_probability(models.masked, ["[CLS]", *first[2:]], 2, "##나")
    without += log_probability(models.masked, ["[CLS]", "바", "##나", "[MASK]", *tail], 3, "##마")
    assert good["pmi"] == pytest.approx(expected - without, abs=1e-5)
    (shared,) = models.masked.choose(["가"], "{text} 바사{answer}", {"good": "가", "bad": "나"})
    expected = log_probability(models.masked, ["[CLS]", "가", "바", "[MASK]", "[SEP]"], 3, "##사가")
    assert shared["answers"]["good"]["score"] == pytest.approx(expected, abs=1e-5)


def test_causal_answer_is_scored_given_what_comes_before(models):
    (found,) = models.causal.choose(["가"], "{text} {answer} 사", ANSWERS)
    pieces = ["[CLS]", "가", "다", "##라", "사"]
    expected = log_probability(models.causal, pieces, 1, "다") + log_probability(models.causal, pieces, 2, "##라")
    assert found["answers"]["bad"]["score"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("compare", ["pmi", "score", "per_character"])
def test_best_answer_is_the_label(models, compare):
    texts = ["가나 다", "마", "바사가 라마"]
    for found in models.masked.choose(texts, "{text} {answer}", ANSWERS, compare=compare, batch_size=3):
        values = {label: scores[compare] for label, scores in found["answers"].items()}
        assert found["label"] == max(values, key=values.get)


def test_examples_stand_in_front_in_the_same_template(models):
    examples = [("바사", "bad"), ("마", "good")]
    (found,) = models.masked.choose(["가"], "{text} {answer}", ANSWERS, examples)
    (same,) = models.masked.choose(["바사 다라\n마 나\n가"], "{text} {answer}", ANSWERS)
    assert found["answers"]["good"]["score"] == pytest.approx(same["answers"]["good"]["score"], abs=1e-6)
    assert found["answers"]["good"]["pmi"] != pytest.approx(same["answers"]["good"]["pmi"], abs=1e-3)


def test_text_may_hold_the_name_of_a_place():
    filled = Template("{text} 은 {answer}.", {"a": "{text}", "b": "나"}).fill("{answer} 가", "a")
    assert filled.text == "{answer} 가 은 {text}." and filled.text[filled.begin : filled.end] == "{text}"
    filled = Template("{answer}: {text}", ANSWERS, [("{answer}", "bad")]).fill("가", "good")
    assert filled.text == "다라: {answer}\n나: 가" and filled.text[filled.begin : filled.end] == "나"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("masked", {"template": "{text} 나"}, "a template needs {answer} once, but .* 0 times; correct it"),
        ("masked", {"answers": {"good": "나"}}, "nothing to choose from with 1 answers; give two or more"),
        ("masked", {"answers": {"good": "나", "bad": "\u200b"}}, "the tokenizer removes all of the answer"),
        ("masked", {"answers": {"good": "나", "bad": " 나 "}}, "the answers '나' and ' 나 ' as the same pieces"),
        ("masked", {"answers": {"good": "😀", "bad": "😢"}}, "the answers '😀' and '😢' as the same pieces"),
        ("masked", {"answers": {"good": "가 하", "bad": "나"}}, "'가 하' has a word that the vocabulary can't"),
        (
            "causal",
            {"texts": ["가", "나 하"], "template": "{text}{answer}"},
            "input 1 and the answer '나' are one word that the vocabulary can't spell; part them",
        ),
        ("masked", {"answers": {"good": "[MASK]", "bad": "나"}}, r"'\[MASK\]' contains \[MASK\], but {answer} is what"),
        ("masked", {"template": "{text} [MASK] {answer}"}, r"contains \[MASK\], but {answer} is what .*; take it out"),
        ("masked", {"template": None}, "a template must be a string with {text} and {answer}. Received: None"),
        ("masked", {"answers": ["나", "다"]}, "answers must be a dictionary of a string for each label. Received"),
        ("masked", {"examples": [(1, "bad")]}, "an example must be a tuple of a text and its label. Received"),
        ("masked", {"batch_size": 0}, "`batch_size` must be a whole number from 1 on. Received: 0"),
        ("masked", {"examples": [("가", "fair")]}, "an example has the label fair, for which there is no answer"),
        ("masked", {"compare": "sum"}, "`compare` must be one of pmi, score, per_character. Received: 'sum'"),
        ("masked", {"texts": ["가", ""]}, "input 1 is empty"),
        ("masked", {"texts": ["가", "가 " * 30]}, "input 1 has 32 pieces with the template, .* the model reads 22;"),
        ("masked", {"examples": [("가", "bad")] * 6}, "input 0 has 23 pieces with the template and the .* fewer"),
        ("causal", {"template": "{answer} {text}"}, "this model reads from left to right, but .* put it in front"),
    ],
)
def test_mistake_costs_one_sentence(models, kind, options, message):
    asked = {"texts": ["가 나 다"], "template": "{text} {answer}", "answers": ANSWERS, **options}
    with pytest.raises(InputError, match=message):
        getattr(models, kind).choose(**asked)


def test_unknown_words_around_a_text_are_told(models):
    with pytest.warns(UserWarning, match="the template holds words that the vocabulary can't spell, such as 하;"):
        models.masked.choose(["가"], "{text} 하 {answer}", ANSWERS)
    with pytest.warns(UserWarning, match="the template or an example holds words .* such as 하하; the model"):
        models.masked.choose([], "{text} {answer}", ANSWERS, [("하하", "bad")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "is empty; write a template, and a line for each label"),
        ("{text} {answer}\n\ngood 나\n", "line 3: 'good 나' is not a label with its answer, as positive: 재밌다"),
        ("{text} {answer}\ngood:\n", "line 2: 'good:' is not a label with its answer"),
        ("{text} {answer}\ngood: 나\ngood: 다\n", "line 3: good appears twice; remove one"),
    ],
)
def test_template_file_that_can_not_be_read_is_one_sentence(tmp_path, text, message):
    (tmp_path / "template.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read_template(tmp_path / "template.txt")


def test_template_file_holds_words_and_answers(tmp_path):
    (tmp_path / "template.txt").write_text("\ufeff{text} 한마디로: {answer}\n\n 1 : 좋다: 정말 \n0:나쁘다\n")
    assert read_template(tmp_path / "template.txt") == ("{text} 한마디로: {answer}", {"1": "좋다: 정말", "0": "나쁘다"})


def test_examples_are_drawn_by_seed_from_each_label(tmp_path):
    rows = "".join(f"글{number}\t{number % 2}\n" for number in range(40)) + "\t1\n다른 글\t2\n"
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + rows)
    path, *columns = str(tmp_path / "train.tsv"), "text", "label"
    drawn = [draw_examples(path, *columns, ["0", "1"], 5, seed) for seed in range(20)]
    assert all(sorted(label for _, label in each) == ["0", "0", "0", "1", "1"] for each in drawn)
    assert all(int(text[1:]) % 2 == int(label) for each in drawn for text, label in each)
    assert drawn[3] == draw_examples(path, *columns, ["0", "1"], 5, 3) and drawn[3] != drawn[4]
    assert len({tuple(label for _, label in each) for each in drawn}) > 3  # their order is drawn too
    with pytest.raises(InputError, match="has 20 texts of the label 0, and `num_examples=50` needs 25; use fewer"):
        draw_examples(path, *columns, ["0", "1"], 50, 0)
    named = "no column named title; .* name your columns with `input_fields` and `label_field`"
    with pytest.raises(InputError, match=named):
        draw_examples(path, "title", "label", ["0", "1"], 2, 0)


def test_accuracy_stands_beside_the_most_frequent_label():
    def answer(given, **scores):
        return {"given_label": given, "answers": {"1": dict.fromkeys(scores, 0), "0": scores}}

    rows = [answer(1, pmi=-1, score=1, per_character=-1), answer("1", pmi=-1, score=-1, per_character=1)]
    rows += [answer("0", pmi=1, score=-1, per_character=-1), answer("2", pmi=1, score=1, per_character=1)]
    assert describe_accuracy([*rows, {"error": "none"}, answer(None, pmi=1, score=1, per_character=1)]) == (
        "of 4 labels right: 75.0% by pmi, 25.0% by score, 25.0% by per_character; always 1: 50.0%; "
        "1 have a label that the template lacks"
    )
    assert describe_accuracy([{"answers": {}}]) is None
