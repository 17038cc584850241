"""Korean text to WordPieces, ids and character offsets, and back."""

from albert_tf.tokenization.encoding import Encoding
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary

__all__ = ["Encoding", "KoreanWordPieceTokenizer", "NormalizationOptions", "Vocabulary"]
