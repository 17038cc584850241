"""Pre-training, from settings to a trained model and its results in a folder."""

import collections.abc
import functools

import tensorflow as tf

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE, find_beside_checkpoint
from albert_tf.base.console import RESULTS, tell
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.objectives import OBJECTIVES
from albert_tf.objectives.knowledge import ENTITY_VECTORS
from albert_tf.objectives.registry import own_settings
from albert_tf.pretraining_data.records import describe_damage, naming_damaged_shards
from albert_tf.pretraining_data.shards import find_shards, find_tokenizer
from albert_tf.runs import phases
from albert_tf.runs.cooccurrence import begin_with_counts
from albert_tf.runs.known_run import places_of, with_settings_of_run
from albert_tf.runs.model_files import find_student_config, with_our_init_checkpoint, with_our_teacher
from albert_tf.runs.settings.pretraining import LANGUAGE_SETTINGS, PretrainingSettings
from albert_tf.runs.trials import Outcome, Stopped, run_as_asked
from albert_tf.training import TrainingRun
from albert_tf.training.devices import Agreement, is_chief
from albert_tf.training.progress import Tracker, load_tracker
from albert_tf.training.run_folder.guard import FOUND_AT, absolute_path, check_model, checkpoint_identity
from albert_tf.training.run_folder.held_folder import hold_together
from albert_tf.training.run_folder.other_vocabulary import config_for_vocabulary


def pretrain(
    settings: PretrainingSettings,
    strategy: tf.distribute.Strategy | None = None,
    trackers: collections.abc.Sequence[Tracker] = (),
) -> Outcome | None:
    """Trains and evaluates, as the settings say; a run that is there already is gone on with."""
    # Returns and raises as `finetune` does.
    settings.require("output_dir")
    if not (settings.do_train or settings.do_eval):
        raise InputError("nothing to do: pass `do_train` or `do_eval`")
    return run_as_asked(
        with_our_init_checkpoint(settings), functools.partial(_run_once, strategy=strategy, trackers=trackers)
    )


def _run_once(given, strategy, trackers):
    # What is named anew is compared by its content, once it is a folder of ours.
    models = [name for name in _names_of_models() if name in given.given]
    settings, known_run = with_settings_of_run(given, models)
    if known_run and not settings.entity_vectors:
        folder = known_run.settings.get(FOUND_AT, {}).get(ENTITY_VECTORS)
        settings = settings.changed(entity_vectors=folder or "")
    settings.require("input_file")
    entities = _find_known_entities(settings, known_run)
    config = _find_config(settings, known_run, entities)
    strategy = strategy or settings.strategy()
    settings.check_batch_sizes(strategy, ("eval_batch_size",), settings.parts_of_batches)
    with hold_together(settings.output_dir, Agreement(strategy), is_chief(strategy)):
        return _run_in_folder(settings, known_run, config, strategy, trackers, entities)


def _run_in_folder(settings, known_run, config, strategy, trackers, entities):
    settings = settings.with_steps(settings.num_train_steps, "num_train_steps")
    data, end_steps = _find_data(settings, config)
    mixtures = _find_mixtures(settings, data)
    last = data[-1]  # what evaluation is on in the end
    do_eval = _has_held_out_shards(settings, last)
    for shards in data:
        _warn_of(shards)
    earlier = known_run and known_run.settings.get("objective")
    name = settings.objective or (earlier if earlier in OBJECTIVES else None) or last.objective
    if _names_of_models(name):
        settings = with_our_teacher(settings)
    own = settings.of_objective(name)
    objectives = [phases.objective_of(config, shards, name, own, entities) for shards in data]
    models = _make_models(settings, config, strategy, data, objectives)
    objective = objectives[-1]
    settings = settings.changed(
        evaluates_first=do_eval, eval_every_steps=settings.eval_every_steps or settings.save_checkpoints_steps
    )
    trackers = [*map(load_tracker, settings.trackers if settings.do_train else ()), *trackers]
    run = TrainingRun(settings.output_dir, objective, models, settings, last.tokenizer, trackers=trackers)
    held_out = phases.held_out_identity(last, settings) if last.held_out_paths else None
    with naming_damaged_shards([path for each in data for path in [*each.train_paths, *each.held_out_paths]]):
        if settings.do_train:
            planned = [
                phases.make_phase(objective, shards, settings, end, parts, do_eval, settings.read_own_shards, mixture)
                for objective, shards, end, parts, mixture in zip(
                    objectives, data, end_steps, settings.parts_of_batches, mixtures
                )
            ]
            for shards, mixture in zip(data, mixtures):
                if mixture:
                    run.log(phases.describe_mixture(shards, mixture))
            more_settings = _more_settings(settings, objective, data, end_steps)
            results_data = {EVAL_RESULTS_FILE: held_out} if held_out else {}
            begins_with_counts = settings.word_embeddings == "cooccurrence"
            initialize = functools.partial(begin_with_counts, models["model"], data[0]) if begins_with_counts else None
            if not run.train(planned, more_settings, results_data, initialize):
                raise Stopped(run.stopped_by)
            run.write_further_models()
        else:
            if known_run:
                check_model(known_run.folder, known_run.settings, config, last.tokenizer, known_run.named_by)
            run.restore()
        results = None
        if do_eval:
            results = run.evaluate(phases.make_held_out_dataset(objective, last, settings)(), held_out)
    if results:
        measured = ", ".join(
            f"{name} {results[name]:.4f}"
            for name in (*objective.loss_coefficients, *objective.metric_names)
            if name in results
        )
        run.log(f"on held-out text: {measured}", RESULTS)
    run.write_model_card([shards.manifest for shards in data], settings.license)
    if do_eval:
        _tell_what_is_worth_nothing(run, objective, last, settings.eval_batch_size)
    return Outcome(objective.selection_metric, settings.learning_rate, results)


def _make_models(settings, config, strategy, data, objectives):
    options = [shards.train_options for shards in data]
    has_documents = any(
        objective.separates_documents(objective.batch_spec(each.max_seq_length))
        for objective, each in zip(objectives, options)
    )
    shapes = [(each.max_seq_length, each.max_predictions_per_seq + 1) for each in options]
    model_options = settings.model_options(strategy, config, shapes, has_documents=has_documents)
    tf.keras.utils.set_random_seed(settings.random_seed)
    with strategy.scope():
        return objectives[-1].make_models(**model_options)


def _tell_what_is_worth_nothing(run, objective, shards, eval_batch_size):
    """Tells what is reached without context, and by a rule that reads no text."""
    entropy = shards.manifest.get("splits", {}).get("held_out", {}).get("unigram_entropy")
    first_loss = next(iter(objective.loss_coefficients))
    if entropy is not None and first_loss.endswith("_lm_loss"):
        run.log(f"unigram entropy of the held-out text: {entropy:.4f} (a {first_loss} that needs no context)", RESULTS)
    blind = shards.blind_accuracy(eval_batch_size)
    if blind is not None and objective.blind_metric:
        run.log(f"{objective.blind_metric} of a rule that reads no text: {blind:.4f}", RESULTS)


def _more_settings(settings, objective, data, end_steps):
    """Returns the values that decide, besides the settings, what a run computes, and where it found its data."""
    # Where an example's loss depends on no other one, it may change.
    evaluation = {"eval_batch_size": settings.eval_batch_size} if objective.compares_examples else {}
    is_mixed = any(len(shards.sources) > 1 for shards in data)
    languages = {name: getattr(settings, name) for name in LANGUAGE_SETTINGS} if is_mixed else {}
    places = places_of(settings)
    if settings.entity_vectors:
        places[ENTITY_VECTORS] = absolute_path(settings.entity_vectors)
    return {
        "command": settings.command,
        **phases.data_settings(data, end_steps),
        **{name: checkpoint_identity(getattr(settings, name)) for name in _names_of_models(objective.name)},
        **evaluation,
        **languages,
        FOUND_AT: {**dict.fromkeys(settings.names(place=True)), **places},
    }


def _names_of_models(objective=None):
    """Returns the names of the settings that name models, of one objective or of all."""
    known = (own_settings(each) for each in ([objective] if objective else OBJECTIVES))
    return [name for settings in known for name, each in settings.items() if each.names_model]


def _find_config(settings, known_run, entities) -> AlbertConfig:
    """Returns the hyper-parameters of the model that the settings ask for, which is to know these entities, if any."""
    own_config_file = settings.albert_config_file or (known_run and known_run.find(CONFIG_FILE))
    config_file = own_config_file or find_beside_checkpoint(settings.init_checkpoint, CONFIG_FILE)
    config = None if config_file else find_student_config(settings)
    if settings.init_checkpoint and not (config or config_file):
        raise InputError(
            f"`init_checkpoint={settings.init_checkpoint}`: there is no {CONFIG_FILE}; name the folder of a model, "
            "or its config with `albert_config_file`"
        )
    if not (config or config_file):
        settings.require("albert_config_file")
    _check_beginning(settings)
    config = config or AlbertConfig.from_json_file(config_file)
    begins_with_another = settings.do_train and settings.init_checkpoint and not own_config_file
    if begins_with_another and (tokenizer := find_tokenizer(settings.input_file)):
        config = config_for_vocabulary(config, settings.init_checkpoint, tokenizer)
    return entities.config_for(config) if entities else config


def _find_known_entities(settings, known_run):
    """Returns the entities that `entity_vectors` names, or the run; None for none."""
    if not settings.entity_vectors:
        return None
    entities = phases.find_entities(settings.entity_vectors, find_tokenizer(settings.input_file))
    if known_run is None and settings.init_checkpoint:
        phases.check_same_entities(entities, settings.entity_vectors, settings.init_checkpoint)
    tell(entities.told)
    return entities


def _check_beginning(settings):
    """Checks that one setting at most says what the model begins with."""
    others = {"init_checkpoint": settings.init_checkpoint, "word_embeddings": settings.word_embeddings != "random"}
    for name, is_given in others.items() if settings.student_layers else ():
        if is_given:
            raise InputError(f"`student_layers` and `{name}` both say what the model begins with; leave one out")


def _find_data(settings, config):
    """Returns the shards of each phase and the step at which it ends."""
    sizes = settings.max_seq_length, settings.max_predictions_per_seq
    first = find_shards(settings.input_file, config, settings.held_out_file, *sizes, settings.on_damaged_shard)
    if not settings.phase2_input_file:
        return [first], [settings.num_train_steps]
    second = find_shards(
        settings.phase2_input_file,
        config,
        settings.phase2_held_out_file,
        None,
        None,
        settings.on_damaged_shard,
        "phase2_",
    )
    identities = [shards.tokenizer and shards.tokenizer.identity for shards in (first, second)]
    if identities[0] != identities[1]:
        raise InputError(
            "`phase2_input_file`: its shards were made with a different tokenizer from those of `input_file`"
        )
    if (first.packing, first.objective) != (second.packing, second.objective) and not settings.objective:
        raise InputError(
            "`phase2_input_file`: its shards were made with another `objective` or `sentence_pair` than those of "
            "`input_file`"
        )
    return [first, second], [settings.starts_at, settings.num_train_steps]


def _find_mixtures(settings, data):
    """Returns how often each language of each phase's data is drawn; None where there is one."""
    mixtures = [
        phases.language_mixture(each, settings.language_exponent, settings.one_language_per_batch) for each in data
    ]
    meaningless = [name for name in LANGUAGE_SETTINGS if name in settings.given]
    if meaningless and not any(mixtures):
        raise InputError(
            f"`{meaningless[0]}`: the data don't declare more than one language; leave it out, or build data "
            "that do with create_pretraining_data.py --languages"
        )
    return mixtures


def _warn_of(shards):
    """Warns of shards that are damaged, and of a manifest that is not there."""
    if not shards.manifest:
        tell(f"warning: no manifest.json beside {shards.train_paths[0]}: its vocabulary can't be checked")
    if shards.damage:
        named = describe_damage(shards.damage)
        total = len(shards.damage) + len(shards.train_paths)
        tell(f"warning: training leaves out {len(shards.damage)} of {total} shards, which are damaged: {named}")


def _has_held_out_shards(settings, shards):
    """Returns whether there is something to evaluate on, if that was asked for; says so where there isn't."""
    if not settings.do_eval or shards.held_out_paths:
        return settings.do_eval
    message = "no held-out shards; name them with `held_out_file`, or make some with create_pretraining_data.py"
    if not settings.do_train:
        raise InputError(f"`do_eval`: {message}")
    tell(f"warning: no evaluation: {message}")
    return False
