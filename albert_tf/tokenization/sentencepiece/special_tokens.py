"""Special tokens that text turns into, as in transformers' AlbertTokenizer: "[MASK]" becomes [MASK].

They are found in the text as it is given. The text between them is encoded by itself, with a space before it.
"""

import collections.abc
import typing

import tensorflow as tf

# Marks where a text is to be cut; in the text itself another control character stands in for it.
_CUT, _STAND_IN = "\x02", "\x01"
_SPECIAL_TO_RE2 = frozenset("\\.+*?()|[]{}^$")

Columns = tuple[tf.RaggedTensor, ...]


class SpecialTokensInText:
    """Encodes such tokens, and leaves the rest of a text to others; no spelling of a token begins with another."""

    def __init__(self, ids: collections.abc.Mapping[str, int]):
        self._tokens, self._ids = list(ids), list(ids.values())
        self._pattern = "|".join(map(_escaped, self._tokens))

    def encode(self, texts: tf.Tensor, encode: collections.abc.Callable[[tf.Tensor], Columns]) -> Columns:
        """Returns `encode`'s ragged int32 [N, (pieces)] of texts string [N], with special tokens in their places."""
        is_any = tf.reduce_any(tf.strings.regex_full_match(texts, f"(?s).*(?:{self._pattern}).*"))
        return tf.cond(is_any, lambda: self._spliced(_cut(texts, self._pattern), encode), lambda: encode(texts))

    def _spliced(self, parts, encode):
        is_token = tf.equal(tf.ragged.range(parts.texts.row_lengths()).values % 2, 1)
        spelled = tf.boolean_mask(parts.texts.values, is_token)
        numbers = tf.argmax(tf.equal(spelled[:, None], tf.constant(self._tokens)), axis=1)
        begins, ends = (tf.boolean_mask(values, is_token) for values in (parts.begins, parts.ends))
        of_tokens = (tf.gather(tf.constant(self._ids, tf.int32), numbers), begins, ends)
        ids, *offsets = encode(tf.where(is_token, "", parts.texts.values))
        before = tf.gather(parts.begins, ids.value_rowids())  # offsets count from the begin of a part
        others = [ids, *(values.with_values(values.values + before) for values in offsets)]
        splits = tf.concat([[0], tf.cumsum(tf.cast(is_token, tf.int64))], axis=0)
        joined = [
            tf.concat([other, tf.RaggedTensor.from_row_splits(token, splits)], axis=1)
            for other, token in zip(others, of_tokens)
        ]
        return tuple(
            tf.RaggedTensor.from_row_splits(column.values, tf.gather(column.row_splits, parts.texts.row_splits))
            for column in joined
        )


class _Parts(typing.NamedTuple):
    """Texts cut before and behind tokens, so that every other part is a token."""

    texts: tf.RaggedTensor  # string [N, (parts)]
    begins: tf.Tensor  # int32 [parts], where each begins in its text
    ends: tf.Tensor  # the same for where it ends


def _cut(texts, pattern):
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")  # so that characters can be counted
    texts = tf.strings.regex_replace(texts, _CUT, _STAND_IN)
    parts = tf.strings.split(tf.strings.regex_replace(texts, f"({pattern})", rf"{_CUT}\1{_CUT}"), _CUT)
    lengths = tf.strings.length(parts.values, "UTF8_CHAR")
    ends = tf.cumsum(lengths)
    before = tf.gather(tf.concat([[0], ends], axis=0), tf.gather(parts.row_splits, parts.value_rowids()))
    return _Parts(parts, ends - lengths - before, ends - before)


def _escaped(token):
    """Returns a pattern that matches a token; `re.escape` knows Python's syntax, not RE2's."""
    return "".join(f"\\{character}" if character in _SPECIAL_TO_RE2 else character for character in token)
