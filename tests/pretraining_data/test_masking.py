"""Masks keep their rules for every input."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from masking_batches import CLS_ID, MASK_ID, PAD_ID, REAL_IDS, SEP_ID, TOKENS, chosen_positions, make_batch, mask

from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions, mask_batch

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=7)
stretches = st.lists(sizes, min_size=1, max_size=5).filter(lambda row: sum(map(sum, row)) + len(row) < 48)
batches = st.lists(stretches, min_size=8, max_size=8)
all_options = st.builds(
    MaskingOptions,
    max_predictions_per_seq=st.integers(1, 12),
    masked_lm_prob=st.sampled_from([0.05, 0.15, 0.5, 0.9]),
    ngram=st.integers(1, 4),
    favor_shorter_ngram=st.booleans(),
    do_whole_word_mask=st.booleans(),
    do_permutation=st.booleans(),
)
mask_seeds = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))


def budgets_of(options, num_tokens):
    """How many pieces to mask and to permute."""
    wanted = max(1, round(num_tokens * options.masked_lm_prob))
    room = options.max_predictions_per_seq
    if not options.do_permutation:
        return min(wanted, room), 0
    return min(wanted, room - room // 2), min(wanted, room // 2)


@pytest.mark.slow
@settings(max_examples=12)
@given(rows=batches, options=all_options, seed=mask_seeds)
def test_every_mask_keeps_the_rules(rows, options, seed):
    features = make_batch(rows)
    masked = mask(features, options, seed)
    for row, row_stretches in enumerate(rows):
        ids, after = features["input_ids"][row], masked["input_ids"][row]
        positions, labels, weights = (
            masked[name][row] for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
        )
        count = int(weights.sum())
        used = positions[:count]

        assert len(positions) == len(labels) == len(weights) == options.max_predictions_per_seq
        assert weights.tolist() == [1] * count + [0] * (options.max_predictions_per_seq - count)
        assert (np.diff(used) > 0).all()
        assert not positions[count:].any() and not labels[count:].any()

        assert labels[:count].tolist() == ids[used].tolist()
        assert not np.isin(labels[:count], [PAD_ID, CLS_ID, SEP_ID]).any()
        assert np.isin(after[used], [MASK_ID, *REAL_IDS, *ids[used]]).all()
        np.testing.assert_array_equal(np.delete(after, used), np.delete(ids, used))

        num_pieces = sum(map(sum, row_stretches))
        num_masked, num_permuted = budgets_of(options, num_pieces + len(row_stretches) + 1)
        assert count <= num_masked + num_permuted
        if options.do_whole_word_mask:
            word_of = np.cumsum(features["token_boundary"][row])
            assert set(word_of[used]).isdisjoint(np.delete(word_of, used))
        else:
            assert count == min(num_masked + num_permuted, num_pieces)
    for name in ("input_mask", "segment_ids", "token_boundary"):
        np.testing.assert_array_equal(masked[name], features[name])


def test_budget_rounds_as_python_does():
    # To even where it is exactly halfway, which 32-bit numbers get wrong for 190.
    lengths = [30, 50, 190]
    masked = mask(make_batch([([1] * (length - 2),) for length in lengths], 190), MaskingOptions(40))
    assert masked["masked_lm_weights"].sum(axis=1).tolist() == [round(length * 0.15) for length in lengths]


def test_word_longer_than_the_budget_is_left_for_one_that_fits():
    masked = mask(make_batch([([20], [1])] * 20), MaskingOptions(3, 0.15))
    np.testing.assert_array_equal(masked["masked_lm_weights"], [[1, 0, 0]] * 20)
    np.testing.assert_array_equal(masked["masked_lm_positions"][:, 0], 22)


def test_rare_words_that_fit_are_found():
    # Of thirteen words per stretch only one has no more pieces than the budget.
    masked = mask(make_batch([([3] * 6 + [1] + [3] * 6,)], times=200), MaskingOptions(1))
    np.testing.assert_array_equal(masked["masked_lm_positions"], np.full([200, 1], 19))


def test_sequence_without_a_word_that_fits_is_left_alone():
    features = make_batch([([9], [9])])
    masked = mask(features, MaskingOptions(3))
    assert not masked["masked_lm_weights"].any()
    np.testing.assert_array_equal(masked["input_ids"], features["input_ids"])


@pytest.mark.parametrize("do_permutation", [False, True])
def test_padding_and_empty_batches_are_left_alone(do_permutation):
    options = MaskingOptions(4, do_permutation=do_permutation)
    features = make_batch([([1] * 5, [1] * 5)] * 2)
    features = {name: np.concatenate([np.zeros_like(values), values]) for name, values in features.items()}
    masked = mask(features, options)
    assert (masked["masked_lm_weights"].sum(axis=1) > 0).tolist() == [False, False, True, True]
    for number in (0, 2):
        masked = mask({name: values[:number] for name, values in features.items()}, options)
        assert masked["masked_lm_positions"].shape == (number, 4)
        assert not masked["masked_lm_weights"].any() and not masked["input_ids"].any()


def test_sequence_may_fill_its_row_without_a_separator_at_the_end():
    features = {name: values[:, :6] for name, values in make_batch([([1] * 5,), ([2, 3],)] * 2, 7).items()}
    masked = mask(features, MaskingOptions(5, 0.9))
    np.testing.assert_array_equal(masked["masked_lm_positions"], [[1, 2, 3, 4, 5]] * 4)


def test_word_that_follows_a_separator_is_one_even_if_the_record_does_not_say_so():
    features = make_batch([([1] * 5, [1] * 5)] * 50)
    features["token_boundary"][:, [1, 7]] = 0
    chosen = chosen_positions(mask(features, MaskingOptions(10, 0.7)))
    assert not (chosen[:, [0, 6, 12]]).any()
    assert chosen[:, 1].any() and chosen[:, 7].any()


def test_masks_follow_from_the_seed():
    features = make_batch([([1] * 20, [1] * 20)] * 8)
    options = MaskingOptions(14, do_permutation=True)
    first, again, other = (mask(features, options, seed) for seed in ([3, 4], [3, 4], [3, 5]))
    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])
    assert (first["masked_lm_positions"] != other["masked_lm_positions"]).any(axis=1).all()
    # Equal rows of a batch are masked each in its own way.
    assert len(np.unique(first["masked_lm_positions"], axis=0)) == 8


@pytest.mark.slow
def test_masks_are_drawn_in_a_dataset_with_static_shapes():
    options = MaskingOptions(7, do_permutation=True, tokens=TOKENS)
    features = make_batch([([1] * 20, [2] * 10), ([1, 2, 3],), ([1] * 3, [2] * 2, [3])] * 2)
    batches = tf.data.Dataset.from_tensor_slices(features).batch(4, drop_remainder=True)
    dataset = batches.map(lambda batch: mask_batch(batch, options, tf.constant([1, 2])))
    for name, spec in dataset.element_spec.items():
        assert spec.shape == [4, 7 if name.startswith("masked_lm") else 48]
    in_graph = next(dataset.as_numpy_iterator())
    for name, values in mask({name: values[:4] for name, values in features.items()}, options).items():
        np.testing.assert_array_equal(in_graph[name], values)


def test_real_pieces_leave_special_tokens_and_unused_slots_out(tiny_tokenizer):
    tokens = MaskingOptions().with_tokens_of(tiny_tokenizer.vocabulary).tokens
    pieces = np.array(tiny_tokenizer.vocabulary.pieces)
    assert pieces[tokens.mask_id] == "[MASK]"
    assert pieces[list(tokens.unmaskable_ids)].tolist() == ["[CLS]", "[SEP]"]
    assert not [piece for piece in pieces[tokens.real_piece_ids] if piece.startswith("[")]
    assert len(tokens.real_piece_ids) == len(pieces) - 6


@pytest.mark.parametrize(("length", "probability", "expected"), [(512, 0.15, 77), (128, 0.15, 20), (20, 0.15, 3)])
def test_default_limit_never_cuts_masking_short(length, probability, expected):
    assert default_max_predictions(length, probability) == expected
    assert default_max_predictions(length, probability, do_permutation=True) == 2 * expected


@pytest.mark.slow
@given(rows=batches, limit=st.integers(1, 24), seed=mask_seeds)
@settings(max_examples=6)
def test_permutation_and_masks_share_the_limit(rows, limit, seed):
    # No piece occurs twice, and 7 stands for every random piece, so that it shows what moved and what was masked.
    options = MaskingOptions(limit, 0.3, do_whole_word_mask=False, do_permutation=True)
    features = make_batch(rows)
    is_piece = ~np.isin(features["input_ids"], [PAD_ID, CLS_ID, SEP_ID])
    features["input_ids"][is_piece] = 100 + np.arange(is_piece.sum())
    tokens = dataclasses.replace(TOKENS, real_piece_ids=np.array([7], np.int32))
    masked = mask(features, options, seed, tokens)
    for row, row_stretches in enumerate(rows):
        before, after = features["input_ids"][row], masked["input_ids"][row]
        num_pieces = sum(map(sum, row_stretches))
        num_masked, num_permuted = budgets_of(options, num_pieces + len(row_stretches) + 1)
        num_masked = min(num_masked, num_pieces)
        num_permuted = min(num_permuted, num_pieces - num_masked)
        is_masked = np.isin(after, [MASK_ID, 7])
        moved = (before != after) & ~is_masked
        assert masked["masked_lm_weights"][row].sum() == num_masked + num_permuted
        assert is_masked.sum() <= num_masked
        assert moved.sum() <= num_permuted
        assert sorted(before[moved]) == sorted(after[moved])


def test_masks_are_the_same_with_and_without_permutation():
    features = make_batch([([1] * 20, [1, 2] * 6)] * 20)
    masked = chosen_positions(mask(features, MaskingOptions(7)))
    chosen = chosen_positions(mask(features, MaskingOptions(14, do_permutation=True)))
    assert chosen[masked].all()
    np.testing.assert_array_equal(chosen.sum(axis=1), 2 * masked.sum(axis=1))
