"""What language the pieces of records are in, for models that have language embeddings."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE


def find_language_ids(features: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the number of each piece's language, int32 [B, S], of records that say their languages."""
    language_ids = tf.gather(features[LANGUAGES_FEATURE], features["segment_ids"], batch_dims=1)
    return tf.ensure_shape(language_ids, features["segment_ids"].shape)


def check_languages(config: AlbertConfig, languages: tuple[str, ...]) -> None:
    """Raises InputError if a model has language embeddings, and not as many as the data have languages."""
    if config.num_languages and config.num_languages != len(languages):
        told = (
            f"are in {len(languages)} languages ({', '.join(languages)})" if languages else "don't say their language"
        )
        raise InputError(
            f"the model has embeddings of {config.num_languages} languages (num_languages), and the data {told}; name "
            "as many with create_pretraining_data.py --languages, or change `albert_config_file`"
        )
