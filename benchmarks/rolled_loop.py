"""One program for all applications of the block, or one after the other: what the TPU's compiler says of either.

python -m benchmarks.rolled_loop --albert_config_file=configs/albert_base_v2.json
python -m benchmarks.rolled_loop --albert_config_file=configs/albert_large_v2.json --train_batch_size=8

Compiles the pre-training step for a v5e chip with the stack of blocks as it is, and with a `tf.while_loop` over all
blocks but the last, whose body holds one, two or four of them. Prints memory and compile seconds: of a loop's
operations and bytes the compiler counts one turn, so they don't compare.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from absl import app, flags

from albert_tf.config import AlbertConfig
from albert_tf.modeling import encoder
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES, rematerialize
from albert_tf.objectives import make_objective
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.runs.tpu_compiler import compile_program, lower_step
from albert_tf.runs.tpu_planner import find_tpu
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_base_v2.json"), "The model.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_enum("remat", "none", REMATERIALIZATION_CHOICES, "What is computed again rather than kept.")


def rolled(blocks_in_a_body: int):
    """Returns a replacement for `AlbertEncoder._apply_blocks`, for one shared block and no dropout."""

    def apply_blocks(self, blocks, hidden_states, attention_bias, seeds, output_positions):
        weights = [part.read_weights() for part in blocks[0].parts()]

        def apply(states, positions=None):
            block = rematerialize(blocks[0]) if self._remat == "block" else blocks[0]
            return block(states, attention_bias, [None, None], weights, positions)[0]

        num_turns = (len(blocks) - 1) // blocks_in_a_body

        def body(turn, states):
            for _ in range(blocks_in_a_body):
                states = apply(states)
            return turn + 1, states

        _, hidden_states = tf.while_loop(
            lambda turn, _: turn < num_turns, body, (tf.constant(0), hidden_states), maximum_iterations=num_turns
        )
        for _ in range(num_turns * blocks_in_a_body, len(blocks) - 1):
            hidden_states = apply(hidden_states)
        return [apply(hidden_states, output_positions)], []

    return apply_blocks


def main(_):
    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    objective = make_objective("albert", config, masking=MaskingOptions(76))
    stack = encoder.AlbertEncoder._apply_blocks
    variants = {"stack": stack, **{f"loop, {count} in its body": rolled(count) for count in (1, 2, 4)}}
    for name, apply_blocks in variants.items():
        encoder.AlbertEncoder._apply_blocks = apply_blocks
        program = lower_step(objective, FLAGS.train_batch_size, 512, "adamw", remat=FLAGS.remat)
        step = compile_program(program, find_tpu("v5e").topology)
        print(f"{name:22} {step.temporary_bytes / 2**20:8,.0f} MiB {step.compile_seconds:6.1f} s", flush=True)
    encoder.AlbertEncoder._apply_blocks = stack


if __name__ == "__main__":
    app.run(main)
