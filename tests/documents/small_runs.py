"""Where the blocks of each page run: the files that a page takes for given, and smaller sizes for its commands."""

import collections.abc
import dataclasses
import gzip
import json
import pathlib
import shutil

import tensorflow as tf

from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
_PRETRAINING = {
    "num_train_steps": 2,
    "num_warmup_steps": 1,
    "train_batch_size": 4,
    "eval_batch_size": 4,
    "eval_every_steps": 2,
    "max_eval_steps": 1,
    "iterations_per_loop": 1,
}
_FINETUNING = {"train_step": 2, "warmup_step": 1, "train_batch_size": 4, "iterations_per_loop": 1}


@dataclasses.dataclass(frozen=True)
class Workplace:
    """The files that a page needs to run.

    Attributes:
        prepare: Makes files in a folder; returns the names that the page's Python takes for given.
        more_flags: Flags to add to, or to replace in, a script's command.
        replacements: Words to replace in Python.
        needs: Modules without which the page is skipped.
    """

    prepare: collections.abc.Callable[[pathlib.Path], dict] = lambda folder: {}
    more_flags: dict[str, dict] = dataclasses.field(default_factory=dict)
    replacements: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()

    def change(self, text: str) -> str:
        """Returns a block of Python with smaller sizes."""
        for old, new in self.replacements:
            text = text.replace(old, new)
        return text


def _corpus_and_reviews(folder):
    """Makes corpus/, nsmc/ and configs/ with a model of one layer for a vocabulary of 3,000 pieces."""
    (folder / "corpus").mkdir()
    for path in (ROOT / "samples" / "unlabelled_reviews").glob("*.txt"):
        lines = "\n".join(path.read_text(encoding="utf-8").splitlines()[:120]) + "\n"
        (folder / "corpus" / path.name).write_text(lines, encoding="utf-8")
        (folder / "corpus" / f"{path.name}.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "nsmc").mkdir()
    for part, name in (("train", "ratings_train.txt"), ("dev", "ratings_test.txt")):
        lines = (ROOT / "samples" / "reviews" / f"{part}.tsv").read_text(encoding="utf-8").splitlines()[:61]
        (folder / "nsmc" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copytree(ROOT / "configs", folder / "configs")
    path = folder / "configs" / "albert_ko_small.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    sizes = {"hidden_size": 32, "embedding_size": 16, "intermediate_size": 32}
    small = {**config, **sizes, "vocab_size": 3000, "num_hidden_layers": 1, "num_hidden_groups": 1}
    path.write_text(json.dumps(small), encoding="utf-8")
    return {}


def _tokenizer_page(folder):
    """Makes a vocabulary, and the two models that the page names, of which one is a SentencePiece model."""
    import sentencepiece_training
    import transformers

    from albert_tf.tokenization import SentencePieceTokenizer

    content = sentencepiece_training.train_model(sentencepiece_training.english_lines(), 1000)
    (folder / "30k-clean.model").write_bytes(content)
    SentencePieceTokenizer.from_model_file(str(folder / "30k-clean.model")).save(str(folder / "my_model"))
    shipped = KoreanWordPieceTokenizer.load(str(ROOT / "models" / "albert_ko_small"))
    shipped.save(str(folder / "vocabulary"))
    return {
        "tf": tf,
        "transformers": transformers,
        "Vocabulary": Vocabulary,
        "dataset": tf.data.Dataset.from_tensor_slices(["나는 밥을 먹었다.", "ㅋㅋ"]),
        "tokenizer": shipped,
    }


def _model_page(folder):
    """Makes a batch, and puts the shipped model where the page has a run."""
    from albert_tf.modeling import AlbertForSequenceClassification

    (folder / "run").mkdir()
    (folder / "run" / "pretraining").symlink_to(ROOT / "models" / "albert_ko_small")
    (folder / "configs").symlink_to(ROOT / "configs")
    ids, positions = tf.ones([2, 16], tf.int32), tf.zeros([2, 3], tf.int32)
    return {
        "ids": ids,
        "mask": ids,
        "segments": 0 * ids,
        "positions": positions,
        "AlbertForSequenceClassification": AlbertForSequenceClassification,
    }


def _nsmc_clone(folder):
    """Makes nsmc/raw/ of two films, and nsmc/ratings_test.txt with the review that one of them is without then."""
    (folder / "nsmc" / "raw").mkdir(parents=True)
    for film, reviews in (("1", ["정말  재밌어요", "별로"]), ("2", ["별로", ""])):
        content = json.dumps([{"movie_id": film, "review": review} for review in reviews], ensure_ascii=False)
        (folder / "nsmc" / "raw" / f"{film}.json").write_text(content, encoding="utf-8")
    (folder / "nsmc" / "ratings_test.txt").write_text("id\tdocument\tlabel\n7\t별로\t0\n", encoding="utf-8")
    return {}


def _checkpoints_page(folder):
    """Makes the folder of Hugging Face that the page has downloaded."""
    from albert_tf.interchange.conversion import convert_checkpoint

    list(convert_checkpoint("albert_tf", "huggingface", str(ROOT / "models" / "albert_ko_small"), "downloaded"))
    return {}


_ROAD = {
    "build_vocab.py": {"vocab_size": 3000},
    "create_pretraining_data.py": {
        "max_seq_length": 64,
        "held_out_fraction": 0.3,
        "num_workers": 1,
        "num_shards": 2,
        "dupe_factor": 1,
    },
    "run_pretraining.py": _PRETRAINING,
    "run_classifier.py": _FINETUNING,
}
# By the name of the page.
WORKPLACES = {
    "README.md": Workplace(_corpus_and_reviews, _ROAD),
    "docs/quick-start.md": Workplace(_corpus_and_reviews, _ROAD),
    "docs/concepts.md": Workplace(),
    "docs/tokenizer_reference.md": Workplace(_tokenizer_page, needs=("transformers",)),
    "docs/model.md": Workplace(_model_page),
    "docs/checkpoints.md": Workplace(_checkpoints_page, replacements=(('"my_model"', '"my_model_2"'),)),
    "docs/performance.md": Workplace(),
    "docs/scoring.md": Workplace(),
    "docs/korean_small_model.md": Workplace(_nsmc_clone),
    "docs/coming-from-huggingface.md": Workplace(
        more_flags={"run_classifier.py": _FINETUNING}, needs=("torch", "transformers")
    ),
    "docs/coming-from-kerashub.md": Workplace(
        more_flags={"run_classifier.py": _FINETUNING},
        replacements=(("their_model.compile(", "their_model.compile(jit_compile=False, "),),  # XLA takes a minute
        needs=("keras_hub",),
    ),
}
