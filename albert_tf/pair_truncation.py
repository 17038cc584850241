"""Which text of a pair keeps the odd piece where both are cut: libraries differ; nothing here imports TensorFlow."""

import typing

from albert_tf.errors import InputError, quote

# Of ours; of the library `tokenizers`, which transformers' fast ones are of; of Google's loop over pieces.
ODD_TO_SECOND, ODD_TO_LONGER, ODD_TO_FIRST = TRUNCATIONS = ("odd_to_second", "odd_to_longer", "odd_to_first")


def check_truncation(truncation: typing.Any) -> str:
    """Returns the rule; raises InputError unless it is one of `TRUNCATIONS`."""
    if truncation not in TRUNCATIONS:
        raise InputError(f"truncation must be one of {', '.join(TRUNCATIONS)}. Received: {quote(truncation)}")
    return truncation


def share_of_first(room: int, truncation: str, is_longer: typing.Any) -> typing.Any:
    """Returns how many pieces of the first text are left where both are cut.

    Together they have room for `room` pieces; `is_longer`, a number or tensor, is 1 where the first is longer, else 0.
    """
    odd = {ODD_TO_SECOND: 0, ODD_TO_LONGER: is_longer, ODD_TO_FIRST: 1}[truncation]
    return (room + odd) // 2
