"""The encoder with the heads of each use. Every model takes the encoder's dictionary of inputs (`encoder_inputs`)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.encoder import AlbertEncoder, resolve_dropout_seed
from albert_tf.modeling.heads import MaskedLMHead, OutputHead
from albert_tf.modeling.inputs import encoder_inputs
from albert_tf.modeling.kernels.dropout import split_dropout_seed


class AlbertForPreTraining(tf.keras.Model):
    """Masked language model and sentence order prediction.

    Args:
        config: Hyper-parameters.
        remat: As for `AlbertEncoder`.
        attention: As for `AlbertEncoder`.
        **kwargs: Of `tf.keras.Model`, as for `AlbertEncoder`.
    """

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True
        policy = kwargs.get("dtype")
        self.encoder = AlbertEncoder(config, remat, attention, dtype=policy)
        self.masked_lm_head = MaskedLMHead(config, dtype=policy)
        self.sentence_order_head = OutputHead(config, 2, 0.0, dtype=policy)

    def call(self, inputs, training=False, dropout_seed=None):
        """Scores masked pieces and the order of the segments.

        Args:
            inputs: The encoder's, and `masked_lm_positions` int [B, P] (every position if it is left out).
            training: Whether dropout is on.
            dropout_seed: int32 [2], or None.

        Returns:
            The encoder's outputs, `masked_lm_logits` float32 [B, P, V] and `sentence_order_logits` float32 [B, 2],
            whose class 1 means swapped.
        """
        outputs = self.encoder(inputs, training=training, dropout_seed=dropout_seed)
        masked_lm_logits = self.masked_lm_head(
            outputs["sequence_output"],
            tf.convert_to_tensor(self.encoder.embeddings.word_embeddings),
            inputs.get("masked_lm_positions"),
        )
        sentence_order_logits = self.sentence_order_head(outputs["pooled_output"])
        return {**outputs, "masked_lm_logits": masked_lm_logits, "sentence_order_logits": sentence_order_logits}

    def masked_lm_cross_entropy(self, inputs, labels, weights, training=False, dropout_seed=None):
        """Computes what training needs of the model, and no more: see `AlbertEncoder` and `tied_cross_entropy`.

        Args:
            inputs: As for `call`, with `masked_lm_positions` int [B, P].
            labels: int32 [B, P].
            weights: float32 [B, P].
            training: Whether dropout is on.
            dropout_seed: int32 [2], or None.

        Returns:
            The weighted sums of the masked pieces' losses and of right guesses, float32 scalars, and
            `sentence_order_logits` float32 [B, 2].
        """
        positions = inputs["masked_lm_positions"]
        outputs = self.encoder(
            inputs,
            training=training,
            dropout_seed=dropout_seed,
            output_positions=tf.concat([tf.zeros_like(positions[:, :1]), positions], axis=1),
        )
        loss, right = self.masked_lm_head.cross_entropy(
            outputs["sequence_output"][:, 1:],
            tf.convert_to_tensor(self.encoder.embeddings.word_embeddings),
            labels,
            weights,
        )
        return loss, right, self.sentence_order_head(outputs["pooled_output"])


class _AlbertWithOutputHead(tf.keras.Model):
    """The encoder and one `OutputHead`, for fine-tuning."""

    def __init__(self, config: AlbertConfig, output_size: int, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True
        policy = kwargs.get("dtype")
        self.encoder = AlbertEncoder(config, remat, attention, dtype=policy)
        self.head = OutputHead(config, output_size, config.classifier_dropout_prob, dtype=policy)

    def _logits(self, inputs, output_name, training, dropout_seed):
        seed = resolve_dropout_seed(training, dropout_seed)
        encoder_seed, head_seed = split_dropout_seed(seed, 2)
        inputs = encoder_inputs(inputs)
        # A label of the whole text is read off the first piece alone.
        positions = tf.zeros_like(inputs["input_ids"][:, :1]) if output_name == "pooled_output" else None
        outputs = self.encoder(inputs, training=training, dropout_seed=encoder_seed, output_positions=positions)
        return self.head(outputs[output_name], dropout_seed=head_seed)


class AlbertForSequenceClassification(_AlbertWithOutputHead):
    """A label, or with one output a score, for a text or pair.

    Args:
        config: Hyper-parameters.
        num_labels: Number of labels.
    """

    def __init__(self, config: AlbertConfig, num_labels: int, **kwargs):
        super().__init__(config, num_labels, **kwargs)

    def call(self, inputs, training=False, dropout_seed=None):
        """Returns {"logits": float32 [B, num_labels]}."""
        return {"logits": self._logits(inputs, "pooled_output", training, dropout_seed)}


class AlbertForTokenClassification(_AlbertWithOutputHead):
    """A label for each piece.

    Args:
        config: Hyper-parameters.
        num_labels: Number of labels.
    """

    def __init__(self, config: AlbertConfig, num_labels: int, **kwargs):
        super().__init__(config, num_labels, **kwargs)

    def call(self, inputs, training=False, dropout_seed=None):
        """Returns {"logits": float32 [B, S, num_labels]}."""
        return {"logits": self._logits(inputs, "sequence_output", training, dropout_seed)}


class AlbertForQuestionAnswering(_AlbertWithOutputHead):
    """Where in the text an answer begins and ends (the head of the original run_squad_v1.py).

    Args:
        config: Hyper-parameters.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, 2, **kwargs)

    def call(self, inputs, training=False, dropout_seed=None):
        """Returns {"start_logits": float32 [B, S], "end_logits": float32 [B, S]}."""
        logits = self._logits(inputs, "sequence_output", training, dropout_seed)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}


class AlbertForMultipleChoice(_AlbertWithOutputHead):
    """Which of several texts fits (original run_race.py).

    Args:
        config: Hyper-parameters.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, 1, **kwargs)

    def call(self, inputs, training=False, dropout_seed=None):
        """Scores each choice: inputs are int [B, choices, S]; returns {"logits": float32 [B, choices]}."""
        inputs = encoder_inputs(inputs)
        shape = inputs["input_ids"].shape
        num_choices, max_seq_length = (shape[axis] or tf.shape(inputs["input_ids"])[axis] for axis in (1, 2))
        flat_inputs = {name: tf.reshape(values, [-1, max_seq_length]) for name, values in inputs.items()}
        logits = self._logits(flat_inputs, "pooled_output", training, dropout_seed)
        return {"logits": tf.reshape(logits, [-1, num_choices])}
