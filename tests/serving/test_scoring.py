"""The scores of texts: long texts and unknown words, batches, and what has no score."""

import unicodedata

import numpy as np
import pytest
from syllables import PIECES, SYLLABLES, log_probabilities, make_model, make_models

from albert_tf.base.errors import InputError
from albert_tf.serving.scoring import Pieces, batch_lengths, causal_queries, cut_texts, masked_queries
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

pytestmark = pytest.mark.usefixtures("quick_to_trace")

TOKENIZER = KoreanWordPieceTokenizer(Vocabulary(PIECES))
LONGEST = 12
TEXTS = ["가나 다라마.", "가", "바사가 나다 라마바사", "다 나 가나다라마바사가나다라마바사 라"]
CLS, MASK = (TOKENIZER.vocabulary.id_of(token) for token in ("[CLS]", "[MASK]"))


@pytest.fixture(scope="module")
def models():
    return make_models(TOKENIZER, LONGEST)


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_score_does_not_depend_on_the_other_texts(models, kind):
    model = getattr(models, kind)
    together = model.score(TEXTS * 3, batch_size=4)
    for row, text in enumerate(TEXTS):
        alone = model.score([text])[0]
        for found in (together[row], together[row + 2 * len(TEXTS)]):
            assert found.pop("score") == pytest.approx(alone["score"], rel=1e-5)
            assert found.pop("per_character") == pytest.approx(alone["per_character"], rel=1e-5)
            assert found.items() <= alone.items()


def test_pieces_of_a_long_text_stand_in_the_middle_of_what_is_read(models):
    (pieces,) = cut_texts(TOKENIZER, ["가나다라마 " * 4])
    queries = list(masked_queries(pieces, TOKENIZER, LONGEST))
    assert len(queries) == 20 and {len(query.ids) for query in queries} == {LONGEST}
    for place, query in enumerate(queries):
        (position,) = query.positions
        begin = place + 1 - position
        assert begin == min(max(place - 5, 0), 10)
        for there, piece in enumerate(query.ids[1:-1]):
            is_masked = place <= begin + there < (place // 5 + 1) * 5
            assert piece == (MASK if is_masked else pieces.ids[begin + there])
    by_piece = list(masked_queries(pieces, TOKENIZER, LONGEST, "piece"))
    assert all((query.ids == MASK).sum() == 1 for query in by_piece)
    found = models.masked.score(["가나다라마 " * 4])[0]
    expected = sum(
        log_probabilities(models.masked, query.ids)[query.positions[0], query.labels[0]] for query in queries
    )
    assert found["score"] == pytest.approx(expected, abs=1e-4) and found["num_pieces"] == 20


@pytest.mark.parametrize("count", [1, LONGEST, LONGEST + 1, 3 * LONGEST + 1])
def test_each_piece_of_a_long_text_is_read_once_by_a_causal_model(models, count):
    ids = np.arange(count) % len(SYLLABLES) + len(SPECIAL_TOKENS)
    pieces = Pieces(ids.astype(np.int32), np.arange(count) + 1, np.ones(count, bool))
    queries = list(causal_queries(pieces, TOKENIZER, LONGEST))
    assert np.concatenate([query.labels for query in queries]).tolist() == ids.tolist()
    for number, query in enumerate(queries):
        assert len(query.ids) <= LONGEST and query.ids[0] == CLS
        assert number == 0 or query.positions[0] >= LONGEST // 2 - 1
        for position, label in zip(query.positions[:-1], query.labels):
            assert query.ids[position + 1] == label


def test_causal_model_reads_a_text_behind_cls(models):
    (pieces,) = cut_texts(TOKENIZER, TEXTS[:1])
    ids = [CLS, *pieces.ids]
    expected = sum(log_probabilities(models.causal, ids)[place, label] for place, label in enumerate(ids[1:]))
    found = models.causal.score(TEXTS[:1])[0]
    assert found["score"] == pytest.approx(expected, abs=1e-4)
    assert (found["num_pieces"], found["num_characters"], found["num_unknown"]) == (6, 7, 0)
    assert found["per_character"] == found["score"] / 7


def test_characters_are_those_of_the_text_with_hangul_composed(models):
    composed, decomposed = models.masked.score([" 가나  다 ", unicodedata.normalize("NFD", "가나  다")])
    assert composed == decomposed and composed["num_characters"] == 5


def test_unknown_words_are_counted_and_told(models):
    with pytest.warns(UserWarning, match="words that the vocabulary can't spell, such as 하하"):
        found = models.masked.score(["가 하하 나", "가"])
    assert [each["num_unknown"] for each in found] == [1, 0] and models.masked.num_unknown == 1


@pytest.mark.parametrize(
    ("kind", "asked", "message"),
    [
        ("masked", (["가", " "],), "input 1 is empty, so there is nothing to score; leave it out"),
        (
            "causal",
            (["가", "나 [MASK]"],),
            r"input 1 contains \[MASK\], but only whole texts are scored; use fill_mask",
        ),
        ("masked", ("가",), "pass a list of inputs, even for a single one"),
        ("masked", (["가"], None, 0), "`batch_size` must be a whole number from 1 on. Received: 0"),
        ("masked", (["가"], "word"), "`method` must be one of within_word, piece. Received: 'word'"),
        ("causal", (["가"], "piece"), "`method=piece` says what is masked, but this model masks nothing;"),
    ],
)
def test_what_has_no_score_is_one_sentence(models, kind, asked, message):
    with pytest.raises(InputError, match=message):
        getattr(models, kind).score(*asked)


def test_nothing_is_scored_where_nothing_is_asked(models):
    assert models.masked.score([]) == [] and models.causal.score([]) == []


def test_model_without_a_trained_head_is_refused():
    model = make_model(TOKENIZER, LONGEST, untrained=frozenset(["masked_lm_head/output_bias"]))
    assert model.abilities == ("encode", "similarity")
    with pytest.raises(
        InputError, match="tiny has no masked_lm_head, which guesses missing pieces; it has encode, sim"
    ):
        model.score(["가"])
    model = make_model(TOKENIZER, LONGEST, fills_masks=False)
    with pytest.raises(
        InputError, match="tiny was not pre-trained to tell how probable pieces are, and so it has no ch"
    ):
        model.choose(["가"], "{text} {answer}", {"a": "나", "b": "다"})


def test_inputs_have_few_lengths():
    assert batch_lengths(128) == [16, 24, 32, 48, 64, 96, 128]
    assert batch_lengths(100) == [16, 24, 32, 48, 64, 96, 100] and batch_lengths(10) == [10]
