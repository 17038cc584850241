"""How far each layer moves its input: Figure 1 of the ALBERT paper, for any checkpoint.

python -m benchmarks.layer_distances --model='ours=models/albert_ko_small' --model='KLUE=klue-bert' \
    --input_file=text.txt --output_dir=distances

Writes layer_distances.tsv and .png: of each layer the mean L2 distance and the mean angle between the vectors that it
takes and those that it gives, over the tokens of up to --num_texts lines. In the paper the distances of shared layers
are smaller and change less from layer to layer than those of layers of their own, and converge to no point.
"""

import itertools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_multi_string("model", None, "A name, = and a folder that albert_tf.load reads.", required=True)
flags.DEFINE_string("input_file", None, "Text, a line each.", required=True)
flags.DEFINE_string("output_dir", None, "Folder of the table and the plot.", required=True)
flags.DEFINE_integer("num_texts", 200, "Lines that are read.", 1)


def movements(folder, texts):
    """Returns the mean L2 distance and the mean angle in degrees of each layer, float [L, 2]."""
    import albert_tf

    loaded = albert_tf.load(folder)
    batch = loaded.tokenizer(texts, padding=True, return_tensors="tf")
    batch = {name: values[:, : loaded.model.config.longest_sequence] for name, values in batch.items()}
    states = loaded.model.encoder(batch, output_hidden_states=True)["hidden_states"]
    is_token = batch["input_mask"].numpy() == 1
    states = [each.numpy()[is_token].astype(np.float64) for each in states]
    found = []
    for before, after in itertools.pairwise(states):
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosine = np.clip((before * after).sum(axis=1) / lengths, -1, 1)
        found.append((np.linalg.norm(after - before, axis=1).mean(), np.degrees(np.arccos(cosine)).mean()))
    return np.array(found)


def main(_):
    from matplotlib.figure import Figure

    with open(FLAGS.input_file, encoding="utf-8") as file:
        texts = [line.strip() for line in itertools.islice(filter(str.strip, file), FLAGS.num_texts)]
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    panels, lines = figure.subplots(1, 2), [("model", "layer", "L2 distance", "angle")]
    for name, folder in (each.split("=", 1) for each in FLAGS.model):
        moved = movements(folder, texts)
        lines += [(name, number, *np.round(row, 4)) for number, row in enumerate(moved, start=1)]
        for axes, column in zip(panels, moved.T):
            axes.plot(range(1, len(moved) + 1), column, "o-", label=name, markersize=4)
    for axes, title in zip(panels, ("L2 distance", "angle in degrees")):
        axes.set(title=f"from a layer's input to its output: {title}", xlabel="layer", ylim=(0, None))
        axes.grid(alpha=0.3)
    panels[0].legend()
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    with open(os.path.join(FLAGS.output_dir, "layer_distances.tsv"), "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, line)) + "\n" for line in lines)
    figure.savefig(os.path.join(FLAGS.output_dir, "layer_distances.png"), dpi=150)
    print(*("\t".join(map(str, line)) for line in lines), sep="\n")


if __name__ == "__main__":
    app.run(main)
