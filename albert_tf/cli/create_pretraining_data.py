"""The command `create_pretraining_data.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import os
import shlex

import tensorflow as tf
from absl import flags

from albert_tf.cli.corpus_flags import corpus_reader, define_corpus_flags
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.cli.tokenizer_flags import define_sentencepiece_flags, define_tokenizer_flags, load_any_tokenizer
from albert_tf.corpus.sentence_splitting import SENTENCE_SPLITTERS
from albert_tf.errors import InputError
from albert_tf.mentions.names import read_names
from albert_tf.objectives import DEFAULT_OBJECTIVE, OBJECTIVES, check_packing, default_objective
from albert_tf.pretraining_data.build.beam_pipeline import run_on_beam
from albert_tf.pretraining_data.build.builder import MASKING_CHOICES, build, shard_paths, start_workers
from albert_tf.pretraining_data.build.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.build.manifest_writer import describe_finished
from albert_tf.pretraining_data.build.source_files import SourceReader, find_sources, refuse_tables
from albert_tf.pretraining_data.languages import languages_of
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, WORK_FOLDER
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions
from albert_tf.pretraining_data.packing import DEFAULT_PACKING, PACKINGS, find_packing
from albert_tf.pretraining_data.show import show_shard
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    define_corpus_flags()
    flags.DEFINE_list(
        "languages",
        None,
        "The language of each path or glob of --input_file; for a table of pairs the names of two "
        "columns, joined by +: ko,en,ko+en. By default unknown; for a table of two columns, their names.",
    )
    flags.DEFINE_enum("sentence_splitter", "none", SENTENCE_SPLITTERS, "How lines of running text become sentences.")
    flags.DEFINE_bool("deduplicate", False, "Leave out documents whose text has occurred before.")
    flags.DEFINE_list("output_file", None, "TFRecord file for training, or a comma-separated list, one file a shard.")
    flags.DEFINE_integer("num_shards", 1, "Number of shards (for each language), if --output_file names one file.", 1)
    flags.DEFINE_string("held_out_file", None, "TFRecord file for evaluation; held_out.tfrecord beside --output_file.")
    flags.DEFINE_float("held_out_fraction", 0.05, "Share of documents kept for evaluation.", 0.0, 0.9)
    flags.DEFINE_string("vocab_file", None, "Vocabulary; a tokenizer.json beside it says how to use it.")
    define_tokenizer_flags()
    define_sentencepiece_flags()
    define_original_flags("input_file_mode")
    flags.DEFINE_enum(
        "objective",
        None,
        list(OBJECTIVES),
        f"What will be learnt from the examples, and so how they are packed; by default {DEFAULT_OBJECTIVE}.",
    )
    flags.DEFINE_enum(
        "sentence_pair",
        None,
        list(PACKINGS),
        "How sentences are packed, if not as usual for --objective. "
        + "; ".join(f"{packing.name}: {packing.summary}" for packing in PACKINGS.values())
        + ".",
    )
    flags.DEFINE_bool("random_next_sentence", False, "The original's flag for --sentence_pair=next.")
    flags.DEFINE_enum(
        "masking", "dynamic", MASKING_CHOICES, "dynamic: masked differently in each epoch; static: masked here."
    )
    flags.DEFINE_bool("do_whole_word_mask", True, "Mask whole words.")
    flags.DEFINE_integer("ngram", 3, "Longest run of words masked together.", lower_bound=1)
    flags.DEFINE_bool(
        "favor_shorter_ngram",
        True,
        "Runs of n words have a probability proportional to 1/n; otherwise all lengths are equally probable.",
    )
    flags.DEFINE_string(
        "entity_file",
        None,
        "File with names of entities, one per line: a name at the beginning of a word is masked as a whole, "
        "and the rest of the word separately.",
    )
    flags.DEFINE_bool("do_permutation", False, "Shuffle further pieces, as many as are masked, and predict them too.")
    flags.DEFINE_integer("max_seq_length", 512, "Length of an example in pieces.", lower_bound=8)
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        None,
        "Maximum number of masked pieces in an example; by default max_seq_length * masked_lm_prob.",
        1,
    )
    flags.DEFINE_float("masked_lm_prob", MaskingOptions.masked_lm_prob, "Share of pieces masked.", 0.001, 0.9)
    flags.DEFINE_float(
        "short_seq_prob",
        None,
        "Share of examples cut to a random shorter length; by default 0.1, and none of document_blocks.",
        0.0,
        1.0,
    )
    flags.DEFINE_integer("dupe_factor", None, "How many times to cut each document; 1 if dynamic, 40 if static.", 1)
    flags.DEFINE_integer("random_seed", 12345, "Seed of every random draw.", lower_bound=0)
    flags.DEFINE_integer("num_workers", 1, "Number of worker processes.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace existing shards.")
    flags.DEFINE_bool("resume", False, "Resume a build that was stopped; start one if there is none.")
    flags.DEFINE_string("runner", None, "Run on Apache Beam, not --num_workers: DirectRunner, DataflowRunner, ...")
    flags.DEFINE_string("pipeline_arguments", "", "With --runner: Apache Beam's own flags, in quotation marks.")
    flags.DEFINE_string("inspect", None, "Print examples and counts of this shard; build no data.")
    flags.DEFINE_string("plot", None, "With --inspect: a .png file for the lengths of examples.")
    flags.DEFINE_integer("num_inspected", 3, "With --inspect: number of examples to print.", lower_bound=0)


def packing_and_objective(objective, sentence_pair, random_next_sentence):
    """Returns the names of both, as far as the flags say them."""
    if random_next_sentence:
        if sentence_pair not in (None, "next"):
            raise InputError(f"--random_next_sentence contradicts --sentence_pair={sentence_pair}; leave one out")
        sentence_pair = "next"
    if sentence_pair is None:
        sentence_pair = OBJECTIVES[objective].packings[0] if objective else DEFAULT_PACKING
    packing = find_packing(sentence_pair, "--sentence_pair")
    objective = objective or default_objective(packing)
    check_packing(objective, packing)
    return packing.name, objective


def reader_of(given, packing):
    """Returns the reader of --input_file, and of what languages it is, each once."""
    if not given.languages and not packing.takes_pairs:
        reader = corpus_reader(given)
        refuse_tables(reader.paths)
        return reader, ()
    paths, sources = find_sources(given.input_file, given.languages or [], packing.takes_pairs)
    refuse_tables([path for path, source in zip(paths, sources) if len(languages_of(source)) == 1])
    return SourceReader(paths, given.on_bad_text, given.text_field, sources=sources), tuple(dict.fromkeys(sources))


def builder_options(given):
    max_predictions = given.max_predictions_per_seq
    if max_predictions is None:
        max_predictions = default_max_predictions(given.max_seq_length, given.masked_lm_prob, given.do_permutation)
    if max_predictions >= given.max_seq_length:
        raise InputError(
            f"--max_predictions_per_seq={max_predictions} must be less than --max_seq_length={given.max_seq_length}"
        )
    packing, objective = packing_and_objective(given.objective, given.sentence_pair, given.random_next_sentence)
    if given.masking == "static" and not PACKINGS[packing].masks_pieces:
        raise InputError(f"--masking=static: pieces of --sentence_pair={packing} are not masked; leave it out")
    short_seq_prob = given.short_seq_prob
    if short_seq_prob is None:
        short_seq_prob = PACKINGS[packing].default_short_seq_prob
    dupe_factor = given.dupe_factor or (40 if given.masking == "static" else 1)
    return BuilderOptions(
        max_seq_length=given.max_seq_length,
        masking_options=MaskingOptions(
            max_predictions,
            given.masked_lm_prob,
            given.ngram,
            given.favor_shorter_ngram,
            given.do_whole_word_mask,
            given.do_permutation,
        ),
        masking=given.masking,
        packing=packing,
        objective=objective,
        sentence_splitter=given.sentence_splitter,
        deduplicate=given.deduplicate,
        dupe_factor=dupe_factor,
        short_seq_prob=short_seq_prob,
        held_out_fraction=given.held_out_fraction,
        random_seed=given.random_seed,
    )


def output_paths(given, num_sources):
    """Returns the training shards, the held-out shards, and the other files that come with them."""
    for flag, paths in (("output_file", given.output_file), ("held_out_file", [given.held_out_file or ""])):
        for path in paths:
            if path.endswith("/") or (path and tf.io.gfile.isdir(path)):
                raise InputError(f"--{flag}={path} is a folder; name a file in it, such as train.tfrecord")
    train_paths = given.output_file
    if len(train_paths) == 1:
        train_paths = shard_paths(train_paths[0], given.num_shards * num_sources)
    if len(train_paths) % num_sources:
        raise InputError(
            f"--output_file names {len(train_paths)} files, which can't be divided evenly among {num_sources} "
            "languages; name a multiple of that, or one file and --num_shards"
        )
    folder = os.path.dirname(train_paths[0])
    held_out_path = given.held_out_file or os.path.join(folder, "held_out.tfrecord")
    held_out_paths = [held_out_path] if given.held_out_fraction > 0 else []
    paths = [*train_paths, *held_out_paths]
    for path in paths:
        if paths.count(path) > 1:
            raise InputError(f"{path} is named twice as an output; give --output_file and --held_out_file other names")
        if os.path.dirname(path) != folder:
            raise InputError(f"{path} is not in the folder of {train_paths[0]}; all shards share one manifest")
    other_files = [MANIFEST_FILE]
    source, name = (given.spm_model_file, MODEL_FILE) if given.spm_model_file else (given.vocab_file, VOCABULARY_FILE)
    if source != os.path.join(folder, name):
        other_files += [name, TOKENIZER_FILE]
    return train_paths, held_out_paths, [os.path.join(folder, name) for name in other_files]


def pipeline_arguments(text):
    """Returns what --pipeline_arguments holds as a shell would cut it."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"--pipeline_arguments={text} can't be split into arguments ({error}); correct its quotation marks"
        ) from error


def create(given, workers):
    app.require(input_file=given.input_file, output_file=given.output_file)
    if not given.spm_model_file:
        app.require(vocab_file=given.vocab_file)
    options = builder_options(given)
    packing = find_packing(options.packing, "packing")
    reader, sources = reader_of(given, packing)
    options = dataclasses.replace(options, sources=sources)
    if sources:
        print(f"languages: {', '.join(source.replace('+', ' with ') for source in sources)}", flush=True)
    train_paths, held_out_paths, other_paths = output_paths(given, max(1, len(sources)))
    tokenizer = load_any_tokenizer(given.vocab_file, given.spm_model_file)
    options, names = _with_entities(given, options, tokenizer)
    arguments = reader, tokenizer, options, train_paths, held_out_paths
    is_unfinished = tf.io.gfile.exists(os.path.join(os.path.dirname(train_paths[0]), WORK_FOLDER))
    may_be_finished = given.resume and not is_unfinished
    if may_be_finished and (finished := describe_finished(other_paths[0], *arguments, given.overwrite)):
        print(f"nothing to resume: {finished}")
        return
    if not (given.resume and is_unfinished):
        app.refuse_to_overwrite([*train_paths, *held_out_paths, *other_paths], given.overwrite)
    if given.runner:
        manifest = run_on_beam(
            *arguments, given.runner, pipeline_arguments(given.pipeline_arguments), given.resume, names
        )
    else:
        manifest = build(*arguments, workers, given.resume, names=names)
    print(
        f"{manifest['documents']:,} documents, {manifest['sentences']:,} sentences, {manifest['tokens']:,} pieces; "
        f"unknown words {manifest['unknown_word_rate']:.2%}"
    )
    if undivided := manifest["undivided_files"]:
        print(
            f"warning: {undivided:,} of {len(reader.paths):,} files have many lines but no blank line between "
            "them, so each file counts as one document: pairs join lines that may be unrelated, and a file is "
            "held out as a whole or not at all; write a blank line between documents"
        )
    if left_out := [f"{manifest[name]:,} {name.replace('_', ' ')}" for name in packing.counted_of_corpus]:
        print(f"left out: {', '.join(left_out)}")
    for name, split in manifest["splits"].items():
        labels = packing.tell(split)
        print(
            f"{name}: {split['examples']:,} examples of {split['mean_tokens_per_example']} pieces on average, "
            f"{labels and labels + ', '}masking {split['masking']}"
        )
        if options.marks_mentions:
            print(f"{name}: {split['mentions']:,} mentions of entities, {split['share_in_mentions']:.1%} of the pieces")
    print(f"wrote {other_paths[0]}")


def main():
    given = resolved_flags()
    if given.inspect:
        if given.plot:
            app.refuse_to_overwrite([given.plot], overwrite=True)
        show_shard(given.inspect, given.num_inspected, given.plot)
        if given.plot:
            print(f"wrote {given.plot}")
    elif given.plot:
        raise InputError("--plot needs --inspect, which names the shard to plot")
    else:
        with start_workers(1 if given.runner else given.num_workers) as workers:
            create(given, workers)


def _with_entities(given, options, tokenizer):
    """Returns the options of a build with what masking is to take whole, and the names of --entity_file, or None."""
    if not given.entity_file:
        return options, None
    if not given.do_whole_word_mask:
        raise InputError("--entity_file masks names whole, as words are; leave --do_whole_word_mask=false out")
    packing = PACKINGS[options.packing]
    if not packing.masks_pieces:
        raise InputError(f"--entity_file: pieces of --sentence_pair={packing.name} are not masked; leave it out")
    names = read_names(given.entity_file, tokenizer)
    left_out = names.tell_left_out()
    print(f"{len(names):,} names of {given.entity_file}" + (f"; left out: {left_out}" if left_out else ""))
    return dataclasses.replace(options, names_sha256=names.sha256, num_names=len(names)), names


def run():
    """Runs the command."""
    app.run(main, define_flags)
