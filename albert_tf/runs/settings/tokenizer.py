"""Which tokenizer to use, and how it normalises and splits text."""

import dataclasses
import functools
import os
import typing

import tensorflow as tf

from albert_tf.base.console import tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_text
from albert_tf.base.settings import RARE, Settings, free
from albert_tf.interchange.conversion import tokenizer_of_transformers
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.tokenization import KoreanWordPieceTokenizer, SentencePieceTokenizer, Tokenizer
from albert_tf.tokenization.huggingface import is_of_transformers
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.wordpiece import WORDPIECE_SCHEMES

# Name here to the tokenizer's own name of the setting.
_OF_WORDPIECE = {
    "do_lower_case": "lower_case",
    **{name: name for name in ("strip_accents", "squeeze_repeats", "full_width_to_ascii", "keep_emoji")},
    **{name: name for name in ("split_punctuation", "split_digits", "split_emoji", "wordpiece_scheme")},
}
_OF_SENTENCEPIECE = {"do_lower_case": "lower_case", **{name: name for name in ("strip_accents", "split_number_commas")}}
_rare = functools.partial(free, group=RARE, in_python=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizerSettings(Settings):
    """How text is normalised and split; used where no tokenizer.json says so, which is seldom."""

    do_lower_case: bool = _rare(True, "Lower-case letters; Hangul always stays composed.")
    strip_accents: bool = _rare(False, "Drop accents from letters that are not Hangul.")
    squeeze_repeats: bool = _rare(
        False, "Keep only two of a Hangul character, punctuation mark or symbol that repeats more often."
    )
    full_width_to_ascii: bool = _rare(False, "Map full-width letters, digits and punctuation to ASCII.")
    keep_emoji: bool = _rare(True, "Keep emoji sequences whole, with their joiners and variation selectors.")
    split_punctuation: bool = _rare(True, "Make every punctuation mark a word of its own.")
    split_digits: bool = _rare(False, "Make every number a word of its own.")
    split_emoji: bool = _rare(False, "Make every emoji a word of its own.")
    wordpiece_scheme: str = _rare(
        "continuation",
        "continuation: ## inside words; end_of_word: _ after a word that a space follows.",
        choices=tuple(WORDPIECE_SCHEMES),
    )

    def of_tokenizer(self) -> dict[str, typing.Any]:
        """Returns the arguments of `KoreanWordPieceTokenizer` among them."""
        return {name: getattr(self, flag) for flag, name in _OF_WORDPIECE.items()}

    def load_wordpiece(self, vocab_file: str) -> Tokenizer:
        """Builds a tokenizer from a vocabulary file, with the settings of the files beside it or else these."""
        # Those are tokenizer.json, or what transformers writes; what was given may not contradict them.
        folder, name = os.path.split(vocab_file)
        settings_file = os.path.join(folder, TOKENIZER_FILE)
        if name == VOCABULARY_FILE and is_of_transformers(folder):
            return self._load_from_transformers(folder)
        if name != VOCABULARY_FILE or not tf.io.gfile.exists(settings_file):
            return KoreanWordPieceTokenizer.from_vocab_file(vocab_file, **self.of_tokenizer())
        tokenizer = KoreanWordPieceTokenizer.load(folder)
        self._check_same(tokenizer, _OF_WORDPIECE, settings_file)
        return tokenizer

    def _load_from_transformers(self, folder):
        """Returns the tokenizer that the model in a folder of transformers has here; says what differs."""
        given = {name: getattr(self, name) for name in ("do_lower_case", "strip_accents") if name in self.given}
        tokenizer, notes = tokenizer_of_transformers(folder, ReadOptions(**given))
        tell("\n".join(notes))
        self._check_same(tokenizer, _OF_WORDPIECE, folder)
        return tokenizer

    def _check_same(self, tokenizer, names, settings_file):
        """Checks that settings that were given are what a tokenizer.json says."""
        saved = tokenizer.to_dict()
        for name, of_tokenizer in names.items():
            if name in self.given and getattr(self, name) != saved.get(of_tokenizer):
                said = saved.get(of_tokenizer, "nothing about it")
                raise InputError(
                    f"`{name}={getattr(self, name)}` contradicts {settings_file}, which says {said}; "
                    "leave it out, or build a vocabulary with it"
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnyTokenizerSettings(TokenizerSettings):
    """A vocabulary or a SentencePiece model, and how text is normalised and split."""

    vocab_file: str | None = free(None, "Vocabulary; by default the one beside --init_checkpoint.", in_python=False)
    spm_model_file: str | None = free(
        None,
        "SentencePiece model, instead of --vocab_file; a tokenizer.json beside spiece.model says how to use it.",
        in_python=False,
    )
    split_number_commas: bool = _rare(
        True, "With --spm_model_file: split a piece that ends in a digit and a comma before the comma."
    )

    def load_tokenizer(self, vocab_file: str | None, spm_model_file: str | None) -> Tokenizer:
        """Builds a tokenizer from a SentencePiece model if there is one, else as `load_wordpiece` does."""
        # Beside a model a vocabulary must list its pieces. Its settings are those of the tokenizer.json beside
        # spiece.model, which what was given may not contradict, or else these.
        if not spm_model_file:
            if vocab_file.endswith((".model", ".vocab")):
                raise InputError(
                    f"`vocab_file={vocab_file}` is a file of SentencePiece; name its .model in `spm_model_file`"
                )
            return self.load_wordpiece(vocab_file)
        for name in _OF_WORDPIECE.keys() - _OF_SENTENCEPIECE.keys():
            if name in self.given:
                raise InputError(f"`{name}` does not apply to the SentencePiece model {spm_model_file}; leave it out")
        folder, name = os.path.split(spm_model_file)
        settings_file = os.path.join(folder, TOKENIZER_FILE)
        if name == MODEL_FILE and tf.io.gfile.exists(settings_file):
            tokenizer = SentencePieceTokenizer.load(folder)
            self._check_same(tokenizer, _OF_SENTENCEPIECE, settings_file)
        else:
            # Accents are kept by default for WordPiece, and dropped for SentencePiece, as the original does.
            strips_accents = self.strip_accents or "strip_accents" not in self.given
            tokenizer = SentencePieceTokenizer.from_model_file(
                spm_model_file,
                lower_case=self.do_lower_case,
                strip_accents=strips_accents,
                split_number_commas=self.split_number_commas,
            )
        if vocab_file:
            _check_pieces(vocab_file, tokenizer, spm_model_file)
        return tokenizer


def _check_pieces(vocab_file, tokenizer, spm_model_file):
    """Checks that the .vocab file that SentencePiece writes, a piece and its score a line, is that of a model."""
    lines = read_text(vocab_file, "the vocabulary").removesuffix("\n").split("\n")
    pieces = [line.removesuffix("\r").partition("\t")[0] for line in lines]
    if pieces != [piece.text for piece in tokenizer.model.pieces]:
        raise InputError(
            f"`vocab_file={vocab_file}` does not list the pieces of `spm_model_file={spm_model_file}`, which holds "
            "them itself; leave `vocab_file` out"
        )
