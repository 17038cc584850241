"""Data sets for fine-tuning: their files, columns, labels and measures, and a share of one to evaluate on."""

import collections
import dataclasses
import hashlib
import os
import re
import types
import typing

import tensorflow as tf

from albert_tf.base.console import RESULTS
from albert_tf.base.errors import InputError, shorten
from albert_tf.reading.rows import tell_once
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
                f"`data_dir={data_dir}`: {numbered[0][0]} is one of {total} files, of which some lack or others lie "
                "among; put one complete set there"
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


# A text, and its label, or the labels of a text that may have several.
Key = tuple[str, str | tuple[str, ...]]

_MOST_LABELS_NAMED = 10


@dataclasses.dataclass(frozen=True)
class Share:
    """One of the two parts of a training file: what is put aside of it, or what is left to train on."""

    dev_fraction: float  # Of the file, between 0 and 1.
    is_dev: bool

    def identity(self, whole: dict[str, str]) -> dict[str, str]:
        """Returns the file's name, and a SHA-256 that tells this part of it; of what is trained on the whole file's."""
        if not self.is_dev:
            return whole
        return {**whole, "sha256": _sha256(f"{self.dev_fraction} of {whole['sha256']}")}

    def choose(self, path: str, examples: list[typing.Any], keys: list[Key]) -> list[typing.Any]:
        """Returns the examples of this part, given text and labels of each as a key; neither part may be empty."""
        # Prints how many are put aside, and warns of labels that are not among them.
        are_dev = dev_rows(keys, self.dev_fraction)
        count = sum(are_dev)
        if count in (0, len(examples)):
            raise InputError(
                f"`dev_fraction={self.dev_fraction:g}` leaves none of the {len(examples):,} examples of {path} to "
                f"{'train' if count else 'evaluate'} on; choose another share, or add examples (one of each label is "
                "trained on)"
            )
        of_all = f"{count:,} of the {len(examples):,} examples of {path}"
        tell_once(f"{of_all} are put aside to evaluate on (dev_fraction={self.dev_fraction:g})", RESULTS)
        _warn_of_labels_not_put_aside(path, keys, are_dev)
        return [example for example, is_dev in zip(examples, are_dev) if is_dev == self.is_dev]


def dev_rows(keys: list[Key], fraction: float) -> list[bool]:
    """Returns which rows to put aside: of each label this share, the texts with the lowest SHA-256."""
    # So the same rows are chosen each time, whatever their order and the seed of the training; most of them stay chosen
    # when others are added. Equal texts are on one side, and one text of each label at least is left to train on. A
    # text with several labels counts for the rarest of them, as in iterative stratification (Sechidis et al. 2011).
    counts = collections.Counter(text for text, _ in keys)
    labels = collections.defaultdict(set)
    for text, found in keys:
        labels[text].update(found if isinstance(found, tuple) else (found,))
    may_have_several = any(isinstance(found, tuple) for _, found in keys)
    num_left = collections.Counter(label for each in labels.values() for label in each if may_have_several)
    rarity = {label: (number, label) for label, number in num_left.items()}
    texts_of = collections.defaultdict(list)
    for text, each in labels.items():
        texts_of[min(rarity.get(label, (0, label)) for label in each or ("",))].append(text)
    chosen, num_seen, num_chosen = set(), 0, 0
    for group in sorted(texts_of):
        texts = sorted(texts_of[group], key=_sha256)
        num_seen += sum(counts[text] for text in texts)
        for text in texts[:-1]:
            is_last_of_a_label = may_have_several and any(num_left[label] == 1 for label in labels[text])
            # What rounding takes from one label, the next one gets.
            if not is_last_of_a_label and num_chosen + counts[text] <= fraction * num_seen + 0.5:
                chosen.add(text)
                num_chosen += counts[text]
                num_left.subtract(labels[text])
    return [text in chosen for text, _ in keys]


def _warn_of_labels_not_put_aside(path, keys, are_dev):
    """Tells of labels that no example to evaluate on has, for no score says anything of them."""
    counts, put_aside = collections.Counter(), set()
    for (_, found), is_dev in zip(keys, are_dev):
        found = found if isinstance(found, tuple) else (found,)
        counts.update(found)
        put_aside.update(found if is_dev else ())
    missing = sorted(label for label in counts if label and label not in put_aside)
    if missing:
        named = ", ".join(f"{shorten(label)} ({counts[label]:,})" for label in missing[:_MOST_LABELS_NAMED])
        more = ", ..." if len(missing) > _MOST_LABELS_NAMED else ""
        tell_once(
            f"warning: no example that is put aside of {path} has the label {named}{more}, so no score says how well "
            "it is found; add examples, or give a file of its own to evaluate on"
        )


def _sha256(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
