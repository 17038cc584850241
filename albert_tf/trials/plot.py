"""How good trials are by each setting that was searched, as a picture."""

import math
import os

from albert_tf.files import replacing
from albert_tf.trials.search import LOGARITHMIC, as_text

PLOT_FILE = "trials.png"
_PANELS_IN_A_ROW = 3
_MOST_TICKS = 4


def plot_trials(output_dir: str, points: list[dict], values: list[float], metric: str, best: int) -> str:
    """Draws a metric against each setting as trials.png, one panel each; returns a line that says so, or why not."""
    path = os.path.join(output_dir, PLOT_FILE)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"no {PLOT_FILE}: it needs matplotlib, which is not installed; pip install matplotlib"
    names = list(points[0])
    columns = min(len(names), _PANELS_IN_A_ROW)
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(4.5 * columns, 3.5 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for name, axes in zip(names, panels):
        places = _places(axes, name, [point[name] for point in points])
        axes.plot(places, values, "o", alpha=0.7)
        axes.plot(places[best], values[best], "o", markersize=12, fillstyle="none", color="C1", label="best")
        axes.set(xlabel=name.replace("_", " "), ylabel=metric.replace("_", " "))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    for axes in panels:  # what is left of the last row
        axes.set_axis_off()
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
    return f"wrote {path}"


def _places(axes, name, values):
    """Returns where values stand on the axis below: numbers at their place, names and truth values side by side."""
    if any(isinstance(value, (bool, str)) for value in values):
        axes.margins(x=0.3)
        return [as_text(value) for value in values]
    if name in LOGARITHMIC and min(values) > 0:
        axes.set_xscale("log")
    known = sorted(set(values))
    if len(known) <= _MOST_TICKS:
        axes.set_xticks(known, [as_text(value) for value in known])
        axes.minorticks_off()
    return values
