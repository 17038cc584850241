"""WordPiece vocabularies that lie beside other people's checkpoints, read with the settings of their tokenizers."""

import os

import tensorflow as tf

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_json, read_text
from albert_tf.interchange.portable_model import Caveat, ReadOptions
from albert_tf.interchange.tokenizers.settings import BERT, agreed, check_backend, check_configs
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.huggingface import CONFIG_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import split_lines
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, check_scheme

# Of byte-level BPE, which English RoBERTas have.
_MERGES_FILE = "merges.txt"
# Of the WordPiece tokenizer in the original's tokenization.py.
_MAX_CHARACTERS_OF_GOOGLE = 200


def read_vocabulary_file(options: ReadOptions) -> tuple[KoreanWordPieceTokenizer, tuple[str, ...]]:
    """Returns a tokenizer of our own form for the vocabulary that a flag names, and sentences on it."""
    vocabulary = Vocabulary.from_file(options.vocab_file)
    check_scheme(vocabulary, "continuation")
    lower_case = options.do_lower_case is not False
    strip_accents = lower_case if options.strip_accents is None else options.strip_accents
    notes = ["text is normalised and split as albert_tf does it, as `vocab_file` names a vocabulary alone"]
    if strip_accents and _has_hangul(vocabulary):
        notes.append(
            Caveat(
                "accents are stripped, as BERT's tokenizers do it unless told otherwise, but Hangul stays composed "
                "here, which those take apart; if the model was trained on composed Hangul, pass `strip_accents=False`"
            )
        )
    return KoreanWordPieceTokenizer(vocabulary, lower_case=lower_case, strip_accents=strip_accents), tuple(notes)


def read_wordpiece(
    folder: str, config: dict, options: ReadOptions, as_google: bool
) -> tuple[KoreanWordPieceTokenizer, tuple[str, ...]] | None:
    """Returns the tokenizer of BERT's files, and sentences on it; None if there is no vocabulary.

    `config` is the content of tokenizer_config.json; `as_google` reads a vocabulary alone as Google's code does.
    """
    names = (TOKENIZER_FILE, VOCABULARY_FILE, CONFIG_FILE)
    has_file = {name: tf.io.gfile.exists(os.path.join(folder, name)) for name in names}
    if not (has_file[TOKENIZER_FILE] or has_file[VOCABULARY_FILE]):
        merges = os.path.join(folder, _MERGES_FILE)
        if tf.io.gfile.exists(merges):
            raise _other_pieces(merges, "BPE")
        return None
    vocabulary, backend, notes = None, {}, check_configs(folder, BERT)
    if has_file[TOKENIZER_FILE]:
        path = os.path.join(folder, TOKENIZER_FILE)
        vocabulary, backend = _from_tokenizers_library(read_json(path, "the tokenizer"), path)
    if has_file[VOCABULARY_FILE]:
        path = os.path.join(folder, VOCABULARY_FILE)
        of_file, without_piece = read_pieces(path)
        notes += without_piece
        if vocabulary is not None and of_file.pieces != vocabulary.pieces:
            raise InputError(f"{path} and the {TOKENIZER_FILE} beside it have different pieces; leave the right one")
        vocabulary = of_file
    check_scheme(vocabulary, "continuation")
    settings = agreed(config, backend, options, folder)
    if settings["strip_accents"] and _has_hangul(vocabulary):
        notes.append(
            Caveat(
                "accents are stripped, and Hangul is taken apart with them, as BERT's tokenizer does it unless told "
                "otherwise: the composed Hangul of the vocabulary is never matched; if the model was trained on it, "
                "pass `strip_accents=False`"
            )
        )
    form = "bert"
    if as_google and not (has_file[CONFIG_FILE] or has_file[TOKENIZER_FILE]):
        form = "google"
        settings.update(max_characters_per_word=_MAX_CHARACTERS_OF_GOOGLE, special_tokens_in_text=False)
    return KoreanWordPieceTokenizer(vocabulary, **settings, keep_emoji=False, form=form), tuple(notes)


def read_pieces(path: str) -> tuple[Vocabulary, list[str]]:
    """Returns the vocabulary in a file as transformers reads it, and sentences on lines that stand for no piece.

    Those are empty lines, and all but the last with the same piece. They become [unused] slots, so that the other
    pieces keep their ids; at the end of the file they are left out.
    """
    pieces = split_lines(read_text(path, "the vocabulary"))
    while pieces and not pieces[-1]:
        pieces.pop()
    places = {piece: number for number, piece in enumerate(pieces)}
    dead = [number for number, piece in enumerate(pieces) if not piece or places[piece] != number]
    slots = (f"[unused{number}]" for number in range(len(pieces) + len(dead)))
    free = (slot for slot in slots if slot not in places)
    for number in dead:
        pieces[number] = next(free)
    named = ", ".join(str(number + 1) for number in dead[:10]) + (", ..." if len(dead) > 10 else "")
    note = f"{path}: no text becomes the piece of line {named}, which is empty or on a later line too"
    return Vocabulary(pieces, path), [note] if dead else []


def _has_hangul(vocabulary):
    return any("가" <= character <= "힣" for piece in vocabulary.pieces for character in piece)


def _other_pieces(path, kind):
    return InputError(
        f"{path} holds {kind}, and neither WordPiece nor SentencePiece, the only supported kinds; choose a model "
        "with one of these"
    )


def _from_tokenizers_library(values, path):
    """Returns the vocabulary and the switches in a tokenizer.json of the `tokenizers` library."""
    model = values.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
        raise InputError(f"{path} holds no WordPiece vocabulary")
    if model.get("type", "WordPiece") != "WordPiece":
        raise _other_pieces(path, shorten(model["type"]))
    if model.get("continuing_subword_prefix") != CONTINUATION_PREFIX:
        raise InputError(f"{path} holds no WordPiece vocabulary with {CONTINUATION_PREFIX}")
    switches = check_backend(values, path)
    ids = dict(model["vocab"])
    for token in values.get("added_tokens") or []:
        if isinstance(token, dict) and isinstance(token.get("content"), str):
            ids.setdefault(token["content"], token.get("id"))
    if not all(type(value) is int for value in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise InputError(f"{path} gives pieces ids that don't count from 0")
    return Vocabulary(sorted(ids, key=ids.get), path), switches
