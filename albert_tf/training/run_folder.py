"""What a run leaves in its output folder besides checkpoints, and the guard against mixing two runs."""

import os

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary

CONFIG_FILE = "albert_config.json"
SETTINGS_FILE = "run_settings.json"
EVAL_RESULTS_FILE = "eval_results.json"


def check_output_dir(
    output_dir: str, settings: dict, config: AlbertConfig, tokenizer: KoreanWordPieceTokenizer | None
) -> None:
    """Checks that a folder is free for a run or holds this very run; writes nothing.

    Args:
        output_dir: The folder.
        settings: Everything that decides what the run computes, JSON values by flag name.
        config: The model.
        tokenizer: The tokenizer, None if unknown.

    Raises:
        InputError: The folder holds a run with other settings, checkpoints of unknown origin, or files of another
            model or tokenizer.
    """
    path = os.path.join(output_dir, SETTINGS_FILE)
    if tf.io.gfile.exists(path):
        earlier = _flatten(read_json(path, "the settings of the run"))
        now = _flatten(_all_settings(settings, config, tokenizer))
        for name in {**earlier, **now}:
            if earlier.get(name) != now.get(name):
                raise InputError(
                    f"--output_dir={output_dir} holds another run: its {name} is {_shorten(earlier.get(name))}, and "
                    f"now {_shorten(now.get(name))}; choose another folder, or repeat its command to resume it"
                )
        return
    if tf.train.latest_checkpoint(output_dir) is not None:
        raise InputError(f"--output_dir={output_dir} holds checkpoints of another run; choose another folder")
    is_same = {CONFIG_FILE: lambda path: AlbertConfig.from_json_file(path) == config}
    if tokenizer is not None:
        is_same[VOCABULARY_FILE] = lambda path: Vocabulary.from_file(path).sha256 == tokenizer.vocabulary.sha256
        is_same[TOKENIZER_FILE] = tokenizer.is_saved_as
    for name, same in is_same.items():
        path = os.path.join(output_dir, name)
        if tf.io.gfile.exists(path) and not same(path):
            raise InputError(f"--output_dir={output_dir} holds a different {name}; choose another folder")


def claim_output_dir(
    output_dir: str, settings: dict, config: AlbertConfig, tokenizer: KoreanWordPieceTokenizer | None
) -> None:
    """Writes the settings, model config and tokenizer of a run into its folder, unless they are there already.

    Call it when nothing stands in the way of training any more: from then on the folder takes no other run.

    Args and errors as for `check_output_dir`.
    """
    check_output_dir(output_dir, settings, config, tokenizer)
    path = os.path.join(output_dir, SETTINGS_FILE)
    if tf.io.gfile.exists(path):
        return
    write_json(os.path.join(output_dir, CONFIG_FILE), config.to_dict())
    if tokenizer is not None:
        tokenizer.save(output_dir)
    write_json(path, _all_settings(settings, config, tokenizer))


def write_eval_results(output_dir: str, results: dict[str, float]) -> None:
    """Writes eval_results.json, metric name to number, for other programs to read."""
    write_json(os.path.join(output_dir, EVAL_RESULTS_FILE), results)


def _all_settings(settings, config, tokenizer):
    identity = tokenizer.identity if tokenizer is not None else None
    return {**settings, "albert_config": config.to_dict(), "tokenizer": identity}


def _flatten(settings):
    """Returns settings whose model config is not one of them but so many, to tell which of its values differs."""
    return {**settings, **settings.get("albert_config", {}), "albert_config": None}


def _shorten(value):
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
