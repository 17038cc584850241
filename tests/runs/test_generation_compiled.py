"""The loop that goes on with texts, compiled for a TPU by the compiler in libtpu, which needs no TPU."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.runs.tpu_compiler import ReplicaStrategy, compile_program, lower
from albert_tf.serving.decoder import ChoiceKind, ChoiceNumbers, Decoder, GenerationOptions, Prompts

pytest.importorskip("jax")
pytest.importorskip("libtpu")
pytestmark = pytest.mark.slow

BATCH_SIZE, PROMPT_LENGTH, LENGTH, VOCAB_SIZE = 8, 32, 128, 1024
CONFIG = AlbertConfig(
    vocab_size=VOCAB_SIZE,
    embedding_size=128,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=256,
    max_position_embeddings=LENGTH,
    is_causal=True,
    pooler=False,
)
PROMPTS = Prompts(
    tf.zeros([BATCH_SIZE, LENGTH], tf.int32),
    tf.ones([BATCH_SIZE], tf.int32),
    tf.ones([BATCH_SIZE], tf.int32),
    tf.zeros([BATCH_SIZE], tf.bool),
    tf.zeros([BATCH_SIZE, LENGTH]),
)


def test_loop_compiles_and_copies_no_cache():
    options = GenerationOptions(top_k=50, top_p=0.9, repetition_penalty=1.2)
    kind, strategy = ChoiceKind.of(options, VOCAB_SIZE), ReplicaStrategy(1)
    with strategy.scope():
        model = AlbertForPreTraining(CONFIG, dtype="mixed_bfloat16")
    decoder = Decoder(model, np.ones(VOCAB_SIZE, bool), np.ones(VOCAB_SIZE, bool), end_id=3)

    def decode(*values):
        prompts, numbers = Prompts(*values[:5]), ChoiceNumbers(*values[5:])
        with strategy.scope():
            return decoder.decode(prompts, numbers, kind, PROMPT_LENGTH)

    compiled = compile_program(lower(decode, [*PROMPTS, *ChoiceNumbers.of(options)]), "v5e:2x2")
    assert " while(" in compiled.text
    # Keys and values of every application, in bfloat16: a step writes into them, and copies none.
    caches = CONFIG.num_hidden_layers * 2 * BATCH_SIZE * LENGTH * CONFIG.hidden_size * 2
    assert 0 < compiled.temporary_bytes < 2 * caches
