"""Tables and texts that a notebook shows as HTML, and a terminal as text."""

import collections.abc
import html
import typing


class Html:
    """Something to show.

    Args:
        page: As HTML.
        text: The same as text.
    """

    def __init__(self, page: str, text: str):
        self._page, self._text = page, text

    def _repr_html_(self):
        return self._page

    def __repr__(self):
        return self._text


class Table(Html):
    """A table. Numbers are set right, texts left; cells that are `Html` are shown as such.

    Args:
        columns: Titles.
        rows: Cells, each printed as it is.
    """

    def __init__(
        self, columns: collections.abc.Sequence[str], rows: collections.abc.Iterable[collections.abc.Sequence]
    ):
        rows = [list(row) for row in rows]
        head = "".join(f"<th style='text-align:left'>{html.escape(column)}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        text = "\n".join("  ".join(map(str, row)) for row in [columns, *rows])
        super().__init__(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", text)


class Marked(Html):
    """A text with coloured parts.

    Args:
        parts: Each a text, its colour as CSS knows it, "" for none, and what stands small behind it, "" for nothing.
    """

    def __init__(self, parts: collections.abc.Iterable[tuple[str, str, str]]):
        parts = list(parts)
        page = "".join(_part(*part) for part in parts)
        text = "".join(f"[{text}{f' {note}' * bool(note)}]" if color else text for text, color, note in parts)
        super().__init__(f"<span style='line-height:1.9'>{page}</span>", text)


def shade(value: float) -> str:
    """Returns a colour for a value between -1 (red) and 1 (blue), the lighter the nearer to 0."""
    red, green, blue = (214, 69, 65) if value < 0 else (31, 119, 180)
    return f"rgba({red},{green},{blue},{min(1.0, abs(value)) * 0.6:.2f})"


def _cell(value: typing.Any) -> str:
    if isinstance(value, Html):
        return f"<td style='text-align:left'>{value._repr_html_()}</td>"
    text = str(value)
    is_number = text.strip(" %+-.,:").replace(",", "").replace(".", "").replace(":", "").isdigit()
    side = "right" if is_number else "left"
    return f"<td style='text-align:{side};white-space:pre-wrap'>{html.escape(text)}</td>"


def _part(text, color, note):
    if not color:
        return html.escape(text)
    small = f" <small><b>{html.escape(note)}</b></small>" if note else ""
    style = f"background:{color};border-radius:3px;padding:1px 3px;margin:0 1px"
    return f"<span style='{style}'>{html.escape(text)}{small}</span>"


def pieces(text: str, offsets: collections.abc.Iterable[tuple[int, int]]) -> Marked:
    """Returns a text with its pieces in two colours by turns.

    Args:
        text: As it was encoded.
        offsets: Where each piece begins and ends in it, in characters; empty ones are passed over.
    """
    colors, parts, end = ("#cfe8ff", "#ffe3b8"), [], 0
    for number, (begin, stop) in enumerate((begin, stop) for begin, stop in offsets if begin < stop):
        parts += [(text[end:begin], "", ""), (text[begin:stop], colors[number % 2], "")]
        end = stop
    return Marked([*parts, (text[end:], "", "")])
