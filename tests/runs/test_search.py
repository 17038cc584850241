"""Which settings a search tries, and how one goes on that was stopped."""

import json

import numpy as np
import pytest

from albert_tf.base.errors import InputError
from albert_tf.runs.trials import JOURNAL_FILE, Search, as_text, run_trials

distributions = pytest.importorskip("optuna").distributions

RATES = distributions.FloatDistribution(1e-4, 1e-2, log=True)
EPOCHS = distributions.CategoricalDistribution((2.0, 4.0))


def drawn(folder, settings, num_trials, random_seed=3, good=lambda settings: 0.5):
    """Returns the settings that a search trains with."""
    found = []
    folder.mkdir(exist_ok=True)
    Search(settings, num_trials, random_seed).run(str(folder), lambda each: (found.append(each), good(each))[1])
    return found


def test_each_combination_of_listed_values_is_tried_as_often_as_asked(tmp_path):
    optimizers = distributions.CategoricalDistribution(("adamw", "lamb"))
    tried = {"optimizer": optimizers, "num_train_epochs": EPOCHS}
    found = drawn(tmp_path, tried, 2)
    once = [{"optimizer": name, "num_train_epochs": epochs} for name in ("adamw", "lamb") for epochs in (2.0, 4.0)]
    assert found == [*once, *once] and len(Search(tried, 2, 3)) == 8
    assert drawn(tmp_path, tried, 3) == once * 3, "more of them are the same search gone on"


def test_values_follow_from_the_seed_and_more_trials_begin_with_the_same(tmp_path):
    tried = {"learning_rate": RATES, "num_train_epochs": EPOCHS, "num_layers": distributions.IntDistribution(1, 4)}
    found = drawn(tmp_path / "a", tried, 12)
    assert drawn(tmp_path / "b", tried, 6) == found[:6] and drawn(tmp_path / "b", tried, 12) == found
    assert drawn(tmp_path / "c", tried, 12, random_seed=4)[0] != found[0]
    for each in found:
        assert 1e-4 <= each["learning_rate"] <= 1e-2 and len(as_text(each["learning_rate"])) <= 8
        assert each["num_train_epochs"] in (2.0, 4.0) and type(each["num_layers"]) is int


def test_rates_are_drawn_by_their_logarithm_and_then_where_they_are_good(tmp_path):
    good = {"learning_rate": RATES}, 40, 3, lambda each: -abs(np.log(each["learning_rate"] / 3e-4))
    rates = np.array([each["learning_rate"] for each in drawn(tmp_path, *good)])
    assert 3 <= (rates[:10] < 1e-3).sum() <= 7
    assert np.median(abs(np.log(rates[10:] / 3e-4))) < np.median(abs(np.log(rates[:10] / 3e-4))) / 2


def test_drawn_numbers_stay_within_a_narrow_range(tmp_path):
    found = drawn(tmp_path, {"dropout": distributions.FloatDistribution(0.12341, 0.12349)}, 3)
    assert {each["dropout"] for each in found} == {0.12341}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-4, "0.0001"), (0.00134, "0.00134"), (2.0, "2"), (0.12345678, "0.12345678"), (True, "true"), ("lamb", "lamb")],
)
def test_values_are_called_what_tells_them_apart(value, text):
    assert as_text(value) == text


def test_search_is_told_from_others_by_what_it_draws():
    assert Search({"learning_rate": RATES, "num_train_epochs": EPOCHS}, 4, 1).to_dict() == {
        "settings": {"learning_rate": "0.0001..0.01", "num_train_epochs": "2|4"},
        "random_seed": 1,
        "drawn_by": "Optuna",
    }
    assert Search({}, 4, 1, {"learning_rate": 1e-3}).to_dict() == {
        "settings": {"learning_rate": "0.001"},
        "random_seed": 1,
    }


SEARCH = Search({"learning_rate": RATES, "pooling": distributions.CategoricalDistribution(("first", "mean"))}, 5, 3)


def accuracy_of(changes, folder):
    return "accuracy", changes["learning_rate"], {"accuracy": changes["learning_rate"] * 50}


def test_search_that_is_stopped_goes_on_with_the_trial_that_was_stopped(tmp_path):
    run_trials(str(tmp_path / "whole"), SEARCH, accuracy_of)
    trained, finished = [], set()

    def train(changes, folder):
        """As a command does: a folder that is finished is only looked at."""
        if folder not in finished:
            trained.append(folder)
            if len(trained) == 3:
                raise KeyboardInterrupt
            finished.add(folder)
        return accuracy_of(changes, folder)

    with pytest.raises(KeyboardInterrupt):
        run_trials(str(tmp_path / "stopped"), SEARCH, train)
    assert {path.name for path in (tmp_path / "stopped").iterdir()} == {"trials.json", JOURNAL_FILE}
    run_trials(str(tmp_path / "stopped"), SEARCH, train)
    assert trained[3] == trained[2] and len(trained) == 6 and len(set(trained)) == 5
    for name in ("trials.json", "eval_results.json"):
        whole, stopped = ((tmp_path / folder / name).read_text() for folder in ("whole", "stopped"))
        assert stopped.replace("/stopped/", "/whole/") == whole


def test_journal_goes_on_wherever_it_ends(tmp_path):
    """A process may be killed after any line, also between the settings of one trial."""
    run_trials(str(tmp_path / "whole"), SEARCH, accuracy_of)
    expected = (tmp_path / "whole" / "trials.json").read_text()
    lines = (tmp_path / "whole" / JOURNAL_FILE).read_text().splitlines(keepends=True)
    for count in range(len(lines)):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / JOURNAL_FILE).write_text("".join(lines[:count]))
        run_trials(str(folder), SEARCH, accuracy_of)
        assert (folder / "trials.json").read_text().replace(f"/{count}/", "/whole/") == expected


def test_damaged_journal_is_told_and_may_be_deleted(tmp_path):
    run_trials(str(tmp_path), SEARCH, accuracy_of)
    expected, journal = (tmp_path / "trials.json").read_text(), tmp_path / JOURNAL_FILE
    content = journal.read_bytes()
    journal.write_bytes(content[:-10])  # of the last line only a part
    run_trials(str(tmp_path), SEARCH, accuracy_of)
    assert (tmp_path / "trials.json").read_text() == expected
    journal.write_bytes(content.replace(b"{", b"", 1))
    with pytest.raises(InputError, match=rf"^.*{JOURNAL_FILE} is damaged; delete it, and the same values are drawn "):
        run_trials(str(tmp_path), SEARCH, accuracy_of)
    journal.unlink()
    run_trials(str(tmp_path), SEARCH, accuracy_of)
    assert (tmp_path / "trials.json").read_text() == expected


def test_search_of_an_earlier_version_is_refused(tmp_path):
    """Its values were drawn by other rules, and no journal knows them."""
    earlier = {key: value for key, value in SEARCH.to_dict().items() if key != "drawn_by"}
    (tmp_path / "trials.json").write_text(json.dumps({"search": earlier, "best": None, "trials": []}))
    with pytest.raises(
        InputError, match=r"^`output_dir=.*` holds trials of .*, but .* drawn by Optuna; choose another"
    ):
        run_trials(str(tmp_path), SEARCH, accuracy_of)
    assert [path.name for path in tmp_path.iterdir()] == ["trials.json"]
