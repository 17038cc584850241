"""Handing tokenizers over to Hugging Face: a tokenizer.json of the `tokenizers` library's own components.

Ids of WordPiece are the same, with these exceptions, which the components can't express. Of form=korean, a word of more
than 600 bytes is [UNK] here, one of more than 600 characters there. And where punctuation isn't split, a word that is
spelled like a special token or starts with ## may match that piece there. Of form=google, what `differences` says.
Of SentencePiece, with components like those of its AlbertTokenizer, of two ways to cut a text that are as probable the
other may be taken; accents are all marks there, not only those that combine; and a number is cut off from the comma
behind it by making pieces that hold both improbable, which may cut the number otherwise.
"""

import os

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json, write_text
from albert_tf.tokenization import normalization, unicode_tables, wordpiece
from albert_tf.tokenization.base import KIND, TOKENIZER_FILE, Tokenizer
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.sentencepiece.model import BYTE, SPACE_MARK
from albert_tf.tokenization.sentencepiece.normalization import ends_in_number_comma
from albert_tf.tokenization.sentencepiece.tokenizer import SentencePieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, MAX_BYTES_PER_WORD

CONFIG_FILE = "tokenizer_config.json"

_TOKEN_NAMES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
# Added to the scores of pieces that are to be cut, as in transformers, and of those that no text may turn into.
_OF_NUMBER_COMMAS, _OF_RESERVED = -100.0, -10_000.0


def export_huggingface(
    tokenizer: Tokenizer, folder: str | os.PathLike, max_seq_length: int = 512, has_segments: bool = True
) -> None:
    """Writes tokenizer.json and tokenizer_config.json, which `transformers.AutoTokenizer.from_pretrained` loads.

    Args:
        tokenizer: Of SentencePiece, or of WordPiece in the continuation scheme.
        folder: Not the one `Tokenizer.save` wrote to: a file of both is called tokenizer.json.
        max_seq_length: Where Hugging Face cuts texts off when it is asked to truncate.
        has_segments: Whether the model has embeddings of two segments; without them it is given none.

    Raises:
        InputError: The scheme can't be expressed, a special token is missing, or the folder holds our own tokenizer.
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, TOKENIZER_FILE)
    if tf.io.gfile.exists(path) and not is_of_transformers(folder):
        raise InputError(f"{path} is the tokenizer's own file, which has the same name; choose another folder")
    write_text(path, to_tokenizers(tokenizer).to_str(pretty=True))
    write_json(os.path.join(folder, CONFIG_FILE), _config(tokenizer, max_seq_length, has_segments))


def is_of_transformers(folder: str | os.PathLike) -> bool:
    """Whether transformers, and not we, have written how the vocabulary in a folder is used."""
    path = os.path.join(folder, TOKENIZER_FILE)
    if tf.io.gfile.exists(path):
        return not {KIND, "vocab_sha256"} & read_json(path, "the tokenizer settings").keys()
    return tf.io.gfile.exists(os.path.join(folder, CONFIG_FILE))


def to_tokenizers(tokenizer: Tokenizer):
    """Returns a `tokenizers.Tokenizer` of the same ids, [CLS] and [SEP] included; raises InputError if none can be."""
    from tokenizers import AddedToken, processors

    if isinstance(tokenizer, SentencePieceTokenizer):
        backend = _sentencepiece_backend(tokenizer)
    else:
        backend = _wordpiece_backend(tokenizer)
    _, _, cls, sep, _ = _special_tokens(tokenizer)
    between = " ".join([sep] * tokenizer.vocabulary.num_separators)
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {between} $B:1 {sep}:1",
        special_tokens=[(token, tokenizer.vocabulary.id_of(token)) for token in (cls, sep)],
    )
    backend.add_special_tokens([AddedToken(token, special=True) for token in _special_tokens(tokenizer)])
    backend.encode_special_tokens = not takes_special_tokens_in_text(tokenizer)
    return backend


def differences(tokenizer: Tokenizer) -> str | None:
    """Returns which kind of characters is read otherwise there; None if at most rare cases are."""
    if getattr(tokenizer.normalization, "form", None) == "google":
        return "private-use characters and sigmas at the ends of words are read otherwise there"
    return None


def takes_special_tokens_in_text(tokenizer: Tokenizer) -> bool:
    """Whether "[MASK]" and the like in a text are the special tokens, which tokenizer.json can't say."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return tokenizer.takes_special_tokens_in_text
    return tokenizer.normalization.special_tokens_in_text


def _wordpiece_backend(tokenizer):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    if tokenizer.wordpiece_scheme != "continuation":
        raise InputError(
            f"wordpiece_scheme={tokenizer.wordpiece_scheme} can't be expressed as a Hugging Face tokenizer.json, whose "
            "WordPiece has no mark at the end of a word; export a vocabulary of the continuation scheme"
        )
    vocabulary = tokenizer.vocabulary
    vocabulary.require(*SPECIAL_TOKENS)
    backend = Tokenizer(
        models.WordPiece(
            {piece: index for index, piece in enumerate(vocabulary.pieces)},
            unk_token=UNK,
            continuing_subword_prefix=CONTINUATION_PREFIX,
            max_input_chars_per_word=tokenizer.max_characters_per_word or MAX_BYTES_PER_WORD,
        )
    )
    backend.decoder = decoders.WordPiece(CONTINUATION_PREFIX, cleanup=False)
    options = tokenizer.normalization
    if options.form != "korean":
        backend.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=options.strip_accents,
            lowercase=options.lower_case,
        )
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return backend
    isolated = wordpiece.isolated_pattern(
        tokenizer.split_punctuation, tokenizer.split_digits, options.keep_emoji, tokenizer.split_emoji
    )
    backend.normalizer = _normalizer(options)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.Split(_regex(isolated), "isolated")]
    )
    return backend


def _sentencepiece_backend(tokenizer):
    """Returns a `tokenizers.Tokenizer` of the same ids without special tokens; raises InputError if not of unigrams."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    model, vocabulary, options = tokenizer.model, tokenizer.vocabulary, tokenizer.normalization
    if not model.is_unigram:
        raise InputError(f"{model.source} is not a unigram model, and Hugging Face reads other kinds differently")
    scores = [piece.score for piece in model.pieces] + [0.0] * tokenizer.num_unused
    for piece_id, piece in enumerate(vocabulary.pieces):
        if vocabulary.is_reserved(piece) and piece_id != vocabulary.id_of(UNK):
            scores[piece_id] += _OF_RESERVED
        elif tokenizer.split_number_commas and ends_in_number_comma(piece):
            scores[piece_id] += _OF_NUMBER_COMMAS
    has_bytes = any(piece.type == BYTE for piece in model.pieces)
    backend = Tokenizer(models.Unigram(list(zip(vocabulary.pieces, scores)), vocabulary.id_of(UNK), has_bytes))
    steps = []
    if options.normalize_quotes:
        steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if options.strip_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if options.lower_case:
        steps += [normalizers.Lowercase()]
    if model.normalizer:
        # The table takes one character after the other, so that by itself it would leave Hangul apart.
        steps += [*([normalizers.NFKC()] if model.composes else []), normalizers.Precompiled(model.normalizer)]
    backend.normalizer = normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE_MARK, "always")]
    )
    backend.decoder = decoders.Metaspace(SPACE_MARK, "always")
    return backend


def _normalizer(options: NormalizationOptions):
    from tokenizers import normalizers

    steps = [
        normalizers.Replace(_regex(normalization.OTHER_SPACE), " "),
        _remove(normalization.REMOVED, unicode_tables.JOINED_PICTURES if options.keep_emoji else None),
    ]
    if options.full_width_to_ascii:
        steps += [
            normalizers.Replace(chr(code_point), chr(code_point - normalization.FULL_WIDTH_TO_ASCII))
            for code_point in normalization.FULL_WIDTH
        ]
    if options.lower_case:
        # The component lowers each character by itself, but a sigma at the end of a word has a form of its own.
        steps += [normalizers.Replace(_regex(r"(?<=\p{L})Σ(?![\p{L}'])"), "ς"), normalizers.Lowercase()]
    if options.strip_accents:
        steps += [
            normalizers.NFD(),
            _remove(r"\p{Mn}", unicode_tables.SELECTED_PICTURE if options.keep_emoji else None),
        ]
    steps += [normalizers.NFC()]
    if options.squeeze_repeats:
        repeats = rf"({normalization.SQUEEZED})\1{{{normalization.MOST_REPEATS - 1}}}\K\1+"
        steps += [normalizers.Replace(_regex(repeats), "")]
    steps += [normalizers.Replace(_regex("  +"), " "), normalizers.Strip()]
    return normalizers.Sequence(steps)


def _remove(pattern, kept):
    """Returns a component that removes matches of a pattern, save where they are part of a match of `kept`."""
    from tokenizers import normalizers

    # \K moves the begin of a match to its end, so that what is kept is passed over and nothing of it is replaced.
    return normalizers.Replace(_regex(rf"(?:{kept})\K|{pattern}" if kept else pattern), "")


def _regex(pattern):
    from tokenizers import Regex

    return Regex(pattern)


def _special_tokens(tokenizer):
    """Returns the vocabulary's names of the special tokens, in the order of `SPECIAL_TOKENS`."""
    vocabulary = tokenizer.vocabulary
    return [vocabulary.pieces[vocabulary.id_of(token)] for token in SPECIAL_TOKENS]


def _config(tokenizer, max_seq_length, has_segments):
    # Models that read two separators between the texts of a pair tell them apart by these.
    segments = ["token_type_ids"] if has_segments and tokenizer.vocabulary.num_separators == 1 else []
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **dict(zip(_TOKEN_NAMES, _special_tokens(tokenizer))),
        "split_special_tokens": not takes_special_tokens_in_text(tokenizer),
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        "model_max_length": max_seq_length,
    }
