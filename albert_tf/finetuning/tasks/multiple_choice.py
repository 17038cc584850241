"""Fine-tuning to choose the right one of several options (original run_race.py)."""

import collections
import dataclasses
import json
import os
import string
import typing
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import read_text
from albert_tf.base.texts import OPTIONS
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.soft_labels import labelled_cross_entropy, log_probabilities
from albert_tf.finetuning.task import CUT, OF_OPTION, FinetuningTask, TaskKind
from albert_tf.finetuning.tasks.labelled_text import UNKNOWN_LABELS
from albert_tf.modeling import AlbertForMultipleChoice
from albert_tf.objectives.objective import classifier_products, encoder_batch_spec
from albert_tf.reading.rows import BadRows, RowFile, counted, read_once, tell_once, write_rows
from albert_tf.reading.tables import is_saved
from albert_tf.reading.values import load_json
from albert_tf.tokenization.model_inputs import pack_segments

# Multiple-choice questions: folders of RACE, and JSON lines.

# RACE's folders in train/, dev/ and test/.
LEVELS = ("middle", "high")
# How the options of a question are called, in order.
LETTERS = string.ascii_uppercase
# All articles of a folder in one file, one a line, as the original wants them.
_ALL_ARTICLES = "all.txt"


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a passage, with its options.

    Attributes:
        question: The question, or a sentence with "_" where an option goes.
        answer: Index of the right option, None if unknown.
        name: Its id in predictions, or the number of its line.
        level: One of `LEVELS`, None outside RACE.
    """

    passage: str
    question: str
    options: tuple[str, ...]
    answer: int | None
    name: str
    level: str | None = None


@read_once
def read_questions(
    path: str,
    levels: tuple[str, ...] = (),
    num_choices: int | None = None,
    needs_answers: bool = True,
    on_bad_row: str = "fail",
) -> list[Question]:
    """Returns the questions of a file of JSON lines, or with `levels` of one of RACE's folders train, dev and test."""
    # By default each must have as many options as the first one.
    bad_entries = BadRows(on_bad_row, ("entry", "entries"))
    questions = []
    for source, values in _records(path, levels, bad_entries):
        with bad_entries.leaving_out():
            question = _make_question(source, values)
            if needs_answers and question.answer is None:
                raise InputError(f"{source}: no answer; add it, or leave the question out")
            num_choices = num_choices or len(question.options)
            if len(question.options) != num_choices:
                raise InputError(
                    f"{source}: {len(question.options)} options, but the model chooses from {num_choices}; give as many"
                )
            questions.append(question)
    bad_entries.warn()
    if not questions:
        raise InputError(f"{path} has no questions")
    first = questions[0]
    shown = f"{shorten(first.question)} {' / '.join(map(shorten, first.options))}"
    tell_once(f"{path}: {counted(len(questions), 'question')} with {num_choices} options each\n  the first: {shown}")
    return questions


def asked_questions(inputs: typing.Any, num_choices: int) -> list[Question]:
    """Returns (passage, question, options) as questions without answers; anything else is refused."""
    questions = []
    for number, value in enumerate(inputs):
        if not isinstance(value, list | tuple) or len(value) != 3 or not _are_options(value[2], num_choices):
            raise InputError(
                f"input {number} must be a passage, a question and a list of {num_choices} options. "
                f"Received: {quote(value)}"
            )
        passage, question, options = value
        source = f"input {number}"
        values = {"passage": passage, "question": question, "options": list(options), "name": str(number)}
        questions.append(_make_question(source, values))
    return questions


def _records(path, levels, bad_entries):
    """Yields (source, values) of each question of a file or folder."""

    def refuse(message):
        with bad_entries.leaving_out():
            raise InputError(f"{message}; correct it")

    if not levels:
        for place, values in RowFile(path, is_json=True).records(refuse, skips_empty_lines=True):
            yield place, {**values, "name": str(values.get("id", place.number)), "level": None}
    for source, text, level in _articles(path, levels) if levels else ():
        records = []
        with bad_entries.leaving_out():
            records = _records_of_article(source, text, level)
        yield from records


def _articles(path, levels):
    """Yields (source, text, level) of each article in one of RACE's folders."""
    folders = [(level, os.path.join(path, level)) for level in levels]
    folders = [(level, folder) for level, folder in folders if tf.io.gfile.isdir(folder)]
    if not folders and is_saved(path):
        raise InputError(
            f"{path} is a folder that datasets has saved; write JSON lines of passage, question, options and answer, "
            "and choose `task_name=jsonl`"
        )
    if not folders:
        raise InputError(f"{path} has no folder {' or '.join(levels)}; unpack RACE there as it is published")
    for level, folder in folders:
        all_articles = os.path.join(folder, _ALL_ARTICLES)
        if tf.io.gfile.exists(all_articles):
            for number, line in enumerate(read_text(all_articles, "the articles").split("\n"), start=1):
                if line.strip():
                    yield f"{all_articles}, line {number}", line, level
            continue
        for name in sorted(tf.io.gfile.listdir(folder)):
            if name.endswith(".txt") and not name.startswith("."):
                source = os.path.join(folder, name)
                yield source, read_text(source, "the article"), level


def _records_of_article(source, text, level):
    try:
        article = load_json(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{source}: not JSON ({error}); correct it") from error
    if not isinstance(article, dict):
        raise InputError(f"{source}: not a JSON object; correct it")
    for name in ("questions", "options", *(["answers"] if article.get("answers") else [])):
        if not isinstance(article.get(name), list):
            raise InputError(f"{source}: no list of {name}; correct the file")
    questions, options = article["questions"], article["options"]
    answers = article.get("answers") or [None] * len(questions)
    if not len(questions) == len(options) == len(answers):
        raise InputError(
            f"{source}: {len(questions)} questions, {len(options)} lists of options and {len(answers)} answers; "
            "give every question one of each"
        )
    name = article.get("id", os.path.basename(source))
    records = []
    for number, (question, choices, answer) in enumerate(zip(questions, options, answers), start=1):
        values = {"passage": article.get("article"), "question": question, "options": choices, "answer": answer}
        records.append((f"{source}, question {number}", {**values, "name": f"{name}:{number}", "level": level}))
    return records


def _make_question(source, values):
    """Returns a question from the values of its attributes; `answer` may be a letter or an index."""
    for name in ("passage", "question"):
        if not isinstance(values.get(name), str):
            raise InputError(f"{source}: no text of the {name}; add it, or leave the question out")
    options = values.get("options")
    if not _are_options(options):
        raise InputError(f"{source}: options must be a list of 2 to {len(LETTERS)} texts. Received: {quote(options)}")
    answer = _answer_index(source, values.get("answer"), len(options))
    return Question(values["passage"], values["question"], tuple(options), answer, values["name"], values.get("level"))


def _are_options(options, count=None):
    is_list = isinstance(options, list | tuple) and all(isinstance(option, str) for option in options)
    return is_list and 2 <= len(options) <= len(LETTERS) and len(options) == (count or len(options))


def _answer_index(source, answer, num_options):
    """Returns the index that a letter or an index stands for, None for what stands for no answer."""
    if answer is None or answer in UNKNOWN_LABELS:
        return None
    letters = LETTERS[:num_options]
    if isinstance(answer, str) and len(answer) == 1 and answer in letters:
        return letters.index(answer)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < num_options:
        return answer
    raise InputError(
        f"{source}: the answer must be a letter from A to {letters[-1]} or an index from 0 to {num_options - 1}. "
        f"Received: {quote(answer)}"
    )


MAX_QA_LENGTH = 128
_BLANK = "_"
# So many questions are encoded at once: what is computed on the way takes several times the room of the result.
_QUESTIONS_AT_ONCE = 512


class MultipleChoice(FinetuningTask):
    """Cross-entropy over the options of a question, each scored by itself. Examples are `Question`s.

    A prediction is a dictionary of the "label" (the letter of an option), the "option" and the "probabilities" of all
    options by letter.

    Args:
        num_choices: How many options each question has.
        max_qa_length: Most tokens of question and option.
        levels: Which of RACE's levels are read; none for JSON lines.
        on_bad_row: Whether to stop at a question that can't be used ("fail"), or to leave it out ("skip").
    """

    kind = TaskKind("race", OF_OPTION, num_outputs=1)
    metric_names = ("accuracy",)
    setting_types = MappingProxyType({"num_choices": int, "max_qa_length": int, "levels": list[str]})
    selection_metric = "accuracy"
    adds_dropout = False  # each option has masks of its own, and what they differ by hides what the options differ by
    usual_max_seq_length = 512
    error_columns = ("id", "label", "prediction", "probability", "question", "answer", "chosen")
    input_fields = ("passage", "question", OPTIONS)

    def __init__(
        self,
        config: AlbertConfig,
        num_choices: int = 4,
        max_qa_length: int = MAX_QA_LENGTH,
        levels: tuple[str, ...] = (),
        on_bad_row: str = "fail",
    ):
        self.config = config
        self.loss_coefficients = {"multiple_choice_loss": 1.0}
        self.scores_predictions = len(levels) > 1
        self.num_choices, self.max_qa_length, self.levels = num_choices, max_qa_length, tuple(levels)
        self._on_bad_row = on_bad_row

    def make_model(self, **options):
        return AlbertForMultipleChoice(self.config, **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs [None, choices, S], a teacher's answers, and `label_ids` [None]."""
        shape = [None, self.num_choices, max_seq_length]
        return {
            **{name: tf.TensorSpec(shape, spec.dtype) for name, spec in encoder_batch_spec(max_seq_length).items()},
            **self.taught_spec(self.num_choices),
            "label_ids": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def compute(self, batch, training, dropout_seed, model):
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        soft_labels = self.soft_labels if training else None
        loss, accuracy = labelled_cross_entropy(logits, batch["label_ids"], batch, self.weights(batch), soft_labels)
        return {"multiple_choice_loss": loss, "accuracy": accuracy}

    def products(self, batch_spec):
        _, num_choices, max_seq_length = batch_spec["input_ids"].shape
        return num_choices * classifier_products(self.config, max_seq_length, 1)

    def read(self, path, needs_labels=True):
        """Returns the `Question`s of a file of JSON lines, or of a folder of RACE."""
        return read_questions(path, self.levels, self.num_choices, needs_labels, self._on_bad_row)

    def read_unlabelled(self, path):
        levels = self.levels if tf.io.gfile.isdir(path) else ()
        questions = read_questions(path, levels, self.num_choices, False, self._on_bad_row)
        return [dataclasses.replace(question, answer=None) for question in questions]

    def differs_from(self, other):
        own, others = self.num_choices, other.num_choices
        return None if own == others else f"chooses from {others} options, but here there are {own}"

    def taught(self, examples, predictions):
        """Returns the logarithms of the teacher's probabilities, float32 [N, choices]."""
        return log_probabilities(predictions, tuple(LETTERS[: self.num_choices]))

    def encode(self, examples, tokenizer, max_seq_length):
        """Returns int32 [N, choices, S] inputs and `label_ids` [N], 0 without answer."""
        label_ids = np.array([question.answer or 0 for question in examples], np.int32)
        return {**encode_questions(tokenizer, examples, max_seq_length, self.max_qa_length), "label_ids": label_ids}

    def outputs(self, batch, model):
        """Returns `probabilities` float32 [B, choices]."""
        return {"probabilities": tf.nn.softmax(model(batch, training=False)["logits"])}

    def predict(self, examples, features, outputs):
        return [
            {
                "label": LETTERS[row.argmax()],
                "option": question.options[row.argmax()],
                "probabilities": dict(zip(LETTERS, map(float, row))),
            }
            for question, row in zip(examples, outputs["probabilities"])
        ]

    def write_predictions(self, path, examples, predictions):
        """Writes a line for each question: id, text, answer (empty if none), prediction, probability of each option."""
        probabilities = [f"p({letter})" for letter in LETTERS[: self.num_choices]]
        lines = [["id", "question", "label", "prediction", *probabilities]]
        for question, prediction in zip(examples, predictions):
            values = (f"{value:.4f}" for value in prediction["probabilities"].values())
            lines.append([question.name, question.question, _letter(question.answer), prediction["label"], *values])
        write_rows(path, lines)

    def score(self, examples, predictions):
        is_right = np.array([found["label"] == _letter(each.answer) for each, found in zip(examples, predictions)])
        scores = {"accuracy": float(is_right.mean())}
        for level in self.levels:
            is_of_level = np.array([question.level == level for question in examples])
            if is_of_level.any():
                scores[f"{level}_accuracy"] = float(is_right[is_of_level].mean())
        return scores

    def blind_scores(self, examples):
        counts = collections.Counter(question.answer for question in examples)
        answer = min(counts, key=lambda each: (-counts[each], each))
        return f"always {_letter(answer)}", self.score(examples, [{"label": _letter(answer)}] * len(examples))

    def mistake(self, example, prediction):
        """Returns the question, both letters, and how sure the model is of its own."""
        right, found = _letter(example.answer), prediction["label"]
        if right == found:
            return None
        probability = prediction["probabilities"][found]
        texts = example.question, example.options[example.answer], prediction["option"]
        return probability, [example.name, right, found, f"{probability:.4f}", *texts]

    def describe(self, path, examples, features):
        counts = [f"{sum(question.level == level for question in examples):,} {level}" for level in self.levels]
        of_levels = f" ({', '.join(counts)})" if counts else ""
        return [f"{len(examples):,} questions with {self.num_choices} options each in {path}{of_levels}"]

    def texts_of(self, example):
        return example.passage, example.question, *example.options

    def text_and_label(self, example):
        return example.passage, ""

    def examples_of(self, inputs):
        return asked_questions(inputs, self.num_choices)


def question_with_option(question: str, option: str) -> str:
    """Returns the question with the option in place of its "_"; where it has none, the option after it."""
    return question.replace(_BLANK, option) if _BLANK in question else f"{question} {option}"


def encode_questions(tokenizer, questions, max_seq_length, max_qa_length=MAX_QA_LENGTH) -> dict[str, np.ndarray]:
    """Encodes each of C options as `[CLS] passage [SEP] question with option [SEP]`.

    Of question and option the last tokens are kept, at most `max_qa_length` and at most half of those that fit; the end
    of the passage is cut off. Returns int32 [N, C, S] `input_ids`, `input_mask`, `segment_ids`; and int32 [N, C]
    `pieces_cut`, how many tokens are left out.
    """
    shape = [len(questions), len(questions[0].options), max_seq_length]
    features = {name: np.zeros(shape, np.int32) for name in encoder_batch_spec(max_seq_length)}
    features[CUT] = np.zeros(shape[:-1], np.int32)
    max_qa_length = min(max_qa_length, (max_seq_length - tokenizer.vocabulary.num_special(2)) // 2)
    for start in range(0, len(questions), _QUESTIONS_AT_ONCE):
        part = questions[start : start + _QUESTIONS_AT_ONCE]
        encoded = _encode_part(tokenizer, part, max_seq_length, max_qa_length)
        for name, values in encoded.items():
            features[name][start : start + len(part)] = tf.reshape(values, [len(part), *features[name].shape[1:]])
    return features


def _encode_part(tokenizer, questions, max_seq_length, max_qa_length):
    """Returns int32 [N C, S] inputs and [N C] `pieces_cut`; a passage of several questions is encoded once."""
    rows_of = {}
    rows = [rows_of.setdefault(question.passage, len(rows_of)) for question in questions for _ in question.options]
    passages = tf.gather(tokenizer.encode_ids(list(rows_of)), rows)
    texts = [question_with_option(question.question, option) for question in questions for option in question.options]
    ends = tokenizer.encode_ids(texts)
    features = pack_segments([passages, ends[:, -max_qa_length:]], tokenizer.vocabulary, max_seq_length)
    num_special = tokenizer.vocabulary.num_special(2)
    lengths = tf.cast(passages.row_lengths() + ends.row_lengths(), tf.int32) + num_special
    return {**features, CUT: lengths - tf.reduce_sum(features["input_mask"], axis=1)}


def _letter(answer):
    return "" if answer is None else LETTERS[answer]
