"""What all models have in common: the config, and being saved and built again by Keras."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.modeling.layers import with_albert_config


class AlbertModel(tf.keras.Model):
    """A model whose weights exist as soon as it does, because the config gives every shape.

    Args:
        config: Hyper-parameters.
        remat: As for `AlbertEncoder`.
        attention: As for `AlbertEncoder`.
        **kwargs: Of `tf.keras.Model`.

    Raises:
        ValueError: There is no such `remat` or `attention`.
    """

    _ids_rank = 2  # the number of dimensions of input_ids

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True
        if remat not in REMATERIALIZATION_CHOICES:
            raise ValueError(f"remat must be one of {', '.join(REMATERIALIZATION_CHOICES)}. Received: {remat}")
        if attention not in ATTENTION_CHOICES:
            raise ValueError(f"attention must be one of {', '.join(ATTENTION_CHOICES)}. Received: {attention}")
        self.config = config
        self._remat = remat
        self._attention = attention

    def get_config(self):
        """Returns the constructor's arguments, the config as a dictionary."""
        arguments = {"config": self.config.to_dict(), "remat": self._remat, "attention": self._attention}
        return {**super().get_config(), **arguments}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Builds a model, with new weights, from what `get_config` returned."""
        return cls(**with_albert_config(config))

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Writes a SavedModel as `tf.keras.Model.export` does.

        Args:
            filepath: A folder.
            *args: Of `tf.keras.Model.export`.
            input_signature: What the SavedModel takes; if None, `input_ids`, `input_mask` and `segment_ids`, int32, of
                any batch size and length. Keras 2 knows no signatures and exports what the model was called with.
            **kwargs: Of `tf.keras.Model.export`.
        """
        if not hasattr(tf.keras, "Variable"):
            return super().export(filepath, *args, **kwargs)
        if input_signature is None:
            names = ("input_ids", "input_mask", "segment_ids")
            input_signature = [{name: tf.TensorSpec([None] * self._ids_rank, tf.int32, name) for name in names}]
        return super().export(filepath, *args, input_signature=input_signature, **kwargs)
