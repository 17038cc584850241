"""The flags that say which names of entities are masked whole."""

import dataclasses

from absl import flags

from albert_tf.errors import InputError
from albert_tf.mentions.names import NameList, read_names
from albert_tf.pretraining_data.build.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.build.entity_markup import check_marked_files
from albert_tf.pretraining_data.packing import PACKINGS
from albert_tf.tokenization import Tokenizer


def define_entity_flags() -> None:
    """Defines a list of names, and marks in the text."""
    flags.DEFINE_string(
        "entity_file",
        None,
        "File with names of entities, one per line: a name at the beginning of a word is masked as a whole, "
        "and the rest of the word separately.",
    )
    flags.DEFINE_bool(
        "entity_markup",
        False,
        "Mask whole what the text marks, as <이순신:PS>은; a sign that marks nothing is written \\< or \\>.",
    )


def with_entities(
    given, options: BuilderOptions, paths: list[str], tokenizer: Tokenizer
) -> tuple[BuilderOptions, NameList | None]:
    """Returns the options of a build with what masking is to take whole, and the names of --entity_file, or None.

    Args:
        given: What `resolved_flags` returned.
        options: What other flags say.
        paths: The files of the corpus.
        tokenizer: What cuts names and texts into pieces.

    Raises:
        InputError: Flags contradict each other, or a list of names or a marked text is refused.
    """
    if not (given.entity_file or given.entity_markup):
        return options, None
    flag = "entity_markup" if given.entity_markup else "entity_file"
    if given.entity_file and given.entity_markup:
        raise InputError("--entity_file and --entity_markup both say what is masked whole; leave one out")
    if not given.do_whole_word_mask:
        raise InputError(f"--{flag} masks names whole, as words are; leave --do_whole_word_mask=false out")
    packing = PACKINGS[options.packing]
    if not packing.masks_pieces:
        raise InputError(f"--{flag}: pieces of --sentence_pair={packing.name} are not masked; leave it out")
    if given.entity_markup:
        others = {"runner": given.runner, "sentence_splitter": given.sentence_splitter != "none"}
        if wrong := [other for other, is_given in others.items() if is_given]:
            raise InputError(f"--entity_markup needs text with one sentence per line; leave --{wrong[0]} out")
        if packing.takes_pairs:
            raise InputError("--entity_markup can't be used with tables of pairs; give the names in --entity_file")
        check_marked_files(paths)
        return dataclasses.replace(options, entity_markup=True), None
    names = read_names(given.entity_file, tokenizer)
    left_out = names.tell_left_out()
    print(f"{len(names):,} names of {given.entity_file}" + (f"; left out: {left_out}" if left_out else ""))
    return dataclasses.replace(options, names_sha256=names.sha256, num_names=len(names)), names
