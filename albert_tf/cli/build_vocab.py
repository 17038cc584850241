"""The command `build_vocab.py`."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import itertools
import os
import time

from albert_tf.base.console import ProgressLine, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_text, refuse_to_overwrite
from albert_tf.base.folders import files_together
from albert_tf.base.settings import MODEL, TRAINING, changed, setting
from albert_tf.pretraining_data.languages import find_sources, refuse_pairs, sampling_shares
from albert_tf.reading.documents import CorpusReader, describe_reading
from albert_tf.runs.settings.data import CorpusSettings
from albert_tf.runs.settings.tokenizer import TokenizerSettings
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import UNUSED
from albert_tf.tokenization.vocabulary_report import assign_unused, format_table, measure
from albert_tf.tokenization.vocabulary_training import (
    ALPHABET_CHOICES,
    MORPHEME_CHOICES,
    count_words,
    has_kiwi,
    join_counts,
    require_kiwi,
    required_characters,
    sample_numbers,
    standalone_characters,
    take_numbers,
    train_vocabulary,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularySettings(CorpusSettings, TokenizerSettings):
    """The text of a vocabulary, and how it is made; or one that is to be looked at or filled up."""

    languages: tuple[str, ...] | None = setting(
        None, "The language of each path or glob of --input_file, as in ko,en; by default all text is one language."
    )
    language_exponent: float = setting(
        0.5,
        "The weight of a language is its share of the words raised to this power; with 1 languages count by their "
        "text, with 0 all equally. XLM has 0.5.",
    )
    output_dir: str | None = setting(None, "Folder for vocab.txt and tokenizer.json.", group=MODEL)
    vocab_size: int = setting(32000, "Number of pieces, special tokens included.", least=6)
    alphabet: str = setting(
        "frequent",
        "frequent: the --limit_alphabet most frequent characters of the text; basic: also all of ASCII and of the "
        "compatibility jamo; ks_x_1001: also the 2,350 common Hangul syllables; all: also all 11,172.",
        choices=ALPHABET_CHOICES,
    )
    limit_alphabet: int = setting(6000, "Number of characters to keep, the most frequent.", least=1)
    num_unused: int = setting(100, "Number of [unused] slots for pieces added later.", least=0)
    min_frequency: int = setting(2, "Minimum count of a pair of pieces to merge.", least=1)
    prune: bool = setting(True, "Replace pieces that the tokenizer never uses in the text.")
    morphemes: str = setting(
        "none",
        "Where to split words before pieces are learnt, with kiwipiepy, which is not needed afterwards. kiwi: before "
        "josa and endings; noun_josa: between nouns and josa.",
        choices=MORPHEME_CHOICES,
    )
    max_sentences: int = setting(
        10_000_000, "Learn from a random sample of this many sentences if the text is longer.", least=1
    )
    random_seed: int = setting(12345, "Seed of that sample.", least=0, group=TRAINING)
    report: bool = setting(False, "Report what the vocabulary makes of the text: unknown words, pieces, josa.")
    vocab_file: str | None = setting(None, "With --report or --assign_unused: an existing vocabulary; none is built.")
    assign_unused: str | None = setting(
        None, "Add these pieces to --vocab_file, in its [unused] slots first: comma-separated, or in a .txt file."
    )
    overwrite: bool = setting(False, "Replace an existing vocabulary in --output_dir.")
    # Here they matter: elsewhere the files of a vocabulary say them.
    do_lower_case: bool = changed(group="")
    strip_accents: bool = changed(group="")
    squeeze_repeats: bool = changed(group="")
    full_width_to_ascii: bool = changed(group="")
    keep_emoji: bool = changed(group="")
    split_punctuation: bool = changed(group="")
    split_digits: bool = changed(group="")
    # Off for vocabularies that were made before there was such a setting.
    split_emoji: bool = changed(True, group="")
    wordpiece_scheme: str = changed(group="")


def sentences_of(reader, what):
    """Yields every sentence, and shows the progress."""
    progress, started = ProgressLine(), time.monotonic()
    try:
        for sentence in reader.sentences():
            if progress.is_due:
                seconds = time.monotonic() - started
                progress.show(f"{what} {describe_reading(reader.num_bytes, reader.share_read, seconds)}")
            yield sentence
    finally:
        progress.finish()


def count_words_of(settings, reader):
    """Counts the words of all sentences, or of a sample; the first of two passes finds out how many there are."""
    numbers, num_sentences = sample_numbers(
        sentences_of(reader, "looked at"), settings.max_sentences, settings.random_seed
    )
    if len(numbers) < num_sentences:
        tell(f"sampled {len(numbers):,} of {num_sentences:,} sentences (`max_sentences`)")
    if reader.num_bad_lines:
        tell(f"`on_bad_text={settings.on_bad_text}`: {reader.num_bad_lines:,} lines can't be read as they are")
    sentences = take_numbers(sentences_of(reader, "counted the words of"), numbers)
    return count_words(sentences, settings.morphemes, report=tell, **settings.of_tokenizer())


def count_words_of_languages(settings):
    """Returns the counts of the words of all languages, weighted by the share of each."""
    files, sources = find_sources(settings.input_file, settings.languages, takes_pairs=False)
    counts = {}
    for language in dict.fromkeys(sources):
        paths = [path for path, source in zip(files, sources) if source == language]
        reader = CorpusReader(paths, settings.on_bad_text, settings.text_field)
        counts[language] = count_words_of(settings, reader)
        if not counts[language]:
            raise InputError(f"`languages`: there are no words in {language} ({', '.join(paths)}); give it some text")
    sizes = [words.total() for words in counts.values()]
    shares = sampling_shares(sizes, settings.language_exponent)
    for language, size, share in zip(counts, sizes, shares):
        print(f"{language}: {size / sum(sizes):.1%} of the words, counted as {share:.1%}")
    return join_counts(list(counts.values()), shares)


def report(settings, name, tokenizer):
    """Prints measurements of a tokenizer on the text or on a sample of it."""
    if not has_kiwi():
        print("kiwipiepy is not installed, so nothing is said about josa; pip install kiwipiepy")
    reader = settings.corpus_reader()
    numbers, _ = sample_numbers(sentences_of(reader, "looked at"), settings.max_sentences, settings.random_seed)
    print(format_table(name, measure(tokenizer, take_numbers(sentences_of(reader, "encoded"), numbers))))


@command(VocabularySettings, output_flag="output_dir")
def build_vocab(settings):
    """The command `build_vocab.py`."""
    if settings.assign_unused is not None:
        fill_slots(settings)
        return
    settings.require("input_file")
    if settings.vocab_file:
        if not settings.report:
            raise InputError("`vocab_file` goes with `report` or `assign_unused`; leave it out to build a vocabulary")
        if settings.output_dir:
            raise InputError("`report` of a `vocab_file` is printed, and writes nothing; leave `output_dir` out")
        report(settings, settings.vocab_file, settings.load_wordpiece(settings.vocab_file))
    else:
        build(settings)


def prepare_output(settings):
    """Checks that no vocabulary is in the way; returns the paths of its files."""
    settings.require("output_dir")
    paths = [os.path.join(settings.output_dir, name) for name in (VOCABULARY_FILE, TOKENIZER_FILE)]
    refuse_to_overwrite(paths, settings.overwrite)
    return paths


def fill_slots(settings):
    """Writes a vocabulary with more pieces, in its [unused] slots and, if these run out, at its end."""
    settings.require("assign_unused", "vocab_file")
    paths = prepare_output(settings)
    if settings.assign_unused.endswith(".txt"):
        pieces = [line.strip() for line in read_text(settings.assign_unused, "the pieces").split("\n") if line.strip()]
    else:
        pieces = settings.assign_unused.split(",")
    known = settings.load_wordpiece(settings.vocab_file)
    if not isinstance(known, KoreanWordPieceTokenizer):
        raise InputError(f"`assign_unused`: no pieces can be added to {settings.vocab_file}, of SentencePiece")
    tokenizer = assign_unused(known, pieces)
    with files_together(settings.output_dir) as folder:
        tokenizer.save(folder)
    num_left = sum(UNUSED.fullmatch(piece) is not None for piece in tokenizer.vocabulary.pieces)
    num_behind = len(tokenizer) - len(known)
    told = (
        f"added {num_behind:,} behind, so that there are {len(tokenizer):,}" if num_behind else f"{num_left:,} are left"
    )
    print(f"gave {len(pieces) - num_behind:,} slots a piece, {told}; wrote {paths[0]}")


def build(settings):
    paths = prepare_output(settings)
    reader = settings.corpus_reader()
    refuse_pairs(reader.paths, settings.languages or ())
    if settings.languages:
        sampling_shares([1], settings.language_exponent)  # refuses it before the text is read
    if not settings.languages and "language_exponent" in settings.given:
        raise InputError("`language_exponent` goes with `languages`, of which it says how much each counts")
    require_kiwi(settings.morphemes)
    word_counts = count_words_of_languages(settings) if settings.languages else count_words_of(settings, reader)
    required = required_characters(settings.alphabet, **settings.of_tokenizer())
    vocabulary = train_vocabulary(
        word_counts,
        settings.vocab_size,
        settings.wordpiece_scheme,
        settings.limit_alphabet,
        settings.num_unused,
        settings.min_frequency,
        settings.prune,
        required,
        standalone_characters(required.union(itertools.chain.from_iterable(word_counts)), **settings.of_tokenizer()),
    )
    tokenizer = KoreanWordPieceTokenizer(vocabulary, **settings.of_tokenizer())
    with files_together(settings.output_dir) as folder:
        tokenizer.save(folder)
    if settings.report:
        report(settings, paths[0], tokenizer)
    print(
        f"read {word_counts.total():,} words, {len(word_counts):,} of them different; "
        f"wrote {len(vocabulary):,} pieces to {paths[0]}"
    )
    num_unused = sum(UNUSED.fullmatch(piece) is not None for piece in vocabulary.pieces)
    if num_unused > settings.num_unused:
        tell(
            f"{num_unused:,} of them are [unused], because the text has no more characters, nor parts of words that "
            f"occur `min_frequency={settings.min_frequency}` times; give more text, or lower `vocab_size`"
        )
