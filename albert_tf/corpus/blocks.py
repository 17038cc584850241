"""Blocks of bytes cut into lines, so that a line of any length is read in bounded memory."""

import collections.abc


def split_at_line_ends(
    blocks: collections.abc.Iterable[bytes], max_bytes: int
) -> collections.abc.Iterator[tuple[bytes, bool, bool]]:
    """Yields (content, begins_line, ends_line): whole lines, or one part of a line that is longer than `max_bytes`.

    The line feed that ends the content is left out. A part never ends inside a character.
    """
    rest, begins_line = bytearray(), True
    for block in blocks:
        if not begins_line and (end := block.find(b"\n")) >= 0:
            yield rest + block[:end], False, True
            rest, block, begins_line = bytearray(), block[end + 1 :], True
        if (end := block.rfind(b"\n")) >= 0:
            yield rest + block[:end], True, True
            rest = bytearray(block[end + 1 :])
        else:
            rest += block
        if not begins_line or len(rest) > max_bytes:
            end = _last_character(rest)
            yield rest[:end], begins_line, False
            rest, begins_line = rest[end:], False
    if rest or not begins_line:
        yield rest, begins_line, True


def _last_character(content):
    """Returns where the last UTF-8 character begins, or the end if the last four bytes begin none."""
    places = range(len(content) - 1, max(len(content) - 5, -1), -1)
    return next((place for place in places if content[place] & 0b1100_0000 != 0b1000_0000), len(content))
