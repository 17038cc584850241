"""Telling in which encoding text is that isn't UTF-8, so that an error can name it."""

import codecs
import re

_BYTES_TO_LOOK_AT = 1 << 14

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_HANGUL = re.compile("[가-힣ㄱ-ㅣ]")


def guess_encoding(content: bytes) -> str | None:
    """Returns the likely encoding of Korean text, as iconv names it, or None.

    Args:
        content: Bytes that are not UTF-8; only their beginning counts.
    """
    content = bytes(content[:_BYTES_TO_LOOK_AT])
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # Spaces, digits and line feeds have a zero byte in UTF-16, always on the same side; in other encodings none has.
    num_zeros = content.count(0)
    for name, on_side in (("UTF-16LE", content[1::2].count(0)), ("UTF-16BE", content[0::2].count(0))):
        if num_zeros > len(content) / 50 and on_side >= num_zeros * 0.75:
            return name
    text = codecs.getincrementaldecoder("cp949")("replace").decode(content)
    others = len(_NOT_ASCII.findall(text))
    # Bytes of anything may be read as some Hanja and symbols, but hardly as Hangul.
    return "CP949" if others and "\ufffd" not in text and len(_HANGUL.findall(text)) > others * 0.8 else None
