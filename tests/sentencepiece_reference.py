"""The original's steps around SentencePiece in plain Python, with the library sentencepiece, and where pieces stand."""

import re
import unicodedata

import sentencepiece

MARK = "▁"


class ReferenceTokenizer:
    """Encodes one text at a time; the arguments are those of `SentencePieceTokenizer`."""

    def __init__(self, content, lower_case=True, strip_accents=True, normalize_quotes=False, split_number_commas=True):
        self._engine = sentencepiece.SentencePieceProcessor(model_proto=content)
        controls = [number for number in range(len(self._engine)) if self._engine.is_control(number)]
        self._special = [self._engine.id_to_piece(number) for number in [*controls, self._engine.unk_id()]]
        self._lower_case, self._strip_accents = lower_case, strip_accents
        self._normalize_quotes, self._split = normalize_quotes, split_number_commas

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Returns the ids of a text, and the spans of their pieces in it."""
        characters = self._normalize(text)
        ids, spans = [], []
        for piece, first, behind in self._pieces("".join(character for character, _ in characters)):
            ids.append(self._engine.piece_to_id(piece))
            spans.append(_span(piece, first, behind, characters, not spans))
        return ids, spans

    def ids(self, text: str) -> list[int]:
        """Returns the ids of a text."""
        pieces = self._pieces("".join(character for character, _ in self._normalize(text)))
        return [self._engine.piece_to_id(piece) for piece, _, _ in pieces]

    def encode_as_huggingface(self, text: str) -> list[int]:
        """Returns the ids of transformers' AlbertTokenizer in Python, version 4."""
        ids = []
        for part in re.split(f"({'|'.join(map(re.escape, self._special))})", text):
            if part in self._special:
                ids.append(self._engine.piece_to_id(part))
            else:
                ids += self.ids("".join(map(str.lower, part)) if self._lower_case else part)
        return ids

    def encode_as_keras_hub(self, text: str) -> list[int]:
        """Returns the ids of the model alone."""
        return self._engine.encode(text)

    def _normalize(self, text):
        """Returns each character of the normalised text with its span in the text as given."""
        characters = []
        for place, character in enumerate(text):
            if character.isspace():
                if characters and characters[-1][0] != " ":
                    characters.append((" ", (place, place + 1)))
            else:
                characters.append((character, (place, place + 1)))
        if characters and characters[-1][0] == " ":
            characters.pop()
        if self._normalize_quotes:
            characters = _join_marks(_join_marks(characters, "`"), "'")
        if self._strip_accents:
            characters = _without_accents(characters)
        if self._lower_case:
            lowered = iter("".join(character for character, _ in characters).lower())
            characters = [(next(lowered), span) for character, span in characters for _ in character.lower()]
        return characters

    def _pieces(self, text):
        """Yields the pieces of a normalised text, and the characters that they stand for."""
        found = self._engine.encode(text, out_type="offset_mapping")
        for piece, (first, behind) in zip(found["pieces"], found["offsets"], strict=True):
            if not (self._split and len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()):
                yield piece, first, behind
                continue
            parts = self._engine.encode(piece[:-1].replace(MARK, ""), out_type=str)
            if piece[0] != MARK and parts[0][0] == MARK:
                parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:], *parts[1:]]
            begin = behind - len(piece.replace(MARK, ""))
            for part in [*parts, ","]:
                end = begin + len(part.replace(MARK, ""))
                yield part, first if part == MARK else begin, end
                begin = end


def _join_marks(characters, mark):
    joined = []
    for character, span in characters:
        if character == mark and joined and joined[-1][0] == mark:
            joined[-1] = ('"', (joined[-1][1][0], span[1]))
        else:
            joined.append((character, span))
    return joined


def _without_accents(characters):
    stripped = []
    for character, (begin, end) in characters:
        parts = [part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part)]
        if not parts and stripped:  # an accent goes to the letter before it, with all that this became
            span = stripped[-1][1]
            stripped = [(each, (own[0], end) if own == span else own) for each, own in stripped]
        stripped += [(part, (begin, end)) for part in parts]
    return stripped


def _span(piece, first, behind, characters, is_first):
    # A space stands for nothing that is removed beside it.
    for is_kept in (_is_part,) if piece == MARK else (_is_part, _is_no_space):
        kept = [place for place in range(first, behind) if is_kept(characters[place][0])]
        if kept:
            return characters[kept[0]][1][0], characters[kept[-1]][1][1]
    last = characters[-1][1][1]
    if piece == MARK and (is_first or first < behind):
        return (next((begin for character, (begin, _) in characters[first:] if _is_no_space(character)), last),) * 2
    return next((span for character, span in characters[first:] if _is_part(character)), (last, last))


def _is_no_space(character):
    return not (character in f"{MARK}\t\n\v\f\r\x85" or unicodedata.category(character)[0] == "Z")


def _is_part(character):
    return _is_no_space(character) and character != "\ufffd" and unicodedata.category(character) not in ("Cc", "Cf")
