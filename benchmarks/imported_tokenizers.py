"""How many strings get other ids from an imported tokenizer than in the library that it comes from.

python -m benchmarks.imported_tokenizers

The strings are those of tests/hostile_texts.py, drawn from what tokenizers disagree on. Each kind of tokenizer is made
and saved by its library, and read as convert_checkpoint.py reads it. Of SentencePiece, "ties" are strings with two ways
to cut them that are as probable, of which versions of the library choose one or the other. Google's WordPiece gets the
strings without characters that this Python's Unicode takes for something else than version 8. --vocab_files names
vocabularies of WordPiece besides the one that is made of the strings; models of SentencePiece are trained on the sample
and on tests/english_lines.txt. Needs requirements-references.txt.
"""

import collections.abc
import functools
import os
import pathlib
import sys
import tempfile
import types
import typing

# TensorFlow's own messages would drown the table.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import tensorflow as tf
from absl import app, flags

from albert_tf.base.errors import InputError
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.files import find_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import GOOGLE, HUGGINGFACE, KERAS_HUB
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer, Vocabulary
from benchmarks.stage import ROOT

sys.path += [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "tokenization")]

import google_tokenizer
import hostile_texts
import sentencepiece_training
from bert_reference import is_known_to_all_versions, vocabulary_of
from sentencepiece_reference import ReferenceTokenizer

FLAGS = flags.FLAGS

flags.DEFINE_integer("num_strings", 100_000, "How many strings each tokenizer gets.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Which strings.")
flags.DEFINE_list("vocab_files", [], "Further vocabularies of the continuation scheme.")
flags.DEFINE_string("only", "", "Kinds whose name holds this.")

_LARGEST = 1_000_000  # more rows than any vocabulary here


class Case(typing.NamedTuple):
    """A tokenizer that is imported.

    Attributes:
        name: What it is.
        library: Whose checkpoint it lies beside.
        save: Given a folder, writes it there.
        encode: Returns the ids of texts, in its library.
        flags: Of the conversion.
        is_meant: Whether a character is the same to both, as Google's code knows Unicode as this Python does.
    """

    name: str
    library: str
    save: collections.abc.Callable[[pathlib.Path], None]
    encode: collections.abc.Callable[[list[str]], list[list[int]]]
    flags: collections.abc.Mapping[str, bool] = types.MappingProxyType({})
    is_meant: collections.abc.Callable[[str], bool] | None = None


def wordpiece_cases(name: str, vocabulary: Vocabulary) -> collections.abc.Iterator[Case]:
    """Yields tokenizers of WordPiece with a vocabulary."""
    import transformers

    ids = {piece: number for number, piece in enumerate(vocabulary.pieces)}
    combinations = [(lower, strip, True) for lower in (True, False) for strip in (None, True, False)]
    for lower, strip, ideographs in [*combinations, (True, None, False)]:
        settings = {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": ideographs}
        peer = transformers.BertTokenizer(vocab=ids, **settings)
        said = ", ".join(
            f"{key}={value}" for key, value in settings.items() if key != "tokenize_chinese_chars" or not value
        )
        yield Case(f"BertTokenizer, {said}, {name}", HUGGINGFACE, peer.save_pretrained, _encode_fast(peer))
    peer = transformers.BertTokenizer(vocab=ids, strip_accents=False)
    plain = transformers.PreTrainedTokenizerFast(
        tokenizer_object=peer.backend_tokenizer,
        **{f"{token[1:-1].lower()}_token": token for token in vocabulary.pieces[:5]},
    )
    yield Case(f"PreTrainedTokenizerFast, {name}", HUGGINGFACE, plain.save_pretrained, _encode_fast(plain))

    for lower in (True, False):
        google = google_tokenizer.FullTokenizer(vocabulary.pieces, lower)
        yield Case(
            f"Google's FullTokenizer, do_lower_case={lower}, {name}",
            GOOGLE,
            lambda folder: vocabulary.to_file(folder / "vocab.txt"),
            lambda texts, google=google: [google.encode(text) for text in texts],
            {"do_lower_case": lower},
            functools.cache(lambda character, lower=lower: is_known_to_all_versions(character, lower)),
        )


def sentencepiece_cases(name: str, content: bytes) -> collections.abc.Iterator[Case]:
    """Yields tokenizers of SentencePiece with a model."""
    import keras_hub
    import transformers

    model = SentencePieceModel.from_bytes(content)

    def save(config=None):
        def write(folder):
            (folder / "spiece.model").write_bytes(content)
            if config is not None:
                (folder / "tokenizer_config.json").write_text(config)

        return write

    google = ReferenceTokenizer(content)
    yield Case(
        f"Google's, with sentencepiece, {name}",
        GOOGLE,
        save(),
        lambda texts: list(map(google.ids, texts)),
    )
    for keep_accents in (False, True):
        config = f'{{"tokenizer_class": "AlbertTokenizer", "keep_accents": {str(keep_accents).lower()}}}'
        python = ReferenceTokenizer(content, strip_accents=not keep_accents, normalize_quotes=True)
        yield Case(
            f"AlbertTokenizer in Python, keep_accents={keep_accents}, {name}",
            HUGGINGFACE,
            save(config),
            lambda texts, python=python: list(map(python.encode_as_huggingface, texts)),
        )
        fast = transformers.AlbertTokenizer(
            vocab=[(piece.text, piece.score) for piece in model.pieces],
            _spm_precompiled_charsmap=model.normalizer or None,
            keep_accents=keep_accents,
        )

        def save_fast(folder, fast=fast):
            save()(folder)
            fast.save_pretrained(folder)

        yield Case(
            f"AlbertTokenizer, fast, keep_accents={keep_accents}, {name}", HUGGINGFACE, save_fast, _encode_fast(fast)
        )
    peer = keras_hub.models.AlbertTokenizer(proto=content)

    def encode(texts):
        [ids] = tf.data.Dataset.from_tensors(tf.constant(texts)).map(peer)
        return ids.to_list()

    yield Case(
        f"KerasHub's AlbertTokenizer, {name}", KERAS_HUB, lambda folder: peer.save_to_preset(str(folder)), encode
    )


def _encode_fast(peer):
    def encode(texts):
        encodings = peer.backend_tokenizer.encode_batch(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    return encode


def _cases(texts):
    yield from wordpiece_cases("made of the strings", vocabulary_of(texts[:20_000], 3000))
    for path in FLAGS.vocab_files:
        yield from wordpiece_cases(os.path.basename(path), Vocabulary.from_file(path))
    files = sorted(pathlib.Path(ROOT, "samples", "corpus").glob("*.txt"))
    sample = [line for path in files for line in path.read_text("utf-8").split("\n")]
    english = [line.lower() for line in sentencepiece_training.english_lines()]
    for name, lines, rule in (("English", english, "nmt_nfkc"), ("Korean", sample, "identity")):
        content = sentencepiece_training.train_model(lines, 3000, normalization_rule_name=rule)
        yield from sentencepiece_cases(name, content)


def _is_tie(tokenizer, ours, theirs):
    scores = [sum(tokenizer.model.pieces[piece].score for piece in ids) for ids in (ours, theirs)]
    spelled = ["".join(tokenizer.vocabulary.pieces[piece] for piece in ids) for ids in (ours, theirs)]
    return spelled[0] == spelled[1] and abs(scores[0] - scores[1]) < 1e-3


def _row(case, texts):
    with tempfile.TemporaryDirectory() as folder:
        case.save(pathlib.Path(folder))
        try:
            found = find_tokenizer(folder, ReadOptions(**case.flags), _LARGEST, case.library)
            tokenizer, reason = found.tokenizer, next(iter(found.notes), "")
        except InputError as error:
            tokenizer, reason = None, str(error)
    if tokenizer is None:
        return f"refused: {reason.replace(folder, '...')[:90]}"
    different = [
        (ours, theirs)
        for ours, theirs in zip(tokenizer.encode_ids(texts).to_list(), case.encode(texts), strict=True)
        if ours != theirs
    ]
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return f"{len(different):,}"
    num_ties = sum(_is_tie(tokenizer, ours, theirs) for ours, theirs in different)
    return f"{len(different) - num_ties:,}, and {num_ties:,} ties"


def main(_):
    texts = hostile_texts.draw_texts(FLAGS.num_strings, FLAGS.seed)
    print("| kind | strings | with other ids |\n|---|---:|---:|")
    for case in _cases(texts):
        if FLAGS.only in case.name:
            meant = [text for text in texts if case.is_meant is None or all(map(case.is_meant, text))]
            print(f"| {case.name} | {len(meant):,} | {_row(case, meant)} |", flush=True)


if __name__ == "__main__":
    app.run(main)
