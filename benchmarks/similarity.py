"""How well `similarity` orders pairs of sentences, without any training for it, beside a rule that knows no words.

python -m benchmarks.similarity --file=korsts/sts-dev.tsv --model=models/albert_ko_small
"""

import argparse
import warnings

import albert_tf
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.metrics import SCORE_METRICS
from albert_tf.finetuning.tasks.labelled_text import read_examples


def share_of_bigrams(first: str, second: str) -> float:
    """Returns which share of the pairs of characters of two texts both have (Jaccard)."""
    ours, theirs = ({text[begin : begin + 2] for begin in range(len(text) - 1)} for text in (first, second))
    return len(ours & theirs) / max(1, len(ours | theirs))


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", required=True, help="sts-dev.tsv of KorSTS")
    parser.add_argument("--model", default="models/albert_ko_small")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    examples = read_examples(options.file, DATASETS["korsts"], needs_label=True)
    pairs, scores = [(each.text, each.text_pair) for each in examples], [float(each.label) for each in examples]
    model, spearman = albert_tf.load(options.model), SCORE_METRICS["spearman"]
    print(f"{len(pairs):,} pairs of {options.file}, Spearman's correlation with people's scores")
    print(f"shared pairs of characters  {spearman(scores, [share_of_bigrams(*pair) for pair in pairs]):.3f}")
    for pooling in ("mean", "first", "last"):
        print(f"similarity, {pooling:5}           {spearman(scores, model.similarity(pairs, pooling)):.3f}")


if __name__ == "__main__":
    main()
