"""What the scripts that train do with what their flags say: restore, train, evaluate, and say so."""

import collections.abc
import os

import tensorflow as tf
from absl import flags

from albert_tf.checkpoint_files import find_beside_checkpoint, find_checkpoints
from albert_tf.cli import training_flags
from albert_tf.cli.run_flags import KnownRun
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import load_weights
from albert_tf.optimization import LearningRateSchedule
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE
from albert_tf.training.devices.distribution import Agreement, is_chief
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.progress import Progress
from albert_tf.training.run_folder.checkpoints import BEST_FILE, Checkpointer, model_state
from albert_tf.training.run_folder.guard import check_model, check_output_dir, claim_output_dir
from albert_tf.training.run_folder.held_folder import check_same_step, hold_folder, naming_output_dir
from albert_tf.training.run_folder.results import EVAL_RESULTS_FILE, check_results_data, claim_results, results_path
from albert_tf.training.summary import describe_run
from albert_tf.training.train_loop import Phase, train
from albert_tf.training.train_step import Task, TrainState

FLAGS = flags.FLAGS


class TrainingCommand:
    """A model in the run folder --output_dir, to be trained, evaluated or used.

    Args:
        strategy: Where to run.
        task: What is learnt.
        model: Created in the strategy's scope.
        config: The model's.
        tokenizer: What the data is encoded with, None if unknown.
        title: What the plot of the loss is called.
        run: The run whose model it is, None for a new one.
        max_eval_steps: Most batches of an evaluation, None for all.

    Attributes:
        is_chief: Whether this process is the one that writes.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        task: Task,
        model: tf.keras.Model,
        config: AlbertConfig,
        tokenizer: KoreanWordPieceTokenizer | None,
        title: str,
        run: KnownRun | None = None,
        max_eval_steps: int | None = None,
    ):
        self.is_chief = is_chief(strategy)
        self._strategy, self._task, self._model = strategy, task, model
        self._config, self._tokenizer, self._run = config, tokenizer, run
        self._variables, self._agreement = named_variables(model), Agreement(strategy)
        self._evaluator = Evaluator(strategy, task, model, max_eval_steps)
        peak = FLAGS.peak_tflops and FLAGS.peak_tflops * 1e12 * strategy.num_replicas_in_sync
        self._progress = Progress(FLAGS.output_dir, title, peak_operations_per_second=peak, is_chief=self.is_chief)
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._held_out = None

    def train(
        self,
        schedule: LearningRateSchedule,
        phases: list[Phase],
        num_examples: list[int | None],
        settings: dict,
        data: dict[str, dict[str, str]],
        evaluates_first: bool,
    ) -> bool:
        """Trains, from where the run in the folder stands; returns whether it came to the end.

        Args:
            schedule: The learning rate.
            phases: What to train on.
            num_examples: How many examples the data of each phase holds, None where that is unknown.
            settings: What decides what the run computes besides `training_settings`, for `claim_output_dir`.
            data: The data that the run is evaluated on and predicts, as far as they are there; see `claim_results`.
            evaluates_first: Whether to evaluate before the first step too.

        Raises:
            InputError: A flag can't be used, the folder holds another run, or training can't go on.
        """
        options = training_flags.train_options(evaluates_first)
        self._check_eval_checkpoint(phases)
        settings = {**training_flags.training_settings(), **settings}

        def check_run():
            check_output_dir(FLAGS.output_dir, settings, self._config, self._tokenizer)
            if phases[-1].make_eval_dataset is not None:
                check_results_data(FLAGS.output_dir, EVAL_RESULTS_FILE, data[EVAL_RESULTS_FILE])

        self._agreement.run(check_run)
        with hold_folder(FLAGS.output_dir, self._agreement, self.is_chief) as check_lease:
            return self._train(schedule, phases, num_examples, settings, data, options, check_lease)

    def _train(self, schedule, phases, num_examples, settings, data, options, check_lease):
        with self._strategy.scope():
            optimizer = training_flags.optimizer_from_flags(self._variables, schedule)
        state = TrainState.create(self._strategy, self._task, self._model, optimizer)
        checkpointer = Checkpointer(FLAGS.output_dir, state.named_variables(), FLAGS.keep_checkpoint_max, self.is_chief)
        checkpointer.remove_leftovers()
        self._agreement.run(lambda: self._begin(checkpointer, state))
        check_same_step(FLAGS.output_dir, self._agreement, int(state.global_step.numpy()))
        self._agreement.run(lambda: self._claim(settings, data))
        self.tell(describe_run(state, phases, num_examples))
        result = train(state, phases, options, checkpointer, self._evaluator, self._progress, check_lease)
        self._step.assign(state.global_step)
        self._held_out = result.held_out
        if result.is_finished and (FLAGS.eval_checkpoint != "latest" or FLAGS.ema_decay):
            # What is evaluated and used from now on is not what was trained last.
            self._restore_together()
            if FLAGS.eval_checkpoint != "latest":
                self._held_out = None
        return result.is_finished

    def _begin(self, checkpointer, state):
        self._check_tokenizer(checkpointer.latest or FLAGS.init_checkpoint)
        restored = checkpointer.restore_latest()
        if restored:
            self.tell(f"restored {restored}")
            return
        if FLAGS.init_checkpoint:
            self._load_init_checkpoint()
        else:
            self.tell("training from random weights")
        state.optimizer.start_averages()

    def _claim(self, settings, data):
        if self.is_chief:
            with naming_output_dir(FLAGS.output_dir):
                claim_output_dir(FLAGS.output_dir, settings, self._config, self._tokenizer)
                claim_results(FLAGS.output_dir, data)

    def restore(self) -> None:
        """Restores what --eval_checkpoint names, or else loads --init_checkpoint, to use it without training.

        Raises:
            InputError: There is neither, it goes with another model or tokenizer, or --init_checkpoint lacks some of
                the model's variables.
        """
        if self._run is not None:
            check_model(self._run.folder, self._run.settings, self._config, self._tokenizer, self._run.flag)
        self._check_tokenizer(self._checkpointer().latest or FLAGS.init_checkpoint)
        self._restore_together()

    def evaluate(self, dataset: tf.data.Dataset, data: dict[str, str], **more_results: float) -> None:
        """Writes the held-out metrics, with "global_step", into eval_results.json; those of other data beside it.

        Args:
            dataset: Global batches; not read again if training has just ended with their evaluation.
            data: "name" and "sha256" of what is in them.
            **more_results: What else to write there.
        """
        step = int(self._step.numpy())
        results = self._held_out
        if results is None:
            results = self._evaluator.evaluate(dataset)
            _, is_own = results_path(FLAGS.output_dir, EVAL_RESULTS_FILE, data)
            if is_own:  # the best checkpoint is chosen from what is recorded
                with naming_output_dir(FLAGS.output_dir):
                    self._progress.record(step, "held_out", results)
            self._progress.tell(self._progress.describe_held_out(step, results))
        values = {"global_step": step, **more_results, **results}
        self.write_results(EVAL_RESULTS_FILE, data, "the results", lambda path: write_json(path, values))

    def write_results(
        self, file_name: str, data: dict[str, str], what: str, write: collections.abc.Callable[[str], None]
    ) -> None:
        """Writes a file of results, beside that of the run's own data if they are of others, and tells which.

        Args:
            file_name: Its name if they are of the run's own.
            data: "name" and "sha256" of the data.
            what: What is written.
            write: Given the path, writes the file.
        """
        if not self.is_chief:
            return
        path, is_own = results_path(FLAGS.output_dir, file_name, data)
        with naming_output_dir(FLAGS.output_dir):
            if is_own:
                claim_results(FLAGS.output_dir, {file_name: data})
            write(path)
        other = "" if is_own else f"; {file_name} is of other data than {data['name']}"
        self.tell(f"wrote {what} to {path}{other}")

    def tell(self, text: str) -> None:
        """Prints something, in one of several processes."""
        if self.is_chief:
            print(text, flush=True)

    def _checkpointer(self):
        return Checkpointer(FLAGS.output_dir, model_state(self._variables, self._step), is_chief=self.is_chief)

    @staticmethod
    def _check_eval_checkpoint(phases):
        """Refuses, before training rather than after it, what there will not be."""
        chosen = FLAGS.eval_checkpoint
        if chosen == "best" and phases[-1].make_eval_dataset is None:
            raise InputError("--eval_checkpoint=best needs held-out data and --do_eval to tell which one is best")
        if chosen not in ("latest", "best") and not tf.io.gfile.exists(f"{chosen}.index"):
            raise InputError(f"--eval_checkpoint: no checkpoint at {chosen}")

    def _restore_together(self):
        self._agreement.run(lambda: None)  # until the first worker has written what the others are to find
        self._agreement.run(self._restore_or_load)
        check_same_step(FLAGS.output_dir, self._agreement, int(self._step.numpy()))

    def _restore_or_load(self):
        restored = self._restore_chosen()
        if restored:
            self.tell(f"restored {restored}")
        elif FLAGS.init_checkpoint:
            self._load_init_checkpoint(needs_all=True)
        else:
            raise InputError(f"--output_dir={FLAGS.output_dir} holds no checkpoint, and there is no --init_checkpoint")

    def _restore_chosen(self):
        """Restores the checkpoint that --eval_checkpoint names; returns its path, None if there is none."""
        if FLAGS.eval_checkpoint == "latest":
            return self._checkpointer().restore_latest()
        path = FLAGS.eval_checkpoint
        if path == "best":
            best_file = os.path.join(FLAGS.output_dir, BEST_FILE)
            if not tf.io.gfile.exists(best_file):
                raise InputError(f"--eval_checkpoint=best: there is no {best_file}; a run with --do_eval writes it")
            name = read_json(best_file, "the best checkpoint").get("checkpoint")
            path = next((path for path in find_checkpoints(FLAGS.output_dir) if os.path.basename(path) == name), None)
            if path is None:
                raise InputError(f"--eval_checkpoint=best: {best_file} names {name}, which is not in its folder")
        if not tf.io.gfile.exists(f"{path}.index"):
            raise InputError(f"--eval_checkpoint: no checkpoint at {path}")
        self._checkpointer().restore(path)
        return path

    def _load_init_checkpoint(self, needs_all=False):
        loaded, missing, unused = load_weights(FLAGS.init_checkpoint, self._variables)
        if needs_all and missing:
            raise InputError(
                f"--output_dir={FLAGS.output_dir} holds no run, and --init_checkpoint={FLAGS.init_checkpoint} lacks "
                f"{missing[0]}, which can't be used untrained; check --output_dir, or pass --do_train"
            )
        self.tell(
            f"--init_checkpoint: loaded {len(loaded)} variables; not in it, and so random: "
            f"{', '.join(missing) or 'none'}; in it, but not in this model: {', '.join(unused) or 'none'}"
        )

    def _check_tokenizer(self, checkpoint):
        path = find_beside_checkpoint(checkpoint, TOKENIZER_FILE)
        if path and self._tokenizer is not None and not self._tokenizer.is_saved_as(path):
            raise InputError(
                f"the checkpoint beside {path} was trained with that tokenizer, which is not the one of "
                f"{self._tokenizer.vocabulary.source}; use the vocab.txt and tokenizer.json beside the checkpoint"
            )
