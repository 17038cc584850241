"""Text to pieces, ids and character offsets, and back, by WordPiece for Korean or by SentencePiece."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.tokenization.base import Encoding, Tokenizer
from albert_tf.tokenization.keras_layer import TokenizerLayer
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.tokenizer import SentencePieceTokenizer
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer, load_tokenizer
from albert_tf.tokenization.vocabulary import Vocabulary

__all__ = [
    "Encoding",
    "KoreanWordPieceTokenizer",
    "NormalizationOptions",
    "SentencePieceModel",
    "SentencePieceTokenizer",
    "Tokenizer",
    "TokenizerLayer",
    "Vocabulary",
    "load_tokenizer",
]
