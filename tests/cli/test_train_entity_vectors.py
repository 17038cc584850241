"""train_entity_vectors.py: what it writes, how well it does on a graph with structure, and what it refuses."""

import json

import numpy as np
import pytest

from albert_tf.entity_vectors.folder import read_folder
from albert_tf.errors import InputError

PEOPLE, CITIES, COUNTRIES = 300, 30, 6


@pytest.fixture
def triples_file(tmp_path):
    """People who live in cities of countries: where somebody lives tells the country, and the country the language."""
    generator = np.random.default_rng(0)
    triples = [(f"도시{city}", "나라", f"나라{city % COUNTRIES}") for city in range(CITIES)]
    for person, city in enumerate(generator.integers(CITIES, size=PEOPLE)):
        country = city % COUNTRIES
        homes = (("거주지", f"도시{city}"), ("국적", f"나라{country}"), ("언어", f"언어{country}"))
        triples += [(f"사람{person}", relation, tail) for relation, tail in homes]
    (tmp_path / "triples.tsv").write_text("".join("\t".join(triple) + "\n" for triple in triples))
    return tmp_path / "triples.tsv"


def test_held_out_triples_are_found_far_above_blind_rules(run_script, triples_file, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        result = run_script("train_entity_vectors.py", input_file=triples_file, output_dir=folder, entity_size=32)
        assert (result.code, result.errors) == (0, "")
    assert "930 triples of 342 entities and 4 relations; 46 are held out" in result.output
    assert "\nepoch 200 of 200: loss " in result.output and " triples/s, 0 s left\n" in result.output
    scores = json.loads((folders[0] / "entity_vectors.json").read_text())
    assert scores["hits_at_10"] > 0.7 > 0.5 > scores["most_frequent_hits_at_10"] > scores["chance_hits_at_10"]
    assert 5 * scores["mean_rank"] < scores["most_frequent_mean_rank"] < scores["chance_mean_rank"]
    assert (scores["num_entities"], scores["num_triples"], scores["num_held_out"]) == (342, 884, 46)
    assert (scores["method"], scores["entity_size"], scores["random_seed"]) == ("transe", 32, 12345)
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1] and len(files[0]) == 5


def test_all_triples_may_be_learnt(run_script, triples_file, tmp_path):
    flags = {"held_out_fraction": 0, "num_train_epochs": 1, "input_file": triples_file, "output_dir": tmp_path / "out"}
    result = run_script("train_entity_vectors.py", **flags)
    assert (result.code, result.errors) == (0, "")
    assert result.output.endswith("out: {}\n")
    told = json.loads((tmp_path / "out" / "entity_vectors.json").read_text())
    assert told["num_triples"] == 930 and "hits_at_10" not in told


class Stop(Exception):
    """What a test ends a training with."""


def test_stopped_training_goes_on_by_the_same_command_alone(run_script, triples_file, tmp_path, monkeypatch):
    folder, whole = tmp_path / "out", tmp_path / "whole"
    flags = {"input_file": triples_file, "entity_size": 8, "num_train_epochs": 9, "save_epochs": 2}
    assert run_script("train_entity_vectors.py", **flags, output_dir=whole).code == 0

    def stop_in_epoch(number):
        def tell(progress, epoch, done, loss):
            if epoch == number:
                raise Stop

        monkeypatch.setattr("albert_tf.cli.train_entity_vectors._Progress.tell", tell)

    for epoch, kept in ((1, []), (3, ["unfinished_vectors.npz"]), (6, ["unfinished_vectors.npz"])):
        stop_in_epoch(epoch)
        with pytest.raises(Stop):
            run_script("train_entity_vectors.py", **flags, output_dir=folder)
        assert ([path.name for path in folder.iterdir()] if folder.exists() else []) == kept
    other = run_script("train_entity_vectors.py", **{**flags, "margin": 2}, output_dir=folder)
    told = f"--output_dir={folder} holds an unfinished training in which margin is 1.0, but now it is 2.0; repeat"
    assert other.code == 1 and told in other.errors
    with pytest.raises(InputError, match="vectors is not finished; repeat the command that began it to finish it"):
        read_folder(str(folder), "vectors")
    before = (folder / "unfinished_vectors.npz").read_bytes()
    (folder / "unfinished_vectors.npz").write_bytes(before[:200])
    damaged = run_script("train_entity_vectors.py", **flags, output_dir=folder)
    assert (
        damaged.code == 1
        and "unfinished_vectors.npz is damaged, so training can't be resumed; delete it, and" in damaged.errors
    )
    (folder / "unfinished_vectors.npz").write_bytes(before)
    monkeypatch.undo()
    result = run_script("train_entity_vectors.py", **flags, output_dir=folder)
    assert (result.code, result.errors) == (0, "")
    assert "\nresuming after 6 epochs\n" in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"input_file": None}, "--input_file is missing"),
        ({"output_dir": "taken"}, "holds something already; choose another folder"),
        ({"margin": -1}, "--margin must be a number greater than 0. Received: -1.0"),
        ({"distance_norm": 3}, "distance_norm"),
        (
            {"learning_rate": 1e38},
            "the vectors have diverged in epoch 1: they hold NaN or infinity; lower --learning_r",
        ),
        ({"content": "a b c\n"}, "triples.tsv, line 1: a triple must be a head, a relation and a tail"),
    ],
)
def test_mistakes_are_told_in_one_sentence(run_script, triples_file, tmp_path, changes, message):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    if "content" in changes:
        triples_file.write_text(changes["content"])
    flags = {"input_file": triples_file, "output_dir": "out", **changes}
    flags["output_dir"] = tmp_path / flags["output_dir"]
    flags = {name: value for name, value in flags.items() if name != "content" and value is not None}
    result = run_script("train_entity_vectors.py", **flags)
    assert result.code == 1 and message in result.errors and result.errors.count("\n") == 1
    assert not (tmp_path / "out").exists()
