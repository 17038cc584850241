"""Fine-tuning to find named entities."""

import dataclasses
import re
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import EntitiesAnswer
from albert_tf.base.errors import InputError, listed, shorten
from albert_tf.base.files import to_json, write_text
from albert_tf.base.texts import read_texts
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.linear_models import LinearModel
from albert_tf.finetuning.soft_labels import TAUGHT, labelled_cross_entropy
from albert_tf.finetuning.task import OF_PIECE, FinetuningTask, TaskKind
from albert_tf.finetuning.tasks.tag_alignment import (
    IGNORED,
    characters_around,
    count_split_pieces,
    encode_tagged,
    tags_of_units,
    unread_units,
    without_units,
)
from albert_tf.finetuning.tasks.tagged_text import (
    METRICS,
    OUTSIDE,
    TaggedText,
    entities_of,
    leave_out,
    may_follow,
    normalize_tag,
    read_tagged,
    units_of,
)
from albert_tf.modeling import AlbertForTokenClassification
from albert_tf.modeling.heads import CHARACTERS_SHAPE
from albert_tf.objectives.objective import encoder_batch_spec, encoder_products
from albert_tf.reading.rows import tell_once

# A linear model that tags words or characters by the characters around them: what a fine-tuned model has to beat.

# Measured: 6,500 sentences of Naver's data set, 330,000 characters, take eight seconds of a core.
MOST_CHARACTERS = 400_000

# More of them, and n-grams further away, gain a point and take twice the time.
_EPOCHS, _REACH, _LONGEST = 5, 2, 3
# Of so many units, what is true of one alone is left out; of few nothing may be lost.
_MANY_UNITS = 1000


def tag(train: list[TaggedText], dev: list[TaggedText]) -> list[list[str]]:
    """Returns the tags of each text of `dev`, one a unit: the best sequence where every I- goes on with its entity."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import SGDClassifier

    train_units = [each for text in train for each in _features(text)]
    vectorizer = CountVectorizer(analyzer=list, min_df=2 if len(train_units) > _MANY_UNITS else 1, dtype=np.float32)
    # A support vector machine, whose weights are averaged over the steps as a perceptron's.
    model = SGDClassifier(alpha=1e-6, max_iter=_EPOCHS, tol=None, average=True, random_state=0)
    model.fit(vectorizer.fit_transform(train_units), [each for text in train for each in text.tags])
    dev_units = [each for text in dev for each in _features(text)]
    scores = model.decision_function(vectorizer.transform(dev_units)) if dev_units else np.zeros([0, 2])
    if scores.ndim == 1:  # of two tags
        scores = np.stack([-scores, scores], axis=1)
    is_allowed = _allowed_successions(model.classes_)
    ends = np.cumsum([len(text.units) for text in dev])
    found = [_best_sequence(each, is_allowed) for each in np.split(scores, ends[:-1])]
    return [model.classes_[sequence].tolist() if sequence else [] for sequence in found]


def _features(text):
    """Returns the features of each unit: n-grams around its first and its last character, and three words."""
    padded = " " * (_REACH + 1) + text.text + " " * (_REACH + 1)
    words = [match.span() for match in re.finditer(r"\S+", text.text)]
    word, units = 0, []
    for begin, end in text.units:
        while words[word][1] <= begin:
            word += 1
        found = [f"{n}{place}{gram}" for n, place, gram in _grams(padded, begin + _REACH + 1, "b")]
        if end - begin > 1:
            found += [f"{n}{place}{gram}" for n, place, gram in _grams(padded, end + _REACH, "e")]
        for shift in (-1, 0, 1):
            if 0 <= word + shift < len(words):
                first, last = words[word + shift]
                found.append(f"w{shift}{text.text[first:last]}")
        found.append(f"p{begin - words[word][0]}")
        units.append(found)
    return units


def _grams(text, place, anchor):
    for n in range(1, _LONGEST + 1):
        for shift in range(-_REACH, _REACH - n + 2):
            yield n, f"{anchor}{shift}", text[place + shift : place + shift + n]


def _allowed_successions(tags):
    """Returns whether a tag (column) may follow another (row), bool [tags + 1, tags]; the last row is the beginning."""
    return np.array([[may_follow(before, each) for each in tags] for before in (*tags, OUTSIDE)])


def _best_sequence(scores, is_allowed):
    """Returns the allowed sequence with the highest sum of scores [units, tags] (Viterbi 1967)."""
    if not len(scores):
        return []
    costs = np.where(is_allowed, 0.0, -np.inf)
    best, origins = scores[0] + costs[-1], []
    for row in scores[1:]:
        sums = best[:, None] + costs[:-1]
        origins.append(sums.argmax(axis=0))
        best = sums.max(axis=0) + row
    path = [int(best.argmax())]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return path[::-1]


INDEPENDENT, BEST_SEQUENCE = DECODINGS = ("independent", "best_sequence")

# Added where a tag may not follow another.
_IMPOSSIBLE = -1e30

# KLUE-NER's (Park et al. 2021, section 3.4).
_KLUE_TYPES = ("DT", "LC", "OG", "PS", "QT", "TI")


def labels_for(types: tuple[str, ...]) -> tuple[str, ...]:
    """Returns all tags of some types of entities: O, and B- and I- of each."""
    return (OUTSIDE, *(f"{prefix}-{kind}" for kind in types for prefix in "BI"))


class Entities(FinetuningTask):
    """Cross-entropy over the tags, where a word or character is read. Examples are `TaggedText`s.

    A prediction is a dictionary: "entities", each with its "type", its "text" and where that stands, "begin" and "end"
    in characters; and "tags", one for each word, or for each character other than spaces. If the tokenizer leaves
    nothing of some of these, "unread" lists their indices: they make and break no entity, and no measure counts them.

    Args:
        types: The types of entities; by default those of KLUE-NER.
        form: The form of files: "words", "characters" or "conll".
        metrics: Names of `METRICS`; the first decides which checkpoint is best.
        on_bad_row: Whether to stop at a line that can't be used ("fail"), or to leave its sentence out ("skip").
        decoding: "independent", the most probable tag of each word or character, or "best_sequence", of all tags of a
            sentence those that make the most probable entities.

    Raises:
        InputError: There is no such `decoding`.
    """

    kind = TaskKind("tag", OF_PIECE, EntitiesAnswer)
    metric_names = ("tag_accuracy",)
    setting_types = MappingProxyType({"types": list[str], "form": str})
    predictions_file = "predictions.jsonl"
    scores_predictions = True
    answers_pieces = True
    error_columns = ("line", "missed", "wrong", "text")
    highest_learning_rate = 1e-3  # measured: see docs/entities.md

    def __init__(
        self,
        config: AlbertConfig,
        types: tuple[str, ...] = _KLUE_TYPES,
        form: str = "characters",
        metrics: tuple[str, ...] = ("entity_f1",),
        on_bad_row: str = "fail",
        decoding: str = INDEPENDENT,
    ):
        if decoding not in DECODINGS:
            raise InputError(f"`decoding` must be one of {', '.join(DECODINGS)}. Received: {decoding}")
        self.config, self.labels = config, labels_for(types)
        self.loss_coefficients = {"tag_loss": 1.0}
        self.selection_metric = metrics[0]
        self.types, self.form, self._metrics, self._on_bad_row = tuple(types), form, metrics, on_bad_row
        self.decoding, self._first_read = decoding, None
        self.reads_beside_ids = decoding == BEST_SEQUENCE or config.character_ngrams

    def make_model(self, **options):
        return AlbertForTokenClassification(self.config, len(self.labels), **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs, `label_ids` int32 [None, S] and what the head reads."""
        characters = {"characters": tf.TensorSpec([None, max_seq_length, *CHARACTERS_SHAPE], tf.int32)}
        return {
            **encoder_batch_spec(max_seq_length),
            **(characters if self.config.character_ngrams else {}),
            **self.taught_spec(max_seq_length, len(self.labels)),
            "label_ids": tf.TensorSpec([None, max_seq_length], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def weights(self, batch):
        """Returns 1 where a tag is known, of examples that count: float32 [B, S]."""
        return batch["example_weights"][:, None] * tf.cast(batch["label_ids"] != IGNORED, tf.float32)

    def compute(self, batch, training, dropout_seed, model):
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        label_ids, soft_labels = tf.maximum(batch["label_ids"], 0), self.soft_labels if training else None
        loss, accuracy = labelled_cross_entropy(logits, label_ids, batch, self.weights(batch), soft_labels)
        return {"tag_loss": loss, "tag_accuracy": accuracy}

    def products(self, batch_spec):
        """Returns those of the encoder, and S labels H of the head."""
        length = batch_spec["input_ids"].shape[1]
        return encoder_products(self.config, length, length) + length * len(self.labels) * self.config.hidden_size

    def read(self, path, needs_labels=True):
        """Returns the sentences of a file as `TaggedText`s."""
        texts = self._read(path, needs_labels)
        for text in texts:
            unknown = set(text.tags or ()) - set(self.labels)
            if unknown:
                raise InputError(
                    f"{path}, line {text.line}: the tag {shorten(min(unknown))} belongs to none of the types "
                    f"{listed(self.types)}; correct the line, or name all types with `types`"
                )
        return texts

    def read_unlabelled(self, path):
        return [dataclasses.replace(text, tags=None) for text in self._read(path, False)]

    def _read(self, path, needs_tags):
        """Reads a file, and warns if its words stand in another column than those of the first one."""
        texts = read_tagged(path, self.form, needs_tags, self._on_bad_row)
        first, column = self._first_read = self._first_read or (path, texts[0].column)
        if column != texts[0].column:
            tell_once(
                f"warning: words are read off column {texts[0].column + 1} of {path}, and off column {column + 1} of "
                f"{first}; if one of them is a running number, number both files alike, or neither"
            )
        return texts

    def differs_from(self, other):
        if set(other.types) != set(self.types):
            return f"finds {', '.join(other.types)}, but here it is {', '.join(self.types)}"
        if other.reads_words != self.reads_words:
            kinds = {True: "words", False: "characters"}
            return f"tags {kinds[other.reads_words]}, and not {kinds[self.reads_words]}"
        return None

    def soft_features(self, examples, features, teacher):
        """Returns the teacher's logits of this task's labels, float32 [N, S, labels]."""
        own = teacher.task.encode(examples, teacher.tokenizer, features["input_ids"].shape[1])
        logits = teacher.compute(lambda batch, model: {"logits": model(batch)["logits"]}, own)["logits"]
        return {TAUGHT: logits[..., [teacher.task.labels.index(label) for label in self.labels]]}

    def encode(self, examples, tokenizer, max_seq_length):
        """Returns the features of `encode_tagged`, and where they are read, `characters`."""
        features = encode_tagged(examples, self.labels, tokenizer, max_seq_length)
        if self.config.character_ngrams:
            features["characters"] = characters_around(examples, features)
        return features

    def outputs(self, batch, model):
        """Returns `found_ids` int32 [B, S], the tags that the logits speak for."""
        logits = model(batch, training=False)["logits"]
        if self.decoding == BEST_SEQUENCE:
            return {"found_ids": best_sequence(logits, batch["label_ids"] != IGNORED, self.labels)}
        return {"found_ids": tf.argmax(logits, axis=-1, output_type=tf.int32)}

    def predict(self, examples, features, outputs):
        names = np.array(self.labels, object)
        tags_of_texts = tags_of_units(examples, features, [names[row] for row in outputs["found_ids"]])
        return [
            {"entities": _spans(text, tags), "tags": tags, **({"unread": unread} if unread else {})}
            for text, tags, unread in zip(examples, tags_of_texts, unread_units(examples, features))
        ]

    def write_predictions(self, path, examples, predictions):
        """Writes a JSON object a line: the text, its entities and its tags."""
        rows = ({"text": text.text, **prediction} for text, prediction in zip(examples, predictions))
        write_text(path, "".join(to_json(row) + "\n" for row in rows))

    def score(self, examples, predictions):
        truth = [list(_as_read(*pair).tags) for pair in zip(examples, predictions)]
        found = [leave_out(prediction["tags"], prediction.get("unread", [])) for prediction in predictions]
        return {name: METRICS[name](truth, found) for name in self._metrics}

    def blind_scores(self, examples):
        blind = [{"entities": [], "tags": [OUTSIDE] * len(text.units)} for text in examples]
        return "never an entity", self.score(examples, blind)

    def linear_model(self):
        return LinearModel(
            "a linear model on characters and words",
            lambda train, dev: [{"tags": tags} for tags in tag(train, dev)],
            MOST_CHARACTERS,
        )

    def mistake(self, example, prediction):
        """Returns the line, the entities missed and those found wrongly, and the text; the more of these the worse."""
        read = _as_read(example, prediction)
        true, found = _spans(read, list(read.tags)), prediction["entities"]
        missed = [entity for entity in true if entity not in found]
        wrong = [entity for entity in found if entity not in true]
        if not missed and not wrong:
            return None
        return len(missed) + len(wrong), [str(example.line), _describe(missed), _describe(wrong), example.text]

    def describe(self, path, examples, features):
        unread = unread_units(examples, features)
        count = sum(len(entities_of(leave_out(text.tags, units))) for text, units in zip(examples, unread))
        lines = [f"{len(examples):,} sentences in {path}, with {count:,} entities of {len(self.types)} types"]
        windows = len(features["text_indices"])
        if windows > len(examples):
            lines.append(f"long sentences are read in parts: {windows:,} in all")
        split = count_split_pieces(examples, features)
        if split:
            lines.append(f"{split:,} pieces contain the border of an entity, which can't be found inside a piece")
        if any(unread):
            kind = "words" if self.reads_words else "characters"
            lines.append(f"{sum(map(len, unread)):,} {kind} are left out: the tokenizer removes them entirely")
        return lines

    def texts_of(self, example):
        return (example.text,)

    def text_and_label(self, example):
        return example.text, tuple(sorted({tag[2:] for tag in example.tags} - {""}))

    def examples_of(self, inputs):
        """Returns texts as `TaggedText`s without tags."""
        inputs = [text for (text,) in read_texts(inputs, reads_pairs=False)]
        return [TaggedText(text, units_of(text, self.reads_words), None, number) for number, text in enumerate(inputs)]

    @classmethod
    def own_labels(cls, names):
        try:
            tags = list(map(normalize_tag, names))
        except ValueError:
            return names, None
        types = dict.fromkeys(tag.partition("-")[2] for tag in tags if tag != OUTSIDE)
        own = labels_for(tuple(types))
        return (own, tuple(map(tags.index, own))) if types and sorted(tags) == sorted(own) else (names, None)

    @classmethod
    def from_head(cls, config, labels, gives_probability):
        types = tuple(label.removeprefix("B-") for label in labels if label.startswith("B-"))
        if not types or labels != labels_for(types):
            raise InputError("its labels are not O, and B- and I- of each type, which run_ner.py reads")
        return cls(config, types)

    @classmethod
    def names_of_outputs(cls, settings):
        return labels_for(tuple(settings["types"])) if "types" in settings else ()

    @classmethod
    def from_settings(cls, config, settings):
        return cls(config, tuple(settings["types"]), settings["form"], decoding=settings.get("decoding", INDEPENDENT))

    @property
    def reads_words(self) -> bool:
        """Whether words are tagged, and not characters."""
        return self.form != "characters"

    def settings(self):
        decoding = {} if self.decoding == INDEPENDENT else {"decoding": self.decoding}
        return {**super().settings(), **decoding}


def _describe(entities):
    """Returns entities as "PER 김철수 (6-9), ...", their borders in characters of the text."""
    return ", ".join(f"{each['type']} {each['text']} ({each['begin']}-{each['end']})" for each in entities)


def _as_read(text, prediction):
    """Returns a text with its true tags, as far as it was read."""
    return without_units(text, prediction.get("unread", []))


def _spans(text, tags):
    spans = []
    for entity in entities_of(tags):
        begin, end = text.units[entity.begin][0], text.units[entity.end - 1][1]
        spans.append({"type": entity.type, "begin": begin, "end": end, "text": text.text[begin:end]})
    return spans


def best_sequence(logits: tf.Tensor, is_read: tf.Tensor, labels: tuple[str, ...]) -> tf.Tensor:
    """Returns the tags with the highest sum of logits of which each I- goes on with an entity (Viterbi 1967)."""
    # Logits are float32 [B, S, T], and tags int32 [B, S]: any where `is_read` [B, S] says that no word or character is
    # read. The first tag may be any: a long sentence is read in parts, and an entity may go on from one to the next.
    costs = tf.constant([[0.0 if may_follow(before, tag) else _IMPOSSIBLE for tag in labels] for before in labels])
    itself = tf.range(len(labels))[None]

    def forward(best_and_origins, logits_and_is_read):
        (best, _), (scores, is_read) = best_and_origins, logits_and_is_read
        sums = tf.expand_dims(best, 2) + costs
        now, origins = tf.reduce_max(sums, axis=1) + scores, tf.argmax(sums, axis=1, output_type=tf.int32)
        return tf.where(is_read, now, best), tf.where(is_read, origins, itself)

    steps = tf.transpose(logits, [1, 0, 2]), tf.transpose(is_read)[..., None]
    begin = tf.zeros_like(logits[:, 0]), tf.zeros_like(logits[:, 0], tf.int32)
    best, origins = tf.scan(forward, steps, begin)
    last = tf.argmax(best[-1], axis=-1, output_type=tf.int32)
    before = tf.scan(lambda tags, origins: tf.gather(origins, tags, batch_dims=1), origins, last, reverse=True)
    return tf.transpose(tf.concat([before[1:], last[None]], axis=0))
