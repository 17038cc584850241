"""Pre-trains ALBERT on the shards that create_pretraining_data.py made, and evaluates it on held-out documents.

python run_pretraining.py --input_file=data/train*.tfrecord --albert_config_file=configs/albert_small.json \\
    --output_dir=run --do_train --do_eval --train_batch_size=64 --num_train_steps=100000 --num_warmup_steps=3125
"""

from albert_tf import command_line  # first: it keeps TensorFlow quiet at its start

# isort: split
import os

import tensorflow as tf
from absl import flags

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.original_flags import define_original_flags
from albert_tf.pretraining_data.input_pipeline import eval_dataset, train_dataset
from albert_tf.pretraining_data.shards import ON_DAMAGED_SHARD_CHOICES, find_shards
from albert_tf.pretraining_data.tfrecords import describe_damage, naming_damaged_shards
from albert_tf.training.checkpoints import Checkpointer
from albert_tf.training.distribution import per_replica_batch_size
from albert_tf.training.pretraining import PretrainingTask
from albert_tf.training.progress import Progress
from albert_tf.training.run_folder import check_output_dir, claim_output_dir, write_eval_results
from albert_tf.training.train_loop import TrainOptions, evaluate, train

FLAGS = flags.FLAGS

flags.DEFINE_list("input_file", None, "Training shards; comma-separated paths or globs.")
flags.DEFINE_list("held_out_file", None, "Evaluation shards; by default those that manifest.json names.")
flags.DEFINE_string("albert_config_file", None, "JSON file of the model's hyper-parameters.")
flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results; a run found there is resumed.")
flags.DEFINE_string("init_checkpoint", None, "Checkpoint to start from, or a folder, of which the newest is taken.")
flags.DEFINE_bool("do_train", True, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate on held-out shards, before the first step and after the last.")
flags.DEFINE_integer("max_seq_length", None, "Length of the shards' examples; by default what manifest.json says.", 8)
flags.DEFINE_integer("max_predictions_per_seq", None, "Most masked pieces; by default what manifest.json says.", 1)
flags.DEFINE_enum(
    "on_damaged_shard",
    "fail",
    ON_DAMAGED_SHARD_CHOICES,
    "What to do with damaged training shards: skip reads all shards through first, and leaves those out.",
)
flags.DEFINE_integer("num_train_steps", 125000, "Number of training steps.", lower_bound=1)
flags.DEFINE_integer("num_warmup_steps", 3125, "Number of steps in which the learning rate rises.", lower_bound=0)
flags.DEFINE_integer("max_eval_steps", None, "Most evaluation batches; by default all.", lower_bound=1)
command_line.define_training_flags(
    train_batch_size=4096, eval_batch_size=64, optimizer="lamb", learning_rate=0.00176, save_checkpoints_steps=5000
)
command_line.define_distribution_flags()
define_original_flags("init_from_group0", "masked_lm_budget", "start_warmup_step")


def main():
    command_line.require(
        input_file=FLAGS.input_file, albert_config_file=FLAGS.albert_config_file, output_dir=FLAGS.output_dir
    )
    if not (FLAGS.do_train or FLAGS.do_eval):
        raise InputError("nothing to do: pass --do_train or --do_eval")
    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    strategy = command_line.strategy_from_flags()
    per_replica_batch_size(strategy, FLAGS.train_batch_size, "train_batch_size")
    per_replica_batch_size(strategy, FLAGS.eval_batch_size, "eval_batch_size")
    shards = find_shards(
        FLAGS.input_file,
        FLAGS.held_out_file,
        FLAGS.max_seq_length,
        FLAGS.max_predictions_per_seq,
        config,
        FLAGS.on_damaged_shard,
    )
    if FLAGS.do_eval and not shards.held_out_paths:
        message = "no held-out shards; name them with --held_out_file, or make some with create_pretraining_data.py"
        if not FLAGS.do_train:
            raise InputError(f"--do_eval: {message}")
        print(f"warning: no evaluation: {message}")
    if not shards.manifest:
        print(f"warning: no manifest.json beside {shards.train_paths[0]}: its vocabulary can't be checked")
    if shards.damage:
        named = describe_damage(shards.damage)
        total = len(shards.damage) + len(shards.train_paths)
        print(f"warning: training leaves out {len(shards.damage)} of {total} shards, which are damaged: {named}")
    settings = {
        **command_line.training_settings(),
        "num_warmup_steps": FLAGS.num_warmup_steps,
        "max_seq_length": shards.train_options.max_seq_length,
        # Those left out as well, so that a run that comes upon a damaged shard can go on without it.
        "input_files": sorted(os.path.basename(path) for path in [*shards.train_paths, *shards.damage]),
    }
    if FLAGS.do_train:
        check_output_dir(FLAGS.output_dir, settings, config, shards.tokenizer)

    tf.keras.utils.set_random_seed(FLAGS.random_seed)
    with strategy.scope():
        model = AlbertForPreTraining(config, dtype=command_line.dtype_policy())
        variables = named_variables(model)
        optimizer = None
        if FLAGS.do_train:
            optimizer = command_line.optimizer_from_flags(variables, FLAGS.num_train_steps, FLAGS.num_warmup_steps)
    global_step = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpointer = Checkpointer(FLAGS.output_dir, variables, global_step, optimizer, FLAGS.keep_checkpoint_max)
    command_line.restore_or_initialize(checkpointer, variables, shards.tokenizer)
    if FLAGS.do_train:
        claim_output_dir(FLAGS.output_dir, settings, config, shards.tokenizer)

    task = PretrainingTask(shards.has_pairs)
    progress = Progress(
        FLAGS.output_dir, FLAGS.train_batch_size, shards.train_options.max_seq_length, "pre-training loss"
    )

    def evaluate_and_report():
        dataset = eval_dataset(shards.held_out_paths, shards.held_out_options, FLAGS.eval_batch_size)
        with naming_damaged_shards(shards.held_out_paths):
            results = evaluate(strategy, task, model, dataset, FLAGS.max_eval_steps)
        step = int(global_step.numpy())
        progress.record(step, "held_out", results)
        print(f"held-out at step {step:,}: " + " ".join(f"{name} {value:.4f}" for name, value in results.items()))
        return results

    do_eval = FLAGS.do_eval and bool(shards.held_out_paths)
    if FLAGS.do_train:
        if do_eval and int(global_step.numpy()) == 0:
            evaluate_and_report()
        options = TrainOptions(
            FLAGS.num_train_steps, command_line.iterations_per_loop(), FLAGS.save_checkpoints_steps, FLAGS.random_seed
        )

        def make_dataset(start_step):
            return train_dataset(
                shards.train_paths,
                shards.train_options,
                FLAGS.train_batch_size,
                FLAGS.random_seed,
                start_step,
                shards.examples_per_shard,
            )

        with naming_damaged_shards(shards.train_paths):
            train(strategy, task, model, optimizer, make_dataset, options, checkpointer, global_step, progress)
    if do_eval:
        results = evaluate_and_report()
        entropy = shards.manifest.get("splits", {}).get("held_out", {}).get("unigram_entropy")
        if entropy is not None:
            print(f"unigram entropy of the held-out text: {entropy:.4f} (a masked_lm_loss that needs no context)")
        write_eval_results(FLAGS.output_dir, {"global_step": int(global_step.numpy()), **results})


if __name__ == "__main__":
    command_line.run(main)
