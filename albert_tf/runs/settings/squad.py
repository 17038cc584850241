"""The settings of `run_squad.py`: answers that stand in a text."""

import dataclasses
import functools
import os

import tensorflow as tf

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.base.console import tell
from albert_tf.base.files import read_json
from albert_tf.base.settings import RARE, changed, check_types, free, place, setting
from albert_tf.config import QUESTION_ALIGNMENT_CHOICES
from albert_tf.finetuning import ConditionalQuestionAnswering, QuestionAnswering, runner
from albert_tf.finetuning.defaults import default_question_alignment
from albert_tf.finetuning.tasks.question_answering import EVAL_SETTINGS_FILE
from albert_tf.finetuning.tasks.question_windows import SpanOptions, WindowOptions
from albert_tf.finetuning.tasks.squad import DEFAULT_METRICS, METRICS, read_version, rules_named_by
from albert_tf.runs.known_run import AUTO
from albert_tf.runs.settings.finetuning import DEV, TRAIN, FinetuningSettings, bad_rows
from albert_tf.training.run_folder.guard import results_path

_HEADS = {kind.head: kind for kind in (QuestionAnswering, ConditionalQuestionAnswering)}
_rare = functools.partial(free, group=RARE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadSettings(FinetuningSettings):
    """Which questions to learn from, how long texts are read, and how answers are found and judged."""

    command, main_place = "run_squad", "train_file"

    train_file: str | None = place(None, "JSON file to train on, in the form of SQuAD, KorQuAD 1.0 or KLUE-MRC.")
    predict_file: str | None = place(None, "JSON file to evaluate on and to predict.")
    doc_stride: int = setting(
        128,
        "In a text too long for one window, a new one begins after this many pieces; at most half of the room for the "
        "text.",
        least=1,
        search=True,
    )
    max_query_length: int = setting(
        64, "Longest question in pieces; at most half of --max_seq_length.", least=1, search=True
    )
    max_answer_length: int = free(30, "Longest answer in pieces.", least=1)
    version_2_with_negative: bool = setting(
        False, "Questions may have no answer, as in SQuAD 2.0 and KLUE-MRC.", in_python=False
    )
    head: str | None = setting(
        None,
        "How to find both ends of an answer: independent, each by itself, as the original's run_squad_v1; conditional, "
        "the end given the beginning, and whether there is an answer, as run_squad_v2. By default conditional with "
        "--version_2_with_negative, else independent.",
        choices=tuple(_HEADS),
        search=True,
    )
    question_alignment: str | None = setting(
        None,
        "Whether each piece of a text comes with the words of the question that are similar to it. By default words in "
        "small models.",
        choices=tuple(QUESTION_ALIGNMENT_CHOICES),
        search=True,
    )
    n_best_size: int = _rare(20, "How many answers to write for each question.", least=1)
    start_n_top: int = _rare(5, "With --head=conditional: how many beginnings to consider in a window.", least=1)
    end_n_top: int = _rare(5, "With --head=conditional: how many ends to consider for each beginning.", least=1)
    null_score_diff_threshold: float = free(
        0.0, 'No answer is given if the log odds of "no answer" are above this; see best_*_thresh.'
    )
    metrics: str | None = setting(
        AUTO,
        "Rules of the evaluation; auto: the run's, or those of the data set that the file's version or name says, else "
        "KorQuAD's.",
        choices=(AUTO, *METRICS),
        is_free_in_use=True,
    )
    on_bad_row: str = bad_rows("Questions that can't be used: stop, or leave them out and count them.")
    max_seq_length: int | None = changed(
        help="Longest input in pieces; what is longer is read in several windows. By default 384, or as long as the "
        "model reads.",
    )

    def find_paths(self, part):
        name = "train_file" if part == TRAIN else "predict_file"
        self.require(name)
        return (getattr(self, name),)

    def placed(self, paths):
        return self.changed(**dict(zip(("train_file", "predict_file"), paths)))

    def completed(self, config, is_known):
        """Returns settings that name the head, whether questions are aligned, and the metrics."""
        # A head that is there reads what it was trained on.
        aligned = default_question_alignment(config) if self.do_train else config.question_alignment
        metrics = self._choose_metrics() if self.do_eval else self.metrics
        return self.changed(
            head=self.head or ("conditional" if self.version_2_with_negative else "independent"),
            question_alignment=self.question_alignment or aligned,
            metrics=None if metrics == AUTO else metrics,
        )

    def make_task(self, config):
        return _HEADS[self.head](
            config.replace(question_alignment=self.question_alignment),
            WindowOptions(self.doc_stride, self.max_query_length),
            SpanOptions(self.n_best_size, self.max_answer_length, self.start_n_top, self.end_n_top),
            self.version_2_with_negative,
            self.null_score_diff_threshold,
            self.metrics or DEFAULT_METRICS,
            self.on_bad_row,
        )

    def _choose_metrics(self):
        """Returns the rules to evaluate by, the same for a file and its half, and tells them where no setting does."""
        is_settled = self.metrics not in (None, AUTO)
        if is_settled and "metrics" in self.given:
            return self.metrics
        (path,), share = self.find(DEV)
        name = os.path.basename(path)
        named = rules_named_by(read_version(path), name)
        earlier = self.metrics if is_settled else self._read_metrics(runner.identity_of(path, share))
        if earlier is not None:
            chosen, reason = earlier, "as before"
            if named is not None and named[0] != earlier:
                reason += f", though {name} calls itself {named[1]}"
        elif named is not None:
            chosen, reason = named[0], f"because {name} calls itself {named[1]}"
        else:
            chosen, reason = DEFAULT_METRICS, f"because {name} doesn't say which rules it follows"
        others = " or ".join(f"`metrics={other}`" for other in METRICS if other != chosen)
        tell(f"`metrics={chosen}`, {reason}; for other rules pass {others}")
        return chosen

    def _read_metrics(self, data):
        """Returns the rules by which data were evaluated last, None if they never were."""
        path, _ = results_path(self.output_dir, EVAL_SETTINGS_FILE, data, beside=EVAL_RESULTS_FILE)
        if not tf.io.gfile.exists(path):
            return None
        expected = {"metrics": str}
        return check_types(read_json(path, "the settings of the evaluation"), expected, path, expected)["metrics"]
