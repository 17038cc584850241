"""How often a text scores more than the same words in another order, beside what bigrams say.

python -m benchmarks.natural_order --file=nsmc/ratings_dev.txt --corpus=corpus_reviews/nsmc_reviews.txt.gz

Of reviews of at least six eojeol some are drawn, and of each one other order of its eojeol. The bigrams, of eojeol and
of pieces, are counted in a corpus without these reviews, and smoothed by adding a constant.
"""

import argparse
import collections
import gzip
import itertools
import math
import warnings

import numpy as np

import albert_tf
from albert_tf.reading.rows import RowFile

_FEWEST_WORDS = 6
_LINES_AT_ONCE = 20_000
# The constant that is added to each count.
_ADDED = 0.01


def draw_texts(path: str, count: int, seed: int) -> list[tuple[str, str]]:
    """Returns texts of a file as NSMC's, drawn at random, each with its eojeol in another order."""
    texts = [row.values["document"].split() for row in RowFile(path) if not row.error]
    texts = [words for words in texts if len(words) >= _FEWEST_WORDS and len(set(words)) > 1]
    generator = np.random.default_rng(seed)
    pairs = []
    for row in generator.permutation(len(texts))[:count]:
        words = shuffled = texts[row]
        while shuffled == words:
            shuffled = [words[place] for place in generator.permutation(len(words))]
        pairs.append((" ".join(words), " ".join(shuffled)))
    return pairs


def score_bigrams(texts: list[list], corpus: collections.abc.Iterable[list], smoothing: float = _ADDED) -> list[float]:
    """Returns the log-probability of each text to a bigram model of a corpus, both of lists of words or pieces."""
    wanted = {pair for text in texts for pair in _bigrams(text)}
    pairs, firsts, known = collections.Counter(), collections.Counter(), set()
    for line in corpus:
        known.update(line)
        for pair in _bigrams(line):
            firsts[pair[0]] += 1
            if pair in wanted:
                pairs[pair] += 1
    size = len(known) + 1  # what ends a text

    def log_probability(pair):
        return math.log((pairs[pair] + smoothing) / (firsts[pair[0]] + smoothing * size))

    return [sum(map(log_probability, _bigrams(text))) for text in texts]


def _bigrams(words):
    return itertools.pairwise([None, *words, None])


def read_corpus(path: str, left_out: set[str]) -> collections.abc.Iterator[str]:
    """Yields the lines of a gzip file, but for those that are given."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            line = " ".join(line.split())
            if line and line not in left_out:
                yield line


def cut(tokenizer, lines):
    """Yields the ids of the pieces of lines."""
    while some := list(itertools.islice(lines, _LINES_AT_ONCE)):
        yield from tokenizer.encode_ids(some).to_list()


def share(scores: list[float]) -> str:
    """Returns how often the first of two scores that follow one another is the greater."""
    is_greater = np.greater(scores[0::2], scores[1::2])
    error = math.sqrt(is_greater.mean() * (1 - is_greater.mean()) / len(is_greater))
    return f"{is_greater.mean():.1%} (standard error {error:.1%})"


def main():
    """Prints the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", required=True, help="reviews, as ratings_dev.txt of NSMC")
    parser.add_argument("--corpus", required=True, help="a gzip file of lines, to count bigrams in")
    parser.add_argument("--model", default="models/albert_ko_small")
    parser.add_argument("--num_texts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    model = albert_tf.load(options.model)
    pairs = draw_texts(options.file, options.num_texts, options.seed)
    texts = [text for pair in pairs for text in pair]
    print(f"{len(pairs)} reviews of {options.file}: the natural order scores more than another one in")
    for method in ("within_word", "piece"):
        print(f"  {share([each['score'] for each in model.score(texts, method)])} {method}", flush=True)
    natural = {natural for natural, _ in pairs}
    words = score_bigrams([text.split() for text in texts], map(str.split, read_corpus(options.corpus, natural)))
    print(f"  {share(words)} bigrams of eojeol", flush=True)
    ids = list(cut(model.tokenizer, iter(texts)))
    print(
        f"  {share(score_bigrams(ids, cut(model.tokenizer, read_corpus(options.corpus, natural))))} bigrams of pieces"
    )


if __name__ == "__main__":
    main()
