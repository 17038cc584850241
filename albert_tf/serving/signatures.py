"""The questions that exported models answer: a class for each form of answer, and its line in `SIGNATURES`.

Here are labels with probabilities, or numbers, for texts and pairs of texts; and what a pre-trained model says: the
embeddings of texts and of their tokens, and its guesses for masks. Inputs are the `input_fields` of the task
(finetuning/tasks/text_task.py). asking/answers.py spells the same outputs for exports without strings.
"""

import functools

import tensorflow as tf

from albert_tf.asking.answers import (
    DEFAULT,
    FILL_MASK,
    FIND_REPLACED,
    LENGTHS,
    PIECES,
    Answer,
    EntitiesAnswer,
    LabelAnswer,
    LabelsAnswer,
    ScoreAnswer,
    SpanAnswer,
)
from albert_tf.base.errors import InputError
from albert_tf.finetuning.tasks.labelled_text import NUM_SPECIAL
from albert_tf.modeling.heads import mean_state
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signature_base import Signatures, compute_by_length, slices
from albert_tf.serving.span_signatures import AnswerSignatures, EntitySignatures
from albert_tf.tokenization.model_inputs import cut_windows


class LabelSignatures(Signatures):
    """Of `Classification`: `text` string [N], and `text_pair` string [N] where the task reads pairs.

    Returns `label` string [N] and its `probability` float32 [N]; of all L labels `labels` string [N, L], each row the
    same, and `probabilities` float32 [N, L]. Logits of a long text are the mean of its windows'.
    """

    def functions(self):
        return {DEFAULT: self._of_texts}

    def _of_texts(self, *texts):
        if self._task.doc_stride is None:
            return self._answer(self._task_outputs(self._inputs.encode(*texts)))
        windows, rows = self._cut(self._tokenizer.encode_ids(*texts))
        outputs = self._task_outputs(self._inputs.pack(windows))
        return self._answer({name: tf.math.segment_mean(values, rows) for name, values in outputs.items()})

    def _cut(self, ids):
        """Returns the windows of texts, int32 [W, (tokens)], and the text of each, int32 [W]."""
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        rows, begins, ends = cut_windows(lengths, self._max_seq_length - NUM_SPECIAL, self._task.doc_stride)
        return slices(ids, rows, begins, ends), rows

    def _answer(self, outputs):
        probabilities = outputs["probabilities"] if "probabilities" in outputs else tf.nn.softmax(outputs["logits"])
        best = tf.gather(tf.constant(self._task.labels), tf.argmax(probabilities, axis=-1))
        return {"label": best, "probability": tf.reduce_max(probabilities, axis=-1), **self._of_all(probabilities)}

    def _of_all(self, probabilities):
        labels = tf.tile(tf.constant(self._task.labels)[None], [tf.shape(probabilities)[0], 1])
        return {"labels": labels, "probabilities": probabilities}


class LabelsSignatures(LabelSignatures):
    """Of `MultiLabel`: inputs as for `LabelSignatures`.

    `serving_default` returns, for K labels of the text with most of them, `labels` string [N, K] and `probabilities`
    float32 [N, K] of those that reach their thresholds, in the order of the task's labels, "" and 0 behind the last one
    of a text; and `lengths` int32 [N], how many labels each text has. `all_labels` returns of all L labels `labels`
    string [N, L], each row the same, and `probabilities` float32 [N, L].
    """

    def functions(self):
        return {
            DEFAULT: lambda *texts: self._given(self._shared(*texts)),
            LabelsAnswer.signature: lambda *texts: self._of_all(self._shared(*texts)),
        }

    @functools.cached_property
    def _shared(self):
        """The graph of all probabilities: one in both functions, so that the model is in the export once."""
        return tf.function(self._of_texts, autograph=False)

    def _answer(self, outputs):
        return outputs["probabilities"] if "probabilities" in outputs else tf.math.sigmoid(outputs["logits"])

    def _given(self, probabilities):
        is_given = probabilities >= tf.constant(self._task.thresholds, tf.float32)
        lengths = tf.reduce_sum(tf.cast(is_given, tf.int32), axis=-1)
        # Those that are given come first, each group in its order.
        most = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        order = tf.argsort(tf.cast(~is_given, tf.int32), axis=-1, stable=True)[:, :most]
        is_there = tf.sequence_mask(lengths, most)
        return {
            "labels": tf.where(is_there, tf.gather(tf.constant(self._task.labels), order), ""),
            "probabilities": tf.where(is_there, tf.gather(probabilities, order, batch_dims=1), 0.0),
            LENGTHS: lengths,
        }


class ScoreSignatures(LabelSignatures):
    """Of `Regression`: inputs as for `LabelSignatures`; returns `score` float32 [N]."""

    def _answer(self, outputs):
        return {"score": outputs["scores"]}


NUM_GUESSES = 10


class PretrainedSignatures(Signatures):
    """Of a model that was pre-trained and not fine-tuned; each takes `text` string [N].

    `serving_default` returns `mean` float32 [N, H], the average of the states of a text's tokens, [CLS] and [SEP] among
    them, and `pooled` float32 [N, H], the pooler's output; the latter is left out where nothing has trained a pooler,
    or where [CLS] sees nothing of the text.

    `pieces` returns, for S tokens of the longest text, `pieces` string [N, S], "" behind the last one of a text;
    `begins` and `ends` int32 [N, S], which characters of the text each stands for, 0 and 0 for [CLS] and [SEP]; their
    `embeddings` float32 [N, S, H]; and `lengths` int32 [N], how many tokens each text has.

    `fill_mask` reads texts with "[MASK]" for each token that is missing. It returns, for M masks of the text with most
    of them, `guesses` string [N, M, 10], the most probable tokens, their `probabilities` float32 [N, M, 10], "" and 0
    where a text has fewer masks, and `lengths` int32 [N], how many masks each has. It is left out where the folder
    lacks a head that guesses tokens.

    `find_replaced`, of a discriminator, returns for S tokens of the longest text, [CLS] and [SEP] left out, `pieces`,
    `begins`, `ends` and `lengths` as above, and `probabilities` float32 [N, S] of having been replaced, 0 behind the
    last token of a text.
    """

    def __init__(self, trained: TrainedModel, num_guesses: int = NUM_GUESSES):
        super().__init__(trained)
        self._abilities, self._pools, self._num_guesses = trained.abilities, trained.pools, num_guesses

    def functions(self):
        heads = {FILL_MASK: self._fill_mask, FIND_REPLACED: self._find_replaced}
        there = {name: function for name, function in heads.items() if name in self._abilities}
        return {DEFAULT: self._embed, PIECES: self._embed_pieces, **there}

    def _embed(self, text):
        return compute_by_length(self._embed_group, self._inputs.encode(text))

    def _embed_group(self, batch):
        outputs = self._encode(batch)
        mean = mean_state(outputs["sequence_output"], batch["input_mask"])
        return {"mean": mean, **({"pooled": outputs["pooled_output"]} if self._pools else {})}

    def _encode(self, batch):
        return {name: tf.cast(values, tf.float32) for name, values in self._model.encoder(batch).items()}

    def _embed_pieces(self, text):
        ids, *offsets = self._tokenizer.encode_with_offsets(text)
        batch = self._inputs.pack(ids)
        length = tf.shape(batch["input_ids"])[1]
        begins, ends = (_beside_special_tokens(values, length) for values in offsets)
        states = compute_by_length(lambda group: {"states": self._encode(group)["sequence_output"]}, batch)["states"]
        return {
            "pieces": self._pieces(batch["input_ids"], batch["input_mask"]),
            "begins": begins,
            "ends": ends,
            "embeddings": states,
            LENGTHS: tf.reduce_sum(batch["input_mask"], axis=1),
        }

    def _fill_mask(self, text):
        batch, positions = self._inputs.encode_masked(text)
        is_mask = tf.sequence_mask(positions.row_lengths())
        num_masks = tf.shape(is_mask)[1]

        def guess(group):
            """Returns the guesses and their probabilities [G, 10, M], so that the masks, M in all groups, come last."""
            probabilities = tf.nn.softmax(self._model(group)["masked_lm_logits"])
            found = tf.math.top_k(probabilities, min(self._num_guesses, probabilities.shape[-1]))
            missing = [[0, 0], [0, num_masks - tf.shape(probabilities)[1]], [0, 0]]
            return {
                name: tf.linalg.matrix_transpose(tf.pad(values, missing)) for name, values in found._asdict().items()
            }

        # A group at a time, for of each mask there is a probability of each piece of the vocabulary.
        found = compute_by_length(guess, {**batch, "masked_lm_positions": positions.to_tensor()})
        ids, probabilities = (tf.linalg.matrix_transpose(found[name]) for name in ("indices", "values"))
        return {
            "guesses": self._pieces(ids, tf.cast(is_mask[..., None], tf.int32)),
            "probabilities": tf.where(is_mask[..., None], probabilities, 0.0),
            LENGTHS: tf.cast(positions.row_lengths(), tf.int32),
        }

    def _find_replaced(self, text):
        ids, *offsets = self._tokenizer.encode_with_offsets(text)
        batch = self._inputs.pack(ids)
        lengths = tf.reduce_sum(batch["input_mask"], axis=1) - 2
        most = tf.maximum(0, tf.shape(batch["input_ids"])[1] - 2)  # where there is no text, nothing is
        is_there = tf.sequence_mask(lengths, most)
        found = compute_by_length(lambda group: {"logits": self._model(group)["replaced_token_logits"]}, batch)
        begins, ends = (tf.cast(values.to_tensor(shape=[None, None]), tf.int32)[:, :most] for values in offsets)
        return {
            "pieces": self._pieces(batch["input_ids"][:, 1:-1], tf.cast(is_there, tf.int32)),
            "begins": tf.where(is_there, begins, 0),
            "ends": tf.where(is_there, ends, 0),
            "probabilities": tf.where(is_there, tf.math.sigmoid(found["logits"][:, 1:-1]), 0.0),
            LENGTHS: lengths,
        }

    def _pieces(self, ids, is_there):
        pieces = tf.gather(tf.constant(self._tokenizer.vocabulary.pieces), ids)
        return tf.where(is_there > 0, pieces, "")


def _beside_special_tokens(values, length):
    """Returns [N, (pieces)] as int32 [N, length], 0 for [CLS], [SEP] and padding, what was cut off left out."""
    values = tf.cast(values[:, : length - 2], tf.int32).to_tensor()
    return tf.pad(values, [[0, 0], [1, length - 1 - tf.shape(values)[1]]])


# By how a task's answers are spelt.
SIGNATURES: dict[type[Answer], type[Signatures]] = {
    LabelAnswer: LabelSignatures,
    LabelsAnswer: LabelsSignatures,
    ScoreAnswer: ScoreSignatures,
    SpanAnswer: AnswerSignatures,
    EntitiesAnswer: EntitySignatures,
}


def make_signatures(trained: TrainedModel, num_guesses: int = NUM_GUESSES) -> Signatures:
    """Returns the signatures of a model, `num_guesses` for a mask; InputError if its task can't be exported."""
    if trained.task is None:
        return PretrainedSignatures(trained, num_guesses)
    if trained.task.kind.answer not in SIGNATURES:
        raise InputError(
            f"a model fine-tuned for {type(trained.task).__name__} can't be exported; ask it by albert_tf.load(folder)"
        )
    return SIGNATURES[trained.task.kind.answer](trained)
