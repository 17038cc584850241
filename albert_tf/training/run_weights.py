"""The first weights of a run, and the checkpoint that its weights are restored from."""

import collections.abc

import tensorflow as tf

from albert_tf.checkpoint_files import find_best_checkpoint, newest_checkpoint
from albert_tf.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.run_folder.further_models import further_variables, load_further_models
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary
from albert_tf.training.run_folder.restoring import (
    check_is_told,
    check_tokenizer,
    describe_alignment,
    load_init_checkpoint,
    require_best_checkpoint,
)
from albert_tf.training.settings import RunSettings
from albert_tf.training.train_state import MAIN_MODEL, TrainState, begin_as_followers, saved_variables


class RunWeights:
    """The weights of a run's models; `log` is given lines that say where they come from.

    `step` is an int64 variable, the steps that they have been trained for; `untrained` are the names of variables that
    began at random and that no loss depends on.
    """

    def __init__(
        self,
        output_dir: str,
        objective: Objective,
        models: dict[str, tf.keras.Model],
        settings: RunSettings,
        tokenizer: Tokenizer | None,
        is_chief: bool,
        log: collections.abc.Callable[[str], None],
    ):
        self._output_dir, self._objective, self._models, self._settings = output_dir, objective, models, settings
        self._tokenizer, self._is_chief, self._log = tokenizer, is_chief, log
        self.step, self.untrained = tf.Variable(0, dtype=tf.int64, trainable=False), []

    def begin(
        self, checkpointer: Checkpointer, state: TrainState, initialize: collections.abc.Callable[[], str] | None
    ) -> None:
        """Restores the newest checkpoint of a run that is there, or assigns what a new one begins with."""
        model, init_checkpoint, vocabulary = self._models[MAIN_MODEL], self._settings.init_checkpoint, None
        if init_checkpoint and self._objective.carries_vocabulary and not checkpointer.latest:
            vocabulary = OtherVocabulary.of_checkpoint(init_checkpoint, self._tokenizer, self._objective.config)
        if vocabulary is None:
            check_tokenizer(self._tokenizer, checkpointer.latest or init_checkpoint)
        if restored := checkpointer.restore_latest():
            self._log(f"restored {restored}")
            return
        untouched = self._objective.untouched(model)
        at_random = list(named_variables(model))
        if init_checkpoint:
            at_random = self._load_init_checkpoint(untouched=untouched, vocabulary=vocabulary)
        else:
            begun = self._objective.begin(model) if initialize is None else None
            if begun is None:
                self._log("training from random weights")
            else:
                line, at_random = begun
                self._log(line)
            if initialize is not None:
                self._log(initialize())
            begin_as_followers(self._objective, self._models)
        check_is_told(model)
        self.untrained = [name for name in at_random if name.startswith(untouched)]
        state.optimizer.start_averages()

    def restore(self) -> None:
        """Restores the checkpoint that `eval_checkpoint` names, or else loads `init_checkpoint`, to use the model."""
        if restored := self._restore_chosen():
            self._log(f"restored {restored}")
        elif self._settings.init_checkpoint:
            self._load_init_checkpoint(needs_all=True)
        else:
            raise InputError(f"`output_dir={self._output_dir}` holds no checkpoint, and there is no `init_checkpoint`")

    def checkpoint_to_use(self) -> str | None:
        """Returns the path of what is evaluated and used in the end, None if there is no checkpoint yet."""
        chosen = self._settings.eval_checkpoint
        if chosen == "best":
            return require_best_checkpoint(self._output_dir)
        if chosen is None:
            chosen = find_best_checkpoint(self._output_dir) or "latest"
        return newest_checkpoint(self._output_dir) if chosen == "latest" else chosen

    def _restore_chosen(self):
        """Restores the checkpoint that `eval_checkpoint` names; returns its path, None if there is none."""
        variables = {**saved_variables(self._objective, self._models), "global_step": self.step}
        checkpointer = Checkpointer(self._output_dir, variables, is_chief=self._is_chief)
        path = self.checkpoint_to_use()
        if path is None or path == checkpointer.latest:
            return checkpointer.restore_latest()
        if not tf.io.gfile.exists(f"{path}.index"):
            raise InputError(f"`eval_checkpoint`: no checkpoint at {path}")
        checkpointer.restore(path)
        return path

    def _load_init_checkpoint(self, needs_all=False, untouched=(), vocabulary=None):
        """Loads it, tells what there is of it, and returns the names of variables that it lacks."""
        start, folder = self._settings.init_checkpoint, self._output_dir if needs_all else None
        model = self._models[MAIN_MODEL]
        line, missing = load_init_checkpoint(
            start, named_variables(model), folder, untouched, vocabulary, self._objective
        )
        self._log(line)
        if alignment := describe_alignment(start, model, missing, folder):
            self._log(alignment)
        if further := further_variables(self._objective, self._models):
            begin_as_followers(self._objective, self._models)
            followed = set(self._objective.followers(self._models).values())
            self._log(load_further_models(start, further, followed, vocabulary, folder))
        return missing
