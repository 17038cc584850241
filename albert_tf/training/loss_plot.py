"""The picture of a training: what it lost, and how it scored, over the steps."""

import os

from albert_tf.files import replacing

PLOT_FILE = "loss.png"

# What is measured of the training and is no score.
_NO_SCORES = ("learning_rate", "gradient_norm", "examples_per_second", "tokens_per_second", "model_flop_utilisation")
_STYLES = {"train": "-", "held_out": "--"}


def plot_losses(output_dir: str, title: str, rows: list[dict]) -> str:
    """Draws losses over the steps, and beside them scores, as loss.png; returns a line if it can't, or "".

    A loss that is the same as another is left out, as the only part of a sum is. Does nothing while there are no two
    points to draw a line between.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"no {PLOT_FILE} or other pictures: they need matplotlib, which is not installed; pip install matplotlib"
    curves = _curves(rows)
    losses = _without_repeated({name: curves[name] for name in curves if name[0].endswith("loss")})
    scores = {name: curves[name] for name in curves if _is_score(name[0], rows)}
    if not any(len(points) > 1 for points in (losses | scores).values()):
        return ""
    panels = [(losses, title, "loss (nats)"), *([(scores, "scores", "")] if scores else [])]
    figure = Figure(figsize=(8 if len(panels) == 1 else 12, 4.5), layout="constrained")
    for axes, (drawn, name, unit) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        _draw(axes, drawn)
        axes.set(title=name, xlabel="step", ylabel=unit)
    with replacing(os.path.join(output_dir, PLOT_FILE)) as file:
        figure.savefig(file, format="png", dpi=120)
    return ""


def _curves(rows):
    """Returns the points of each curve, (step, value), by (name, split), the losses' sum first."""
    names = sorted({name for row in rows for name in row}, key=lambda name: (name != "loss", name))
    curves = {}
    for split in _STYLES:
        for name in names:
            points = sorted((row["step"], row[name]) for row in rows if row["split"] == split and name in row)
            if points and name not in ("step", "split"):
                curves[name, split] = points
    return curves


def _without_repeated(curves):
    kept = {}
    for (name, split), points in curves.items():
        if points not in [other for (_, of), other in kept.items() if of == split]:
            kept[name, split] = points
    return kept


def _is_score(name, rows):
    is_measured = any(row["split"] == "held_out" and name in row for row in rows)
    return is_measured and not name.endswith("loss") and name not in ("step", "split", *_NO_SCORES)


def _draw(axes, curves):
    names = list(dict.fromkeys(name for name, _ in curves))
    for (name, split), points in curves.items():
        marker = "o" if split == "held_out" or len(points) == 1 else ""
        label = f"{name.replace('_', ' ')} ({split.replace('_', '-')})"
        axes.plot(
            *zip(*points), _STYLES[split], marker=marker, color=f"C{names.index(name)}", label=label, markersize=4
        )
    axes.grid(alpha=0.3)
    if curves:
        axes.legend(fontsize="small")
