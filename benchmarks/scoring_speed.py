"""How many pieces `score` reads off a masked model in a second of one thread, beside a loop of one mask a pass.

python -m benchmarks.scoring_speed

Both score the same reviews of the sample, in turns. The loop computes logits at all positions, as the model does where
it is not told which are read. Counted are seconds of CPU time, without what is compiled first.
"""

import argparse
import os
import resource

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import numpy as np
import tensorflow as tf

import albert_tf
from albert_tf.reading.rows import RowFile
from albert_tf.serving.scoring import WITHIN_WORD, cut_texts, masked_queries


def cpu_seconds(function):
    """Returns what a function returns, and the CPU time that it takes."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = function()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make_loop(model):
    """Returns a function that scores texts, cut into pieces, with one pass for each."""

    @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)], autograph=False)
    def log_probabilities(ids):
        return tf.nn.log_softmax(model.model({"input_ids": ids})["masked_lm_logits"][0])

    def score(text):
        queries = masked_queries(text, model.tokenizer, model.max_seq_length)
        return sum(
            float(log_probabilities(tf.constant(query.ids[None]))[query.positions[0], query.labels[0]])
            for query in queries
        )

    return lambda texts: [score(text) for text in texts]


def main():
    """Prints pieces a second, and how many times those of the loop that is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", default="samples/reviews/dev.tsv", help="reviews, under document")
    parser.add_argument("--model", default="models/albert_ko_small")
    parser.add_argument("--num_texts", type=int, default=200)
    parser.add_argument("--num_turns", type=int, default=5)
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = albert_tf.load(options.model)
    texts = [row.values["document"] for row in RowFile(options.file) if row.values["document"].strip()]
    pieces = cut_texts(model.tokenizer, texts[: options.num_texts])
    for_loop = pieces[: max(1, options.num_texts // 10)]
    scorer, loop = model.scorer, make_loop(model)
    scorer.sums(pieces, WITHIN_WORD, 64)
    loop(for_loop[:1])
    count, count_of_loop = (sum(int(text.is_scored.sum()) for text in each) for each in (pieces, for_loop))
    rates = []
    for _ in range(options.num_turns):
        scores, seconds = cpu_seconds(lambda: scorer.sums(pieces, WITHIN_WORD, 64))
        others, seconds_of_loop = cpu_seconds(lambda: loop(for_loop))
        rates.append((count / seconds, count_of_loop / seconds_of_loop))
    rate, rate_of_loop = np.median(rates, axis=0)
    ratio = np.median([ours / theirs for ours, theirs in rates])
    difference = np.abs(np.subtract(scores[: len(others)], others)).max()
    print(f"{count:,} pieces of {len(pieces)} texts: {rate:,.0f} pieces a second of CPU time, one thread")
    print(
        f"one mask a pass: {rate_of_loop:,.0f}; {ratio:.1f} times that; the scores differ by {difference:.1e} at most"
    )


if __name__ == "__main__":
    main()
