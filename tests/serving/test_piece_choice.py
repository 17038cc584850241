"""What is drawn has the distribution that NumPy computes, and what may not come never does."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.serving.decoder import NEVER, ChoiceKind, ChoiceNumbers, GenerationOptions, choose_pieces, penalize

NUM_PIECES, NUM_DRAWS = 40, 40000
# Of chi-square with up to 39 degrees of freedom, with 1 in 10^6 chance: by Wilson and Hilferty (1931).
SURPRISE = 4.75


def logits_of(seed=0):
    logits = np.random.default_rng(seed).normal(0, 2, NUM_PIECES)
    logits[:5] = NEVER
    return logits


def reference(logits, temperature=1.0, top_k=None, top_p=None):
    """Returns the probabilities that pieces are to be drawn with, in float64, from the definitions."""
    probabilities = np.where(logits > NEVER / 2, np.exp((logits - logits.max()) / temperature), 0)
    order = np.argsort(-probabilities, kind="stable")
    kept = order[: top_k or NUM_PIECES]
    probabilities[np.setdiff1d(order, kept)] = 0
    probabilities /= probabilities.sum()
    if top_p is not None:
        count = 1 + np.searchsorted(np.cumsum(probabilities[kept]), top_p)
        probabilities[kept[count:]] = 0
    return probabilities / probabilities.sum()


def choose(logits, draws, **options):
    options = GenerationOptions(**options)
    rows = np.broadcast_to(np.asarray(logits, np.float32), [len(draws), NUM_PIECES])
    kind, numbers = ChoiceKind.of(options, NUM_PIECES), ChoiceNumbers.of(options)
    return choose_pieces(tf.constant(rows), tf.constant(draws, tf.float32), kind, numbers).numpy()


OPTIONS = [
    {},
    {"temperature": 0.5},
    {"temperature": 3.0},
    {"top_k": 7},
    {"top_k": 1000},
    {"top_p": 0.6},
    {"top_p": 0.05},
    {"top_p": 1.0},
    {"top_k": 6, "top_p": 0.8, "temperature": 1.7},
]


def statistic(draws_options, expected):
    """Returns chi-square of draws against expected probabilities, rare pieces taken together, as a normal deviate."""
    draws = np.random.default_rng(3).random(NUM_DRAWS, np.float32)
    counts = np.bincount(choose(logits_of(), draws, **draws_options), minlength=NUM_PIECES)
    assert not counts[expected == 0].any()
    expected = expected * NUM_DRAWS
    is_rare = expected < 10
    counts, expected = (np.append(each[~is_rare], each[is_rare].sum()) for each in (counts, expected))
    counts, expected = counts[expected > 0], expected[expected > 0]
    freedom = max(len(expected) - 1, 1)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    spread = 2 / (9 * freedom)
    return ((chi_square / freedom) ** (1 / 3) - (1 - spread)) / np.sqrt(spread)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_pieces_are_drawn_with_their_probabilities(options):
    assert statistic(options, reference(logits_of(), **options)) < SURPRISE


def test_so_many_draws_would_tell_another_distribution():
    """A control: a temperature that is 5% off, and one piece too many or too few to draw from."""
    assert statistic({}, reference(logits_of(), temperature=1.05)) > SURPRISE
    assert statistic({"top_k": 7}, reference(logits_of(), top_k=8)) > SURPRISE
    assert statistic({"top_p": 0.6}, reference(logits_of(), top_p=0.75)) > SURPRISE


@pytest.mark.parametrize("options", [*OPTIONS, {"temperature": 0.0}, {"top_k": 1}], ids=str)
def test_extreme_draws_give_pieces_that_may_come(options):
    draws = [0.0, np.nextafter(np.float32(1), np.float32(0)), 0.5]
    definition = {"top_k": 1} if options.get("temperature") == 0 else options
    for seed in range(20):
        logits = logits_of(seed)
        assert (reference(logits, **definition)[choose(logits, draws, **options)] > 0).all()


def test_most_probable_piece_is_taken():
    logits = logits_of()
    for options in ({"temperature": 0}, {"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-5}, {"temperature": 1e-30}):
        assert (choose(logits, np.linspace(0, 0.999, 50), **options) == logits.argmax()).all()


def test_seen_pieces_become_less_probable():
    logits = np.array([[2.0, -2.0, 0.0, 1.0]], np.float32)
    found = penalize(tf.constant(logits), tf.constant([[True, True, True, False]]), tf.constant(1.25))
    np.testing.assert_allclose(found, [[1.6, -2.5, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_pieces": 0}, "`max_pieces` must be a whole number from 1 to 2147483647. Received: 0"),
        ({"top_k": 0}, "`top_k` must be a whole number from 1 to 2147483647. Received: 0"),
        ({"top_k": True}, "`top_k` must be a whole number from 1 to 2147483647. Received: True"),
        ({"top_p": 0}, "`top_p` must be a number greater than 0 and at most 1. Received: 0"),
        ({"top_p": 1.1}, "`top_p` must be a number greater than 0 and at most 1. Received: 1.1"),
        ({"temperature": 1e30}, "`temperature` must be a number from 0 to 100. Received: 1e+30"),
        (
            {"max_pieces": 2**63},
            "`max_pieces` must be a whole number from 1 to 2147483647. Received: 9223372036854775808",
        ),
        ({"temperature": -0.1}, "`temperature` must be a number from 0 to 100. Received: -0.1"),
        ({"temperature": float("nan")}, "`temperature` must be a number from 0 to 100. Received: nan"),
        ({"temperature": "hot"}, "`temperature` must be a number from 0 to 100. Received: 'hot'"),
        ({"repetition_penalty": 0.9}, "`repetition_penalty` must be a number from 1 on. Received: 0.9"),
        ({"seed": -1}, "`seed` must be a whole number from 0 on. Received: -1"),
        ({"seed": 0.5}, "`seed` must be a whole number from 0 on. Received: 0.5"),
    ],
)
def test_setting_out_of_range_is_one_sentence(options, message):
    with pytest.raises(InputError) as error:
        GenerationOptions(**options)
    assert str(error.value) == message
