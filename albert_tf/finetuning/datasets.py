"""Data sets for fine-tuning: the names of their files, columns and labels, and what they are measured by."""

import dataclasses
import os

import tensorflow as tf

from albert_tf.errors import InputError

# What a run keeps of its data set.
COLUMNS = ("text_column", "text_pair_column", "label_column")


@dataclasses.dataclass(frozen=True)
class DataFiles:
    """The files of a data set, the meaning of their columns, and the measures that its authors chose.

    Attributes:
        train: Names that the training file may have.
        dev: Names that the file for evaluation may have.
        test: Names that the file to predict may have.
        text_column: Column of the text.
        text_pair_column: Column of the second text, None if there is none.
        label_column: Column of the label.
        labels: The labels in the order of their ids; None for those of the training file, sorted.
        metrics: Names of `finetuning.metrics.METRICS`; the first decides which checkpoint is best.
        is_regression: Whether labels are numbers to come close to.
        columns: The names of the columns, where files have no header.
        on_bad_row: What to do with a row that can't be used; one of `errors.ON_BAD_ROW`.
        asks_likeness: Whether labels say how much two texts are alike.
    """

    train: tuple[str, ...] = ("train.tsv",)
    dev: tuple[str, ...] = ("dev.tsv",)
    test: tuple[str, ...] = ("test.tsv", "dev.tsv")
    text_column: str = "document"
    text_pair_column: str | None = None
    label_column: str = "label"
    labels: tuple[str, ...] | None = None
    metrics: tuple[str, ...] = ("accuracy",)
    is_regression: bool = False
    columns: tuple[str, ...] | None = None
    on_bad_row: str = "fail"
    asks_likeness: bool = False

    @property
    def may_hide_pieces(self) -> bool:
        """Whether a training text without a few of its pieces still has its label; docs/classification.md has figures.

        Many pieces say whether texts are alike, and one alone whether the second follows from the first.
        """
        return self.text_pair_column is None or self.asks_likeness


def _of_format(extension):
    """Returns a data set of one's own: train, dev and test with this ending."""
    return DataFiles((f"train.{extension}",), (f"dev.{extension}",), (f"test.{extension}", f"dev.{extension}"))


def _klue(name, **more):
    """Returns a data set of KLUE (Park et al. 2021, section 3), whose test files have no labels."""
    train, dev = (tuple(f"klue-{name}{version}_{part}.json" for version in ("-v1.1", "-v1", "")) for part in _PARTS)
    train, dev = ((*names, *(file.removeprefix("klue-") for file in names)) for names in (train, dev))
    return DataFiles(train, dev, dev, **more)


_PARTS = ("train", "dev")
_NLI = ("entailment", "neutral", "contradiction")
_SENTENCES = {"text_column": "sentence1", "text_pair_column": "sentence2"}
_TOPICS = ("IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치")

# To add a data set whose files look like these, add a line.
DATASETS = {
    "tsv": _of_format("tsv"),
    "csv": _of_format("csv"),
    "jsonl": _of_format("jsonl"),
    "parquet": _of_format("parquet"),
    # Korean
    "nsmc": DataFiles(
        train=("ratings_train.txt",),
        dev=("ratings_dev.txt", "ratings_test.txt"),
        test=("ratings_test.txt", "ratings_dev.txt"),
        labels=("0", "1"),
    ),
    "kornli": DataFiles(
        train=("multinli.train.ko.tsv", "snli_1.0_train.ko.tsv", "train.tsv"),
        dev=("xnli.dev.ko.tsv", "dev.tsv"),
        test=("xnli.test.ko.tsv", "test.tsv", "xnli.dev.ko.tsv", "dev.tsv"),
        label_column="gold_label",
        labels=_NLI,
        **_SENTENCES,
    ),
    "korsts": DataFiles(
        train=("sts-train.tsv",),
        dev=("sts-dev.tsv",),
        test=("sts-test.tsv", "sts-dev.tsv"),
        label_column="score",
        metrics=("spearman", "pearson"),
        is_regression=True,
        asks_likeness=True,
        **_SENTENCES,
    ),
    "question_pair": DataFiles(
        train=("train.tsv", "kor_pair_train.csv"),
        dev=("dev.tsv", "test.tsv", "kor_Pair_test.csv"),
        test=("test.tsv", "kor_Pair_test.csv", "dev.tsv"),
        text_column="question1",
        text_pair_column="question2",
        label_column="is_duplicate",
        labels=("0", "1"),
        asks_likeness=True,
    ),
    "pawsx_ko": DataFiles(
        train=("translated_train.tsv", "train.tsv"),
        dev=("dev_2k.tsv", "dev.tsv"),
        test=("test_2k.tsv", "test.tsv", "dev_2k.tsv", "dev.tsv"),
        labels=("0", "1"),
        **_SENTENCES,
    ),
    "klue_ynat": _klue("ynat", text_column="title", labels=_TOPICS, metrics=("macro_f1", "accuracy")),
    "klue_nli": _klue(
        "nli", text_column="premise", text_pair_column="hypothesis", label_column="gold_label", labels=_NLI
    ),
    "klue_sts": _klue(
        "sts",
        label_column="labels.real-label",
        metrics=("pearson", "f1_at_3"),
        is_regression=True,
        asks_likeness=True,
        **_SENTENCES,
    ),
    "korean_hate_speech": DataFiles(
        text_column="comments",
        label_column="hate",
        labels=("hate", "none", "offensive"),
        metrics=("macro_f1", "accuracy"),
    ),
    # GLUE (Wang et al. 2019, table 1)
    "cola": DataFiles(
        text_column="sentence",
        columns=("source", "label", "mark", "sentence"),
        labels=("0", "1"),
        metrics=("matthews", "accuracy"),
        test=("dev.tsv",),  # test.tsv has a header and other columns
    ),
    "sst-2": DataFiles(text_column="sentence", labels=("0", "1")),
    "mrpc": DataFiles(
        text_column="#1 String",
        text_pair_column="#2 String",
        label_column="Quality",
        labels=("0", "1"),
        metrics=("f1", "accuracy"),
        asks_likeness=True,
    ),
    "sts-b": DataFiles(
        label_column="score",
        metrics=("pearson", "spearman"),
        is_regression=True,
        on_bad_row="skip",
        asks_likeness=True,
        **_SENTENCES,
    ),
    "qqp": DataFiles(
        text_column="question1",
        text_pair_column="question2",
        label_column="is_duplicate",
        labels=("0", "1"),
        metrics=("f1", "accuracy"),
        on_bad_row="skip",  # some lines of the published file are broken
        asks_likeness=True,
    ),
    "mnli": DataFiles(
        dev=("dev_matched.tsv",),
        test=("test_matched.tsv", "dev_matched.tsv"),
        label_column="gold_label",
        labels=_NLI,
        **_SENTENCES,
    ),
    "qnli": DataFiles(text_column="question", text_pair_column="sentence", labels=("entailment", "not_entailment")),
    "rte": DataFiles(labels=("entailment", "not_entailment"), **_SENTENCES),
    "wnli": DataFiles(labels=("0", "1"), **_SENTENCES),
}


def files_of(settings: dict) -> DataFiles:
    """Returns what the columns of a run's files mean, from its settings."""
    return DataFiles(**{name: settings.get(name) for name in COLUMNS})


def find_file(data_dir: str, names: tuple[str, ...]) -> str:
    """Returns the path of the first name that exists in a folder.

    Raises:
        InputError: None does, or there is no such folder.
    """
    if not tf.io.gfile.exists(data_dir):
        raise InputError(f"--data_dir={data_dir}: there is no such folder")
    if not tf.io.gfile.isdir(data_dir):
        raise InputError(f"--data_dir={data_dir} is a file; name the folder that has it, and call it {names[0]} there")
    for name in names:
        path = os.path.join(data_dir, name)
        if tf.io.gfile.exists(path):
            return path
    extensions = {os.path.splitext(name)[1] for name in names}
    alike = sorted(name for name in tf.io.gfile.listdir(data_dir) if os.path.splitext(name)[1] in extensions)
    there_is = f" (there is {', '.join(alike[:5])})" if alike else ""
    raise InputError(f"--data_dir={data_dir} has no {' or '.join(names)}; give the file that name{there_is}")
