"""One segment of whole sentences, of one document or across documents (RoBERTa; Liu et al. 2019, section 4.2)."""

import numpy as np

from albert_tf.pretraining_data.packing.packing import Packing, Text


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
