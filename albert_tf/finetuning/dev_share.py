"""A share of a training file that is put aside to evaluate on, where there is no file for that."""

import collections
import dataclasses
import hashlib
import typing

from albert_tf.errors import InputError
from albert_tf.rows.bad_rows import tell_once


@dataclasses.dataclass(frozen=True)
class Share:
    """One of the two parts of a training file.

    Attributes:
        dev_fraction: How much of the file is put aside, between 0 and 1.
        is_dev: Whether this is what is put aside, and not what is left to train on.
    """

    dev_fraction: float
    is_dev: bool

    def identity(self, whole: dict[str, str]) -> dict[str, str]:
        """Returns the file's name, and a SHA-256 that tells this part of it; of what is trained on the whole file's."""
        if not self.is_dev:
            return whole
        return {**whole, "sha256": _sha256(f"{self.dev_fraction} of {whole['sha256']}")}

    def choose(self, path: str, examples: list[typing.Any], keys: list[tuple[str, str]]) -> list[typing.Any]:
        """Returns the examples of this part, given text and label of each as a key, and prints how many are put aside.

        Raises:
            InputError: One of the parts would be empty.
        """
        are_dev = dev_rows(keys, self.dev_fraction)
        count = sum(are_dev)
        if count in (0, len(examples)):
            raise InputError(
                f"`dev_fraction={self.dev_fraction:g}` leaves none of the {len(examples):,} examples of {path} to "
                f"{'train' if count else 'evaluate'} on; choose another share, or add examples (one of each label is "
                "trained on)"
            )
        of_all = f"{count:,} of the {len(examples):,} examples of {path}"
        tell_once(f"{of_all} are put aside to evaluate on (dev_fraction={self.dev_fraction:g})")
        return [example for example, is_dev in zip(examples, are_dev) if is_dev == self.is_dev]


def dev_rows(keys: list[tuple[str, str]], fraction: float) -> list[bool]:
    """Returns which rows of (text, label) to put aside: of each label this share, the texts with the lowest SHA-256.

    So the same rows are chosen each time, whatever their order and the seed of the training; most of them stay chosen
    when others are added. Equal texts are on one side, and one text of each label at least is left to train on.
    """
    counts = collections.Counter(text for text, _ in keys)
    labels: dict[str, str] = {}
    for text, label in keys:
        labels[text] = min(label, labels.get(text, label))
    texts_of = collections.defaultdict(list)
    for text, label in labels.items():
        texts_of[label].append(text)
    chosen, num_seen, num_chosen = set(), 0, 0
    for label in sorted(texts_of):
        texts = sorted(texts_of[label], key=_sha256)
        num_seen += sum(counts[text] for text in texts)
        for text in texts[:-1]:
            # What rounding takes from one label, the next one gets.
            if num_chosen + counts[text] <= fraction * num_seen + 0.5:
                chosen.add(text)
                num_chosen += counts[text]
    return [text in chosen for text, _ in keys]


def _sha256(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
