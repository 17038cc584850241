"""Blocks of one size, cut out of documents as they follow one another; for models that predict what comes next.

Each document is [CLS], its pieces, [SEP]: the first piece is predicted from [CLS], and [SEP] from the last one. A block
is cut where it is full, wherever that is, so that few are padded: the last of a chunk of text, and by one place those
that would end in a [CLS]. Where it begins inside a document, [CLS] stands before the rest. Every piece is in one block.
"""

import types

import numpy as np

from albert_tf.pretraining_data.packing.packing import Packing, Segments, Text, target_lengths
from albert_tf.pretraining_data.records import CHARACTERS_FEATURE


class DocumentBlocks(Packing):
    """Examples of parts of one document or of several, whose segments alternate: 0 for the first, 1 for the next."""

    name = "document_blocks"
    summary = "documents one after the other, cut where a block is full (GPT)"
    features = types.MappingProxyType({CHARACTERS_FEATURE: 1})
    num_special_tokens = 1
    adds_separators = False
    masks_pieces = False
    segments_alternate = True
    default_short_seq_prob = 0.0

    def arrange(self, text, cls_id, sep_id, max_num_pieces, generator):
        """Returns each document with [CLS] before and [SEP] after it."""
        documents, ids, starts, num_characters = [], [], [], []
        end = 0
        for borders in text.documents:
            begin, end = end, end + 2 + int(borders[-1] - borders[0])
            documents.append(np.array([begin, end]))
            here = slice(borders[0], borders[-1])
            ids += [[cls_id], text.ids[here], [sep_id]]
            starts += [[True], text.word_starts[here], [True]]
            num_characters += [[0], text.num_characters[here], [0]]
        return Text(documents, *map(np.concatenate, (ids, starts, num_characters)))

    def make_segments(self, text, max_num_pieces, short_seq_prob, generator, inside_sentences=frozenset()):
        """Cuts full blocks; with `short_seq_prob`, a shorter one is followed by the rest of it."""
        draw_target = target_lengths(max_num_pieces, short_seq_prob, generator)
        document_begins = {int(begin) for begin, _ in text.documents}
        begin = 0
        while begin < len(text.ids) and text.documents:
            begin += begin in document_begins  # every example has a [CLS] in front anyway
            end = min(begin + draw_target(), len(text.ids))
            end -= end - 1 in document_begins  # a [CLS] in the end would begin nothing
            yield Segments(begin, end, end, end, 0)
            begin = end

    def count(self, features):
        is_begin = features["input_ids"] == features["input_ids"][:, :1]
        return {
            "parts": int((is_begin & (features["input_mask"] == 1)).sum()),
            "characters": int(features[CHARACTERS_FEATURE].sum()),
        }

    def describe(self, counts):
        return {
            "mean_documents_per_example": round(counts["parts"] / counts["examples"], 2),
            "characters": counts["characters"],
        }

    def tell(self, split):
        documents = split.get("mean_documents_per_example")
        return f"of {documents} documents" if documents else ""
