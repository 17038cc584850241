"""The task of a fine-tuned model's head, as run_settings.json tells it."""

import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import TASKS
from albert_tf.finetuning.task import TEXTS_ARE_ASSUMED
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.variables import Task


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
