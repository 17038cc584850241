"""The command `build_vocab.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import os
import time

from absl import flags

from albert_tf.cli.tokenizer_flags import define_flags_of_new_tokenizer, load_tokenizer, tokenizer_settings
from albert_tf.corpus.reader import ON_BAD_TEXT_CHOICES, CorpusReader, describe_reading, find_corpus_files
from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.progress_line import ProgressLine
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.building.morphemes import MORPHEME_CHOICES, has_kiwi, require_kiwi
from albert_tf.tokenization.building.report import format_table, measure, write_report
from albert_tf.tokenization.building.unused_slots import assign_unused
from albert_tf.tokenization.building.vocabulary_training import ALPHABET_CHOICES, required_characters, train_vocabulary
from albert_tf.tokenization.building.word_counting import count_words, sample_numbers, take_numbers
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import UNUSED
from albert_tf.whole_folders import files_together

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_list(
        "input_file", None, "Text, .jsonl (both .gz too) or .parquet files; comma-separated paths, globs or folders."
    )
    flags.DEFINE_string("text_field", "text", "Field of .jsonl objects or column of .parquet files that holds text.")
    flags.DEFINE_string("output_dir", None, "Folder for vocab.txt and tokenizer.json.")
    flags.DEFINE_integer("vocab_size", 32000, "Number of pieces, special tokens included.", lower_bound=6)
    flags.DEFINE_enum(
        "alphabet",
        "frequent",
        ALPHABET_CHOICES,
        "frequent: the --limit_alphabet most frequent characters of the text; basic: also all of ASCII and of the "
        "compatibility jamo; all: also all 11,172 Hangul syllables.",
    )
    flags.DEFINE_integer("limit_alphabet", 6000, "Number of characters to keep, the most frequent.", lower_bound=1)
    flags.DEFINE_integer("num_unused", 100, "Number of [unused] slots for pieces added later.", lower_bound=0)
    flags.DEFINE_integer("min_frequency", 2, "Least count of a pair of pieces that is merged.", lower_bound=1)
    flags.DEFINE_bool("prune", True, "Replace pieces that the tokenizer uses nowhere in the text by the next ones.")
    flags.DEFINE_enum(
        "morphemes",
        "none",
        MORPHEME_CHOICES,
        "Where words are cut before pieces are learnt, by kiwipiepy, which nothing needs afterwards. kiwi: before josa "
        "and endings; noun_josa: between nouns and josa.",
    )
    flags.DEFINE_integer(
        "max_sentences", 10_000_000, "Of a longer text, learn from a random sample of so many sentences.", lower_bound=1
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed of that sample.", lower_bound=0)
    flags.DEFINE_enum("on_bad_text", "fail", ON_BAD_TEXT_CHOICES, "What to do with a line that can't be read.")
    flags.DEFINE_bool("report", False, "Report what the vocabulary makes of the text: unknown words, pieces, josa.")
    flags.DEFINE_list(
        "vocab_file", None, "With --report or --assign_unused: vocabularies that are there already; nothing is built."
    )
    flags.DEFINE_string(
        "assign_unused",
        None,
        "Give [unused] slots of --vocab_file these pieces: comma-separated, or in a .txt file.",
    )
    flags.DEFINE_bool("overwrite", False, "Replace a vocabulary that is in --output_dir already.")
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


def count_words_of(reader, settings):
    """Counts the words of all sentences, or of a sample; the first of two passes finds out how many there are."""
    numbers, num_sentences = sample_numbers(sentences_of(reader, "looked at"), FLAGS.max_sentences, FLAGS.random_seed)
    if len(numbers) < num_sentences:
        print(f"sampled {len(numbers):,} of {num_sentences:,} sentences (--max_sentences)")
    if reader.num_bad_lines:
        print(f"--on_bad_text={FLAGS.on_bad_text}: {reader.num_bad_lines:,} lines can't be read as they are")
    sentences = take_numbers(sentences_of(reader, "counted the words of"), numbers)
    return count_words(sentences, FLAGS.morphemes, report=print, **settings)


def corpus_reader():
    return CorpusReader(find_corpus_files(FLAGS.input_file, "input_file"), FLAGS.on_bad_text, FLAGS.text_field)


def report(tokenizers, folder):
    """Prints what each tokenizer, by name, makes of the text or of a sample of it, and writes it into a folder, if any.

    The folder is --output_dir, or one whose files come into that together.
    """
    if not has_kiwi():
        print("kiwipiepy is not installed, so nothing is said about josa; pip install kiwipiepy")
    reader = corpus_reader()
    numbers, _ = sample_numbers(sentences_of(reader, "looked at"), FLAGS.max_sentences, FLAGS.random_seed)
    reports = {
        name: measure(tokenizer, take_numbers(sentences_of(reader, "encoded"), numbers))
        for name, tokenizer in tokenizers.items()
    }
    print(format_table(reports))
    if folder:
        names = map(os.path.basename, write_report(folder, reports))
        print("wrote " + " and ".join(os.path.join(FLAGS.output_dir, name) for name in names))


def main():
    if FLAGS.assign_unused is not None:
        fill_slots()
        return
    app.require(input_file=FLAGS.input_file)
    if FLAGS.vocab_file:
        if not FLAGS.report:
            raise InputError("--vocab_file goes with --report or --assign_unused; leave it out to build a vocabulary")
        report({path: load_tokenizer(path) for path in FLAGS.vocab_file}, FLAGS.output_dir)
    else:
        build()


def prepare_output():
    """Checks that no vocabulary is in the way, and returns the paths of its files."""
    app.require(output_dir=FLAGS.output_dir)
    paths = [os.path.join(FLAGS.output_dir, name) for name in (VOCABULARY_FILE, TOKENIZER_FILE)]
    app.refuse_to_overwrite(paths, FLAGS.overwrite)
    return paths


def fill_slots():
    """Writes a vocabulary in which [unused] slots have become pieces."""
    app.require(assign_unused=FLAGS.assign_unused, vocab_file=FLAGS.vocab_file)
    if len(FLAGS.vocab_file) > 1:
        raise InputError("--assign_unused takes one --vocab_file")
    paths = prepare_output()
    if FLAGS.assign_unused.endswith(".txt"):
        pieces = [line.strip() for line in read_text(FLAGS.assign_unused, "the pieces").split("\n") if line.strip()]
    else:
        pieces = FLAGS.assign_unused.split(",")
    tokenizer = assign_unused(load_tokenizer(FLAGS.vocab_file[0]), pieces)
    with files_together(FLAGS.output_dir) as folder:
        tokenizer.save(folder)
    num_left = sum(UNUSED.fullmatch(piece) is not None for piece in tokenizer.vocabulary.pieces)
    print(f"gave {len(pieces):,} slots a piece, {num_left:,} are left; wrote {paths[0]}")


def build():
    paths = prepare_output()
    reader = corpus_reader()
    settings = tokenizer_settings()
    require_kiwi(FLAGS.morphemes)
    word_counts = count_words_of(reader, settings)
    vocabulary = train_vocabulary(
        word_counts,
        FLAGS.vocab_size,
        FLAGS.wordpiece_scheme,
        FLAGS.limit_alphabet,
        FLAGS.num_unused,
        FLAGS.min_frequency,
        FLAGS.prune,
        required_characters(FLAGS.alphabet, **settings),
    )
    tokenizer = KoreanWordPieceTokenizer(vocabulary, **settings)
    with files_together(FLAGS.output_dir) as folder:
        tokenizer.save(folder)
        if FLAGS.report:
            report({paths[0]: tokenizer}, folder)
    print(
        f"read {word_counts.total():,} words, {len(word_counts):,} of them different; "
        f"wrote {len(vocabulary):,} pieces to {paths[0]}"
    )
    num_unused = sum(UNUSED.fullmatch(piece) is not None for piece in vocabulary.pieces)
    if num_unused > FLAGS.num_unused:
        print(
            f"{num_unused:,} of them are [unused], because the text has no more characters, nor parts of words that "
            f"occur --min_frequency={FLAGS.min_frequency} times; give more text, or lower --vocab_size"
        )


def run():
    """Runs the command."""
    app.run(main, define_flags, output_flag="output_dir")
