"""Trains, evaluates and predicts: the same for every fine-tuning task."""

import collections.abc
import dataclasses
import functools
import os
import typing

import numpy as np

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.base.console import RESULTS, tell
from albert_tf.base.errors import InputError
from albert_tf.finetuning.baselines import LinearScores, replicates, standard_error
from albert_tf.finetuning.batches import Augmentation, Examples, TokenDropout
from albert_tf.finetuning.datasets import Share
from albert_tf.finetuning.task import Features, FinetuningTask
from albert_tf.objectives.objective import with_batch_size
from albert_tf.reading.rows import tell_once
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.unknown_words import describe_unknown_words, holds_unknown
from albert_tf.training import Phase, RunSettings, TrainingRun
from albert_tf.training.batches import BatchLengths
from albert_tf.training.run_folder.guard import file_identity, joint_identity, read_settings

# How a share of texts with several labels is chosen; other versions chose another one.
_BY_RAREST_LABEL = "by rarest label"
# So many take some seconds to encode.
_MANY = 20_000


@dataclasses.dataclass(frozen=True)
class EncodedFile:
    """A file of examples, or several that are read as one, ready for the model.

    Attributes:
        max_seq_length: Tokens that they are cut or padded to.
        share: Which part of the file it is; None for all of it.
        trained_on: Rows to train on in place of `features`, as `teacher.taught` makes them.
    """

    path: str | tuple[str, ...]
    examples: list[typing.Any]
    features: Features
    max_seq_length: int
    share: Share | None = None
    trained_on: Features | None = None

    @property
    def name(self) -> str:
        """The path, or all of them, for messages."""
        return " and ".join(_paths(self.path))

    @property
    def identity(self) -> dict[str, str]:
        """The file's name and the SHA-256 of its content."""
        return identity_of(self.path, self.share)

    @property
    def num_rows(self) -> int:
        """Rows to train on: one an example, or one a window of its text."""
        return len(next(iter(self._rows.values())))

    @property
    def _rows(self):
        return self.features if self.trained_on is None else self.trained_on

    def batched(self, task: FinetuningTask, lengths: BatchLengths) -> Examples:
        """Returns its rows to make batches of."""
        return Examples(
            self._rows,
            task.batch_spec(self.max_seq_length if lengths is BatchLengths.ONE else None),
            has_few_lengths=lengths is BatchLengths.FEW,
        )


def load_file(
    task: FinetuningTask,
    path: str | tuple[str, ...],
    tokenizer: Tokenizer,
    max_seq_length: int,
    needs_labels: bool = True,
    share: Share | None = None,
) -> EncodedFile:
    """Reads and encodes a file, or a part of it; prints how many of its texts are cut or hold unknown words.

    Args:
        task: Of the examples.
        path: The file, or several that are read as one.
        tokenizer: Encodes the texts.
        max_seq_length: Tokens S that they are cut or padded to.
        needs_labels: Whether each example must have its answer, as for training and evaluation.
        share: Which part of the file to take; None for all of it.

    Raises:
        InputError: It can't be used, or the sequences are longer than the model's positions.
    """
    task.config.check_max_seq_length(max_seq_length)
    examples = read_file(task, path, needs_labels, share)
    if len(examples) >= _MANY:
        tell(f"encoding {len(examples):,} examples")
    encoded = EncodedFile(path, examples, task.encode(examples, tokenizer, max_seq_length), max_seq_length, share)
    where = f"in {encoded.name}"
    cuts = task.describe_cuts(encoded.features, max_seq_length, where)
    unknown_words = describe_unknown_words(
        tokenizer,
        list(map(task.texts_of, examples)),
        where,
        holds_unknown(tokenizer, encoded.features["input_ids"]),
        not task.answers_pieces,
    )
    for message in filter(None, (cuts, unknown_words)):
        tell_once(message)
    return encoded


def read_file(
    task: FinetuningTask, path: str | tuple[str, ...], needs_labels: bool = True, share: Share | None = None
) -> list[typing.Any]:
    """Returns the examples of a file, or of a part of it, which always need labels; errors as of `load_file`."""
    paths = _paths(path)
    examples = [example for each in paths for example in task.read(each, needs_labels or share is not None)]
    if share is None:
        return examples
    return share.choose(" and ".join(paths), examples, [task.text_and_label(example) for example in examples])


def identity_of(path: str | tuple[str, ...], share: Share | None = None) -> dict[str, str]:
    """Returns the name of a file and a SHA-256 that tells it, or a part of it, from others; of several files as one."""
    identities = [file_identity(each) for each in _paths(path)]
    whole = identities[0] if len(identities) == 1 else joint_identity(identities)
    return whole if share is None else share.identity(whole)


def make_phase(
    task: FinetuningTask,
    settings: RunSettings,
    train_file: EncodedFile,
    dev_file: EncodedFile | None = None,
    lengths: BatchLengths = BatchLengths.ANY,
    augment: Augmentation | None = None,
) -> Phase:
    """Returns the training on a file, with evaluation on another, unless `dev_file` is None.

    `augment` changes each training batch, as in `Examples.train_dataset`.
    """
    examples, batch_size = train_file.batched(task, lengths), settings.train_batch_size
    length = train_file.max_seq_length if lengths is BatchLengths.ONE else examples.mean_length(batch_size)
    score_held_out = None
    if dev_file and task.scores_predictions:
        score_held_out = functools.partial(_scores, task, dev_file, settings, lengths)
    return Phase(
        settings.num_train_steps,
        with_batch_size(task.batch_spec(length), batch_size),
        lambda start_step, *_: examples.train_dataset(batch_size, settings.random_seed, start_step, augment),
        functools.partial(_dev_dataset, task, dev_file, settings, lengths) if dev_file else None,
        settings.gradient_accumulation_steps,
        num_examples=train_file.num_rows,
        score_held_out=score_held_out,
    )


def train(
    run: TrainingRun,
    train_file: EncodedFile,
    dev_file: EncodedFile | None = None,
    more_settings: dict | None = None,
    results_data: dict[str, dict[str, str]] | None = None,
    token_dropout: float = 0.0,
) -> bool:
    """Trains a run of a `FinetuningTask`, from where it stands; returns whether it came to the end.

    Args:
        run: In its folder.
        train_file: The examples to train on.
        dev_file: The examples to evaluate on while training; None for nothing.
        more_settings: JSON values to keep with the run's settings, and to compare with them when it is resumed.
        results_data: The identities of the files that the run is evaluated on and predicts, by file of results.
        token_dropout: The share of the tokens of training texts to hide; the run must know its tokenizer for it.

    Raises:
        InputError: The folder holds another run, or training can't go on.
    """
    task = run.objective
    lines = task.describe(train_file.name, train_file.examples, train_file.features)
    run.log("\n".join(lines))
    for sentence in task.limits_elsewhere():
        run.log(sentence, RESULTS)
    data_settings = {
        "train_file": {**train_file.identity, "examples": len(train_file.examples)},
        "max_seq_length": train_file.max_seq_length,
        "token_dropout": token_dropout,
        **({"dev_share": _BY_RAREST_LABEL} if _shares_sets(task, train_file) else {}),
        **task.settings(),
        **(more_settings or {}),
    }
    results_data = dict(results_data or {})
    if dev_file is not None:
        results_data.setdefault(EVAL_RESULTS_FILE, dev_file.identity)
    augment = TokenDropout(token_dropout, run.tokenizer.vocabulary) if token_dropout else None
    phase = make_phase(task, run.settings, train_file, dev_file, run.batch_lengths, augment)
    return run.train(phase, data_settings, results_data)


def evaluate(
    run: TrainingRun,
    dev_file: EncodedFile,
    linear: LinearScores | None = None,
    of_teacher: dict[str, float] | None = None,
) -> dict[str, float]:
    """Evaluates the model that was trained or restored last; returns the numbers of eval_results.json.

    Beside the measure that selects stand, with "blind_" before its name, the score of a rule that reads no text, and
    with "linear_" that of a linear model; a model that is no better is warned of. The teacher's measures begin with
    "teacher_". The task writes the files of `FinetuningTask.reports` too.

    Args:
        run: Of a `FinetuningTask`.
        dev_file: The examples to evaluate on.
        linear: As `baselines.linear_scores` returns them for this file; None to compare with no linear model.
        of_teacher: The teacher's scores on this file, by measure; None where there is none.
    """
    task = run.objective
    if _shares_sets(task, dev_file) and "dev_share" not in (read_settings(run.output_dir) or {"dev_share": None}):
        raise InputError(
            f"{run.output_dir} has learnt some of the examples that are put aside of {dev_file.name} now: an earlier "
            "version divided them otherwise; train anew in another folder, or name a file of its own to evaluate on"
        )
    dataset = _dev_dataset(task, dev_file, run.settings, run.batch_lengths)
    scores, reports, predictions = {}, task.reports(), None
    if task.scores_predictions or reports:
        predictions = compute_predictions(
            task, dev_file, run.settings.eval_batch_size, run.compute_outputs, run.batch_lengths
        )
        if run.owns_results_of(dev_file.identity):
            predictions = task.decide_on_held_out(dev_file.examples, predictions)
        scores = task.score(dev_file.examples, predictions) if task.scores_predictions else {}
    rule, blind = task.blind_scores(dev_file.examples)
    metric, of_linear, of_teacher = task.selection_metric, linear.scores if linear else {}, of_teacher or {}
    others = {"blind": blind, "linear": of_linear, "teacher": of_teacher}
    more = {f"{kind}_{metric}": of[metric] for kind, of in others.items() if metric in of}
    results = run.evaluate(dataset, dev_file.identity, scores, num_examples=len(dev_file.examples), **more)
    if metric in blind:
        run.log(f"a rule that reads no text, {rule}: {metric} {blind[metric]:.4f}", RESULTS)
        if _rounded(results[metric]) <= _rounded(blind[metric]):
            run.log(
                f"warning: {metric} {results[metric]:.4f} is no better than that, as if nothing had been learnt; try "
                "more steps or another learning rate, and look at the labels"
            )
    own = replicates(task.score, dev_file.examples, predictions, metric) if predictions else []
    if own:
        error = "the standard error" if standard_error(own) else "but no standard error: all is right, or all wrong,"
        run.log(
            f"{metric} {_with_error(results[metric], own)} ({error} of {len(dev_file.examples):,} examples)", RESULTS
        )
    if metric in of_linear:
        run.log(f"{linear}: {metric} {_with_error(of_linear[metric], linear.replicates)}", RESULTS)
        _compare_with_linear(run, metric, results[metric], own, linear)
    if metric in of_teacher:
        run.log(f"the teacher: {metric} {of_teacher[metric]:.4f}", RESULTS)
    for name, write in reports.items():
        what = f"the {os.path.splitext(name)[0].replace('_', ' ')}"
        run.write_results(
            name,
            dev_file.identity,
            what,
            lambda path, write=write: write(path, dev_file.examples, predictions),
            beside=EVAL_RESULTS_FILE,
        )
    return results


def predict(run: TrainingRun, test_file: EncodedFile, batch_size: int) -> list[typing.Any]:
    """Predicts with the model that was trained or restored last, writes it down, and returns it."""
    task = run.objective
    predictions = compute_predictions(task, test_file, batch_size, run.compute_outputs, run.batch_lengths)
    what = " and ".join(os.path.basename(path.rstrip("/")) for path in _paths(test_file.path))
    what = f"what is put aside of {what}" if test_file.share and test_file.share.is_dev else what
    run.write_results(
        task.predictions_file,
        test_file.identity,
        f"{len(predictions):,} predictions of {what}",
        lambda path: task.write_predictions(path, test_file.examples, predictions),
    )
    return predictions


def compute_predictions(
    task: FinetuningTask,
    file: EncodedFile,
    batch_size: int,
    compute_outputs: collections.abc.Callable,
    lengths: BatchLengths = BatchLengths.ANY,
) -> list[typing.Any]:
    """Returns a prediction for each example of a file.

    `batch_size` is over all replicas; given `task.outputs` and batches, `compute_outputs` does as an `Evaluator`'s.
    """
    batched = file.batched(task, lengths)
    outputs = compute_outputs(task.outputs, batched.eval_dataset(batch_size))
    rows = np.argsort(batched.order_of_evaluation)
    return task.predict(file.examples, file.features, {name: values[rows] for name, values in outputs.items()})


def _compare_with_linear(run, metric, score, own, linear):
    """Tells where a linear model scores more, or where the examples are too few to tell."""
    other, difference = linear.scores[metric], score - linear.scores[metric]
    error = 0.0
    if own and len(own) == len(linear.replicates):
        error = standard_error(np.subtract(own, linear.replicates))
    if abs(_rounded(difference)) <= error:
        run.log(
            f"the two differ by {abs(difference):.4f}, not more than the standard error of the difference "
            f"({error:.4f}), so these examples don't say which is better",
            RESULTS,
        )
    elif difference < 0:
        run.log(
            f"warning: {metric} {score:.4f} is below the {other:.4f} of {linear.name}; try more passes over the "
            "examples, another learning rate, or a model that was pre-trained on more text or on text like this"
        )


def _with_error(score, found):
    """Returns a score and its standard error; it alone where leaving out examples changes nothing."""
    error = standard_error(found) if found else 0.0
    return f"{score:.4f} ± {error:.4f}" if error else f"{score:.4f}"


def _shares_sets(task, file):
    """Whether a file is a part of another that was divided by labels of which a text may have several."""
    return file.share is not None and isinstance(task.text_and_label(file.examples[0])[1], tuple)


def _rounded(score):
    """Returns a score without the digits that float32, in which some are computed, does not have."""
    return round(score, 6)


def _paths(path):
    return (path,) if isinstance(path, str) else tuple(path)


def _dev_dataset(task, dev_file, settings, lengths):
    return dev_file.batched(task, lengths).eval_dataset(settings.eval_batch_size)


def _scores(task, dev_file, settings, lengths, compute_outputs):
    predictions = compute_predictions(task, dev_file, settings.eval_batch_size, compute_outputs, lengths)
    return task.score(dev_file.examples, task.decide_on_held_out(dev_file.examples, predictions))
