"""What the flags of pre-training come to: data, models and settings."""

import contextlib
import dataclasses
import typing

import tensorflow as tf

from albert_tf.checkpoint_files import find_beside_checkpoint
from albert_tf.cli import training_flags
from albert_tf.cli.command import require
from albert_tf.cli.model_files import find_student_config, with_our_teacher
from albert_tf.cli.objective_flags import model_flags, objective_settings
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.objectives import OBJECTIVES, Objective
from albert_tf.pretraining.entities import check_same_entities, find_entities
from albert_tf.pretraining.phases import language_mixture, make_phase, objective_of
from albert_tf.pretraining_data.shards import ShardSet, find_shards, find_tokenizer
from albert_tf.pretraining_data.tfrecords import describe_damage, naming_damaged_shards
from albert_tf.training import Phase, RunSettings
from albert_tf.training.devices.batches import per_replica_batch_size
from albert_tf.training.run_folder.other_vocabulary import config_for_vocabulary

LANGUAGE_SETTINGS = ("language_exponent", "one_language_per_batch")


class Setup(typing.NamedTuple):
    """What the settings come to: everything but the folder.

    Attributes:
        given: The settings, with models of ours.
        do_eval: Whether there is something to evaluate on, and it was asked for.
        data: The shards of each phase.
        end_steps: The step that each ends at.
        mixtures: How often each language of each phase's data is drawn; None where there is one.
        objectives: What is learnt in each phase.
        models: As the last of these makes them.
        settings: How to train.
    """

    given: typing.Any
    do_eval: bool
    data: list[ShardSet]
    end_steps: list[int]
    mixtures: list
    objectives: list[Objective]
    models: dict[str, tf.keras.Model]
    settings: RunSettings

    def make_phases(self) -> list[Phase]:
        """Returns what to train on."""
        parts = parts_of_batches(self.given)
        each_phase = zip(self.objectives, self.data, self.end_steps, parts, self.mixtures)
        return [
            make_phase(objective, shards, self.settings, end, count, self.do_eval, self.given.read_own_shards, mixture)
            for objective, shards, end, count, mixture in each_phase
        ]

    def naming_damaged_shards(self) -> contextlib.AbstractContextManager:
        """Returns in what to read the shards, so that errors name the one that is damaged."""
        return naming_damaged_shards(
            [path for shards in self.data for path in [*shards.train_paths, *shards.held_out_paths]]
        )


def set_up(given, known_run, config, strategy, entities) -> Setup:
    """Finds the data, and makes the models that the settings ask for."""
    settings = training_flags.settings_from_flags(
        given.num_train_steps, "num_train_steps", evaluates_often=True, given=given
    )
    data, end_steps = find_data(given, config)
    mixtures = find_mixtures(given, data)
    options = [shards.train_options for shards in data]
    last = data[-1]  # what evaluation is on in the end
    do_eval = has_held_out_shards(given, last)
    for shards in data:
        warn_of(shards)

    name = name_of_objective(given, known_run)
    name = name or data[-1].objective
    if model_flags(name):
        given = with_our_teacher(given)
    own = objective_settings(given, name)
    objectives = [objective_of(config, shards, name, own, entities) for shards in data]
    objective = objectives[-1]
    model_options = training_flags.model_options(
        strategy,
        config,
        [(each.max_seq_length, each.max_predictions_per_seq + 1) for each in options],
        given,
        has_documents=any(
            learnt.separates_documents(learnt.batch_spec(each.max_seq_length))
            for learnt, each in zip(objectives, options)
        ),
    )
    tf.keras.utils.set_random_seed(given.random_seed)
    with strategy.scope():
        models = objective.make_models(**model_options)
    settings = dataclasses.replace(settings, evaluates_first=do_eval)
    return Setup(given, do_eval, data, end_steps, mixtures, objectives, models, settings)


def find_config(given, known_run, entities) -> AlbertConfig:
    """Returns the hyper-parameters of the model that the settings ask for, which is to know these entities, if any."""
    own_config_file = given.albert_config_file or (known_run and known_run.find(CONFIG_FILE))
    config_file = own_config_file or find_beside_checkpoint(given.init_checkpoint, CONFIG_FILE)
    config = None if config_file else find_student_config(given)
    require(input_file=given.input_file)
    if given.init_checkpoint and not (config or config_file):
        raise InputError(
            f"--init_checkpoint={given.init_checkpoint}: there is no {CONFIG_FILE}; name the folder of a model, "
            "or its config with --albert_config_file"
        )
    require(albert_config_file=config or config_file)
    _check_beginning(given)
    if given.phase2_input_file and "held_out_file" in given.given and "input_file" not in given.given:
        raise InputError(
            "--held_out_file: the run is evaluated on the data of its last steps; pass --phase2_held_out_file instead"
        )
    config = config or AlbertConfig.from_json_file(config_file)
    begins_with_another = given.do_train and given.init_checkpoint and not own_config_file
    if begins_with_another and (tokenizer := find_tokenizer(given.input_file)):
        config = config_for_vocabulary(config, given.init_checkpoint, tokenizer)
    return entities.config_for(config) if entities else config


def find_known_entities(given, known_run):
    """Returns the entities that --entity_vectors names, or the run; None for none."""
    if not given.entity_vectors:
        return None
    entities = find_entities(given.entity_vectors, find_tokenizer(given.input_file))
    if known_run is None and given.init_checkpoint:
        check_same_entities(entities, given.entity_vectors, given.init_checkpoint)
    print(entities.told, flush=True)
    return entities


def _check_beginning(given):
    """Checks that one flag at most says what the model begins with."""
    others = {"init_checkpoint": given.init_checkpoint, "word_embeddings": given.word_embeddings != "random"}
    for name, is_given in others.items() if given.student_layers else ():
        if is_given:
            raise InputError(
                f"--student_layers says what the model begins with, and so does --{name}; leave one of them out"
            )


def find_data(given, config):
    """Returns the shards of each phase and the step at which it ends."""
    first = find_shards(
        given.input_file,
        config,
        given.held_out_file,
        given.max_seq_length,
        given.max_predictions_per_seq,
        given.on_damaged_shard,
    )
    if not given.phase2_input_file:
        return [first], [given.num_train_steps]
    start_step = given.phase2_start_step or given.num_train_steps * 9 // 10
    if not 0 < start_step < given.num_train_steps:
        raise InputError(
            f"--phase2_start_step={start_step} must be less than --num_train_steps={given.num_train_steps}"
        )
    second = find_shards(
        given.phase2_input_file, config, given.phase2_held_out_file, None, None, given.on_damaged_shard, "phase2_"
    )
    identities = [shards.tokenizer and shards.tokenizer.identity for shards in (first, second)]
    if identities[0] != identities[1]:
        raise InputError(
            "--phase2_input_file: its shards were made with a different tokenizer from those of --input_file"
        )
    if (first.packing, first.objective) != (second.packing, second.objective) and not given.objective:
        raise InputError(
            "--phase2_input_file: its shards were made with another --objective or --sentence_pair than --input_file's"
        )
    return [first, second], [start_step, given.num_train_steps]


def find_mixtures(given, data):
    """Returns how often each language of each phase's data is drawn; None where there is one."""
    mixtures = [language_mixture(each, given.language_exponent, given.one_language_per_batch) for each in data]
    meaningless = [name for name in LANGUAGE_SETTINGS if name in given.given]
    if meaningless and not any(mixtures):
        raise InputError(
            f"--{meaningless[0]}: the data don't declare more than one language; leave it out, or build data "
            "that do with create_pretraining_data.py --languages"
        )
    return mixtures


def warn_of(shards):
    """Warns of shards that are damaged, and of a manifest that is not there."""
    if not shards.manifest:
        print(f"warning: no manifest.json beside {shards.train_paths[0]}: its vocabulary can't be checked")
    if shards.damage:
        named = describe_damage(shards.damage)
        total = len(shards.damage) + len(shards.train_paths)
        print(f"warning: training leaves out {len(shards.damage)} of {total} shards, which are damaged: {named}")


def has_held_out_shards(given, shards):
    """Returns whether there is something to evaluate on, if that was asked for; says so where there isn't."""
    if not given.do_eval or shards.held_out_paths:
        return given.do_eval
    message = "no held-out shards; name them with --held_out_file, or make some with create_pretraining_data.py"
    if not given.do_train:
        raise InputError(f"--do_eval: {message}")
    print(f"warning: no evaluation: {message}")
    return False


def parts_of_batches(given):
    """Returns how many parts a replica's batch is computed in, in each phase."""
    first = given.gradient_accumulation_steps
    return [first, given.phase2_gradient_accumulation_steps or first] if given.phase2_input_file else [first]


def check_batch_sizes(given, strategy):
    """Checks that batches can be divided among the replicas, and into the parts of each phase."""
    for count in parts_of_batches(given) if given.do_train else []:
        per_replica_batch_size(strategy, given.train_batch_size, "train_batch_size", count)
    per_replica_batch_size(strategy, given.eval_batch_size, "eval_batch_size")


def name_of_objective(given, known_run):
    """Returns what is learnt: what the flag says, or the run; None for what the data were made for."""
    earlier = known_run and known_run.settings.get("objective")
    return given.objective or (earlier if earlier in OBJECTIVES else None)
