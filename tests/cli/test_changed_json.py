"""Our own JSON files with a value of another type, or without it: read as they are, or refused in a sentence."""

import copy
import itertools
import json

import pytest

import albert_tf
from albert_tf.checkpoint_files import refuse_trials
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.pretraining.phases import objective_of
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.serving import loading
from albert_tf.serving.exported import read_card
from albert_tf.tokenization import load_tokenizer

OTHERS = (None, "x", 1.5, [], {}, True, -1, [1], {"a": 1})


def places_in(value, place=()):
    """Yields the keys that lead to each value inside of a JSON value, itself first; of a list to the first three."""
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places_in(inner, (*place, key))


def changed(value):
    """Yields copies of a JSON value, each with one value inside replaced or removed."""
    for place in places_in(value):
        for other in OTHERS:
            if not place:
                yield other
                continue
            copied = copy.deepcopy(value)
            holder = copied
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = other
            yield copied
        if place:
            copied = copy.deepcopy(value)
            holder = copied
            for key in place[:-1]:
                holder = holder[key]
            del holder[place[-1]]
            yield copied


def assert_read_or_refused(path, read, step):
    """Reads every `step`-th change of a file; anything but an InputError is a failure."""
    text = path.read_text(encoding="utf-8")
    count = 0
    for other in itertools.islice(changed(json.loads(text)), 0, None, step):
        path.write_text(json.dumps(other), encoding="utf-8")
        count += 1
        try:
            read()
        except InputError as error:
            assert "\n" not in str(error)
        except Exception as error:
            raise AssertionError(f"{path.name} as {json.dumps(other)[:300]}") from error
    path.write_text(text, encoding="utf-8")
    assert count > 2


@pytest.mark.slow
def test_files_of_a_run(classify, classifier_flags, monkeypatch):
    assert classify(do_train=True, do_eval=True).code == 0
    folder = classifier_flags["output_dir"]
    (folder / "trials").mkdir()
    trial = {"learning_rate": 1e-4, "random_seed": 1, "folder": "a", "results": {"accuracy": 0.5}}
    (folder / "trials" / "trials.json").write_text(json.dumps({"best": "a", "trials": [trial]}))
    # What is read is checked, and the model's variables are not made anew each time.
    monkeypatch.setattr(loading, "_with_weights", lambda model, *_: model)
    monkeypatch.setattr("albert_tf.finetuning.Classification.make_model", lambda *_, **__: None)
    readers = {
        "tokenizer.json": lambda: load_tokenizer(folder),
        "albert_config.json": lambda: AlbertConfig.from_json_file(folder / "albert_config.json"),
        "trials/trials.json": lambda: refuse_trials(str(folder / "trials")),
    }
    names = ("run_settings.json", "eval_results.json", "data_of_results.json", "best_checkpoint.json")
    for name in (*names, *readers):
        assert_read_or_refused(folder / name, readers.get(name, lambda: loading.load_finetuned(folder, "a test")), 1)


@pytest.mark.slow
def test_manifest(build_shards, tiny_config):
    folder = build_shards(32, 5)

    def read():
        objective_of(tiny_config, find_shards([str(folder / "train.tfrecord")], tiny_config))

    assert_read_or_refused(folder / "manifest.json", read, 13)


@pytest.mark.slow
def test_model_cards(export_classifier):
    saved = export_classifier("saved_model") / "1" / "assets.extra" / "model_card.json"
    assert_read_or_refused(saved, lambda: read_card(str(saved.parent.parent)), 1)
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    folder = export_classifier("litert")
    assert_read_or_refused(folder / "1" / "model_card.json", lambda: albert_tf.load(folder).predict(["좋다"]), 5)
