"""Data sets for fine-tuning: the names of their files, columns and labels, and what they are measured by."""

import dataclasses
import os
import re
import types

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.reading.bad_rows import tell_once
from albert_tf.reading.tables import is_saved, saved_splits

# The names that a file may have; in place of one there may be several, of files that belong together. A name that ends
# in a slash is that of a split that the library datasets has saved.
FileNames = tuple[str | tuple[str, ...], ...]

# What the file for evaluation is called.
DEV_NAMES = ("dev", "val", "valid", "validation")

_MOST_NAMED = 4

# What to do with a folder that `datasets` has saved where it is not read.
_OF_SAVED = (
    "run_classifier.py --task_name=datasets reads texts and labels of one, and albert_tf.fit in Python takes a table "
    "of entities or answers, too"
)

# Where a repository of the hub has its files.
_DATA_FOLDER = "data"

# What a run keeps of its data set.
COLUMNS = ("text_column", "text_pair_column", "label_column")
COLUMN_TYPES = types.MappingProxyType({"text_column": str, "text_pair_column": str | None, "label_column": str})


@dataclasses.dataclass(frozen=True)
class DataFiles:
    """The files of a data set, the meaning of their columns, and the measures that its authors chose.

    Attributes:
        train: Names that the training file may have, in the order in which they are looked for; `dev` and `test`
            likewise.
        text_pair_column: Column of the second text, None if there is none.
        labels: In the order of their ids; None for those of the training file, sorted.
        metrics: Names of `finetuning.metrics.METRICS`; the first decides which checkpoint is best.
        is_regression: Whether labels are numbers to come close to.
        columns: The names of the columns, where files have no header.
        on_bad_row: What to do with a row that can't be used; one of `errors.ON_BAD_ROW`.
        asks_likeness: Whether labels say how much two texts are alike.
    """

    train: FileNames = ("train.tsv",)
    dev: FileNames = ("dev.tsv",)
    test: FileNames = ("test.tsv", "dev.tsv")
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
    def text_columns(self) -> tuple[str, ...]:
        """The columns of the texts, one or two."""
        return (self.text_column, self.text_pair_column) if self.text_pair_column else (self.text_column,)

    @property
    def may_hide_pieces(self) -> bool:
        """Whether a training text without a few of its tokens still has its label (figures in docs/classification.md).

        Many tokens say whether texts are alike, and one alone whether the second follows from the first.
        """
        return self.text_pair_column is None or self.asks_likeness


def _of_format(extension):
    """Returns a data set of one's own: train, dev (or val, valid, validation) and test with this ending."""
    dev = tuple(f"{name}.{extension}" for name in DEV_NAMES)
    return DataFiles((f"train.{extension}",), dev, (f"test.{extension}", *dev))


def _klue(name, **more):
    """Returns a data set of KLUE (Park et al. 2021, section 3), whose test files have no labels."""
    train, dev = (tuple(f"klue-{name}{version}_{part}.json" for version in ("-v1.1", "-v1", "")) for part in _PARTS)
    train, dev = ((*names, *(file.removeprefix("klue-") for file in names)) for names in (train, dev))
    return DataFiles(train, dev, dev, **more)


_PARTS = ("train", "dev")
_DEV_SPLITS = tuple(f"{name}/" for name in ("validation", *DEV_NAMES[:-1]))
_NLI = ("entailment", "neutral", "contradiction")
_SENTENCES = {"text_column": "sentence1", "text_pair_column": "sentence2"}
_TOPICS = ("IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치")

# To add a data set whose files look like these, add a line.
DATASETS = {
    "tsv": _of_format("tsv"),
    "csv": _of_format("csv"),
    "jsonl": _of_format("jsonl"),
    "parquet": _of_format("parquet"),
    "datasets": DataFiles(("train/",), _DEV_SPLITS, ("test/", *_DEV_SPLITS)),
    # Korean
    "nsmc": DataFiles(
        train=("ratings_train.txt",),
        dev=("ratings_dev.txt", "ratings_test.txt"),
        test=("ratings_test.txt", "ratings_dev.txt"),
        labels=("0", "1"),
    ),
    "kornli": DataFiles(
        train=(("multinli.train.ko.tsv", "snli_1.0_train.ko.tsv"), "train.tsv"),
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
    """Returns the data files of a run, from its settings."""
    return DataFiles(**{name: settings.get(name) for name in COLUMNS})


def find_files(data_dir: str, names: FileNames) -> tuple[str, ...]:
    """Returns the paths of the first name that exists in a folder: one, or several of one part of a data set.

    A name also stands for its gzip file, and for numbered files, such as train-00000-of-00002.parquet or train_1.tsv,
    train_2.tsv, of which none may be missing. The names of a tuple belong together, and all that exist are read.
    Several files, and any that look like one of them but are not read, are printed. A folder without such a file may
    have them in its folder `data`, as repositories of the hub do.
    """
    if not tf.io.gfile.exists(data_dir):
        raise InputError(f"`data_dir={data_dir}`: there is no such folder")
    flat = [name for entry in names for name in ((entry,) if isinstance(entry, str) else entry)]
    if not tf.io.gfile.isdir(data_dir):
        raise InputError(
            f"`data_dir={data_dir}` is a file; name the folder that holds it, and rename the file to {flat[0]} there"
        )
    if flat[0].endswith("/"):
        return _find_split(data_dir, [name.rstrip("/") for name in flat])
    extensions = {os.path.splitext(name)[1] for name in flat}
    there, alike = _list(data_dir, extensions)
    if not alike and _DATA_FOLDER in there and all(extensions):
        in_data = os.path.join(data_dir, _DATA_FOLDER)
        if tf.io.gfile.isdir(in_data) and _list(in_data, extensions)[1]:
            return find_files(in_data, names)
    for entry in names:
        group = (entry,) if isinstance(entry, str) else entry
        found = [file for name in group for file in _files_called(name, there, data_dir)]
        if found:
            _tell(data_dir, found, there, group)
            return tuple(os.path.join(data_dir, name) for name in found)
    there_is = f" (there is {', '.join(alike[:5])})" if alike else ""
    named = " or ".join(flat[:_MOST_NAMED]) + (" ..." if len(flat) > _MOST_NAMED else "")
    if is_saved(data_dir):
        raise InputError(f"`data_dir={data_dir}` has no {named}, but is a folder that datasets has saved; {_OF_SAVED}")
    raise InputError(f"`data_dir={data_dir}` has no {named}; give the file that name{there_is}")


def _list(folder, extensions):
    """Returns the names in a folder, and those of them that end in one of the extensions, also before .gz."""
    there = sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))
    return there, [name for name in there if os.path.splitext(name.removesuffix(".gz"))[1] in extensions]


def _find_split(data_dir, names):
    """Returns the files of the first of some splits in a folder that `datasets` has saved."""
    splits = saved_splits(data_dir) if is_saved(data_dir) else {}
    found = [name for name in names if name in splits]
    if not found:
        there_is = f"there is {', '.join(list(splits)[:5])}" if splits else "datasets has saved nothing there"
        raise InputError(f"`data_dir={data_dir}` has no split {' or '.join(names)} ({there_is}); save one of that name")
    unread = [name for name in found[1:] if (found[0] in DEV_NAMES) == (name in DEV_NAMES)]
    if unread:
        tell_once(f"warning: of {data_dir}, {found[0]} is read, and {', '.join(unread)} is not; is that right?")
    return splits[found[0]]


def _files_called(name, there, data_dir):
    for exact in (name, f"{name}.gz"):
        if exact in there:
            return [exact]
    numbered = _numbered(name, there)
    for total in {int(total) for _, _, total in numbered if total}:
        if sorted(int(number) for _, number, _ in numbered) != list(range(total)):
            raise InputError(
                f"`data_dir={data_dir}`: {numbered[0][0]} is one of {total} files; put exactly one complete set there"
            )
    return [file for file, _, _ in sorted(numbered, key=lambda each: (int(each[1]), each[0]))]


def _numbered(name, there):
    """Returns (file, its number, of how many or "") of the numbered files that a name stands for."""
    stem, extension = os.path.splitext(name)
    # The hub used to end a name in a hash, train-00000-of-00002-0123456789abcdef.parquet.
    number = r"(\d+)(?:-of-(\d+)(?:-[0-9a-f]{16})?)?"
    pattern = re.compile(rf"{re.escape(stem)}[-_.]?{number}{re.escape(extension)}(?:\.gz)?")
    matches = [(file, pattern.fullmatch(file)) for file in there]
    return [(file, match[1], match[2] or "") for file, match in matches if match]


def _tell(data_dir, found, there, group):
    """Prints which files are read where they are several, and which that look like them are not."""
    if len(found) > 1:
        tell_once(f"{len(found)} files of {data_dir} are read as one: {', '.join(found)}")
    stem, extension = os.path.splitext(group[0])
    names = [f"{each}{extension}" for each in (DEV_NAMES if stem in DEV_NAMES else (stem,))]
    alike = [file for file in there for name in names if file in (name, f"{name}.gz") or _numbered(name, [file])]
    unread = sorted(set(alike) - set(found))
    if unread:
        tell_once(f"warning: of {data_dir}, {', '.join(found)} is read, and {', '.join(unread)} is not; is that right?")
