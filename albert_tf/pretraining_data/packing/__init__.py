"""How sentences and documents become examples: one file each, and its line in `PACKINGS`."""

from albert_tf.errors import InputError
from albert_tf.pretraining_data.packing.document_blocks import DocumentBlocks
from albert_tf.pretraining_data.packing.document_sentences import DocumentSentences
from albert_tf.pretraining_data.packing.full_sentences import FullSentences
from albert_tf.pretraining_data.packing.halves import Halves
from albert_tf.pretraining_data.packing.next_segment import Next
from albert_tf.pretraining_data.packing.order import Order
from albert_tf.pretraining_data.packing.packing import Packing, Segments, Text
from albert_tf.pretraining_data.packing.translation_pairs import TranslationPairs

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
# As manifests of 0.2 and the flag `sentence_pair` call it.
EARLIER_NAMES = {"none": DocumentSentences.name}


def find_packing(name: str, source: str) -> Packing:
    """Returns a packing by its name, or by that of an earlier version; errors begin with `source`, which names it.

    Raises:
        InputError: There is none of that name.
    """
    found = PACKINGS.get(EARLIER_NAMES.get(name, name))
    if found is None:
        known = ", ".join([*PACKINGS, *EARLIER_NAMES])
        raise InputError(f"{source}: there is no packing {name}; use one of {known}")
    return found


def name_in_0_2(name: str) -> str:
    """Returns what version 0.2 called a packing."""
    return next((earlier for earlier, now in EARLIER_NAMES.items() if now == name), name)


__all__ = ["DEFAULT_PACKING", "EARLIER_NAMES", "PACKINGS", "Packing", "Segments", "Text", "find_packing", "name_in_0_2"]
