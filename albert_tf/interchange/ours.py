"""Our own folders as a format: a checkpoint, albert_config.json, the tokenizer, and of a fine-tuned model its task.

`publish` makes a small folder to give away of a run's; `read` and `write` have the models of other libraries.
"""

import dataclasses
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import (
    AVERAGES_PREFIX,
    CHECKPOINT_NAME,
    ENCODER_FILE,
    MODEL_PREFIX,
    CheckpointReader,
    best_source,
    checkpoint_folder,
    only_model,
    write_checkpoint,
    write_large_checkpoint,
)
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS, Classification, ConditionalQuestionAnswering
from albert_tf.finetuning.task import TEXTS_ARE_ASSUMED
from albert_tf.interchange.portable_model import (
    Caveat,
    PortableModel,
    ReadOptions,
    Values,
    checkpoint_weights,
    give_weights,
    take_weights,
)
from albert_tf.interchange.tokenizers.files import with_tokenizer
from albert_tf.interchange.variables import OURS, Task
from albert_tf.modeling.pretrained import (
    CONFIG_FILE,
    HEAD,
    UNTRAINED,
    UNTRAINED_FILE,
    find_checkpoint,
    list_parts,
    read_config,
    read_encoder_settings,
    read_untrained,
)
from albert_tf.objectives import what_was_learnt
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE
from albert_tf.training.run_folder.guard import SETTINGS_FILE, read_settings
from albert_tf.training.run_folder.model_card import CARD_FILE

WEIGHT_DTYPES = ("float16", "float32")
# Stands before the reason why a head can't be asked.
NO_TASK = "not for albert_tf.load: "


def known_settings(settings: dict, config: AlbertConfig) -> tuple[Task | None, dict[str, typing.Any], tuple | None]:
    """Returns the task of a run, its settings worth keeping, and its labels; None, {} and None if it has no task."""
    task = next((task for task in TASKS.values() if task.__name__ == settings.get("objective")), None)
    if task is None:
        return None, {}, None
    try:
        made = task.from_settings(config, settings)
        kept = {key: settings[key] for key in ("objective", "max_seq_length", *made.settings())}
        kept |= {TEXTS_ARE_ASSUMED: True} if settings.get(TEXTS_ARE_ASSUMED) is True else {}
        if type(kept["max_seq_length"]) is not int or kept["max_seq_length"] < 1:
            raise ValueError("max_seq_length")
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the settings of the run, of {task.kind.name}, lack {error} or give it a wrong value; correct them"
        ) from error
    return task, kept, made.labels or None


def settings_of(model: PortableModel) -> tuple[dict[str, typing.Any] | None, str]:
    """Returns the run_settings.json that `albert_tf.load` needs, or None and the reason why there is none."""
    if model.settings:
        return model.settings, ""
    if model.task is None:
        return None, "nothing says what it is for; set `task` to say so"
    try:
        labels = model.labels or tuple(map(str, range(model.num_outputs)))
        task = model.task.from_head(model.config, labels, model.gives_probability)
    except InputError as error:
        return None, str(error)
    longest = model.longest_sequence  # nobody knows the lengths of the training texts: nothing is cut needlessly
    length = min(task.usual_max_seq_length or longest, longest)
    settings = {"objective": type(task).__name__, "max_seq_length": length, **task.settings(), TEXTS_ARE_ASSUMED: True}
    return settings, ""


def read(path: str, options: ReadOptions) -> PortableModel:
    """Reads a run's folder, of which the best checkpoint is taken, a published model, or a path without extension."""
    checkpoint = find_checkpoint(path, "`input_path`")
    folder = checkpoint_folder(checkpoint)
    config = read_config(checkpoint, "`input_path`")
    if config.num_entities:
        raise InputError(
            f"`input_path` adds vectors of entities (num_entities={config.num_entities}), which no other library does; "
            "convert a model without"
        )
    variables = checkpoint_weights(CheckpointReader(checkpoint))
    sources = _sources(variables, checkpoint)
    found = {name.removeprefix(MODEL_PREFIX): variables[source] for name, source in sources.items()}
    task, settings, labels = known_settings(read_settings(folder) or {}, config)
    deciding_file = task and task.kind.deciding_file
    if deciding_file and tf.io.gfile.exists(os.path.join(folder, deciding_file)):
        raise InputError(
            f"`input_path` can't be converted: {deciding_file.removesuffix('.json')} would be lost; use export_model.py"
        )
    has_head = any(name.startswith("head/") for name in found)
    bias = found.get("head/dense/bias")
    task = task or options.named_task or (None if bias else ConditionalQuestionAnswering)
    outputs = (*bias.shape, 0)[0] if bias else 0
    # All heads but one have the same variables, so that these can be taken even where nobody knows the task.
    head = (task or Classification) if has_head else None
    weights, notes = take_weights(OURS, config, found, checkpoint, head, outputs, "encoder/")
    others = [name for name in variables if not name.startswith((MODEL_PREFIX, AVERAGES_PREFIX))]
    if others:
        notes.append(f"left, because only training needs them: {len(others)} variables, the optimizer's among them")
    untrained = frozenset(weights) & read_untrained(checkpoint)
    if untrained:
        notes.append(tell_untrained(untrained))
    model = with_tokenizer(PortableModel(config, weights, untrained=untrained, notes=notes), folder, options)
    model.vectors = read_encoder_settings(folder)
    if task and task.encoder_settings:
        model.vectors = {**task.encoder_settings, "max_seq_length": settings["max_seq_length"]}
    if has_head:
        model.task, model.settings, model.labels = task, settings, labels
    return model


def tell_untrained(names: frozenset[str]) -> str:
    return f"still random, because nothing has trained it: {list_parts(sorted(names))}"


def write(model: PortableModel, folder: str) -> list[str]:
    """Writes a folder for `init_checkpoint`, and with a known task for `albert_tf.load`; returns what it lacks."""
    is_kept = model.task is not None  # of another head nobody can tell what its variables are
    kept = {name: weight for name, weight in model.weights.items() if is_kept or not name.startswith(HEAD)}
    weights, notes = give_weights(OURS, dataclasses.replace(model, weights=kept))
    values = Values({f"{MODEL_PREFIX}{name}": weight for name, weight in weights.items()})
    write_large_checkpoint(os.path.join(folder, f"{CHECKPOINT_NAME}-0"), values)
    write_json(os.path.join(folder, CONFIG_FILE), model.config.to_dict())
    if model.untrained:
        write_json(os.path.join(folder, UNTRAINED_FILE), {UNTRAINED: sorted(model.untrained)})
    if model.tokenizer is not None:
        model.tokenizer.save(folder)
    is_shorter = not model.settings and model.longest_sequence < model.config.longest_sequence
    length = {"max_seq_length": model.longest_sequence} if is_shorter else {}
    if vectors := {**model.vectors, **length}:
        write_json(os.path.join(folder, ENCODER_FILE), vectors)
    if model.has_head:
        settings, reason = settings_of(model)
        if settings is not None and model.tokenizer is None:
            settings, reason = None, "albert_tf.load also needs a tokenizer"
        if settings is None:
            what = "kept for `init_checkpoint`, but" if is_kept else "left out, and so"
            notes.append(Caveat(f"the head is {what} {NO_TASK}{reason}"))
        else:
            write_json(os.path.join(folder, SETTINGS_FILE), settings)
            notes.append(f"albert_tf.load answers from it; {SETTINGS_FILE} says how")
    return notes


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


def _sources(variables, checkpoint):
    """Returns where a checkpoint has the values of each variable of its model, by full names; averages if there are."""
    found = {name: best_source(name.removeprefix(MODEL_PREFIX), variables) for name in only_model(variables)}
    if not found:
        raise InputError(f"`input_path`: {checkpoint} holds no model, which means that albert_tf did not write it")
    return found


def _read_model(checkpoint, dtype):
    """Returns the values of a checkpoint's model by their full names; whole numbers, such as ids, as they are."""
    reader = CheckpointReader(checkpoint)
    sources = _sources(reader.shapes, checkpoint)
    values = reader.read(sources.values())
    published = {}
    for name, source in sources.items():
        with np.errstate(over="ignore"):
            published[name] = values[source].astype(dtype) if values[source].dtype.kind == "f" else values[source]
        if not np.isfinite(published[name]).all():
            raise InputError(f"`weights_dtype={dtype}`: {name} has values that are too large; use float32")
    return published
