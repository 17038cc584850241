"""What the page shows, as HTML: every text is escaped, and nothing is loaded from elsewhere."""

import collections.abc
import html
import zlib

import numpy as np

# Told apart also by who can't see all colours (Okabe and Ito 2008), light enough for black letters.
_COLORS = ("#f2c14e", "#8ecae6", "#95d5b2", "#f4a6c0", "#cdb4db", "#ffb38a", "#b8c0ff", "#d9d9a3")
_INK = "34, 87, 155"


def bars(values: collections.abc.Mapping[str, float]) -> str:
    """Returns names with their probabilities as bars, the most probable first."""
    rows = []
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        rows.append(
            f'<div style="display:flex;align-items:center;margin:4px 0">'
            f'<div style="width:9em;text-align:right;padding-right:.6em;overflow-wrap:anywhere">{_escape(name)}</div>'
            f'<div style="flex:1;background:rgba({_INK},.12)">'
            f'<div style="width:{100 * value:.2f}%;background:rgb({_INK});height:1.2em"></div></div>'
            f'<div style="width:4.5em;text-align:right">{value:.1%}</div></div>'
        )
    return f'<div class="bars">{"".join(rows)}</div>'


def number(value: float) -> str:
    """Returns a score."""
    return f'<div class="score" style="font-size:2em">{value:.2f}</div>'


def marked(text: str, spans: collections.abc.Iterable[tuple[int, int, str]]) -> str:
    """Returns a text in which spans are marked.

    Args:
        text: The text.
        spans: From which character to before which, and what it is; in order, none over another.
    """
    parts, last = [], 0
    for begin, end, name in spans:
        label = f'<sup style="font-size:.7em;margin-left:.2em">{_escape(name)}</sup>' if name else ""
        style = f"background:{_color(name)};color:black;padding:.1em .2em;border-radius:.2em"
        parts += [_escape(text[last:begin]), f'<mark style="{style}">{_escape(text[begin:end])}{label}</mark>']
        last = end
    parts.append(_escape(text[last:]))
    return f'<div class="marked" style="line-height:2;white-space:pre-wrap">{"".join(parts)}</div>'


def bordered(text: str, pieces: collections.abc.Sequence[tuple[str, int, int]]) -> str:
    """Returns pieces in boxes; pointing at one shows which characters of the text it stands for."""
    box = "display:inline-block;margin:2px;padding:.1em .4em;border-radius:.2em;color:black"
    boxes = []
    for index, (piece, begin, end) in enumerate(pieces):
        title = _escape(f"{begin}–{end}: {text[begin:end]}")
        boxes.append(f'<span title="{title}" style="{box};background:{_COLORS[index % 2]}">{_escape(piece)}</span>')
    return f'<div class="pieces">{"".join(boxes)}</div>'


def guesses(masks: collections.abc.Sequence[collections.abc.Mapping[str, float]]) -> str:
    """Returns for each place that is to be guessed the guesses as bars."""
    parts = [titled(f"[MASK] {place}", bars(guesses)) for place, guesses in enumerate(masks, 1)]
    return f'<div class="guesses">{"".join(parts)}</div>'


def titled(title: str, shown: str) -> str:
    """Returns what another function here has returned with a title above it."""
    return f'<div style="font-weight:bold;margin-top:.6em">{_escape(title)}</div>{shown}'


def heat_map(pieces: collections.abc.Sequence[str], weights: np.ndarray) -> str:
    """Returns a table of how much each piece, a row, looks at each other one, a column.

    Args:
        pieces: S pieces.
        weights: [S, S], each row sums to 1.
    """
    upright = "writing-mode:vertical-rl;font-weight:normal;text-align:right;padding:2px;white-space:nowrap"
    beside = "font-weight:normal;text-align:right;padding:0 4px;white-space:nowrap"
    head = "".join(f'<th style="{upright}">{_escape(piece)}</th>' for piece in pieces)
    rows = []
    for piece, row in zip(pieces, weights):
        cells = "".join(
            f'<td title="{_escape(f"{piece} → {other}: {value:.1%}")}" style="min-width:1.1em;height:1.4em;padding:0;'
            f'border:1px solid #8883;background:rgba({_INK},{min(1.0, value):.3f})"></td>'
            for other, value in zip(pieces, row)
        )
        rows.append(f'<tr><th style="{beside}">{_escape(piece)}</th>{cells}</tr>')
    table = f'<table style="border-collapse:collapse"><tr><th></th>{head}</tr>{"".join(rows)}</table>'
    return f'<div class="attention" style="overflow-x:auto">{table}</div>'


def note(sentence: str) -> str:
    """Returns a sentence to the user."""
    return f'<div class="note" style="opacity:.8">{_escape(sentence)}</div>'


def _color(name):
    return _COLORS[zlib.crc32(name.encode()) % len(_COLORS)]


def _escape(text):
    # A line feed or another invisible character would look like nothing at all.
    return html.escape(text.replace("\x00", "\u2400"))
