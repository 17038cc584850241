"""A tiny vocabulary whose pieces are plain to see, random documents in it, and shards made of them."""

import contextlib
import dataclasses
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.objectives import language_models, make_objective
from albert_tf.pretraining_data.input_pipeline import InputOptions
from albert_tf.pretraining_data.making import shard_writer
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.masking import MaskingOptions, mask_batch
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.reading.documents import CorpusReader
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary

SYLLABLES = "가나다라마바사아자차카타파하거너더러머버"


@pytest.fixture(scope="session", autouse=True)
def masks_are_traced_once():
    """Lets all builds and data sets with the same options share graphs of masking, whose tracing takes most time."""
    real, graphs = mask_batch, {}

    def shared_mask_batch(features, options, seed):
        tokens = options.tokens
        key = options, tokens.mask_id, tokens.unmaskable_ids, tokens.real_piece_ids.tobytes()
        if key not in graphs:
            graphs[key] = tf.function(
                lambda features, seed: real(features, options, seed), autograph=False, reduce_retracing=False
            )
        return graphs[key](features, seed)

    with pytest.MonkeyPatch.context() as patch:
        for module in (shard_writer, language_models):
            patch.setattr(module, "mask_batch", shared_mask_batch)
        yield


@pytest.fixture(scope="session")
def tiny_tokenizer() -> KoreanWordPieceTokenizer:
    """One piece a syllable: 가나다 becomes 가 ##나 ##다. The syllable 뷁 is unknown."""
    reserved = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]
    return KoreanWordPieceTokenizer(Vocabulary([*reserved, *SYLLABLES, *(f"##{syllable}" for syllable in SYLLABLES)]))


def _random_documents(num_documents, num_sentences=(2, 8), num_words=(1, 6), seed=7):
    random = np.random.default_rng(seed)

    def draw(low, high, make):
        return [make() for _ in range(random.integers(low, high))]

    def word():
        return "".join(random.choice(list(SYLLABLES), size=random.integers(1, 4)))

    return [draw(*num_sentences, lambda: " ".join(draw(*num_words, word))) for _ in range(num_documents)]


@pytest.fixture(scope="session")
def random_documents():
    """Makes a list of documents, each a list of sentences; sizes are half-open ranges."""
    return _random_documents


@pytest.fixture(scope="session")
def write_corpus():
    """Writes documents as the corpus format has them."""

    def write(path, documents):
        path.write_text("\n\n".join("\n".join(sentences) for sentences in documents) + "\n", encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def build_shards(tiny_tokenizer, write_corpus):
    """Builds shards in folder/data out of documents; returns manifest, train_paths, held_out_paths and folder."""

    def build_in(folder, documents, num_shards=1, max_predictions_per_seq=5, **options):
        folder.mkdir(exist_ok=True)
        data = folder / "data"
        train_paths = shard_paths(str(data / "train.tfrecord"), num_shards)
        defaults = {"max_seq_length": 32, "held_out_fraction": 0.3}
        options = BuilderOptions(masking_options=MaskingOptions(max_predictions_per_seq), **(defaults | options))
        held_out_paths = [str(data / "held_out.tfrecord")] if options.held_out_fraction else []
        reader = CorpusReader([write_corpus(folder / "corpus.txt", documents)])
        manifest = build(reader, tiny_tokenizer, options, train_paths, held_out_paths)
        return types.SimpleNamespace(
            manifest=manifest, train_paths=train_paths, held_out_paths=held_out_paths, folder=data
        )

    return build_in


@pytest.fixture(scope="session")
def dynamic_shards(build_shards, tmp_path_factory):
    """Three shards of unmasked training examples and one of masked held-out ones; look, don't touch."""
    return build_shards(tmp_path_factory.mktemp("dynamic"), _random_documents(60), num_shards=3)


@pytest.fixture(scope="session")
def static_shards(build_shards, tmp_path_factory):
    """Masked training and held-out examples; look, don't touch."""
    return build_shards(tmp_path_factory.mktemp("static"), _random_documents(30), masking="static", dupe_factor=3)


@pytest.fixture
def config(tiny_tokenizer):
    """A model for the tiny vocabulary."""
    return tiny_config(len(tiny_tokenizer.vocabulary))


@pytest.fixture
def folder(dynamic_shards, tmp_path):
    """A copy of the dynamic shards, to break."""
    return shutil.copytree(dynamic_shards.folder, tmp_path / "data")


@pytest.fixture
def find(config):
    """Calls `find_shards` with lists for strings and None for what is left out."""

    def call(input_file, held_out_file=None, config=config, on_damaged_shard="fail", **lengths):
        input_file = input_file if isinstance(input_file, list) else [input_file]
        shards, held_out = ([str(pattern) for pattern in given if pattern] for given in (input_file, [held_out_file]))
        return find_shards(shards, config, held_out, on_damaged_shard=on_damaged_shard, **lengths)

    return call


@pytest.fixture(scope="session")
def dynamic_options():
    """How to read `dynamic_shards`."""
    return InputOptions(32, 5, is_static=False)


@pytest.fixture(scope="session")
def prepare(tiny_tokenizer):
    """Makes batches of what the shards hold, as ALBERT learns from them."""
    masking = MaskingOptions(5).with_tokens_of(tiny_tokenizer.vocabulary)
    config = tiny_config(len(tiny_tokenizer.vocabulary))
    return make_objective("albert", config, masking=masking).prepare


@pytest.fixture(scope="session")
def contents_of():
    """Reads every file in a folder and its folders: path to bytes."""
    return lambda folder: {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def unreadable(monkeypatch):
    """Lets a file system refuse to read a file, until the context that it returns is left."""

    @contextlib.contextmanager
    def refuse(path):
        real_read = tf.io.gfile.GFile.read

        def read(file, n=-1):
            if file.name == str(path):
                raise tf.errors.UnavailableError(None, None, "503: try again later")
            return real_read(file, n)

        with monkeypatch.context() as patch:
            patch.setattr(tf.io.gfile.GFile, "read", read)
            yield

    return refuse


@dataclasses.dataclass(frozen=True)
class Record:
    """An example as it was before masking: the pieces of both segments in the order of the text."""

    features: dict[str, np.ndarray]
    earlier: list[int]
    later: list[int]


@pytest.fixture(scope="session")
def read_records():
    """Reads shards without the package's reader, and undoes masks and swaps."""

    def features_of(serialized):
        lists = tf.train.Example.FromString(serialized).features.feature
        return {
            name: np.array(feature.float_list.value if feature.HasField("float_list") else feature.int64_list.value)
            for name, feature in lists.items()
        }

    def read(paths):
        records = []
        for serialized in tf.data.TFRecordDataset(paths).as_numpy_iterator():
            features = features_of(serialized)
            ids = features["input_ids"].copy()
            for position, original in zip(features.get("masked_lm_positions", []), features.get("masked_lm_ids", [])):
                if position:
                    ids[position] = original
            is_second = features["segment_ids"] == 1
            is_first = (features["input_mask"] == 1) & ~is_second
            # Without [CLS] and the two [SEP].
            segments = [ids[is_first][1:-1].tolist(), ids[is_second][:-1].tolist()]
            if features["next_sentence_labels"][0]:
                segments.reverse()
            records.append(Record(features, *segments))
        return records

    return read
