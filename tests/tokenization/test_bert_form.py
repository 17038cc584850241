"""With form=bert the tokenizer gives the ids of BERT's own, whatever the text."""

import pytest
import tensorflow as tf
from bert_reference import bert_tokenizer, vocabulary_of
from hostile_texts import hostile_texts

from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.huggingface import to_tokenizers

KINDS = [(True, True, 100), (True, False, 100), (False, False, 200), (False, True, 100)]


def of_bert(vocabulary, lower_case=True, strip_accents=False, max_characters=100):
    return KoreanWordPieceTokenizer(
        vocabulary,
        lower_case=lower_case,
        strip_accents=strip_accents,
        keep_emoji=False,
        form="bert",
        max_characters_per_word=max_characters,
    )


@pytest.mark.parametrize(("lower_case", "strip_accents", "max_characters"), KINDS)
def test_ids_are_those_of_the_library_on_every_path(lower_case, strip_accents, max_characters):
    pytest.importorskip("tokenizers")
    texts = hostile_texts(2000)
    vocabulary = vocabulary_of(texts)
    library = bert_tokenizer(vocabulary, lower_case, strip_accents, max_characters)
    expected = [encoding.ids for encoding in library.encode_batch(texts)]
    ours = of_bert(vocabulary, lower_case, strip_accents, max_characters)
    tensor = tf.constant(texts)
    assert ours.encode_ids(texts).to_list() == expected
    assert ours.encode_ids(tensor).to_list() == expected
    encodings = ours.encode_batch(texts)
    assert [encoding.ids[1:-1] for encoding in encodings] == expected
    ids, begins, ends = (values.to_list() for values in ours.encode_with_offsets(tensor))
    assert ids == expected
    assert [list(zip(*row)) for row in zip(begins, ends)] == [encoding.offsets[1:-1] for encoding in encodings]
    assert [row.ids for row in to_tokenizers(ours).encode_batch(texts, add_special_tokens=False)] == expected


@pytest.mark.slow
@pytest.mark.parametrize("strip_accents", [False, True])
def test_every_character_is_taken_for_what_the_library_takes_it(strip_accents):
    pytest.importorskip("tokenizers")
    texts = [f"a{chr(code)}A" for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    if strip_accents:  # without Hangul, Chinese characters and private use, of which each is like the next
        texts = [text for text in texts if not "\u3400" <= text[1] <= "\uf8ff" and text[1] < "\U00020000"]
    vocabulary = vocabulary_of(["ab漢é"])
    expected = [row.ids for row in bert_tokenizer(vocabulary, True, strip_accents).encode_batch(texts)]
    assert of_bert(vocabulary, True, strip_accents).encode_ids(texts).to_list() == expected


@pytest.mark.slow
@pytest.mark.parametrize(("lower_case", "strip_accents", "max_characters"), KINDS[:2])
def test_ids_of_many_texts_are_those_of_the_library(lower_case, strip_accents, max_characters):
    pytest.importorskip("tokenizers")
    texts = hostile_texts(20_000, seed=1)
    vocabulary = vocabulary_of(texts)
    library = bert_tokenizer(vocabulary, lower_case, strip_accents, max_characters)
    expected = [encoding.ids for encoding in library.encode_batch(texts)]
    assert of_bert(vocabulary, lower_case, strip_accents, max_characters).encode_ids(texts).to_list() == expected


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
        ({"form": "latin"}, "form must be one of korean, bert"),
        ({"form": "bert"}, "which has no keep_emoji"),
        ({"form": "bert", "keep_emoji": False, "split_digits": True}, "which has no split_digits"),
        ({"max_characters_per_word": 0}, "max_characters_per_word must be a number from 1"),
        ({"max_characters_per_word": True}, "max_characters_per_word must be a number from 1"),
    ],
)
def test_settings_that_contradict_the_form_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        KoreanWordPieceTokenizer(vocabulary_of(["가"]), **settings)
