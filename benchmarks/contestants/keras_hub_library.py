"""KerasHub, on TensorFlow."""

import time

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP
from benchmarks.contestants.setting import CALIBRATION_STEPS, WARM_STEPS, WARMUP_PROPORTION, WEIGHT_DECAY
from benchmarks.peers import keras_hub_backbone


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
        num_steps, done_at = WARM_STEPS + CALIBRATION_STEPS, []
        model = self._new_model(self._setting.flags.learning_rate, num_steps)
        clock = self._keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda *_, **__: done_at.append(time.perf_counter())
        )
        model.fit(self._masked_batches(), steps_per_epoch=num_steps, verbose=0, callbacks=[clock])
        return CALIBRATION_STEPS / (done_at[-1] - done_at[-1 - CALIBRATION_STEPS])

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
        config = setting.task.config
        backbone = keras_hub_backbone(config, "float32")
        backbone.set_weights(self._model.backbone.get_weights())
        model = self._hub.models.AlbertTextClassifier(
            backbone, num_classes=2, preprocessor=None, dropout=config.classifier_dropout_prob
        )
        self._compile(model, settings.learning_rate, settings.num_train_steps)

        def inputs_of(batch):
            names = {"token_ids": "input_ids", "segment_ids": "segment_ids", "padding_mask": "input_mask"}
            return {theirs: batch[ours] for theirs, ours in names.items()}

        batches = setting.classifier_batches(setting.length).map(lambda batch: (inputs_of(batch), batch["label_ids"]))
        model.fit(batches, steps_per_epoch=settings.num_train_steps, verbose=0)
        logits = model.predict(inputs_of(setting.dev_features), batch_size=64, verbose=0)
        return float(np.mean(logits.argmax(-1) == setting.dev_features["label_ids"]))
