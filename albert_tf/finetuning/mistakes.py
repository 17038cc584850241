"""Which labels a classifier takes for which, as a plot."""

import numpy as np

from albert_tf.files import replacing
from albert_tf.finetuning.labelled_text import LabelledText
from albert_tf.plot_labels import drawable

CONFUSION_FILE = "confusion_matrix.png"

# Of a thousand labels a plot in full size would take more pixels than there can be, and all memory before.
_LARGEST_INCHES, _POINTS_PER_INCH = 30, 72


def confusion_matrix(truth: list[str], found: list[str], labels: tuple[str, ...]) -> np.ndarray:
    """Returns how many examples of each label (row) were given each label (column), int [labels, labels]."""
    rows = {label: index for index, label in enumerate(labels)}
    counts = np.zeros([len(labels)] * 2, int)
    np.add.at(counts, ([rows[label] for label in truth], [rows[label] for label in found]), 1)
    return counts


def f1_of_each(counts: np.ndarray) -> np.ndarray:
    """Returns the F1 of each label by a confusion matrix, 0 where it is neither true nor found: float64 [labels]."""
    return 2 * counts.diagonal() / np.maximum(1, counts.sum(axis=0) + counts.sum(axis=1))


def plot_confusion_matrix(path: str, examples: list[LabelledText], predictions: list[dict], labels) -> None:
    """Draws the confusion matrix as a PNG, each row in shares of its label, with its F1; needs matplotlib."""
    from matplotlib.figure import Figure  # optional

    truth, found = [example.label for example in examples], [prediction["label"] for prediction in predictions]
    counts = confusion_matrix(truth, found, labels)
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    size = min(2.5 + 0.55 * len(labels), _LARGEST_INCHES)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names, font = drawable(labels)
    if names != labels:
        legend = ", ".join(f"{name} is {label}" for name, label in zip(names, labels))
        how = "install one, such as NanumGothic (on Debian and Ubuntu: apt install fonts-nanum)"
        print(f"warning: no font with Hangul is installed; {how}; in the plot {legend}", flush=True)
    # Dollar signs begin no formula. Where labels are many, their letters are small.
    style = {"fontfamily": font, "parse_math": False, "fontsize": min(10, _POINTS_PER_INCH * size / len(labels))}
    axes.set_xticks(range(len(labels)), names, rotation=45, ha="right", **style)
    axes.set_yticks(
        range(len(labels)), [f"{name}  F1 {f1:.2f}" for name, f1 in zip(names, f1_of_each(counts))], **style
    )
    axes.set(xlabel="prediction", ylabel="label")
    if len(labels) <= 20:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=color, fontsize="small")
    figure.colorbar(image, label="share of the label's examples")
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
