"""The loop itself: many steps per call of a tf.function, with saving, evaluation and reports on the way."""

import collections.abc
import dataclasses
import functools
import math
import os
import signal
import sys
import threading

import tensorflow as tf

from albert_tf.base.checkpoint_files import BEST_FILE, find_best_checkpoint
from albert_tf.base.console import RESULTS
from albert_tf.base.errors import InputError, first_line
from albert_tf.base.files import write_json
from albert_tf.training.batches import distribute_batches, distribute_host_batches, read_batches
from albert_tf.training.devices import Agreement, has_several_workers, is_chief
from albert_tf.training.evaluation import Evaluator, HeldOutHistory, measured, with_scores
from albert_tf.training.progress import Progress, read_metrics
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.settings import Phase, RunSettings
from albert_tf.training.stability import DivergedError, SkippedSteps
from albert_tf.training.train_state import TrainState
from albert_tf.training.train_step import make_train_function

# The signals that ask for a stop, and what people call them: Cloud TPU sends SIGTERM some seconds before it takes a
# machine away, and users press Ctrl-C.
CAUSES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}


class StopRequest:
    """Turns SIGTERM and SIGINT into a variable that the training loop looks at between two steps; a context manager.

    Python runs the handlers of signals only between two of its own instructions, and one call of the loop may train for
    minutes. So the C handler writes the signal's number to a pipe at once, and a thread that reads from the pipe sets
    the variable. A second SIGINT ends the process at once; in a notebook, whose process must stay, it raises
    KeyboardInterrupt as soon as Python comes to it. A signal that is ignored stays so, as SIGINT is by a script's
    background jobs.

    Where several workers must stop at the same step, `interrupts_loop` is False: the bool variable, on the host's CPU,
    stays as it is, and they ask `is_made` between two calls of the loop. `cause` is SIGTERM where another received it.
    """

    def __init__(self, interrupts_loop: bool = True):
        self._interrupts_loop = interrupts_loop
        with tf.device("CPU:0"):
            self.variable = tf.Variable(False, trainable=False, name="stop_requested")
        self._received = threading.Event()
        self._interrupts = self._handled_interrupts = 0
        self.cause = signal.SIGTERM

    @property
    def is_made(self) -> bool:
        """Whether a signal came."""
        return self._received.is_set()

    def __enter__(self):
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._thread = None
        # Python allows signal handlers in the main thread alone; elsewhere, as in a notebook's, nothing is caught.
        if threading.current_thread() is threading.main_thread():
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
            self._old_pipe = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
            heeded = [number for number in CAUSES if signal.getsignal(number) != signal.SIG_IGN]
            self._old_handlers = {number: signal.signal(number, self._handle) for number in heeded}
        return self

    def __exit__(self, *_):
        if self._thread is not None:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._old_pipe)
        os.close(self._write_end)
        if self._thread is not None:
            self._thread.join()  # it has seen the end of the pipe
        os.close(self._read_end)

    def _handle(self, number, _):
        """Runs in the main thread, before `_watch` or much later."""
        self._handled_interrupts += number == signal.SIGINT
        if max(self._handled_interrupts, self._interrupts) > 1 and _is_notebook():
            raise KeyboardInterrupt

    def _watch(self):
        while received := os.read(self._read_end, 1):
            number = received[0]
            if number not in CAUSES:
                continue
            self._interrupts += number == signal.SIGINT
            if self._interrupts > 1 and number == signal.SIGINT and not _is_notebook():
                # Not with print, because the main thread may be in the middle of one.
                os.write(2, b"\nstopped at once by Ctrl-C; repeat the command to go on from what is saved\n")
                os._exit(128 + signal.SIGINT)
            if not self._received.is_set():
                self.cause = signal.Signals(number)
                self._received.set()
            if self._interrupts == 1 and number == signal.SIGINT:
                print("\nCtrl-C: stops after this step and saves; press it again to stop at once", flush=True)
            if self._interrupts_loop:
                self.variable.assign(True)


def _is_notebook():
    return "ipykernel" in sys.modules


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How training ended."""

    is_finished: bool  # whether it came to its end, maybe an early one; if not, it was asked to stop, and has saved
    held_out: dict[str, float] | None = None  # of the last step; None if an earlier process found it, or nobody
    stopped_by: signal.Signals | None = None


def train(
    state: TrainState,
    phases: list[Phase],
    settings: RunSettings,
    checkpointer: Checkpointer,
    evaluator: Evaluator,
    progress: Progress,
    check_owner: collections.abc.Callable[[], None] = lambda: None,
    claim: collections.abc.Callable[[], None] = lambda: None,
) -> TrainResult:
    """Trains from where `state.global_step` stands to the end of the last phase, or until SIGTERM or Ctrl-C comes.

    `check_owner` is called before anything is written, and raises InputError if the folder is another run's by now;
    `claim` before each checkpoint, which makes the folder this run's. An InputError if a checkpoint can't be written,
    too many steps were skipped, or a device is gone, too.
    """
    interrupts_loop = not has_several_workers(state.strategy)
    with StopRequest(interrupts_loop) as stop_request:
        loop = _Loop(state, phases, settings, checkpointer, evaluator, progress, stop_request, check_owner, claim)
        try:
            return loop.run()
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.ResourceExhaustedError) as error:
            checkpointer.wait()
            saved = f"{checkpointer.latest} is intact" if checkpointer.latest else "nothing was saved yet"
            raise InputError(f"{_explain(error)}; {saved}") from error
        finally:
            loop.stop_profile()


def _explain(error):
    """Returns a remedy for an error of TensorFlow's."""
    reason = first_line(error)
    if not isinstance(error, tf.errors.ResourceExhaustedError):
        return f"a TPU or another worker of this run is gone ({reason}); start all of them again with the same command"
    if "No space left" in reason:
        return f"the disk of `output_dir` is full ({reason}); free some space and repeat the command"
    return (
        f"a step takes more memory than there is ({reason}); repeat the command with `remat=attention` or "
        "`remat=block`, or start anew with a lower `train_batch_size` or more `gradient_accumulation_steps`"
    )


# After the first of these steps, in which batches still come slowly, the others show how long the rest will take.
_STEPS_TO_TIME = (5, 10)


class _Loop:
    def __init__(self, state, phases, settings, checkpointer, evaluator, progress, stop_request, check_owner, claim):
        self._state, self._strategy, self._settings = state, state.strategy, settings
        self._checkpointer, self._evaluator, self._progress = checkpointer, evaluator, progress
        self._stop_request, self._check_owner, self._claim = stop_request, check_owner, claim
        self._begins = [0, *(phase.end_step for phase in phases[:-1])]
        self._phases, self._last_step = phases, phases[-1].end_step
        self._skipped = SkippedSteps(state.optimizer, progress.output_dir, settings.max_skipped_steps)
        self._agreement = Agreement(state.strategy)
        self._is_profiling = False
        self._num_hosts = 1  # that read apart
        self._held_out = self._last_loss = None
        self._has_warned_of_overfitting = False

    def run(self):
        self._skipped.stop_if_too_many()  # a checkpoint may hold them
        step = int(self._state.global_step.numpy())
        self._progress.start(step, self._last_step)
        self._checkpointer.best = find_best_checkpoint(self._progress.output_dir)
        self._update_best(step)  # an earlier process may have been stopped before it came to that
        rows = read_metrics(self._progress.output_dir)
        if self._is_evaluation_due(step):
            # An earlier process may have been stopped between saving and evaluating.
            selects = self._state.objective.selection_metric
            is_missing = not any((row["split"], row["step"]) == ("held_out", step) and selects in row for row in rows)
            is_writing = is_chief(self._strategy)
            if self._agreement.any(is_writing and is_missing) and not self._evaluate(step):
                return self._stop()
        for begin, phase in zip(self._begins, self._phases):
            if step >= phase.end_step:
                continue
            if self._is_to_end_early(step):
                break
            batches = self._distribute(phase, step - begin)
            is_through = read_batches(batches, functools.partial(self._train_phase, begin, phase))
            step = int(self._state.global_step.numpy())
            if not is_through:
                return self._stop()
        self._checkpointer.wait()
        self._progress.finish(step)
        self._skipped.stop_if_most(step)
        if self._last_loss is not None and not math.isfinite(self._last_loss):
            raise DivergedError(f"the loss is {self._last_loss} at step {step:,}; lower `learning_rate`")
        self._tell_best(step)
        return TrainResult(True, self._held_out)

    def _stop(self):
        step = int(self._state.global_step.numpy())
        if step:
            self._save()
        self._checkpointer.wait()
        self._progress.finish(step)
        cause = self._stop_request.cause
        saved = f"saved at step {step:,}" if step else "there is nothing to save yet"
        self._progress.log(f"stopped by {CAUSES[cause]}; {saved}; repeat the command to go on", RESULTS)
        return TrainResult(False, stopped_by=cause)

    def _save(self):
        self._claim()
        self._checkpointer.save()

    def _train_phase(self, begin, phase, iterator):
        """Trains to the end of a phase, or to an early one; returns whether it was not asked to stop before."""
        step = int(self._state.global_step.numpy())
        self._progress.begin_phase(phase.examples, phase.tokens, self._state.objective.flops(phase.batch_spec))
        train_steps = make_train_function(
            self._state, self._settings.random_seed, self._stop_request.variable, phase.gradient_accumulation_steps
        )
        is_first = True
        while step < phase.end_step:
            border = self._next_border(step, phase)
            self._profile(step)
            if is_first and border - step > 1:
                self._progress.show("compiling the training step")
                train_steps(iterator, tf.constant(1))
                step += 1
                self._progress.restart_clock(step)
                if border - step > sum(_STEPS_TO_TIME):
                    step = self._tell_pace(iterator, train_steps)
            is_first = False
            train_steps(iterator, tf.constant(border - step))
            step = int(self._state.global_step.numpy())
            self._check_owner()
            # Of several workers all must stop at the same step, so that they agree on it between two loops.
            is_to_stop = self._agreement.any(self._stop_request.is_made)
            new_skips = self._skipped.look()
            if new_skips:
                self._tell_skips(*new_skips, begin, phase)
            if step == border:
                self._report(step)
            if is_to_stop:
                return False
            is_evaluation_due = self._is_evaluation_due(step)
            if is_evaluation_due or step % self._settings.save_checkpoints_steps == 0 or step == self._last_step:
                self._save()
            self._checkpointer.check()
            if new_skips:
                self._checkpointer.wait()
                self._skipped.stop_if_too_many()
            if is_evaluation_due:
                if not self._evaluate(step):
                    return False
                if self._is_to_end_early(step):
                    break
        return True

    def _tell_pace(self, iterator, train_steps):
        """Trains for a few steps, tells how long the rest will take, and returns the step."""
        for count in _STEPS_TO_TIME:
            self._progress.restart_clock(int(self._state.global_step.numpy()))
            train_steps(iterator, tf.constant(count))
        step = int(self._state.global_step.numpy())
        self._progress.tell_pace(step)
        return step

    def _next_border(self, step, phase):
        """Returns the next step at which there is something to do; the same wherever a run was resumed."""
        settings = self._settings
        periods = filter(
            None, (settings.iterations_per_loop, settings.save_checkpoints_steps, settings.eval_every_steps)
        )
        borders = [(step // period + 1) * period for period in periods]
        borders += [border for border in settings.profile_steps or () if border > step]
        return min(*borders, phase.end_step)

    def _distribute(self, phase, start_step):
        def make_host_dataset(host_index, num_hosts):
            self._num_hosts = num_hosts
            dataset = phase.make_dataset(start_step, host_index, num_hosts)
            phase.check_batches(dataset)
            return dataset

        if phase.hosts_read_apart:
            return distribute_host_batches(self._strategy, make_host_dataset)
        return distribute_batches(self._strategy, make_host_dataset(0, 1))

    def _report(self, step):
        averages = measured(self._state.objective, self._state.metric_sums)
        averages["learning_rate"] = float(self._state.optimizer.schedule(tf.constant(step - 1)))
        self._progress.update(step, averages)
        self._last_loss = averages.get("loss", self._last_loss)

    def _tell_skips(self, count, last, begin, phase):
        """Warns of skipped steps and saves the batch of the last one, which follows from its number."""
        self._progress.log(
            f"warning: loss or gradients were not finite in {count} steps so far, the last of them step {last:,}; such "
            f"steps are skipped; see {self._skipped.batch_path(last)}"
        )
        if is_chief(self._strategy):
            hosts = range(self._num_hosts)
            self._skipped.save_batch(
                last, [phase.make_dataset(last - begin, host_index, self._num_hosts) for host_index in hosts]
            )

    def _is_evaluation_due(self, step):
        if self._phase_before(step)[1].make_eval_dataset is None:
            return False
        if step == 0:
            return self._settings.evaluates_first
        every = self._settings.eval_every_steps
        return step == self._last_step or (every is not None and step % every == 0)

    def _phase_before(self, step):
        """Returns the begin of the phase of the last step done, and the phase."""
        before = [(begin, phase) for begin, phase in zip(self._begins, self._phases) if begin < step]
        return before[-1] if before else (0, self._phases[0])

    def _evaluate(self, step):
        """Evaluates on held-out data; returns whether it came to the end."""
        # Several workers must not part ways in the middle.
        may_stop = not has_several_workers(self._strategy)
        phase = self._phase_before(step)[1]
        with self._state.optimizer.averaged_weights():
            results = self._evaluator.evaluate(
                phase.make_eval_dataset(), lambda: may_stop and self._stop_request.is_made
            )
            if results is not None:
                scores = phase.score_held_out(self._evaluator.compute_outputs) if phase.score_held_out else {}
                results = with_scores(self._state.objective, results, scores)
        self._check_owner()
        if results is None:
            return False
        self._held_out = results
        self._progress.record(step, "held_out", results)
        self._progress.tell_held_out(step, results)
        self._update_best(step)
        self._warn_of_overfitting(step)
        self._progress.restart_clock(step)
        return True

    def _update_best(self, step):
        """Names the checkpoint that did best on the held-out data of the present phase, up to a step, and keeps it."""
        history = self._history(step)
        if history.best_step is None or not is_chief(self._strategy):
            return
        best = self._checkpointer.path(history.best_step)
        if best == self._checkpointer.best and history.best_step != step:
            return
        self._checkpointer.wait()
        if not tf.io.gfile.exists(f"{best}.index"):  # somebody has deleted it
            return
        self._checkpointer.best = best
        write_json(
            os.path.join(self._progress.output_dir, BEST_FILE),
            {
                "checkpoint": os.path.basename(best),
                "step": history.best_step,
                "metric": self._state.objective.selection_metric,
                "value": history.best_value,
            },
        )

    def _history(self, step):
        begin, phase = self._phase_before(step)
        rows = read_metrics(self._progress.output_dir)
        return HeldOutHistory(rows, self._state.objective.selection_metric, begin, min(step, phase.end_step))

    def _is_to_end_early(self, step):
        """Returns whether so many evaluations in succession were no better that this phase, the last one, ends."""
        patience = self._settings.early_stopping
        if not patience or step <= self._begins[-1]:
            return False
        is_enough = is_chief(self._strategy) and self._history(step).evaluations_since_progress >= patience
        return self._agreement.any(is_enough)

    def _warn_of_overfitting(self, step):
        overfitting = None if self._has_warned_of_overfitting else self._history(step).overfitting()
        if overfitting is None:
            return
        self._has_warned_of_overfitting = True
        self._progress.log(
            f"warning: {overfitting}: the run learns its text by heart. Later stages use the best checkpoint, so "
            "nothing is lost but time, which early stopping saves. More text helps, or fewer steps, or a smaller model"
        )

    def _tell_best(self, step):
        """Says which checkpoint later stages take, where it is not the last one, and whether training ended early."""
        best = self._history(step).best_step
        if best is None or best == step:
            return
        ended = "" if step == self._last_step else f"ended early at step {step:,}, of {self._last_step:,}; "
        self._progress.log(
            f"{ended}best on held-out data: {self._checkpointer.path(best)}, which later stages use from this folder",
            RESULTS,
        )

    def _profile(self, step):
        first, end = self._settings.profile_steps or (None, None)
        if self._is_profiling and step >= end:
            self.stop_profile()
        elif first is not None and first <= step < end and not self._is_profiling:
            tf.profiler.experimental.start(os.path.join(self._progress.output_dir, "logs", "train"))
            self._is_profiling = True

    def stop_profile(self):
        """Writes the profile that is being taken, if there is one."""
        if self._is_profiling:
            tf.profiler.experimental.stop()
            self._is_profiling = False
