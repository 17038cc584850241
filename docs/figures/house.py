"""The house: the parts of albert_tf, each above all that it imports, read from the code; and two ways through it."""

import ast
import pathlib

import vector

LIBRARY = pathlib.Path(__file__).resolve().parent.parent.parent / "albert_tf"

# The way of a text from a file to an answer, and of a batch through a training step.
TEXT_WAY = ("reading", "tokenization", "pretraining_data", "training", "finetuning", "serving")
BATCH_WAY = ("pretraining_data", "training", "objectives", "modeling", "optimization")
# What nearly every part imports, and the part that imports all; neither is worth a list.
EVERYWHERE, TOP = {"base"}, "cli"
WIDTH, HEIGHT, GAP, FLOOR, MARGIN = 232, 70, 14, 84, 16


def part_of(path: pathlib.Path) -> str:
    """Returns the folder or module of the library that a file belongs to."""
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def imported_parts(path: pathlib.Path) -> set[str]:
    """Returns the parts that a file imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("albert_tf.")}


def read_parts() -> dict[str, set[str]]:
    """Returns every part, and the parts that it imports."""
    parts = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        if path != LIBRARY / "__init__.py":
            parts.setdefault(part_of(path), set()).update(imported_parts(path))
    return {part: imported & parts.keys() - {part} for part, imported in parts.items()}


def floors(parts: dict[str, set[str]]) -> list[list[str]]:
    """Returns the parts floor by floor from the ground up: each right above the highest that it imports."""

    def floor_of(part):
        return 1 + max(map(floor_of, parts[part]), default=-1)

    by_floor = {}
    for part in parts:
        by_floor.setdefault(floor_of(part), []).append(part)
    return [by_floor[floor] for floor in sorted(by_floor)]


def draw() -> str:
    """Returns the picture as SVG."""
    parts = read_parts()
    levels = floors(parts)
    widest = max(map(len, levels))
    width = 2 * MARGIN + widest * (WIDTH + GAP) - GAP
    drawing = vector.Drawing(width, len(levels) * FLOOR + 46, "The parts of albert_tf, each above what it imports")
    for floor, names in enumerate(levels):
        top = MARGIN + (len(levels) - 1 - floor) * FLOOR
        left = (width - len(names) * (WIDTH + GAP) + GAP) / 2
        for index, name in enumerate(names):
            _draw_part(drawing, left + index * (WIDTH + GAP), top, name, parts[name])
    bottom = len(levels) * FLOOR + 24
    for x, fill, words in (
        (MARGIN + 12, vector.ACCENT, "the way of a text, from a file to an answer"),
        (width / 2 + 12, vector.SECOND, "the way of a batch, in a training step"),
    ):
        drawing.mark(x, bottom, 1, fill)
        drawing.text(x + 18, bottom + 4, words, 13, anchor="start")
    return drawing.to_svg()


def _draw_part(drawing, left, top, name, imported):
    """Draws a part with what it imports, and its places on the ways."""
    drawing.box(left, top, WIDTH, HEIGHT)
    drawing.text(left + 10, top + 20, name, 13, mono=True, bold=True, anchor="start")
    shown = sorted(imported - EVERYWHERE) or ["only base"]
    if name == TOP:
        shown = ["everything below"]
    for row, line in enumerate(_lines(shown)):
        drawing.text(left + 10, top + 36 + 12.5 * row, line, 9.6, anchor="start", fill="#5a6778")
    x = left + WIDTH - 15
    for way, fill in ((BATCH_WAY, vector.SECOND), (TEXT_WAY, vector.ACCENT)):
        if name in way:
            drawing.mark(x, top + 15, way.index(name) + 1, fill)
            x -= 23


def _lines(names, most=42):
    """Returns names, comma-separated, in lines of at most so many characters."""
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) + 2 > most:
            lines.append("")
        lines[-1] += f"{name}, "
    return [line.strip(", ") for line in lines]
