"""The contestants of `benchmarks.same_hour`, which runs this module in a process for each."""

import json
import os
import sys
import tempfile
import time
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")  # for KerasHub as well

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.files import write_json
from albert_tf.finetuning import Classification, runner
from albert_tf.finetuning.batches import eval_dataset as classifier_eval_dataset
from albert_tf.finetuning.batches import train_dataset as classifier_train_dataset
from albert_tf.finetuning.datasets import DATASETS, find_file
from albert_tf.finetuning.defaults import choose_max_seq_length, finetuning_settings
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.pretraining.phases import make_objective, make_phase
from albert_tf.pretraining_data.input_pipeline import eval_dataset, parse
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP
from albert_tf.training import RunSettings, TrainingRun
from albert_tf.training.devices.strategy import make_strategy
from benchmarks.peers import hugging_face_config, keras_hub_backbone

CALIBRATION_STEPS, WARM_STEPS = 40, 5
WARMUP_PROPORTION, WEIGHT_DECAY = 0.1, 0.01


class Setting:
    """What all contestants have in common.

    Args:
        flags: The values of the flags of `benchmarks.same_hour`, by name.
    """

    def __init__(self, flags):
        self.flags = types.SimpleNamespace(**flags)
        self.config = AlbertConfig.from_json_file(self.flags.albert_config_file)
        self.shards = find_shards(self.flags.input_file, self.config)
        self.batch_size = self.flags.train_batch_size
        self.examples_per_epoch = sum(self.shards.examples_per_shard)
        if self.flags.data_dir:
            self._load_labelled()

    def _load_labelled(self):
        files = DATASETS["nsmc"]
        train, self.dev = (
            read_examples(find_file(self.flags.data_dir, names), files, True) for names in (files.train, files.dev)
        )
        order = np.random.default_rng(self.flags.random_seed).permutation(len(train))
        self.train = [train[index] for index in order[: self.flags.num_labels]]
        self.task = Classification(self.config, files.labels, files)
        self.length = choose_max_seq_length(self.task, self.train, self.shards.tokenizer)
        self.train_features, self.dev_features = (
            self.task.encode(examples, self.shards.tokenizer, self.length) for examples in (self.train, self.dev)
        )
        self.finetuning = finetuning_settings(self.config, len(self.train), random_seed=self.flags.random_seed)

    def raw_batches(self):
        """Returns endless batches of shuffled examples without masks."""
        options = self.shards.train_options
        records = tf.data.TFRecordDataset(self.shards.train_paths).repeat()
        batches = records.shuffle(10_000, seed=self.flags.random_seed).batch(self.batch_size, drop_remainder=True)
        return batches.map(lambda serialized: parse(serialized, options))

    def held_out_batches(self):
        """Returns the held-out batches, whose masks are fixed."""
        return eval_dataset(self.shards.held_out_paths, self.shards.held_out_options, self.batch_size)

    def classifier_batches(self):
        """Returns endless batches of labelled examples."""
        return classifier_train_dataset(
            self.train_features, self.finetuning.train_batch_size, self.finetuning.random_seed
        )

    def id_of(self, piece):
        return self.shards.tokenizer.vocabulary.id_of(piece)

    def rate_at(self, step, num_steps, peak):
        """Returns the learning rate of a step: it rises for a tenth of the steps, and falls to zero."""
        warmup = max(1, int(WARMUP_PROPORTION * num_steps))
        return peak * min((step + 1) / warmup, (num_steps - step) / max(1, num_steps - warmup))


class AlbertTf:
    """Ours, as the commands run it."""

    def __init__(self, setting):
        self._setting = setting

    def steps_per_second(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self._train(CALIBRATION_STEPS + WARM_STEPS, folder)
            with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
        del run
        return rows[-1]["examples_per_second"] / self._setting.batch_size

    def train(self, num_steps):
        self._folder = os.path.join(self._setting.flags.output_dir, "albert_tf")
        self._run = self._train(num_steps, self._folder)

    def _train(self, num_steps, folder):
        setting = self._setting
        settings = RunSettings(
            num_train_steps=num_steps,
            train_batch_size=setting.batch_size,
            learning_rate=setting.flags.learning_rate,
            num_warmup_steps=int(WARMUP_PROPORTION * num_steps),
            optimizer="adamw",
            bias_correction=True,
            eval_batch_size=setting.batch_size,
            save_checkpoints_steps=num_steps,
            iterations_per_loop=WARM_STEPS if num_steps == CALIBRATION_STEPS + WARM_STEPS else 100,
        )
        objective = make_objective(setting.config, setting.shards)
        tf.keras.utils.set_random_seed(setting.flags.random_seed)
        with make_strategy().scope():
            model = objective.make_model()
        run = TrainingRun(folder, objective, model, settings, setting.shards.tokenizer)
        run.train(make_phase(setting.config, setting.shards, settings, evaluates=False))
        return run

    def masked_lm_loss(self):
        return self._run.evaluate(self._setting.held_out_batches())["masked_lm_loss"]

    def accuracy(self):
        setting = self._setting
        settings = finetuning_settings(
            setting.config, len(setting.train), init_checkpoint=self._folder, random_seed=setting.flags.random_seed
        )
        tf.keras.utils.set_random_seed(setting.flags.random_seed)
        with make_strategy().scope():
            model = setting.task.make_model()
        path = find_file(setting.flags.data_dir, DATASETS["nsmc"].dev)
        files = [
            runner.EncodedFile(path, examples, features, setting.length)
            for examples, features in ((setting.train, setting.train_features), (setting.dev, setting.dev_features))
        ]
        with tempfile.TemporaryDirectory() as folder:
            run = TrainingRun(folder, setting.task, model, settings, setting.shards.tokenizer)
            runner.train(run, files[0])
            return runner.evaluate(run, files[1])["accuracy"]


class HuggingFace:
    """Transformers' `AlbertForPreTraining` with its data collator, in a plain PyTorch loop."""

    def __init__(self, setting):
        import torch
        import transformers

        self._setting, self._torch, self._transformers = setting, torch, transformers
        torch.manual_seed(setting.flags.random_seed)
        vocab_file = os.path.join(os.path.dirname(setting.shards.train_paths[0]), "vocab.txt")
        tokenizer = transformers.BertTokenizerFast(vocab_file)
        collator = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)

        def collate(batch):
            rows = zip(*(batch[name].numpy().tolist() for name in ("input_ids", "input_mask", "segment_ids")))
            return collator(
                [{"input_ids": ids, "attention_mask": mask, "token_type_ids": types} for ids, mask, types in rows]
            )

        self._collate = collate

    def _new_model(self):
        self._torch.manual_seed(self._setting.flags.random_seed)
        return self._transformers.AlbertForPreTraining(hugging_face_config(self._setting.config))

    def _optimize(self, model, losses, num_steps, peak):
        """Trains on an iterator of functions that return a loss."""
        optimizer = self._torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=WEIGHT_DECAY)
        for step in range(num_steps):
            for group in optimizer.param_groups:
                group["lr"] = self._setting.rate_at(step, num_steps, peak)
            optimizer.zero_grad(set_to_none=True)
            next(losses).backward()
            self._torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    def _pretrain(self, model, num_steps):
        def losses():
            for batch in self._setting.raw_batches():
                inputs = self._collate(batch)
                labels = inputs.pop("labels")
                logits = model(**inputs).prediction_logits
                yield self._torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

        self._optimize(model.train(), losses(), num_steps, self._setting.flags.learning_rate)

    def steps_per_second(self):
        model = self._new_model()
        self._pretrain(model, WARM_STEPS)
        started_at = time.perf_counter()
        self._pretrain(model, CALIBRATION_STEPS)
        return CALIBRATION_STEPS / (time.perf_counter() - started_at)

    def train(self, num_steps):
        self._model = self._new_model()
        self._pretrain(self._model, num_steps)

    def masked_lm_loss(self):
        torch, total, weight = self._torch, 0.0, 0.0
        self._model.eval()
        for batch in self._setting.held_out_batches():
            batch = {name: torch.as_tensor(values.numpy()) for name, values in batch.items()}
            with torch.no_grad():
                logits = self._model(
                    batch["input_ids"].long(), batch["input_mask"].long(), batch["segment_ids"].long()
                ).prediction_logits
            positions = batch["masked_lm_positions"].long()[..., None].expand(-1, -1, logits.shape[-1])
            losses = torch.nn.functional.cross_entropy(
                logits.gather(1, positions).flatten(0, 1), batch["masked_lm_ids"].long().flatten(), reduction="none"
            )
            weights = batch["masked_lm_weights"].flatten()
            total, weight = total + float((losses * weights).sum()), weight + float(weights.sum())
        return total / weight

    def accuracy(self):
        torch, setting = self._torch, self._setting
        torch.manual_seed(setting.flags.random_seed)
        config = hugging_face_config(setting.config, classifier_dropout_prob=setting.config.classifier_dropout_prob)
        model = self._transformers.AlbertForSequenceClassification(config).train()
        model.albert.load_state_dict(self._model.albert.state_dict())

        def logits_of(batch):
            ids, mask, types = (
                torch.as_tensor(batch[name].numpy()).long() for name in ("input_ids", "input_mask", "segment_ids")
            )
            return model(ids, mask, types).logits

        def losses():
            for batch in setting.classifier_batches():
                labels = torch.as_tensor(batch["label_ids"].numpy()).long()
                yield torch.nn.functional.cross_entropy(logits_of(batch), labels)

        settings = setting.finetuning
        self._optimize(model, losses(), settings.num_train_steps, settings.learning_rate)
        model.eval()
        with torch.no_grad():
            batches = classifier_eval_dataset(setting.dev_features, 64)
            found = np.concatenate([logits_of(batch).argmax(-1).numpy() for batch in batches])
        return float(np.mean(found[: len(setting.dev)] == setting.dev_features["label_ids"]))


class KerasHub:
    """KerasHub's `AlbertMaskedLM` with its mask generator and `fit`."""

    def __init__(self, setting, jit_compile=False):
        import keras
        import keras_hub

        self._setting, self._keras, self._hub, self._jit_compile = setting, keras, keras_hub, jit_compile

    def _new_model(self, peak, num_steps):
        self._keras.utils.set_random_seed(self._setting.flags.random_seed)
        model = self._hub.models.AlbertMaskedLM(keras_hub_backbone(self._setting.config, "float32"), preprocessor=None)
        self._compile(model, peak, num_steps)
        return model

    def _compile(self, model, peak, num_steps):
        keras = self._keras
        warmup = max(1, int(WARMUP_PROPORTION * num_steps))

        class Schedule(keras.optimizers.schedules.LearningRateSchedule):
            def __call__(self, step):
                step = keras.ops.cast(step, "float32")
                rising, falling = (step + 1) / warmup, (num_steps - step) / max(1, num_steps - warmup)
                return peak * keras.ops.maximum(keras.ops.minimum(rising, falling), 0.0)

        model.compile(
            optimizer=keras.optimizers.AdamW(Schedule(), weight_decay=WEIGHT_DECAY, global_clipnorm=1.0),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()],
            jit_compile=self._jit_compile,
        )

    def _masked_batches(self):
        setting = self._setting
        masker = self._hub.layers.MaskedLMMaskGenerator(
            vocabulary_size=setting.config.vocab_size,
            mask_selection_rate=0.15,
            mask_token_id=setting.id_of(MASK),
            mask_selection_length=setting.shards.train_options.max_predictions_per_seq,
            unselectable_token_ids=[setting.id_of(piece) for piece in (PAD, CLS, SEP)],
        )

        def mask(batch):
            masked = masker(batch["input_ids"])
            inputs = {
                "token_ids": masked["token_ids"],
                "segment_ids": batch["segment_ids"],
                "padding_mask": batch["input_mask"],
                "mask_positions": masked["mask_positions"],
            }
            return inputs, masked["mask_ids"], masked["mask_weights"]

        return setting.raw_batches().map(mask, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def steps_per_second(self):
        model = self._new_model(self._setting.flags.learning_rate, CALIBRATION_STEPS)
        batches = self._masked_batches()
        model.fit(batches, steps_per_epoch=WARM_STEPS, verbose=0)
        started_at = time.perf_counter()
        model.fit(batches, steps_per_epoch=CALIBRATION_STEPS, verbose=0)
        return CALIBRATION_STEPS / (time.perf_counter() - started_at)

    def train(self, num_steps):
        self._model = self._new_model(self._setting.flags.learning_rate, num_steps)
        self._model.fit(self._masked_batches(), steps_per_epoch=num_steps, verbose=0)

    def masked_lm_loss(self):
        total, weight = 0.0, 0.0

        @tf.function(autograph=False)
        def losses_of(inputs, ids):
            logits = self._model(inputs, training=False)
            return tf.nn.sparse_softmax_cross_entropy_with_logits(ids, tf.cast(logits, tf.float32))

        for batch in self._setting.held_out_batches():
            inputs = {
                "token_ids": batch["input_ids"],
                "segment_ids": batch["segment_ids"],
                "padding_mask": batch["input_mask"],
                "mask_positions": batch["masked_lm_positions"],
            }
            weights = batch["masked_lm_weights"]
            total += float(tf.reduce_sum(losses_of(inputs, batch["masked_lm_ids"]) * weights))
            weight += float(tf.reduce_sum(weights))
        return total / weight

    def accuracy(self):
        setting, settings = self._setting, self._setting.finetuning
        self._keras.utils.set_random_seed(setting.flags.random_seed)
        model = self._hub.models.AlbertTextClassifier(
            self._model.backbone, num_classes=2, preprocessor=None, dropout=setting.config.classifier_dropout_prob
        )
        self._compile(model, settings.learning_rate, settings.num_train_steps)

        def inputs_of(batch):
            names = {"token_ids": "input_ids", "segment_ids": "segment_ids", "padding_mask": "input_mask"}
            return {theirs: batch[ours] for theirs, ours in names.items()}

        batches = setting.classifier_batches().map(lambda batch: (inputs_of(batch), batch["label_ids"]))
        model.fit(batches, steps_per_epoch=settings.num_train_steps, verbose=0)
        logits = model.predict(inputs_of(setting.dev_features), batch_size=64, verbose=0)
        return float(np.mean(logits.argmax(-1) == setting.dev_features["label_ids"]))


CONTESTANTS = {
    "albert_tf": AlbertTf,
    "hugging_face": HuggingFace,
    "keras_hub": KerasHub,
    "keras_hub_xla": lambda setting: KerasHub(setting, jit_compile=True),
}


def main():
    name, settings, path = sys.argv[1:]
    setting = Setting(json.loads(settings))
    contestant = CONTESTANTS[name](setting)
    num_steps = max(10, round(60 * setting.flags.minutes * contestant.steps_per_second()))
    started_at = time.perf_counter()
    contestant.train(num_steps)
    seconds = time.perf_counter() - started_at
    result = {
        "steps": num_steps,
        "seconds": seconds,
        "examples_per_second": num_steps * setting.batch_size / seconds,
        "masked_lm_loss": contestant.masked_lm_loss(),
    }
    if setting.flags.data_dir:
        result["accuracy"] = contestant.accuracy()
    write_json(path, result)


if __name__ == "__main__":
    main()
