"""A pre-trained model's embeddings of texts and of their tokens, and its guesses for masks."""

import tensorflow as tf

from albert_tf.asking.answers import DEFAULT, FILL_MASK, FIND_REPLACED, LENGTHS, PIECES
from albert_tf.modeling.heads import mean_state
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures.base import Signatures, compute_by_length

NUM_GUESSES = 10


class PretrainedSignatures(Signatures):
    """Of a model that was pre-trained and not fine-tuned; each takes `text` string [N].

    `serving_default` returns `mean` float32 [N, H], the average of the states of a text's tokens, [CLS] and [SEP] among
    them, and `pooled` float32 [N, H], the pooler's output; the latter is left out where nothing has trained a pooler,
    or where [CLS] sees nothing of the text.

    `pieces` returns, for S tokens of the longest text, `pieces` string [N, S], "" behind the last one of a text;
    `begins` and `ends` int32 [N, S], which characters of the text each stands for, 0 and 0 for [CLS] and [SEP]; their
    `embeddings` float32 [N, S, H]; and `lengths` int32 [N], how many tokens each text has.

    `fill_mask` reads texts with "[MASK]" for each token that is missing. It returns, for M masks of the text with most
    of them, `guesses` string [N, M, 10], the most probable tokens, their `probabilities` float32 [N, M, 10], "" and 0
    where a text has fewer masks, and `lengths` int32 [N], how many masks each has. It is left out where the folder
    lacks a head that guesses tokens.

    `find_replaced`, of a discriminator, returns for S tokens of the longest text, [CLS] and [SEP] left out, `pieces`,
    `begins`, `ends` and `lengths` as above, and `probabilities` float32 [N, S] of having been replaced, 0 behind the
    last token of a text.
    """

    def __init__(self, trained: TrainedModel, num_guesses: int = NUM_GUESSES):
        super().__init__(trained)
        self._abilities, self._pools, self._num_guesses = trained.abilities, trained.pools, num_guesses

    def functions(self):
        heads = {FILL_MASK: self._fill_mask, FIND_REPLACED: self._find_replaced}
        there = {name: function for name, function in heads.items() if name in self._abilities}
        return {DEFAULT: self._embed, PIECES: self._embed_pieces, **there}

    def _embed(self, text):
        return compute_by_length(self._embed_group, self._inputs.encode(text))

    def _embed_group(self, batch):
        outputs = self._encode(batch)
        mean = mean_state(outputs["sequence_output"], batch["input_mask"])
        return {"mean": mean, **({"pooled": outputs["pooled_output"]} if self._pools else {})}

    def _encode(self, batch):
        return {name: tf.cast(values, tf.float32) for name, values in self._model.encoder(batch).items()}

    def _embed_pieces(self, text):
        ids, *offsets = self._tokenizer.encode_with_offsets(text)
        batch = self._inputs.pack(ids)
        length = tf.shape(batch["input_ids"])[1]
        begins, ends = (_beside_special_tokens(values, length) for values in offsets)
        states = compute_by_length(lambda group: {"states": self._encode(group)["sequence_output"]}, batch)["states"]
        return {
            "pieces": self._pieces(batch["input_ids"], batch["input_mask"]),
            "begins": begins,
            "ends": ends,
            "embeddings": states,
            LENGTHS: tf.reduce_sum(batch["input_mask"], axis=1),
        }

    def _fill_mask(self, text):
        batch, positions = self._inputs.encode_masked(text)
        is_mask = tf.sequence_mask(positions.row_lengths())
        num_masks = tf.shape(is_mask)[1]

        def guess(group):
            """Returns the guesses and their probabilities [G, 10, M], so that the masks, M in all groups, come last."""
            probabilities = tf.nn.softmax(self._model(group)["masked_lm_logits"])
            found = tf.math.top_k(probabilities, min(self._num_guesses, probabilities.shape[-1]))
            missing = [[0, 0], [0, num_masks - tf.shape(probabilities)[1]], [0, 0]]
            return {
                name: tf.linalg.matrix_transpose(tf.pad(values, missing)) for name, values in found._asdict().items()
            }

        # A group at a time, for of each mask there is a probability of each piece of the vocabulary.
        found = compute_by_length(guess, {**batch, "masked_lm_positions": positions.to_tensor()})
        ids, probabilities = (tf.linalg.matrix_transpose(found[name]) for name in ("indices", "values"))
        return {
            "guesses": self._pieces(ids, tf.cast(is_mask[..., None], tf.int32)),
            "probabilities": tf.where(is_mask[..., None], probabilities, 0.0),
            LENGTHS: tf.cast(positions.row_lengths(), tf.int32),
        }

    def _find_replaced(self, text):
        ids, *offsets = self._tokenizer.encode_with_offsets(text)
        batch = self._inputs.pack(ids)
        lengths = tf.reduce_sum(batch["input_mask"], axis=1) - 2
        most = tf.maximum(0, tf.shape(batch["input_ids"])[1] - 2)  # where there is no text, nothing is
        is_there = tf.sequence_mask(lengths, most)
        found = compute_by_length(lambda group: {"logits": self._model(group)["replaced_token_logits"]}, batch)
        begins, ends = (tf.cast(values.to_tensor(shape=[None, None]), tf.int32)[:, :most] for values in offsets)
        return {
            "pieces": self._pieces(batch["input_ids"][:, 1:-1], tf.cast(is_there, tf.int32)),
            "begins": tf.where(is_there, begins, 0),
            "ends": tf.where(is_there, ends, 0),
            "probabilities": tf.where(is_there, tf.math.sigmoid(found["logits"][:, 1:-1]), 0.0),
            LENGTHS: lengths,
        }

    def _pieces(self, ids, is_there):
        pieces = tf.gather(tf.constant(self._tokenizer.vocabulary.pieces), ids)
        return tf.where(is_there > 0, pieces, "")


def _beside_special_tokens(values, length):
    """Returns [N, (pieces)] as int32 [N, length], 0 for [CLS], [SEP] and padding, what was cut off left out."""
    values = tf.cast(values[:, : length - 2], tf.int32).to_tensor()
    return tf.pad(values, [[0, 0], [1, length - 1 - tf.shape(values)[1]]])
