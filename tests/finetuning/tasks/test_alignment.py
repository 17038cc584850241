"""From units to pieces and back: every unit is read once, in its window, and tags survive where pieces allow it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.finetuning.tasks.entities import labels_for
from albert_tf.finetuning.tasks.tag_alignment import (
    IGNORED,
    characters_around,
    count_split_pieces,
    encode_tagged,
    tags_of_units,
    unread_units,
    without_units,
)
from albert_tf.finetuning.tasks.tagged_text import TaggedText, units_of
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

LABELS = labels_for(("A", "B"))


def tagged(text, tags, are_words=False):
    return TaggedText(text, units_of(text, are_words), tags and tuple(tags), 1)


def tags_back(texts, features):
    """Returns the tags of the units, where each position has the label that it was given."""
    names = np.array(LABELS, object)
    return tags_of_units(texts, features, [names[np.maximum(row, 0)] for row in features["label_ids"]])


def test_words_are_tagged_at_their_first_piece(sample_tokenizer):
    text = tagged("배우들이 좋았다", ["B-A", "O"], are_words=True)
    features = encode_tagged([text], LABELS, sample_tokenizer, 16)
    pieces = [sample_tokenizer.vocabulary.pieces[piece] for piece in features["input_ids"][0]]
    first = 1 + len(sample_tokenizer.tokenize("배우들이"))
    expected = [IGNORED] * 16
    expected[1], expected[first] = LABELS.index("B-A"), 0
    assert features["label_ids"][0].tolist() == expected
    assert pieces[0] == "[CLS]" and pieces[features["input_mask"][0].sum() - 1] == "[SEP]"


WORDS = st.lists(
    st.text(st.sampled_from("가나영화배우 abAB1㉠ㅋ한국"), min_size=1, max_size=6), min_size=1, max_size=30
)


@settings(max_examples=40)
@given(WORDS, st.integers(4, 40), st.randoms(use_true_random=False))
def test_tags_of_words_come_back_whatever_the_length(sample_tokenizer, words, length, random):
    text = " ".join(words)
    units = units_of(text, are_words=True)
    example = TaggedText(text, units, tuple(random.choice(LABELS) for _ in units), 1)
    features = encode_tagged([example], LABELS, sample_tokenizer, length)
    assert features["input_ids"].shape[1] == length and len(features["input_ids"]) == len(features["units"])
    read = np.concatenate([units[:, 0] for units in features["units"]])
    assert sorted(read) == list(range(len(units))), "every word once"
    assert tags_back([example], features) == [list(example.tags)]


@settings(max_examples=50)
@given(st.text(st.sampled_from("가나영화배우 .김철수서울abc12"), max_size=60), st.integers(4, 40))
def test_tags_of_characters_come_back_where_no_piece_holds_two(sample_tokenizer, text, length):
    units = units_of(text, are_words=False)
    example = TaggedText(text, units, tuple(LABELS[number % len(LABELS)] for number in range(len(units))), 1)
    features = encode_tagged([example], LABELS, sample_tokenizer, length)
    (found,) = tags_back([example], features)
    shared = 0
    for rows in features["units"]:
        positions = rows[:, 1]
        shared += len(positions) - len(set(positions.tolist()))
        first = {unit: True for unit, position in rows[np.unique(positions, return_index=True)[1]]}
        assert all(found[unit] == example.tags[unit] for unit in first)
    if not shared:
        assert found == list(example.tags) and count_split_pieces([example], features) == 0


@settings(max_examples=50)
@given(WORDS, st.booleans(), st.integers(4, 40))
def test_characters_around_are_those_of_the_text(sample_tokenizer, words, are_words, length):
    """Also where a word stands at the border of what is read together, and where a piece holds several characters."""
    text = "😀 " + " ".join(words)
    example = TaggedText(text, units_of(text, are_words), None, 1)
    features = encode_tagged([example], LABELS, sample_tokenizer, length)
    padded = f"  {text}  "
    for found, units in zip(characters_around([example], features), features["units"]):
        assert found.shape == (length, 2, 5)
        for position in range(length):
            held = [example.units[unit] for unit, place in units if place == position]
            expected = [0] * 10
            if held:
                first, last = held[0][0], held[-1][1] - 1
                expected = [ord(each) for each in padded[first : first + 5] + padded[last : last + 5]]
            assert found[position].ravel().tolist() == expected


def test_entity_of_characters_goes_on_inside_a_piece(sample_tokenizer):
    word = next(piece for piece in sample_tokenizer.vocabulary.pieces if len(piece) == 2 and piece.isalpha())
    whole, half = tagged(word, ["B-A", "I-A"]), tagged(word, ["B-A", "O"])
    features = encode_tagged([whole, half], LABELS, sample_tokenizer, 8)
    assert tags_back([whole, half], features) == [["B-A", "I-A"], ["B-A", "I-A"]]
    assert count_split_pieces([whole, half], features) == 1


@pytest.mark.parametrize("tags", [None, ["B-A"]])
def test_text_without_pieces_is_outside_of_everything(sample_tokenizer, tags):
    example = TaggedText("\u200b", ((0, 1),), tags and tuple(tags), 1)
    features = encode_tagged([example], LABELS, sample_tokenizer, 8)
    assert len(features["input_ids"]) == 1 and tags_back([example], features) == [["O"]]
    assert unread_units([example], features) == [[0]]


def test_word_is_read_though_it_begins_with_a_character_that_is_removed(sample_tokenizer):
    plain, hidden = (
        tagged(text, ["B-A", "O", "B-B"], are_words=True)
        for text in ("배우들이 좋았다 영화", "\u200b배우들이 \ufeff\u00ad좋았다 \x00영화\u200b")
    )
    features, expected = (encode_tagged([text], LABELS, sample_tokenizer, 16) for text in (hidden, plain))
    for name in ("input_ids", "label_ids"):
        np.testing.assert_array_equal(features[name], expected[name])
    assert tags_back([hidden], features) == [["B-A", "O", "B-B"]]
    assert unread_units([hidden], features) == [[]]


# A character without a piece of its own, where pieces hold one character each, and what a model that has learnt all of
# it gives back. What is read of the true tags comes third.
UNREAD = [
    ("입\u200b꺍", ["B-A", "I-A", "I-A"], ["B-A", "I-A"], ["B-A", "I-A", "I-A"]),
    ("입\u200b\ufeff꺍", ["B-A", "O", "O", "I-A"], ["B-A", "I-A"], ["B-A", "I-A", "I-A", "I-A"]),
    ("입\u200b꺍", ["B-A", "O", "B-A"], ["B-A", "B-A"], ["B-A", "O", "B-A"]),
    ("입\u200b꺍", ["B-A", "I-B", "I-B"], ["B-A", "I-B"], ["B-A", "O", "I-B"]),
    ("\u200b입꺍\u200b", ["B-A", "I-A", "I-A", "I-A"], ["B-A", "I-A"], ["O", "B-A", "I-A", "O"]),
    ("입\u200b\u200b꺍", ["I-A", "B-A", "O", "I-A"], ["I-A", "B-A"], ["I-A", "O", "O", "B-A"]),
    ("\u200b입꺍", ["B-A", "I-B", "O"], ["I-B", "O"], ["O", "I-B", "O"]),
]


@pytest.mark.parametrize(("text", "true", "read", "found"), UNREAD)
def test_unit_that_is_not_read_makes_and_breaks_no_entity(text, true, read, found):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "입", "##꺍"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces))
    example = tagged(text, true)
    features = encode_tagged([example], LABELS, tokenizer, 8)
    (unread,) = unread_units([example], features)
    assert [text[unit] for unit in range(len(text)) if unit not in unread] == ["입", "꺍"]
    assert list(without_units(example, unread).tags) == read
    assert features["label_ids"][0].tolist() == [IGNORED, *map(LABELS.index, read), *[IGNORED] * 5]
    assert tags_back([example], features) == [found]
