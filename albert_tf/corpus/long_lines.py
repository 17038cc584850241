"""Cutting lines that are too long for the memory, or for a sentence."""

import unicodedata

MAX_CHARACTERS_PER_LINE = 1 << 16

# How far back from the longest possible piece to look for a good place to cut.
_CHARACTERS_TO_LOOK_BACK = 1 << 10

_ZERO_WIDTH_JOINER = "\u200d"


def cut_line(line: str) -> list[str]:
    """Returns a line in pieces of at most `MAX_CHARACTERS_PER_LINE` characters.

    Pieces end at the last space in reach, or else between two characters as readers see them. Spaces at the beginning
    of the line and between pieces are left out. All pieces but the last hold text.
    """
    line = line.lstrip()
    pieces, begin = [], 0
    while len(line) - begin > MAX_CHARACTERS_PER_LINE:
        end = _place_to_cut(line, begin + MAX_CHARACTERS_PER_LINE)
        pieces.append(line[begin:end].rstrip())
        begin = end
        while begin < len(line) and line[begin].isspace():
            begin += 1
    return [*pieces, line[begin:]]


class LongLine:
    """Cuts a line that arrives in parts into the pieces that `cut_line` gives for the whole line."""

    def __init__(self):
        self._rest, self._is_blank = "", True

    def add(self, text: str, is_last: bool) -> list[str]:
        """Returns the pieces that are complete; for a blank line, at its end, an empty one."""
        *pieces, self._rest = cut_line(self._rest + text)
        self._is_blank = self._is_blank and not pieces
        rest = self._rest.rstrip()
        if is_last and (rest or self._is_blank):
            pieces.append(rest)
        return pieces


def _place_to_cut(line, last):
    places = range(last, last - _CHARACTERS_TO_LOOK_BACK, -1)
    at_spaces = (place for place in places if line[place].isspace())
    between_characters = (place for place in places if not _belong_together(line[place - 1], line[place]))
    return next(at_spaces, None) or next(between_characters, last)


def _belong_together(left, right):
    """Returns whether `right` is a mark, joiner, modifier or conjoining jamo, which continues what `left` began."""
    return (
        unicodedata.category(right) in {"Mn", "Mc", "Me", "Cf"}
        or left == _ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or "\u1160" <= right <= "\u11ff"
        or "\ud7b0" <= right <= "\ud7ff"
    )
