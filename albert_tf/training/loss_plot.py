"""The picture of a training: what it lost, and how it scored, over the steps."""

import os

from albert_tf.files import replacing

PLOT_FILE = "loss.png"

# What is measured of the training and is no score.
_NO_SCORES = ("learning_rate", "gradient_norm", "examples_per_second", "tokens_per_second", "model_flop_utilisation")
_STYLES = {"train": "-", "held_out": "--"}


def plot_losses(output_dir: str, title: str, rows: list[dict]) -> str:
    """Draws losses over the steps, and beside them scores, as loss.png; returns a line if it can't, or "".

    Scores that are no shares, such as bits of a character, have a panel of their own. Scores that equal a loss, as the
    only part of a sum does, and panels without two points are left out.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"no {PLOT_FILE} or other pictures: they need matplotlib, which is not installed; pip install matplotlib"
    curves = _curves(rows)
    losses = _without_repeated({name: curves[name] for name in curves if name[0].endswith("loss")})
    scores = {name: points for name, points in curves.items() if _is_score(name[0], rows)}
    scores = {name: points for name, points in scores.items() if points not in losses.values()}
    shares = {name: points for name, points in scores.items() if _are_shares(name[0], scores)}
    others = {name: points for name, points in scores.items() if name not in shares}
    panels = [(losses, title, "loss (nats)"), (shares, "scores", ""), (others, "other scores", "")]
    panels = [panel for panel in panels if any(len(points) > 1 for points in panel[0].values())]
    if not panels:
        return ""
    figure = Figure(figsize=(8 if len(panels) == 1 else 6 * len(panels), 5), layout="constrained")
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


def _are_shares(name, scores):
    return all(-1 <= value <= 1 for (of, _), points in scores.items() if of == name for _, value in points)


def _draw(axes, curves):
    names = list(dict.fromkeys(name for name, _ in curves))
    for (name, split), points in curves.items():
        marker = "o" if split == "held_out" or len(points) == 1 else ""
        label = f"{name.replace('_', ' ')} ({split.replace('_', '-')})"
        axes.plot(
            *zip(*points), _STYLES[split], marker=marker, color=f"C{names.index(name)}", label=label, markersize=4
        )
    axes.grid(alpha=0.3)
    # Below, where no curve is.
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
