"""Translation language model: masked tokens of a text and of its translation (XLM; Conneau and Lample 2019, 3.3).

Masked tokens can be read off the other language. As in XLM the positions of the second text begin at 0 again, and both
are masked together, with one budget. Languages are told by language embeddings, or by segments without these.
"""

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.objectives.masked_lm import MaskedLM
from albert_tf.objectives.pretraining_loss import find_language_ids


class TranslationLM(MaskedLM):
    """The masked language model of pairs, and of text in one language.

    Raises:
        InputError: There are more languages than segments to tell them by.
    """

    def __init__(self, config, languages=None, **others):
        super().__init__(config, **others)
        languages = languages or ()
        if not config.num_languages and 1 < config.type_vocab_size < len(languages):
            raise InputError(
                f"segments can't tell {len(languages)} languages ({', '.join(languages)}) by type_vocab_size="
                f"{config.type_vocab_size}; set num_languages to {len(languages)} in `albert_config_file`"
            )

    def prepare(self, features, seed):
        return {**super().prepare(features, seed), "language_ids": find_language_ids(features)}

    def batch_spec(self, max_seq_length):
        return {**super().batch_spec(max_seq_length), "language_ids": tf.TensorSpec([None, max_seq_length], tf.int32)}

    def encoder_inputs(self, batch):
        positions = {"position_ids": restarted_positions(batch["segment_ids"]) + self.config.position_offset}
        return positions if self.config.num_languages else {**positions, "segment_ids": batch["language_ids"]}


def restarted_positions(segment_ids: tf.Tensor) -> tf.Tensor:
    """Returns positions, int32 [B, S], which begin at 0 again where segment 1 begins; padding is of segment 0."""
    places = tf.range(segment_ids.shape[1])
    # Without a second text, or behind it, nothing is taken off.
    return places - segment_ids * tf.argmax(segment_ids, axis=1, output_type=tf.int32)[:, None]
