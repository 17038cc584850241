"""Turning text into examples for pre-training, as settings ask."""

import dataclasses
import os

import tensorflow as tf

from albert_tf.base.console import RESULTS, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import refuse_to_overwrite
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.entities import read_names
from albert_tf.pretraining_data.making.beam_pipeline import run_on_beam
from albert_tf.pretraining_data.making.builder import build, start_workers
from albert_tf.pretraining_data.making.shard_writer import describe_finished
from albert_tf.pretraining_data.manifest import WORK_FOLDER
from albert_tf.runs.settings.data import DataSettings


def build_data(settings: DataSettings) -> None:
    """Writes the shards that settings ask for, manifest.json and the tokenizer beside, and tells what they hold."""
    with start_workers(1 if settings.runner else settings.num_workers) as workers:
        _build(settings, workers)


def _build(settings, workers):
    settings.require("input_file", "output_file")
    if not settings.spm_model_file:
        settings.require("vocab_file")
    options = settings.builder_options()
    packing = PACKINGS[options.packing]
    reader, sources = settings.reader_of(packing)
    options = dataclasses.replace(options, sources=sources)
    if sources:
        tell(f"languages: {', '.join(source.replace('+', ' with ') for source in sources)}")
    train_paths, held_out_paths, other_paths = settings.output_paths(max(1, len(sources)))
    tokenizer = settings.load_tokenizer(settings.vocab_file, settings.spm_model_file)
    options, names = _with_entities(settings, options, tokenizer)
    arguments = reader, tokenizer, options, train_paths, held_out_paths
    is_unfinished = tf.io.gfile.exists(os.path.join(os.path.dirname(train_paths[0]), WORK_FOLDER))
    may_be_finished = settings.resume and not is_unfinished
    if may_be_finished and (finished := describe_finished(other_paths[0], *arguments, settings.overwrite)):
        tell(f"nothing to resume: {finished}")
        return
    if not (settings.resume and is_unfinished):
        refuse_to_overwrite([*train_paths, *held_out_paths, *other_paths], settings.overwrite)
    if settings.runner:
        pipeline_arguments = settings.split_pipeline_arguments()
        manifest = run_on_beam(*arguments, settings.runner, pipeline_arguments, settings.resume, names)
    else:
        manifest = build(*arguments, workers, settings.resume, names=names)
    _tell_of(manifest, packing, options, len(reader.paths))
    tell(f"wrote {other_paths[0]}")


def _with_entities(settings, options, tokenizer):
    """Returns the options of a build with what masking is to take whole, and the names of `entity_file`, or None."""
    if not settings.entity_file:
        return options, None
    if not settings.do_whole_word_mask:
        raise InputError("`entity_file` masks names whole, as words are; leave `do_whole_word_mask=false` out")
    packing = PACKINGS[options.packing]
    if not packing.masks_pieces:
        raise InputError(f"`entity_file`: pieces of `sentence_pair={packing.name}` are not masked; leave it out")
    names = read_names(settings.entity_file, tokenizer)
    left_out = names.tell_left_out()
    tell(f"{len(names):,} names of {settings.entity_file}" + (f"; left out: {left_out}" if left_out else ""))
    return dataclasses.replace(options, names_sha256=names.sha256, num_names=len(names)), names


def _tell_of(manifest, packing, options, num_files):
    tell(
        f"{manifest['documents']:,} documents, {manifest['sentences']:,} sentences, {manifest['tokens']:,} pieces; "
        f"unknown words {manifest['unknown_word_rate']:.2%}",
        RESULTS,
    )
    if undivided := manifest["undivided_files"]:
        tell(
            f"warning: {undivided:,} of {num_files:,} files have many lines but no blank line between "
            "them, so each file counts as one document: pairs join lines that may be unrelated, and a file is "
            "held out as a whole or not at all; write a blank line between documents"
        )
    if left_out := [f"{manifest[name]:,} {name.replace('_', ' ')}" for name in packing.counted_of_corpus]:
        tell(f"left out: {', '.join(left_out)}")
    for name, split in manifest["splits"].items():
        labels = packing.tell(split)
        tell(
            f"{name}: {split['examples']:,} examples of {split['mean_tokens_per_example']} pieces on average, "
            f"{labels and labels + ', '}masking {split['masking']}"
        )
        if options.marks_mentions:
            tell(f"{name}: {split['mentions']:,} mentions of entities, {split['share_in_mentions']:.1%} of the pieces")
