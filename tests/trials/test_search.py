"""Which settings a search tries."""

import numpy as np
import pytest

from albert_tf.trials import Choices, Range, Search
from albert_tf.trials.search import as_text

RATES = Range("learning_rate", 1e-4, 1e-2)
EPOCHS = Choices("num_train_epochs", (2.0, 4.0))


def test_each_combination_of_choices_is_tried_with_each_seed():
    found = Search((Choices("optimizer", ("adamw", "lamb")), EPOCHS), 2, 7).variants()
    tried = [(row["optimizer"], row["num_train_epochs"], row["random_seed"]) for row in found]
    assert tried == [(name, epochs, seed) for name in ("adamw", "lamb") for epochs in (2.0, 4.0) for seed in (7, 8)]
    assert list(found[0]) == ["optimizer", "num_train_epochs", "random_seed"]
    assert Search((), 3, 5).variants() == [{"random_seed": seed} for seed in (5, 6, 7)]


def test_values_follow_from_the_seed_and_more_trials_begin_with_the_same():
    search = Search((RATES, EPOCHS), 6, 12345)
    assert search.variants() == search.variants() == Search((RATES, EPOCHS), 20, 12345).variants()[:6]
    assert search.variants() != Search((RATES, EPOCHS), 6, 12346).variants()
    assert {row["random_seed"] for row in search.variants()} == {12345}


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_covered_evenly_by_their_scale(seed):
    layers = Range("num_layers", 1, 4)
    dropout = Range("dropout", 0.0, 0.5)
    found = Search((RATES, dropout, layers, EPOCHS), 400, seed).variants()
    rates = np.log10([row["learning_rate"] for row in found])
    assert np.allclose(np.quantile(rates, [0, 0.25, 0.5, 0.75, 1]), [-4, -3.5, -3, -2.5, -2], atol=0.05)
    dropouts = [row["dropout"] for row in found]
    assert np.allclose(np.quantile(dropouts, [0, 0.5, 1]), [0, 0.25, 0.5], atol=0.02)
    for name, values in (("num_layers", {1, 2, 3, 4}), ("num_train_epochs", {2.0, 4.0})):
        drawn = [row[name] for row in found]
        assert set(drawn) == values and all(type(value) is type(next(iter(values))) for value in drawn)
        assert min(map(drawn.count, values)) > 0.9 * len(found) / len(values)


def test_settings_that_are_drawn_again_get_the_next_seed():
    found = Search((Range("num_layers", 1, 2),), 5, 3).variants()
    assert len({tuple(row.items()) for row in found}) == 5
    for layers in (1, 2):
        seeds = [row["random_seed"] for row in found if row["num_layers"] == layers]
        assert seeds == list(range(3, 3 + len(seeds)))


def test_drawn_numbers_are_short_and_within_the_range():
    assert all(
        1e-4 <= RATES.at(share) <= 1e-2 and len(as_text(RATES.at(share))) <= 8 for share in np.arange(0, 1, 0.01)
    )
    narrow = Range("dropout", 0.12341, 0.12349)
    assert {narrow.at(share) for share in (0, 0.5, 0.99)} == {0.12341}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-4, "0.0001"), (0.00134, "0.00134"), (2.0, "2"), (0.12345678, "0.12345678"), (True, "true"), ("lamb", "lamb")],
)
def test_values_are_called_what_tells_them_apart(value, text):
    assert as_text(value) == text


def test_search_is_told_from_others_by_what_it_draws():
    assert Search((RATES, EPOCHS), 4, 1).to_dict() == {
        "settings": {"learning_rate": "0.0001..0.01", "num_train_epochs": "2|4"},
        "random_seed": 1,
    }
