"""What all commands that fine-tune share: the way from flags to a trained model and its results."""

import collections.abc
import contextlib
import dataclasses

import tensorflow as tf

from albert_tf.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.cli import app, training_flags
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.cli.model_files import (
    find_model_file,
    load_model_tokenizer,
    with_our_init_checkpoint,
    with_our_teacher,
)
from albert_tf.cli.run_flags import settings_flags, with_settings_of_run
from albert_tf.cli.trial_flags import run_as_asked
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import FinetuningTask, runner
from albert_tf.finetuning.baselines import linear_scores
from albert_tf.finetuning.defaults import (
    WARMUP_PROPORTION,
    choose_max_seq_length,
    default_learning_rate,
    default_num_train_epochs,
    default_token_dropout,
    evaluation_period,
    has_much_to_keep,
    num_steps,
    with_default_dropout,
)
from albert_tf.finetuning.dev_share import Share
from albert_tf.finetuning.soft_labels import SoftLabels
from albert_tf.finetuning.teacher import Teacher, taught
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.serving.loading import load_finetuned
from albert_tf.training import TrainingRun
from albert_tf.training.devices.batches import per_replica_batch_size, suitable_lengths
from albert_tf.training.devices.workers import Agreement, is_chief
from albert_tf.training.run_folder.guard import FOUND_AT, check_model
from albert_tf.training.run_folder.held_folder import hold_together
from albert_tf.training.run_folder.identity import absolute_path, checkpoint_identity

TRAIN, DEV, TEST = "train", "dev", "test"
# What a run keeps of every command's settings, and what besides if there is a teacher.
SHARED_SETTINGS = ("dev_fraction", "max_seq_length", "token_dropout")
TEACHER_SETTINGS = ("teacher_weight", "teacher_temperature")


@dataclasses.dataclass(frozen=True)
class FinetuningCommand:
    """What tells one command that fine-tunes from another.

    Settings are what `resolved_flags` returns.

    Attributes:
        name: The script's name.
        setting_names: Settings that decide what a run computes; they are kept with it and taken from it.
        place_names: Settings that say where data lie.
        find_paths: Given the settings and `TRAIN`, `DEV` or `TEST`, returns the paths of the files, which are read as
            one; raises InputError where there is none.
        make_task: Given the settings and the model's config, returns the task that they ask for.
        complete: Given the settings, the model's config, and whether that is the config of a run that is resumed
            or used, returns the settings with the command's own that nobody gave.
    """

    name: str
    setting_names: tuple[str, ...]
    place_names: tuple[str, ...]
    find_paths: collections.abc.Callable[..., tuple[str, ...]]
    make_task: collections.abc.Callable[..., FinetuningTask]
    complete: collections.abc.Callable = lambda settings, config, is_known: settings

    def run(self, define_flags: collections.abc.Callable[[], None]) -> None:
        """Runs the command."""
        app.run(self._main, define_flags)

    def _main(self):
        settings = resolved_flags()
        app.require(output_dir=settings.output_dir)
        if not (settings.do_train or settings.do_eval or settings.do_predict):
            raise InputError("nothing to do: pass --do_train, --do_eval or --do_predict")
        run_as_asked(with_our_init_checkpoint(settings), self._run_once)

    def _run_once(self, given) -> tuple[str, float, dict | None]:
        """Does what the settings say, and returns what `run_as_asked` needs of it."""
        names = [*settings_flags(), *self.setting_names, *SHARED_SETTINGS, *TEACHER_SETTINGS]
        if "teacher" not in given.given:  # which is compared by its content, once it is a folder of ours
            names.append("teacher")
        if "num_train_epochs" in given.given:
            names.remove("num_train_steps")  # how many steps that is follows from the data
        settings, known_run = with_settings_of_run(given, self.name, names, [*self.place_names, "unlabelled_file"])
        _check_teacher_settings(settings)
        config = AlbertConfig.from_json_file(find_model_file(settings, "albert_config_file", CONFIG_FILE, known_run))
        strategy = training_flags.strategy_from_flags(settings)
        _check_batch_sizes(settings, strategy)
        with hold_together(settings.output_dir, Agreement(strategy), is_chief(strategy)):
            return self._run_in_folder(settings, known_run, config, strategy)

    def _run_in_folder(self, settings, known_run, config, strategy):
        tokenizer = load_model_tokenizer(settings, known_run)
        config.check_vocabulary(tokenizer.vocabulary)
        settings = self.complete(settings, config, known_run is not None)
        task = self.make_task(settings, config)
        if known_run:
            task.restore(known_run.folder)
        settings = self._with_lengths(settings, task, tokenizer, known_run)
        config.check_max_seq_length(settings.max_seq_length, "--max_seq_length")
        model_options = training_flags.model_options(
            strategy, config, [(settings.max_seq_length, 1)], settings, lengths=suitable_lengths(strategy)
        )

        def load(part, needs_labels=True):
            paths, share = self.find(settings, part)
            return runner.load_file(task, paths, tokenizer, settings.max_seq_length, needs_labels, share)

        train_file = load(TRAIN) if settings.do_train else None
        dev_file = load(DEV) if settings.do_eval else None
        test_file = load(TEST, needs_labels=False) if settings.do_predict else None

        teacher = None
        if settings.teacher and train_file:
            source = f"--teacher={settings.teacher}"
            settings = with_our_teacher(settings, is_to_answer=True)
            teacher = _load_teacher(settings, source, task, tokenizer, strategy)
            train_file = taught(task, teacher, train_file, tokenizer, tuple(settings.unlabelled_file), dev_file)
        task.config = _with_dropout(settings, task, train_file, known_run)
        run_settings = _make_run_settings(settings, task, train_file)
        tf.keras.utils.set_random_seed(settings.random_seed)
        with strategy.scope():
            models = task.make_models(**model_options)
        trackers = training_flags.trackers_from_flags(settings)
        run = TrainingRun(settings.output_dir, task, models, run_settings, tokenizer, trackers=trackers)
        if train_file is None:
            if known_run:
                check_model(known_run.folder, known_run.settings, task.config, tokenizer, known_run.flag)
            run.restore()
        elif not self._train(settings, run, train_file, dev_file, teacher):
            app.exit_stopped(run.stopped_by)
        has_baselines = dev_file and getattr(settings, "baselines", False)  # some tasks have none, and no such flag
        linear = linear_scores(run, train_file, dev_file) if has_baselines else None
        of_teacher = teacher.scores(task, dev_file.examples) if dev_file and teacher else None
        results = runner.evaluate(run, dev_file, linear, of_teacher) if dev_file else None
        if test_file:
            runner.predict(run, test_file, settings.predict_batch_size)
        run.write_model_card(license_name=settings.license)
        return task.selection_metric, run_settings.learning_rate, results

    def find(self, settings, part: str) -> tuple[tuple[str, ...], Share | None]:
        """Returns the paths of a part of the data, and which share of it that is, None for all of it.

        Raises:
            InputError: There is none, or two are named.
        """
        fraction = settings.dev_fraction
        if part == TRAIN:
            return self.find_paths(settings, TRAIN), None if fraction is None else Share(fraction, is_dev=False)
        try:
            paths = self.find_paths(settings, part)
        except InputError as error:
            if fraction is not None:
                with contextlib.suppress(InputError):  # without a training file the missing one is what there is to say
                    return self.find_paths(settings, TRAIN), Share(fraction, is_dev=True)
            if part == DEV and settings.do_train:
                raise InputError(
                    f"{error}; or hold out a share of the training file, for example with --dev_fraction=0.1"
                ) from error
            raise
        if fraction is not None and part == DEV and (settings.do_train or "dev_fraction" in settings.given):
            raise InputError(
                f"--dev_fraction={fraction:g}: there is already a file to evaluate on, {' and '.join(paths)}; "
                "leave out one of the two"
            )
        return paths, None

    def _with_lengths(self, settings, task, tokenizer, known_run):
        """Returns settings that say how many pieces of a text are read, and which share of them is hidden."""
        dropout, length = settings.token_dropout, settings.max_seq_length
        if dropout is None:
            hides_pieces = known_run is None and task.may_hide_pieces
            dropout = default_token_dropout(task.config, hides_pieces, task.predicts_numbers)
        longest = task.config.longest_sequence
        if length is None and not settings.do_train:
            length = longest
        elif length is None and task.usual_max_seq_length is not None:
            length = min(longest, task.usual_max_seq_length)
        elif length is None:
            paths, share = self.find(settings, TRAIN)
            length = choose_max_seq_length(task, runner.read_file(task, paths, share=share), tokenizer)
            reason = (
                "the longest that this model reads" if length == longest else "by the lengths of the training texts"
            )
            print(f"--max_seq_length={length}, {reason}", flush=True)
        return dataclasses.replace(settings, token_dropout=dropout, max_seq_length=length)

    def _train(self, settings, run, train_file, dev_file, teacher):
        places = {name: getattr(settings, name) for name in (*self.place_names, "unlabelled_file")}
        known = run.objective.settings()
        more_settings = {
            "command": self.name,
            "dev_fraction": settings.dev_fraction,
            **{name: getattr(settings, name) for name in self.setting_names if name not in known},
            **_identity_of_teacher(settings, teacher),
            FOUND_AT: {name: _absolute(place) for name, place in places.items() if place},
        }
        data = {}  # what tells the data of each file of results, as far as they are there
        for result, part in ((EVAL_RESULTS_FILE, DEV), (run.objective.predictions_file, TEST)):
            with contextlib.suppress(InputError):
                data[result] = runner.identity_of(*self.find(settings, part))
        return runner.train(run, train_file, dev_file, more_settings, data, settings.token_dropout)


def _check_teacher_settings(settings):
    """Checks that what says how to learn from a teacher comes with one."""
    for name in ("unlabelled_file", *TEACHER_SETTINGS):
        if name in settings.given and not settings.teacher:
            raise InputError(f"--{name} has an effect only with a teacher; name one with --teacher, or leave it out")
    if "teacher" in settings.given and settings.teacher and not settings.do_train:
        raise InputError("--teacher has an effect only in training; add --do_train, or leave --teacher out")


def _load_teacher(settings, source, task, tokenizer, strategy):
    """Returns the teacher, which messages call `source`, and has the task learn from it."""
    task.soft_labels = SoftLabels(settings.teacher_weight, settings.teacher_temperature)
    with strategy.scope():
        loaded = load_finetuned(settings.teacher, source)
    of_teacher = loaded.task
    if loaded.texts_are_assumed and type(of_teacher) is type(task):
        of_teacher = of_teacher.reading_as(task)
        print(f"{source}: nothing tells what it reads, so it is given what this task reads; look at its score")
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
    """Returns what tells the teacher, and what is learnt from it; nothing where there is none."""
    if teacher is None:
        return {}
    files = settings.unlabelled_file
    return {
        "teacher": checkpoint_identity(settings.teacher),
        "teacher_setup": teacher.setup_sha256,
        "unlabelled_files": runner.identity_of(tuple(files)) if files else None,
        **{name: getattr(settings, name) for name in TEACHER_SETTINGS},
    }


def _absolute(place):
    return absolute_path(place) if isinstance(place, str) else list(map(absolute_path, place))


def _with_dropout(settings, task, train_file, known_run):
    """Returns the task's config with the dropout that is set or of the run, or else the default's if it adds any."""
    config, names = task.config, ("hidden_dropout_prob", "attention_probs_dropout_prob")
    if settings.dropout is not None:
        return config.replace(**dict.fromkeys(names, settings.dropout))
    if known_run is not None:
        # The file of --albert_config_file, where the command is repeated, lacks what the run has added.
        of_run = known_run.settings.get("albert_config", {})
        return config.replace(**{name: max(of_run.get(name, 0.0), getattr(config, name)) for name in names})
    return with_default_dropout(config, train_file.num_rows) if train_file and task.adds_dropout else config


def _make_run_settings(settings, task, train_file):
    """Returns the settings of the run; what nobody says follows from model and training file."""
    changes = {}
    if settings.learning_rate is None:
        is_pretrained = has_much_to_keep(settings.init_checkpoint)
        changes["learning_rate"] = default_learning_rate(task.config, is_pretrained, task.highest_learning_rate)
    num_train_steps, length_setting = settings.num_train_steps or 1, "num_train_steps"
    if train_file is not None and (settings.num_train_epochs is not None or settings.num_train_steps is None):
        count, length_setting = train_file.num_rows, "num_train_epochs"
        epochs = settings.num_train_epochs
        if epochs is None:
            epochs = default_num_train_epochs(count, settings.token_dropout)
        num_train_steps = num_steps(epochs, count, settings.train_batch_size)
    if settings.num_warmup_steps is None:
        changes["num_warmup_steps"] = int(WARMUP_PROPORTION * num_train_steps)
    evaluates = settings.eval_every_steps is not None or "save_checkpoints_steps" in settings.given
    if train_file is not None and settings.early_stopping and not evaluates:
        period = evaluation_period(num_train_steps, train_file.num_rows, settings.train_batch_size)
        changes["eval_every_steps"] = period
        print(f"--eval_every_steps={period}, for --early_stopping", flush=True)
    settings = dataclasses.replace(settings, **changes)
    return training_flags.settings_from_flags(num_train_steps, length_setting, given=settings)


def _check_batch_sizes(settings, strategy):
    """Checks that batches can be divided among the replicas."""
    for name in ("eval_batch_size", "predict_batch_size"):
        per_replica_batch_size(strategy, getattr(settings, name), name)
    if settings.do_train:
        parts = settings.gradient_accumulation_steps
        per_replica_batch_size(strategy, settings.train_batch_size, "train_batch_size", parts)
