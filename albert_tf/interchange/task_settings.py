"""What a fine-tuned model's head is for, as our fine-tuning tasks: from what is known of it to run_settings.json."""

import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import TASKS, Classification, Entities, FinetuningTask, MultiLabel, Regression
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.entities.task import labels_for
from albert_tf.finetuning.labels import check_labels
from albert_tf.finetuning.task import TEXTS_ARE_ASSUMED
from albert_tf.interchange.portable_model import PortableModel

_TWO_TEXTS = DataFiles(text_column="premise", text_pair_column="hypothesis")


def known_settings(
    settings: dict[str, typing.Any], config: AlbertConfig, keeps_thresholds: bool = False
) -> tuple[str | None, dict[str, typing.Any], tuple | None]:
    """Takes what is worth keeping elsewhere out of run_settings.json: the task, its settings and labels, None without.

    A run that fine-tunes nothing has no task. `keeps_thresholds` says whether those of a model that gives several
    labels come along; formats of others have no place for them.
    """
    name = next((name for name, kind in TASKS.items() if kind.__name__ == settings.get("objective")), None)
    if name is None:
        return None, {}, None
    if name == "multi_label" and not keeps_thresholds:
        raise InputError(
            "a model that gives a text several labels can't be converted, because its thresholds would be lost; "
            "export_model.py exports it with them"
        )
    try:
        task = TASKS[name].from_settings(config, settings)
        kept = {key: settings[key] for key in ("objective", "max_seq_length", *task.settings())}
        kept |= {TEXTS_ARE_ASSUMED: True} if settings.get(TEXTS_ARE_ASSUMED) is True else {}
        if type(kept["max_seq_length"]) is not int or kept["max_seq_length"] < 1:
            raise ValueError("max_seq_length")
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the settings of the run, of {name}, lack {error} or give it a wrong value; correct them"
        ) from error
    return name, kept, task.labels or None


def settings_of(model: PortableModel) -> tuple[dict[str, typing.Any] | None, str]:
    """Returns what run_settings.json should say for `albert_tf.load`, or None and the reason."""
    if model.settings:
        return model.settings, ""
    if model.task is None:
        return None, "nothing says what it is for; set `task` to say so"
    try:
        task = _make_task(model)
    except InputError as error:
        return None, str(error)
    longest = model.longest_sequence  # nobody knows the lengths of the training texts: nothing is cut needlessly
    length = min(task.usual_max_seq_length or longest, longest)
    settings = {"objective": type(task).__name__, "max_seq_length": length, **task.settings(), TEXTS_ARE_ASSUMED: True}
    return settings, ""


def _make_task(model: PortableModel) -> FinetuningTask:
    if model.task in ("classify", "multi_label"):
        labels = model.labels or tuple(map(str, range(model.num_outputs)))
        check_labels(labels, "its labels")
        # Formats of others don't say whether a text or two are read; that one follows from another takes two.
        files = _TWO_TEXTS if any(label.lower() == "entailment" for label in labels) else DATASETS["tsv"]
        return {"classify": Classification, "multi_label": MultiLabel}[model.task](model.config, labels, files)
    if model.task == "tag":
        labels = model.labels or ()
        types = tuple(label.removeprefix("B-") for label in labels if label.startswith("B-"))
        if not types or labels != labels_for(types):
            raise InputError("its labels are not O, and B- and I- of each type, which run_ner.py reads")
        return Entities(model.config, types)
    if model.task == "score":
        return Regression(model.config, sigmoid=model.gives_probability)
    return TASKS[model.task](model.config)
