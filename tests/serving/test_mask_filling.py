"""Several masks of a text are filled in one after another, each with those before it in place."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.errors import InputError
from albert_tf.serving.mask_filling import MaskFiller
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

pytestmark = pytest.mark.usefixtures("quick_to_trace")

TEXTS = ["배우들의 [MASK] [MASK] 좋았다", "[MASK] 이 영화는 [MASK] 정말 [MASK].", "이 영화 [MASK]"]


@pytest.fixture(scope="module")
def model():
    return albert_tf.load("models/albert_ko_small")


@pytest.fixture(scope="module")
def logits_of(model):
    """Returns the logits of each piece at all positions of one text, float32 [1, S, V]."""
    return tf.function(
        lambda ids: model.model({"input_ids": ids})["masked_lm_logits"],
        input_signature=[tf.TensorSpec([1, None], tf.int32)],
        autograph=False,
    )


def fill_by_hand(model, logits_of, text, order):
    """Returns pieces and probabilities: a loop of one text and one mask at a time."""
    vocabulary, tokenizer = model.tokenizer.vocabulary, model.tokenizer
    mask = vocabulary.id_of("[MASK]")
    ids = [vocabulary.id_of("[CLS]")]
    for number, part in enumerate(text.split("[MASK]")):
        ids += [mask] * (number > 0) + tokenizer.encode(part).ids[1:-1]
    ids.append(vocabulary.id_of("[SEP]"))
    places = [place for place, each in enumerate(ids) if each == mask]
    found = {}
    while left := [place for place in places if place not in found]:
        logits = logits_of(tf.constant([ids]))[0].numpy().astype(float)
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        probabilities[:, [place for place, piece in enumerate(vocabulary.pieces) if vocabulary.is_reserved(piece)]] = 0
        place = left[0] if order == "left_to_right" else max(left, key=lambda each: probabilities[each].max())
        ids[place] = int(probabilities[place].argmax())
        found[place] = vocabulary.pieces[ids[place]], probabilities[place].max()
    return [found[place] for place in places]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["left_to_right", "confidence"])
def test_masks_are_filled_in_as_by_hand(model, logits_of, order):
    for text, found in zip(TEXTS, model.fill_mask(TEXTS, order=order), strict=True):
        expected = fill_by_hand(model, logits_of, text, order)
        assert [piece["piece"] for piece in found["pieces"]] == [piece for piece, _ in expected]
        probabilities = [piece["probability"] for piece in found["pieces"]]
        np.testing.assert_allclose(probabilities, [each for _, each in expected], rtol=1e-3)
        assert "[MASK]" not in found["text"] and found.keys() == {"text", "pieces"}


def test_one_mask_is_filled_in_as_it_is_guessed(model):
    ((guess, *_),) = model.fill_mask(TEXTS[2:])[0]
    for order in ("left_to_right", "confidence"):
        ((found,),) = (each["pieces"] for each in model.fill_mask(TEXTS[2:], order=order))
        assert found["piece"] == guess["piece"]
        assert found["probability"] == pytest.approx(guess["probability"], rel=1e-4)


def test_text_that_is_cut_is_told(model):
    longest, before = model.max_seq_length, model.num_cut
    for order in ("jointly", "confidence"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fill_mask(["[MASK] " + "영화 " * (longest - 3)], order=order)
        with pytest.warns(UserWarning, match="some inputs are longer than the .* pieces that the model reads, and"):
            model.fill_mask(["[MASK] " + "영화 " * (longest - 2), "[MASK]"], order=order)
    assert model.num_cut == before + 2


@pytest.mark.parametrize(
    ("scheme", "pieces", "text", "chosen", "expected"),
    [
        ("continuation", ["재미", "##있다", "."], "정말 [MASK] [MASK] [MASK]", [0, 1, 2], "정말 재미있다 ."),
        ("continuation", ["재미", "##있다", "."], "정말[MASK][MASK]", [0, 2], "정말 재미."),
        ("end_of_word", ["재미", "있다_", "._"], "[MASK][MASK][MASK]", [0, 1, 2], "재미있다."),
        ("end_of_word", ["재미", "있다_", "._"], "재미[MASK]정말", [1], "재미있다 정말"),
    ],
)
def test_pieces_join_words_as_they_say(scheme, pieces, text, chosen, expected):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *pieces]), wordpiece_scheme=scheme)
    filler = MaskFiller(tokenizer, None)
    assert filler.describe(text, [(len(SPECIAL_TOKENS) + each, 1.0) for each in chosen])["text"] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "backwards"}, "order must be one of jointly, left_to_right, confidence. Received: 'backwards'"),
        ({"order": "confidence", "top_k": 5}, "`top_k` works only with order=jointly, as order=confidence puts one"),
    ],
)
def test_mistake_costs_one_sentence(model, options, message):
    with pytest.raises(InputError, match=message):
        model.fill_mask(TEXTS, **options)
