"""One segment of whole sentences of one document (RoBERTa's DOC-SENTENCES; Liu et al. 2019, section 4.2)."""

from albert_tf.pretraining_data.packing.packing import Packing, target_lengths, whole_sentences


class DocumentSentences(Packing):
    """Examples of one segment, which never crosses the border of a document."""

    name = "document_sentences"
    summary = "one segment of a document (RoBERTa)"

    def make_segments(self, text, max_num_pieces, short_seq_prob, generator, inside_sentences=frozenset()):
        """Yields examples; see `Packing`."""
        return whole_sentences(text.documents, target_lengths(max_num_pieces, short_seq_prob, generator))
