"""With form=bert and form=google the tokenizer gives the ids of BERT's own, whatever the text."""

import google_tokenizer
import pytest
import tensorflow as tf
from bert_reference import bert_tokenizer, is_known_to_all_versions, vocabulary_of
from hostile_texts import draw_texts

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.huggingface import to_tokenizers
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS


def of_bert(vocabulary, lower_case=True, strip_accents=False, max_characters=100, form="bert", special=False):
    return KoreanWordPieceTokenizer(
        vocabulary,
        lower_case=lower_case,
        strip_accents=strip_accents,
        keep_emoji=False,
        form=form,
        max_characters_per_word=max_characters,
        special_tokens_in_text=special,
    )


def assert_same_on_every_path(ours, texts, expected):
    tensor = tf.constant(texts)
    assert ours.encode_ids(texts).to_list() == expected
    assert ours.encode_ids(tensor).to_list() == expected
    encodings = ours.encode_batch(texts)
    assert [encoding.ids[1:-1] for encoding in encodings] == expected
    ids, begins, ends = (values.to_list() for values in ours.encode_with_offsets(tensor))
    assert ids == expected
    assert [list(zip(*row)) for row in zip(begins, ends)] == [encoding.offsets[1:-1] for encoding in encodings]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lower_case", "strip_accents", "max_characters", "special"),
    [(True, True, 100, True), (True, False, 100, True), (False, False, 200, False)],
)
def test_ids_are_those_of_the_library_on_every_path(lower_case, strip_accents, max_characters, special):
    tokenizers = pytest.importorskip("tokenizers")
    texts = draw_texts(800)
    vocabulary = vocabulary_of(texts)
    library = bert_tokenizer(vocabulary, lower_case, strip_accents, max_characters)
    if special:
        library.add_special_tokens([tokenizers.AddedToken(token, special=True) for token in SPECIAL_TOKENS])
    expected = [encoding.ids for encoding in library.encode_batch(texts, add_special_tokens=False)]
    ours = of_bert(vocabulary, lower_case, strip_accents, max_characters, special=special)
    assert_same_on_every_path(ours, texts, expected)
    assert [row.ids for row in to_tokenizers(ours).encode_batch(texts, add_special_tokens=False)] == expected


def test_special_tokens_in_texts_have_their_offsets():
    encoding = of_bert(vocabulary_of(["가나"]), special=True).encode("가[MASK]\x10나 [[CLS]\u0301")
    assert encoding.tokens[1:-1] == ["가", "[MASK]", "나", "[UNK]", "[CLS]", "[UNK]"]
    assert encoding.offsets[1:-1] == [(0, 1), (1, 7), (8, 9), (10, 11), (11, 16), (16, 17)]


@pytest.mark.slow
@pytest.mark.parametrize("lower_case", [True, False])
def test_ids_are_those_of_google_on_every_path(lower_case):
    texts = draw_texts(2000)
    known = {each: is_known_to_all_versions(each, lower_case) for each in {*"".join(texts)}}
    assert len(known) > 600 and sum(known.values()) > 0.95 * len(known)
    assert all(value for character, value in known.items() if character < "\u0860" or "\u1100" <= character < "\u1200")
    texts = [text for text in texts if all(map(known.get, text))]
    assert len(texts) > 1500
    vocabulary = vocabulary_of(texts)
    google = google_tokenizer.FullTokenizer(vocabulary.pieces, lower_case)
    ours = of_bert(vocabulary, lower_case, lower_case, google_tokenizer.MOST_CHARACTERS, form="google")
    assert_same_on_every_path(ours, texts, [google.encode(text) for text in texts])


@pytest.mark.slow
@pytest.mark.parametrize("strip_accents", [False, True])
def test_every_character_is_taken_for_what_the_library_takes_it(strip_accents):
    pytest.importorskip("tokenizers")
    # Of Hangul, Chinese characters, private use and what is no character, of which each is like the next, a few.
    codes = [*range(0x3400), *range(0x3400, 0xD800, 61), *range(0xE000, 0xF900, 61), *range(0xF900, 0x20000)]
    codes += [*range(0x20000, 0xE0000, 997), *range(0xE0000, 0xE0200), *range(0xE0200, 0x110000, 997)]
    texts = [f"a{chr(code)}A" for code in {*codes, 0xD7A3, 0x2FFFF, 0x10FFFF}]
    vocabulary = vocabulary_of(["ab漢é"])
    expected = [row.ids for row in bert_tokenizer(vocabulary, True, strip_accents).encode_batch(texts)]
    assert of_bert(vocabulary, True, strip_accents).encode_ids(texts).to_list() == expected


def test_an_emoji_and_a_long_word_are_bert_s(tmp_path):
    vocabulary = vocabulary_of(["재밌어요👩🚀ㅋ"])
    ours = of_bert(vocabulary)
    assert ours.tokenize("재밌어요👩\u200d🚀") == ["재밌", "##어요", "##👩", "##🚀"]
    assert ours.tokenize("ㅋ" * 100)[0] == "ㅋ"
    encoding = ours.encode("가 " + "ㅋ" * 101)
    assert encoding.tokens[2:-1] == ["[UNK]"]
    assert encoding.offsets[2] == (2, 103)
    ours.save(tmp_path)
    assert KoreanWordPieceTokenizer.load(tmp_path).to_dict() == ours.to_dict()
    assert ours.is_saved_as(tmp_path / "tokenizer.json")
    korean = KoreanWordPieceTokenizer(vocabulary)
    assert {"form", "max_characters_per_word"}.isdisjoint(korean.to_dict())
    assert not korean.is_saved_as(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "latin"}, "form must be one of korean, bert, google"),
        ({"form": "google", "keep_emoji": False, "special_tokens_in_text": True}, "works only with form=bert"),
        ({"special_tokens_in_text": True}, "works only with form=bert"),
        ({"form": "bert"}, "which has no keep_emoji"),
        ({"form": "bert", "keep_emoji": False, "split_digits": True}, "which has no split_digits"),
        ({"max_characters_per_word": 0}, "max_characters_per_word must be a number from 1"),
        ({"max_characters_per_word": True}, "max_characters_per_word must be a number from 1"),
    ],
)
def test_settings_that_contradict_the_form_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        KoreanWordPieceTokenizer(vocabulary_of(["가"]), **settings)
