"""Turns a run into a small folder to give away: weights, config, tokenizer and model card."""

import os

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import (
    ENCODER_FILE,
    MODEL_PREFIX,
    CheckpointReader,
    best_source,
    checkpoint_folder,
    only_model,
    write_checkpoint,
)
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.interchange.ours import known_settings, tell_untrained
from albert_tf.modeling.pretrained import CONFIG_FILE, UNTRAINED_FILE, find_checkpoint, read_config, read_untrained
from albert_tf.objectives import what_was_learnt
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE
from albert_tf.training.run_folder.guard import SETTINGS_FILE, read_settings
from albert_tf.training.run_folder.model_card import CARD_FILE

WEIGHT_DTYPES = ("float16", "float32")


def publish(path: str, folder: str, dtype: str = "float16") -> list[str]:
    """Writes a run's weights, config, tokenizer, task or objective, and card into a folder for `init_checkpoint`.

    It takes the best checkpoint of a folder, and averaged weights where there are some. "float16" halves the size and
    changes a weight by at most 0.05%, or by 3e-8. Returns a sentence on what was never trained.
    """
    if dtype not in WEIGHT_DTYPES:
        raise InputError(f"`weights_dtype` must be one of {', '.join(WEIGHT_DTYPES)}. Received: {dtype}")
    checkpoint = find_checkpoint(path, "`input_path`")
    config = read_config(checkpoint, "`input_path`")
    source = checkpoint_folder(checkpoint)
    if not tf.io.gfile.exists(os.path.join(source, TOKENIZER_FILE)):
        raise InputError(f"`input_path`: no {TOKENIZER_FILE} in {source or '.'}; copy the one that it needs into it")
    tokenizer = load_tokenizer(source)
    model = _read_model(checkpoint, dtype)
    write_checkpoint(os.path.join(folder, os.path.basename(checkpoint)), model)
    write_json(os.path.join(folder, CONFIG_FILE), config.to_dict())
    tokenizer.save(folder)
    settings = read_settings(source) or {}
    task, of_task, _ = known_settings(settings, config)
    # `albert_tf.load` needs to know for what a model was fine-tuned, or what it has learnt from text.
    if kept := of_task or what_was_learnt(settings):
        write_json(os.path.join(folder, SETTINGS_FILE), kept)
    deciding_file = task and task.kind.deciding_file
    for file in filter(None, (CARD_FILE, UNTRAINED_FILE, deciding_file, ENCODER_FILE)):
        if tf.io.gfile.exists(os.path.join(source, file)):
            tf.io.gfile.copy(os.path.join(source, file), os.path.join(folder, file))
    untrained = read_untrained(checkpoint).intersection(name.removeprefix(MODEL_PREFIX) for name in model)
    return [tell_untrained(frozenset(untrained))] if untrained else []


def _read_model(checkpoint, dtype):
    """Returns the values of a checkpoint's model by their full names, averaged ones where it has them."""
    reader = CheckpointReader(checkpoint)
    sources = {name: best_source(name.removeprefix(MODEL_PREFIX), reader.shapes) for name in only_model(reader.shapes)}
    if not sources:
        raise InputError(f"`input_path`: {checkpoint} holds no model, which means that albert_tf did not write it")
    values = reader.read(sources.values())
    with np.errstate(over="ignore"):
        published = {name: _as_dtype(values[source], dtype) for name, source in sources.items()}
    for name, value in published.items():
        if not np.isfinite(value).all():
            raise InputError(f"`weights_dtype={dtype}`: {name} has values that are too large; use float32")
    return published


def _as_dtype(values, dtype):
    """Returns floats in another precision, and whole numbers, such as ids of names' pieces, as they are."""
    return values.astype(dtype) if values.dtype.kind == "f" else values
