"""Draws the figures of the documents again: `python docs/figures/draw.py`, after a change in what they show.

road.svg, road.ko.svg and house.svg follow from this folder and from the imports of albert_tf; parameters.png and
learning_rates.png from albert_tf's own models and schedules (they need matplotlib).
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent.parent)]

import concepts
import house
import road


def pictures() -> dict[str, str]:
    """Returns the text of every SVG file, by its name."""
    return {"road.svg": road.draw("en"), "road.ko.svg": road.draw("ko"), "house.svg": house.draw()}


def main():
    """Draws all."""
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    concepts.draw_parameters(FOLDER / "parameters.png")
    concepts.draw_learning_rates(FOLDER / "learning_rates.png")


if __name__ == "__main__":
    main()
