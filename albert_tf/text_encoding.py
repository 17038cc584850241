"""Text that is not UTF-8: its likely encoding, so that an error can say how to convert it, and half characters."""

import codecs
import re

from albert_tf.errors import InputError

_BYTES_TO_LOOK_AT = 1 << 14

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_HALVES = re.compile("[\ud800-\udfff]")
_HANGUL = re.compile("[가-힣ㄱ-ㅣ]")


def not_utf8(place: str, line: bytes, purpose: str) -> InputError:
    encoding = guess_encoding(line)
    what = f"not valid UTF-8 but, by its looks, {encoding}" if encoding else "not valid UTF-8"
    how = f" (iconv -f {encoding} -t UTF-8)" if encoding else ""
    return InputError(f"{place}: {what}; convert {purpose} to UTF-8{how}")


def replace_halves(text: str) -> str:
    """Returns a text with U+FFFD for half a surrogate pair, which is no character: tokenizers leave out both."""
    return _HALVES.sub("\ufffd", text)


def guess_encoding(content: bytes) -> str | None:
    """Returns the likely encoding of Korean text, as iconv names it, or None."""
    content = bytes(content[:_BYTES_TO_LOOK_AT])
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # Spaces, digits and line feeds have a zero byte in UTF-16, always on the same side; other encodings have none.
    num_zeros = content.count(0)
    for name, on_side in (("UTF-16LE", content[1::2].count(0)), ("UTF-16BE", content[0::2].count(0))):
        if num_zeros > len(content) / 50 and on_side >= num_zeros * 0.75:
            return name
    text = codecs.getincrementaldecoder("cp949")("replace").decode(content)
    others = len(_NOT_ASCII.findall(text))
    # Arbitrary bytes may decode to some Hanja and symbols, but rarely to Hangul.
    return "CP949" if others and "\ufffd" not in text and len(_HANGUL.findall(text)) > others * 0.8 else None
