"""The pieces of a new vocabulary, made of those of a known one."""

import numpy as np
import pytest

from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from albert_tf.tokenization.vocabulary_training import count_words, train_vocabulary
from albert_tf.training.run_folder.other_vocabulary import carry_pieces

KNOWN = [*SPECIAL_TOKENS, "[unused0]", "영", "##영", "##화", "재", "##미", "영화", "lg", "핥"]
KLUE_ORDER = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]


def tokenizer_of(*pieces, **options):
    return KoreanWordPieceTokenizer(Vocabulary(list(pieces)), **options)


def sources_of(known, new):
    """Returns for each new piece the known pieces that it is made of."""
    pieces = known.vocabulary.pieces
    found = carry_pieces(known, new).sources
    return {piece: [pieces[each] for each in ids] for piece, ids in zip(new.vocabulary.pieces, found)}


def test_pieces_are_found_by_name_and_new_ones_by_what_they_were_made_of():
    known = tokenizer_of(*KNOWN)
    new = tokenizer_of(
        *KLUE_ORDER, "##화", "영화", "재미", "##영화", "##미화", "LG", "😀", "##힣", "[unused7]", lower_case=False
    )
    assert sources_of(known, new) == {
        **{token: [token] for token in SPECIAL_TOKENS},
        "##화": ["##화"],
        "영화": ["영화"],
        "재미": ["재", "##미"],
        "##영화": ["##영", "##화"],
        "##미화": ["##미", "##화"],
        "LG": ["lg"],
        "😀": [],
        "##힣": [],
        "[unused7]": [],
    }


def test_piece_inside_a_word_is_not_taken_for_the_word():
    # "재영" is a piece, so that another letter has to stand before what is looked for.
    known = tokenizer_of(*KNOWN, "재영", "##미영")
    assert sources_of(known, tokenizer_of("[UNK]", "##영미영", "미"))["##영미영"] == ["##영", "##미영"]


def test_values_are_means_and_the_same_to_the_bit_where_nothing_has_changed():
    known = tokenizer_of(*KNOWN)
    carried = carry_pieces(known, tokenizer_of("[UNK]", "재미", "영화", "😀"))
    values = np.random.default_rng(1).normal(size=[len(KNOWN) + 3, 5]).astype(np.float32)  # rows without a piece behind
    means = carried.means_of(values)
    assert means.dtype == np.float32
    np.testing.assert_array_equal(means[[0, 2]], values[[1, 11]])
    np.testing.assert_allclose(means[1], (values[9] + values[10]) / 2, rtol=1e-6)
    np.testing.assert_allclose(means[3], values[6:14].mean(axis=0), rtol=1e-5, atol=1e-7)
    assert carried.means_of(values[:, 0]).shape == (4,)
    assert carried.describe() == (
        "of 4 pieces 2 are carried over, 1 begin as the mean of the pieces that they were made of, and 1 as the mean "
        "of all"
    )


@pytest.mark.parametrize("scheme", ["continuation", "end_of_word"])
def test_vocabulary_in_another_order_is_carried_whole(scheme, sample_lines):
    pieces = train_vocabulary(count_words(sample_lines, wordpiece_scheme=scheme), 4500, scheme).pieces
    order = np.random.default_rng(2).permutation(len(pieces))
    known, new = (tokenizer_of(*each, wordpiece_scheme=scheme) for each in (pieces, [pieces[i] for i in order]))
    assert carry_pieces(known, new).sources == [[i] for i in order]


def test_text_of_a_piece_is_that_of_what_it_is_made_of(sample_tokenizer, sample_lines):
    small = KoreanWordPieceTokenizer(train_vocabulary(count_words(sample_lines), 3600, "continuation"))
    num_composed = 0
    for piece, parts in sources_of(small, sample_tokenizer).items():
        if len(parts) > 1:
            num_composed += 1
            assert parts[0].startswith("##") == piece.startswith("##"), (piece, parts)
            assert parts[0] + "".join(part.removeprefix("##") for part in parts[1:]) == piece
    assert num_composed > 500


def test_sentencepiece_and_wordpiece_know_each_others_pieces(english_tokenizer):
    wordpiece = tokenizer_of(*KLUE_ORDER, "the", "##ing", "t", "##h", "##e")
    found = sources_of(english_tokenizer, wordpiece)
    assert found["[CLS]"] == ["[CLS]"] and found["[PAD]"] == ["<pad>"] and found["[UNK]"] == ["<unk>"]
    assert found["the"] == ["▁the"] and found["##ing"] == ["ing"]
    back = sources_of(wordpiece, english_tokenizer)
    assert back["▁the"] == ["the"] and back["ing"] == ["##ing"] and back["<unk>"] == ["[UNK]"]
