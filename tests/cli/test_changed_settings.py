"""What a run has written of itself and somebody changed is told in a sentence."""

import functools
import json

import pytest


@pytest.mark.slow
def test_settings_of_another_type_are_told_with_their_file(classify, assert_refused, tmp_path):
    classify(do_train=True)
    path = tmp_path / "run" / "run_settings.json"
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
