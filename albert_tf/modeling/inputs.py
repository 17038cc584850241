"""The dictionary that every model takes."""

import collections.abc

import tensorflow as tf

from albert_tf.errors import InputError

ENCODER_INPUTS = ("input_ids", "input_mask", "segment_ids")

# Hugging Face's names of the same.
_ALIASES = {"attention_mask": "input_mask", "token_type_ids": "segment_ids"}

# What else a training batch holds. The encoder passes it over, so that a step can hand on a batch as it is.
_OTHER_NAMES = (
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "sentence_order_labels",
    "label_ids",
    "start_positions",
    "end_positions",
    "example_weights",
)


def encoder_inputs(inputs: collections.abc.Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns what the encoder reads of a dictionary, under our names; no work of the program that is traced.

    Args:
        inputs: `input_ids`, and if given `input_mask` or else `attention_mask`, and `segment_ids` or else
            `token_type_ids`; None counts as not given. May hold what training batches do besides, labels and weights.

    Returns:
        The values under the names in `ENCODER_INPUTS`, of those that are given.

    Raises:
        InputError: A name is unknown, both names of one input are given, or there are no `input_ids`.
    """
    unknown = [name for name in inputs if name not in (*ENCODER_INPUTS, *_ALIASES, *_OTHER_NAMES)]
    if unknown:
        raise InputError(
            f"a model takes no {', '.join(map(str, unknown))}; the dictionary of inputs may hold input_ids, input_mask "
            "(or attention_mask), segment_ids (or token_type_ids), and of a training batch "
            f"{', '.join(_OTHER_NAMES)}"
        )
    found = {}
    for name, value in inputs.items():
        ours = _ALIASES.get(name, name)
        if ours not in ENCODER_INPUTS or value is None:
            continue
        if ours in found:
            other = next(alias for alias in _ALIASES if _ALIASES[alias] == ours)
            raise InputError(f"{ours} and {other} are two names of one input; give a model one of them")
        found[ours] = value
    if "input_ids" not in found:
        raise InputError("a model needs input_ids in its dictionary of inputs")
    return found
