"""A text and its translation, side by side (XLM's TLM; Conneau and Lample 2019, section 3.3).

Each pair is [CLS], the one text, [SEP], the other, [SEP]. Which of the two languages comes first is drawn, so that
neither is known by its place. A pair that doesn't fit is left out, as in XLM: if texts were cut, words would be masked
whose translation is not there. Text in one language is packed as RoBERTa's is.
"""

from albert_tf.pretraining_data.packing.full_sentences import FullSentences
from albert_tf.pretraining_data.packing.packing import Packing, Segments
from albert_tf.pretraining_data.records import LABEL_FEATURE

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
