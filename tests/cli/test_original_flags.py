"""Flags that the original's commands may hold."""

import pytest

REQUIRED = {
    "create_pretraining_data.py": {"input_file": "missing.txt", "output_file": "out", "vocab_file": "missing"},
    "run_pretraining.py": {"input_file": "missing", "albert_config_file": "missing", "output_dir": "out"},
    "run_squad.py": {"train_file": "missing", "albert_config_file": "missing", "output_dir": "out", "do_train": True},
    "run_classifier.py": {"task_name": "tsv", "data_dir": "missing", "output_dir": "out", "do_train": True},
    "run_race.py": {"task_name": "race", "data_dir": "missing", "output_dir": "out", "do_train": True},
}
PRETRAINING_DATA, PRETRAINING, SQUAD, CLASSIFIER, RACE = REQUIRED


@pytest.mark.parametrize(
    ("script", "flag_values"),
    [
        (PRETRAINING_DATA, {"input_file_mode": "r", "do_permutation": False, "random_next_sentence": False}),
        (PRETRAINING, {"master": "grpc://10.0.0.2", "num_tpu_cores": 8, "start_warmup_step": 0, "masked_lm_budget": 0}),
        (
            SQUAD,
            {"train_feature_file": "a", "predict_feature_left_file": "b", "use_einsum": False, "dropout_prob": 0.1},
        ),
        (CLASSIFIER, {"cached_dir": "cache", "spm_model_file": "", "threshold_to_export": 0.9}),
        (
            RACE,
            {"train_file": "a", "eval_file": "b", "predict_file": "c", "num_keep_checkpoint": 5, "dropout_prob": 0.1},
        ),
    ],
)
def test_flags_without_effect_are_taken(run_script, script, flag_values):
    result = run_script(script, **REQUIRED[script], **flag_values)
    assert result.code == 1  # for what comes after the flags: the files are missing
    assert "missing" in result.errors
    assert "not supported" not in result.errors


@pytest.mark.parametrize(
    ("script", "name", "value"),
    [
        (PRETRAINING, "init_from_group0", True),
        (PRETRAINING, "masked_lm_budget", 20),
        (PRETRAINING, "start_warmup_step", 1000),
        (SQUAD, "warmup_proportion", 0.2),
        (SQUAD, "dropout_prob", 0.2),
        (CLASSIFIER, "albert_hub_module_handle", "https://tfhub.dev/google/albert_base/1"),
        (CLASSIFIER, "export_dir", "export"),
    ],
)
def test_flag_that_asks_for_what_can_not_be_done_is_refused(run_script, script, name, value):
    result = run_script(script, **REQUIRED[script], **{name: value})
    assert result.code == 1
    assert result.errors.startswith(f"error: --{name}={value} is not supported: ")
    assert result.errors.count("\n") == 1
