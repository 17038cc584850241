"""BERT's own tokenizer, of the library `tokenizers`, and a vocabulary of what is in texts."""

import re
import unicodedata

import google_tokenizer

from albert_tf.tokenization import unicode_tables
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary


def vocabulary_of(texts: list[str], size: int = 400) -> Vocabulary:
    """Returns the first so many visible characters of texts in all their forms, and a few longer pieces."""
    characters = {}
    for character in dict.fromkeys("".join(texts)):
        if len(characters) < size and unicodedata.category(character) not in ("Cc", "Cf", "Zs", "Zl", "Zp"):
            for form in (character, character.lower()):
                characters.update(dict.fromkeys(form + unicodedata.normalize("NFD", form)))
    pieces = [*characters, *(f"##{character}" for character in characters), "재밌", "##어요", "##ㅋㅋㅋㅋㅋ"]
    return Vocabulary([*SPECIAL_TOKENS, "[unused1]", *dict.fromkeys(pieces)])


def bert_tokenizer(vocabulary: Vocabulary, lower_case: bool, strip_accents: bool | None, max_characters: int = 100):
    """Returns the library's tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    ids = {piece: i for i, piece in enumerate(vocabulary.pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=max_characters))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=strip_accents, lowercase=lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def is_known_to_all_versions(character: str, lower_case: bool) -> bool:
    """Whether this Python's Unicode says the same of a character as that of the tables."""
    cleaned = google_tokenizer.cleaned_character(character)
    by_python = " " if cleaned.isspace() else cleaned, google_tokenizer.is_punctuation(character)
    ours = unicode_tables.clean(character, as_google=True), re.match(_PUNCTUATION, character) is not None
    if lower_case:
        by_python += character.lower(), unicodedata.normalize("NFD", character), unicodedata.category(character) == "Mn"
        ours += unicode_tables.lower(character), unicode_tables.decompose(character), unicode_tables.is_mark(character)
    return by_python == ours


_PUNCTUATION = re.sub(r"\\x\{(\w+)\}", lambda match: f"\\U{match[1]:0>8}", unicode_tables.PUNCTUATION)
