"""The dictionary of inputs of every model."""

import collections.abc

import tensorflow as tf

from albert_tf.errors import InputError

ENCODER_INPUTS = (
    "input_ids",
    "inputs_embeds",
    "input_mask",
    "document_ids",
    "segment_ids",
    "position_ids",
    "language_ids",
    "entity_ids",
)

# Hugging Face's names of the same.
_ALIASES = {"attention_mask": "input_mask", "token_type_ids": "segment_ids", "langs": "language_ids"}

# Other features of training batches. The encoder ignores them, so that a step can pass on a batch as it is.
_OTHER_NAMES = (
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "sentence_order_labels",
    "label_ids",
    "characters",
    "label_values",
    "start_positions",
    "end_positions",
    "example_weights",
    "window_weights",
    "num_characters",
    "teacher_logits",
    "teacher_start_logits",
    "teacher_end_logits",
    "has_label",
)


def encoder_inputs(inputs: collections.abc.Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the encoder's inputs under the names in `ENCODER_INPUTS`, with defaults for mask (1) and segments (0).

    `inputs` may hold transformers' names, labels and weights of training batches, and None for what is not given.

    Raises:
        InputError: A name is unknown, both names of one input are given, neither or both of `input_ids` and
            `inputs_embeds` are, or `input_mask` or `document_ids` has a wrong shape.
    """
    found = known_inputs(inputs)
    mask = found.get("input_mask")
    if mask is not None and mask.shape.rank not in (2, 3):
        raise InputError(
            f"input_mask must be [B, S], or [B, S, S] with a row for each query; its shape is {tuple(mask.shape)}"
        )
    documents = found.get("document_ids")
    if documents is not None and documents.shape.rank != 2:
        raise InputError(f"document_ids must be [B, S], one for each piece; their shape is {tuple(documents.shape)}")
    ids = found["input_ids"] if "input_ids" in found else found["inputs_embeds"][..., 0]
    if mask is None:
        found["input_mask"] = tf.ones_like(ids, tf.int32)
    if "segment_ids" not in found:
        found["segment_ids"] = tf.zeros_like(ids, tf.int32)
    return found


def known_inputs(inputs: collections.abc.Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the given inputs under the names in `ENCODER_INPUTS`, without adding anything to a graph."""
    unknown = [name for name in inputs if name not in (*ENCODER_INPUTS, *_ALIASES, *_OTHER_NAMES)]
    if unknown:
        raise InputError(
            f"a model has no input {', '.join(map(str, unknown))}; the dictionary of inputs may hold "
            "input_ids or "
            "inputs_embeds, input_mask (or attention_mask), document_ids, segment_ids (or token_type_ids), "
            f"position_ids, language_ids (or langs), entity_ids, and of a training batch {', '.join(_OTHER_NAMES)}"
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
    if "input_ids" not in found and "inputs_embeds" not in found:
        raise InputError("a model needs input_ids, or inputs_embeds, in its dictionary of inputs")
    if "input_ids" in found and "inputs_embeds" in found:
        raise InputError("input_ids and inputs_embeds exclude each other; give the model one of them")
    return found
