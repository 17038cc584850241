"""How much of a real Korean corpus a small model learns in eight minutes on two cores.

python -m benchmarks.pretraining --corpus='corpus/*.txt.gz' --output_dir=benchmark

Prints the held-out masked-LM loss beside the unigram entropy of the held-out text, which is what the best guess without
any context costs, and the accuracy of sentence order prediction beside 50%.
"""

import os

from absl import app, flags

from albert_tf.base.files import read_json
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("corpus", None, "Text files, one sentence a line; comma-separated paths or globs.", required=True)
flags.DEFINE_string("vocabulary_text", "", "More text files for the vocabulary alone.")
flags.DEFINE_string("output_dir", None, "Folder for the vocabulary, the shards and the model.", required=True)
flags.DEFINE_integer("num_train_steps", 10000, "Number of steps of 32 examples.")


def main(_):
    vocabulary, data, model = (os.path.join(FLAGS.output_dir, name) for name in ("vocabulary", "data", "model"))
    run_stage(
        "build_vocab.py",
        input_file=",".join(filter(None, [FLAGS.corpus, FLAGS.vocabulary_text])),
        output_dir=vocabulary,
        vocab_size=8000,
        limit_alphabet=2000,
        overwrite=True,
    )
    run_stage(
        "create_pretraining_data.py",
        input_file=FLAGS.corpus,
        output_file=os.path.join(data, "train.tfrecord"),
        num_shards=4,
        vocab_file=os.path.join(vocabulary, "vocab.txt"),
        max_seq_length=64,
        dupe_factor=2,
        overwrite=True,
    )
    run_stage(
        "run_pretraining.py",
        input_file=os.path.join(data, "train-*.tfrecord"),
        albert_config_file=os.path.join(ROOT, "configs", "albert_tiny.json"),
        output_dir=model,
        do_train=True,
        do_eval=True,
        train_batch_size=32,
        optimizer="adamw",
        bias_correction=True,
        learning_rate=1.5e-3,
        num_train_steps=FLAGS.num_train_steps,
        num_warmup_steps=FLAGS.num_train_steps // 10,
        save_checkpoints_steps=2000,
        iterations_per_loop=500,
    )
    results = read_json(os.path.join(model, "eval_results.json"), "the results")
    entropy = read_json(os.path.join(data, "manifest.json"), "the manifest")["splits"]["held_out"]["unigram_entropy"]
    loss = results["masked_lm_loss"]
    print(f"held-out masked-LM loss / unigram entropy: {loss:.3f} / {entropy:.3f} = {loss / entropy:.3f}")
    print(f"held-out sentence order accuracy: {results['sentence_order_accuracy']:.1%} (guessing: 50%)")


if __name__ == "__main__":
    app.run(main)
