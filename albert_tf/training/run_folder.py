"""What a run leaves in its output folder besides checkpoints, and the guard against mixing two runs."""

import os

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.tokenization import KoreanWordPieceTokenizer

CONFIG_FILE = "albert_config.json"
SETTINGS_FILE = "run_settings.json"
EVAL_RESULTS_FILE = "eval_results.json"


def claim_output_dir(
    output_dir: str, settings: dict, config: AlbertConfig, tokenizer: KoreanWordPieceTokenizer | None
) -> None:
    """Writes the settings, model config and tokenizer of a run into its folder, or checks that they are the same.

    Args:
        output_dir: The folder.
        settings: Everything that decides what the run computes, JSON values by flag name.
        config: The model.
        tokenizer: The tokenizer, None if unknown.

    Raises:
        InputError: The folder holds a run with other settings, or checkpoints of unknown origin.
    """
    settings = {
        **settings,
        "albert_config": config.to_dict(),
        "tokenizer": tokenizer.identity if tokenizer is not None else None,
    }
    path = os.path.join(output_dir, SETTINGS_FILE)
    if tf.io.gfile.exists(path):
        earlier = read_json(path, "the settings of the run")
        for name in {**earlier, **settings}:
            if earlier.get(name) != settings.get(name):
                raise InputError(
                    f"--output_dir={output_dir} holds another run: its {name} is {_shorten(earlier.get(name))}, and "
                    f"now {_shorten(settings.get(name))}; choose another folder, or repeat its command to resume it"
                )
        return
    if tf.train.latest_checkpoint(output_dir) is not None:
        raise InputError(f"--output_dir={output_dir} holds checkpoints of another run; choose another folder")
    write_json(os.path.join(output_dir, CONFIG_FILE), config.to_dict())
    if tokenizer is not None:
        tokenizer.save(output_dir)
    write_json(path, settings)


def write_eval_results(output_dir: str, results: dict[str, float]) -> None:
    """Writes eval_results.json, metric name to number, for other programs to read."""
    write_json(os.path.join(output_dir, EVAL_RESULTS_FILE), results)


def _shorten(value):
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
