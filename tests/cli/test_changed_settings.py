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


@pytest.mark.slow
@pytest.mark.parametrize(("trained", "other"), [("use_float16", "use_bfloat16"), ("use_bfloat16", "use_float16")])
def test_one_half_precision_stands_in_for_the_other_where_nothing_is_trained(trained, other, classify, tmp_path):
    assert classify(do_train=True, **{trained: True}).code == 0
    evaluated = classify(do_eval=True, **{other: True})
    assert (evaluated.code, evaluated.errors) == (0, "")
    continued = classify(do_train=True, **{other: True})
    assert continued.code == 1
    assert "holds another run" in continued.errors or "exclude one another" in continued.errors
