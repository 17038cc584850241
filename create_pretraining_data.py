"""Turns text (one sentence a line, a blank line between documents) or JSON lines into TFRecord shards for training.

python create_pretraining_data.py --input_file=corpus/*.txt --vocab_file=vocab/vocab.txt \\
    --output_file=data/train.tfrecord --max_seq_length=128
"""

from albert_tf import command_line  # first: it keeps TensorFlow quiet at its start

# isort: split
import os

from absl import flags

from albert_tf.errors import InputError
from albert_tf.files import match_files
from albert_tf.original_flags import define_original_flags
from albert_tf.pretraining_data.builder import MANIFEST_FILE, MASKING_CHOICES, BuilderOptions, build, shard_paths
from albert_tf.pretraining_data.corpus import ON_BAD_TEXT_CHOICES, CorpusReader
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE

FLAGS = flags.FLAGS

flags.DEFINE_list("input_file", None, "Text or .jsonl files, .gz too; comma-separated paths or globs.")
flags.DEFINE_string("json_field", "text", "Field of a .jsonl file's objects that holds a document.")
flags.DEFINE_list("output_file", None, "TFRecord file for training, or a comma-separated list, one file a shard.")
flags.DEFINE_integer("num_shards", 1, "Number of shards, where --output_file names one file.", lower_bound=1)
flags.DEFINE_string("held_out_file", None, "TFRecord file for evaluation; held_out.tfrecord beside --output_file.")
flags.DEFINE_float("held_out_fraction", 0.05, "Share of documents kept for evaluation.", 0.0, 0.9)
flags.DEFINE_string("vocab_file", None, "Vocabulary; a tokenizer.json beside it says how to use it.")
command_line.define_tokenizer_flags()
define_original_flags("do_permutation", "input_file_mode", "random_next_sentence")
flags.DEFINE_enum("masking", "dynamic", MASKING_CHOICES, "dynamic: masked anew each epoch; static: masked here.")
flags.DEFINE_bool("do_whole_word_mask", True, "Mask whole words.")
flags.DEFINE_integer("ngram", 3, "Longest run of words masked together.", lower_bound=1)
flags.DEFINE_bool("favor_shorter_ngram", True, "Run lengths n have probability ~ 1/n; otherwise all the same.")
flags.DEFINE_integer("max_seq_length", 512, "Length of an example in pieces.", lower_bound=8)
flags.DEFINE_integer(
    "max_predictions_per_seq", None, "Most masked pieces an example; by default max_seq_length * masked_lm_prob.", 1
)
flags.DEFINE_float("masked_lm_prob", 0.15, "Share of pieces masked.", 0.001, 0.9)
flags.DEFINE_float("short_seq_prob", 0.1, "Share of examples cut to a random shorter length.", 0.0, 1.0)
flags.DEFINE_integer("dupe_factor", None, "How many times to cut each document; 1 if dynamic, 40 if static.", 1)
flags.DEFINE_integer("random_seed", 12345, "Seed of every random draw.", lower_bound=0)
flags.DEFINE_enum("on_bad_text", "fail", ON_BAD_TEXT_CHOICES, "What to do with a line that can't be read.")
flags.DEFINE_bool("overwrite", False, "Replace shards that are there already.")


def builder_options():
    max_predictions = FLAGS.max_predictions_per_seq
    if max_predictions is None:
        max_predictions = default_max_predictions(FLAGS.max_seq_length, FLAGS.masked_lm_prob)
    if max_predictions >= FLAGS.max_seq_length:
        raise InputError(
            f"--max_predictions_per_seq={max_predictions} must be less than --max_seq_length={FLAGS.max_seq_length}"
        )
    dupe_factor = FLAGS.dupe_factor or (40 if FLAGS.masking == "static" else 1)
    return BuilderOptions(
        max_seq_length=FLAGS.max_seq_length,
        masking_options=MaskingOptions(
            max_predictions, FLAGS.masked_lm_prob, FLAGS.ngram, FLAGS.favor_shorter_ngram, FLAGS.do_whole_word_mask
        ),
        masking=FLAGS.masking,
        dupe_factor=dupe_factor,
        short_seq_prob=FLAGS.short_seq_prob,
        held_out_fraction=FLAGS.held_out_fraction,
        random_seed=FLAGS.random_seed,
    )


def output_paths():
    """Returns the training shards, the held-out shards, and the other files that come with them."""
    train_paths = FLAGS.output_file
    if len(train_paths) == 1:
        train_paths = shard_paths(train_paths[0], FLAGS.num_shards)
    folder = os.path.dirname(train_paths[0])
    held_out_path = FLAGS.held_out_file or os.path.join(folder, "held_out.tfrecord")
    held_out_paths = [held_out_path] if FLAGS.held_out_fraction > 0 else []
    paths = [*train_paths, *held_out_paths]
    for path in paths:
        if paths.count(path) > 1:
            raise InputError(f"{path} is named twice as an output; give --output_file and --held_out_file other names")
    other_files = [MANIFEST_FILE]
    if FLAGS.vocab_file != os.path.join(folder, VOCABULARY_FILE):
        other_files += [VOCABULARY_FILE, TOKENIZER_FILE]
    return train_paths, held_out_paths, [os.path.join(folder, name) for name in other_files]


def main():
    command_line.require(input_file=FLAGS.input_file, output_file=FLAGS.output_file, vocab_file=FLAGS.vocab_file)
    train_paths, held_out_paths, other_paths = output_paths()
    command_line.refuse_to_overwrite([*train_paths, *held_out_paths, *other_paths], FLAGS.overwrite)
    tokenizer = command_line.load_tokenizer(FLAGS.vocab_file)
    reader = CorpusReader(match_files(FLAGS.input_file, "input_file"), FLAGS.on_bad_text, FLAGS.json_field)
    manifest = build(reader, tokenizer, builder_options(), train_paths, held_out_paths, report=print)
    print(
        f"{manifest['documents']:,} documents, {manifest['sentences']:,} sentences, {manifest['tokens']:,} pieces; "
        f"unknown words {manifest['unknown_word_rate']:.2%}"
    )
    for name, split in manifest["splits"].items():
        print(
            f"{name}: {split['examples']:,} examples of {split['mean_tokens_per_example']} pieces on average, "
            f"{split['share_swapped']:.1%} swapped, masking {split['masking']}"
        )
    print(f"wrote {other_paths[0]}")


if __name__ == "__main__":
    command_line.run(main)
