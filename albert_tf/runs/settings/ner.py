"""The settings of `run_ner.py`: entities in texts."""

import dataclasses

from albert_tf.base.errors import InputError
from albert_tf.base.settings import changed, place, setting
from albert_tf.finetuning import Entities
from albert_tf.finetuning.datasets import find_files
from albert_tf.finetuning.defaults import default_character_ngrams
from albert_tf.finetuning.tasks.entities import BEST_SEQUENCE, DECODINGS, INDEPENDENT
from albert_tf.finetuning.tasks.tagged_text import DATASETS, METRICS, types_of
from albert_tf.runs.settings.finetuning import TRAIN, FinetuningSettings, bad_rows, linear_baselines


@dataclasses.dataclass(frozen=True, kw_only=True)
class NerSettings(FinetuningSettings):
    """Which entities to learn, how, and from which files."""

    command = "run_ner"

    task_name: str | None = setting(
        None,
        "naver_ner: a sentence a line, a tab, a tag for each word; klue_ner: a character and its tag a line; conll: a "
        "word and its tag a line.",
        choices=tuple(sorted(DATASETS)),
        in_python=False,
    )
    data_dir: str | None = place(None, "Folder of the task's files.")
    types: tuple[str, ...] | None = setting(
        None, "The types of entities, in order; by default those of the training file."
    )
    metrics: tuple[str, ...] | None = setting(
        None, f"Measures, the first of which chooses the best checkpoint: {', '.join(METRICS)}.", is_free_in_use=True
    )
    character_ngrams: bool | None = setting(
        None,
        "Also read the characters around the first and the last one of each word; the default in small models.",
        search=True,
    )
    decoding: str | None = setting(
        None,
        "independent: each word or character gets its most probable tag; best_sequence, the default: a sentence gets "
        "its most probable sequence of tags in which every I- continues an entity.",
        choices=tuple(DECODINGS),
        search=True,
    )
    on_bad_row: str = bad_rows("Lines that can't be used: stop, or leave their sentences out.")
    max_seq_length: int | None = changed(
        help="Longest input in pieces; longer ones are read in parts. By default 99.5% fit, if the model reads so much."
    )
    baselines: bool = linear_baselines()

    def find_paths(self, part):
        self.require("task_name", "data_dir")
        files = DATASETS[self.task_name]
        return find_files(self.data_dir, getattr(files, part))

    def completed(self, config, is_known):
        """Returns settings that say whether the head reads characters, and how tags are found."""
        reads_characters, decoding = self.character_ngrams, self.decoding
        if reads_characters is None:  # a head that is there reads what it was trained on
            reads_characters = default_character_ngrams(config) if self.do_train else config.character_ngrams
        if decoding is None:  # a published model says it only where it is not independent
            decoding = INDEPENDENT if is_known else BEST_SEQUENCE
        return self.changed(character_ngrams=reads_characters, decoding=decoding)

    def make_task(self, config):
        """Returns the task; its types are those set or the run's, or else those of the training file."""
        self.require("task_name", "data_dir")
        files = DATASETS[self.task_name]
        metrics = self.metrics or tuple(files.metrics)
        for metric in metrics:
            if metric not in METRICS:
                raise InputError(f"`metrics={metric}` is not one of {', '.join(METRICS)}")
        types = self.types or tuple(types_of(self.find_paths(TRAIN), files.form, self.on_bad_row))
        config = config.replace(character_ngrams=self.character_ngrams)
        return Entities(config, types, files.form, metrics, self.on_bad_row, self.decoding)
