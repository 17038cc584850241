"""Strings on which tokenizers of different make come apart."""

import random

_KINDS = (
    "정말 재밌어요 나는 밥을 먹었다 ㅋㅋㅋ ㅠㅠ ㆍ ㅤ",
    "".join(map(chr, [*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3), 0x302E, 0x302F])),
    "👩\u200d🚀❤\ufe0f1\ufe0f\u20e3🏴\U000e0067\U000e007f👍🏽‼",
    "\ue000\uf8ff\U000f0000\U000fffff\U0010fffd\U0010ffff\u0378\U000e0fff\ufdd0",
    "".join(map(chr, [*range(0x300, 0x315), 0x344, 0x345, 0x3099, 0x1DFB, 0x8D4, 0x1D165, 0x16FF0])),
    "".join(map(chr, range(0x20))) + "\x7f\x80\x85\xa0\xad\u1680\u2003\u2028\u2029\u3000\ufeff\ufffd\u180e\u200b",
    "漢字日本語カタカナ㐀豈\U00020000\U0002b825\U0002b920\U0002f800",
    "مرحبا שלום \u202b\u200f",
    "ＡＢｃ１２！？，ﾡﾢ",
    "ΣσςΑΣ İIıi ẞß KÅΩ ǅ \u1c89\ua7dc",
    "éÉèñÑüçÅøœ ệắ",
    "[MASK] [CLS] [UNK] [unused1] ##b # [ ] _ ' \" … · — “ ” « 。 、",
    "the quick brown fox 2,020 3.5 a.b",
    "\u166d\u061d\u1b4e\u1b7d\u2e52\U00011660\U00016d6d\u1734\U00011938",
)
_LENGTHS = (99, 100, 101, 102, 150, 199, 200, 201, 202, 599, 600, 601)
_REPEATED = "ㅋ가a🚀Éb"


def hostile_texts(count: int, seed: int = 0) -> list[str]:
    """Returns so many strings, each of a few stretches of characters of one kind."""
    choice = random.Random(seed)
    return [_text(choice) for _ in range(count)]


def _text(choice):
    return "".join(_stretch(choice) for _ in range(choice.randint(1, 6)))


def _stretch(choice):
    what = choice.random()
    if what < 0.02:
        return choice.choice(_REPEATED) * choice.choice(_LENGTHS)
    if what < 0.12:
        return choice.choice(["[MASK]", "[SEP]", "##b", "👩\u200d🚀", "각", "é", "e\u0301", " ", " ", "\n", "재밌어요"])
    if what < 0.2:
        code = choice.choice([choice.randrange(0xD800), choice.randrange(0xE000, 0x110000)])
        return chr(code)
    kind = choice.choice(_KINDS)
    return "".join(choice.choice(kind) for _ in range(choice.randint(1, 8)))
