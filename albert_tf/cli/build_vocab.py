"""The command `build_vocab.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import os
import time

from absl import flags

from albert_tf.cli.corpus_flags import corpus_reader, define_corpus_flags
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.cli.tokenizer_flags import define_flags_of_new_tokenizer, load_tokenizer, tokenizer_settings
from albert_tf.corpus.reader import CorpusReader, describe_reading
from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.pretraining_data.build.source_files import find_sources, refuse_pairs
from albert_tf.pretraining_data.languages import sampling_shares
from albert_tf.progress_line import ProgressLine
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.building.morphemes import MORPHEME_CHOICES, has_kiwi, require_kiwi
from albert_tf.tokenization.building.report import format_table, measure
from albert_tf.tokenization.building.unused_slots import assign_unused
from albert_tf.tokenization.building.vocabulary_training import ALPHABET_CHOICES, required_characters, train_vocabulary
from albert_tf.tokenization.building.word_counting import count_words, join_counts, sample_numbers, take_numbers
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import UNUSED
from albert_tf.whole_folders import files_together

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    define_corpus_flags()
    flags.DEFINE_list(
        "languages",
        None,
        "The language of each path or glob of --input_file, as in ko,en; by default all text is one language.",
    )
    flags.DEFINE_float(
        "language_exponent",
        0.5,
        "The weight of a language is its share of the words raised to this power; with 1 languages count "
        "by their text, with 0 all equally. XLM has 0.5.",
    )
    flags.DEFINE_string("output_dir", None, "Folder for vocab.txt and tokenizer.json.")
    flags.DEFINE_integer("vocab_size", 32000, "Number of pieces, special tokens included.", lower_bound=6)
    flags.DEFINE_enum(
        "alphabet",
        "frequent",
        ALPHABET_CHOICES,
        "frequent: the --limit_alphabet most frequent characters of the text; basic: also all of ASCII and of the "
        "compatibility jamo; ks_x_1001: also the 2,350 common Hangul syllables; all: also all 11,172.",
    )
    flags.DEFINE_integer("limit_alphabet", 6000, "Number of characters to keep, the most frequent.", lower_bound=1)
    flags.DEFINE_integer("num_unused", 100, "Number of [unused] slots for pieces added later.", lower_bound=0)
    flags.DEFINE_integer("min_frequency", 2, "Minimum count of a pair of pieces to merge.", lower_bound=1)
    flags.DEFINE_bool("prune", True, "Replace pieces that the tokenizer never uses in the text.")
    flags.DEFINE_enum(
        "morphemes",
        "none",
        MORPHEME_CHOICES,
        "Where to split words before pieces are learnt, with kiwipiepy, which is not needed afterwards. "
        "kiwi: before josa and endings; noun_josa: between nouns and josa.",
    )
    flags.DEFINE_integer(
        "max_sentences",
        10_000_000,
        "Learn from a random sample of this many sentences if the text is longer.",
        lower_bound=1,
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed of that sample.", lower_bound=0)
    flags.DEFINE_bool("report", False, "Report what the vocabulary makes of the text: unknown words, pieces, josa.")
    flags.DEFINE_string("vocab_file", None, "With --report or --assign_unused: an existing vocabulary; none is built.")
    flags.DEFINE_string(
        "assign_unused",
        None,
        "Add these pieces to --vocab_file, in its [unused] slots first: comma-separated, or in a .txt file.",
    )
    flags.DEFINE_bool("overwrite", False, "Replace an existing vocabulary in --output_dir.")
    define_flags_of_new_tokenizer()


def sentences_of(reader, what):
    """Yields every sentence, and shows how far it is."""
    progress, started = ProgressLine(), time.monotonic()
    try:
        for sentence in reader.sentences():
            if progress.is_due:
                seconds = time.monotonic() - started
                progress.show(f"{what} {describe_reading(reader.num_bytes, reader.share_read, seconds)}")
            yield sentence
    finally:
        progress.finish()


def count_words_of(given, reader, settings):
    """Counts the words of all sentences, or of a sample; the first of two passes finds out how many there are."""
    numbers, num_sentences = sample_numbers(sentences_of(reader, "looked at"), given.max_sentences, given.random_seed)
    if len(numbers) < num_sentences:
        print(f"sampled {len(numbers):,} of {num_sentences:,} sentences (--max_sentences)")
    if reader.num_bad_lines:
        print(f"--on_bad_text={given.on_bad_text}: {reader.num_bad_lines:,} lines can't be read as they are")
    sentences = take_numbers(sentences_of(reader, "counted the words of"), numbers)
    return count_words(sentences, given.morphemes, report=print, **settings)


def count_words_of_languages(given, settings):
    """Counts the words of each language by itself, and returns them together, each as often as it is to count."""
    files, sources = find_sources(given.input_file, given.languages, takes_pairs=False)
    counts = {}
    for language in dict.fromkeys(sources):
        paths = [path for path, source in zip(files, sources) if source == language]
        counts[language] = count_words_of(given, CorpusReader(paths, given.on_bad_text, given.text_field), settings)
        if not counts[language]:
            raise InputError(f"--languages: there are no words in {language} ({', '.join(paths)}); give it some text")
    sizes = [words.total() for words in counts.values()]
    shares = sampling_shares(sizes, given.language_exponent)
    for language, size, share in zip(counts, sizes, shares):
        print(f"{language}: {size / sum(sizes):.1%} of the words, counted as {share:.1%}")
    return join_counts(list(counts.values()), shares)


def report(given, name, tokenizer):
    """Prints what a tokenizer makes of the text or of a sample of it."""
    if not has_kiwi():
        print("kiwipiepy is not installed, so nothing is said about josa; pip install kiwipiepy")
    reader = corpus_reader(given)
    numbers, _ = sample_numbers(sentences_of(reader, "looked at"), given.max_sentences, given.random_seed)
    print(format_table(name, measure(tokenizer, take_numbers(sentences_of(reader, "encoded"), numbers))))


def main():
    given = resolved_flags()
    if given.assign_unused is not None:
        fill_slots(given)
        return
    app.require(input_file=given.input_file)
    if given.vocab_file:
        if not given.report:
            raise InputError("--vocab_file goes with --report or --assign_unused; leave it out to build a vocabulary")
        if given.output_dir:
            raise InputError("--report of a --vocab_file is printed, and writes nothing; leave --output_dir out")
        report(given, given.vocab_file, load_tokenizer(given.vocab_file))
    else:
        build(given)


def prepare_output(given):
    """Checks that no vocabulary is in the way, and returns the paths of its files."""
    app.require(output_dir=given.output_dir)
    paths = [os.path.join(given.output_dir, name) for name in (VOCABULARY_FILE, TOKENIZER_FILE)]
    app.refuse_to_overwrite(paths, given.overwrite)
    return paths


def fill_slots(given):
    """Writes a vocabulary that has more pieces, in its [unused] slots and behind them all."""
    app.require(assign_unused=given.assign_unused, vocab_file=given.vocab_file)
    paths = prepare_output(given)
    if given.assign_unused.endswith(".txt"):
        pieces = [line.strip() for line in read_text(given.assign_unused, "the pieces").split("\n") if line.strip()]
    else:
        pieces = given.assign_unused.split(",")
    known = load_tokenizer(given.vocab_file)
    if not isinstance(known, KoreanWordPieceTokenizer):
        raise InputError(
            f"--assign_unused: {given.vocab_file} goes with SentencePiece, to which no pieces can be added"
        )
    tokenizer = assign_unused(known, pieces)
    with files_together(given.output_dir) as folder:
        tokenizer.save(folder)
    num_left = sum(UNUSED.fullmatch(piece) is not None for piece in tokenizer.vocabulary.pieces)
    num_behind = len(tokenizer) - len(known)
    told = (
        f"added {num_behind:,} behind, so that there are {len(tokenizer):,}" if num_behind else f"{num_left:,} are left"
    )
    print(f"gave {len(pieces) - num_behind:,} slots a piece, {told}; wrote {paths[0]}")


def build(given):
    paths = prepare_output(given)
    reader = corpus_reader(given)
    refuse_pairs(reader.paths, given.languages or [])
    if given.languages:
        sampling_shares([1], given.language_exponent)  # refuses it before the text is read
    if not given.languages and "language_exponent" in given.given:
        raise InputError("--language_exponent goes with --languages, of which it says how much each counts")
    settings = tokenizer_settings()
    require_kiwi(given.morphemes)
    if given.languages:
        word_counts = count_words_of_languages(given, settings)
    else:
        word_counts = count_words_of(given, reader, settings)
    vocabulary = train_vocabulary(
        word_counts,
        given.vocab_size,
        given.wordpiece_scheme,
        given.limit_alphabet,
        given.num_unused,
        given.min_frequency,
        given.prune,
        required_characters(given.alphabet, **settings),
    )
    tokenizer = KoreanWordPieceTokenizer(vocabulary, **settings)
    with files_together(given.output_dir) as folder:
        tokenizer.save(folder)
    if given.report:
        report(given, paths[0], tokenizer)
    print(
        f"read {word_counts.total():,} words, {len(word_counts):,} of them different; "
        f"wrote {len(vocabulary):,} pieces to {paths[0]}"
    )
    num_unused = sum(UNUSED.fullmatch(piece) is not None for piece in vocabulary.pieces)
    if num_unused > given.num_unused:
        print(
            f"{num_unused:,} of them are [unused], because the text has no more characters, nor parts of words that "
            f"occur --min_frequency={given.min_frequency} times; give more text, or lower --vocab_size"
        )


def run():
    """Runs the command."""
    app.run(main, define_flags, output_flag="output_dir")
