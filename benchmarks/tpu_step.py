"""The TPU compiler's figures of our pre-training step and of KerasHub's, at the same shapes. Needs no TPU.

python -m benchmarks.tpu_step
python -m benchmarks.tpu_step --without=shared_weights,query_key_value,output_positions
python -m benchmarks.tpu_step --by_tensor
python -m benchmarks.tpu_step --albert_config_file=configs/deberta_base.json

Base, AdamW, bfloat16, no dropout except where stated, for one v5e chip. All figures except the seconds are exact for a
version of libtpu. `--without` compares our step with itself, each time without one of `albert_tf/modeling/kernels`.
`--by_tensor` says which tensors our step moves, and where they lie. A model of `relative_attention` is
compared with BERT, with KerasHub's DeBERTa and with itself where its relative scores are shifted, all of them as masked
language models.
"""

import collections
import collections.abc
import contextlib
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from unittest import mock

import tensorflow as tf
from absl import app, flags

from albert_tf.config import AlbertConfig
from albert_tf.modeling import encoder
from albert_tf.modeling.kernels import attention
from albert_tf.modeling.kernels.attention import Distances
from albert_tf.modeling.kernels.linear import QueryKeyValue, linear, weights_of
from albert_tf.modeling.kernels.positions import select_positions
from albert_tf.objectives import Objective, make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.runs.tpu_compiler import CompiledStep, compile_program, lower, lower_step, zeros
from albert_tf.runs.tpu_planner import find_tpu
from benchmarks import peers
from benchmarks.stage import ROOT
from benchmarks.traffic import COPIED, IN_FAST_MEMORY, IN_MEMORY, traffic

FLAGS = flags.FLAGS

flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_base_v2.json"), "The model.")
flags.DEFINE_string("tpu", "v5e", "The TPU, as albert-tf plan-tpu names it.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 512, "Pieces of an example.", 8)
flags.DEFINE_integer("max_predictions_per_seq", 76, "Masked pieces of an example.", 1)
flags.DEFINE_list(
    "without", [], "Kernels to leave out, one at a time: shared_weights, query_key_value, output_positions."
)
flags.DEFINE_bool("by_tensor", False, "Print what our step moves, by tensor, in place of the comparison.")


def read_in_every_block(blocks, dtype):
    """Replaces `read_once`: every block reads and casts its weights anew."""
    return [[part.read_weights() for part in parts] for parts in blocks]


def three_products():
    """Returns a replacement for `QueryKeyValue.products_and_biases`: a product each for queries, keys and values."""
    original = QueryKeyValue.products_and_biases

    def products_and_biases(self, queried, hidden_states):
        kernel, dtype = weights_of(self)["kernel"], self._layers[0].compute_dtype
        columns = tf.split(self._in_groups(kernel, 3), 3, axis=-2)
        parts = [
            self._in_groups(linear(each, tf.reshape(group, [kernel.shape[0], -1]), None, dtype), 1)
            for each, group in zip((queried, hidden_states, hidden_states), columns)
        ]
        joined = [parts] if queried is hidden_states else [parts[:1], parts[1:]]
        products = [tf.reshape(tf.concat(each, axis=-2), [*each[0].shape[:2], -1]) for each in joined]
        return products, original(self, queried, hidden_states)[1]

    return products_and_biases


def every_position():
    """Returns a replacement for `AlbertEncoder._apply_blocks`: the last block computes every position, too."""
    original = encoder.AlbertEncoder._apply_blocks

    def apply_blocks(self, blocks, hidden_states, attention_bias, seeds, output_positions):
        hidden_states, attentions = original(self, blocks, hidden_states, attention_bias, seeds, None)
        return [*hidden_states[:-1], select_positions(hidden_states[-1], output_positions)], attentions

    return apply_blocks


def shifted_scores(query: tf.Tensor, key: tf.Tensor, distances: Distances) -> tf.Tensor:
    """Replaces `relative_scores`: products with all distances from S - 1 to -S, each row of which is shifted.

    That is how Transformer-XL puts scores in their place (Dai et al. 2019, appendix B).
    """
    batch_size, num_heads, length, _ = query.shape
    of_distance_0_and_less, of_distance_0_and_more = distances.places[0], distances.places[:, 0]

    def shifted(pieces, others, first, then):
        places = tf.concat([first[::-1], then[1:], then[-1:]], axis=0)
        others = tf.einsum("cm,nmd->ncd", tf.one_hot(places, others.shape[1], dtype=others.dtype), others)
        flat = tf.reshape(tf.einsum("bnsd,ncd->bnsc", pieces, others), [batch_size, num_heads, -1])
        rows = tf.reshape(flat[..., length - 1 : 2 * length**2 - 1], [batch_size, num_heads, length, 2 * length - 1])
        return rows[..., :length]

    to_positions = shifted(query, distances.keys, of_distance_0_and_more, of_distance_0_and_less)
    from_positions = shifted(key, distances.queries, of_distance_0_and_less, of_distance_0_and_more)
    return to_positions + tf.linalg.matrix_transpose(from_positions)


def leave_out(kernel: str) -> contextlib.AbstractContextManager:
    """Replaces a kernel with what would stand there without it."""
    return {
        "shared_weights": lambda: mock.patch.object(encoder, "read_once", read_in_every_block),
        "query_key_value": lambda: mock.patch.object(QueryKeyValue, "products_and_biases", three_products()),
        "relative_scores": lambda: mock.patch.object(attention, "relative_scores", shifted_scores),
        "output_positions": lambda: mock.patch.object(encoder.AlbertEncoder, "_apply_blocks", every_position()),
    }[kernel]()


def compile_without(config: AlbertConfig, kernel: str) -> CompiledStep:
    """Compiles our step without a kernel."""
    with leave_out(kernel):
        return compile_ours(config)


def objective(config: AlbertConfig) -> Objective:
    """Returns what is learnt."""
    return make_objective(
        "albert" if config.pooler else "roberta", config, masking=MaskingOptions(FLAGS.max_predictions_per_seq)
    )


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
    if FLAGS.by_tensor:
        print_traffic(compile_ours(config), config)
        return
    dropping = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    if FLAGS.without:
        peer = compile_ours(config)
        print_steps(
            peer,
            {
                "albert_tf": lambda: peer,
                **{f"without {name}": lambda name=name: compile_without(config, name) for name in FLAGS.without},
            },
        )
        return
    if config.relative_attention != "none":
        bert = AlbertConfig.from_json_file(os.path.join(ROOT, "configs", "bert_base.json"))
        bert = bert.replace(hidden_act=config.hidden_act, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        bert = bert.replace(pooler=False)
        peer = compile_ours(bert, attention="plain")
        print_steps(
            peer,
            {
                "BERT, --attention=plain": lambda: peer,
                "BERT": lambda: compile_ours(bert),
                "albert_tf": lambda: compile_ours(config),
                "shifted scores": lambda: compile_without(config, "relative_scores"),
                "KerasHub": lambda: compile_keras_hub(config),
            },
        )
        return
    peer = compile_keras_hub(config)
    steps = {
        "KerasHub": lambda: peer,
        "albert_tf": lambda: compile_ours(config),
        "with dropout of 0.1": lambda: compile_ours(dropping),
        "--attention=plain": lambda: compile_ours(config, attention="plain"),
        "--remat=block": lambda: compile_ours(config, remat="block"),
    }
    print_steps(peer, steps)


def print_steps(peer: CompiledStep, steps: dict[str, collections.abc.Callable[[], CompiledStep]]) -> None:
    """Prints figures of each step as it is compiled, and their ratio to those of `peer`."""
    print(f"{'':26} {'GFLOP':>14} {'GB accessed':>14} {'MiB temporary':>16} {'s to compile':>14}")
    for name, compile_step in steps.items():
        step = compile_step()
        cells = [
            (f"{step.flops / 1e9:,.0f}", step.flops / peer.flops),
            (f"{step.bytes_accessed / 1e9:.1f}", step.bytes_accessed / peer.bytes_accessed),
            (f"{step.temporary_bytes / 2**20:,.0f}", step.temporary_bytes / peer.temporary_bytes),
            (f"{step.compile_seconds:.0f}", step.compile_seconds / peer.compile_seconds),
        ]
        print(f"{name:26}" + "".join(f" {value:>8} {ratio:5.2f}" for value, ratio in cells), flush=True)


def print_traffic(step: CompiledStep, config: AlbertConfig) -> None:
    """Prints the gigabytes that a step moves, by what the tensors are, which their shapes tell."""
    rows = f"bf16[{FLAGS.train_batch_size},{FLAGS.max_seq_length},"
    logits = f"bf16[{FLAGS.train_batch_size * FLAGS.max_predictions_per_seq},{config.vocab_size}]"
    names = {
        f"{rows}{config.hidden_size}]": "hidden states, contexts",
        f"{rows}{3 * config.hidden_size}]": "queries, keys, values",
        f"{rows}{config.intermediate_size}]": "inputs of GELU",
        logits: "logits",
    }
    parts = collections.defaultdict(collections.Counter)
    for array, moved in traffic(step.text).items():
        parts[names.get(array, "weights, moments, last block")].update(moved)
        parts["together"].update(moved)
    columns = (IN_MEMORY, COPIED, IN_FAST_MEMORY)
    print(f"{step.bytes_accessed / 1e9:.1f} GB accessed\n{'':30}" + "".join(f"{column:>16}" for column in columns))
    for name, moved in sorted(parts.items(), key=lambda part: part[1].total()):
        print(f"{name:30}" + "".join(f"{moved[column] / 1e9:16.2f}" for column in columns))


if __name__ == "__main__":
    app.run(main)
