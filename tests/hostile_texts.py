"""Strings that tell two tokenizers apart: drawn from what tokenizers disagree on, always the same for a seed."""

import random

_LONG = (98, 99, 100, 101, 102, 150, 199, 200, 201, 202, 300, 599, 600, 601, 700)
_REPEATED = ("ㅋ", "a", "한", "A", "é", "e\u0301", "😂", "\u1112", "漢", "1", "가나", "한a", "\ue000")
_ATOMS = {
    "syllables": "가나다라마정말재밌어요한국영화최고는을이었습니다",
    "words": (
        *("정말", "재밌어요", "이 영화는", "최고다", "먹었다", "the", "model", "Hello", "CAFÉ", "café", "한국어NLP"),
        *("In 2010,", "1,000", "3,141.5", "12:30", "don't", "``a''", "GPT-3"),
    ),
    "jamo": "ㄱㅋㅠㅎㅏㅣㆍ",
    "conjoining jamo": (*"\u1100\u1112\u1161\u11ab\u11a8\u115f\ua960\ud7b0", "\u1112\u1161\u11ab", "\u1100\u1161"),
    "emoji": (
        *("👩\u200d🚀", "👨🏽\u200d❤\ufe0f\u200d👨", "❤\ufe0f", "👍🏽", "1\ufe0f⃣", "#⃣", "🇰🇷", "😂", "‼\ufe0f"),
        *("🏴\U000e0067\U000e007f", "\ufe0f", "\u200d", "⃣"),
    ),
    "private use": "\ue000\uf8ff\U000f0000\U0010fffd",
    "marks": "\u0301\u0323\u0307\u0345\u302e\u302f\u0903\u20dd\u3099\u064b\u093f\u0b3e\u1b44\U0001d165",
    "accents": (
        *"éàñÅǰİıßẞﬁŒøΣσςΑΟ\u212b\u2126K",
        *("e\u0301", "ΟΔΟΣ", "İstanbul", "ΑΣ'Α", "e\u0323\u0301", "①\u0301"),
    ),
    "controls": (
        "\0\x01\x02\x07\x0b\x0c\x1c\x1e\x1f\x7f\x85\xad\u200b\u200e\u202e\u2060\ufeff\ufffd\u0600\u061c\u180e\u08e2"
    ),
    "spaces": (*" \t\n\r\xa0\u1680\u2003\u2009\u2028\u2029\u202f\u205f\u3000", "  ", "\r\n"),
    "ideographs": "漢字大韓民國かなカﾊﾞ々〇㐀\uf900\ufa0e\U00020000\U0002b820\U0002b920\U0002f800",
    "punctuation": (
        *".,!?~-_#@$%^&*()[]{}<>/\\|`'\"+=:;·…“”‘’「」、。！？～·‐–—¡§¶†‰′※₩￦€£¥©®™°×÷",
        *("...", "!!!!", "``", "''", "##", "##가", "_ "),
    ),
    "special tokens": (
        *("[MASK]", "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[mask]", "[ MASK ]", "[unused1]", "[unused0]", "<unk>"),
        *("<pad>", "<s>", "</s>", "▁", "▁the", "▁▁", "[MASK][MASK]", "[[MASK]]", "[MA", "SK]", "［MASK］"),
    ),
    "right to left": (*"אבגשלוםمرحبا", "שלום", "مرحبا", "١٢٣"),
    "full width": "ＡｂＣ１２３！（），．｀＇",
    "digits": "0123456789²½①Ⅲ٣๓𝟘",
    "other scripts": "กำ้हिक्षࠀᬀ𝐀𝓪ĲⅣ㎏㈜ᾼǅ\u2c2f\ua7c0\ua7da\U00010400\U00010570\U0001e900\U00011a00\u166d\U000111c9",
    "repeats": ("ㅋㅋㅋㅋㅋ", "!!!!", "하하하하", "ㅠㅠㅠㅠㅠ", "....."),
}


def draw_texts(count: int, seed: int = 0) -> list[str]:
    """Returns so many strings; a longer list begins with a shorter one."""
    draw = random.Random(seed)
    return [_draw_text(draw) for _ in range(count)]


def _draw_text(draw):
    kinds = [*draw.sample(list(_ATOMS), draw.randint(1, 4)), "syllables", "words"]
    parts = []
    for _ in range(draw.choice((1, 2, 3, 4, 6, 8, 12, 20))):
        chance = draw.random()
        if chance < 0.004:
            parts.append(_draw_long_word(draw))
        elif chance < 0.03:
            parts.append(_draw_character(draw))
        else:
            parts.append(draw.choice(_ATOMS[draw.choice(kinds)]))
        parts.append(" " * (draw.random() < 0.25))
    return "".join(parts)


def _draw_long_word(draw):
    repeated, length = draw.choice(_REPEATED), draw.choice(_LONG)
    return (repeated * length)[: length if draw.random() < 0.7 else None]


def _draw_character(draw):
    """Returns any character, more often one of the scripts that are in use."""
    code_point = draw.randrange(0x110000)
    while 0xD800 <= code_point < 0xE000:
        code_point = draw.randrange(0x110000)
    return chr(code_point if draw.random() < 0.3 else code_point % 0x3400)
