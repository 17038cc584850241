"""Learning a WordPiece vocabulary from counted words, by byte-pair merges of the `tokenizers` library."""

import collections
import collections.abc
import functools
import importlib.util
import itertools
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary, is_reserved
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, MAX_BYTES_PER_WORD, WordPiece, fits

# Borders between stems and what follows them, found by kiwipiepy while a vocabulary is built; never at run time.
#
# 영화는 is 영화 and the josa 는; 먹었다 is 먹 and the ending 었다. No syllable is cut (갔다: 가 and 았다).

MORPHEME_CHOICES = ("none", "kiwi", "noun_josa")

# Marks a border inside a word. Unicode bars this code point from text, and normalisation leaves it where it is.
BORDER = "\ufdd0"

_COPULA = "VCP"
# Suffixes of nouns, numbers, Latin letters and Han characters: what carries josa like a noun.
_LIKE_NOUNS = {"XSN", "SN", "SL", "SH"}


def has_kiwi() -> bool:
    return importlib.util.find_spec("kiwipiepy") is not None


def require_kiwi(morphemes: str) -> None:
    if morphemes != "none" and not has_kiwi():
        raise InputError(
            f"`morphemes={morphemes}` needs kiwipiepy, which is not installed; pip install kiwipiepy, or leave out the "
            "flag"
        )


class MorphemeBorders:
    """Finds borders on the text as it is written, not on kiwi's normalised forms; raises InputError without kiwipiepy.

    "kiwi" marks them before josa, endings and the copula 이다; "noun_josa" only between a noun and a josa.
    """

    def __init__(self, morphemes: str):
        require_kiwi(morphemes)
        self._is_border = _is_border if morphemes == "kiwi" else _is_noun_josa_border
        self._kiwi = _load_kiwi()

    def mark(self, lines: list[str]) -> list[str]:
        """Returns the lines, composed (NFC), with `BORDER` at every border."""
        lines = [unicodedata.normalize("NFC", line.replace(BORDER, "")) for line in lines]
        # Kiwi is by far the slowest part: it gets each line that holds Hangul once.
        korean = [line for line in dict.fromkeys(lines) if any("가" <= character <= "힣" for character in line)]
        marked = {line: self._mark(line, tokens) for line, tokens in zip(korean, self._kiwi.tokenize(korean))}
        return [marked.get(line, line) for line in lines]

    def _mark(self, line, tokens):
        parts, begin = [], 0
        for left, right in itertools.pairwise(tokens):
            position = right.start
            meets = left.start + left.len == position and begin < position < len(line)
            if meets and "가" <= line[position] <= "힣" and self._is_border(left.tag, right.tag):
                parts.append(line[begin:position])
                begin = position
        return BORDER.join([*parts, line[begin:]])


@functools.cache
def _load_kiwi():
    from kiwipiepy import Kiwi

    return Kiwi()


def _is_border(left, right):
    if right.startswith("J"):
        return not left.startswith("J")
    return (right.startswith("E") or right == _COPULA) and not (left.startswith(("J", "E")) or left == _COPULA)


def _is_noun_josa_border(left, right):
    return right.startswith("J") and (left.startswith("N") or left in _LIKE_NOUNS)


# Counting the words of a text of any size in bounded memory, to learn a vocabulary from.

MAX_DIFFERENT_WORDS = 5_000_000

_LINES_PER_BATCH = 8192


def sample_numbers(
    lines: collections.abc.Iterable[str], max_lines: int, random_seed: int = 12345
) -> tuple[np.ndarray, int]:
    """Draws a uniform sample (reservoir sampling); returns its int64 line numbers, ascending, and the number of all."""
    random = np.random.default_rng(random_seed)
    reservoir = np.arange(max_lines)
    lines, total = iter(lines), 0
    while count := sum(1 for _ in itertools.islice(lines, _LINES_PER_BATCH)):
        numbers = np.arange(max(total, max_lines), total + count)
        # Line n stays with probability max_lines / (n + 1), in the place of any that was there.
        places = random.integers(0, numbers + 1)
        stays = places < max_lines
        reservoir[places[stays]] = numbers[stays]
        total += count
    return np.sort(reservoir[:total]), total


def take_numbers(lines: collections.abc.Iterable[str], numbers: np.ndarray) -> collections.abc.Iterator[str]:
    """Yields the lines that `sample_numbers` drew."""
    lines, position = iter(lines), 0
    for number in numbers:
        yield from itertools.islice(lines, int(number) - position, int(number) - position + 1)
        position = int(number) + 1


def count_words(
    lines: collections.abc.Iterable[str],
    morphemes: str = "none",
    max_different_words: int = MAX_DIFFERENT_WORDS,
    report=lambda line: None,
    **tokenizer_settings,
) -> collections.Counter:
    """Counts the words of a text, normalised and split as a tokenizer of the settings will do it.

    Unless `morphemes` is "none", words hold `BORDER` where merges must not cross. With more than `max_different_words`,
    the rarest so far are forgotten until half as many are left, and `report` is called with a line of text.
    """
    splitter = KoreanWordPieceTokenizer(Vocabulary([UNK]), **tokenizer_settings)
    borders = None if morphemes == "none" else MorphemeBorders(morphemes)
    counts = collections.Counter()
    lines = iter(lines)
    while batch := list(itertools.islice(lines, _LINES_PER_BATCH)):
        if borders:
            batch = borders.mark(batch)
        counts.update(splitter.split_words(batch).flat_values.numpy().tolist())
        if len(counts) > max_different_words:
            counts = _forget_rarest(counts, max_different_words // 2, report)
    words = collections.Counter()
    while counts:
        word, count = counts.popitem()
        # Splitting at punctuation may leave a border at an end of a word, where it says nothing.
        word = BORDER.join(part for part in word.decode().split(BORDER) if part)
        if word:
            words[word] += count
    return words


def join_counts(counts: list[collections.Counter], shares: list[float]) -> collections.Counter:
    """Returns the words of several texts together, as if each were its share of all; the shares add up to 1."""
    factors = [share / text.total() for text, share in zip(counts, shares)]
    joined = collections.Counter()
    for text, factor in zip(counts, factors):
        joined.update({word: round(count * factor / min(factors)) for word, count in text.items()})
    return joined


def _forget_rarest(counts, size, report):
    least = 1
    before = len(counts)
    while len(counts) > size:
        least += 1
        counts = collections.Counter({word: count for word, count in counts.items() if count >= least})
    report(f"forgot {before - len(counts):,} of {before:,} different words, those seen less than {least} times so far")
    return counts


_ASCII = range(ord("!"), ord("~") + 1)
_COMPATIBILITY_JAMO = (*range(0x3131, 0x3164), *range(0x3165, 0x318F))  # U+3164 is a filler, not a letter
_SYLLABLES = range(ord("가"), ord("힣") + 1)
# Those of KS X 1001, which are nearly all that people write; the codec spells any other by its letters, in eight bytes.
_COMMON_SYLLABLES = [code for code in _SYLLABLES if len(chr(code).encode("euc_kr")) == 2]
_ALPHABETS = {
    "frequent": (),
    "basic": (*_ASCII, *_COMPATIBILITY_JAMO),
    "ks_x_1001": (*_ASCII, *_COMPATIBILITY_JAMO, *_COMMON_SYLLABLES),
    "all": (*_ASCII, *_COMPATIBILITY_JAMO, *_SYLLABLES),
}
ALPHABET_CHOICES = tuple(_ALPHABETS)

# Code points of which some stand, while merges are learnt, for the characters that a word begins with.
_PRIVATE_USE = range(0xF0000, 0x10FFFE)

_WORDS_PER_BATCH = 100_000
_WORDS_PER_STRING = 1000


def required_characters(alphabet: str, **tokenizer_settings) -> set[str]:
    """Returns the characters that are pieces in any case, as the tokenizer of these settings normalises them.

    By alphabet these are for "frequent" none; "basic" printable ASCII and all compatibility jamo (ㄱ, ㅏ, ㅋ, ...);
    "ks_x_1001" these and the 2,350 syllables of KS X 1001; "all" these and all 11,172 Hangul syllables.
    """
    return set("".join(count_words([" ".join(map(chr, _ALPHABETS[alphabet]))], **tokenizer_settings)))


def standalone_characters(characters: collections.abc.Iterable[str], **tokenizer_settings) -> set[str]:
    """Returns those that the tokenizer never has inside a word, such as ideographs and punctuation."""
    # After a letter, and joined to an emoji: both are one word where the character can be inside one.
    words = count_words((f"ㅋ{character} 👨\u200d{character}" for character in characters), **tokenizer_settings)
    return set(characters).difference(*(word[1:] for word in words))


def train_vocabulary(
    word_counts: collections.Counter,
    vocab_size: int,
    wordpiece_scheme: str = "continuation",
    limit_alphabet: int = 6000,
    num_unused: int = 100,
    min_frequency: int = 2,
    prune: bool = True,
    required: collections.abc.Set[str] = frozenset(),
    standalone: collections.abc.Set[str] = frozenset(),
) -> Vocabulary:
    """Learns a vocabulary of exactly `vocab_size` pieces.

    In order: special tokens with [PAD] = 0, [unused0], [unused1], ..., the alphabet, merges from the most frequent on.
    Every character of the alphabet is a piece at the start of a word and, but for the `standalone` ones, inside one, so
    a word is unknown only if it holds a character outside it. Where the text yields too few merges, further [unused]
    slots fill up the size. The same counts and settings give the same vocabulary.

    Merges never cross a `BORDER` in a word, and pairs that occur less often than `min_frequency` are not merged. The
    alphabet is the `limit_alphabet` most frequent characters of the text, and those `required`. With `prune`, merges
    that are only steps to longer ones, so that the tokenizer uses them for no word of the text, give way to the next
    ones. Raises InputError if there are no words, or `vocab_size` can't hold the alphabet.
    """
    if not word_counts:
        raise InputError("the text contains no words to build a vocabulary from")
    alphabet = sorted(required.union(_most_frequent_characters(word_counts, limit_alphabet)))
    prefix = CONTINUATION_PREFIX if wordpiece_scheme == "continuation" else ""
    inside = [prefix + character for character in alphabet if character not in standalone] if prefix else []
    characters = alphabet + inside
    num_reserved = len(SPECIAL_TOKENS) + num_unused
    room = vocab_size - num_reserved - len(characters)
    if room < 0:
        raise InputError(
            f"`vocab_size={vocab_size}` can't hold {len(characters)} single characters and {num_reserved} reserved "
            f"pieces; raise it to at least {num_reserved + len(characters)}, or lower `limit_alphabet` or `num_unused`"
        )
    segment_counts = _count_segments(word_counts, set(alphabet))

    def learn(num_merges):
        return _learn_merges(segment_counts, alphabet, prefix, num_merges, min_frequency)

    merges = _used_merges(word_counts, characters, wordpiece_scheme, learn, room) if prune else learn(room)
    num_unused += room - len(merges)
    unused = [f"[unused{index}]" for index in range(num_unused)]
    return Vocabulary([*SPECIAL_TOKENS, *unused, *characters, *merges])


def _most_frequent_characters(word_counts, limit_alphabet):
    counts = collections.Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    del counts[BORDER]
    return sorted(counts, key=lambda character: (-counts[character], character))[:limit_alphabet]


def _count_segments(word_counts, known):
    """Returns how often each (begins a word, part of a word between borders) occurs in words of known characters."""
    counts = collections.Counter()
    for word, count in word_counts.items():
        segments = word.split(BORDER)
        text = "".join(segments)
        if known.issuperset(text) and len(text.encode()) <= MAX_BYTES_PER_WORD:
            for number, segment in enumerate(segments):
                counts[number == 0, segment] += count
    return counts


def _learn_merges(segment_counts, alphabet, prefix, num_merges, min_frequency):
    """Returns up to `num_merges` pieces of two characters and more, the most frequent merge first.

    In the continuation scheme a character at the start of a word is another symbol than inside one. Private-use
    characters mark them: with the library's own prefix option, ties depend on the order of a hash table.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    known = set(alphabet)
    stand_ins = (chr(code_point) for code_point in _PRIVATE_USE if chr(code_point) not in known)
    initials = dict(zip(alphabet, stand_ins)) if prefix else {}
    originals = {initial: character for character, initial in initials.items()}

    def spelled_segments():
        for (begins_word, segment), count in sorted(segment_counts.items()):
            spelled = initials.get(segment[0], segment[0]) + segment[1:] if begins_word else segment
            # Many at a time: the library takes longer to fetch a string than to count a word in it.
            for begin in range(0, count, _WORDS_PER_STRING):
                yield " ".join(itertools.repeat(spelled, min(_WORDS_PER_STRING, count - begin)))

    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=len(known) + len(initials) + num_merges, min_frequency=min_frequency, show_progress=False
    )
    learner.train_from_iterator(spelled_segments(), trainer)
    merges = []
    for symbols, _ in sorted(learner.get_vocab().items(), key=lambda item: item[1]):
        begins_word = symbols[0] in originals
        piece = originals[symbols[0]] + symbols[1:] if begins_word else prefix + symbols
        # Text may spell "[MASK]" or start with "##"; no text may turn into such a piece.
        is_spelled_as_reserved = is_reserved(piece) or (begins_word and piece.startswith(prefix))
        if len(symbols) > 1 and not is_spelled_as_reserved and fits(piece.removeprefix(prefix)):
            merges.append(piece)
    return merges[:num_merges]


def _used_merges(word_counts, characters, wordpiece_scheme, learn, room):
    """Returns up to `room` merges, in order, each of which the tokenizer uses for some word of the text."""
    words = sorted({word.replace(BORDER, "") for word in word_counts})
    num_learnt, before = room + room // 2, None
    while True:
        merges = learn(num_learnt)
        kept, position = [], 0
        while len(kept) < room and position < len(merges):
            # Dropping what is never used changes no word's pieces; what comes in may leave others without use.
            candidates = kept + merges[position : position + room - len(kept)]
            position += room - len(kept)
            kept = _used_pieces(words, candidates, characters, wordpiece_scheme)
        if len(kept) == room or len(merges) == before:
            return kept
        num_learnt, before = 2 * num_learnt, len(merges)


def _used_pieces(words, merges, characters, wordpiece_scheme):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *characters, *merges])
    engine = WordPiece(vocabulary, wordpiece_scheme)
    is_used = np.zeros(len(vocabulary), bool)
    for begin in range(0, len(words), _WORDS_PER_BATCH):
        batch = words[begin : begin + _WORDS_PER_BATCH]
        ids = engine.tokenize(tf.RaggedTensor.from_row_lengths(tf.constant(batch), [len(batch)]))
        is_used[ids.flat_values.numpy()] = True
    return [piece for piece in merges if is_used[vocabulary.id_of(piece)]]
