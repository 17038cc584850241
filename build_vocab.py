"""Builds a Korean WordPiece vocabulary from text: vocab.txt and tokenizer.json in --output_dir.

python build_vocab.py --input_file=corpus/*.txt --output_dir=vocab --vocab_size=32000
"""

from albert_tf import command_line  # first: it keeps TensorFlow quiet at its start

# isort: split
import os

from absl import flags

from albert_tf.files import match_files
from albert_tf.pretraining_data.corpus import ON_BAD_TEXT_CHOICES, CorpusReader
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary_training import count_words, train_vocabulary

FLAGS = flags.FLAGS

flags.DEFINE_list("input_file", None, "Text files, .gz too; comma-separated paths or globs.")
flags.DEFINE_string("output_dir", None, "Folder for vocab.txt and tokenizer.json.")
flags.DEFINE_integer("vocab_size", 32000, "Number of pieces, special tokens included.", lower_bound=6)
flags.DEFINE_integer("limit_alphabet", 6000, "Number of single characters to keep, the most frequent.", lower_bound=1)
flags.DEFINE_integer("num_unused", 100, "Number of [unused] slots for pieces added later.", lower_bound=0)
flags.DEFINE_integer("min_frequency", 2, "Least count of a pair of pieces that is merged.", lower_bound=1)
flags.DEFINE_enum("on_bad_text", "fail", ON_BAD_TEXT_CHOICES, "What to do with a line that is not UTF-8.")
flags.DEFINE_bool("overwrite", False, "Replace a vocabulary that is in --output_dir already.")
command_line.define_tokenizer_flags()


def main():
    command_line.require(input_file=FLAGS.input_file, output_dir=FLAGS.output_dir)
    command_line.refuse_sentencepiece()
    paths = [os.path.join(FLAGS.output_dir, name) for name in (VOCABULARY_FILE, TOKENIZER_FILE)]
    command_line.refuse_to_overwrite(paths, FLAGS.overwrite)
    reader = CorpusReader(match_files(FLAGS.input_file, "input_file"), FLAGS.on_bad_text)
    settings = command_line.tokenizer_settings()
    word_counts = count_words(reader.sentences(), **settings)
    vocabulary = train_vocabulary(
        word_counts,
        FLAGS.vocab_size,
        FLAGS.wordpiece_scheme,
        FLAGS.limit_alphabet,
        FLAGS.num_unused,
        FLAGS.min_frequency,
    )
    KoreanWordPieceTokenizer(vocabulary, **settings).save(FLAGS.output_dir)
    print(
        f"read {word_counts.total():,} words, {len(word_counts):,} of them different; "
        f"wrote {len(vocabulary):,} pieces to {paths[0]}"
    )


if __name__ == "__main__":
    command_line.run(main)
