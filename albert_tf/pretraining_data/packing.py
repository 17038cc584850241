"""How sentences and documents are packed into examples: the interface."""

import bisect
import collections.abc
import random
import types
import typing

import numpy as np

# What a piece is to the mentions of entities. The last is of what follows a mention, such as a josa in the same word.
BEGINS_MENTION, IN_MENTION, AFTER_MENTION = 1, 2, 3


class Text(typing.NamedTuple):
    """Sentences and documents, from which examples are cut.

    Attributes:
        documents: int64 [sentences + 1] each, the borders of a document's sentences, counted in pieces: sentence i is
            border i up to border i + 1.
        ids: int32, the ids of all of it.
        word_starts: bool, where its words start.
        num_characters: int32, how many characters of the text as given, Hangul composed, each piece stands for; None
            where the packing doesn't declare that.
        mentions: int8, how each piece stands to a mention of an entity: `BEGINS_MENTION`, `IN_MENTION`,
            `AFTER_MENTION` or 0; None where no mentions are looked for.
    """

    documents: list[np.ndarray]
    ids: np.ndarray
    word_starts: np.ndarray
    num_characters: np.ndarray | None = None
    mentions: np.ndarray | None = None

    def mentions_at(self, places: np.ndarray | slice) -> np.ndarray:
        """Returns `mentions` of some pieces, 0 where none are looked for."""
        return np.zeros_like(self.ids[places], np.int8) if self.mentions is None else self.mentions[places]

    def places_to_cut(self) -> list[np.ndarray]:
        """Returns which pieces may begin a part if the text is cut in two, as bool arrays, the best places first.

        A word starts there; at the best places, no mention goes on.
        """
        if self.mentions is None:
            return [self.word_starts]
        return [self.word_starts & (self.mentions != IN_MENTION), self.word_starts]


class Segments(typing.NamedTuple):
    """One example: pieces first_begin up to first_end, then second_begin up to second_end, in the order of the model.

    The second segment may be empty. `label` is 1 if it doesn't follow the first in the text.
    """

    first_begin: int
    first_end: int
    second_begin: int
    second_end: int
    label: int


class Packing:
    """How examples are made of sentences and documents.

    The builder, the readers, the statistics and the pictures of shards know a packing by this interface alone. A new
    one implements `arrange` or `make_segments` and adds a line to `PACKINGS`.

    Attributes:
        name: Its name in flags and manifests.
        name_in_identity: Its name in the identity of data, if it is another: runs have written it down.
        summary: What an example is, for people.
        features: Features of its records besides ids, mask, segments and borders of words: the length of each, None for
            one number a piece. The manifest declares them, and readers check them. The builder fills
            `LABEL_FEATURE` and `CHARACTERS_FEATURE`, and `further_features` the others.
        num_special_tokens: [CLS] and [SEP] that an example holds besides its pieces.
        adds_separators: Whether each segment gets a [SEP] at its end.
        masks_pieces: Whether masked pieces are learnt, so that held-out examples are masked when they are made;
            otherwise every piece but [CLS] is predicted, and an objective that masks does so when it reads.
        default_short_seq_prob: Share of examples with a random shorter target where nobody says it.
        separators_of_sentence: How many [SEP] `arrange` adds to each sentence.
        may_end_with_separator: Whether the last piece of a segment may be a [SEP], which is left out then: an example
            gets one at its end anyway.
        label_meanings: What the labels 0 and 1 of an example mean; empty where they mean nothing.
        segments_alternate: Whether every [SEP] ends a segment, and 0 and 1 alternate; otherwise there are at most two.
        takes_pairs: Whether it packs tables of a text and its translation, as documents with these two sentences.
        counted_of_corpus: What `select` counts.
        what_it_needs: What a corpus lacks that gives no example, and what to do.
    """

    name: str
    name_in_identity: str | None = None
    summary: str
    features: collections.abc.Mapping[str, int | None] = types.MappingProxyType({})
    num_special_tokens: int = 2
    adds_separators: bool = True
    masks_pieces: bool = True
    default_short_seq_prob: float = 0.1
    separators_of_sentence: int = 0
    may_end_with_separator: bool = False
    label_meanings: tuple[str, ...] = ()
    segments_alternate: bool = False
    takes_pairs: bool = False
    counted_of_corpus: tuple[str, ...] = ()
    what_it_needs: str = "no document contains a sentence; write one sentence a line"

    def max_num_pieces(self, max_seq_length: int) -> int:
        """Returns the room for pieces in an example."""
        return max_seq_length - self.num_special_tokens

    def part_of_long_sentence(self, longest: int) -> tuple[int, str]:
        """Returns how a sentence of more than `longest` pieces, which fits in no example, is cut between words.

        That is the pieces of a part, and "left" for at least, or "right" for at most so many.
        """
        return longest, "right"

    def of_one_language(self) -> "Packing":
        """Returns the packing of text that is no table of pairs, where this one takes pairs."""
        return self

    def select(self, documents: list[np.ndarray], max_num_pieces: int) -> tuple[list[np.ndarray], dict[str, int]]:
        """Returns the documents, as `Text` has them, that examples are made of, and counts of the others by name."""
        return documents, {}

    def arrange(self, text: Text, cls_id: int, sep_id: int, max_num_pieces: int, generator: random.Random) -> Text:
        """Returns the text that examples are cut from.

        Args:
            text: As it was read, at least one document; no sentence is empty or longer than fits.
            cls_id: Id of [CLS].
            sep_id: Id of [SEP].
            max_num_pieces: Room for pieces in an example.
            generator: Source of every draw.
        """
        return text

    def make_segments(
        self,
        text: Text,
        max_num_pieces: int,
        short_seq_prob: float,
        generator: random.Random,
        inside_sentences: collections.abc.Set[int] = frozenset(),
    ) -> collections.abc.Iterator[Segments]:
        """Cuts the text of `arrange` into examples; by default of one segment each, of whole sentences.

        Each example draws its own target length: `max_num_pieces`, or with `short_seq_prob` a uniform one from 2 up, so
        that the model also sees short input (original create_pretraining_data.py, which draws once a document).

        Args:
            text: The text.
            max_num_pieces: Room for the pieces of an example.
            short_seq_prob: Share of examples with a random shorter target.
            generator: Source of every draw.
            inside_sentences: Those borders that stand inside a sentence, which was too long for one example.
        """
        draw_target = target_lengths(max_num_pieces, short_seq_prob, generator)
        for borders in map(np.ndarray.tolist, text.documents):
            begin, last = 0, len(borders) - 1
            while begin < last:
                end = max(bisect.bisect_right(borders, borders[begin] + draw_target(), begin + 1) - 1, begin + 1)
                yield Segments(borders[begin], borders[end], borders[end], borders[end], 0)
                begin = end

    def further_features(self, features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the declared features that the builder doesn't fill.

        They are computed from int32 [N, S] `records.SEQUENCE_FEATURES` of some examples, before any mask.
        """
        return {}

    def count(self, features: dict[str, np.ndarray]) -> dict[str, int]:
        """Returns counts of some examples, int [N, ...], which are added up for the statistics."""
        return {}

    def describe(self, counts: dict[str, int]) -> dict[str, float]:
        """Returns further entries of a split in the manifest, given the sums of `count` and "examples"."""
        return {}

    def tell(self, split: dict[str, typing.Any]) -> str:
        """Returns what people are told of a split, given its entry in the manifest; "" for nothing."""
        return ""

    def blind_accuracy(self, split: dict[str, typing.Any], batch_size: int) -> float | None:
        """Returns how often a rule that reads no text answers the second loss rightly; None if nothing is asked.

        Args:
            split: The split's entry in the manifest.
            batch_size: Examples that are compared with one another.
        """
        return None


def target_lengths(
    max_num_pieces: int, short_seq_prob: float, generator: random.Random
) -> collections.abc.Callable[[], int]:

    def draw():
        if generator.random() < short_seq_prob:
            return 2 + int(generator.random() * (max_num_pieces - 1))
        return max_num_pieces

    return draw


def ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns begin, begin + 1, ... of every range, one range after the other, int64."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(begins - (ends - lengths), lengths)
