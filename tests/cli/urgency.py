"""A task on a head that is there, with files of its own and a command: what somebody who adds one has to write."""

import dataclasses

from albert_tf.asking.answers import LabelAnswer
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_text
from albert_tf.base.settings import free, place
from albert_tf.finetuning import Classification
from albert_tf.finetuning.task import OF_TEXT, TaskKind
from albert_tf.finetuning.tasks.labelled_text import LabelledText
from albert_tf.runs.settings.finetuning import TRAIN, FinetuningSettings


class Urgency(Classification):
    """Tells whether a line is urgent, as an exclamation mark before it says in files; without one it is not."""

    kind = TaskKind("urgency", OF_TEXT, LabelAnswer, hf_problem_type="single_label_classification")

    def read(self, path, needs_labels=True):
        lines = enumerate(read_text(path, "the lines").splitlines(), start=1)
        return [
            LabelledText(line.removeprefix("!"), None, self.labels[line.startswith("!")], number, path)
            for number, line in lines
        ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class UrgencySettings(FinetuningSettings):
    """Where the lines are."""

    command, main_place = "run_urgency", "lines"

    lines: str | None = place(None, "File of lines to train on.")
    word: str = free("urgent", "What urgent lines are called.")

    def find_paths(self, part):
        self.require("lines")
        if part != TRAIN:
            raise InputError("there is only a file to train on")
        return (self.lines,)

    def make_task(self, config):
        return Urgency(config, ("calm", self.word))
