"""What the TPU's compiler says of our pre-training step and of KerasHub's, at the same shapes. Needs no TPU.

python -m benchmarks.tpu_step

Base, AdamW, bfloat16, no dropout but where it says so, for one v5e chip. Figures and ratios are exact for a version of
libtpu, but for the seconds.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from albert_tf.config import AlbertConfig
from albert_tf.objectives import AlbertPretraining
from albert_tf.objectives.objective import with_batch_size
from albert_tf.tpu.chips import find_tpu
from albert_tf.tpu.compile_step import CompiledStep, compile_program, lower
from albert_tf.tpu.steps import lower_step, zeros
from benchmarks import peers
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_base_v2.json"), "The model.")
flags.DEFINE_string("tpu", "v5e", "The TPU, as plan_tpu.py names it.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 512, "Pieces of an example.", 8)
flags.DEFINE_integer("max_predictions_per_seq", 76, "Masked pieces of an example.", 1)


def objective(config: AlbertConfig) -> AlbertPretraining:
    """Returns what is learnt."""
    return AlbertPretraining(config, max_predictions_per_seq=FLAGS.max_predictions_per_seq)


def compile_keras_hub(config: AlbertConfig) -> CompiledStep:
    """Compiles KerasHub's step."""
    step = peers.keras_hub_step(config, "mixed_bfloat16")
    batch = zeros(with_batch_size(objective(config).batch_spec(FLAGS.max_seq_length), FLAGS.train_batch_size))
    program = lower(lambda *values: step(dict(zip(batch, values))), list(batch.values()))
    return compile_program(program, find_tpu(FLAGS.tpu).topology)


def compile_ours(config: AlbertConfig, **options) -> CompiledStep:
    """Compiles our step; options as for `lower_step`."""
    shape, tpu = (FLAGS.train_batch_size, FLAGS.max_seq_length), find_tpu(FLAGS.tpu)
    program = lower_step(objective(config), *shape, "adamw", runs_pallas_kernels=tpu.runs_pallas_kernels, **options)
    return compile_program(program, tpu.topology)


def main(_):
    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    dropping = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    peer = compile_keras_hub(config)
    steps = {
        "KerasHub": lambda: peer,
        "albert_tf": lambda: compile_ours(config),
        "with dropout of 0.1": lambda: compile_ours(dropping),
        "--attention=plain": lambda: compile_ours(config, attention="plain"),
        "--remat=block": lambda: compile_ours(config, remat="block"),
    }
    print(f"{'':22} {'GFLOP':>14} {'GB accessed':>14} {'MiB temporary':>16} {'s to compile':>14}")
    for name, compile_step in steps.items():
        step = compile_step()
        cells = [
            (f"{step.flops / 1e9:,.0f}", step.flops / peer.flops),
            (f"{step.bytes_accessed / 1e9:.1f}", step.bytes_accessed / peer.bytes_accessed),
            (f"{step.temporary_bytes / 2**20:,.0f}", step.temporary_bytes / peer.temporary_bytes),
            (f"{step.compile_seconds:.0f}", step.compile_seconds / peer.compile_seconds),
        ]
        print(f"{name:22}" + "".join(f" {value:>8} {ratio:5.2f}" for value, ratio in cells), flush=True)


if __name__ == "__main__":
    app.run(main)
