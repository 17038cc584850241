"""Fine-tuning to find the answer to a question in a text.

Of two heads one finds each end by itself (original run_squad_v1.py), the other the end given the beginning (_v2.py).
"""

import dataclasses
import functools
import os
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import SpanAnswer
from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import write_json
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.task import CUT, OF_CONDITIONAL_SPAN, OF_SPAN, FinetuningTask, TaskKind, describe_cuts
from albert_tf.finetuning.tasks.question_windows import (
    SpanOptions,
    Spans,
    WindowOptions,
    best_candidates,
    best_spans,
    encode_questions,
    rows_of_questions,
)
from albert_tf.finetuning.tasks.squad import (
    DEFAULT_METRICS,
    METRICS,
    Question,
    best_threshold,
    read_questions,
)
from albert_tf.modeling import AlbertForConditionalQuestionAnswering, AlbertForQuestionAnswering
from albert_tf.modeling.conditional_answers import IMPOSSIBLE
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import encoder_batch_spec, encoder_products

# By which rules the results beside it were computed, which are numbers alone.
EVAL_SETTINGS_FILE = "eval_settings.json"

# Of features: what a teacher says of the first and of the last piece, float32 [N, S].
TAUGHT = {"start": "teacher_start_logits", "end": "teacher_end_logits"}
# Given which first piece the teacher tells the last one, int32 [N], and its logit of no answer.
_TAUGHT_START, _TAUGHT_NULL = "teacher_start_positions", "teacher_null_logits"


class QuestionAnswering(FinetuningTask):
    """The mean of the cross-entropies of the first and of the last token of the answer. Examples are `Question`s.

    Where these positions are unknown, -1, an example weighs nothing. Accuracies are over the examples that hold the
    answer. No answer is the span from [CLS] to [CLS], positions 0.

    A prediction is a dictionary: "id"; "text", the answer, empty for none; "begin" and "end", where it stands in the
    context, in characters, None for none; "nbest", the best spans and their scores; and, if questions may have no
    answer, "null_odds", the logits of no answer less those of the best span.

    Args:
        window_options: How texts are cut.
        span_options: Which spans can be an answer.
        may_be_unanswerable: Whether a question may have no answer in its text, as in SQuAD 2.0 and KLUE-MRC.
        null_threshold: The "null_odds" above which no answer is given.
        metrics: Of `METRICS`, the rules that `score` follows.
        on_bad_row: Whether to stop at a question that can't be used ("fail"), or to leave it out ("skip").

    Attributes:
        head: The value of the setting `head` for it.
    """

    kind = TaskKind("squad", OF_SPAN, SpanAnswer, num_outputs=2)
    head = "independent"
    metric_names = ("start_accuracy", "end_accuracy")
    loss_coefficients = MappingProxyType({"span_loss": 1.0})
    predictions_file = "predictions.json"
    scores_predictions = True
    setting_types = MappingProxyType({"doc_stride": int, "max_query_length": int, "version_2_with_negative": bool})
    usual_max_seq_length = 384
    answers_pieces = True
    # What aligns questions begins from nothing, as the head does.
    highest_learning_rate = 5e-4
    input_fields = ("question", "context")

    def __init__(
        self,
        config: AlbertConfig,
        window_options: WindowOptions | None = None,
        span_options: SpanOptions | None = None,
        may_be_unanswerable: bool = False,
        null_threshold: float = 0.0,
        metrics: str = DEFAULT_METRICS,
        on_bad_row: str = "fail",
    ):
        self.config = config
        self.window_options = window_options or WindowOptions()
        self.span_options = span_options or SpanOptions()
        self.may_be_unanswerable = may_be_unanswerable
        self.null_threshold = null_threshold
        self.metrics, self._on_bad_row = metrics, on_bad_row
        self.selection_metric = METRICS[metrics].overlap_name

    def make_model(self, **options):
        return AlbertForQuestionAnswering(self.config, **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs, both positions, and a teacher's answers for each token."""
        taught = TAUGHT.values() if self.soft_labels else ()
        return {
            **encoder_batch_spec(max_seq_length),
            "start_positions": tf.TensorSpec([None], tf.int32),
            "end_positions": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
            **dict.fromkeys(taught, tf.TensorSpec([None, max_seq_length], tf.float32)),
        }

    def weights(self, batch):
        """Returns the weight of each example, float32 [B], 0 where its answer is unknown."""
        return batch["example_weights"] if self.soft_labels else _known_weights(batch)

    def compute(self, batch, training, dropout_seed, model):
        return self.compute_spans(batch, training, model(batch, training=training, dropout_seed=dropout_seed))

    def compute_spans(self, batch, training, logits):
        """Returns the loss, mixed with that of a teacher's answers, and the accuracies of `start_` and `end_logits`."""
        weights = self.weights(batch) if training else _known_weights(batch)
        # A text is read in many windows, most of which hold no answer: that [CLS] is found there says little.
        of_answers = batch["example_weights"] * tf.cast(batch["start_positions"] > 0, tf.float32)
        sums, accuracies = [], {}
        for name, taught in TAUGHT.items():
            found, positions = logits[f"{name}_logits"], tf.maximum(batch[f"{name}_positions"], 0)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(positions, found)
            if training and self.soft_labels is not None:
                padding = (1.0 - tf.cast(batch["input_mask"], tf.float32)) * HIDDEN_SCORE
                losses = self._mixed(losses, self.soft_labels.divergence(found, batch[taught], padding), batch)
            sums.append(tf.reduce_sum(losses * weights))
            _, accuracies[f"{name}_accuracy"] = weighted_cross_entropy(found, positions, of_answers)
        return {"span_loss": (0.5 * sum(sums), tf.reduce_sum(weights)), **accuracies}

    def _mixed(self, losses, soft_losses, batch):
        return self.soft_labels.mix(losses, soft_losses, tf.cast(batch["start_positions"] >= 0, tf.float32))

    def products(self, batch_spec):
        """Returns those of the encoder, and S 2 H of the head; to align questions takes S^2 2 E + S 3 E^2 more."""
        max_seq_length = batch_spec["input_ids"].shape[1]
        head = max_seq_length * 2 * self.config.hidden_size
        if self.config.question_alignment == "words":
            size = self.config.embedding_size
            head += max_seq_length**2 * 2 * size + max_seq_length * 3 * size**2
        return encoder_products(self.config, max_seq_length, max_seq_length) + head

    def soft_features(self, examples, features, teacher):
        """Returns the teacher's logits of the first and the last piece, float32 [N, S]."""
        logits = teacher.compute(teacher.task.outputs, features)
        return {taught: logits[f"{name}_logits"] for name, taught in TAUGHT.items()}

    def outputs(self, batch, model):
        """Returns `start_logits` and `end_logits` float32 [B, S]."""
        logits = model(batch, training=False)
        return {name: logits[name] for name in ("start_logits", "end_logits")}

    def _find_spans(self, features, outputs, row, is_allowed):
        """Returns the `Spans` of a window; arguments as for `predict`, and of `find_spans` in `best_candidates`."""
        first = features["context_positions"][row]
        text = slice(first, first + len(is_allowed))
        start_logits, end_logits = outputs["start_logits"][row, text], outputs["end_logits"][row, text]
        return best_spans(start_logits, end_logits, is_allowed, self.span_options.n_best_size)

    def _null_scores(self, outputs):
        return outputs["start_logits"][:, 0] + outputs["end_logits"][:, 0]

    def null_odds(self, null_score, best_score):
        """Returns how much more speaks for no answer than for the best span, 0 where both are as good."""
        return null_score - best_score

    def read(self, path, needs_labels=True):
        questions = read_questions(path, needs_labels, self._on_bad_row)
        impossible = [question for question in questions if question.is_impossible]
        if impossible and needs_labels and not self.may_be_unanswerable:
            raise InputError(
                f"{path}: {len(impossible):,} questions have no answer, the first of them {shorten(impossible[0].id)}; "
                "pass `version_2_with_negative`, or leave them out"
            )
        return questions

    def read_unlabelled(self, path):
        questions = read_questions(path, False, self._on_bad_row)
        return [dataclasses.replace(question, answers=(), is_impossible=False) for question in questions]

    def differs_from(self, other):
        if other.may_be_unanswerable != self.may_be_unanswerable:
            knows = {True: "allows questions without answers", False: "does not allow questions without answers"}
            return f"{knows[other.may_be_unanswerable]}, but here it is the other way round (version_2_with_negative)"
        return None

    def encode(self, examples, tokenizer, max_seq_length):
        return encode_questions(examples, tokenizer, max_seq_length, self.window_options)

    def predict(self, examples, features, outputs):
        find_spans = functools.partial(self._find_spans, features, outputs)
        contexts = [question.context for question in examples]
        candidates = best_candidates(contexts, features, find_spans, self.span_options)
        rows, null_scores = rows_of_questions(features, len(examples)), self._null_scores(outputs)
        # A window without the answer says so; one window that holds it is enough.
        return [
            self._choose(question, best, float(null_scores[of_question].min()))
            for question, best, of_question in zip(examples, candidates, rows)
        ]

    def _choose(self, question, candidates, null_score):
        """Returns the prediction for a question from its candidates, the best first."""
        scores = np.array([candidate.score for candidate in candidates])
        probabilities = np.exp(scores - scores.max(initial=-np.inf))
        nbest = [
            {**vars(candidate), "probability": float(probability)}
            for candidate, probability in zip(candidates, probabilities / probabilities.sum())
        ]
        score = nbest[0]["score"] if nbest else None
        prediction = {"id": question.id, "text": "", "begin": None, "end": None, "score": score, "nbest": nbest}
        if self.may_be_unanswerable:
            prediction["null_odds"] = self.null_odds(null_score, nbest[0]["score"]) if nbest else 0.0
        if nbest and prediction.get("null_odds", -np.inf) <= self.null_threshold:
            prediction.update({name: nbest[0][name] for name in ("text", "begin", "end")})
        return prediction

    def describe_cuts(self, features, max_seq_length, where=""):
        kept = (features["context_positions"][features["context_begins"] == 0] - 2).sum()
        limit = f"max_query_length is {self.window_options.max_query_length}, and counts up to half of max_seq_length"
        return describe_cuts(features[CUT], kept, "question", where, limit)

    def score(self, examples, predictions):
        """Returns exact match and F1, or ROUGE-W, in percent."""
        # If questions may have no answer, those of answerable and unanswerable questions are there, too, and the best
        # that any threshold would give, under the names that SQuAD's script has for them.
        metrics = METRICS[self.metrics]
        answers = [[answer.text for answer in question.answers] for question in examples]

        def compare(texts):
            return np.array(
                [metrics.compare(text, given, self.may_be_unanswerable) for text, given in zip(texts, answers)]
            )

        names = ("exact", metrics.overlap_name)
        values = compare([prediction["text"] for prediction in predictions])
        scores = dict(zip(("exact_match", metrics.overlap_name), _percent(values)))
        if not self.may_be_unanswerable:
            return scores
        has_answer = np.array([not question.is_impossible for question in examples])
        for prefix, chosen in (("HasAns", has_answer), ("NoAns", ~has_answer)):
            if chosen.any():
                scores.update({f"{prefix}_{name}": value for name, value in zip(names, _percent(values[chosen]))})
            scores[f"{prefix}_total"] = int(chosen.sum())
        best_texts = [prediction["nbest"][0]["text"] if prediction["nbest"] else "" for prediction in predictions]
        # Where SQuAD's script looks for a threshold, a lone article is an answer, too, and wrong where there is none.
        if_answered = np.where(has_answer[:, None], compare(best_texts), [[not text] for text in best_texts])
        null_odds = np.array([prediction["null_odds"] for prediction in predictions])
        for name, column in zip(names, if_answered.T):
            scores[f"best_{name}"], scores[f"best_{name}_thresh"] = best_threshold(column, has_answer, null_odds)
        return scores

    def blind_scores(self, examples):
        scores = self.score(examples, [{"text": "", "nbest": [], "null_odds": 1.0}] * len(examples))
        return "always no answer", {name: scores[name] for name in scores if not name.startswith("best_")}

    def reports(self):
        return {EVAL_SETTINGS_FILE: lambda path, *_: write_json(path, {"metrics": self.metrics}), **super().reports()}

    @property
    def error_columns(self) -> tuple[str, ...]:
        return "id", "question", "answers", "prediction", METRICS[self.metrics].overlap_name

    def mistake(self, example, prediction):
        """Returns the question, the answers, the one found, and its F1, or ROUGE-W, of an answer not exactly right."""
        answers = [answer.text for answer in example.answers]
        exact, overlap = METRICS[self.metrics].compare(prediction["text"], answers, self.may_be_unanswerable)
        if exact >= 1:
            return None
        texts = example.question, " | ".join(dict.fromkeys(answers)), prediction["text"]
        return -overlap, [example.id, *texts, f"{100 * overlap:.1f}"]

    def write_predictions(self, path, examples, predictions):
        """Writes the answers by question, beside them nbest_predictions.json and, if there are any, null_odds.json."""
        # The answers are in the form that official evaluation scripts read. They come last: where they are, all are.
        folder, name = os.path.split(path)
        contents = {"nbest_predictions": "nbest", "null_odds": "null_odds", "predictions": "text"}
        for beginning, key in contents.items():
            values = {prediction["id"]: prediction[key] for prediction in predictions if key in prediction}
            if values:
                write_json(os.path.join(folder, name.replace("predictions", beginning, 1)), values)

    def describe(self, path, examples, features):
        """Returns how many questions, texts and windows there are, and which answers can't be learnt exactly."""
        num_texts, num_windows = len({question.context for question in examples}), len(features["input_ids"])
        length = features["input_ids"].shape[1]
        lines = [
            f"{len(examples):,} questions about {num_texts:,} texts in {path}: {num_windows:,} windows of up to "
            f"{length} pieces"
        ]
        impossible = sum(question.is_impossible for question in examples)
        if impossible:
            lines.append(f"{impossible:,} of the questions have no answer")
        inside = len(set(features["question_indices"][~features["is_on_borders"]].tolist()))
        if inside:
            lines.append(f"{inside:,} answers begin or end within a piece: what is learnt for them is a little longer")
        unknown = np.unique(features["question_indices"][features["start_positions"] < 0])
        if len(unknown):
            left = "only the teacher's answers to these are learnt"
            if self.soft_labels is None:
                left = "these questions are not trained on"
            lines.append(
                f"warning: {len(unknown):,} answers are not at their answer_start, the first of them that of question "
                f"{examples[unknown[0]].id}; {left}"
            )
        return lines

    def texts_of(self, example):
        return example.question, example.context

    def text_and_label(self, example):
        return example.context, ""

    def examples_of(self, inputs):
        for number, value in enumerate(inputs):
            is_pair = isinstance(value, list | tuple) and len(value) == 2
            if not is_pair or not all(isinstance(text, str) for text in value):
                raise InputError(
                    f"input {number} must be a question and the text that answers it. Received: {quote(value)}"
                )
        return [Question(str(number), question, context) for number, (question, context) in enumerate(inputs)]

    @classmethod
    def from_settings(cls, config, settings):
        window_options = WindowOptions(settings["doc_stride"], settings["max_query_length"])
        return cls(config, window_options, may_be_unanswerable=settings["version_2_with_negative"])

    def settings(self):
        return {**vars(self.window_options), "version_2_with_negative": self.may_be_unanswerable}


class ConditionalQuestionAnswering(QuestionAnswering):
    """As `QuestionAnswering`, but the last token is found given the first, and whether there is an answer is learnt.

    The cross-entropy of the latter counts half. "null_odds" are the logit that there is no answer, of the window that
    is surest of one. A teacher's last tokens are given the first token of the answer too; where that is unknown, the
    one that the teacher finds best.
    """

    kind = TaskKind("squad_v2", OF_CONDITIONAL_SPAN, SpanAnswer, num_outputs=3)
    head = "conditional"
    metric_names = ("start_accuracy", "end_accuracy", "answerability_accuracy")
    loss_coefficients = MappingProxyType({"span_loss": 1.0, "answerability_loss": 0.5})

    def make_model(self, **options):
        return AlbertForConditionalQuestionAnswering(self.config, **options)

    def batch_spec(self, max_seq_length):
        dtypes = {_TAUGHT_START: tf.int32, _TAUGHT_NULL: tf.float32} if self.soft_labels else {}
        taught = {name: tf.TensorSpec([None], dtype) for name, dtype in dtypes.items()}
        return {**super().batch_spec(max_seq_length), **taught}

    def compute(self, batch, training, dropout_seed, model):
        is_taught, inputs = training and self.soft_labels is not None, dict(batch)
        if is_taught:
            taught, inputs["start_positions"] = inputs.pop(_TAUGHT_NULL), inputs.pop(_TAUGHT_START)
        logits = model(inputs, training=training, dropout_seed=dropout_seed)
        results, found = self.compute_spans(batch, training, logits), logits["null_logits"]
        has_none = tf.cast(tf.equal(batch["start_positions"], 0), tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(has_none, found)
        if is_taught:
            soft_losses = self.soft_labels.divergence_of_each(found[:, None], taught[:, None])
            losses = self._mixed(losses, soft_losses, batch)
        weights, known = self.weights(batch) if training else _known_weights(batch), _known_weights(batch)
        is_right = tf.cast(tf.equal(found > 0, has_none > 0), tf.float32)
        return {
            **results,
            "answerability_loss": (tf.reduce_sum(losses * weights), tf.reduce_sum(weights)),
            "answerability_accuracy": (tf.reduce_sum(is_right * known), tf.reduce_sum(known)),
        }

    def products(self, batch_spec):
        # Of the last positions S H^2 + H^2, of whether there is an answer S H + 2 H^2 + H.
        hidden_size, max_seq_length = self.config.hidden_size, batch_spec["input_ids"].shape[1]
        end = (max_seq_length + 1) * hidden_size**2
        answerability = max_seq_length * hidden_size + 2 * hidden_size**2 + hidden_size
        return super().products(batch_spec) + end + answerability

    def soft_features(self, examples, features, teacher):
        """Returns the teacher's logits of both pieces, float32 [N, S], and of no answer."""

        def compute(batch, model):
            inputs, known = dict(batch), batch["start_positions"]
            del inputs["start_positions"]
            best = tf.argmax(model(inputs, training=False)["start_logits"], axis=-1, output_type=tf.int32)
            starts = tf.where(known >= 0, known, best)
            return {**model({**inputs, "start_positions": starts}, training=False), _TAUGHT_START: starts}

        outputs = teacher.compute(compute, features)
        logits = {taught: outputs[f"{name}_logits"] for name, taught in TAUGHT.items()}
        return {**logits, _TAUGHT_START: outputs[_TAUGHT_START], _TAUGHT_NULL: outputs["null_logits"]}

    def outputs(self, batch, model):
        options = self.span_options
        return model.search(batch, options.start_n_top, options.end_n_top, options.max_answer_length)

    def _find_spans(self, features, outputs, row, is_allowed):
        first = features["context_positions"][row]
        ends = outputs["end_positions"][row] - first
        starts = np.broadcast_to(outputs["start_positions"][row][:, None] - first, ends.shape)
        scores = outputs["start_log_probs"][row][:, None] + outputs["end_log_probs"][row]
        # Where there are too few spans, and where outputs were filled up, are positions outside the text.
        lengths = ends - starts
        is_span = (starts >= 0) & (lengths >= 0) & (lengths < is_allowed.shape[1]) & (ends < len(is_allowed))
        starts, lengths, scores = starts[is_span], lengths[is_span], scores[is_span]
        is_span = is_allowed[starts, lengths] & (scores > IMPOSSIBLE / 2)
        return Spans(starts[is_span], (starts + lengths)[is_span], scores[is_span])

    def _null_scores(self, outputs):
        return outputs["null_logits"]

    def null_odds(self, null_score, best_score):
        return null_score


def _known_weights(batch):
    """Returns the weights of the examples, float32 [B], 0 where the answer's position is unknown."""
    return batch["example_weights"] * tf.cast(batch["start_positions"] >= 0, tf.float32)


def _percent(values):
    """Returns the means of [Q, 2] in percent, two numbers."""
    return (100.0 * values.mean(axis=0)).tolist()
