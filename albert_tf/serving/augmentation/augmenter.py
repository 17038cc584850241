"""Copies of texts in which a masked language model has put other words (TinyBERT, Jiao et al. 2020, section 3.2).

TinyBERT takes words of one piece from the masked language model, and all others from a table of GloVe. Korean words
are mostly several pieces, a stem and what is said with it, and there is no such table. Tried on reviews of NSMC with
`models/albert_ko_small`, each way by the share of 0.4:

- All pieces of a word, one after the other: pieces are guessed that belong to no word ("유승들의", "그외내용엔").
- Any piece by itself: endings no longer fit what they stand at ("어쩔수라는건", "실컷울때").
- The first piece of a word with the rest of it in sight: the stem changes, and josa and endings mostly stay ("주말에
  가족과 함께 보기 좋은 영화였어요" to "주말에 아들과 함께 보기에 좋은 영화였어요"). That is what this does.

Of several words in a text each is guessed with those before it in place already, else they don't go together. And
candidates are drawn as often as they are probable, where TinyBERT draws each of the best ones equally often: of a small
model the fifteenth mostly reads badly.
"""

import collections
import collections.abc
import dataclasses
import hashlib

import numpy as np
import tensorflow as tf

from albert_tf.asked_texts import read_strings
from albert_tf.errors import InputError
from albert_tf.serving.augmentation.replacements import Replacements
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.serving.scoring.likelihood import batch_lengths
from albert_tf.setting_checks import check_number, check_whole
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization.vocabulary import CLS, SEP

# So many pieces are computed at once, always: rounding differs by the size of a batch, and copies must not.
_PIECES_AT_ONCE = 4096
# So many copies are held at once.
_COPIES_AT_ONCE = 8192


@dataclasses.dataclass(frozen=True)
class AugmentationOptions:
    """How copies differ from their texts; by default as TinyBERT's.

    Attributes:
        num_copies: How many copies are made of each text.
        replaced_share: How probably each word is replaced, more than 0 and at most 1.
        num_candidates: Of how many of the most probable pieces one is drawn.
        random_seed: Of what is drawn.

    Raises:
        InputError: A value can't be.
    """

    num_copies: int = 30
    replaced_share: float = 0.4
    num_candidates: int = 15
    random_seed: int = 0

    def __post_init__(self):
        check_whole("num_copies", self.num_copies, 1)
        check_whole("num_candidates", self.num_candidates, 1)
        check_whole("random_seed", self.random_seed, 0)
        check_number(
            "replaced_share", self.replaced_share, "greater than 0 and at most 1", lambda value: 0 < value <= 1
        )


_DEFAULTS = AugmentationOptions()


@dataclasses.dataclass
class _Copy:
    """A text with some words still to be replaced.

    Attributes:
        source: Number of the text.
        ids: Its pieces, int32 [n], those that are replaced already among them.
        places: Which of them are replaced, in order.
        draws: A uniform number for each of the places, by which its replacement is chosen.
        num_done: How many of the places are done.
    """

    source: int
    ids: np.ndarray
    places: np.ndarray
    draws: np.ndarray
    num_done: int = 0


class Augmenter:
    """Makes copies of texts.

    ```python
    Augmenter(albert_tf.load(), AugmentationOptions(num_copies=3)).augment(["정말 재밌게 봤어요"])
    ```

    Args:
        model: A model that fills in masks, as `albert_tf.load` returns it.
        options: How many copies, and how different.

    Raises:
        InputError: It doesn't.
    """

    def __init__(self, model: PretrainedModel, options: AugmentationOptions = _DEFAULTS):
        if "fill_mask" not in model.abilities:
            raise InputError(
                f"{model.cannot('fill_mask')}; name a model that fills in masks, because words are replaced in this way"
            )
        if not isinstance(model, PretrainedModel):
            raise InputError("an export can't replace words; name the folder that it was exported from")
        self._tokenizer, self._options = model.tokenizer, options
        vocabulary = self._tokenizer.vocabulary
        self._cls, self._sep = vocabulary.id_of(CLS), vocabulary.id_of(SEP)
        self._room = model.max_seq_length - vocabulary.num_special(1)
        self._lengths = batch_lengths(model.max_seq_length)
        self._replacements = Replacements(model.model, self._tokenizer, options.num_candidates)

    @property
    def texts_at_once(self) -> int:
        """Of how many texts the copies are held at once."""
        return max(1, _COPIES_AT_ONCE // self._options.num_copies)

    def augment(
        self,
        texts: collections.abc.Sequence[str],
        tell: collections.abc.Callable[[float], None] = lambda num_texts: None,
    ) -> list[list[str]]:
        """Returns the copies of each text; one in which no word is replaced equals it.

        What is drawn follows from the seed and the text, whatever else is asked.

        Args:
            texts: N of them; marks, numbers, words that the vocabulary can't spell, and spaces stay as they are.
            tell: Is given, after each batch, of how many texts the work is done.

        Raises:
            InputError: An input is no text.
        """
        texts = [replace_halves(text) for text in read_strings(texts)]
        found = []
        for begin in range(0, len(texts), self.texts_at_once):
            part = texts[begin : begin + self.texts_at_once]
            found += self._augment(part, lambda share, begin=begin, part=part: tell(begin + share * len(part)))
        return found

    def _augment(self, texts, tell):
        ids, begins, ends = self._tokenizer.encode_with_offsets(tf.constant(texts))
        spans = np.stack([begins.flat_values, ends.flat_values], axis=-1)
        borders = ids.row_splits.numpy()[1:-1]
        spans, ids = np.split(spans, borders), np.split(ids.flat_values.numpy(), borders)
        starts = np.split(self._tokenizer.encode_with_word_starts(texts)[1], borders)
        copies = [
            copy
            for row, text in enumerate(texts)
            for copy in _draw_copies(
                row, text, ids[row], starts[row] & self._replacements.has_any[ids[row]], self._options
            )
        ]
        self._replace(copies, tell)
        found = [[] for _ in texts]
        for copy in copies:
            found[copy.source].append(self._spell(texts[copy.source], spans[copy.source], copy))
        return found

    def _replace(self, copies, tell):
        """Replaces all words of copies, one of each at a time, in batches of copies of about one length."""
        by_length = collections.defaultdict(collections.deque)
        for copy in copies:
            length = min(len(copy.ids), self._room) + self._tokenizer.vocabulary.num_special(1)
            if len(copy.places):
                by_length[self._lengths[np.searchsorted(self._lengths, length)]].append(copy)
        num_left = {length: sum(len(copy.places) for copy in waiting) for length, waiting in by_length.items()}
        num_pieces, num_done = sum(length * count for length, count in num_left.items()), 0
        for length, waiting in by_length.items():
            num_rows = max(1, _PIECES_AT_ONCE // length)
            while waiting:
                batch = [waiting.popleft() for _ in range(min(num_rows, len(waiting)))]
                inputs = [self._window(copy) for copy in batch]
                draws = [copy.draws[copy.num_done] for copy in batch]
                chosen = self._replacements.choose(inputs, draws, num_rows, length)
                for copy, piece_id in zip(batch, chosen):
                    copy.ids[copy.places[copy.num_done]] = piece_id
                    copy.num_done += 1
                # They come first again, so that all batches but the last few are full.
                waiting.extendleft(copy for copy in reversed(batch) if copy.num_done < len(copy.places))
                num_done += length * len(batch)
                tell(num_done / num_pieces)

    def _window(self, copy):
        """Returns what the model reads of a copy, int32 [n], and where in it the piece stands that is next."""
        place = copy.places[copy.num_done]
        # Of a text that is longer than the model reads, the piece stands in the middle of as many as there is room for.
        begin = max(0, min(place - self._room // 2, len(copy.ids) - self._room))
        return np.concatenate([[self._cls], copy.ids[begin : begin + self._room], [self._sep]]), 1 + place - begin

    def _spell(self, text, spans, copy):
        """Returns a text with the pieces that are replaced in place of its own."""
        parts, end = [], 0
        for place in copy.places:
            first, last = spans[place]
            parts += [text[end:first], self._replacements.texts[copy.ids[place]]]
            end = last
        return "".join([*parts, text[end:]])


def _draw_copies(row, text, ids, may_change, options):
    """Yields copies of a text, with the places that are to change and what decides how."""
    digest = hashlib.sha256(text.encode()).digest()
    generator = np.random.default_rng([options.random_seed, *np.frombuffer(digest, np.uint32)])
    places = np.flatnonzero(may_change)
    for is_chosen, draws in generator.random([options.num_copies, 2, len(places)]):
        is_replaced = is_chosen < options.replaced_share
        yield _Copy(row, ids.copy(), places[is_replaced], draws[is_replaced])
