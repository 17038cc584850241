"""Pre-training data: packings, records, masking, sets of shards, and the input pipeline; `making` is the build side.

A packing says how sentences and documents become examples: a class each, and its line in `PACKINGS`.
"""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.base.errors import InputError, shorten
from albert_tf.pretraining_data.full_sentences import (
    DocumentBlocks,
    DocumentSentences,
    FullSentences,
    TranslationPairs,
)
from albert_tf.pretraining_data.halves import Halves
from albert_tf.pretraining_data.packing import Packing
from albert_tf.pretraining_data.segment_pairs import Next, Order

PACKINGS: dict[str, Packing] = {
    packing.name: packing
    for packing in (
        Order(),
        Next(),
        DocumentSentences(),
        FullSentences(),
        Halves(),
        DocumentBlocks(),
        TranslationPairs(),
    )
}
DEFAULT_PACKING = Order.name


def find_packing(name: str, source: str = "packing") -> Packing:
    """Returns a packing by its name; raises InputError, which begins with `source`, if there is none of that name."""
    if name not in PACKINGS:
        raise InputError(f"{source}: there is no packing {shorten(name)}; use one of {', '.join(PACKINGS)}")
    return PACKINGS[name]


__all__ = ["DEFAULT_PACKING", "PACKINGS", "find_packing"]
