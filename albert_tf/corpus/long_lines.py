"""Cutting lines that are too long to be held in memory, or to be a sentence."""

MAX_CHARACTERS_PER_LINE = 1 << 16

# How far back from the longest possible piece to look for a good place to cut.
_CHARACTERS_TO_LOOK_BACK = 1 << 10


def cut_line(line: str) -> list[str]:
    """Returns a line in pieces of at most `MAX_CHARACTERS_PER_LINE` characters.

    Pieces end at the last space in reach, or else at their full length. Spaces at the beginning
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
    """Cuts a line that arrives in parts, with the same result as `cut_line` gives for the whole line."""

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
    return next((place for place in places if line[place].isspace()), last)
