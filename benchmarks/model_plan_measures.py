"""The measures of `benchmarks.model_plan`: processor time of a run's steps, bits per character, worth of states."""

import csv
import os
import statistics
import time
import zlib

import numpy as np
import scipy.stats
import tensorflow as tf
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.scoring import cut_texts
from albert_tf.tokenization import load_tokenizer
from benchmarks.translations import mean_states

_BATCH_PIECES = 4096
_NUM_LABELS, _NUM_DRAWS, _NUM_JUDGED = 1000, 3, 3000
_HANGUL = range(ord("가"), ord("힣") + 1)


def log_processor_time(step, split, values):
    """Adds a line of the step and this process's time to the file that the environment names: a tracker of a run."""
    with open(os.environ["MODEL_PLAN_TIMES"], "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\t{step}\t{time.process_time()}\n")


def load(folder):
    """Returns the model of a run and its tokenizer."""
    return AlbertForPreTraining.from_pretrained(folder, verbose=False), load_tokenizer(folder)


def unknown_share(tokenizer, texts):
    """Returns which share of the words of texts is [UNK]."""
    ids, starts = tokenizer.encode_with_word_starts(texts)
    return float((ids.flat_values.numpy() == tokenizer.vocabulary.id_of("[UNK]")).sum() / np.sum(starts))


def held_out_bits(model, tokenizer, held_out, kind_of, length, masked_share):
    """Returns the bits per character of masked words of held-out texts, by kind and as their mean.

    The words are drawn by their number in the text, the same for every vocabulary. A word is masked as a whole; its
    first piece is told, then the next with the first one shown, and so on. Each text is read in parts of `length`.

    Args:
        model: An `AlbertForPreTraining`.
        tokenizer: Its tokenizer.
        held_out: Lists of texts by source.
        kind_of: The kind of each source.
        length: How much is read at once.
        masked_share: Share of the words that are masked, of those that begin with Hangul.
    """
    vocabulary = tokenizer.vocabulary
    cls, sep, mask = map(vocabulary.id_of, ("[CLS]", "[SEP]", "[MASK]"))
    sizes = np.array([len(piece.removeprefix("##")) for piece in vocabulary.pieces])
    is_hangul = np.array([ord(piece[0]) in _HANGUL for piece in vocabulary.pieces])
    rows = []  # kind, ids, and for each place which piece of its masked word it is, -1 elsewhere
    for source, texts in held_out.items():
        for number, pieces in enumerate(cut_texts(tokenizer, texts)):
            random = np.random.default_rng([zlib.crc32(source.encode()), number])
            firsts = np.unique(np.append(0, pieces.word_ends))[:-1]
            chosen = (random.random(len(firsts)) < masked_share) & is_hangul[pieces.ids[firsts]]
            ranks = np.full(len(pieces.ids), -1)
            for first in firsts[chosen]:
                ranks[first : pieces.word_ends[first]] = range(pieces.word_ends[first] - first)
            for begin in range(0, len(pieces.ids), length - 2):
                part = slice(begin, begin + length - 2)
                rows.append((kind_of[source], np.r_[cls, pieces.ids[part], sep], np.r_[-1, ranks[part], -1]))
    bits, characters = dict.fromkeys(kind_of.values(), 0.0), dict.fromkeys(kind_of.values(), 0)
    for rank in range(1 + max(ranks.max() for _, _, ranks in rows)):
        asked = sorted((row for row in rows if (row[2] == rank).any()), key=lambda row: len(row[1]))
        for begin in range(0, len(asked), _BATCH_PIECES // length):
            batch = asked[begin : begin + _BATCH_PIECES // length]
            shown = [np.where(ranks >= rank, mask, ids) for _, ids, ranks in batch]
            places = [np.flatnonzero(ranks == rank) for _, _, ranks in batch]
            logits = model(
                {
                    "input_ids": tf.ragged.constant(shown, tf.int32).to_tensor(),
                    "input_mask": tf.ragged.constant([[1] * len(ids) for ids in shown], tf.int32).to_tensor(),
                    "masked_lm_positions": tf.ragged.constant(places, tf.int32).to_tensor(),
                }
            )["masked_lm_logits"]
            probabilities = tf.nn.log_softmax(logits).numpy()
            for (kind, ids, _), where, of_row in zip(batch, places, probabilities):
                bits[kind] -= of_row[np.arange(len(where)), ids[where]].sum() / np.log(2)
                characters[kind] += sizes[ids[where]].sum()
    found = {kind: float(bits[kind] / characters[kind]) for kind in bits}
    texts = [text for texts in held_out.values() for text in texts]
    return {
        "bits_per_character": statistics.mean(found.values()),
        "bits_by_kind": found,
        "characters": int(sum(characters.values())),
        "unknown_words": unknown_share(tokenizer, texts),
    }


def read_table(path):
    """Returns the rows of a tab-separated file without its header, of which none is cut short."""
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [row for row in rows if len(row) == len(header) and all(row)]


def probe_reviews(model, tokenizer, path):
    """Returns the accuracy of logistic regression after 1,000 labels, the mean of three draws, by layer.

    Labels are learnt from, and judged on, different parts of NSMC's training file.
    """
    rows = read_table(path)
    order = np.random.default_rng(0).permutation(len(rows))[: _NUM_DRAWS * _NUM_LABELS + _NUM_JUDGED]
    rows = [rows[number] for number in order]
    labels = np.array([int(row[2]) for row in rows])
    learnt, judged = np.arange(_NUM_DRAWS * _NUM_LABELS).reshape(_NUM_DRAWS, -1), slice(_NUM_DRAWS * _NUM_LABELS, None)
    found = []
    for states in mean_states(model.encoder, tokenizer, [row[1] for row in rows]):
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=2000))
        scores = [probe.fit(states[draw], labels[draw]).score(states[judged], labels[judged]) for draw in learnt]
        found.append(statistics.mean(scores))
    return found


def probe_similarity(model, tokenizer, path):
    """Returns Spearman's correlation on a quarter of KorSTS's training pairs by layer: of a ridge regression, and of
    cosines that know no labels.

    No first sentence is in both parts.
    """
    rows = read_table(path)
    scores = np.array([float(row[4]) for row in rows])
    is_judged = np.array([zlib.crc32(row[5].encode()) % 4 == 0 for row in rows])
    sides = [mean_states(model.encoder, tokenizer, [row[column] for row in rows]) for column in (5, 6)]
    found = {"ridge": [], "cosine": []}
    for one, two in zip(*sides):
        features = np.concatenate([abs(one - two), one * two], 1)
        probe = make_pipeline(StandardScaler(), Ridge(1000.0)).fit(features[~is_judged], scores[~is_judged])
        centre = np.concatenate([one, two]).mean(0)
        one, two = ((each - centre) / np.linalg.norm(each - centre, axis=1, keepdims=True) for each in (one, two))
        for name, told in (("ridge", probe.predict(features)), ("cosine", (one * two).sum(1))):
            found[name].append(float(scipy.stats.spearmanr(told[is_judged], scores[is_judged]).statistic))
    return found
