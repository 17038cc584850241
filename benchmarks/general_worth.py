"""What models know of each kind of Korean text, without any training: as a table.

python -m benchmarks.general_worth --data_dir=data --held_out_file=benchmark/ko_general/texts/held_out.json \
    --model=models/albert_ko_small --model=models/albert_ko_general

Bits per character of masked words of held-out documents by kind, told piece by piece as in `benchmarks.model_plan`; the
share of their words that the vocabulary can't spell; and linear models on mean states, learnt and judged on different
parts of training files. `--data_dir` holds nsmc/ratings_train.txt and korsts/sts-train.tsv; the held-out documents are
those that `benchmarks.korean_general_model` leaves out. Needs scikit-learn and SciPy.
"""

import os

from absl import app, flags

from albert_tf.base.files import read_json
from benchmarks.general_texts import KIND_OF, KINDS

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of labelled data sets' folders.", required=True)
flags.DEFINE_string("held_out_file", None, "Held-out texts by source, JSON.", required=True)
flags.DEFINE_multi_string("model", None, "Folder of a model.", required=True)
flags.DEFINE_integer("length", 128, "Pieces read at once.", 8)
flags.DEFINE_float("masked_share", 0.2, "Share of the words that are masked.", 0.01, 1.0)


def measure(folder: str) -> dict[str, str]:
    """Returns the cells of a model, by the names of their rows."""
    from benchmarks import model_plan_measures as measures

    model, tokenizer = measures.load(folder)
    held_out = read_json(FLAGS.held_out_file, "the held-out texts")
    bits = measures.held_out_bits(model, tokenizer, held_out, KIND_OF, FLAGS.length, FLAGS.masked_share)
    reviews = measures.probe_reviews(model, tokenizer, os.path.join(FLAGS.data_dir, "nsmc", "ratings_train.txt"))
    pairs = measures.probe_similarity(model, tokenizer, os.path.join(FLAGS.data_dir, "korsts", "sts-train.tsv"))
    return {
        "parameters": f"{model.count_params():,}",
        "words that are [UNK]": f"{bits['unknown_words']:.3%}",
        "bits per character": f"{bits['bits_per_character']:.3f}",
        **{f"of {kind}": f"{bits['bits_by_kind'][kind]:.2f}" for kind in KINDS},
        "NSMC, 1,000 labels, logistic regression": f"{max(reviews):.1%}",
        "KorSTS, ridge regression": f"{max(pairs['ridge']):.3f}",
        "KorSTS, cosine": f"{max(pairs['cosine']):.3f}",
    }


def main(_):
    found = {folder: measure(folder) for folder in FLAGS.model}
    print(f"| | {' | '.join(found)} |\n|{'---|' * (1 + len(found))}")
    for name in found[FLAGS.model[0]]:
        print(f"| {name} | {' | '.join(cells[name] for cells in found.values())} |")


if __name__ == "__main__":
    app.run(main)
