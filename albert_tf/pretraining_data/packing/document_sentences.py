"""One segment of whole sentences of one document (RoBERTa's DOC-SENTENCES; Liu et al. 2019, section 4.2)."""

from albert_tf.pretraining_data.packing.packing import Packing


class DocumentSentences(Packing):
    """Examples of one segment, which never crosses the border of a document."""

    name = "document_sentences"
    summary = "one segment of a document (RoBERTa)"
