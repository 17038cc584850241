"""A share of a training file that is put aside to evaluate on, where there is no file for that."""

import collections
import dataclasses
import hashlib
import typing

from albert_tf.base.console import RESULTS
from albert_tf.base.errors import InputError, shorten
from albert_tf.reading.bad_rows import tell_once

# A text, and its label, or the labels of a text that may have several.
Key = tuple[str, str | tuple[str, ...]]

_MOST_NAMED = 10


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
        named = ", ".join(f"{shorten(label)} ({counts[label]:,})" for label in missing[:_MOST_NAMED])
        more = ", ..." if len(missing) > _MOST_NAMED else ""
        tell_once(
            f"warning: no example that is put aside of {path} has the label {named}{more}, so no score says how well "
            "it is found; add examples, or give a file of its own to evaluate on"
        )


def _sha256(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
