"""Hugging Face, on PyTorch."""

import os
import time

import numpy as np

from benchmarks.contestants.setting import CALIBRATION_STEPS, WARM_STEPS, WEIGHT_DECAY
from benchmarks.peers import hugging_face_config


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
        """Trains on an iterator of losses; returns when each step was done."""
        done_at = []
        optimizer = self._torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=WEIGHT_DECAY)
        for step in range(num_steps):
            for group in optimizer.param_groups:
                group["lr"] = self._setting.rate_at(step, num_steps, peak)
            optimizer.zero_grad(set_to_none=True)
            next(losses).backward()
            self._torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done_at.append(time.perf_counter())
        return done_at

    def _pretrain(self, model, num_steps):
        def losses():
            for batch in self._setting.raw_batches():
                inputs = self._collate(batch)
                labels = inputs.pop("labels")
                logits = model(**inputs).prediction_logits
                yield self._torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

        return self._optimize(model.train(), losses(), num_steps, self._setting.flags.learning_rate)

    def steps_per_second(self):
        done_at = self._pretrain(self._new_model(), WARM_STEPS + CALIBRATION_STEPS)
        return CALIBRATION_STEPS / (done_at[-1] - done_at[-1 - CALIBRATION_STEPS])

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
        config = setting.task.config
        config = hugging_face_config(config, classifier_dropout_prob=config.classifier_dropout_prob)
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
        right = 0.0
        with torch.no_grad():
            for batch in setting.dev_batches():
                is_right = logits_of(batch).argmax(-1).numpy() == batch["label_ids"]
                right += float(np.sum(is_right * batch["example_weights"]))
        return right / len(setting.dev)
