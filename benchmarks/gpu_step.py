"""Times our step on a GPU, through JAX, against Hugging Face on PyTorch, and checks cuDNN's attention in it.

On a machine with TensorFlow:
python -m benchmarks.gpu_step --write_step=step --max_seq_length=512 --train_batch_size=32
On the machine with the GPU, which needs jax with CUDA, torch and transformers, and this repository, but no TensorFlow:
python -m benchmarks.gpu_step --read_step=step --max_seq_length=512 --train_batch_size=32

The first command writes three programs as StableHLO text into a folder: the training step, optimizer included, with
plain attention and with cuDNN's, and one that computes attention and its gradients both ways. The second runs them on
made-up values. It says how much the two ways of attention differ, and whether cuDNN's gives the same bits each time,
and takes steps in turns with `AlbertForPreTraining` of Hugging Face (scaled dot product attention, torch.compile,
bfloat16 autocast); then come medians and their ratios.

python -m benchmarks.gpu_step --read_step=step --compile_for=h100_sxm.txtpb

only compiles the programs, by XLA for a GPU that the machine doesn't have, and prints the memory that they need. It
takes jax with CUDA, JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 and XLA_FLAGS=--xla_gpu_autotune_level=0 in the environment, and
a description of the GPU, of which XLA's sources have one each for many (xla/backends/gpu/target_config/specs).
"""

import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

flags.DEFINE_string("write_step", None, "The folder to write the programs to.")
flags.DEFINE_string("read_step", None, "What --write_step wrote, to run it.")
flags.DEFINE_string("compile_for", None, "The description of a GPU, to compile the programs for and no more.")
flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_base_v2.json"), "The model.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 512, "Pieces of an example.", 8)
flags.DEFINE_integer("max_predictions_per_seq", 76, "Masked pieces of an example.", 1)
flags.DEFINE_integer("rounds", 20, "How often both are run, in turns.", 1)
flags.DEFINE_bool("torch_compile", True, "Compile Hugging Face's model with torch.compile.")

_INTEGERS = {"i32": np.int32, "i64": np.int64}
_HEAD_SIZE = 64
_STEPS = {"albert_tf": "cudnn", "albert_tf, plain attention": "plain"}


def write_programs() -> None:
    """Writes our step, for a GPU that has cuDNN's attention, and what checks that attention."""
    from albert_tf.base.files import write_text
    from albert_tf.config import AlbertConfig
    from albert_tf.objectives import make_objective
    from albert_tf.pretraining_data.masking import MaskingOptions
    from albert_tf.runs.tpu_compiler import lower_step
    from albert_tf.training.devices import WholeStepStrategy

    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    objective = make_objective("albert", config, masking=MaskingOptions(FLAGS.max_predictions_per_seq))
    shape = FLAGS.train_batch_size, FLAGS.max_seq_length
    strategy = WholeStepStrategy("/cpu:0")
    strategy.runs_cudnn_attention = True  # what the program is for, not what this machine has
    for name, attention in (("cudnn", "flash"), ("plain", "plain")):
        write_text(_program(name), lower_step(objective, *shape, "adamw", attention=attention, strategy=strategy))
    write_text(_program("attention"), _lower_attention())


def _program(name):
    return os.path.join(FLAGS.write_step or FLAGS.read_step, f"{name}.mlir")


def _lower_attention():
    """Returns a program of attention, by plain operations and cuDNN's, of two examples, one of which is padded.

    Given queries, keys and values and the gradient of the context, it returns the context and the gradient of the
    former, plain ones and cuDNN's.
    """
    import tensorflow as tf

    from albert_tf.modeling.kernels.attention_check import cudnn_functions
    from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, VisibleKeys
    from albert_tf.runs.tpu_compiler import lower

    length, columns = FLAGS.max_seq_length, 4 * _HEAD_SIZE

    def attend_both_ways(projections, upstream):
        projections, upstream = (tf.cast(values, tf.bfloat16) for values in (projections, upstream))
        bias = tf.where(tf.sequence_mask([length, length // 2], length), 0.0, HIDDEN_SCORE)[:, None]
        found = []
        for attend in cudnn_functions(_HEAD_SIZE):
            with tf.GradientTape() as tape:
                tape.watch(projections)
                context = attend([projections], [tf.zeros([3 * columns])], VisibleKeys(bias), None)
            found += [context, tape.gradient(context, projections, upstream)]
        return [tf.cast(values, tf.float32) for values in found]

    return lower(attend_both_ways, [tf.zeros([2, length, 3 * columns]), tf.zeros([2, length, columns])])


def check_attention() -> None:
    """Prints how much cuDNN's attention differs from plain operations, and whether it repeats itself."""
    run = load_program("attention", -1.0, 1.0)
    plain, plain_gradient, context, gradient = run()
    for name, expected, found in (("context", plain, context), ("gradient", plain_gradient, gradient)):
        share = np.abs(found - expected).max() / np.abs(expected).max()
        print(f"cuDNN's attention, {name}: differs by {share:.4f} of the largest value (bfloat16 has 0.0039)")
    repeats = [run()[2:] for _ in range(10)]
    is_same = all(np.array_equal(context, one) and np.array_equal(gradient, other) for one, other in repeats)
    print(f"the same bits in ten more runs: {'yes' if is_same else 'no'}")


def load_program(name: str, low: float = 0.0, high: float = 0.02):
    """Returns a function that runs a program that was written, on numbers in a range, and returns its results."""
    import jax
    from jax._src.interpreters import mlir

    jax.config.update("jax_enable_x64", True)  # the counters of the step
    device = jax.local_devices()[0]
    with mlir.make_ir_context():
        module, *options = _module_and_options(name, device)
        # No argument is given away, so that every turn can start from the same ones.
        del module.operation.attributes["mhlo.input_output_alias"]
        arguments = [jax.device_put(values, device) for values in _made_up_arguments(module, low, high)]
        executable = device.client.compile_and_load(module, *options)

    def run():
        # The same arguments each time: what a step costs does not depend on them.
        outputs = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
        return [output.block_until_ready() for (output,) in outputs]

    return run


def _module_and_options(name, device):
    """Returns a program that was written, and what else compiling it for a device takes."""
    from jax._src.lib.mlir import ir
    from jaxlib import xla_client

    with open(_program(name), encoding="utf-8") as file:
        module = ir.Module.parse(file.read())
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
    return module, xla_client.DeviceList((device,)), options


def compile_without_gpu() -> None:
    """Compiles each program for a GPU that is described, and prints the memory that it takes."""
    from jax._src.interpreters import mlir
    from jax.experimental import topologies

    with open(FLAGS.compile_for, encoding="utf-8") as file:
        description = file.read()
    (device,) = topologies.get_topology_desc("", "cuda", topology="1x1x1", target_config=description).devices
    for name in ("attention", *_STEPS.values()):
        with mlir.make_ir_context():
            memory = device.client.compile(*_module_and_options(name, device)).get_compiled_memory_stats()
        print(f"{name:9} temporary memory {memory.temp_size_in_bytes / 2**20:8,.0f} MiB")


def _made_up_arguments(module, low, high):
    """Yields an array for each argument of a program: numbers in a range, or ones for integers."""
    (main_function,) = (operation for operation in module.body.operations if operation.name.value == "main")
    draws = np.random.default_rng(0)
    for argument in main_function.type.inputs:
        if str(argument.element_type) == "f32":
            yield draws.uniform(low, high, argument.shape).astype(np.float32)
        else:
            yield np.ones(argument.shape, _INTEGERS[str(argument.element_type)])  # masks of ones, among others


def hugging_face_step():
    """Returns a function that runs a training step of Hugging Face's model, and waits for its end."""
    import torch
    import transformers

    with open(FLAGS.albert_config_file, encoding="utf-8") as file:
        settings = json.load(file)
    settings.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, hidden_act="gelu_new")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.AlbertForPreTraining(transformers.AlbertConfig(**settings, attn_implementation="sdpa"))
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
    size, length, predictions = FLAGS.train_batch_size, FLAGS.max_seq_length, FLAGS.max_predictions_per_seq
    ids = torch.randint(5, settings["vocab_size"], [size, length], device=device)
    labels = torch.randint(5, settings["vocab_size"], [size, predictions], device=device)
    positions = (
        torch.arange(predictions, device=device).expand(size, -1)[..., None].expand(-1, -1, settings["hidden_size"])
    )
    order = torch.zeros([size], dtype=torch.long, device=device)

    def loss_of():
        with torch.autocast(device, torch.bfloat16):
            outputs = model.albert(ids, torch.ones_like(ids), torch.zeros_like(ids))
            # Only masked positions are scored, as in ours.
            logits = model.predictions(outputs.last_hidden_state.gather(1, positions))
            order_logits = model.sop_classifier(outputs.pooler_output)
        cross_entropy = torch.nn.functional.cross_entropy
        return cross_entropy(logits.float().flatten(0, 1), labels.flatten()) + cross_entropy(
            order_logits.float(), order
        )

    compiled = torch.compile(loss_of) if FLAGS.torch_compile else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        compiled().backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def main(_):
    if bool(FLAGS.write_step) == bool(FLAGS.read_step):
        raise app.UsageError("give --write_step or --read_step")
    if FLAGS.write_step:
        write_programs()
        return
    if FLAGS.compile_for:
        compile_without_gpu()
        return
    check_attention()
    steps = {name: load_program(program) for name, program in _STEPS.items()}
    steps["hugging_face"] = hugging_face_step()
    seconds = {name: [] for name in steps}
    for turn in range(3 + FLAGS.rounds):
        for name, step in steps.items():
            started_at = time.perf_counter()
            step()
            if turn >= 3:
                seconds[name].append(time.perf_counter() - started_at)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        print(f"{name:27} {1000 * median:8.1f} ms, {median / medians['hugging_face']:.2f} of Hugging Face's")


if __name__ == "__main__":
    app.run(main)
