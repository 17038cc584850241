"""A trained folder, asked by its own model."""

import abc
import functools
import os
import typing
import warnings

import tensorflow as tf

from albert_tf.asking.answers import FILL_MASK, groups_of_one_length
from albert_tf.asking.backend import Predicted
from albert_tf.base.errors import InputError
from albert_tf.base.texts import list_inputs
from albert_tf.finetuning import runner
from albert_tf.finetuning.task import CUT, count_cut
from albert_tf.modeling.layers import named_variables
from albert_tf.serving import choosing
from albert_tf.serving.choosing import Template
from albert_tf.serving.decoder import GenerationOptions
from albert_tf.serving.loading import TrainedModel, holds_finetuned, load_finetuned, load_trained
from albert_tf.serving.saved_model import TokenizerBackend, describe, string_tensors
from albert_tf.serving.scoring import Scorer, check_scorable, cut_texts
from albert_tf.serving.signature_base import TextInputs
from albert_tf.serving.signatures import NUM_GUESSES, make_signatures
from albert_tf.serving.text_generator import POSITIONS, TextGenerator, count_stopped
from albert_tf.tokenization.unknown_words import find_unknown_words, holds_unknown
from albert_tf.training.batches import suitable_lengths
from albert_tf.training.devices import strategy_of
from albert_tf.training.evaluation import make_output_function

_TEXTS_AT_ONCE = 64
_INPUT_NAMES = ("input_ids", "input_mask", "segment_ids")
Answers = list[dict[str, typing.Any]]


class Question(abc.ABC):
    """A question with its options, which are checked as it is made; the methods of `Model` describe them."""

    def __init__(self, backend: "FolderBackend"):
        self._backend = backend

    @abc.abstractmethod
    def check(self, texts: list[str]) -> None:
        """Raises InputError if a text can't be asked about; the message begins with "input" and its number."""

    @abc.abstractmethod
    def answer(self, texts: list[str], batch_size: int) -> Answers:
        """Returns the answer for each text, in order."""


class Scoring(Question):
    """The probability of texts."""

    def __init__(self, backend: "FolderBackend", method: str | None = None):
        super().__init__(backend)
        self._method = backend.scorer.check_method(method)

    def check(self, texts):
        check_scorable(self._backend.tokenizer, texts)

    def answer(self, texts, batch_size):
        return self._backend.scorer.score(texts, cut_texts(self._backend.tokenizer, texts), self._method, batch_size)


class Choosing(Question):
    """Which of several answers fits a text."""

    def __init__(
        self,
        backend: "FolderBackend",
        template: str,
        answers: typing.Mapping[str, str],
        examples: typing.Sequence[tuple[str, str]] = (),
        compare: str = choosing.PMI,
    ):
        super().__init__(backend)
        self._template, self._compare = Template(template, answers, list_inputs(examples)), compare
        if backend.scorer.is_causal:
            self._template.check_causal()
        if compare not in choosing.COMPARISONS:
            raise InputError(f"`compare` must be one of {', '.join(choosing.COMPARISONS)}. Received: {compare!r}")
        choosing.check_fits(backend.tokenizer, [], self._template, backend.max_seq_length)

    def check(self, texts):
        choosing.check_fits(self._backend.tokenizer, texts, self._template, self._backend.max_seq_length)

    def answer(self, texts, batch_size):
        if warning := choosing.describe_unknown(self._backend.tokenizer, self._template):
            warnings.warn(warning, stacklevel=4)
        backend = self._backend
        return choosing.choose(backend.scorer, backend.tokenizer, texts, self._template, self._compare, batch_size)


class Generation(Question):
    """The continuation of texts."""

    def __init__(self, backend: "FolderBackend", **options: typing.Any):
        super().__init__(backend)
        self._options = GenerationOptions(**options)

    def check(self, texts):
        self._backend.generator.check_room(texts)

    def answer(self, texts, batch_size):
        answers = self._backend.generator.generate(texts, self._options, batch_size)
        if count := count_stopped(answers, POSITIONS):
            warnings.warn(
                f"{count} of {len(texts)} texts stop before max_pieces={self._options.max_pieces}, at the last of the "
                f"model's {self._backend.max_seq_length} positions",
                stacklevel=4,
            )
        return answers


# By the ability that each needs.
QUESTIONS = {"score": Scoring, "choose": Choosing, "generate": Generation}


class FolderBackend(TokenizerBackend):
    """A model with its tokenizer, and the task that it was fine-tuned for, if it was.

    Args:
        trained: The model of the folder.
        place: The folder in errors.
        why_no_head: Why the folder's head of a task, if any, can't be used.
    """

    def __init__(self, trained: TrainedModel, place: str, why_no_head: str | None = None):
        self.trained, self.model, self.tokenizer, self.task = trained, trained.model, trained.tokenizer, trained.task
        self._folder, self._why_no_head = place, why_no_head
        self.place = f"{place}, which was {'pre-trained' if trained.task is None else 'fine-tuned'},"
        self.results, self.max_seq_length = trained.results, trained.max_seq_length
        self.encoder_settings = trained.encoder_settings
        self.hidden_size, self.is_causal = trained.config.hidden_size, trained.config.is_causal
        self.most_guesses = len(trained.tokenizer.vocabulary)
        own = ("predict",) if trained.task is not None else trained.abilities
        self.abilities = (*own, "encode", "similarity")
        self._graph = functools.cache(lambda name, count: make_signatures(trained, count).trace_one(name))
        self._inputs = TextInputs(self.tokenizer, self.max_seq_length)
        specs = {name: tf.TensorSpec([None, None], tf.int32) for name in _INPUT_NAMES}
        self._states = tf.function(
            lambda batch: trained.model.encoder(batch)["sequence_output"], input_signature=[specs], autograph=False
        )

    @property
    def signatures(self):
        return {name: describe(self._graph(name, NUM_GUESSES)) for name in make_signatures(self.trained).functions()}

    def compute(self, signature, inputs):
        return self._compute(signature, inputs, NUM_GUESSES)

    def guess(self, texts, top_k):
        return self._compute(FILL_MASK, {"text": texts}, max(top_k, NUM_GUESSES))

    def _compute(self, signature, inputs, num_guesses):
        values = self._graph(signature, num_guesses)(**string_tensors(inputs))
        return {name: each.numpy() for name, each in values.items()}

    def encode(self, texts):
        ids = self.tokenizer.encode_ids(texts)
        for rows in groups_of_one_length(ids.row_lengths().numpy()):
            batch = self._inputs.pack(tf.gather(ids, rows))
            yield rows, self._states(batch).numpy(), batch["input_mask"].numpy()

    def predict(self, examples, batch_size):
        task, tokenizer = self.task, self.tokenizer
        features = task.encode(examples, tokenizer, self.max_seq_length)
        candidates = holds_unknown(tokenizer, features["input_ids"])
        unknown = find_unknown_words(tokenizer, list(map(task.texts_of, examples)), candidates)
        strategy, compute = self._outputs
        file = runner.EncodedFile("", examples, features, self.max_seq_length)
        predictions = runner.compute_predictions(
            task, file, batch_size or _TEXTS_AT_ONCE, lambda _, dataset: compute(dataset), suitable_lengths(strategy)
        )
        return Predicted(predictions, count_cut(features.get(CUT, ())), unknown)

    def question(self, ability, **options):
        """Returns one of `QUESTIONS`."""
        return QUESTIONS[ability](self, **options)

    def refusal(self, ability):
        if self.task is not None:
            return super().refusal(ability)
        if why := self.trained.why_not(ability):
            return f"{self._folder} {why}; it has {', '.join(self.abilities)}"
        if self._why_no_head:
            return f"{self._folder} has a head that can't be used for prediction: {self._why_no_head}"
        return (
            f"{self._folder} was pre-trained and not fine-tuned: in Python use {' and '.join(self.abilities[:2])}; "
            "to classify texts and the like, fine-tune it, by albert_tf.fit or run_classifier.py --init_checkpoint"
        )

    # Made once: tracing takes longer than most answers.

    @functools.cached_property
    def scorer(self) -> Scorer:
        """Scores tokens of texts; InputError if the vocabulary lacks a special token that inputs need."""
        return Scorer(self.model, self.tokenizer, self.max_seq_length, self.trained.predicts_next)

    @functools.cached_property
    def generator(self) -> TextGenerator:
        """Continues texts."""
        return TextGenerator(self.model, self.tokenizer)

    @functools.cached_property
    def _outputs(self):
        """The strategy of the model, and what computes the outputs of the task for a dataset."""
        task, model = self.task, self.trained.model
        strategy = strategy_of(named_variables(model))
        return strategy, make_output_function(strategy, lambda batch: task.outputs(batch, model))


def load_folder(folder: str | os.PathLike, place: str | None = None, why_no_head: str | None = None) -> FolderBackend:
    """Returns the backend of a run's folder, with its best checkpoint, or of a published model.

    `place` is the folder in errors, by default its path; `why_no_head` is as for `FolderBackend`. An InputError if the
    folder holds no model.
    """
    load = load_finetuned if holds_finetuned(folder) else load_trained
    trained = load(folder, "albert_tf.load")
    return FolderBackend(trained, place or os.fspath(folder), why_no_head)
