"""The settings of `run_race.py`: questions with options to choose among."""

import dataclasses

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.settings import changed, place, setting
from albert_tf.finetuning import MultipleChoice
from albert_tf.finetuning.datasets import find_files
from albert_tf.finetuning.defaults import with_pooling_that_sees_the_text
from albert_tf.finetuning.tasks.multiple_choice import LETTERS, LEVELS, MAX_QA_LENGTH, read_questions
from albert_tf.runs.settings.finetuning import DEV, TEST, TRAIN, FinetuningSettings, bad_rows

_RACE, _JSON_LINES = "race", "jsonl"
_CHOICES_OF_RACE = 4
_PARTS = {TRAIN: ("train",), DEV: ("dev",), TEST: ("test", "dev")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RaceSettings(FinetuningSettings):
    """Which questions to learn from, and how much of them is read."""

    command = "run_race"

    task_name: str = setting(
        _RACE,
        "RACE as it is published, or train.jsonl, dev.jsonl and test.jsonl.",
        choices=(_RACE, _JSON_LINES),
        in_python=False,
    )
    data_dir: str | None = place(None, "Folder of the task's folders or files.")
    max_qa_length: int = setting(
        MAX_QA_LENGTH,
        "How many of the last pieces of question and option to keep; at most half of what fits.",
        least=1,
        search=True,
    )
    num_choices: int | None = setting(
        None, "Options of each question; by default as many as in the training file.", least=2, most=len(LETTERS)
    )
    middle_only: bool = setting(False, "Read only RACE's middle school questions.")
    high_only: bool = setting(False, "Read only RACE's high school questions.")
    on_bad_row: str = bad_rows("Questions that can't be used: stop, or leave them out and count them.", in_python=True)
    max_seq_length: int | None = changed(
        help="Longest input in pieces; the end of a passage is cut. By default 512, or the model's positions if fewer.",
    )

    def _levels(self):
        only = [level for level, is_only in zip(LEVELS, (self.middle_only, self.high_only)) if is_only]
        if len(only) > 1:
            raise InputError("`middle_only` and `high_only` exclude each other; leave both out to read all")
        if self.task_name == _JSON_LINES:
            if only:
                raise InputError(f"`{only[0]}_only` is for `task_name={_RACE}`; leave it out")
            return ()
        return tuple(only) or LEVELS

    def find_paths(self, part):
        self.require("data_dir")
        if self.task_name == _JSON_LINES:
            return find_files(self.data_dir, tuple(f"{name}.jsonl" for name in _PARTS[part]))
        (path,) = find_files(self.data_dir, _PARTS[part])
        if not tf.io.gfile.isdir(path):
            raise InputError(f"{path} must be a folder, as RACE is published; or choose `task_name={_JSON_LINES}`")
        return (path,)

    def make_task(self, config):
        """Returns the task; the number of options is the one set, the run's or RACE's, or else the training file's."""
        self.require("data_dir")
        config, levels = with_pooling_that_sees_the_text(config), self._levels()
        num_choices = self.num_choices or (_CHOICES_OF_RACE if levels else None)
        if num_choices is None:
            num_choices = len(read_questions(self.find_paths(TRAIN)[0], on_bad_row=self.on_bad_row)[0].options)
        return MultipleChoice(config, num_choices, self.max_qa_length, levels, self.on_bad_row)
