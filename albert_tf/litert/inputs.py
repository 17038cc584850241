"""Texts to what a model reads, by the `tokenizers` library and NumPy: the numbers of `tokenization.model_inputs`."""

import re

import numpy as np

from albert_tf.lacking_characters import MOST_LOOKED_AT, lacking_characters
from albert_tf.pair_truncation import ODD_TO_SECOND, check_truncation, share_of_first
from albert_tf.text_encoding import replace_halves

# A longer word is [UNK], as in the graph; the `tokenizers` library counts characters, and takes so many of them.
_MAX_BYTES_PER_WORD = 600
# What is shown of words that the vocabulary lacks.
_MOST_SHOWN, _MOST_CHARACTERS = 3, 30
# A word without a blank may be that long if it has more characters: NFKC makes up to 33 bytes of one.
_MANY_CHARACTERS = _MAX_BYTES_PER_WORD // 33


class FastInputs:
    """Encodes texts or pairs as `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`, the longer text cut off.

    The file is what `tokenization.huggingface` made of a tokenizer. Raises InputError if `truncation`, which says which
    text of a pair keeps the odd piece, is none of `TRUNCATIONS`.
    """

    def __init__(
        self,
        tokenizer_file: str,
        max_seq_length: int,
        special_tokens_in_text: bool = False,
        truncation: str = ODD_TO_SECOND,
    ):
        import tokenizers

        self._tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
        self._tokenizer.encode_special_tokens = not special_tokens_in_text  # the file can't say so
        added = self._tokenizer.get_added_tokens_decoder().values() if special_tokens_in_text else ()
        self._special_tokens = re.compile(f"({'|'.join(re.escape(token.content) for token in added) or '(?!)'})")
        model = self._tokenizer.model
        is_wordpiece = isinstance(model, tokenizers.models.WordPiece)
        # A character has up to four bytes, so that a word of fewer characters is short in either way.
        self._limits_words = is_wordpiece and 4 * model.max_input_chars_per_word > _MAX_BYTES_PER_WORD
        self._unknown_ids = {self._tokenizer.token_to_id(name) for name in ("[UNK]", "<unk>")} - {None}
        self.max_seq_length, self.num_cut = max_seq_length, 0
        self._truncation = check_truncation(truncation)

    def tokenize(self, texts: list[tuple[str, ...]]) -> list[tuple]:
        """Returns a `tokenizers.Encoding` of each text of each input, uncut and without special tokens."""
        columns = [
            self._tokenizer.encode_batch([self._without_long_words(text) for text in column], add_special_tokens=False)
            for column in zip(*texts)
        ]
        return list(zip(*columns))

    def join(self, segments: list[tuple]) -> list:
        """Returns a `tokenizers.Encoding` of each input; those too long are cut in place, and counted in `num_cut`."""
        return [self._join(*each) for each in segments]

    def split_into_windows(self, segments: list[tuple], stride: int) -> tuple[list, list[int]]:
        """Returns a `tokenizers.Encoding` of each window, and which input it is of; inputs have one text, cut in place.

        The stride is from the beginning of one window to the next's.
        """
        room = self.max_seq_length - 2
        overlap = room - min(stride, max(1, room // 2))
        encodings, rows = [], []
        for row, (whole,) in enumerate(segments):
            whole.truncate(room, stride=overlap)
            for part in (whole, *whole.overflowing):
                encodings.append(self._tokenizer.post_process(part))
                rows.append(row)
        return encodings, rows

    def find_unknown_words(
        self, texts: list[tuple[str, ...]], segments: list[tuple]
    ) -> tuple[int, list[str], list[str]]:
        """Finds them as `tokenization.unknown_words` does; `segments` are as of `tokenize`, uncut."""
        found = [words for words in map(self._unknown_words, texts, segments) if words]
        words = [word for words in found[:MOST_LOOKED_AT] for word in words]
        shown = [word if len(word) <= _MOST_CHARACTERS else f"{word[:_MOST_CHARACTERS]}..." for word in words]
        characters = lacking_characters(words, self._are_unknown)
        return len(found), list(dict.fromkeys(shown))[:_MOST_SHOWN], characters

    def _unknown_words(self, texts, encodings):
        """Returns the words of an input's texts that the vocabulary can't spell."""
        return [
            read[slice(*place)]
            for text, encoding in zip(texts, encodings)
            if not self._unknown_ids.isdisjoint(encoding.ids)
            for read in [self._without_long_words(text)]
            for piece_id, place in zip(encoding.ids, encoding.offsets)
            if piece_id in self._unknown_ids
        ]

    def _are_unknown(self, characters):
        encodings = self._tokenizer.encode_batch(characters, add_special_tokens=False)
        return [not self._unknown_ids.isdisjoint(encoding.ids) for encoding in encodings]

    def _without_long_words(self, text):
        """Returns a text with a word that the library takes to be too long in place of each that the graph does."""
        text = replace_halves(text)
        if not self._limits_words or max(map(len, text.split(" "))) <= _MANY_CHARACTERS:
            return text
        # Every second part is a special token, which must stay as it is.
        parts = self._special_tokens.split(text)
        parts[::2] = map(self._shortened, parts[::2])
        return "".join(parts)

    def _shortened(self, text):
        normal = self._tokenizer.normalizer.normalize_str(text)
        long = [
            place
            for word, place in self._tokenizer.pre_tokenizer.pre_tokenize_str(normal)
            if len(word.encode()) > _MAX_BYTES_PER_WORD
        ]
        for begin, end in reversed(long):
            normal = f"{normal[:begin]} {'x' * (_MAX_BYTES_PER_WORD + 1)} {normal[end:]}"
        return normal if long else text

    def _join(self, *segments):
        room = self.max_seq_length - self._tokenizer.num_special_tokens_to_add(len(segments) > 1)
        lengths = kept_lengths([len(segment) for segment in segments], room, self._truncation)
        self.num_cut += sum(map(len, segments)) > room
        for segment, length in zip(segments, lengths):
            segment.truncate(length)
        return self._tokenizer.post_process(*segments)


def pad(encodings: list) -> dict[str, np.ndarray]:
    """Returns int32 [N, S] `input_ids`, `input_mask` and `segment_ids` of N encodings; S is the longest's length."""
    shape = len(encodings), max(map(len, encodings))
    inputs = {name: np.zeros(shape, np.int32) for name in ("input_ids", "input_mask", "segment_ids")}
    for row, encoding in enumerate(encodings):
        length = len(encoding)
        inputs["input_ids"][row, :length] = encoding.ids
        inputs["input_mask"][row, :length] = 1
        inputs["segment_ids"][row, :length] = encoding.type_ids
    return inputs  # what is behind a text is masked, whatever its id


def kept_lengths(lengths: list[int], room: int, truncation: str) -> list[int]:
    """Returns how many pieces are kept where the longer text gives up one after another."""
    if len(lengths) == 1:
        return [min(lengths[0], room)]
    first, second = lengths
    first = min(first, max(room - second, share_of_first(room, truncation, int(first > second))))
    return [first, min(second, room - first)]
