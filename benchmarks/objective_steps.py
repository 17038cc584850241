"""Times a training step of several objectives on this machine's CPU, in turns, at one shape of the model.

python -m benchmarks.objective_steps
python -m benchmarks.objective_steps --dtype=mixed_bfloat16 --objectives=albert,electra --max_seq_length=512
python -m benchmarks.objective_steps --dtype=mixed_bfloat16 --objectives=relations,logits,layers,halves \
    --packing=halves --masked_lm_prob=0.3 --albert_config_file=configs/albert_ko_half.json    (learning from --teacher)

Random pieces without padding, masked as in pre-training, AdamW, and the loop that `run_pretraining.py` runs. Prints the
processor time of a step (of all threads, the median of the rounds), the operations that the objective counts, and both
as ratios to the first objective.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from absl import app, flags

from albert_tf.config import AlbertConfig
from albert_tf.objectives import make_objective
from albert_tf.objectives.distillation_losses import DISTILLATION_LOSSES
from albert_tf.objectives.objective import with_batch_size
from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import TrainState, learnt_variables
from albert_tf.training.train_step import make_train_function
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_list(
    "objectives",
    ["roberta", "electra"],
    "Names, also of ways to distil --teacher; the first is what the others are compared with.",
)
flags.DEFINE_string("teacher", os.path.join(ROOT, "models", "albert_ko_small"), "Folder of the model to distil.")
flags.DEFINE_string("packing", None, "What all examples are packed as; by default each objective's own.")
flags.DEFINE_float("masked_lm_prob", 0.15, "Share of the pieces that are masked.", 0.0, 1.0)
flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "electra_small.json"), "The model.")
flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "What products are computed in.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 128, "Pieces of an example.", 8)
flags.DEFINE_integer("rounds", 9, "How often everything is run, in turns.", 1)
flags.DEFINE_integer("steps", 5, "Steps of a round.", 1)


def make_records(config):
    """Returns examples as shards hold them: [CLS], pieces that each start a word, [SEP]."""
    size, length = FLAGS.train_batch_size, FLAGS.max_seq_length
    ids = np.random.default_rng(0).integers(5, config.vocab_size, [size, length], np.int32)
    ids[:, 0], ids[:, -1] = 2, 3
    ones = np.ones_like(ids)
    return {"input_ids": ids, "input_mask": ones, "segment_ids": 0 * ones, "token_boundary": ones}


def make_steps(name, config):
    """Returns a function that takes a number of steps, and the operations of one."""
    length = FLAGS.max_seq_length
    tokens = MaskingTokens(4, (2, 3), np.arange(5, config.vocab_size, dtype=np.int32))
    predictions = int(np.ceil(FLAGS.masked_lm_prob * length))
    masking = MaskingOptions(predictions, FLAGS.masked_lm_prob, tokens=tokens)
    taught = {"teacher": FLAGS.teacher, "distillation": name} if name in DISTILLATION_LOSSES else {}
    packing, strategy = FLAGS.packing and PACKINGS[FLAGS.packing], make_strategy()
    objective = make_objective("distil" if taught else name, config, packing, taught, masking)
    with strategy.scope():
        models = objective.make_models(dtype=FLAGS.dtype)
        variables = learnt_variables(objective, models)
        schedule = LearningRateSchedule(1e-4, 10**6, 0)
        optimizer = make_optimizer("adamw", variables, schedule, followers=objective.followers(models))
    state = TrainState.create(strategy, objective, models, optimizer)
    batch = objective.prepare(
        {key: tf.constant(value) for key, value in make_records(config).items()}, tf.constant([1, 2], tf.int64)
    )
    train_steps = make_train_function(state, 0, tf.Variable(False, trainable=False))
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(batch).repeat()))
    spec = with_batch_size(objective.batch_spec(length), FLAGS.train_batch_size)
    return lambda count: train_steps(iterator, tf.constant(count)), objective.flops(spec)


def main(_):
    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    steps = {name: make_steps(name, config) for name in FLAGS.objectives}
    seconds = {name: [] for name in steps}
    for take, _ in steps.values():
        take(2)
    for _ in range(FLAGS.rounds):
        for name, (take, _) in steps.items():
            before = time.process_time()
            take(FLAGS.steps)
            seconds[name].append((time.process_time() - before) / FLAGS.steps)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    first = FLAGS.objectives[0]
    for name, (_, operations) in steps.items():
        print(
            f"{name}: {1000 * medians[name]:.0f} ms of processor time ({medians[name] / medians[first]:.2f}), "
            f"{operations:.3g} operations ({operations / steps[first][1]:.2f})"
        )


if __name__ == "__main__":
    app.run(main)
