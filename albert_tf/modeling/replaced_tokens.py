"""ELECTRA's discriminator, and the config of its generator (Clark et al. 2020)."""

import tensorflow as tf

from albert_tf.base.checkpoint_files import CheckpointReader, only_model
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.heads import MaskedLMHead
from albert_tf.modeling.layers import ACTIVATIONS, ConfiguredLayer, Linear
from albert_tf.modeling.pretrained import AlbertModel

# By how many heads a share such as 0.333 may miss a whole number of them.
_ROUNDING = 0.05


@tf.keras.utils.register_keras_serializable("albert_tf")
class ReplacedTokenHead(ConfiguredLayer):
    """Scores whether each token was replaced (`get_discriminator_output` of google-research/electra)."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        policy = kwargs.get("dtype")
        self.activation = ACTIVATIONS[config.hidden_act]
        self.transform = Linear(config.hidden_size, config.hidden_size, config.initializer_range, dtype=policy)
        self.dense = Linear(config.hidden_size, 1, config.initializer_range, dtype=policy)

    def call(self, sequence_output):
        return tf.cast(self.dense(self.activation(self.transform(sequence_output)))[..., 0], tf.float32)


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForReplacedTokens(AlbertModel):
    """The discriminator: which tokens of a text are not the original ones.

    Args:
        guesses_pieces: Whether it has a masked-LM head as well, and so is its own generator.
    """

    reads_pooler = False

    def __init__(
        self,
        config: AlbertConfig,
        remat: str = "none",
        attention: str = "auto",
        guesses_pieces: bool = False,
        **kwargs,
    ):
        super().__init__(config, remat, attention, **kwargs)
        policy = kwargs.get("dtype")
        self.encoder = AlbertEncoder(config, remat, attention, dtype=policy)
        self.replaced_token_head = ReplacedTokenHead(config, dtype=policy)
        self.masked_lm_head = MaskedLMHead(config, dtype=policy) if guesses_pieces else None

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Scores tokens; arguments as for `AlbertEncoder`.

        Args:
            inputs: The encoder's, and `masked_lm_positions` int [B, P] (every position if it is left out).

        Returns:
            The encoder's outputs, `replaced_token_logits` float32 [B, S], and with a masked-LM head `masked_lm_logits`
            float32 [B, P, V].
        """
        outputs = self.encoder(
            inputs,
            training=training,
            dropout_seed=dropout_seed,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        states = outputs["sequence_output"]
        outputs = {**outputs, "replaced_token_logits": self.replaced_token_head(states)}
        if self.masked_lm_head is None:
            return outputs
        table = tf.convert_to_tensor(self.encoder.embeddings.word_embeddings)
        return {**outputs, "masked_lm_logits": self.masked_lm_head(states, table, inputs.get("masked_lm_positions"))}

    @classmethod
    def _complete_options(cls, options, checkpoint, source):
        has_head = any("masked_lm_head/" in name for name in only_model(CheckpointReader(checkpoint).shapes))
        return {"guesses_pieces": has_head, **options}

    def get_config(self):
        return {**super().get_config(), "guesses_pieces": self.masked_lm_head is not None}

    def _heads_with_inputs(self):
        return [(self.replaced_token_head, self._symbol(None, self.config.hidden_size))]


def generator_config(config: AlbertConfig, size: float) -> AlbertConfig:
    """Returns the config of a generator as deep as the discriminator and `size` times as wide.

    Heads keep their size, and there is at least one (`get_generator_config` of google-research/electra). An InputError
    unless the share is more than 0, at most 1, and a whole number of heads.
    """
    if not 0 < size <= 1:
        raise InputError(
            f"`generator_size` must be more than 0 and at most 1, the width of the model itself. Received: {size:g}"
        )
    wanted = max(1.0, config.num_attention_heads * size)
    num_heads = round(wanted)
    if abs(wanted - num_heads) > _ROUNDING:
        raise InputError(
            f"`generator_size={size:g}` of {config.num_attention_heads} heads is {wanted:g} heads; choose a share that "
            f"is a whole number of them, such as {num_heads / config.num_attention_heads:.4g}"
        )
    hidden_size = config.hidden_size // config.num_attention_heads * num_heads
    return config.replace(
        num_attention_heads=num_heads,
        hidden_size=hidden_size,
        intermediate_size=max(1, round(config.intermediate_size * hidden_size / config.hidden_size)),
        pooler=False,
    )
