"""A SentencePiece model as components of Hugging Face's `tokenizers` library, like those of its AlbertTokenizer.

Ids are the same, with these exceptions, which the components can't express. Of two ways to cut a text that are as
probable the other may be taken. Accents are all marks there, not only those that combine. And a number is cut off from
the comma behind it by making pieces that hold both improbable, which may cut the number otherwise.
"""

from albert_tf.errors import InputError
from albert_tf.tokenization.sentencepiece.model import BYTE, SPACE_MARK
from albert_tf.tokenization.sentencepiece.number_commas import ends_in_number_comma
from albert_tf.tokenization.sentencepiece.tokenizer import SentencePieceTokenizer
from albert_tf.tokenization.vocabulary import UNK

# Added to the scores of pieces that are to be cut, as in transformers, and of those that no text may turn into.
_OF_NUMBER_COMMAS, _OF_RESERVED = -100.0, -10_000.0


def make_backend(tokenizer: SentencePieceTokenizer):
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
