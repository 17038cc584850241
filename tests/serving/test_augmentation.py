"""Copies of texts with other words: which pieces change, into what and how often, and what they follow from."""

import collections
import re

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving import PretrainedModel, pretrained_model
from albert_tf.serving.augmentation.augmenter import AugmentationOptions, Augmenter
from albert_tf.serving.augmentation.files import distinct_copies
from albert_tf.serving.augmentation.piece_kinds import NONE, kinds_of
from albert_tf.serving.loading import TrainedModel
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

pytestmark = pytest.mark.usefixtures("quick_to_trace")

SYLLABLES = "가나다라마바사"
PIECES = [*SPECIAL_TOKENS, *SYLLABLES, *(f"##{each}" for each in SYLLABLES), ".", "1", "ㅋㅋ", "ㅠㅠ", "a"]
TOKENIZER = KoreanWordPieceTokenizer(Vocabulary(PIECES))
LONGEST = 12
TEXTS = [
    "가나  다라마. 1 ㅋㅋ 뷁나 a",
    "가",
    "바사가 나다 라마바사.",
    "다 나 가나다라마바사가나다라마바사 라",
    "",
    "1.",
]


def load(monkeypatch, tokenizer, **learnt):
    tf.keras.utils.set_random_seed(3)
    model = AlbertForPreTraining(tiny_config(len(tokenizer), max_position_embeddings=LONGEST))
    for variable in model.trainable_variables:
        variable.assign(variable + tf.random.normal(variable.shape, stddev=0.3))
    found = TrainedModel(model, tokenizer, LONGEST, None, "model.ckpt-1", {}, **learnt)
    monkeypatch.setattr(pretrained_model, "load_trained", lambda *_: found)
    return PretrainedModel("tiny")


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        yield load(patch, TOKENIZER)


def options(**changes):
    return AugmentationOptions(**{"num_copies": 20, "num_candidates": 3, **changes})


def test_first_pieces_of_words_change_into_others_of_their_kind(model):
    found = Augmenter(model, options(replaced_share=0.7)).augment(TEXTS)
    syllable = f"[{SYLLABLES}]"
    patterns = [
        rf"{syllable}나  {syllable}라마\. 1 (ㅋㅋ|ㅠㅠ) 뷁나 a",  # there is but one piece of Latin letters
        syllable,
        rf"{syllable}사가 {syllable}다 {syllable}마바사\.",
        rf"{syllable} {syllable} {syllable}나다라마바사가나다라마바사 {syllable}",
        "",
        r"1\.",
    ]
    for copies, pattern, text in zip(found, patterns, TEXTS, strict=True):
        assert len(copies) == 20 and all(re.fullmatch(pattern, copy) for copy in copies), copies
        assert (len({*copies, text}) > 1) == (text not in ("", "1."))
    always = Augmenter(model, options(replaced_share=1.0)).augment(["가나 다"])[0]
    assert all(copy[0] != "가" and copy[3] != "다" for copy in always)


def test_replacements_are_drawn_as_often_as_the_model_finds_them_probable(model):
    (copies,) = Augmenter(model, options(num_copies=4000, replaced_share=1.0)).augment(["가나."])
    vocabulary = TOKENIZER.vocabulary
    ids = [vocabulary.id_of(piece) for piece in ("[CLS]", "[MASK]", "##나", ".", "[SEP]")]
    logits = model.model({"input_ids": tf.constant([ids])})["masked_lm_logits"][0, 1].numpy().astype(float)
    best = sorted(SYLLABLES[1:], key=lambda piece: -logits[vocabulary.id_of(piece)])[:3]
    weights = np.exp([logits[vocabulary.id_of(piece)] for piece in best])
    counts = collections.Counter(copy[0] for copy in copies)
    assert counts.keys() == set(best)
    np.testing.assert_allclose([counts[piece] / 4000 for piece in best], weights / weights.sum(), atol=0.03)


def test_each_word_is_guessed_with_those_before_it_in_place(model):
    (copies,) = Augmenter(model, options(num_copies=30, num_candidates=1, replaced_share=1.0)).augment(["가나 다라"])
    ids = [TOKENIZER.vocabulary.id_of(piece) for piece in ("[CLS]", "가", "##나", "다", "##라", "[SEP]")]
    for place, original in ((1, "가"), (3, "다")):
        ids[place] = TOKENIZER.vocabulary.id_of("[MASK]")
        logits = model.model({"input_ids": tf.constant([ids])})["masked_lm_logits"][0, place].numpy()
        best = max(set(SYLLABLES) - {original}, key=lambda piece: logits[TOKENIZER.vocabulary.id_of(piece)])
        ids[place] = TOKENIZER.vocabulary.id_of(best)
    first, second = (TOKENIZER.vocabulary.pieces[ids[place]] for place in (1, 3))
    assert set(copies) == {f"{first}나 {second}라"}


def test_share_of_words_that_change(model):
    (copies,) = Augmenter(model, options(num_copies=2000, replaced_share=0.4)).augment(["가나 다라"])
    changed = np.array([[copy[0] != "가", copy[3] != "다"] for copy in copies])
    np.testing.assert_allclose(changed.mean(axis=0), 0.4, atol=0.04)
    assert changed.all(axis=1).mean() == pytest.approx(0.16, abs=0.03)


def test_copies_follow_from_seed_and_text_alone(model, monkeypatch):
    told = []
    expected = Augmenter(model, options()).augment(TEXTS, told.append)
    assert told == sorted(told) and told[-1] == len(TEXTS)
    assert Augmenter(model, options(random_seed=1)).augment(TEXTS) != expected
    assert Augmenter(model, options()).augment(TEXTS[::-1])[::-1] == expected
    monkeypatch.setattr("albert_tf.serving.augmentation.augmenter._PIECES_AT_ONCE", 50)
    monkeypatch.setattr("albert_tf.serving.augmentation.augmenter._COPIES_AT_ONCE", 40)
    assert Augmenter(model, options()).augment(TEXTS) == expected


def test_copies_are_distinct_from_all_texts_and_from_each_other(model):
    rows = [("가",), ("나",), ("가나 다",), ("가",)]
    found = list(distinct_copies(Augmenter(model, options()), rows, lambda _: None))
    assert [row for row, _ in found] == rows
    copies = [copy for _, of_row in found for copy in of_row]
    assert len(set(copies)) == len(copies) and not set(copies) & set(rows)
    pairs = [("가나", "다라"), ("1", ".")]
    (_, copies), (_, without) = distinct_copies(Augmenter(model, options()), pairs, lambda _: None)
    assert without == [] and len({first for first, _ in copies}) > 1 and len({second for _, second in copies}) > 1


def test_kinds_tell_place_in_the_word_script_and_case(english_tokenizer):
    texts, kinds = kinds_of(TOKENIZER)
    kind = dict(zip(PIECES, kinds))
    assert kind["가"] == kind["사"] != kind["##가"] == kind["##사"] and kind["ㅋㅋ"] == kind["ㅠㅠ"]
    assert len({kind[piece] for piece in ("가", "##가", "ㅋㅋ", "a", "[MASK]")}) == 5
    assert {kind[piece] for piece in (*SPECIAL_TOKENS, ".", "1")} == {NONE}
    assert texts[PIECES.index("##가")] == "가"
    ended = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "가", "나", "가_", "나_"]), "end_of_word")
    assert kinds_of(ended)[0][5:] == ["가", "나", "가", "나"]
    assert kinds_of(ended)[1].tolist() == [NONE] * 5 + [1, 1, 2, 2]
    texts, kinds = kinds_of(english_tokenizer)
    words = {piece: (text, kind) for piece, text, kind in zip(english_tokenizer.vocabulary.pieces, texts, kinds)}
    assert words["▁the"] == ("the", words["▁and"][1]) and words["s"][1] not in (NONE, words["▁the"][1])


@pytest.mark.parametrize("scheme", ["end_of_word", "sentencepiece"])
def test_spaces_stay_where_pieces_hold_them(scheme, english_tokenizer, monkeypatch):
    if scheme == "sentencepiece":
        tokenizer, text, pattern = english_tokenizer, "the  end, and the time", r"[a-z]+  [a-z]+, [a-z]+ [a-z]+ [a-z]+"
    else:
        pieces = [*SPECIAL_TOKENS, *SYLLABLES, *(f"{each}_" for each in SYLLABLES), "."]
        tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces), scheme)
        text, pattern = "가나  다 라.", rf"[{SYLLABLES}]나  [{SYLLABLES}] [{SYLLABLES}]\."
    (copies,) = Augmenter(load(monkeypatch, tokenizer), options(replaced_share=0.8)).augment([text])
    assert len(set(copies)) > 10 and all(re.fullmatch(pattern, copy) for copy in copies), copies


def test_model_that_fills_no_masks_is_refused(monkeypatch, exported_classifier):
    causal = load(monkeypatch, TOKENIZER, fills_masks=False, predicts_next=True)
    with pytest.raises(
        InputError, match="tiny was not pre-trained to fill in what is missing, and so it has no fill_ma"
    ):
        Augmenter(causal)
    with pytest.raises(InputError, match="has no fill_mask; it has predict; name a model that fills in masks, because"):
        Augmenter(albert_tf.load(exported_classifier))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("num_copies", 0), ("num_copies", 1.5), ("num_candidates", 0), ("random_seed", -1)]
    + [("replaced_share", value) for value in (0.0, -0.5, 1.5, float("nan"))],
)
def test_setting_that_can_not_be_is_named(setting, value):
    with pytest.raises(InputError, match=f"`{setting}` must be .* Received: {value}"):
        AugmentationOptions(**{setting: value})
