"""What a model looks at when it reads a text: the probabilities of its heads."""

import typing

import numpy as np
import tensorflow as tf

from albert_tf.serving.predictor import Predictor
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.serving.signatures.text_inputs import TextInputs


class Attention(typing.NamedTuple):
    """What a model looks at when it reads a text, or two.

    Attributes:
        pieces: The S pieces that it reads, special tokens among them.
        probabilities: float32 [layers, heads, S, S]: how much each piece, a row, looks at each other one.
    """

    pieces: list[str]
    probabilities: np.ndarray


def read_attention(asked: Predictor | PretrainedModel, *texts: str, max_pieces: int) -> Attention:
    """Returns what a model looks at.

    Args:
        asked: What `albert_tf.load` returns of a folder that was trained in, but of a task with one text or two.
        *texts: One input.
        max_pieces: So many pieces are read at most; of a text that is read in windows, the first one.
    """
    inputs = _inputs_of(asked, texts, min(max_pieces, asked.max_seq_length))
    length = int(np.sum(inputs["input_mask"][0]))
    # The model itself is asked, and not its encoder: some change what the encoder reads.
    batch = {name: tf.constant(values[:1, :length]) for name, values in inputs.items()}
    found = asked.model(batch, output_attentions=True)["attentions"]
    pieces = [asked.tokenizer.vocabulary.pieces[each] for each in inputs["input_ids"][0, :length]]
    return Attention(pieces, np.stack([layer[0].numpy() for layer in found]))


def _inputs_of(asked, texts, max_pieces):
    if isinstance(asked, PretrainedModel):
        return TextInputs(asked.tokenizer, max_pieces).encode_masked(tf.constant(texts))[0]
    features = asked.task.encode(asked.task.examples_of([texts]), asked.tokenizer, max_pieces)
    names = ("input_ids", "input_mask", "segment_ids", "characters")
    return {name: features[name] for name in names if name in features}
