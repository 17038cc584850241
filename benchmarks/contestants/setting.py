"""The common setting of all contestants: examples, batches, labels and the learning rate of a step."""

import types

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification
from albert_tf.finetuning.batches import Examples
from albert_tf.finetuning.datasets import DATASETS, find_files
from albert_tf.finetuning.defaults import choose_max_seq_length, finetuning_settings, with_default_dropout
from albert_tf.finetuning.tasks.labelled_text import read_examples
from albert_tf.pretraining_data.input_pipeline import eval_dataset, parse
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.runs.phases import objective_of

CALIBRATION_STEPS, WARM_STEPS = 40, 5
WARMUP_PROPORTION, WEIGHT_DECAY = 0.1, 0.01


class Setting:
    """The common setting of all contestants.

    Args:
        flags: The values of the flags of `benchmarks.same_hour`, by name.
    """

    def __init__(self, flags):
        self.flags = types.SimpleNamespace(**flags)
        self.config = AlbertConfig.from_json_file(self.flags.albert_config_file)
        self.shards = find_shards(self.flags.input_file, self.config)
        self.batch_size = self.flags.train_batch_size
        if self.flags.data_dir:
            self._load_labelled()

    def _load_labelled(self):
        files = DATASETS["nsmc"]
        train, self.dev = (
            read_examples(find_files(self.flags.data_dir, names), files, True) for names in (files.train, files.dev)
        )
        order = np.random.default_rng(self.flags.random_seed).permutation(len(train))
        self.train = [train[index] for index in order[: self.flags.num_labels]]
        config = with_default_dropout(self.config, len(self.train))
        self.task = Classification(config, files.labels, files)
        self.length = choose_max_seq_length(self.task, self.train, self.shards.tokenizer)
        self.train_features, self.dev_features = (
            self.task.encode(examples, self.shards.tokenizer, self.length) for examples in (self.train, self.dev)
        )
        self.finetuning = finetuning_settings(
            config, len(self.train), init_checkpoint="what was pre-trained", random_seed=self.flags.random_seed
        )

    def raw_batches(self):
        """Returns endless batches of shuffled examples without masks."""
        options = self.shards.train_options
        records = tf.data.TFRecordDataset(self.shards.train_paths).repeat()
        batches = records.shuffle(10_000, seed=self.flags.random_seed).batch(self.batch_size, drop_remainder=True)
        return batches.map(lambda serialized: parse(serialized, options))

    def held_out_batches(self):
        """Returns the held-out batches, whose masks are fixed."""
        shards, prepare = self.shards, objective_of(self.config, self.shards).prepare
        return eval_dataset(shards.held_out_paths, shards.held_out_options, prepare, self.batch_size)

    def classifier_batches(self, max_seq_length=None):
        """Returns endless batches of labelled examples, all of one length or each as short as it can be."""
        examples = Examples(self.train_features, self.task.batch_spec(max_seq_length))
        return examples.train_dataset(self.finetuning.train_batch_size, self.finetuning.random_seed)

    def dev_batches(self):
        """Returns the examples to judge by, each once, of weight 1."""
        return Examples(self.dev_features, self.task.batch_spec(None)).eval_dataset(64)

    def id_of(self, piece):
        return self.shards.tokenizer.vocabulary.id_of(piece)

    def rate_at(self, step, num_steps, peak):
        """Returns the learning rate of a step: it rises for a tenth of the steps, and falls to zero."""
        warmup = max(1, int(WARMUP_PROPORTION * num_steps))
        return peak * min((step + 1) / warmup, (num_steps - step) / max(1, num_steps - warmup))
