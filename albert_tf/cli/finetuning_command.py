"""What all commands that fine-tune share: the way from flags to a trained model and its results."""

import collections.abc
import contextlib
import dataclasses
import os

import tensorflow as tf
from absl import flags
from absl.testing import flagsaver

from albert_tf.checkpoint_files import TRIALS_FILE, refuse_trials
from albert_tf.cli import app, training_flags
from albert_tf.cli.model_files import find_model_file, load_model_tokenizer
from albert_tf.cli.run_flags import settings_flags, take_from_run
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import write_json
from albert_tf.finetuning import FinetuningTask, runner
from albert_tf.finetuning.defaults import (
    WARMUP_PROPORTION,
    choose_max_seq_length,
    default_learning_rate,
    default_num_train_epochs,
    default_token_dropout,
    evaluation_period,
    num_steps,
    with_default_dropout,
)
from albert_tf.finetuning.dev_share import Share
from albert_tf.finetuning.trials import Trial, best_trial, describe, summarize
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.training import TrainingRun
from albert_tf.training.devices.batches import per_replica_batch_size
from albert_tf.training.devices.workers import Agreement, is_chief
from albert_tf.training.run_folder.guard import FOUND_AT, check_model, read_settings
from albert_tf.training.run_folder.held_folder import hold_together
from albert_tf.training.run_folder.identity import absolute_path
from albert_tf.training.run_folder.results import EVAL_RESULTS_FILE
from albert_tf.training.stability import DivergedError

FLAGS = flags.FLAGS

flags.disclaim_key_flags()

# Settings whose flag is called otherwise.
STEP_FLAGS = {"num_train_steps": "train_step", "num_warmup_steps": "warmup_step"}
TRAIN, DEV, TEST = "train", "dev", "test"
# What a run keeps of every command's flags.
SHARED_SETTINGS = ("dev_fraction", "max_seq_length", "token_dropout")


@dataclasses.dataclass(frozen=True)
class FinetuningCommand:
    """What tells one command that fine-tunes from another.

    Attributes:
        name: The script's name.
        setting_flags: Flags that decide what a run computes; they are kept with it and taken from it.
        place_flags: Flags that say where data lie.
        find_paths: Returns the paths of the files for `TRAIN`, `DEV` or `TEST`, which are read as one; raises
            InputError where there is none.
        make_task: Returns the task that the flags ask for, given the model's config, and whether that is the config of
            a run that is gone on with or used, which knows what defaults would choose for a new one.
    """

    name: str
    setting_flags: tuple[str, ...]
    place_flags: tuple[str, ...]
    find_paths: collections.abc.Callable[[str], tuple[str, ...]]
    make_task: collections.abc.Callable[[AlbertConfig, bool], FinetuningTask]

    def run(self, define_flags: collections.abc.Callable[[], None]) -> None:
        """Runs the command.

        Args:
            define_flags: Defines its flags, those of `define_finetuning_flags` among them.
        """
        app.run(self._main, define_flags, STEP_FLAGS)

    def _main(self):
        app.require(output_dir=FLAGS.output_dir)
        if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict):
            raise InputError("nothing to do: pass --do_train, --do_eval or --do_predict")
        trials = _trials()
        if trials is None:
            refuse_trials(FLAGS.output_dir)
            self._run_once()
        else:
            self._run_all(trials)

    def _run_all(self, trials):
        """Runs one trial after the other, each in a folder of its own, and writes what they come to."""
        if not (FLAGS.do_train and FLAGS.do_eval):
            raise InputError("--num_trials and --learning_rates need --do_train and --do_eval, to compare the trials")
        if read_settings(FLAGS.output_dir) is not None:  # its results would be replaced
            raise InputError(f"--output_dir={FLAGS.output_dir} holds a run; choose another folder for the trials")
        finished, diverged = [], set()
        for number, (rate, seed) in enumerate(trials, start=1):
            if rate in diverged:
                continue
            name = f"seed_{seed}" if rate is None else f"rate_{rate:g}_seed_{seed}"
            folder = os.path.join(FLAGS.output_dir, name)
            print(f"\ntrial {number} of {len(trials)}: {folder}", flush=True)
            with flagsaver.flagsaver(output_dir=folder, random_seed=seed, learning_rate=rate):
                try:
                    metric, results = self._run_once()
                except DivergedError as error:
                    if len({rate for rate, _ in trials}) == 1 + len(diverged):
                        raise  # no rate is left
                    print(f"warning: --learning_rate={rate:g} is left out: {error}", flush=True)
                    diverged.add(rate)
                    continue
                if results is None:
                    return  # stopped; the same command goes on
                finished.append(Trial(FLAGS.learning_rate, seed, folder, results))
        finished = [trial for trial in finished if trial.learning_rate not in diverged]
        best = os.path.basename(best_trial(finished, metric).folder)
        found = {"best": best, "trials": [vars(trial) for trial in finished]}
        write_json(os.path.join(FLAGS.output_dir, TRIALS_FILE), found)
        write_json(os.path.join(FLAGS.output_dir, EVAL_RESULTS_FILE), summarize(finished, metric))
        print("", *describe(finished, metric), sep="\n", flush=True)

    def _run_once(self):
        """Does what the flags say; returns the metric that decides and the results, None if there are none."""
        known_run = self._find_run()
        config = AlbertConfig.from_json_file(find_model_file("albert_config_file", CONFIG_FILE, known_run))
        strategy = training_flags.strategy_from_flags()
        _check_batch_sizes(strategy)
        with hold_together(FLAGS.output_dir, Agreement(strategy), is_chief(strategy)):
            return self._run_in_folder(known_run, config, strategy)

    def _run_in_folder(self, known_run, config, strategy):
        tokenizer = load_model_tokenizer(known_run)
        config.check_vocab_size(len(tokenizer.vocabulary), tokenizer.vocabulary.source)
        task = self.make_task(config, known_run is not None)
        if FLAGS.token_dropout is None:
            hides_pieces = known_run is None and task.may_hide_pieces
            FLAGS.token_dropout = default_token_dropout(task.config, hides_pieces, task.predicts_numbers)
        if FLAGS.max_seq_length is None:
            FLAGS.max_seq_length = self._choose_max_seq_length(task, tokenizer)
        config.check_max_seq_length(FLAGS.max_seq_length, "--max_seq_length")
        model_options = training_flags.model_options(strategy, config, [(FLAGS.max_seq_length, 1)])

        def load(part, needs_labels=True):
            paths, share = self.find(part)
            return runner.load_file(task, paths, tokenizer, FLAGS.max_seq_length, needs_labels, share)

        train_file = load(TRAIN) if FLAGS.do_train else None
        dev_file = load(DEV) if FLAGS.do_eval else None
        test_file = load(TEST, needs_labels=False) if FLAGS.do_predict else None

        task.config = _with_dropout(task.config, task.adds_dropout, train_file, known_run)
        settings = _make_settings(task, train_file)
        tf.keras.utils.set_random_seed(FLAGS.random_seed)
        with strategy.scope():
            model = task.make_models(**model_options)
        run = TrainingRun(FLAGS.output_dir, task, model, settings, tokenizer)
        if train_file is None:
            if known_run:
                check_model(known_run.folder, known_run.settings, task.config, tokenizer, known_run.flag)
            run.restore()
        elif not self._train(run, train_file, dev_file):
            app.exit_if_nothing_is_saved(run.step)
            return task.selection_metric, None
        results = runner.evaluate(run, dev_file) if dev_file else None
        if test_file:
            runner.predict(run, test_file, FLAGS.predict_batch_size)
        run.write_model_card(license_name=FLAGS.license)
        return task.selection_metric, results

    def _find_run(self):
        """Returns the run that --output_dir holds, None for a new one; flags that are not given become the run's."""
        names = settings_flags(**STEP_FLAGS)
        names.update((name, name) for name in (*self.setting_flags, *SHARED_SETTINGS))
        if FLAGS["num_train_epochs"].present:
            del names["num_train_steps"]  # how many steps that is follows from the data
        return take_from_run(self.name, names, list(self.place_flags))

    def find(self, part: str) -> tuple[tuple[str, ...], Share | None]:
        """Returns the paths of a part of the data, and which share of it that is, None for all of it.

        Raises:
            InputError: There is none, or two are named.
        """
        fraction = FLAGS.dev_fraction
        if part == TRAIN:
            return self.find_paths(TRAIN), None if fraction is None else Share(fraction, is_dev=False)
        try:
            paths = self.find_paths(part)
        except InputError as error:
            if fraction is not None:
                with contextlib.suppress(InputError):  # without a training file the missing one is what there is to say
                    return self.find_paths(TRAIN), Share(fraction, is_dev=True)
            if part == DEV and FLAGS.do_train:
                raise InputError(
                    f"{error}; or put a share of the training file aside, as by --dev_fraction=0.1"
                ) from error
            raise
        if fraction is not None and part == DEV and (FLAGS.do_train or FLAGS["dev_fraction"].present):
            raise InputError(
                f"--dev_fraction={fraction:g}: there is a file to evaluate on, {' and '.join(paths)}; leave out one of "
                "them"
            )
        return paths, None

    def _choose_max_seq_length(self, task, tokenizer):
        """Returns the length where neither a flag nor the run says it, and prints it."""
        longest = task.config.max_position_embeddings
        if not FLAGS.do_train:
            return longest
        if task.usual_max_seq_length is not None:
            return min(longest, task.usual_max_seq_length)
        paths, share = self.find(TRAIN)
        length = choose_max_seq_length(task, runner.read_file(task, paths, share=share), tokenizer)
        reason = "the longest that this model reads" if length == longest else "by the lengths of the training texts"
        print(f"--max_seq_length={length}, {reason}", flush=True)
        return length

    def _train(self, run, train_file, dev_file):
        places = {name: FLAGS[name].value for name in self.place_flags}
        more_settings = {
            "command": self.name,
            "dev_fraction": FLAGS.dev_fraction,
            **{name: FLAGS[name].value for name in self.setting_flags if name not in run.objective.settings()},
            FOUND_AT: {name: absolute_path(place) for name, place in places.items() if place},
        }
        data = self._results_data(run.objective)
        return runner.train(run, train_file, dev_file, more_settings, data, FLAGS.token_dropout)

    def _results_data(self, task):
        """Returns what tells the data of each file of results, as far as they are there."""
        data = {}
        for result, part in ((EVAL_RESULTS_FILE, DEV), (task.predictions_file, TEST)):
            try:
                data[result] = runner.identity_of(*self.find(part))
            except InputError:
                continue
        return data


def _trials():
    """Returns the (learning rate or None, seed) of each trial that the flags ask for, None for a single run.

    Raises:
        InputError: A rate is no number above 0.
    """
    if FLAGS.num_trials == 1 and not FLAGS.learning_rates:
        return None
    try:
        rates = [float(rate) for rate in FLAGS.learning_rates] or [FLAGS.learning_rate]
    except ValueError:
        rates = [0.0]
    if any(rate is not None and not 0 < rate < 1 for rate in rates):
        raise InputError(f"--learning_rates={','.join(FLAGS.learning_rates)} must be numbers, such as 1e-4,3e-4")
    seeds = range(FLAGS.random_seed, FLAGS.random_seed + FLAGS.num_trials)
    return [(rate, seed) for rate in rates for seed in seeds]


def _with_dropout(config, adds_dropout, train_file, known_run):
    """Returns the config with the dropout of the flag or of the run, or else the default's if the task adds any."""
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    if FLAGS.dropout is not None:
        return config.replace(**dict.fromkeys(names, FLAGS.dropout))
    if known_run is not None:
        # The file of --albert_config_file, where the command is repeated, lacks what the run has added.
        of_run = known_run.settings.get("albert_config", {})
        return config.replace(**{name: max(of_run.get(name, 0.0), getattr(config, name)) for name in names})
    return with_default_dropout(config, train_file.num_rows) if train_file and adds_dropout else config


def _make_settings(task, train_file):
    """Returns the settings of the run; what neither a flag nor the run says follows from model and training file."""
    if FLAGS.learning_rate is None:
        is_pretrained = FLAGS.init_checkpoint is not None
        FLAGS.learning_rate = default_learning_rate(task.config, is_pretrained, task.highest_learning_rate)
    num_train_steps, steps_flag = FLAGS.train_step or 1, "train_step"
    if train_file is not None and (FLAGS.num_train_epochs is not None or FLAGS.train_step is None):
        count, steps_flag = train_file.num_rows, "num_train_epochs"
        epochs = FLAGS.num_train_epochs
        if epochs is None:
            epochs = default_num_train_epochs(count, FLAGS.token_dropout)
        num_train_steps = num_steps(epochs, count, FLAGS.train_batch_size)
    if FLAGS.warmup_step is None:
        FLAGS.warmup_step = int(WARMUP_PROPORTION * num_train_steps)
    if train_file is not None and FLAGS.early_stopping:
        _choose_evaluations(num_train_steps, train_file)
    return training_flags.settings_from_flags(num_train_steps, "warmup_step", steps_flag)


def _choose_evaluations(num_train_steps, train_file):
    """Sets how often a run that may end early is evaluated, where no flag says it, and prints it."""
    if FLAGS.eval_every_steps is not None or FLAGS["save_checkpoints_steps"].present:
        return
    FLAGS.eval_every_steps = evaluation_period(num_train_steps, train_file.num_rows, FLAGS.train_batch_size)
    print(f"--eval_every_steps={FLAGS.eval_every_steps}, for --early_stopping", flush=True)


def _check_batch_sizes(strategy):
    """Checks that batches can be divided among the replicas."""
    for flag in ("eval_batch_size", "predict_batch_size"):
        per_replica_batch_size(strategy, FLAGS[flag].value, flag)
    if FLAGS.do_train:
        per_replica_batch_size(strategy, FLAGS.train_batch_size, "train_batch_size", FLAGS.gradient_accumulation_steps)
