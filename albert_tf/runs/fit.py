"""From Python values to a trained folder, by the run of the commands that fine-tune."""

import collections.abc
import os
import tempfile
import typing

import tensorflow as tf

from albert_tf.errors import InputError, quote
from albert_tf.files import names_in, read_text, remove, to_json, write_text
from albert_tf.finetuning.multi_label import METRICS as METRICS_OF_SETS
from albert_tf.folder_lock import hold
from albert_tf.runs.asked_trials import Stopped
from albert_tf.runs.classifier_settings import ClassifierSettings
from albert_tf.runs.finetune import finetune
from albert_tf.runs.finetuning_settings import FinetuningSettings
from albert_tf.runs.given_data import GivenData
from albert_tf.runs.ner_settings import NerSettings
from albert_tf.runs.squad_settings import SquadSettings
from albert_tf.training.run_folder.guard import read_settings
from albert_tf.training.trackers import Tracker
from albert_tf.verbosity import RESULTS, tell

DATA_FOLDER = "data"

# What others call these.
_OTHER_NAMES = {
    "init_checkpoint": "model",
    "batch_size": "train_batch_size",
    "lr": "learning_rate",
    "epochs": "num_train_epochs",
    "seed": "random_seed",
    "eval_dataset": "dev",
    "validation_data": "dev",
    "validation_split": "dev_fraction",
    "max_length": "max_seq_length",
}
# Evaluations in succession without a better one, of the ten to twenty of a run.
_PATIENCE = 5
# What ends a line somewhere, or a column.
_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
# Lines of such a word would be read as something else.
_NO_WORDS = ("## ", "-DOCSTART-")
_SETTINGS = {"answers": SquadSettings, "entities": NerSettings}


def fit_folder(
    data: GivenData,
    dev_data: GivenData | None,
    model: str,
    output_dir: str,
    given: dict[str, typing.Any],
    strategy: tf.distribute.Strategy | None = None,
    trackers: collections.abc.Sequence[Tracker] = (),
) -> None:
    """Fine-tunes a model on examples, and evaluates it on those that are given or put aside for that."""
    # A run that is in the folder is resumed. Raises KeyboardInterrupt if training was; the same call goes on.
    settings, fraction = settings_for(data, given), given.get("dev_fraction")
    if dev_data is not None:
        fraction = None
    elif fraction is None:
        count = len(data.texts)
        fraction = 0.1 if count >= 1000 else round(min(0.25, 100 / count), 3)
    evaluates = dev_data is not None or fraction > 0
    if evaluates and "early_stopping" not in given:
        settings = settings.changed(early_stopping=_PATIENCE)
    tell(data.describe(), RESULTS)
    with hold(output_dir):
        settings = placed(settings, _write(data, dev_data, output_dir)).changed(
            init_checkpoint=model,
            output_dir=output_dir,
            do_train=True,
            do_eval=evaluates,
            dev_fraction=fraction or None,
            # A run in the folder must have had the same.
            given=settings.given | {"init_checkpoint", "dev_fraction", "task_name", "regression", "multi_label"},
        )
        try:
            finetune(settings, strategy, trackers)
        except Stopped as stop:
            raise KeyboardInterrupt(
                f"interrupted; repeat the call with output_dir={output_dir!r} to continue"
            ) from stop


def placed(settings: FinetuningSettings, paths: list[str]) -> FinetuningSettings:
    """Returns settings that say where the examples lie: what to train on and, if there is such, to evaluate on."""
    if isinstance(settings, SquadSettings):
        return settings.changed(**dict(zip(("train_file", "predict_file"), paths)))
    return settings.changed(data_dir=os.path.dirname(paths[0]))


def settings_for(data: GivenData, given: dict[str, typing.Any]) -> FinetuningSettings:
    """Returns the settings that examples and a user ask for, but for those that say where things lie."""
    kind = _SETTINGS.get(data.kind, ClassifierSettings)
    settings = kind.of(given, _OTHER_NAMES)
    if settings.dev_fraction == 1:
        raise InputError("`dev_fraction` must be less than 1")
    if kind is SquadSettings:
        return settings.changed(version_2_with_negative=not all(data.labels))
    if kind is NerSettings:
        return settings.changed(task_name="conll" if isinstance(data.texts[0], list) else "klue_ner")
    is_regression, has_sets = data.kind == "numbers", data.kind == "multi_label"
    metrics = ("spearman", "pearson") if is_regression else tuple(METRICS_OF_SETS) if has_sets else None
    return settings.changed(
        task_name="jsonl",
        text_column="text",
        text_pair_column="text_pair" if data.reads_pairs else None,
        regression=is_regression,
        multi_label=has_sets,
        metrics=settings.metrics or metrics,
        labels=settings.labels or _labels_of_columns(data),
    )


def _labels_of_columns(data):
    """Returns the labels that have a column each, where there are columns and examples have no other labels."""
    found = {label for labels in data.labels for label in labels} if data.label_columns else set()
    return tuple(sorted(data.label_columns)) if found and found <= set(data.label_columns) else None


def _write(data, dev_data, output_dir):
    """Writes the examples below a folder, unless they are there; returns the paths."""
    # InputError where others are there, which a run in the folder was begun with.
    folder = os.path.join(output_dir, DATA_FOLDER)
    given = {name: each for name, each in (("train", data), ("dev", dev_data)) if each is not None}
    with tempfile.TemporaryDirectory() as temporary:
        texts = {os.path.basename(path): read_text(path, "the examples") for path in _write_all(given, temporary)}
    if read_settings(output_dir) is None:  # of a call that got no further there may be other ones
        remove(folder)
    there = {name: read_text(os.path.join(folder, name), "the examples") for name in names_in(folder)}
    if any(there[name] != texts.get(name) for name in there):
        raise InputError(f"{output_dir} holds a model that was fitted to other examples; choose another `output_dir`")
    return _write_all(given, folder)


def _write_all(given, folder):
    return [write_given(data, folder, name) for name, data in given.items()]


def write_given(data: GivenData, folder: str, name: str) -> str:
    """Writes examples as the commands read them, as "train" or "dev" and the ending of their form; returns the path."""
    form, ending = _FORMS[data.kind]
    path = os.path.join(folder, f"{name}.{ending}")
    write_text(path, form(data))
    return path


def _rows(data):
    rows = []
    for text, label in zip(data.texts, data.labels):
        texts = dict(zip(("text", "text_pair"), text if isinstance(text, tuple) else (text,)))
        rows.append(to_json({**texts, "label": label}) + "\n")
    return "".join(rows)


def _tagged(data):
    """Returns words with their tags, a word a line; or characters, where entities are given by their places."""
    blocks = []
    for number, (text, label) in enumerate(zip(data.texts, data.labels)):
        units = list(zip(text, label)) if isinstance(text, list) else _tagged_characters(text, label)
        for unit, _ in units:
            is_word = isinstance(text, list)
            if _BREAKS.intersection(unit) or (is_word and (unit != unit.strip() or not unit)):
                raise InputError(
                    f"texts[{number}]: {quote(unit)} can't be written to a file of entities; replace each tab or "
                    "line break by one space, which moves no other character, and leave no spaces at the "
                    "borders of words"
                )
            if is_word and (unit == "##" or unit.startswith(_NO_WORDS)):
                raise InputError(f"texts[{number}]: {quote(unit)} is not a word in files of entities; leave it out")
        blocks.append("".join(f"{unit}\t{tag}\n" for unit, tag in units))
    return "\n".join(blocks)


def _tagged_characters(text, entities):
    tags = ["O"] * len(text)
    for begin, end, kind in entities:
        tags[begin:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - begin - 1)]
    return list(zip(text, tags))


def _questions(data):
    paragraphs = []
    for number, ((question, context), answers) in enumerate(zip(data.texts, data.labels)):
        written = [{"text": text, "answer_start": begin} for text, begin in answers]
        entry = {"id": str(number), "question": question, "answers": written, "is_impossible": not answers}
        paragraphs.append({"context": context, "qas": [entry]})
    return to_json({"version": "given", "data": [{"paragraphs": paragraphs}]}) + "\n"


# How examples of a kind are written down, and what ending the file has.
_FORMS = {
    "labels": (_rows, "jsonl"),
    "multi_label": (_rows, "jsonl"),
    "numbers": (_rows, "jsonl"),
    "entities": (_tagged, "tsv"),
    "answers": (_questions, "json"),
}
