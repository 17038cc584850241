"""Makes models/albert_ko_small anew: vocabulary, training data, pre-training, and the folder to give away.

python -m benchmarks.korean_small_model --reviews=nsmc_reviews.txt.gz --documentation=python_docs_ko.txt.gz \
    --output_dir=benchmark/ko_small

The reviews are those of the folder `raw/` of github.com/e9t/nsmc without their ratings (CC0), one a line with a blank
line between films, but for those that models are judged by; the documentation is the Korean translation of Python's
(CC0), one sentence a line. docs/korean_small_model.md says how to make these files, and has the losses to expect. A run
that was stopped goes on with the same command. Where the processor has no bfloat16, the recipe runs in float32.
"""

import os

from absl import app, flags

from benchmarks.stage import pretrain_in_parts, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("reviews", None, "The film reviews.", required=True)
flags.DEFINE_string("documentation", None, "The documentation.", required=True)
flags.DEFINE_string(
    "output_dir", None, "Folder for everything; the model comes into its folder `third_model`.", required=True
)
# One after the other, each from the weights that the one before came to; orders of the examples differ by the seed.
PARTS = (
    ("first", "ko_small.cfg", {}),
    ("second", "ko_small_continued.cfg", {}),
    ("third", "ko_small_continued.cfg", {"random_seed": 3, "num_train_steps": 15_000}),
)


def main(_):
    vocabulary, data = (os.path.join(FLAGS.output_dir, name) for name in ("vocabulary", "data"))
    texts = f"{FLAGS.reviews},{FLAGS.documentation}"
    vocab_file = os.path.join(vocabulary, "vocab.txt")
    if not os.path.exists(vocab_file):
        run_stage(
            "build_vocab.py",
            input_file=texts,
            output_dir=vocabulary,
            vocab_size=8000,
            limit_alphabet=2000,
            split_emoji=False,  # as when the model was made
        )
    if not os.path.exists(os.path.join(data, "manifest.json")):
        run_stage(
            "create_pretraining_data.py",
            input_file=texts,
            output_file=os.path.join(data, "train.tfrecord"),
            vocab_file=vocab_file,
            num_shards=4,
            max_seq_length=128,
            objective="halves",
            masked_lm_prob=0.3,
            ngram=1,
            dupe_factor=4,
            held_out_fraction=0.01,
            num_workers=2,
            resume=True,
        )
    pretrain_in_parts(PARTS, {name: data for name, *_ in PARTS}, FLAGS.output_dir)


if __name__ == "__main__":
    app.run(main)
