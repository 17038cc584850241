"""Which entity a text mentions, among those of the batch (ERNIE; Zhang et al. 2019, section 3.4).

Mentions are those of the text before it was masked; the encoder adds those that it finds afterwards, as it will in use.
A visible mention gives its entity away: as in the paper, 5% are replaced by another entity, and 15% left out.
"""

import dataclasses

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.sequences import find_sequences
from albert_tf.base.settings import RARE, Settings, setting
from albert_tf.config import AlbertConfig
from albert_tf.objectives.language_models import MaskedLM, original_ids
from albert_tf.objectives.losses import Pretraining, PretrainingLoss
from albert_tf.pretraining_data.entities import KnownEntities
from albert_tf.pretraining_data.masking import MaskingOptions

_REPLACED, _HIDDEN = 0.05, 0.15
# Of so many pieces at most one is a mention that is learnt: the first ones of an example.
_PIECES_PER_MENTION = 8
_NO_CANDIDATE = -1e9
_FOLD = 43  # tells what is drawn here from what masks are drawn by


class EntityPrediction(PretrainingLoss):
    """The cross-entropy of mentioned entities, among the distinct ones of a replica's batch, or of a part of it."""

    # Without data no entities are known.

    name = "entity"
    further_metrics = ("entity_unseen_accuracy", "entity_blind_accuracy")
    reads = ("entity_head/",)
    reads_all_states = True
    compares_examples = True

    def __init__(self, config, entities):
        super().__init__(config)
        self._known = entities

    def prepare(self, features, seed):
        known = self._known
        mentioned, _ = find_sequences(known.trie, known.sizes, original_ids(features))
        most = most_mentions(features["input_ids"].shape[1])
        positions = tf.math.top_k(tf.cast(mentioned > 0, tf.int32), most).indices  # of equals the first
        found, _ = find_sequences(known.trie, known.sizes, features["input_ids"])
        seed = tf.random.experimental.stateless_fold_in(seed, _FOLD)
        return {
            "entity_ids": change_some(found, self.config.num_entities, seed),
            "entity_positions": positions,
            "entity_labels": tf.gather(mentioned, positions, batch_dims=1),
        }

    def batch_spec(self, max_seq_length):
        mentions = tf.TensorSpec([None, most_mentions(max_seq_length)], tf.int32)
        told = tf.TensorSpec([None, max_seq_length], tf.int32)
        return {"entity_ids": told, "entity_positions": mentions, "entity_labels": mentions}

    def encoder_inputs(self, batch):
        return {"entity_ids": batch["entity_ids"]}

    def weight(self, batch):
        return tf.reduce_sum(tf.cast(batch["entity_labels"] > 0, tf.float32))

    def compute(self, model, states, batch):
        """Returns loss, accuracy, and, for mentions whose entity the encoder lacks, accuracy and a blind rule's."""
        positions, labels = batch["entity_positions"], tf.reshape(batch["entity_labels"], [-1])
        mentioned = tf.gather(states.sequence_output, positions, batch_dims=1)
        queries = tf.cast(model.entity_head(mentioned), tf.float32)
        queries = tf.reshape(queries, [-1, queries.shape[-1]])
        losses, guesses, most_frequent = tell_entities(queries, model.encoder.entity_fusion.vectors(labels), labels)
        told = tf.reshape(tf.gather(batch["entity_ids"], positions, batch_dims=1), [-1])
        is_mention = tf.cast(labels > 0, tf.float32)
        is_unseen = is_mention * tf.cast(told != labels, tf.float32)

        def sums(values, weights):
            return tf.reduce_sum(tf.cast(values, tf.float32) * weights), tf.reduce_sum(weights)

        return (
            sums(losses, is_mention),
            sums(guesses == labels, is_mention),
            sums(guesses == labels, is_unseen),
            sums(most_frequent == labels, is_unseen),
        )

    def products(self, batch_spec):
        batch_size, mentions = batch_spec["entity_labels"].shape
        return mentions * self.config.entity_size * (self.config.hidden_size + mentions * batch_size)


def most_mentions(max_seq_length: int) -> int:
    return max(1, max_seq_length // _PIECES_PER_MENTION)


def change_some(entity_ids: tf.Tensor, num_entities: int, seed: tf.Tensor) -> tf.Tensor:
    """Returns the entities for the encoder, int32 [B, S]: 5% of the mentions get one drawn from all, 15% none."""
    # int32 [B, S], 0 for none; the seed is int64 [2].
    fate_seed, entity_seed = tf.unstack(tf.random.split(seed, 2))
    fates = tf.random.stateless_uniform(tf.shape(entity_ids), fate_seed)
    others = tf.random.stateless_uniform(tf.shape(entity_ids), entity_seed, 1, num_entities + 1, tf.int32)
    changed = tf.where(fates < _REPLACED, others, tf.where(fates < _REPLACED + _HIDDEN, 0, entity_ids))
    return tf.ensure_shape(tf.where(entity_ids > 0, changed, 0), entity_ids.shape)


def tell_entities(queries: tf.Tensor, vectors: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the loss of each mention, the entity that it is taken for, and the one that is mentioned most often.

    Queries and the vectors of the mentioned entities are float32 [N, E]. A candidate that is mentioned n times counts
    for 1/n each time, so that the softmax is over distinct entities though shapes don't depend on their number. A row
    whose label is 0 is no candidate, and its loss is meaningless.
    """
    is_candidate = labels > 0
    counts = tf.reduce_sum(tf.cast((labels[:, None] == labels) & is_candidate, tf.float32), axis=1)
    scores = tf.matmul(queries, vectors, transpose_b=True)
    weighted = scores + tf.where(is_candidate, -tf.math.log(tf.maximum(counts, 1.0)), _NO_CANDIDATE)
    losses = tf.reduce_logsumexp(weighted, axis=1) - tf.reduce_sum(queries * vectors, axis=1)
    guesses = tf.gather(labels, tf.argmax(tf.where(is_candidate, scores, _NO_CANDIDATE), axis=1))
    return losses, guesses, tf.gather(labels, tf.argmax(counts))


ENTITY_VECTORS = "entity_vectors"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EntitySettings(Settings):
    entity_vectors: str = setting(
        "", "Folder of entities.txt and entity_vectors.npy, for objective=entities.", group=RARE
    )


class Entities(Pretraining):
    """The masked language model, and which entities are mentioned."""

    # Without data, and so without languages, there is a model of so many entities, but nothing to train.

    def __init__(
        self,
        config: AlbertConfig,
        masking: MaskingOptions,
        entities: KnownEntities | None,
        languages: tuple[str, ...] | None,
        **others,
    ):
        has_data = languages is not None
        if not config.num_entities or (has_data and entities is None):
            known = "was trained with" if config.num_entities else "is to know"
            raise InputError(
                f"`objective=entities` needs the entities that the model {known}; name the folder of their "
                f"entities.txt and entity_vectors.npy with `{ENTITY_VECTORS}`"
            )
        super().__init__(config, [MaskedLM(config, masking), EntityPrediction(config, entities)])
        self._known = entities
        # No packing knows how often an entity can be guessed; the loss measures it itself.
        self.blind_metric = None

    def make_model(self, **options):
        """Returns an `AlbertForPreTraining` with its entities assigned."""
        model = super().make_model(**options)
        if self._known is not None:
            model.encoder.entity_fusion.assign(self._known.vectors, self._known.trie)
        return model

    def identity(self):
        return {**super().identity(), **({"entities": self._known.sha256} if self._known else {})}
