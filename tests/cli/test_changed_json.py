"""Our own files, damaged: JSON with another value, without it or with it twice; bits of exports: each is a sentence."""

import copy
import functools
import itertools
import json
import pathlib
import random
import re
import shutil
import typing

import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.checkpoint_files import refuse_trials
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import MultiLabel, baselines
from albert_tf.modeling.pretrained import read_encoder_settings, read_untrained
from albert_tf.pretraining_data.making.state import WorkFolder
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.reading.blocks import FileStart
from albert_tf.runs import tpu_planner
from albert_tf.runs.phases import objective_of
from albert_tf.runs.settings.squad import SquadSettings
from albert_tf.serving import loading
from albert_tf.tokenization import load_tokenizer
from albert_tf.training.evaluation import HeldOutHistory
from albert_tf.training.progress import read_metrics
from albert_tf.training.run_folder import held_folder

# Spelled as in JSON; so is "twice", a name that is there two times.
OTHERS = ("null", '"x"', "1.5", "[]", "{}", "true", "-1", "[1]", '{"a": 1}', "NaN", "1e999", "1" + 30 * "0", "[" * 3000)
HERE = "\u2603"


def places_in(value, place=()):
    """Yields the keys that lead to each value inside of a JSON value, itself first; of a list to the first three."""
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places_in(inner, (*place, key))


def changed(value):
    """Yields JSON like that of a value, each with one value inside replaced, removed or there twice."""
    for place in places_in(value):
        if not place:
            yield from OTHERS
            continue
        copied = copy.deepcopy(value)
        holder = copied
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = HERE
        text = json.dumps(copied, ensure_ascii=False)
        yield from (text.replace(f'"{HERE}"', other) for other in OTHERS)
        if isinstance(holder, dict):
            yield text.replace(f'"{HERE}"', f"1, {json.dumps(place[-1], ensure_ascii=False)}: 1")
        del holder[place[-1]]
        yield json.dumps(copied)


def assert_read_or_refused(path, read, step=1):
    """Reads every `step`-th change of a file; anything but an InputError is a failure."""
    text = path.read_text(encoding="utf-8")
    count = 0
    for other in itertools.islice(changed(json.loads(text)), 0, None, step):
        path.write_text(other, encoding="utf-8")
        count += 1
        try:
            read()
        except InputError as error:
            assert "\n" not in str(error)
        except Exception as error:
            raise AssertionError(f"{path.name} as {other[:300]}") from error
    path.write_text(text, encoding="utf-8")
    assert count > 2


@pytest.mark.slow
def test_files_of_a_run(classified, monkeypatch, tmp_path):
    folder = shutil.copytree(classified, tmp_path / "run")
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
        step = 1 if name == "trials/trials.json" else 7
        assert_read_or_refused(folder / name, readers.get(name, lambda: loading.load_finetuned(folder, "a test")), step)


@pytest.mark.slow
def test_manifest(build_shards, tiny_config):
    folder = build_shards(32, 5)

    def read():
        objective_of(tiny_config, find_shards([str(folder / "train.tfrecord")], tiny_config))

    assert_read_or_refused(folder / "manifest.json", read, 13)


@pytest.mark.slow
@pytest.mark.parametrize("model_format", ["saved_model", "litert"])
def test_model_cards(export_classifier, tmp_path, monkeypatch, model_format):
    if model_format == "litert":
        pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    folder = pathlib.Path(shutil.copytree(export_classifier(model_format), tmp_path / "served"))
    graph = tf.saved_model.load(str(folder / "1")) if model_format == "saved_model" else None
    monkeypatch.setattr(tf.saved_model, "load", lambda _: graph)  # which a changed card leaves as it is
    [card] = folder.rglob("model_card.json")
    assert_read_or_refused(card, lambda: albert_tf.load(folder).predict(["좋다"]), 13)


@pytest.mark.slow
def test_damaged_files_of_exports_are_named(export_classifier, tmp_path):
    draw, count = random.Random(5), 0
    for model_format in ("saved_model", "litert"):
        folder = pathlib.Path(shutil.copytree(export_classifier(model_format), tmp_path / model_format))
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != "model_card.json"]
        for path in files * (60 // 2 // len(files) + 1):
            content = bytearray(path.read_bytes())
            if not content:
                continue
            whole, place = bytes(content), draw.randrange(len(content))
            content[place] ^= 1 << draw.randrange(8)
            path.write_bytes(content[: draw.choice([None, None, place])])
            with pytest.raises(InputError, match=f"{re.escape(path.name)} is damaged, or not the one that was"):
                albert_tf.load(folder)
            path.write_bytes(whole)
            count += 1
        path = next(path for path in files if path.name not in ("model.tflite", "saved_model.pb"))
        path.unlink()
        with pytest.raises(InputError, match=re.escape(path.name)):
            albert_tf.load(folder)
    assert count > 40


def test_small_files_of_a_folder(tmp_path):
    task = MultiLabel(tiny_config(30), ("나쁨", "좋음"))
    owner = held_folder._Owner(str(tmp_path))
    owner._looked_at = -held_folder._SECONDS_BETWEEN_LOOKS
    (tmp_path / "model.ckpt-1.index").touch()
    linear = {**dict.fromkeys(("dev", "all"), "a"), "name": "a linear model", "scores": {"accuracy": 0.5}}
    linear |= {"replicates": [0.5], "trained_on": 3, "of": 3}
    figures = dict.fromkeys(typing.get_type_hints(tpu_planner.Figures), 1.0)
    squad = SquadSettings(output_dir=str(tmp_path))
    files = {
        "linear_scores.json": (linear, lambda: baselines._read(str(tmp_path / "linear_scores.json"), {"dev": "a"})),
        "steps.json": ({"a": figures, "b": None}, lambda: tpu_planner._read_known(str(tmp_path / "steps.json"))),
        "eval_settings.json": ({"metrics": "squad"}, lambda: squad._read_metrics(None)),
        "thresholds.json": ({"나쁨": 0.25, "좋음": 0.5}, lambda: task.restore(str(tmp_path))),
        "untrained.json": ({"untrained": ["a", "b"]}, lambda: read_untrained(str(tmp_path / "model.ckpt-1"))),
        "encoder_settings.json": ({"pooling": "mean", "normalize": True}, lambda: read_encoder_settings(str(tmp_path))),
        ".run_owner.json": ({"host": "a", "process": 1, "token": owner.token}, owner.check),
    }
    for name, (values, read) in files.items():
        (tmp_path / name).write_text(json.dumps(values), encoding="utf-8")
        assert_read_or_refused(tmp_path / name, read)


def test_records_of_an_unfinished_build(tmp_path):
    plan = {"input_files": ["a.txt"], "options": {"dupe_factor": 5}}
    folder = WorkFolder(str(tmp_path), plan, resume=False)
    folder.write_chunk_counts((0, 1), {"examples": 3, "words": [1, 2]}, FileStart(7, "abc"))
    [counts] = pathlib.Path(folder.path).glob("chunk-*.json")

    def read():
        resumed = WorkFolder(str(tmp_path), plan, resume=True)
        if resumed.chunk_counts((0, 1)) != {"examples": 3, "words": [1, 2]}:
            raise AssertionError("wrong counts")

    assert_read_or_refused(counts, read)
    assert_read_or_refused(pathlib.Path(folder.path) / "plan.json", read)


def test_rows_of_metrics_that_are_none_are_passed_over(tmp_path):
    row = {"step": 5, "split": "held_out", "loss": 1.0, "accuracy": 0.5}
    for other in changed(row):
        (tmp_path / "metrics.jsonl").write_text(f"{other}\n{json.dumps({**row, 'step': 9})}\n", encoding="utf-8")
        history = HeldOutHistory(read_metrics(str(tmp_path)), "accuracy", 0, 100)
        assert history.best_step in (1, 5, 9) and history.evaluations_since_progress >= 0


@pytest.mark.slow
def test_settings_of_another_type_are_told_with_their_file(classify, classified, assert_refused, tmp_path):
    path = pathlib.Path(shutil.copytree(classified, tmp_path / "run")) / "run_settings.json"
    settings = json.loads(path.read_text())
    changes = [
        ("max_seq_length", {}),
        ("learning_rate", "fast"),
        ("labels", [1.5, "b"]),
        ("found_at", {"data_dir": 1.5}),
        ("train_file", {"sha256": "0", "examples": 3}),
        ("init_checkpoint", {"path": "a"}),
        ("init_checkpoint", "a"),
        ("objective", 3),
        ("albert_config", {"hidden_dropout_prob": None}),
        ("command", []),
    ]
    for name, value in changes:
        path.write_text(json.dumps({**settings, name: value}))
        run = functools.partial(classify, do_eval=True, max_seq_length=None, learning_rate=None, data_dir=None)
        message = assert_refused(run, tmp_path / "run")
        told = "data_dir" if name == "found_at" else name
        assert message.startswith(f"{path}") and f'"{told}"' in message


@pytest.mark.slow
def test_one_half_precision_stands_in_for_the_other_where_nothing_is_trained(classify):
    assert classify(do_train=True, use_float16=True).code == 0
    classify(do_eval=True, use_bfloat16=True).succeeded()
    continued = classify(do_train=True, use_bfloat16=True)
    assert continued.code == 1
    assert "holds another run" in continued.errors or "exclude one another" in continued.errors
