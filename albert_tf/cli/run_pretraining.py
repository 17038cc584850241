"""The command `run_pretraining.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import functools

from absl import flags

from albert_tf.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.cli import training_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.cli.model_files import with_our_init_checkpoint
from albert_tf.cli.objective_flags import define_objective_flags, model_flags, objective_flags
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.cli.pretraining_setup import (
    LANGUAGE_SETTINGS,
    check_batch_sizes,
    find_config,
    find_known_entities,
    set_up,
)
from albert_tf.cli.run_flags import settings_flags, with_settings_of_run
from albert_tf.cli.trial_flags import define_trial_flags, run_as_asked
from albert_tf.errors import InputError
from albert_tf.objectives import OBJECTIVES
from albert_tf.objectives.entities import ENTITY_VECTORS
from albert_tf.pretraining.cooccurrence import begin_with_counts
from albert_tf.pretraining.identity import data_settings, held_out_identity
from albert_tf.pretraining.phases import describe_mixture, make_held_out_dataset
from albert_tf.pretraining_data.shards import ON_DAMAGED_SHARD_CHOICES
from albert_tf.training import TrainingRun
from albert_tf.training.devices.workers import Agreement, is_chief
from albert_tf.training.run_folder.guard import FOUND_AT, check_model
from albert_tf.training.run_folder.held_folder import hold_together
from albert_tf.training.run_folder.identity import absolute_path, checkpoint_identity

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_list("input_file", None, "Training shards; comma-separated paths or globs.")
    flags.DEFINE_list("held_out_file", None, "Evaluation shards; by default those that manifest.json names.")
    flags.DEFINE_string("albert_config_file", None, "JSON file of the model; by default that beside --init_checkpoint.")
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results; a run found there is resumed.")
    flags.DEFINE_string(
        "init_checkpoint", None, "Checkpoint to start from, or the folder of a run or model, also of transformers."
    )
    flags.DEFINE_enum(
        "objective", None, list(OBJECTIVES), "Objective; by default the one that the shards were built for."
    )
    flags.DEFINE_bool("do_train", True, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate on held-out shards, before the first step and after the last.")
    flags.DEFINE_integer(
        "max_seq_length", None, "Length of the shards' examples; by default taken from manifest.json.", 8
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq", None, "Maximum number of masked pieces; by default taken from manifest.json.", 1
    )
    flags.DEFINE_enum(
        "on_damaged_shard",
        "fail",
        ON_DAMAGED_SHARD_CHOICES,
        "What to do with damaged training shards: skip reads all shards first, and leaves out the damaged ones.",
    )
    flags.DEFINE_list("phase2_input_file", None, "Training shards of the last steps, such as of longer sequences.")
    flags.DEFINE_list(
        "phase2_held_out_file", None, "Evaluation shards of the last steps; by default those of the manifest."
    )
    flags.DEFINE_integer(
        "phase2_start_step",
        None,
        "Step at which the data set of --phase2_input_file takes over; by default at 90% of the steps.",
        1,
    )
    flags.DEFINE_integer(
        "phase2_gradient_accumulation_steps",
        None,
        "Parts of a replica's batch in the last steps; by default as before.",
        1,
    )
    flags.DEFINE_enum(
        "word_embeddings",
        "random",
        ["random", "cooccurrence"],
        "How word embeddings are initialised without --init_checkpoint: at random, or from counts of the "
        "pieces that share a sentence of --input_file.",
    )
    _define_language_flags()
    flags.DEFINE_bool("read_own_shards", False, "Each of several hosts reads its own shards, not all: for many hosts.")
    flags.DEFINE_integer("num_train_steps", 125000, "Number of training steps.", lower_bound=1)
    flags.DEFINE_integer("num_warmup_steps", 3125, "Number of steps in which the learning rate rises.", lower_bound=0)
    with in_helpfull():
        flags.DEFINE_integer(
            "max_eval_steps", None, "Maximum number of evaluation batches; by default all.", lower_bound=1
        )
    training_flags.define_training_flags(
        train_batch_size=4096,
        eval_batch_size=64,
        optimizer="lamb",
        learning_rate=0.00176,
        save_checkpoints_steps=5000,
        bias_correction=False,
        evaluates_often=True,
    )
    define_objective_flags()
    define_trial_flags()
    training_flags.define_distribution_flags()
    define_original_flags("init_from_group0", "masked_lm_budget", "start_warmup_step")


@in_helpfull()
def _define_language_flags():
    """Defines the flags that shards of several languages need."""
    flags.DEFINE_float(
        "language_exponent",
        0.7,
        "Languages are drawn by their share of the pieces raised to this power: with 1 by their text, with 0 all "
        "equally. XLM has 0.7, XLM-R 0.3.",
    )
    flags.DEFINE_bool("one_language_per_batch", False, "All examples of a batch are in one language, as in XLM.")


# What a run's folder knows, besides the settings that all training shares; and where its data are.
MORE_SETTINGS = (
    "phase2_start_step",
    "phase2_gradient_accumulation_steps",
    "read_own_shards",
    "word_embeddings",
    "eval_batch_size",
    *LANGUAGE_SETTINGS,
)
PLACES = ("input_file", "held_out_file", "phase2_input_file", "phase2_held_out_file")
LENGTHS = ("max_seq_length", "max_predictions_per_seq")


def main():
    given = resolved_flags()
    app.require(output_dir=given.output_dir)
    if not (given.do_train or given.do_eval):
        raise InputError("nothing to do: pass --do_train or --do_eval")
    run_as_asked(with_our_init_checkpoint(given), run_once)


def run_once(given):
    """Does what the settings say, and returns what `run_as_asked` needs of it."""
    # What is named anew is compared by its content, once it is a folder of ours.
    models = {each for each in model_flags() if each in given.given}
    names = [name for name in (*settings_flags(), *MORE_SETTINGS, *objective_flags()) if name not in models]
    given, known_run = with_settings_of_run(given, "run_pretraining", names, [*PLACES, *LENGTHS])
    if known_run and not given.entity_vectors:
        folder = known_run.settings.get(FOUND_AT, {}).get(ENTITY_VECTORS)
        given = dataclasses.replace(given, entity_vectors=folder or "")
    entities = find_known_entities(given, known_run)
    config = find_config(given, known_run, entities)
    strategy = training_flags.strategy_from_flags(given)
    check_batch_sizes(given, strategy)
    with hold_together(given.output_dir, Agreement(strategy), is_chief(strategy)):
        return run_in_folder(given, known_run, config, strategy, entities)


def run_in_folder(given, known_run, config, strategy, entities):
    """Does what the settings say, once nobody else writes to the folder."""
    setup = set_up(given, known_run, config, strategy, entities)
    given, do_eval, data, end_steps, mixtures, objectives, models, settings = setup
    objective, last = objectives[-1], data[-1]
    trackers = training_flags.trackers_from_flags(given)
    training = TrainingRun(given.output_dir, objective, models, settings, last.tokenizer, trackers=trackers)
    held_out = held_out_identity(last, settings) if last.held_out_paths else None
    with setup.naming_damaged_shards():
        if given.do_train:
            phases = setup.make_phases()
            for shards, mixture in zip(data, mixtures):
                if mixture:
                    training.log(describe_mixture(shards, mixture))
            results_data = {EVAL_RESULTS_FILE: held_out} if held_out else {}
            if not training.train(
                phases,
                settings_of_command(given, objective, data, end_steps),
                results_data,
                initializer_of(given, models["model"], data[0]),
            ):
                app.exit_stopped(training.stopped_by)
            training.write_further_models()
        else:
            if known_run:
                check_model(known_run.folder, known_run.settings, config, last.tokenizer, known_run.flag)
            training.restore()
        results = None
        if do_eval:
            results = training.evaluate(make_held_out_dataset(objective, last, settings)(), held_out)
    training.write_model_card([shards.manifest for shards in data], given.license)
    entropy = last.manifest.get("splits", {}).get("held_out", {}).get("unigram_entropy")
    first_loss = next(iter(objective.loss_coefficients))
    if do_eval and entropy is not None and first_loss.endswith("_lm_loss"):
        training.log(f"unigram entropy of the held-out text: {entropy:.4f} (a {first_loss} that needs no context)")
    blind = last.blind_accuracy(given.eval_batch_size)
    if do_eval and blind is not None and objective.blind_metric:
        training.log(f"{objective.blind_metric} of a rule that reads no text: {blind:.4f}")
    return objective.selection_metric, settings.learning_rate, results


def initializer_of(given, model, shards):
    """Returns a function that assigns the word embeddings that --word_embeddings asks for; None if they stay random."""
    return functools.partial(begin_with_counts, model, shards) if given.word_embeddings == "cooccurrence" else None


def settings_of_command(given, objective, data, end_steps):
    """Returns what decides, besides the run's settings, what it computes, and where it found its data."""
    # Where an example's loss depends on no other one, it may change.
    evaluation = {"eval_batch_size": given.eval_batch_size} if objective.compares_examples else {}
    is_mixed = any(len(shards.sources) > 1 for shards in data)
    languages = {name: getattr(given, name) for name in LANGUAGE_SETTINGS} if is_mixed else {}
    return {
        "command": "run_pretraining",
        **data_settings(data, end_steps),
        "phase2_gradient_accumulation_steps": given.phase2_gradient_accumulation_steps,
        "read_own_shards": given.read_own_shards,
        "word_embeddings": given.word_embeddings,
        **{name: checkpoint_identity(getattr(given, name)) for name in model_flags(objective.name)},
        **evaluation,
        **languages,
        FOUND_AT: {
            **{
                name: getattr(given, name) and [absolute_path(path) for path in getattr(given, name)] for name in PLACES
            },
            **{name: getattr(given, name) for name in LENGTHS},
            **({ENTITY_VECTORS: absolute_path(given.entity_vectors)} if given.entity_vectors else {}),
        },
    }


def run():
    """Runs the command."""
    app.run(main, define_flags)
