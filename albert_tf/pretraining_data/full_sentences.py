"""One segment of whole sentences, of one document or across documents (RoBERTa; Liu et al. 2019, section 4.2)."""

import types

import numpy as np

from albert_tf.pretraining_data.packing import Packing, Segments, Text, target_lengths
from albert_tf.pretraining_data.records import CHARACTERS_FEATURE, LABEL_FEATURE


class DocumentSentences(Packing):
    """Examples of one segment, which never crosses the border of a document (DOC-SENTENCES)."""

    name = "document_sentences"
    name_in_identity = "none"
    summary = "one segment of a document (RoBERTa)"


class FullSentences(Packing):
    """Examples of one segment; a [SEP] stands where one document ends and the next begins (FULL-SENTENCES)."""

    name = "full_sentences"
    summary = "one segment across documents (RoBERTa)"
    may_end_with_separator = True

    def arrange(self, text, cls_id, sep_id, max_num_pieces, generator):
        """Returns all documents as one, a [SEP] after each of them."""
        joined_borders, joined_ids, joined_starts, mentions = [np.zeros(1, np.int64)], [], [], []
        for borders in text.documents:
            shifted = joined_borders[-1][-1] + borders[1:] - borders[0]
            shifted[-1] += 1
            joined_borders.append(shifted)
            here = slice(borders[0], borders[-1])
            joined_ids += [text.ids[here], [sep_id]]
            joined_starts += [text.word_starts[here], [True]]
            mentions += [text.mentions_at(here), np.zeros(1, np.int8)]
        return Text(
            [np.concatenate(joined_borders)],
            np.concatenate(joined_ids),
            np.concatenate(joined_starts),
            mentions=np.concatenate(mentions),
        )


# A text and its translation, side by side (XLM's TLM; Conneau and Lample 2019, section 3.3).
#
# Each pair is [CLS], the one text, [SEP], the other, [SEP]. Which of the two languages comes first is drawn, so
# that neither is known by its place. A pair that doesn't fit is left out, as in XLM: if texts were cut, words would
# be masked whose translation is not there. Text in one language is packed as RoBERTa's is.

LONG_PAIRS, EMPTY_PAIRS = "long_pairs", "empty_pairs"


class TranslationPairs(Packing):
    """Examples of two texts, of which the second is a translation of the first; label 1 means in the other order."""

    name = "translation_pairs"
    summary = "a text and its translation (XLM)"
    takes_pairs = True
    num_special_tokens = 3
    default_short_seq_prob = 0.0
    separators_of_sentence = 2  # what is counted of a sentence is counted of both texts together
    label_meanings = ("in the order of the table's columns", "the second column first")
    counted_of_corpus = (LONG_PAIRS, EMPTY_PAIRS)
    what_it_needs = "no pair fits an example, or none has two texts; raise `max_seq_length`, or look at the table"

    def of_one_language(self):
        return FullSentences()

    def select(self, documents, max_num_pieces):
        pairs = [borders for borders in documents if len(borders) == 3]
        kept = [borders for borders in pairs if borders[-1] - borders[0] <= max_num_pieces]
        return kept, {EMPTY_PAIRS: len(documents) - len(pairs), LONG_PAIRS: len(pairs) - len(kept)}

    def make_segments(self, text, max_num_pieces, short_seq_prob, generator, inside_sentences=frozenset()):
        for begin, middle, end in text.documents:
            if generator.random() < 0.5:
                yield Segments(middle, end, begin, middle, 1)
            else:
                yield Segments(begin, middle, middle, end, 0)

    def count(self, features):
        is_pair = features["segment_ids"].any(axis=1)
        return {"pairs": int(is_pair.sum()), "other_order": int(features[LABEL_FEATURE][is_pair].sum())}

    def describe(self, counts):
        pairs = counts["pairs"]
        return {"pairs": pairs, "share_other_order": round(counts["other_order"] / pairs, 4) if pairs else 0.0}

    def tell(self, split):
        pairs = split.get("pairs")
        return f"{pairs:,} pairs, {split['share_other_order']:.1%} with the second language first" if pairs else ""


# Blocks of one size, cut out of documents as they follow one another; for models that predict what comes next.
#
# Each document is [CLS], its pieces, [SEP]: the first piece is predicted from [CLS], and [SEP] from the last one. A
# block is cut where it is full, wherever that is, so that few are padded: the last of a chunk of text, and by one
# place those that would end in a [CLS]. Where it begins inside a document, [CLS] stands before the rest. Every
# piece is in one block.


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
