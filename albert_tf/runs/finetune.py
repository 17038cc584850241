"""Fine-tuning, from settings to a trained model and its results in a folder."""

import collections.abc
import contextlib

import tensorflow as tf

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.base.console import tell
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import defaults, runner
from albert_tf.finetuning.baselines import linear_scores
from albert_tf.finetuning.soft_labels import SoftLabels
from albert_tf.finetuning.teacher import Teacher, taught
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.reading.rows import reading_once
from albert_tf.runs.known_run import places_of, with_settings_of_run
from albert_tf.runs.model_files import find_model_file, load_model_tokenizer, with_our_init_checkpoint, with_our_teacher
from albert_tf.runs.settings.finetuning import DEV, OF_TEACHER, TEST, TRAIN, FinetuningSettings
from albert_tf.runs.trials import Outcome, Stopped, run_as_asked
from albert_tf.serving.loading import load_finetuned
from albert_tf.training import TrainingRun
from albert_tf.training.batches import suitable_lengths
from albert_tf.training.devices import Agreement, is_chief
from albert_tf.training.progress import Tracker, load_tracker
from albert_tf.training.run_folder.guard import FOUND_AT, check_model, checkpoint_identity
from albert_tf.training.run_folder.held_folder import hold_together


def finetune(
    settings: FinetuningSettings,
    strategy: tf.distribute.Strategy | None = None,
    trackers: collections.abc.Sequence[Tracker] = (),
) -> Outcome | None:
    """Trains, evaluates and predicts, as the settings say; a run that is there already is gone on with."""
    # Returns None of several trials, whose table was told. Trackers are told what is measured, besides those of the
    # settings. Raises Stopped by a signal.
    settings.require("output_dir")
    if not (settings.do_train or settings.do_eval or settings.do_predict):
        raise InputError("nothing to do: pass `do_train`, `do_eval` or `do_predict`")

    def run_once(settings):
        with reading_once():
            return _run_once(settings, strategy, trackers)

    return run_as_asked(with_our_init_checkpoint(settings), run_once)


def _run_once(given, strategy, trackers):
    # A teacher that is named anew is compared by its content, once it is a folder of ours; and how many steps so many
    # epochs are follows from the data.
    left_out = given.given & {"teacher"} | ({"num_train_steps"} if "num_train_epochs" in given.given else set())
    settings, known_run = with_settings_of_run(given, left_out)
    _check_teacher_settings(settings)
    config = AlbertConfig.from_json_file(find_model_file(settings, "albert_config_file", CONFIG_FILE, known_run))
    strategy = strategy or settings.strategy()
    settings.check_batch_sizes(
        strategy, ("eval_batch_size", "predict_batch_size"), [settings.gradient_accumulation_steps]
    )
    with hold_together(settings.output_dir, Agreement(strategy), is_chief(strategy)):
        return _run_in_folder(settings, known_run, config, strategy, trackers)


def _run_in_folder(settings, known_run, config, strategy, trackers):
    tokenizer = load_model_tokenizer(settings, known_run)
    config.check_vocabulary(tokenizer.vocabulary)
    settings = settings.completed(config, known_run is not None)
    task = settings.make_task(config)
    if known_run:
        task.restore(known_run.folder)
    settings = _with_lengths(settings, task, tokenizer, known_run)
    config.check_max_seq_length(settings.max_seq_length, "`max_seq_length`")
    model_options = settings.model_options(
        strategy, config, [(settings.max_seq_length, 1)], lengths=suitable_lengths(strategy)
    )

    def load(part, needs_labels=True):
        paths, share = settings.find(part)
        return runner.load_file(task, paths, tokenizer, settings.max_seq_length, needs_labels, share)

    train_file = load(TRAIN) if settings.do_train else None
    dev_file = load(DEV) if settings.do_eval else None
    test_file = load(TEST, needs_labels=False) if settings.do_predict else None
    if train_file and dev_file:
        _warn_of_texts_on_both_sides(task, train_file, dev_file)

    teacher = None
    if settings.teacher and train_file:
        source = f"`teacher={settings.teacher}`"
        settings = with_our_teacher(settings, is_to_answer=True)
        teacher = _load_teacher(settings, source, task, tokenizer, strategy)
        train_file = taught(task, teacher, train_file, tokenizer, settings.unlabelled_file, dev_file)
    task.config = _with_dropout(settings, task, train_file, known_run)
    settings = _with_defaults(settings, task, train_file)
    tf.keras.utils.set_random_seed(settings.random_seed)
    with strategy.scope():
        models = task.make_models(**model_options)
    trackers = [*map(load_tracker, settings.trackers if settings.do_train else ()), *trackers]
    run = TrainingRun(settings.output_dir, task, models, settings, tokenizer, trackers=trackers)
    if train_file is None:
        if known_run:
            check_model(known_run.folder, known_run.settings, task.config, tokenizer, known_run.named_by)
        run.restore()
    elif not _train(settings, run, train_file, dev_file, teacher):
        raise Stopped(run.stopped_by)
    has_baselines = dev_file and getattr(settings, "baselines", False)  # some tasks have none, and no such flag
    linear = linear_scores(run, train_file, dev_file) if has_baselines else None
    of_teacher = teacher.scores(task, dev_file.examples) if dev_file and teacher else None
    results = runner.evaluate(run, dev_file, linear, of_teacher) if dev_file else None
    if test_file:
        runner.predict(run, test_file, settings.predict_batch_size)
    run.write_model_card(license_name=settings.license)
    return Outcome(task.selection_metric, settings.learning_rate, results)


def _with_lengths(settings, task, tokenizer, known_run):
    """Returns settings that say how many pieces of a text are read, and which share of them is hidden."""
    dropout, length = settings.token_dropout, settings.max_seq_length
    if dropout is None:
        hides_pieces = known_run is None and task.may_hide_pieces
        dropout = defaults.default_token_dropout(task.config, hides_pieces, task.predicts_numbers)
    longest = task.config.longest_sequence
    if length is None and not settings.do_train:
        length = longest
    elif length is None and task.usual_max_seq_length is not None:
        length = min(longest, task.usual_max_seq_length)
    elif length is None:
        paths, share = settings.find(TRAIN)
        length = defaults.choose_max_seq_length(task, runner.read_file(task, paths, share=share), tokenizer)
        reason = "the longest that this model reads" if length == longest else "by the lengths of the training texts"
        tell(f"`max_seq_length={length}`, {reason}")
    return settings.changed(token_dropout=dropout, max_seq_length=length)


def _train(settings, run, train_file, dev_file, teacher):
    more_settings = {
        "command": settings.command,
        **_identity_of_teacher(settings, teacher),
        FOUND_AT: places_of(settings),
    }
    data = {}  # what tells the data of each file of results, as far as they are there
    for result, part in ((EVAL_RESULTS_FILE, DEV), (run.objective.predictions_file, TEST)):
        with contextlib.suppress(InputError):
            data[result] = runner.identity_of(*settings.find(part))
    return runner.train(run, train_file, dev_file, more_settings, data, settings.token_dropout)


def _check_teacher_settings(settings):
    """Checks that what says how to learn from a teacher comes with one."""
    for name in ("unlabelled_file", *OF_TEACHER):
        if name in settings.given and not settings.teacher:
            raise InputError(f"`{name}` has an effect only with a teacher; name one with `teacher`, or leave it out")
    if "teacher" in settings.given and settings.teacher and not settings.do_train:
        raise InputError("`teacher` has an effect only in training; add `do_train`, or leave `teacher` out")


def _load_teacher(settings, source, task, tokenizer, strategy):
    """Returns the teacher, which messages call `source`, and has the task learn from it."""
    task.soft_labels = SoftLabels(settings.teacher_weight, settings.teacher_temperature)
    with strategy.scope():
        loaded = load_finetuned(settings.teacher, source)
    of_teacher = loaded.task
    if loaded.texts_are_assumed and type(of_teacher) is type(task):
        of_teacher = of_teacher.reading_as(task)
        tell(f"{source}: nothing tells what it reads, so it is given what this task reads; look at its score")
    teacher = Teacher(
        of_teacher,
        loaded.model,
        loaded.tokenizer,
        loaded.max_seq_length,
        strategy,
        settings.predict_batch_size,
        source,
        loaded.texts_are_assumed,
    )
    teacher.check(task, tokenizer, settings.max_seq_length)
    return teacher


def _identity_of_teacher(settings, teacher):
    """Returns the identity of the teacher, and how it is learnt from; nothing where there is none."""
    if teacher is None:
        return {}
    files = settings.unlabelled_file
    return {
        "teacher": checkpoint_identity(settings.teacher),
        "teacher_setup": teacher.setup_sha256,
        "unlabelled_files": runner.identity_of(tuple(files)) if files else None,
    }


def _with_dropout(settings, task, train_file, known_run):
    """Returns the task's config with the dropout that is set or of the run, or else the default's if it adds any."""
    config, names = task.config, ("hidden_dropout_prob", "attention_probs_dropout_prob")
    if settings.dropout is not None:
        return config.replace(**dict.fromkeys(names, settings.dropout))
    if known_run is not None:
        # The file of --albert_config_file, where the command is repeated, lacks what the run has added.
        of_run = known_run.settings.get("albert_config", {})
        return config.replace(**{name: max(of_run.get(name, 0.0), getattr(config, name)) for name in names})
    return defaults.with_default_dropout(config, train_file.num_rows) if train_file and task.adds_dropout else config


def _with_defaults(settings, task, train_file):
    """Returns the settings with what nobody says, which follows from model and training file."""
    count = train_file.num_rows if train_file else 1
    is_counted = train_file and (settings.num_train_epochs is not None or settings.num_train_steps is None)
    chosen = defaults.training_defaults(
        task.config,
        count,
        settings.train_batch_size,
        settings.init_checkpoint,
        settings.token_dropout,
        settings.num_train_epochs,
        None if is_counted else settings.num_train_steps,
        task.highest_learning_rate,
    )
    num_train_steps = chosen.pop("num_train_steps")
    changes = {name: value for name, value in chosen.items() if getattr(settings, name) is None}
    if settings.early_stopping and settings.eval_every_steps is None:
        period = settings.save_checkpoints_steps
        if train_file and "save_checkpoints_steps" not in settings.given:
            period = defaults.evaluation_period(num_train_steps, count, settings.train_batch_size)
            tell(f"`eval_every_steps={period}`, for `early_stopping`")
        changes["eval_every_steps"] = period
    said_by = "num_train_epochs" if is_counted else "num_train_steps"
    return settings.changed(**changes).with_steps(num_train_steps, said_by)


def _warn_of_texts_on_both_sides(task, train_file, dev_file):
    """Tells how many of the texts to evaluate on are learnt, too."""
    with contextlib.suppress(InputError):  # some tasks have no texts to compare
        learnt = {task.text_and_label(example)[0] for example in train_file.examples}
        count = sum(task.text_and_label(example)[0] in learnt for example in dev_file.examples)
        if count:
            tell(
                f"warning: {count:,} of the {len(dev_file.examples):,} evaluation examples have texts that are also "
                "trained on, so their scores say little; remove these texts from one of the two"
            )
