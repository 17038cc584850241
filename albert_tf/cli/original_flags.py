"""Flags of google-research/albert that its commands may hold, and that have nothing to do here.

Some have no effect. The others are taken with their default alone, because any other value asks for what can't be done.
"""

from absl import flags

from albert_tf.base.errors import InputError

# Name to default.
_WITHOUT_EFFECT = {
    "cached_dir": None,
    "eval_file": None,
    "input_file_mode": "r",
    "master": None,
    "num_keep_checkpoint": 5,
    "num_tpu_cores": 8,
    "predict_feature_file": None,
    "predict_feature_left_file": None,
    "predict_file": None,
    "threshold_to_export": float("nan"),
    "train_feature_file": None,
    "train_file": None,
    "use_einsum": True,
}
# Name to default, and why there is nothing else.
_DEFAULT_ONLY = {
    "albert_hub_module_handle": (None, "a TensorFlow Hub module can't be loaded; use --init_checkpoint"),
    "dropout_prob": (0.1, "the dropout of the head is classifier_dropout_prob in --albert_config_file"),
    "export_dir": (None, "a trained model can't be exported by this command"),
    "init_from_group0": (False, "weights can't be copied from one group to the others"),
    "masked_lm_budget": (0, "every masked piece is predicted"),
    "start_warmup_step": (0, "the warm-up begins with the first step"),
    "warmup_proportion": (0.1, "the number of steps of the warm-up is --num_warmup_steps"),
}
_OF_TRAINING = ("master", "num_tpu_cores")
_OF_FINETUNING = (*_OF_TRAINING, "albert_hub_module_handle", "export_dir", "threshold_to_export")
# Which of them a command takes.
ORIGINAL_FLAGS = {
    "create_pretraining_data": ("input_file_mode",),
    "run_pretraining": (*_OF_TRAINING, "init_from_group0", "masked_lm_budget", "start_warmup_step"),
    "run_classifier": (*_OF_FINETUNING, "cached_dir"),
    "run_ner": _OF_FINETUNING,
    "run_race": (
        *_OF_FINETUNING,
        *("train_file", "eval_file", "predict_file", "num_keep_checkpoint", "dropout_prob"),
    ),
    "run_squad": (
        *_OF_FINETUNING,
        *("dropout_prob", "predict_feature_file", "predict_feature_left_file", "train_feature_file", "use_einsum"),
        "warmup_proportion",
    ),
}
_DEFINE = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}


def define_original_flags(*names: str) -> None:
    """Defines flags of the original's scripts by their names."""
    for name in names:
        if name in _WITHOUT_EFFECT:
            default, explanation = _WITHOUT_EFFECT[name], "no effect"
        else:
            default, explanation = _DEFAULT_ONLY[name]
        _DEFINE.get(type(default), flags.DEFINE_string)(name, default, f"Of the original's commands: {explanation}.")


def check_original_flags() -> None:
    """Checks that no flag of the original's asks for what can't be done."""
    for name, (default, explanation) in _DEFAULT_ONLY.items():
        value = flags.FLAGS[name].value if name in flags.FLAGS else default
        if value not in (default, ""):
            raise InputError(f"--{name}={value} is not supported: {explanation}; leave the flag out")
