"""From units to pieces and back: every unit is read once, in its window, and tags survive where pieces allow it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.finetuning.entities.alignment import (
    IGNORED,
    count_split_pieces,
    encode_tagged,
    pieces_of_units,
    tags_of_units,
)
from albert_tf.finetuning.entities.tagged_text import TaggedText, units_of
from albert_tf.finetuning.entities.task import labels_for

LABELS = labels_for(("A", "B"))


def tagged(text, tags, are_words=False):
    return TaggedText(text, units_of(text, are_words), tags and tuple(tags), 1)


def tags_back(texts, features):
    """Returns the tags of the units, where each position has the label that it was given."""
    names = np.array(LABELS, object)
    return tags_of_units(texts, features, [names[np.maximum(row, 0)] for row in features["label_ids"]])


def test_unit_is_read_from_the_piece_that_holds_its_first_character():
    units = np.array([[0, 1], [1, 2], [2, 3], [4, 5], [9, 10]])
    offsets = np.array([[0, 2], [2, 3], [5, 8]])
    assert pieces_of_units(units, offsets).tolist() == [0, 0, 1, -1, -1]
    assert pieces_of_units(units, np.zeros([0, 2], int)).tolist() == [-1] * 5


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


def test_entity_of_characters_goes_on_inside_a_piece(sample_tokenizer):
    word = next(piece for piece in sample_tokenizer.vocabulary.pieces if len(piece) == 2 and piece.isalpha())
    whole, half = tagged(word, ["B-A", "I-A"]), tagged(word, ["B-A", "O"])
    features = encode_tagged([whole, half], LABELS, sample_tokenizer, 8)
    assert tags_back([whole, half], features) == [["B-A", "I-A"], ["B-A", "I-A"]]
    assert count_split_pieces([whole, half], features) == 1


@pytest.mark.parametrize("tags", [None, ["O"]])
def test_text_without_pieces_is_outside_of_everything(sample_tokenizer, tags):
    example = TaggedText("\u200b", ((0, 1),), tags and tuple(tags), 1)
    features = encode_tagged([example], LABELS, sample_tokenizer, 8)
    assert len(features["input_ids"]) == 1 and tags_back([example], features) == [["O"]]
