"""From the logits of tags to a tag for each position."""

import tensorflow as tf

from albert_tf.finetuning.entities.tags import may_follow

INDEPENDENT, BEST_SEQUENCE = DECODINGS = ("independent", "best_sequence")

# Added where a tag may not follow another.
_IMPOSSIBLE = -1e30


def best_sequence(logits: tf.Tensor, is_read: tf.Tensor, labels: tuple[str, ...]) -> tf.Tensor:
    """Returns the tags with the highest sum of logits of which each I- goes on with an entity (Viterbi 1967).

    The first tag may be any: a long sentence is read in parts, and an entity may go on from one to the next.

    Args:
        logits: float32 [B, S, T].
        is_read: bool [B, S], where words or characters are read; other positions stand between no tags.
        labels: The T tags.

    Returns:
        int32 [B, S]; where nothing is read, any.
    """
    costs = tf.constant([[0.0 if may_follow(before, tag) else _IMPOSSIBLE for tag in labels] for before in labels])
    itself = tf.range(len(labels))[None]

    def forward(best_and_origins, logits_and_is_read):
        (best, _), (scores, is_read) = best_and_origins, logits_and_is_read
        sums = tf.expand_dims(best, 2) + costs
        now, origins = tf.reduce_max(sums, axis=1) + scores, tf.argmax(sums, axis=1, output_type=tf.int32)
        return tf.where(is_read, now, best), tf.where(is_read, origins, itself)

    steps = tf.transpose(logits, [1, 0, 2]), tf.transpose(is_read)[..., None]
    begin = tf.zeros_like(logits[:, 0]), tf.zeros_like(logits[:, 0], tf.int32)
    best, origins = tf.scan(forward, steps, begin)
    last = tf.argmax(best[-1], axis=-1, output_type=tf.int32)
    before = tf.scan(lambda tags, origins: tf.gather(origins, tags, batch_dims=1), origins, last, reverse=True)
    return tf.transpose(tf.concat([before[1:], last[None]], axis=0))
