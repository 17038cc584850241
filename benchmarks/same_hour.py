"""Which library learns most in the same time: albert_tf, Hugging Face (PyTorch) and KerasHub, each in its usual way.

python -m benchmarks.same_hour --input_file='data/train-*.tfrecord' --albert_config_file=configs/albert_ko_small.json \
    --data_dir=nsmc --output_dir=benchmark/same_hour --minutes=20

The same examples, vocabulary, shape and batch, on this machine's CPU, one library after the other, each in a process of
its own. Ours trains as configs/recipes/ko_small.cfg does (Muon, embeddings from counts, bfloat16 where the processor
has it), and once more as the others do, with AdamW at their rate, in float32. Each first measures its rate, and plans
warm-up and decay for as many steps as fit into the minutes. Masks are each library's own: ours,
`DataCollatorForLanguageModeling`, `MaskedLMMaskGenerator`. What is measured is the same for all: the masked-LM loss on
our held-out shards, and, with --data_dir, the accuracy on NSMC's dev file after each has fine-tuned its model on the
same labels, with the same dropout, passes and rate. Needs the packages of requirements-references.txt.
"""

import json
import os
import subprocess
import sys

from absl import app, flags

from albert_tf.base.files import read_json
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_list("input_file", None, "Training shards, made with --masking=dynamic.", required=True)
flags.DEFINE_string("albert_config_file", None, "The model's shape.", required=True)
flags.DEFINE_string("data_dir", None, "Folder of NSMC's files; nothing is fine-tuned without it.")
flags.DEFINE_string("output_dir", None, "Folder for results and our model.", required=True)
flags.DEFINE_float("minutes", 20.0, "How long each one trains.", 0.01)
flags.DEFINE_integer("train_batch_size", 32, "Examples in a step.", 1)
flags.DEFINE_float("learning_rate", 1e-3, "Peak learning rate of AdamW in pre-training.")
flags.DEFINE_float("muon_learning_rate", 3e-3, "Peak learning rate of Muon.")
flags.DEFINE_integer("num_labels", 5000, "Labelled reviews to fine-tune on.", 1)
flags.DEFINE_integer("random_seed", 0, "Seed of everything.")

CONTESTANTS = ("albert_tf", "albert_tf_adamw", "hugging_face", "keras_hub", "keras_hub_xla")
flags.DEFINE_list("only", list(CONTESTANTS), "Which of them.")


def result_of(contestant):
    """Lets one train, unless it has done so before, and returns what it measured."""
    path = os.path.join(FLAGS.output_dir, f"{contestant}.json")
    if not os.path.exists(path):
        names = [name for name in FLAGS.flags_by_module_dict()[sys.argv[0]] if name.name != "only"]
        settings = {flag.name: flag.value for flag in names}
        print(f"{contestant}: {FLAGS.minutes:g} minutes", flush=True)
        command = [sys.executable, "-m", "benchmarks.contestants.train", contestant, json.dumps(settings), path]
        subprocess.run(command, check=True, cwd=ROOT)
    return read_json(path, "the results")


def main(_):
    FLAGS.output_dir = os.path.abspath(FLAGS.output_dir)
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    results = {contestant: result_of(contestant) for contestant in FLAGS.only}
    columns = ("library", "minutes", "steps", "examples a second", "held-out masked-LM loss", "NSMC")
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for contestant, result in results.items():
        cells = (
            contestant,
            f"{result['seconds'] / 60:.1f}",
            f"{result['steps']:,}",
            f"{result['examples_per_second']:.0f}",
            f"{result['masked_lm_loss']:.3f}",
            f"{result['accuracy']:.1%}" if "accuracy" in result else "",
        )
        print(f"| {' | '.join(cells)} |")
    peers = [result["examples_per_second"] for name, result in results.items() if not name.startswith("albert_tf")]
    if peers and "albert_tf" in results:
        ratio = results["albert_tf"]["examples_per_second"] / max(peers)
        print(f"\nalbert_tf sees {ratio:.2f} times the examples of the faster peer")


if __name__ == "__main__":
    app.run(main)
