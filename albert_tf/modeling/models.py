"""The encoder with the heads of each use.

Every `call` takes `output_hidden_states` and `output_attentions`, which add those of the encoder to the outputs.
"""

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.aligned_pairs import (
    AlignedPairHead,
    align_question,
    alignment_with_inputs,
    make_question_alignment,
)
from albert_tf.modeling.embeddings import AlbertEmbeddings, encoder_inputs, known_inputs
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.heads import (
    CHARACTERS_SHAPE,
    CharacterTagHead,
    DenseOutputHead,
    MaskedLMHead,
    OutputHead,
    mean_state,
)
from albert_tf.modeling.kernels.elementwise import resolve_dropout_seed, split_dropout_seed
from albert_tf.modeling.kernels.positions import first_position, last_position, select_positions, with_first_position
from albert_tf.modeling.layers import Linear
from albert_tf.modeling.pretrained import AlbertModel, read_num_labels


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForPreTraining(AlbertModel):
    """Masked language model and sentence order prediction. Arguments as for `AlbertEncoder`."""

    hf_tag = "fill-mask"  # what Hugging Face calls what it is for

    def __init__(
        self,
        config: AlbertConfig,
        remat: str = "none",
        attention: str = "auto",
        embeddings: AlbertEmbeddings | None = None,
        **kwargs,
    ):
        super().__init__(config, remat, attention, **kwargs)
        policy = kwargs.get("dtype")
        self.encoder = AlbertEncoder(config, remat, attention, embeddings, dtype=policy)
        self.masked_lm_head = MaskedLMHead(config, dtype=policy)
        # It reads the pooler.
        self.sentence_order_head = OutputHead(config, 2, 0.0, dtype=policy) if config.pooler else None
        self.entity_head = None
        if config.num_entities:  # its product with an entity's vector scores that
            self.entity_head = Linear(config.hidden_size, config.entity_size, config.initializer_range, dtype=policy)

    def call(
        self,
        inputs,
        training=False,
        dropout_seed=None,
        output_hidden_states=False,
        output_attentions=False,
    ):
        """Scores masked tokens and the order of the segments; arguments as for `AlbertEncoder`.

        Args:
            inputs: The encoder's, and `masked_lm_positions` int [B, P] (every position if it is left out).

        Returns:
            The encoder's outputs, `masked_lm_logits` float32 [B, P, V] and, of models with a pooler,
            `sentence_order_logits` float32 [B, 2], whose class 1 means swapped. Without positions the logits at i are
            of the token there, or in models of `is_causal` of the next.
        """
        outputs = self.encoder(
            inputs,
            training=training,
            dropout_seed=dropout_seed,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        masked_lm_logits = self.masked_lm_head(
            outputs["sequence_output"],
            tf.convert_to_tensor(self.encoder.embeddings.word_embeddings),
            inputs.get("masked_lm_positions"),
        )
        outputs = {**outputs, "masked_lm_logits": masked_lm_logits}
        if self.sentence_order_head is None:
            return outputs
        return {**outputs, "sentence_order_logits": self.sentence_order_head(outputs["pooled_output"])}

    def _heads_with_inputs(self):
        states, positions = self._symbol(None, self.config.hidden_size), self._symbol(None, dtype="int32")
        embeddings = tf.keras.Input(batch_shape=self.encoder.embeddings.word_embeddings.shape, dtype="float32")
        heads = [(self.masked_lm_head, states, embeddings, positions)]
        if self.sentence_order_head is not None:
            heads.append((self.sentence_order_head, self._symbol(self.config.hidden_size)))
        if self.entity_head is not None:
            heads.append((self.entity_head, states))
        return heads


class _AlbertWithOutputHead(AlbertModel):
    def __init__(self, config: AlbertConfig, output_size: int, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(config, remat, attention, **kwargs)
        policy = kwargs.get("dtype")
        self.encoder = AlbertEncoder(config, remat, attention, dtype=policy)
        # Of a text as a whole the config says how it is read, and a head for each piece needs no saying.
        self._pooling = config.classifier_pooling if self.reads_pooler else None
        self._has_own_layer = self._pooling == "first" and config.classification_head != "pooled"
        self.reads_pooler = self._pooling == "first" and not self._has_own_layer
        if config.is_causal and self._pooling == "first":
            raise InputError(
                "classifier_pooling=first reads the first piece, which in a model of is_causal=true sees nothing "
                "of the text; set classifier_pooling=last"
            )
        if self.reads_pooler and not config.pooler:
            raise InputError(
                "classification_head=pooled reads the pooler, and this model has none (pooler=false); set "
                "classification_head=dense_tanh, or classifier_pooling=mean"
            )
        self.head = self._head_class()(config, output_size, config.classifier_dropout_prob, dtype=policy)

    def _head_class(self):
        if self._pooling == "aligned":
            return AlignedPairHead
        return DenseOutputHead if self._has_own_layer else OutputHead

    def _encode(self, inputs, training, dropout_seed, head_inputs=(), **wanted):
        """Returns `logits` float32 [..., output_size] and what else is wanted; the head also reads `head_inputs`."""
        encoder_seed, head_seed = split_dropout_seed(resolve_dropout_seed(training, dropout_seed), 2)
        inputs = known_inputs(inputs)
        positions, needs_all = self._positions_read(inputs), any(wanted.values())
        outputs = self.encoder(
            inputs,
            training=training,
            dropout_seed=encoder_seed,
            output_positions=None if needs_all else positions,
            **wanted,
        )
        if needs_all:
            outputs["sequence_output"] = select_positions(outputs["sequence_output"], positions)
        others = {name: outputs[name] for name in ("hidden_states", "attentions") if name in outputs}
        return {"logits": self._logits(inputs, outputs, head_inputs, head_seed), **others}

    def _positions_read(self, inputs):
        """Returns the positions whose states the head reads, int32 [B, P]; None for all."""
        given = next(iter(inputs.values()))
        if self._pooling == "first":
            return first_position(given)
        return with_first_position(last_position(given, inputs.get("input_mask"))) if self._pooling == "last" else None

    def _heads_with_inputs(self):
        states, ids = self._symbol(None, self.config.hidden_size), self._symbol(None, dtype="int32")
        if self._pooling == "aligned":
            return [(self.head, states, self._symbol(None, self.config.embedding_size), ids, ids)]
        return [(self.head, self._symbol(self.config.hidden_size) if self._pooling else states)]

    def _logits(self, inputs, outputs, head_inputs, dropout_seed):
        states = outputs["sequence_output"]
        if self._pooling == "aligned":
            found = encoder_inputs(inputs)
            embeddings = self.encoder.embeddings.words(found.get("input_ids"), found.get("inputs_embeds"))
            return self.head(states, embeddings, found["input_mask"], found["segment_ids"], dropout_seed=dropout_seed)
        if self._pooling == "mean":
            states = mean_state(states, inputs.get("input_mask"))
        elif self._pooling == "last":
            states = states[:, -1]
        elif self._pooling == "first":
            states = states[:, 0] if self._has_own_layer else outputs["pooled_output"]
        return self.head(states, *head_inputs, dropout_seed=dropout_seed)


class _AlbertWithLabels(_AlbertWithOutputHead):
    def __init__(self, config: AlbertConfig, num_labels: int, **kwargs):
        super().__init__(config, num_labels, **kwargs)
        self._num_labels = num_labels

    @classmethod
    def _complete_options(cls, options, checkpoint, source):
        return options if "num_labels" in options else {**options, "num_labels": read_num_labels(checkpoint, source)}

    def get_config(self):
        return {**super().get_config(), "num_labels": self._num_labels}


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForSequenceClassification(_AlbertWithLabels):
    """A label, or with one output a score, for a text or pair.

    Raises:
        InputError: `classifier_pooling` is "first" in a causal model, or in one that lacks the pooler which
            `classification_head` "pooled" reads.
    """

    hf_tag = "text-classification"

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Scores the labels of each text or pair; arguments as for `AlbertEncoder`.

        Returns:
            `logits` float32 [B, num_labels], and the encoder's `hidden_states` and `attentions` if asked for.
        """
        wanted = {"output_hidden_states": output_hidden_states, "output_attentions": output_attentions}
        return self._encode(inputs, training, dropout_seed, **wanted)


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForTokenClassification(_AlbertWithLabels):
    """A label for each token."""

    hf_tag = "token-classification"
    reads_pooler = False

    def _head_class(self):
        return CharacterTagHead if self.config.character_ngrams else OutputHead

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Scores the labels of each token; arguments as for `AlbertEncoder`.

        Args:
            inputs: The encoder's, and with `character_ngrams` `characters` int32 [B, S, 2, 5], the five code points
                around a word's first character and around its last one.

        Returns:
            `logits` float32 [B, S, num_labels], and the encoder's `hidden_states` and `attentions` if asked for.

        Raises:
            InputError: The head reads `characters`, and there are none.
        """
        wanted = {"output_hidden_states": output_hidden_states, "output_attentions": output_attentions}
        head_inputs = ()
        if self.config.character_ngrams:
            if "characters" not in inputs:
                raise InputError("a model of character_ngrams=true needs `characters` in its dictionary of inputs")
            head_inputs = (inputs["characters"],)
        return self._encode(inputs, training, dropout_seed, head_inputs, **wanted)

    def _heads_with_inputs(self):
        if not self.config.character_ngrams:
            return super()._heads_with_inputs()
        characters = self._symbol(None, *CHARACTERS_SHAPE, dtype="int32")
        return [(self.head, self._symbol(None, self.config.hidden_size), characters)]

    def _input_shapes(self):
        more = {"characters": [None, None, *CHARACTERS_SHAPE]} if self.config.character_ngrams else {}
        return {**super()._input_shapes(), **more}


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForQuestionAnswering(_AlbertWithOutputHead):
    """Where in the text an answer begins and ends (original run_squad_v1.py)."""

    hf_tag = "question-answering"
    reads_pooler = False

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, 2, **kwargs)
        self.question_alignment = make_question_alignment(config, dtype=kwargs.get("dtype"))

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Scores each token as the first and as the last of the answer; arguments as for `AlbertEncoder`.

        Returns:
            `start_logits` and `end_logits` float32 [B, S], and the encoder's outputs if asked for.
        """
        wanted = {"output_hidden_states": output_hidden_states, "output_attentions": output_attentions}
        inputs = align_question(inputs, self.encoder, self.question_alignment)
        outputs = self._encode(inputs, training, dropout_seed, **wanted)
        logits = outputs.pop("logits")
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1], **outputs}

    def _heads_with_inputs(self):
        return [*alignment_with_inputs(self.question_alignment, self._symbol), *super()._heads_with_inputs()]


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForMultipleChoice(_AlbertWithOutputHead):
    """Which of several texts fits (original run_race.py).

    Raises:
        InputError: As for `AlbertForSequenceClassification`.
    """

    hf_tag = "multiple-choice"
    _ids_rank = 3

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, 1, **kwargs)

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Scores each choice by itself; arguments as for `AlbertEncoder`.

        Args:
            inputs: The encoder's with a second axis, [B, choices, ...].

        Returns:
            `logits` float32 [B, choices]; if asked for, `hidden_states` and `attentions` of B * choices texts.
        """
        inputs = known_inputs(inputs)
        first = next(iter(inputs.values()))
        num_choices = first.shape[1] or tf.shape(first)[1]
        wanted = {"output_hidden_states": output_hidden_states, "output_attentions": output_attentions}
        outputs = self._encode(
            {name: _merge_first_axes(values) for name, values in inputs.items()}, training, dropout_seed, **wanted
        )
        return {**outputs, "logits": tf.reshape(outputs["logits"], [-1, num_choices])}


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForVectors(AlbertModel):
    """A vector for each text, to be compared by the cosine. Arguments as for `AlbertEncoder`."""

    hf_tag = "sentence-similarity"
    reads_pooler = False

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(config, remat, attention, **kwargs)
        self.encoder = AlbertEncoder(config, remat, attention, dtype=kwargs.get("dtype"))

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Makes a vector of each text; arguments as for `AlbertEncoder`.

        Returns:
            The encoder's outputs, and `vectors` float32 [B, H], the mean of the last states of all tokens.
        """
        wanted = {"output_hidden_states": output_hidden_states, "output_attentions": output_attentions}
        outputs = self.encoder(inputs, training=training, dropout_seed=dropout_seed, **wanted)
        mean = mean_state(outputs["sequence_output"], known_inputs(inputs).get("input_mask"))
        return {**outputs, "vectors": tf.cast(mean, tf.float32)}

    def _heads_with_inputs(self):
        return []


def _merge_first_axes(values):
    rest = [size or tf.shape(values)[2 + axis] for axis, size in enumerate(values.shape[2:])]
    return tf.reshape(values, [-1, *rest])
