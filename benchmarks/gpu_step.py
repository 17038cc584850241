"""Times our step on a GPU, through JAX, against Hugging Face on PyTorch. It has run on a CPU, and not yet on a GPU.

On a machine with TensorFlow:
python -m benchmarks.gpu_step --write_step=step.mlir --max_seq_length=512 --train_batch_size=32
On the machine with the GPU, which needs jax with CUDA, torch and transformers, and this repository, but no TensorFlow:
python -m benchmarks.gpu_step --read_step=step.mlir --max_seq_length=512 --train_batch_size=32

The first command writes the training step, optimizer included, as StableHLO text; the second runs it on made-up weights
and a made-up batch, in turns with `AlbertForPreTraining` of Hugging Face (scaled dot product attention, torch.compile,
bfloat16 autocast), and prints the medians and their ratio.
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

flags.DEFINE_string("write_step", None, "Where to write the step as StableHLO text.")
flags.DEFINE_string("read_step", None, "What --write_step wrote, to time it.")
flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_base_v2.json"), "The model.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 512, "Pieces of an example.", 8)
flags.DEFINE_integer("max_predictions_per_seq", 76, "Masked pieces of an example.", 1)
flags.DEFINE_integer("rounds", 20, "How often both are run, in turns.", 1)
flags.DEFINE_bool("torch_compile", True, "Compile Hugging Face's model with torch.compile.")

_INTEGERS = {"i32": np.int32, "i64": np.int64}


def write_step() -> None:
    """Writes our step, with plain attention, which XLA for GPU knows how to fuse."""
    from albert_tf.config import AlbertConfig
    from albert_tf.files import write_text
    from albert_tf.objectives import DataOptions, make_objective
    from albert_tf.tpu.steps import lower_step

    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    objective = make_objective("albert", config, options=DataOptions(FLAGS.max_predictions_per_seq))
    shape = FLAGS.train_batch_size, FLAGS.max_seq_length
    write_text(FLAGS.write_step, lower_step(objective, *shape, "adamw", attention="plain"))


def our_step():
    """Returns a function that runs the step that was written, and waits for its end."""
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jaxlib import xla_client

    jax.config.update("jax_enable_x64", True)  # the counters of the step
    with open(FLAGS.read_step, encoding="utf-8") as file:
        program = file.read()
    device = jax.local_devices()[0]
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
    with mlir.make_ir_context():
        module = ir.Module.parse(program)
        # No argument is given away, so that every turn can start from the same ones.
        del module.operation.attributes["mhlo.input_output_alias"]
        arguments = [jax.device_put(values, device) for values in _made_up_arguments(module)]
        executable = device.client.compile_and_load(module, xla_client.DeviceList((device,)), options)

    def step():
        # The same arguments each time: what a step costs does not depend on them.
        outputs = executable.execute_sharded(arguments)
        for (output,) in outputs.disassemble_into_single_device_arrays():
            output.block_until_ready()

    return step


def _made_up_arguments(module):
    """Yields an array for each argument of a program: small positive numbers, or zeros for integers."""
    (main_function,) = (operation for operation in module.body.operations if operation.name.value == "main")
    draws = np.random.default_rng(0)
    for argument in main_function.type.inputs:
        if str(argument.element_type) == "f32":
            yield draws.uniform(0.0, 0.02, argument.shape).astype(np.float32)
        else:
            yield np.zeros(argument.shape, _INTEGERS[str(argument.element_type)])


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
        write_step()
        return
    steps = {"albert_tf": our_step(), "hugging_face": hugging_face_step()}
    seconds = {name: [] for name in steps}
    for turn in range(3 + FLAGS.rounds):
        for name, step in steps.items():
            started_at = time.perf_counter()
            step()
            if turn >= 3:
                seconds[name].append(time.perf_counter() - started_at)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        print(f"{name:14} {1000 * median:8.1f} ms")
    print(f"albert_tf takes {medians['albert_tf'] / medians['hugging_face']:.2f} of Hugging Face's time")


if __name__ == "__main__":
    app.run(main)
