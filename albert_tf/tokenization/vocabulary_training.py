"""Learning a WordPiece vocabulary from text, by byte-pair merges of the `tokenizers` library."""

import collections
import collections.abc
import itertools

from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary, is_reserved
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

_LINES_PER_BATCH = 8192

# Code points of which some stand, while merges are learnt, for the characters that a word begins with.
_PRIVATE_USE = range(0xF0000, 0x10FFFE)


def count_words(lines: collections.abc.Iterable[str], **tokenizer_settings) -> collections.Counter:
    """Counts the words of a text, normalised and split as the tokenizer will do it.

    Args:
        lines: Any strings.
        **tokenizer_settings: As for `KoreanWordPieceTokenizer`.
    """
    splitter = KoreanWordPieceTokenizer(Vocabulary([UNK]), **tokenizer_settings)
    counts = collections.Counter()
    lines = iter(lines)
    while batch := list(itertools.islice(lines, _LINES_PER_BATCH)):
        counts.update(splitter.split_words(batch).flat_values.numpy().tolist())
    return collections.Counter({word.decode(): count for word, count in counts.items()})


def train_vocabulary(
    word_counts: collections.Counter,
    vocab_size: int,
    wordpiece_scheme: str = "continuation",
    limit_alphabet: int = 6000,
    num_unused: int = 100,
    min_frequency: int = 2,
) -> Vocabulary:
    """Learns a vocabulary of exactly `vocab_size` pieces.

    In order: special tokens with [PAD] = 0, [unused0], [unused1], ..., the alphabet, merges from the most frequent on.
    Every character of the alphabet is a piece at the start of a word and inside one, so a word is unknown only if it
    holds a character outside it. Where the text yields too few merges, further [unused] slots fill up the size. The
    same counts and settings give the same vocabulary.

    Args:
        word_counts: How often each word occurs.
        vocab_size: Number of pieces.
        wordpiece_scheme: "continuation" or "end_of_word".
        limit_alphabet: How many characters, the most frequent, make the alphabet.
        num_unused: Least number of [unused] slots.
        min_frequency: Pairs that occur less often are not merged.

    Raises:
        InputError: There are no words, or `vocab_size` can't hold the alphabet.
    """
    if not word_counts:
        raise InputError("the text holds no words to build a vocabulary from")
    alphabet = _alphabet(word_counts, limit_alphabet)
    prefix = CONTINUATION_PREFIX if wordpiece_scheme == "continuation" else ""
    characters = alphabet + [prefix + character for character in alphabet] if prefix else alphabet
    num_reserved = len(SPECIAL_TOKENS) + num_unused
    room = vocab_size - num_reserved - len(characters)
    if room < 0:
        raise InputError(
            f"--vocab_size={vocab_size} can't hold {len(characters)} single characters and {num_reserved} reserved "
            f"pieces; raise it to at least {num_reserved + len(characters)}, or lower --limit_alphabet or --num_unused"
        )
    merges = _learn_merges(word_counts, alphabet, prefix, room, min_frequency)
    num_unused += room - len(merges)
    unused = [f"[unused{index}]" for index in range(num_unused)]
    return Vocabulary([*SPECIAL_TOKENS, *unused, *characters, *merges])


def _alphabet(word_counts, limit_alphabet):
    counts = collections.Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    most_frequent = sorted(counts, key=lambda character: (-counts[character], character))[:limit_alphabet]
    return sorted(most_frequent)


def _learn_merges(word_counts, alphabet, prefix, room, min_frequency):
    """Returns up to `room` pieces of two characters and more, the most frequent merge first.

    In the continuation scheme a character at the start of a word and the same inside one are different symbols. They
    are told apart by private-use characters rather than by the library's own prefix option, whose ids, and with them
    the ties between merges, depend on the order of a hash table.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    known = set(alphabet)
    stand_ins = (chr(code_point) for code_point in _PRIVATE_USE if chr(code_point) not in known)
    initials = dict(zip(alphabet, stand_ins)) if prefix else {}
    originals = {initial: character for character, initial in initials.items()}
    words = sorted(word for word in word_counts if known.issuperset(word))

    def spelled_words():
        for word in words:
            spelled = initials.get(word[0], word[0]) + word[1:]
            yield from itertools.repeat(spelled, word_counts[word])

    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=len(known) + len(initials) + room, min_frequency=min_frequency, show_progress=False
    )
    learner.train_from_iterator(spelled_words(), trainer)
    merges = []
    for symbols, _ in sorted(learner.get_vocab().items(), key=lambda item: item[1]):
        begins_word = symbols[0] in originals
        piece = originals[symbols[0]] + symbols[1:] if begins_word else prefix + symbols
        # Text may spell "[MASK]" or start with "##"; no text may turn into such a piece.
        if len(symbols) > 1 and not is_reserved(piece) and not (begins_word and piece.startswith(prefix)):
            merges.append(piece)
    return merges[:room]
