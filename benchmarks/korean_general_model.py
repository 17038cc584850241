"""Makes models/albert_ko_general anew: mixture of texts, vocabulary, training data, pre-training, folder to give away.

python -m benchmarks.korean_general_model --data_dir=data --output_dir=benchmark/ko_general

`--data_dir` holds general/*.txt.gz, corpus_reviews/nsmc_reviews.txt.gz, corpus/python_docs_ko.txt.gz and
corpus_petitions/petitions.jsonl.gz. A run that was stopped goes on with the same command. Where the processor has no
bfloat16, the recipe runs in float32.
"""

import functools
import os

from absl import app, flags

from benchmarks.general_texts import write_mixtures
from benchmarks.stage import pretrain_in_parts, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of the texts' folders.", required=True)
flags.DEFINE_string(
    "output_dir", None, "Folder for everything; the model comes into its folder `second_model`.", required=True
)

# Megabytes of each source; of those left out all that there is.
MEGABYTES = {
    "kowiki_bysa": 60,
    "court_rulings": 8,
    "statutes": 5,
    "president_speeches": 14,
    "assembly_minutes": 6,
    "microsoft_docs": 4,
    "adobe_docs": 1,
    "nsmc_reviews": 25,
    "petitions": 10,
}


# Emoji that people write often today, though the texts have few of them.
EMOJI = "😀😁😂🤣😅😆😉😊😋😎😍😘🥰🙂🤔😐😏😥😮😴😌😓😔😞😤😢😭😱😳🥺😡😠🤮😷🤩👍👎👏🙏💪👌✌🙌👀❤💔💕💖💙💛💜🔥✨⭐🎉💯"
VOCABULARY = {"full_width_to_ascii": True, "split_emoji": True}


# One after the other, each from the weights that the one before came to, and on other documents of the large sources.
PARTS = (
    ("first", "ko_general.cfg", {}),
    ("second", "ko_general_continued.cfg", {}),
)


def mixture(part: int, sizes: dict[str, int]) -> dict[str, tuple[float, float]]:
    """Returns which documents of each source a part learns from."""
    shares = {source: min(1.0, 1e6 * MEGABYTES.get(source, size) / size) for source, size in sizes.items()}
    begins = {source: min(part * share, 1 - share) for source, share in shares.items()}
    return {source: (begins[source], begins[source] + share) for source, share in shares.items()}


def path_of(*names):
    return os.path.join(FLAGS.output_dir, *names)


def make_vocabulary(text: str) -> str:
    """Builds the vocabulary, unless it is there, and returns the path of its file."""
    learnt, whole = (path_of(name, "vocab.txt") for name in ("learnt_vocabulary", "vocabulary"))
    if not os.path.exists(learnt):
        run_stage(
            "build_vocab.py",
            input_file=text,
            output_dir=os.path.dirname(learnt),
            vocab_size=16_000,
            alphabet="ks_x_1001",
            limit_alphabet=5000,
            **VOCABULARY,
        )
    if not os.path.exists(whole):
        with open(learnt, encoding="utf-8") as file:
            known = set(file.read().split("\n"))
        run_stage(
            "build_vocab.py",
            vocab_file=learnt,
            output_dir=os.path.dirname(whole),
            assign_unused=",".join(emoji for emoji in EMOJI if emoji not in known),
        )
    return whole


def make_data(name: str, vocab_file: str) -> str:
    """Builds the shards of a part, unless they are there, and returns their folder."""
    folder = path_of(f"{name}_data")
    if not os.path.exists(os.path.join(folder, "manifest.json")):
        run_stage(
            "create_pretraining_data.py",
            input_file=path_of("texts", f"{name}.txt"),
            output_file=os.path.join(folder, "train.tfrecord"),
            vocab_file=vocab_file,
            num_shards=4,
            max_seq_length=128,
            objective="roberta",
            masked_lm_prob=0.3,
            ngram=1,
            held_out_fraction=0.005,
            num_workers=2,
            resume=True,
        )
    return folder


def main(_):
    if not os.path.exists(path_of("texts", "held_out.json")):
        mixtures = {name: functools.partial(mixture, part) for part, (name, *_) in enumerate(PARTS)}
        write_mixtures(FLAGS.data_dir, path_of("texts"), mixtures)
    vocab_file = make_vocabulary(path_of("texts", f"{PARTS[0][0]}.txt"))
    data = {name: make_data(name, vocab_file) for name, *_ in PARTS}
    pretrain_in_parts(PARTS, data, FLAGS.output_dir)


if __name__ == "__main__":
    app.run(main)
