"""How much of what a review says is in the states of each layer of a model that was only pre-trained, as a table.

python -m benchmarks.probed_layers --data_dir=nsmc --model=roberta=run/roberta --model=electra=run/electra

For the embeddings and for each layer, logistic regression learns the labels of NSMC's first training reviews from the
mean of a review's states, and is judged on the dev file. Nothing of the model is trained. Needs scikit-learn.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import albert_tf
from albert_tf.finetuning.datasets import DATASETS, find_files
from albert_tf.finetuning.tasks.labelled_text import read_examples
from benchmarks.translations import mean_states

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of NSMC.", required=True)
flags.DEFINE_multi_string("model", None, "A name and the folder of a model, as in roberta=run/roberta.", required=True)
flags.DEFINE_integer("num_labels", 1000, "How many training reviews are learnt from.", 2)

# C of logistic regression, for standardised numbers of which there are not many fewer than labels.
_REGULARIZATION = 0.03


def accuracies(folder, train, dev):
    """Returns which share of the dev reviews is classified correctly from each layer, the embeddings first."""
    model = albert_tf.load(folder)
    sides = [
        mean_states(model.model.encoder, model.tokenizer, [example.text for example in examples])
        for examples in (train, dev)
    ]
    labels, expected = ([example.label for example in examples] for examples in (train, dev))
    found = []
    for known, judged in zip(*sides):
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=_REGULARIZATION, max_iter=2000))
        found.append(probe.fit(known, labels).score(judged, expected))
    return found


def main(_):
    files = DATASETS["nsmc"]
    train, dev = (
        read_examples(find_files(FLAGS.data_dir, names), files, needs_label=True) for names in (files.train, files.dev)
    )
    for number, (name, folder) in enumerate(each.split("=", 1) for each in FLAGS.model):
        found = accuracies(folder, train[: FLAGS.num_labels], dev)
        if not number:
            print(f"| | embeddings | {' | '.join(f'layer {layer}' for layer in range(1, len(found)))} |")
            print(f"|{'---|' * (1 + len(found))}")
        print(f"| {name} | {' | '.join(f'{100 * accuracy:.1f}' for accuracy in found)} |", flush=True)


if __name__ == "__main__":
    app.run(main)
