"""A fine-tuned model that answers what another one learns from."""

import collections.abc
import dataclasses
import hashlib
import json

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.finetuning import runner
from albert_tf.finetuning.soft_labels import HAS_LABEL
from albert_tf.finetuning.task import Features, FinetuningTask
from albert_tf.finetuning.tasks.question_answering import QuestionAnswering
from albert_tf.reading.rows import tell_once
from albert_tf.tokenization import Tokenizer
from albert_tf.training.batches import suitable_lengths
from albert_tf.training.evaluation import Evaluator


class Teacher:
    """A model, created in the strategy's scope, with its task and tokenizer, which answers in evaluation mode alone."""

    # A batch is of that many rows over all replicas.
    # Messages call it `source`; if it is foreign, the config of the folder that it was converted from can be corrected.

    def __init__(
        self,
        task: FinetuningTask,
        model: tf.keras.Model,
        tokenizer: Tokenizer,
        max_seq_length: int,
        strategy: tf.distribute.Strategy,
        batch_size: int,
        source: str,
        is_foreign: bool = False,
    ):
        self.task, self.tokenizer, self.max_seq_length, self._source = task, tokenizer, max_seq_length, source
        self._evaluator = Evaluator(strategy, task, {"model": model})
        self._batch_size, self._is_foreign = batch_size, is_foreign
        self._lengths = suitable_lengths(strategy)

    @property
    def setup_sha256(self) -> str:
        """SHA-256 of what its answers follow from besides its weights."""
        values = [self.task.config.to_dict(), self.task.settings(), self.tokenizer.identity, self.max_seq_length]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def check(self, task: FinetuningTask, tokenizer: Tokenizer, max_seq_length: int) -> None:
        """Checks that it was fine-tuned for the same as a task, and reads the same pieces if each has an answer."""
        own, wanted = type(self.task).__name__, type(task).__name__
        if own != wanted:
            road = "name a teacher of the same task"
            if isinstance(self.task, QuestionAnswering) and isinstance(task, QuestionAnswering):
                road += f", or pass `head={self.task.head}`"
            elif self._is_foreign and self.task.kind.head is task.kind.head and self.task.labels and task.labels:
                road += ", or correct problem_type in the config.json that it was converted from"
            raise InputError(f"{self._source} was fine-tuned for {own}, but the task here is {wanted}; {road}")
        difference = task.differs_from(self.task)
        if difference:
            road = "name a teacher that was fine-tuned for the same"
            if self._is_foreign:
                road += ", or correct id2label in the config.json that it was converted from"
            raise InputError(f"{self._source} {difference}; {road}")
        if not task.answers_pieces:
            return
        if self.tokenizer.identity != tokenizer.identity:
            raise InputError(
                f"{self._source} has a different tokenizer from the student, but in this task the teacher "
                "answers for each piece; fine-tune a teacher with the student's vocabulary"
            )
        self.task.config.check_max_seq_length(max_seq_length, f"for {self._source}, max_seq_length")

    def predict(self, examples: list) -> list:
        """Returns its prediction for each example, from the texts alone."""
        features = self.task.encode(examples, self.tokenizer, self.max_seq_length)
        cuts = self.task.describe_cuts(features, self.max_seq_length, f"that {self._source} reads")
        if cuts:
            tell_once(cuts)
        file = runner.EncodedFile("", examples, features, self.max_seq_length)
        return runner.compute_predictions(
            self.task, file, self._batch_size, self._evaluator.compute_outputs, self._lengths
        )

    def compute(self, function: collections.abc.Callable, features: Features) -> Features:
        """Returns the outputs of a function of a batch and the model for encoded rows, in their order."""
        # Of arrays [N, S, ...] the second axis has the length of the features; what is padding there is 0.
        length = features["input_ids"].shape[-1]
        file = runner.EncodedFile("", [], features, length)
        batched = file.batched(self.task, self._lengths)
        outputs = self._evaluator.compute_outputs(function, batched.eval_dataset(self._batch_size))
        rows = np.argsort(batched.order_of_evaluation)
        return {name: _padded(values[rows], length) for name, values in outputs.items()}

    def scores(self, task: FinetuningTask, examples: list) -> dict[str, float]:
        """Returns the teacher's own scores, by the measures of the task that is learnt."""
        return task.score(examples, self.predict(examples))


def taught(
    task: FinetuningTask,
    teacher: Teacher,
    file: "runner.EncodedFile",
    tokenizer: Tokenizer,
    unlabelled: tuple[str, ...] = (),
    dev_file: "runner.EncodedFile | None" = None,
) -> "runner.EncodedFile":
    """Returns a training file with what a teacher says of it, and of files without labels, which join it."""
    # The teacher was checked. Told is how many of the unlabelled texts the dev file has, too.
    parts = [(file.examples, file.features, 1.0)]
    of_dev = set(map(task.texts_of, dev_file.examples)) - {()} if dev_file else set()
    for path in unlabelled:
        examples = task.read_unlabelled(path)
        tell_once(f"{len(examples):,} texts of {path} are added to the training, with the teacher's answers alone")
        count = sum(task.texts_of(example) in of_dev for example in examples)
        if count:
            tell_once(
                f"warning: {count:,} of them are also in {dev_file.name}, so if the teacher was trained on their "
                "labels, the scores are better than on new texts"
            )
        parts.append((examples, task.encode(examples, tokenizer, file.max_seq_length), 0.0))
    wanted = task.batch_spec(file.max_seq_length).keys()
    rows = []
    for examples, features, is_labelled in parts:
        more = task.soft_features(examples, features, teacher)
        has_label = np.full(len(features["input_ids"]), is_labelled, np.float32)
        known = {**features, HAS_LABEL: has_label, **more}
        rows.append({name: known[name] for name in wanted if name in known})
    together = {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}
    return dataclasses.replace(file, trained_on=together)


def _padded(values, length):
    if values.ndim < 2 or values.shape[1] >= length:
        return values
    return np.pad(values, [(0, 0), (0, length - values.shape[1]), *[(0, 0)] * (values.ndim - 2)])
