"""Ours, as the commands run it."""

import dataclasses
import functools
import json
import os
import tempfile

import tensorflow as tf

from albert_tf.base.startup import computes_in_bfloat16
from albert_tf.cli.command import exit_stopped
from albert_tf.finetuning import runner
from albert_tf.finetuning.datasets import DATASETS, find_files
from albert_tf.finetuning.defaults import default_token_dropout
from albert_tf.runs.cooccurrence import begin_with_counts
from albert_tf.runs.phases import make_phase, objective_of
from albert_tf.training import RunSettings, TrainingRun
from albert_tf.training.devices import make_strategy
from benchmarks.contestants.setting import CALIBRATION_STEPS, WARM_STEPS, WARMUP_PROPORTION


class AlbertTf:
    """Ours, as the commands run it.

    Args:
        setting: What all have in common.
        optimizer: The value of --optimizer.
        learning_rate: Its peak.
        follows_recipe: Whether word embeddings begin with counts, and products are in bfloat16 where the processor has
            it, as in configs/recipes/ko_small.cfg.
    """

    def __init__(self, setting, optimizer, learning_rate, follows_recipe=False):
        self._setting, self._optimizer, self._learning_rate = setting, optimizer, learning_rate
        self._follows_recipe = follows_recipe

    def steps_per_second(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self._train(CALIBRATION_STEPS + WARM_STEPS, folder)
            with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
        del run
        return rows[-1]["examples_per_second"] / self._setting.batch_size

    def train(self, num_steps):
        self._folder = os.path.join(self._setting.flags.output_dir, f"albert_tf_{self._optimizer}")
        self._run = self._train(num_steps, self._folder)

    def _train(self, num_steps, folder):
        setting = self._setting
        settings = RunSettings(
            num_train_steps=num_steps,
            train_batch_size=setting.batch_size,
            learning_rate=self._learning_rate,
            num_warmup_steps=int(WARMUP_PROPORTION * num_steps),
            optimizer=self._optimizer,
            bias_correction=True,
            eval_batch_size=setting.batch_size,
            save_checkpoints_steps=num_steps,
            iterations_per_loop=WARM_STEPS if num_steps == CALIBRATION_STEPS + WARM_STEPS else 100,
        )
        objective = objective_of(setting.config, setting.shards)
        tf.keras.utils.set_random_seed(setting.flags.random_seed)
        in_bfloat16 = self._follows_recipe and computes_in_bfloat16()
        with make_strategy().scope():
            model = objective.make_model(dtype="mixed_bfloat16" if in_bfloat16 else "float32")
        run = TrainingRun(folder, objective, model, settings, setting.shards.tokenizer)
        is_finished = run.train(
            make_phase(objective, setting.shards, settings, evaluates=False),
            initialize=functools.partial(begin_with_counts, model, setting.shards) if self._follows_recipe else None,
        )
        if not is_finished:
            exit_stopped(run.stopped_by)
        return run

    def masked_lm_loss(self):
        return self._run.evaluate(self._setting.held_out_batches())["masked_lm_loss"]

    def accuracy(self):
        setting = self._setting
        settings = dataclasses.replace(setting.finetuning, init_checkpoint=self._folder)
        tf.keras.utils.set_random_seed(setting.flags.random_seed)
        with make_strategy().scope():
            model = setting.task.make_model()
        path = find_files(setting.flags.data_dir, DATASETS["nsmc"].dev)
        files = [
            runner.EncodedFile(path, examples, features, setting.length)
            for examples, features in ((setting.train, setting.train_features), (setting.dev, setting.dev_features))
        ]
        with tempfile.TemporaryDirectory() as folder:
            run = TrainingRun(folder, setting.task, model, settings, setting.shards.tokenizer)
            token_dropout = default_token_dropout(setting.config, setting.task.may_hide_pieces)
            if not runner.train(run, files[0], token_dropout=token_dropout):
                exit_stopped(run.stopped_by)
            return runner.evaluate(run, files[1])["accuracy"]
