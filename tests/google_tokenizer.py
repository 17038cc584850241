"""FullTokenizer of google-research/bert and google-research/albert, by its description, one character at a time.

Runs alone, and without anything but Python 3, so that ids can be had of any version's Unicode:

python google_tokenizer.py vocab.txt true texts.json ids.json
"""

import json
import sys
import unicodedata

MOST_CHARACTERS = 200
IDEOGRAPHS = [
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
]


class FullTokenizer:
    """Encodes one text at a time; nothing of it is a special token."""

    def __init__(self, pieces, lower_case):
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._lower_case = lower_case

    def encode(self, text):
        """Returns the ids of a text."""
        return [self._ids[piece] for word in self._words(text) for piece in self._cut(word)]

    def _words(self, text):
        cleaned = "".join(map(cleaned_character, text)).split()
        for chunk in cleaned:
            if self._lower_case:
                decomposed = unicodedata.normalize("NFD", chunk.lower())
                chunk = "".join(part for part in decomposed if unicodedata.category(part) != "Mn")
            spaced = "".join(f" {part} " if is_punctuation(part) else part for part in chunk)
            yield from spaced.split()

    def _cut(self, word):
        if len(word) > MOST_CHARACTERS:
            return ["[UNK]"]
        pieces, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            ends = (end for end in range(len(word), begin, -1) if prefix + word[begin:end] in self._ids)
            end = next(ends, None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[begin:end])
            begin = end
        return pieces


def cleaned_character(character):
    """Returns a character as the tokenizer's clean_text and its spaces around ideographs leave it."""
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf"):
        return ""
    is_ideograph = any(first <= ord(character) <= last for first, last in IDEOGRAPHS)
    return f" {character} " if is_ideograph else character


def is_punctuation(character):
    """Whether a character is a word of its own."""
    is_symbol = ord(character) < 127 and ord(character) > 32 and not character.isalnum()
    return is_symbol or unicodedata.category(character)[0] == "P"


if __name__ == "__main__":
    vocabulary_file, lower_case, texts_file, ids_file = sys.argv[1:]
    with open(vocabulary_file, encoding="utf-8") as file:
        tokenizer = FullTokenizer(file.read().split("\n")[:-1], lower_case == "true")
    with open(texts_file, encoding="utf-8") as file:
        texts = json.load(file)
    with open(ids_file, "w", encoding="utf-8") as file:
        json.dump([unicodedata.unidata_version, [tokenizer.encode(text) for text in texts]], file)
