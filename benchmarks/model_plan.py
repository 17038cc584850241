"""Which model to train for long: contestants of many shapes and settings after the same processor time, as a table.

python -m benchmarks.model_plan --data_dir=data --output_dir=plan                      (everything, one after the other)
python -m benchmarks.model_plan --data_dir=data --output_dir=plan --only='H 256 x 4'   (one of them)
python -m benchmarks.model_plan --data_dir=data --output_dir=plan --show               (the table and curve so far)

`--data_dir` holds general/*.txt.gz, corpus_reviews/nsmc_reviews.txt.gz, corpus/python_docs_ko.txt.gz and
corpus_petitions/petitions.jsonl.gz to read, and nsmc/ratings_train.txt and korsts/sts-train.tsv to probe with. A short
run measures the processor time of a contestant's step beside that of the first contestant's, whatever else the machine
does; the contestant then trains for as many steps as fit into its minutes, all cores' time together, with a rate that
falls to 0. What is compared is the same for every vocabulary: bits per character of the same words of held-out
documents, each masked as a whole and told piece by piece from left to right (pseudo-log-likelihood), as the mean of the
kinds of text; and linear models on the mean states of labelled texts, learnt and judged on parts of training files.
results.json and results.md in `--output_dir` have a row for each that is done; the command goes on where it was
stopped, also inside a run. Needs scikit-learn and SciPy.
"""

import itertools
import os
import statistics
import subprocess
import typing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

from albert_tf.base.files import read_json, write_json
from albert_tf.base.startup import computes_in_bfloat16
from benchmarks.general_texts import KIND_OF, KINDS, write_mixtures
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of the texts' folders and of labelled data.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for everything.", required=True)
flags.DEFINE_float("minutes", 20.0, "Processor time of a contestant of 1 unit, in minutes of one core.", 0.01)
flags.DEFINE_float("megabytes", 60.0, "Size of a mixture.", 0.1)
flags.DEFINE_list("only", [], "Contestants to take part; all if left out.")
flags.DEFINE_bool("show", False, "Train nothing; show what there is.")

# How much of a source of so many bytes is wanted, before it is scaled to --megabytes.
MIXTURES = {
    "root": lambda source, size: size**0.5 * (0.5 if KIND_OF[source] == "machine-translated" else 1),
    "bytes": lambda source, size: size,
    "conversation": lambda source, size: (
        size**0.5 * {"machine-translated": 0.3, "talk": 4, "opinions": 3, "prose": 2}.get(KIND_OF[source], 1)
    ),
}
# Alphabet: all syllables of KS X 1001, jamo and ASCII, and what is frequent besides.
VOCABULARY_SETTINGS = {"full_width_to_ascii": True, "split_emoji": True}
NUM_FREQUENT = 2000
PIECES_OF_STEP = 4096
PROBE_STEPS, PROBE_EVERY = 80, 10
MASKED_SHARE = 0.2


class Contestant(typing.NamedTuple):
    """A model to train: a shape, what it reads and how it learns; `minutes` is in units of --minutes."""

    hidden: int = 256
    layers: int = 4
    groups: int | None = None
    vocab_size: int = 12_000
    length: int = 128
    objective: str = "roberta"
    packing: str = "full_sentences"
    mixture: str = "root"
    optimizer: str = "muon"
    rate: float = 3e-3
    minutes: float = 1.0

    def config(self):
        """Returns the model's config, that of configs/albert_ko_small.json with this shape."""
        return read_json(os.path.join(ROOT, "configs", "albert_ko_small.json"), "a config") | {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_hidden_groups": self.groups or self.layers,
            "intermediate_size": 4 * self.hidden,
            "max_position_embeddings": max(128, self.length),
        }


FIRST = "H 256 x 4"
CONTESTANTS = {
    "H 256 x 4 for 5 minutes": Contestant(minutes=0.25),
    "H 128 x 4 for 5 minutes": Contestant(128, minutes=0.25),
    FIRST: Contestant(),
    "H 128 x 4": Contestant(128),
    "halves": Contestant(objective="halves", packing="halves"),
    "H 192 x 4": Contestant(192),
    "8000 pieces": Contestant(vocab_size=8000),
    "16000 pieces": Contestant(vocab_size=16_000),
    "H 256 x 6 shared by twos": Contestant(layers=6, groups=3),
    "H 320 x 3": Contestant(320, 3),
    "H 192 x 8": Contestant(192, 8),
    "length 64": Contestant(length=64),
    "length 256": Contestant(length=256),
    "order": Contestant(objective="albert", packing="order"),
    "Muon at 6e-3": Contestant(rate=6e-3),
    "AdamW at 1e-3": Contestant(optimizer="adamw", rate=1e-3),
    "AdamW at 2e-3": Contestant(optimizer="adamw", rate=2e-3),
    "conversation": Contestant(mixture="conversation"),
    "bytes": Contestant(mixture="bytes"),
    "H 256 x 4 for 60 minutes": Contestant(minutes=3.0),
    "H 128 x 4 for 60 minutes": Contestant(128, minutes=3.0),
    "24000 pieces H 192 x 4": Contestant(192, vocab_size=24_000),
}


def path_of(*names):
    return os.path.join(FLAGS.output_dir, *names)


def shares_of(weight):
    """Returns a mixture of --megabytes in which each source has what `weight` says, as far as it has so much."""

    def mixture(sizes):
        shares = dict.fromkeys(sizes, 0.0)
        for _ in range(20):  # what a source lacks is taken from the others
            missing = 1e6 * FLAGS.megabytes - sum(shares[source] * size for source, size in sizes.items())
            open_ = {source: weight(source, size) for source, size in sizes.items() if shares[source] < 1}
            for source, wanted in open_.items():
                shares[source] = min(1, shares[source] + missing * wanted / sum(open_.values()) / sizes[source])
        return {source: (0.0, share) for source, share in shares.items()}

    return mixture


def make_vocabulary(size):
    """Builds a vocabulary of the first mixture, if there is none yet, and returns the path of its file."""
    from albert_tf.tokenization import KoreanWordPieceTokenizer
    from albert_tf.tokenization.vocabulary_training import count_words, required_characters, train_vocabulary

    folder = path_of(f"vocabulary_{size}")
    if not os.path.exists(os.path.join(folder, "tokenizer.json")):
        with open(path_of("texts", "root.txt"), encoding="utf-8") as file:
            counts = count_words(map(str.strip, file), **VOCABULARY_SETTINGS)
        required = required_characters("ks_x_1001", **VOCABULARY_SETTINGS)
        pieces = train_vocabulary(counts, size, limit_alphabet=NUM_FREQUENT, num_unused=50, required=required)
        os.makedirs(folder, exist_ok=True)
        KoreanWordPieceTokenizer(pieces, **VOCABULARY_SETTINGS).save(folder)
    return os.path.join(folder, "vocab.txt")


def make_data(contestant):
    """Builds the shards that a contestant reads, if there are none yet, and returns their folder."""
    each = contestant
    folder = path_of(f"data_{each.mixture}_{each.packing}_{each.vocab_size}_{each.length}")
    if not os.path.exists(os.path.join(folder, "manifest.json")):
        run_stage(
            "create_pretraining_data.py",
            input_file=path_of("texts", f"{each.mixture}.txt"),
            output_file=os.path.join(folder, "train.tfrecord"),
            vocab_file=make_vocabulary(each.vocab_size),
            sentence_pair=each.packing,
            max_seq_length=each.length,
            masked_lm_prob=0.3,
            ngram=1,
            dupe_factor=1,
            held_out_fraction=0.0,
            num_shards=4,
            resume=True,
        )
    return folder


def train(contestant, folder, num_steps, **settings):
    """Trains, or goes on training, and returns the processor seconds of a step, without what starting takes."""
    os.makedirs(folder, exist_ok=True)
    os.environ["MODEL_PLAN_TIMES"] = os.path.join(folder, "processor_time.tsv")
    write_json(f"{folder}.config.json", contestant.config())
    run_stage(
        "run_pretraining.py",
        flagfile=os.path.join(ROOT, "configs", "recipes", "ko_small.cfg"),
        input_file=os.path.join(make_data(contestant), "train-*.tfrecord"),
        output_dir=folder,
        albert_config_file=f"{folder}.config.json",
        objective=contestant.objective,
        optimizer=contestant.optimizer,
        learning_rate=contestant.rate,
        train_batch_size=PIECES_OF_STEP // contestant.length,
        use_bfloat16=computes_in_bfloat16(),
        num_train_steps=num_steps,
        num_warmup_steps=num_steps // 20,
        trackers="benchmarks.model_plan_measures:log_processor_time",
        **{"do_eval": False, "save_checkpoints_steps": 200, "iterations_per_loop": 50} | settings,
    )
    with open(os.environ["MODEL_PLAN_TIMES"], encoding="utf-8") as file:
        rows = [[float(cell) for cell in line.split("\t")] for line in file]
    pairs = [(one, two) for one, two in itertools.pairwise(rows) if one[0] == two[0] and one[1] < two[1]]
    times = [(two[2] - one[2]) / (two[1] - one[1]) for one, two in pairs]
    return statistics.median(times[1:] or times)


def step_seconds(contestant, results):
    """Returns the processor seconds of a contestant's step, where the first contestant's takes what it took at first.

    Both are measured one right after the other, so that what else the machine does falls on both.
    """
    probe = {"word_embeddings": "random", "iterations_per_loop": PROBE_EVERY}
    speeds = results.setdefault("step_seconds", {})
    full = contestant._replace(minutes=1.0)
    name = next(other for other, each in CONTESTANTS.items() if each == full)
    if name not in speeds:
        taken = {}
        for other in dict.fromkeys((FIRST, name)):
            folder = path_of("probes", f"{name} {other}".replace(" ", "_"))
            taken[other] = train(CONTESTANTS[other], folder, PROBE_STEPS, **probe)
        speeds.setdefault(FIRST, taken[FIRST])
        speeds[name] = speeds[FIRST] * taken[name] / taken[FIRST]
    return speeds[name]


def measure(name, contestant, results):
    """Trains a contestant and returns its row."""
    from benchmarks import model_plan_measures as measures

    seconds = step_seconds(contestant, results)
    write_json(path_of("results.json"), results)
    num_steps = round(60 * FLAGS.minutes * contestant.minutes / seconds)
    folder = path_of("runs", name.replace(" ", "_"))
    trained = train(contestant, folder, num_steps)
    model, tokenizer = measures.load(folder)
    held_out = read_json(path_of("texts", "held_out.json"), "the held-out texts")
    return {
        "contestant": contestant._asdict(),
        "parameters": model.count_params(),
        "steps": num_steps,
        "places": num_steps * PIECES_OF_STEP,
        "step_seconds": seconds,
        "seconds": trained * num_steps,
        **measures.held_out_bits(model, tokenizer, held_out, KIND_OF, contestant.length, MASKED_SHARE),
        "reviews": measures.probe_reviews(model, tokenizer, os.path.join(FLAGS.data_dir, "nsmc", "ratings_train.txt")),
        "similarity": measures.probe_similarity(
            model, tokenizer, os.path.join(FLAGS.data_dir, "korsts", "sts-train.tsv")
        ),
    }


def fit_curve(points):
    """Returns (floor, factor, power, largest error) of floor + factor * minutes ** -power; None for under 3 points."""
    if len(points) < 3:
        return None
    minutes, bits = np.log([point[0] for point in points]), np.array([point[1] for point in points])
    fits = []
    for floor in np.linspace(0, bits.min() - 0.01, 200):
        slope, start = np.polyfit(minutes, np.log(bits - floor), 1)
        worst = abs(floor + np.exp(start + slope * minutes) - bits).max()
        fits.append((floor, np.exp(start), -slope, worst))
    return min(fits, key=lambda fit: fit[3])


def show(results):
    """Writes results.md, a row for each contestant that is done, and what the curves of a shape's budgets come to."""
    columns = "parameters, M", "steps", "places, M", "minutes (used)", "ms a step", "bits a character", *KINDS
    columns += "NSMC, 1,000 labels: last layer (best)", "KorSTS: ridge (best), cosine (best)", "[UNK] words"
    lines = [f"| | {' | '.join(columns)} |", f"|{'---|' * (1 + len(columns))}"]
    points = {}
    for name, row in results["rows"].items():
        budget, reviews = row["contestant"]["minutes"] * FLAGS.minutes, row["reviews"]
        ridge, cosine = row["similarity"]["ridge"], row["similarity"]["cosine"]
        cells = [f"{row['parameters'] / 1e6:.2f}", f"{row['steps']:,}", f"{row['places'] / 1e6:.1f}"]
        cells += [f"{budget:g} ({row['seconds'] / 60:.1f})", f"{1000 * row['step_seconds']:.0f}"]
        cells += [f"**{row['bits_per_character']:.3f}**", *(f"{row['bits_by_kind'][kind]:.2f}" for kind in KINDS)]
        cells += [f"{100 * reviews[-1]:.1f} ({100 * max(reviews):.1f})"]
        cells += [f"{100 * ridge[-1]:.1f} ({100 * max(ridge):.1f}), {100 * cosine[-1]:.1f} ({100 * max(cosine):.1f})"]
        lines.append(f"| {name} | {' | '.join(cells)} | {row['unknown_words']:.3%} |")
        same = tuple((key, value) for key, value in row["contestant"].items() if key != "minutes")
        points.setdefault(same, []).append((budget, row["bits_per_character"], name))
    for same in points.values():
        if fit := fit_curve(sorted(same)):
            floor, factor, power, worst = fit
            later = ", ".join(f"{hours} h: {floor + factor * (60 * hours) ** -power:.3f}" for hours in (4, 14, 40))
            lines += [
                "",
                f"{same[0][2]}: {floor:.2f} + {factor:.3f} minutes^-{power:.3f} (within {worst:.3f}); {later}",
            ]
    print("\n".join(lines), flush=True)
    with open(path_of("results.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main(_):
    FLAGS.data_dir, FLAGS.output_dir = os.path.abspath(FLAGS.data_dir), os.path.abspath(FLAGS.output_dir)
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    path = path_of("results.json")
    results = read_json(path, "the results") if os.path.exists(path) else {"rows": {}}
    if not FLAGS.show and not os.path.exists(path_of("texts", "held_out.json")):
        write_mixtures(FLAGS.data_dir, path_of("texts"), {name: shares_of(each) for name, each in MIXTURES.items()})
    for name, contestant in CONTESTANTS.items() if not FLAGS.show else ():
        if name not in results["rows"] and (not FLAGS.only or name in FLAGS.only):
            try:
                results["rows"][name] = measure(name, contestant, results)
            except subprocess.CalledProcessError as error:  # the others can do without it, and it is tried again later
                print(f"{name}: {error}", flush=True)
            write_json(path, results)
            show(results)
    show(results)


if __name__ == "__main__":
    app.run(main)
