"""Questions to a pre-trained model that are answered for many texts: how probable, which label, what comes after."""

import abc
import functools
import typing
import warnings

from albert_tf.asking.texts import list_inputs
from albert_tf.serving import choosing
from albert_tf.serving.choosing import Template
from albert_tf.serving.decoder import GenerationOptions
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.scoring import Scorer, check_scorable, cut_texts
from albert_tf.serving.text_generator import POSITIONS, TextGenerator, count_stopped

Answers = list[dict[str, typing.Any]]


class Tools:
    """The tools that answer a model's questions, made once: tracing takes longer than most answers."""

    def __init__(self, trained: TrainedModel):
        self.tokenizer, self.max_seq_length = trained.tokenizer, trained.max_seq_length
        self._trained = trained

    @functools.cached_property
    def scorer(self) -> Scorer:
        """Scores tokens of texts; InputError if the vocabulary lacks a special token that inputs need."""
        return Scorer(self._trained.model, self.tokenizer, self.max_seq_length, self._trained.predicts_next)

    @functools.cached_property
    def generator(self) -> TextGenerator:
        """Continues texts."""
        return TextGenerator(self._trained.model, self.tokenizer)


class Question(abc.ABC):
    """A question with its options, which are checked as it is made; the methods of `Model` describe them."""

    def __init__(self, tools: Tools):
        self._tools = tools

    @abc.abstractmethod
    def check(self, texts: list[str]) -> None:
        """Raises InputError if a text can't be asked about; the message begins with "input" and its number."""

    @abc.abstractmethod
    def answer(self, texts: list[str], batch_size: int) -> Answers:
        """Returns the answer for each text, in order."""


class Scoring(Question):
    """The probability of texts."""

    def __init__(self, tools: Tools, method: str | None = None):
        super().__init__(tools)
        self._method = tools.scorer.check_method(method)

    def check(self, texts):
        check_scorable(self._tools.tokenizer, texts)

    def answer(self, texts, batch_size):
        return self._tools.scorer.score(texts, cut_texts(self._tools.tokenizer, texts), self._method, batch_size)


class Choosing(Question):
    """Which of several answers fits a text."""

    def __init__(
        self,
        tools: Tools,
        template: str,
        answers: typing.Mapping[str, str],
        examples: typing.Sequence[tuple[str, str]] = (),
        compare: str = choosing.PMI,
    ):
        super().__init__(tools)
        self._template, self._compare = Template(template, answers, list_inputs(examples)), compare
        if tools.scorer.is_causal:
            self._template.check_causal()
        choosing.check_comparison(compare)
        choosing.check_fits(tools.tokenizer, [], self._template, tools.max_seq_length)

    def check(self, texts):
        choosing.check_fits(self._tools.tokenizer, texts, self._template, self._tools.max_seq_length)

    def answer(self, texts, batch_size):
        if warning := choosing.describe_unknown(self._tools.tokenizer, self._template):
            warnings.warn(warning, stacklevel=4)
        tools = self._tools
        return choosing.choose(tools.scorer, tools.tokenizer, texts, self._template, self._compare, batch_size)


class Generation(Question):
    """The continuation of texts."""

    def __init__(self, tools: Tools, **options: typing.Any):
        super().__init__(tools)
        self._options = GenerationOptions(**options)

    def check(self, texts):
        self._tools.generator.check_room(texts)

    def answer(self, texts, batch_size):
        answers = self._tools.generator.generate(texts, self._options, batch_size)
        if count := count_stopped(answers, POSITIONS):
            warnings.warn(
                f"{count} of {len(texts)} texts stop before max_pieces={self._options.max_pieces}, at the last of the "
                f"model's {self._tools.max_seq_length} positions",
                stacklevel=4,
            )
        return answers


# By the ability that each needs.
QUESTIONS = {"score": Scoring, "choose": Choosing, "generate": Generation}
