"""The base class of all models: the config, `from_pretrained`, and the methods that Keras needs to save and export."""

import os

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.attention import suited_attention
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.modeling.layers import named_variables, with_albert_config
from albert_tf.modeling.pretrained import describe_loading, find_checkpoint, load_weights, read_config


class AlbertModel(tf.keras.Model):
    """A model whose weights exist as soon as it does, because the config gives every shape.

    `config`, `remat`, `attention` and further arguments, and errors, are those of `AlbertEncoder`.
    """

    _ids_rank = 2  # the number of dimensions of input_ids
    reads_pooler = True  # whether outputs depend on the encoder's pooler
    _checkpoint_prefix = ""  # what checkpoints put before the names of `named_variables`

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True
        if remat not in REMATERIALIZATION_CHOICES:
            raise ValueError(f"remat must be one of {', '.join(REMATERIALIZATION_CHOICES)}. Received: {remat}")
        if attention not in ATTENTION_CHOICES:
            raise ValueError(f"attention must be one of {', '.join(ATTENTION_CHOICES)}. Received: {attention}")
        self.config = config
        self._remat = remat
        self._attention = suited_attention(attention, config)

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike, verbose: bool = True, **options) -> "AlbertModel":
        """Builds a model with the weights of a run, averaged ones where the run has them.

        Weights that the checkpoint lacks, such as the head of a new task, are initialized as in a new model.

        Args:
            path: The folder of a published model or of a run, whose best checkpoint on held-out data is taken, or a
                checkpoint's path without extension. The folder must hold albert_config.json.
            verbose: Whether to print which weights were in the checkpoint and which were not.
            **options: Of the constructor. `config` replaces the file, and `num_labels` defaults to that of the head in
                the checkpoint.

        Raises:
            InputError: There is no checkpoint or no config, or the checkpoint holds no part of this model or parts of
                other shapes.
        """
        source = f"{cls.__name__}.from_pretrained"
        checkpoint = find_checkpoint(os.fspath(path), source)
        if "config" not in options:
            options["config"] = read_config(checkpoint, source)
        model = cls(**cls._complete_options(options, checkpoint, source))
        variables = {f"{cls._checkpoint_prefix}{name}": value for name, value in named_variables(model).items()}
        result = load_weights(checkpoint, variables, source)
        if verbose:
            print(f"{cls.__name__}: {describe_loading(checkpoint, *result)}", flush=True)
        return model

    @classmethod
    def _complete_options(cls, options, checkpoint, source):
        """Adds to the constructor's options those that a checkpoint tells."""
        return options

    def get_config(self):
        """Returns the constructor's arguments, the config as a dictionary."""
        arguments = {"config": self.config.to_dict(), "remat": self._remat, "attention": self._attention}
        return {**super().get_config(), **arguments}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Builds a model with new weights."""
        return cls(**with_albert_config(config))

    def summary(self, *args, **kwargs):
        """Prints layers, output shapes (not with Keras 2) and numbers of weights, as `tf.keras.Model.summary` does."""
        if hasattr(tf.keras, "Variable"):
            # Keras 3 knows the shapes of layers that were called on symbols, as in a functional model.
            for layer, *inputs in self._layers_with_inputs():
                layer(*inputs)
        super().summary(*args, **kwargs)

    def _layers_with_inputs(self):
        """Returns the layers that a summary shows, each with symbolic inputs."""
        ids = self._symbol(None, dtype="int32")
        # The encoder of every other model.
        return [(self.encoder, {"input_ids": ids}), *self.encoder._layers_with_inputs(), *self._heads_with_inputs()]

    def _heads_with_inputs(self):
        return []

    def _symbol(self, *shape, dtype=None):
        return tf.keras.Input(shape, dtype=dtype or self.compute_dtype)

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Writes a SavedModel to a folder; arguments as for `tf.keras.Model.export`.

        Args:
            input_signature: If None, int32 `input_ids`, `input_mask`, `segment_ids` and whatever else the model needs,
                of any batch size and length. Keras 2 knows no signatures and exports for the inputs that the model was
                called with.
        """
        if not hasattr(tf.keras, "Variable"):
            return super().export(filepath, *args, **kwargs)
        if input_signature is None:
            shapes = self._input_shapes()
            input_signature = [{name: tf.TensorSpec(shape, tf.int32, name) for name, shape in shapes.items()}]
        return super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def _input_shapes(self):
        """Returns the shapes of an exported model's int32 inputs, by name."""
        return dict.fromkeys(("input_ids", "input_mask", "segment_ids"), [None] * self._ids_rank)
