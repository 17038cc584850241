"""Question answering whose end depends on the beginning, and which may find no answer (original run_squad_v2.py)."""

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.aligned_pairs import align_question, alignment_with_inputs, make_question_alignment
from albert_tf.modeling.embeddings import encoder_inputs
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.kernels.elementwise import dropout, resolve_dropout_seed, split_dropout_seed
from albert_tf.modeling.kernels.linear import linear
from albert_tf.modeling.kernels.positions import select_positions
from albert_tf.modeling.layers import ConfiguredLayer, LayerNorm, Linear
from albert_tf.modeling.pretrained import AlbertModel

# The logit of a position where no answer can begin or end.
IMPOSSIBLE = -1e30


@tf.keras.utils.register_keras_serializable("albert_tf")
class ConditionalAnswerHead(ConfiguredLayer):
    """Scores beginnings, ends given a beginning, and, with classifier dropout, that there is no answer."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        size, deviation, policy = config.hidden_size, config.initializer_range, kwargs.get("dtype")
        self.start = Linear(size, 1, deviation, dtype=policy)
        self.end_transform = Linear(2 * size, size, deviation, dtype=policy)
        self.end_layer_norm = LayerNorm(size, config.layer_norm_eps, dtype=policy)
        self.end = Linear(size, 1, deviation, dtype=policy)
        self.null_transform = Linear(2 * size, size, deviation, dtype=policy)
        self.null_kernel = self.add_parameter("null_kernel", [size, 1], deviation)

    def call(self, states, start_positions, may_answer, dropout_seed=None):
        """Returns the logits of beginnings [B, S], of ends [B, K, S] and of no answer [B], all float32.

        Takes states [B, S, H], the beginnings whose ends are scored, int [B, K] (None for the best), and where an
        answer can begin and end, bool [B, S].
        """
        start_logits = self.start_logits(states, may_answer)
        if start_positions is None:
            start_positions = tf.argmax(start_logits, axis=-1, output_type=tf.int32)[:, None]
        end_logits = self.end_logits(states, start_positions, may_answer)
        return start_logits, end_logits, self.null_logits(states, start_logits, dropout_seed)

    def start_logits(self, states, may_answer):
        return _masked(self.start(states)[..., 0], may_answer)

    def end_logits(self, states, start_positions, may_answer):
        kernel, bias = (tf.convert_to_tensor(value) for value in (self.end_transform.kernel, self.end_transform.bias))
        size = states.shape[-1]
        # The product with (state of the position, state of the first position), without holding each pair of them.
        of_positions = linear(states, kernel[:size], bias, self.compute_dtype)
        first_states = select_positions(states, start_positions)
        of_starts = linear(first_states, kernel[size:], tf.zeros_like(bias), self.compute_dtype)
        hidden = self.end_layer_norm(tf.tanh(of_positions[:, None] + of_starts[:, :, None]))
        return _masked(self.end(hidden)[..., 0], may_answer[:, None])

    def null_logits(self, states, start_logits, dropout_seed=None):
        """Scores that there is no answer, from [CLS] and the states weighted by `start_logits` float32 [B, S]."""
        weights = tf.cast(tf.nn.softmax(start_logits), states.dtype)
        begin = tf.squeeze(tf.matmul(weights[:, None], states), axis=1)
        hidden = tf.tanh(self.null_transform(tf.concat([begin, states[:, 0]], axis=-1)))
        hidden = dropout(hidden, self._config.classifier_dropout_prob, dropout_seed)
        kernel = tf.cast(tf.convert_to_tensor(self.null_kernel), hidden.dtype)
        return tf.cast(tf.matmul(hidden, kernel)[:, 0], tf.float32)


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForConditionalQuestionAnswering(AlbertModel):
    """The beginning and the end of an answer in the second text, or that there is none; the first is the question.

    Raises:
        InputError: The model is causal, so [CLS] sees nothing of the text.
    """

    hf_tag = "question-answering"
    reads_pooler = False

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(config, remat, attention, **kwargs)
        if config.is_causal:
            raise InputError(
                "`version_2_with_negative`: whether there is an answer is read off the first piece, which in a model "
                "of is_causal=true sees nothing of the text; leave it out"
            )
        policy = kwargs.get("dtype")
        self.encoder = AlbertEncoder(config, remat, attention, dtype=policy)
        self.question_alignment = make_question_alignment(config, dtype=policy)
        self.head = ConditionalAnswerHead(config, dtype=policy)

    def call(self, inputs, training=False, dropout_seed=None, output_hidden_states=False, output_attentions=False):
        """Scores beginnings, and ends for the given beginning or else the best; arguments as for `AlbertEncoder`.

        Args:
            inputs: The encoder's, and `start_positions` int [B] in training.

        Returns:
            `start_logits` and `end_logits` float32 [B, S], about -1e30 where no answer can be, `null_logits` float32
            [B] of there being none, and the encoder's outputs if asked for.
        """
        encoder_seed, head_seed = split_dropout_seed(resolve_dropout_seed(training, dropout_seed), 2)
        outputs = self.encoder(
            align_question(inputs, self.encoder, self.question_alignment),
            training=training,
            dropout_seed=encoder_seed,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        start_positions = inputs.get("start_positions")
        start_logits, end_logits, null_logits = self.head(
            outputs["sequence_output"],
            None if start_positions is None else start_positions[:, None],
            answer_positions(inputs),
            dropout_seed=head_seed,
        )
        others = {name: outputs[name] for name in ("hidden_states", "attentions") if name in outputs}
        return {
            "start_logits": start_logits,
            "end_logits": tf.squeeze(end_logits, axis=1),
            "null_logits": null_logits,
            **others,
        }

    def _heads_with_inputs(self):
        head = (self.head, self._symbol(None, self.config.hidden_size), None, self._symbol(None, dtype="bool"))
        return [*alignment_with_inputs(self.question_alignment, self._symbol), head]

    def search(self, inputs, start_n_top: int, end_n_top: int, max_answer_length: int):
        """Returns the most probable spans of the second text: some beginnings, and some ends of each.

        Args:
            inputs: The encoder's.
            start_n_top: Number of beginnings K, fewer where a text has fewer positions.
            end_n_top: Number of ends M of each.
            max_answer_length: Longest span, in tokens.

        Returns:
            `start_positions` int32 and `start_log_probs` float32 [B, K], `end_positions` int32 and `end_log_probs`
            float32 [B, K, M], about -1e30 where there are too few spans, and `null_logits` float32 [B].
        """
        encoded = self.encoder(align_question(inputs, self.encoder, self.question_alignment))
        states, may_answer = encoded["sequence_output"], answer_positions(inputs)
        start_logits = self.head.start_logits(states, may_answer)
        positions = tf.range(tf.shape(start_logits)[1])
        is_text = tf.concat([tf.zeros_like(may_answer[:, :1]), may_answer[:, 1:]], axis=1)
        start_log_probs, starts = _top(tf.nn.log_softmax(start_logits), is_text, start_n_top)
        end_logits = self.head.end_logits(states, starts, may_answer)
        distance = positions - starts[..., None]
        is_reached = is_text[:, None] & (distance >= 0) & (distance < max_answer_length)
        end_log_probs, ends = _top(tf.nn.log_softmax(end_logits), is_reached, end_n_top)
        return {
            "start_positions": starts,
            "start_log_probs": start_log_probs,
            "end_positions": ends,
            "end_log_probs": end_log_probs,
            "null_logits": self.head.null_logits(states, start_logits),
        }


def answer_positions(inputs) -> tf.Tensor:
    """Returns where an answer can begin and end, bool [B, S]: at [CLS] and in the second text except for its [SEP]."""
    found = encoder_inputs(inputs)
    mask = found["input_mask"]
    mask = (tf.linalg.diag_part(mask) if mask.shape.rank == 3 else mask) > 0
    is_second = mask & (found["segment_ids"] > 0)
    has_next = tf.concat([mask[:, 1:], tf.zeros_like(mask[:, :1])], axis=1)
    return tf.concat([tf.ones_like(mask[:, :1]), (is_second & has_next)[:, 1:]], axis=1)


def _masked(logits, is_possible):
    return tf.where(is_possible, tf.cast(logits, tf.float32), IMPOSSIBLE)


def _top(log_probs, is_possible, count):
    length = log_probs.shape[-1]  # on a TPU it is known, and the count must be as well
    count = tf.minimum(count, tf.shape(log_probs)[-1]) if length is None else min(count, length)
    return tf.math.top_k(_masked(log_probs, is_possible), count)
