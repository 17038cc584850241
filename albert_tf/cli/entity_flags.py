"""The flag that says which names of entities are masked whole."""

import dataclasses

from absl import flags

from albert_tf.errors import InputError
from albert_tf.mentions.names import NameList, read_names
from albert_tf.pretraining_data.build.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.packing import PACKINGS
from albert_tf.tokenization import Tokenizer


def define_entity_flags() -> None:
    """Defines a list of names."""
    flags.DEFINE_string(
        "entity_file",
        None,
        "File with names of entities, one per line: a name at the beginning of a word is masked as a whole, "
        "and the rest of the word separately.",
    )


def with_entities(given, options: BuilderOptions, tokenizer: Tokenizer) -> tuple[BuilderOptions, NameList | None]:
    """Returns the options of a build with what masking is to take whole, and the names of --entity_file, or None.

    Args:
        given: What `resolved_flags` returned.
        options: What other flags say.
        tokenizer: What cuts names into pieces.

    Raises:
        InputError: Flags contradict each other, or the list of names is refused.
    """
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
