"""The loop with caches against what the model says of the whole texts that come out, and NumPy of what is drawn."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.serving.decoder import (
    NEVER,
    ChoiceKind,
    ChoiceNumbers,
    Decoder,
    GenerationOptions,
    Prompts,
    choose_pieces,
    penalize,
)

VOCAB_SIZE, CLS, SEP, LENGTH = 50, 2, 3, 32
MAY_COME = np.arange(VOCAB_SIZE) > 4
MAY_COME[SEP] = True
STARTS_WORD = np.arange(VOCAB_SIZE) % 2 == 1
GREEDY = GenerationOptions(temperature=0)
# Of as many rows as these tests ask about, each way to choose is traced once.
NUM_ROWS = 8


def drawing(temperature=1.0):
    return GenerationOptions(top_k=30, temperature=temperature)


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(VOCAB_SIZE, max_position_embeddings=LENGTH)


@pytest.fixture(scope="module")
def decoder(model, quick_to_trace):
    return Decoder(model, MAY_COME, STARTS_WORD, SEP)


def prompts_of(rows, limits, starts_word=False, length=LENGTH, seed=0):
    ids = np.full([len(rows), length], CLS, np.int32)
    for row, pieces in enumerate(rows):
        ids[row, : len(pieces)] = pieces
    lengths, starts_word = np.array([*map(len, rows)], np.int32), np.full(len(rows), starts_word)
    draws = np.random.default_rng(seed).random([len(rows), length], np.float32)
    return Prompts(ids, lengths, np.array(limits, np.int32), starts_word, draws)


def random_rows(count, seed=0):
    draws = np.random.default_rng(seed)
    return [[CLS, *draws.integers(5, VOCAB_SIZE, length)] for length in draws.integers(0, 9, count)]


def whole_logits(model, pieces):
    """Returns the logits of the piece after each, of the whole text at once."""
    return model({"input_ids": np.array([pieces])})["masked_lm_logits"][0].numpy().astype(float)


def test_greedy_pieces_are_the_most_probable_of_the_whole_text(model, decoder):
    rows = random_rows(NUM_ROWS)
    ids, counts = decoder(prompts_of(rows, [12] * NUM_ROWS), GREEDY)
    num_checked = 0
    for row, prompt in enumerate(rows[:4]):
        found = list(ids[row, : counts[row]])
        assert found[: len(prompt)] == prompt and len(found) == len(prompt) + 12
        of_all = whole_logits(model, found)
        for place in range(len(prompt), len(found)):
            logits = np.where(MAY_COME, of_all[place - 1], -np.inf)
            second, first = np.sort(logits)[-2:]
            if first - second > 1e-3:
                assert found[place] == logits.argmax()
                num_checked += 1
    assert num_checked > 30


def test_repeated_pieces_are_penalized_as_in_the_definition(model, decoder):
    rows = random_rows(NUM_ROWS, seed=5)
    plain = decoder(prompts_of(rows, [12] * NUM_ROWS), GREEDY)[0]
    options = GenerationOptions(temperature=0, repetition_penalty=1.5)
    ids, counts = decoder(prompts_of(rows, [12] * NUM_ROWS), options)
    for row in (0, 1):
        found = list(ids[row, : counts[row]])
        of_all = whole_logits(model, found)
        for place in range(len(rows[row]), len(found)):
            logits = of_all[place - 1]
            seen = list(set(found[:place]))
            logits[seen] = np.where(logits[seen] > 0, logits[seen] / 1.5, logits[seen] * 1.5)
            logits[~MAY_COME] = -np.inf
            assert logits[found[place]] > logits.max() - 1e-3
    assert (plain != ids).any()


def test_first_piece_may_have_to_start_a_word(decoder):
    rows = random_rows(NUM_ROWS, seed=2)
    firsts = {}
    for starts_word in (False, True):
        ids, _ = decoder(prompts_of(rows, [2] * NUM_ROWS, starts_word), drawing(temperature=2.0))
        firsts[starts_word] = np.array([ids[row, len(prompt)] for row, prompt in enumerate(rows)])
    assert STARTS_WORD[firsts[True]].all() and not STARTS_WORD[firsts[False]].all()


def test_what_may_not_come_never_does(decoder):
    found = []
    for seed in range(8):
        prompts = prompts_of([[CLS]] * NUM_ROWS, [30] * NUM_ROWS, seed=seed)
        ids, counts = decoder(prompts, drawing(temperature=5.0))
        found += [piece for row in range(NUM_ROWS) for piece in ids[row, 1 : counts[row]]]
    assert MAY_COME[found].all() and len(set(found)) > 40


def test_end_of_a_document_ends_a_text(decoder):
    prompts = prompts_of(random_rows(NUM_ROWS, seed=6), [22] * NUM_ROWS)
    ids, counts = decoder(prompts, drawing(temperature=5.0))
    has_ended = [SEP in row[:count] for row, count in zip(ids, counts)]
    assert any(has_ended)
    for row in np.flatnonzero(has_ended):
        assert list(ids[row]).index(SEP) == counts[row] - 1 and (ids[row, counts[row] :] == CLS).all()


@pytest.mark.slow
def test_compiled_whole_it_gives_the_same(model, decoder, as_users_run):
    compiled = Decoder(model, MAY_COME, STARTS_WORD, SEP)
    for options in (GREEDY, GenerationOptions(top_k=20, top_p=0.9, repetition_penalty=1.1)):
        prompts = prompts_of(random_rows(4, seed=4), [20] * 4)
        for found, expected in zip(compiled(prompts, options), decoder(prompts, options)):
            np.testing.assert_array_equal(found, expected)


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


@pytest.mark.parametrize("options", [*OPTIONS, {"temperature": 0.0}, {"top_k": 1}], ids=str)
def test_extreme_draws_give_pieces_that_may_come(options):
    draws = [0.0, np.nextafter(np.float32(1), np.float32(0)), 0.5]
    definition = {"top_k": 1} if options.get("temperature") == 0 else options
    for seed in range(5):
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
        ({"top_p": 0}, "`top_p` must be a number greater than 0 and at most 1. Received: 0"),
        ({"top_p": 1.1}, "`top_p` must be a number greater than 0 and at most 1. Received: 1.1"),
        ({"temperature": 1e30}, "`temperature` must be a number from 0 to 100. Received: 1e+30"),
        ({"temperature": float("nan")}, "`temperature` must be a number from 0 to 100. Received: nan"),
        ({"temperature": "hot"}, "`temperature` must be a number from 0 to 100. Received: 'hot'"),
        ({"repetition_penalty": 0.9}, "`repetition_penalty` must be a number from 1 on. Received: 0.9"),
        ({"seed": 0.5}, "`seed` must be a whole number from 0 on. Received: 0.5"),
    ],
)
def test_setting_out_of_range_is_one_sentence(options, message):
    with pytest.raises(InputError) as error:
        GenerationOptions(**options)
    assert str(error.value) == message
