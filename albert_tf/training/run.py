"""A run: a model in a folder, to be trained, evaluated and used."""

import collections.abc
import functools
import math
import os

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE, find_best_checkpoint, newest_checkpoint
from albert_tf.base.console import DETAILS, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import UNTRAINED, UNTRAINED_FILE
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer
from albert_tf.training.batches import BatchLengths, suitable_lengths
from albert_tf.training.devices import Agreement, is_chief, strategy_of
from albert_tf.training.evaluation import Evaluator, with_scores
from albert_tf.training.progress import Progress, Tracker, describe_run
from albert_tf.training.run_folder import guard, restoring
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.run_folder.guard import check_results_data, claim_results, results_path
from albert_tf.training.run_folder.held_folder import check_same_step, hold_folder
from albert_tf.training.run_folder.model_card import share_alike_warning, write_further_card, write_model_card
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary
from albert_tf.training.settings import Phase, RunSettings
from albert_tf.training.stability import DivergedError
from albert_tf.training.train_loop import train
from albert_tf.training.train_state import (
    MAIN_MODEL,
    TrainState,
    begin_as_followers,
    frozen_identities,
    learnt_variables,
    saved_variables,
)


class TrainingRun:
    """A model and the folder that it is trained in.

    The folder is held while it is trained in. A run that is there already is resumed, by the same settings only: the
    fields of `RunSettings` say which of them change the result.

    Args:
        output_dir: The folder of checkpoints, metrics and results.
        objective: Of the training.
        model: As `objective.make_models()` returned it, or `make_model()`. Where it was created decides where the run
            computes: in the scope of a strategy, or on one device.
        settings: How to train and evaluate.
        tokenizer: Of the data, None if unknown.
        on_metrics: Called on the chief with step, split ("train" or "held_out") and values by name whenever metrics are
            recorded; None for progress lines instead.
        trackers: Are called likewise, beside the progress lines; one that fails is left out with a warning.

    Attributes:
        is_chief: Whether this process is the one that writes, of several workers that train together.
        stopped_by: The signal that stopped the last `train` before its end; None if it came to it.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike,
        objective: Objective,
        model: tf.keras.Model | dict[str, tf.keras.Model],
        settings: RunSettings,
        tokenizer: Tokenizer | None = None,
        on_metrics: Tracker | None = None,
        trackers: collections.abc.Sequence[Tracker] = (),
    ):
        self.output_dir, self.objective, self.settings = os.fspath(output_dir), objective, settings
        self.tokenizer = tokenizer
        self._models = model if isinstance(model, dict) else {MAIN_MODEL: model}
        restoring.load_frozen_models(objective, self._models, tokenizer)
        self._frozen = frozen_identities(objective, self._models)
        self._strategy = strategy_of(named_variables(self._models[MAIN_MODEL]))
        self._agreement, self.is_chief = Agreement(self._strategy), is_chief(self._strategy)
        self._evaluator = Evaluator(self._strategy, objective, self._models, settings.max_eval_steps)
        peak = settings.peak_tflops and settings.peak_tflops * 1e12 * self._strategy.num_replicas_in_sync
        self._progress = Progress(
            self.output_dir, objective.title, None, peak, self.is_chief, on_metrics=on_metrics, trackers=trackers
        )
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)  # that the weights have been trained for
        self._untrained = []  # variables that began at random and that no loss depends on
        self.stopped_by = self._held_out = None

    @property
    def step(self) -> int:
        """Steps that the weights have been trained for."""
        return int(self._step.numpy())

    @property
    def batch_lengths(self) -> BatchLengths:
        """How many lengths the sequences of batches may have."""
        return suitable_lengths(self._strategy)

    def train(
        self,
        phases: Phase | list[Phase],
        data_settings: dict | None = None,
        results_data: dict[str, dict[str, str]] | None = None,
        initialize: collections.abc.Callable[[], str] | None = None,
    ) -> bool:
        """Trains, from where the run in the folder stands; returns whether it came to the end.

        Args:
            phases: In order.
            data_settings: JSON values by name that decide, besides the settings, what the run computes: above all those
                that identify its data.
            results_data: The identities of the data that the run is evaluated on and predicts, by file of results.
            initialize: Called before the first step of a run that begins from random weights, on every worker; assigns
                better ones, the same wherever it is called, and returns a line that says so.

        Raises:
            InputError: A setting can't be used, the folder holds another run, or training can't go on.
        """
        phases = [phases] if isinstance(phases, Phase) else phases
        results_data = results_data or {}
        self._check_phases(phases)
        self._check_eval_checkpoint(phases)
        settings = {**self._settings_to_compare(), **(data_settings or {})}
        identity = settings, self.objective.config, self.tokenizer, self.settings.assumed()

        def check_run():
            guard.check_output_dir(self.output_dir, *identity)
            if phases[-1].make_eval_dataset is not None and EVAL_RESULTS_FILE in results_data:
                check_results_data(self.output_dir, EVAL_RESULTS_FILE, results_data[EVAL_RESULTS_FILE])

        self._agreement.run(check_run)
        with hold_folder(self.output_dir, self._agreement, self.is_chief) as check_owner:
            return self._train(phases, identity, results_data, check_owner, initialize)

    def _train(self, phases, identity, results_data, check_owner, initialize):
        with self._strategy.scope():
            variables = learnt_variables(self.objective, self._models)
            compute_dtype = self._models[MAIN_MODEL].compute_dtype
            optimizer = self.settings.make_optimizer(variables, compute_dtype, self.objective.followers(self._models))
        state = TrainState.create(self._strategy, self.objective, self._models, optimizer)
        checkpointer = Checkpointer(
            self.output_dir, state.named_variables(), self.settings.keep_checkpoint_max, self.is_chief
        )
        checkpointer.remove_leftovers()
        self._agreement.run(lambda: self._begin(checkpointer, state, initialize))
        check_same_step(self.output_dir, self._agreement, int(state.global_step.numpy()))
        # Until it has saved something, a run that fails leaves its folder to the corrected command.
        claim = functools.cache(lambda: self._claim(identity, results_data))
        if checkpointer.latest:
            self._agreement.run(claim)
        self.log(describe_run(state, phases))
        result = train(state, phases, self.settings, checkpointer, self._evaluator, self._progress, check_owner, claim)
        self._step.assign(state.global_step)
        self._held_out, self.stopped_by = result.held_out, result.stopped_by
        if result.is_finished:
            # The first worker decides: another may look at the folder before its last results are there.
            is_other = self._agreement.of_chief(int(self.is_chief and self._checkpoint_to_use() != checkpointer.latest))
            if is_other or self.settings.ema_decay:
                # What is evaluated and used from now on is not what was trained last.
                self._restore_together()
            if is_other:
                self._held_out = None
        return result.is_finished

    def _begin(self, checkpointer, state, initialize):
        """Restores the newest checkpoint of a run that is there, or assigns what a new one begins with."""
        model, init_checkpoint, vocabulary = self._models[MAIN_MODEL], self.settings.init_checkpoint, None
        if init_checkpoint and self.objective.carries_vocabulary and not checkpointer.latest:
            vocabulary = OtherVocabulary.of_checkpoint(init_checkpoint, self.tokenizer, self.objective.config)
        if vocabulary is None:
            restoring.check_tokenizer(self.tokenizer, checkpointer.latest or init_checkpoint)
        if restored := checkpointer.restore_latest():
            self.log(f"restored {restored}")
            return
        untouched = self.objective.untouched(model)
        at_random = list(named_variables(model))
        if init_checkpoint:
            at_random = self._load_init_checkpoint(untouched=untouched, vocabulary=vocabulary)
        else:
            begun = self.objective.begin(model) if initialize is None else None
            if begun is None:
                self.log("training from random weights")
            else:
                line, at_random = begun
                self.log(line)
            if initialize is not None:
                self.log(initialize())
            begin_as_followers(self.objective, self._models)
        restoring.check_is_told(model)
        self._untrained = [name for name in at_random if name.startswith(untouched)]
        state.optimizer.start_averages()

    def _settings_to_compare(self):
        compute_dtype, kept = self._models[MAIN_MODEL].compute_dtype, self.settings.kept()
        kept.pop("use_float16", None)
        return {
            **kept,
            "init_checkpoint": guard.checkpoint_identity(self.settings.init_checkpoint),
            **self.objective.identity(),
            **({"frozen_models": self._frozen} if self._frozen else {}),
            "use_bfloat16": compute_dtype == "bfloat16",
            **({"use_float16": True} if compute_dtype == "float16" else {}),
        }

    def _claim(self, identity, results_data):
        if self.is_chief:
            guard.claim_output_dir(self.output_dir, *identity)
            claim_results(self.output_dir, results_data)
            if self._untrained:
                write_json(os.path.join(self.output_dir, UNTRAINED_FILE), {UNTRAINED: self._untrained})

    def restore(self) -> None:
        """Restores the checkpoint that `eval_checkpoint` names, or else loads `init_checkpoint`, to use the model.

        InputError if there is neither, it is of another model or tokenizer, or `init_checkpoint` lacks some variables.
        """
        settings = guard.read_settings(self.output_dir)
        if settings is not None:
            guard.check_model(self.output_dir, settings, self.objective.config, self.tokenizer)
            if self._frozen and "frozen_models" in settings:
                then = {"frozen_models": settings["frozen_models"]}
                guard.check_same_settings(self.output_dir, then, {"frozen_models": self._frozen})
        restoring.check_tokenizer(self.tokenizer, newest_checkpoint(self.output_dir) or self.settings.init_checkpoint)
        self._restore_together()

    def evaluate(
        self,
        dataset: tf.data.Dataset,
        data: dict[str, str] | None = None,
        scores: dict[str, float] | None = None,
        **more_results: float,
    ) -> dict[str, float]:
        """Writes the held-out metrics, with "global_step", into eval_results.json, or beside it; returns them.

        It is no row of metrics.jsonl: how a run goes on, and which checkpoint is its best, follows from the evaluations
        that it makes by itself while it trains, whoever has looked at it meanwhile.

        Args:
            dataset: Global batches; not read again if training has just ended with their evaluation.
            data: "name" and "sha256" of the data; others than the run's own have a file of their own. None if they are
                always the same.
            scores: Measures of them that no sum over batches gives.
            **more_results: Numbers to write there, too.

        Raises:
            DivergedError: A metric is not finite.
        """
        results = self._held_out
        if results is None:
            results = with_scores(self.objective, self._evaluator.evaluate(dataset), scores or {})
            self._progress.tell_held_out(self.step, results)
        undefined = [name for name, value in results.items() if not math.isfinite(value)]
        if undefined:
            raise DivergedError(
                f"{undefined[0]} of the held-out data is {results[undefined[0]]} at step {self.step:,}, so the weights "
                "are of no use; nothing is written: lower `learning_rate`, or use an earlier checkpoint"
            )
        values = {"global_step": self.step, **more_results, **results}
        self.write_results(EVAL_RESULTS_FILE, data, "the results", lambda path: write_json(path, values))
        return values

    def compute_outputs(
        self, function: collections.abc.Callable[..., dict[str, tf.Tensor]], dataset: tf.data.Dataset
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a function of a batch and the run's models for every example, as `Evaluator` does."""
        return self._evaluator.compute_outputs(function, dataset)

    def owns_results_of(self, data: dict[str, str]) -> bool:
        """Whether evaluations of these data, "name" and "sha256", are the run's own, and not of others beside them."""
        return results_path(self.output_dir, EVAL_RESULTS_FILE, data)[1]

    def write_results(
        self,
        file_name: str,
        data: dict[str, str] | None,
        what: str,
        write: collections.abc.Callable[[str], None],
        beside: str | None = None,
    ) -> None:
        """Writes a file of results, beside that of the run's own data if they are of others, and tells which.

        Args:
            file_name: Its name if they are of the run's own.
            data: "name" and "sha256" of the data; None if they are always the same.
            what: The results in words.
            write: Given the path, writes the file.
            beside: The file of results that it says more of; None if it is results itself.
        """
        if not self.is_chief:
            return
        path, is_own = results_path(self.output_dir, file_name, data, beside)
        if is_own and data is not None:
            claim_results(self.output_dir, {file_name: data})
        write(path)
        other = "" if is_own else f"; {file_name} is of other data than {data['name']}"
        self.log(f"wrote {what} to {path}{other}")

    def write_model_card(self, manifests: list[dict] | None = None, license_name: str | None = None) -> None:
        """Writes README.md, unless somebody has written or changed it."""
        if self.is_chief:
            warning = share_alike_warning(guard.read_settings(self.output_dir) or {}, license_name)
            if warning:
                self.log(warning)
            model = self._models[MAIN_MODEL]
            path = write_model_card(self.output_dir, model, self.tokenizer, manifests, license_name)
            if path:
                self.log(f"wrote the model card to {path}")
            for name in restoring.further_models(self.objective, self._models):
                if tf.io.gfile.isdir(os.path.join(self.output_dir, name)):
                    write_further_card(self.output_dir, name)

    def write_further_models(self) -> None:
        """Writes what was learnt beside the model, such as ELECTRA's generator, into folders of its own."""
        if self.is_chief:
            further = self.output_dir, self.objective, self._models, self.tokenizer, self.step
            for folder in restoring.write_further_models(*further):
                self.log(f"wrote the {os.path.basename(folder)} to {folder}")

    def log(self, text: str, level: int = DETAILS) -> None:
        """Tells something, in one of several processes."""
        if self.is_chief:
            tell(text, level)

    def _check_phases(self, phases):
        """Checks that the phases are those of the settings, and that batches can be divided among the replicas."""
        if phases[-1].end_step != self.settings.num_train_steps:
            raise InputError(
                f"the last phase ends at step {phases[-1].end_step}, but the learning rate is planned for "
                f"`num_train_steps={self.settings.num_train_steps}`; make them equal"
            )
        for phase in phases:
            phase.check_batch_size(self._strategy)

    def _check_eval_checkpoint(self, phases):
        """Refuses, before training rather than after it, what there will not be."""
        chosen = self.settings.eval_checkpoint
        if phases[-1].make_eval_dataset is None:
            if self.settings.early_stopping:
                raise InputError("`early_stopping` needs held-out data and `do_eval` to tell when to stop")
            if chosen == "best":
                raise InputError("`eval_checkpoint=best` needs held-out data and `do_eval` to tell which one is best")
        if chosen not in (None, "latest", "best") and not tf.io.gfile.exists(f"{chosen}.index"):
            raise InputError(f"`eval_checkpoint`: no checkpoint at {chosen}")

    def _restore_together(self):
        self._agreement.run(lambda: None)  # until the first worker has written what the others are to find
        self._agreement.run(self._restore_weights)
        check_same_step(self.output_dir, self._agreement, self.step)

    def _restore_weights(self):
        """Restores the checkpoint that `eval_checkpoint` names, or else loads `init_checkpoint`, to use the model."""
        if restored := self._restore_chosen():
            self.log(f"restored {restored}")
        elif self.settings.init_checkpoint:
            self._load_init_checkpoint(needs_all=True)
        else:
            raise InputError(f"`output_dir={self.output_dir}` holds no checkpoint, and there is no `init_checkpoint`")

    def _checkpoint_to_use(self):
        """Returns the path of what is evaluated and used in the end, None if there is no checkpoint yet."""
        chosen = self.settings.eval_checkpoint
        if chosen == "best":
            return restoring.require_best_checkpoint(self.output_dir)
        if chosen is None:
            chosen = find_best_checkpoint(self.output_dir) or "latest"
        return newest_checkpoint(self.output_dir) if chosen == "latest" else chosen

    def _restore_chosen(self):
        """Restores the checkpoint that `eval_checkpoint` names; returns its path, None if there is none."""
        variables = {**saved_variables(self.objective, self._models), "global_step": self._step}
        checkpointer = Checkpointer(self.output_dir, variables, is_chief=self.is_chief)
        path = self._checkpoint_to_use()
        if path is None or path == checkpointer.latest:
            return checkpointer.restore_latest()
        if not tf.io.gfile.exists(f"{path}.index"):
            raise InputError(f"`eval_checkpoint`: no checkpoint at {path}")
        checkpointer.restore(path)
        return path

    def _load_init_checkpoint(self, needs_all=False, untouched=(), vocabulary=None):
        """Loads it, tells what there is of it, and returns the names of variables that it lacks."""
        start, folder = self.settings.init_checkpoint, self.output_dir if needs_all else None
        model = self._models[MAIN_MODEL]
        line, missing = restoring.load_init_checkpoint(
            start, named_variables(model), folder, untouched, vocabulary, self.objective
        )
        self.log(line)
        if alignment := restoring.describe_alignment(start, model, missing, folder):
            self.log(alignment)
        if further := restoring.further_variables(self.objective, self._models):
            begin_as_followers(self.objective, self._models)
            followed = set(self.objective.followers(self._models).values())
            self.log(restoring.load_further_models(start, further, followed, vocabulary, folder))
        return missing
