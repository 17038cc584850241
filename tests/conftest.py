"""Fixtures that tests of several parts share."""

import contextlib
import dataclasses
import functools
import gc
import os
import pathlib
import runpy
import signal
import sys
import threading

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# As the commands do on every processor: what they compute is compared with what tests compute, bit for bit.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# Where several tests run at once, the threads of scikit-learn and PyTorch would mostly wait for one another, and spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compiling takes most of the time of what XLA runs here: LLVM optimizes little of it, XLA itself all.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import numpy as np
import sentencepiece_training
import tensorflow as tf
from absl import app, flags
from hypothesis import settings
from tensorflow_text.python.ops import fast_wordpiece_tokenizer
from tiny_config import tiny_config

from albert_tf.base import compilation, files
from albert_tf.finetuning import Classification
from albert_tf.reading.documents import CorpusReader
from albert_tf.serving import exporting
from albert_tf.serving.loading import TrainedModel
from albert_tf.tokenization import KoreanWordPieceTokenizer, SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.vocabulary_training import count_words, train_vocabulary

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED_DATA = pathlib.Path(os.environ.get("ALBERT_TF_SHARED_DATA", ROOT.parent / "shared" / "data"))


# What is started in the background ignores Ctrl-C, and so would the scripts that tests start and interrupt.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before anything runs: replicas on the CPU need logical devices, whose number is fixed once TensorFlow has started.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
)
app.define_help_flags()

# How long a test takes says nothing about the code: the first call of a TensorFlow op takes longer than all others.
settings.register_profile("albert_tf", deadline=None, derandomize=True)
settings.load_profile("albert_tf")


def pytest_collection_finish():
    """Spares the garbage collector what libraries and tests have made by now: it would look at all of it often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def vocabularies_become_tensors_quickly():
    """Turns the automaton of a vocabulary into a tensor as bytes, where TensorFlow Text makes numbers of Python first.

    That takes most of the time in which a tokenizer is loaded, and tests load the sample's again and again.
    """
    module = fast_wordpiece_tokenizer.pywrap_fast_wordpiece_tokenizer_model_builder
    build = module.build_fast_wordpiece_model
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "build_fast_wordpiece_model", lambda *options: tf.constant(np.frombuffer(build(*options), np.uint8))
        )
        yield


@pytest.fixture
def shared_data() -> pathlib.Path:
    """The folder of real Korean data, which is not part of the repository; skips where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the Korean data sets in {SHARED_DATA} (ALBERT_TF_SHARED_DATA names another folder)")
    return SHARED_DATA


@pytest.fixture(scope="module", params=["tensorflow", "python"])
def opened_by(request):
    """Lets local files be opened by TensorFlow, and once more as in a process that has none."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(files, "_has_tensorflow", lambda: False)
        yield request.param


@pytest.fixture(scope="session")
def sample_corpus() -> list[str]:
    """Paths of the built-in sample's documents."""
    return sorted(str(path) for path in (ROOT / "samples" / "corpus").glob("*.txt"))


@pytest.fixture(scope="session")
def sample_lines(sample_corpus) -> list[str]:
    """Every sentence of the built-in sample, and every review with its id and label."""
    paths = [*map(pathlib.Path, sample_corpus), *sorted((ROOT / "samples" / "reviews").glob("*.tsv"))]
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="session")
def sample_tokenizer_dir(tmp_path_factory, sample_corpus) -> str:
    """A folder with vocab.txt (4,000 pieces of the sample corpus) and tokenizer.json."""
    folder = str(tmp_path_factory.mktemp("vocabulary"))
    vocabulary = train_vocabulary(count_words(CorpusReader(sample_corpus).sentences()), 4000, "continuation")
    KoreanWordPieceTokenizer(vocabulary).save(folder)
    return folder


@pytest.fixture(scope="session")
def sample_tokenizer(sample_tokenizer_dir) -> KoreanWordPieceTokenizer:
    """The tokenizer in `sample_tokenizer_dir`."""
    return KoreanWordPieceTokenizer.load(sample_tokenizer_dir)


@pytest.fixture(scope="session")
def english_model_file(tmp_path_factory) -> pathlib.Path:
    """A SentencePiece model as English ALBERTs have it: 30k-clean.model of 3,000 pieces, 30k-clean.vocab beside it."""
    folder = tmp_path_factory.mktemp("sentencepiece")
    lines = [line.lower() for line in sentencepiece_training.english_lines()]
    content = sentencepiece_training.train_model(lines, 3000, normalization_rule_name="nmt_nfkc")
    (folder / "30k-clean.model").write_bytes(content)
    pieces = SentencePieceModel.from_bytes(content).pieces
    (folder / "30k-clean.vocab").write_text("".join(f"{piece.text}\t{piece.score:g}\n" for piece in pieces), "utf-8")
    return folder / "30k-clean.model"


@pytest.fixture(scope="session")
def english_tokenizer(english_model_file) -> SentencePieceTokenizer:
    """The tokenizer of `english_model_file`, as the original uses it."""
    return SentencePieceTokenizer.from_model_file(english_model_file)


@pytest.fixture(scope="session")
def export_task(tmp_path_factory, sample_tokenizer):
    """Exports a task's model with random weights, always the same; returns the folder, called "films"."""

    def export(task, model_format="saved_model") -> pathlib.Path:
        tf.keras.utils.set_random_seed(1)
        trained = TrainedModel(task.make_model(), sample_tokenizer, 64, task, "model.ckpt-1", {})
        folder = tmp_path_factory.mktemp(model_format) / "films"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exporting, "load_trained", lambda *_, **__: trained)
            exporting.export_model("", str(folder), model_format=model_format)
        return folder

    return export


@pytest.fixture(scope="session")
def export_classifier(export_task, sample_tokenizer):
    """Exports a classifier of "나쁨" and "좋음"; see `export_task`."""
    return functools.partial(export_task, Classification(tiny_config(len(sample_tokenizer)), ("나쁨", "좋음")))


@pytest.fixture(scope="session")
def exported_classifier(export_classifier) -> pathlib.Path:
    """The folder "films" of a SavedModel; see `export_classifier`."""
    return export_classifier("saved_model")


@pytest.fixture(scope="module")
def quick_to_trace():
    """Leaves out what makes a step fast and takes longer than the few steps of a test: fused loops, graph optimizer."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "_xla_compiles_here", lambda: False)
        yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


@pytest.fixture
def as_users_run(quick_to_trace, monkeypatch):
    """Puts back, for one test, what `quick_to_trace` leaves out, so that this process computes as a script would."""
    monkeypatch.setattr(compilation, "_xla_compiles_here", lambda: True)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@dataclasses.dataclass(frozen=True)
class ScriptResult:
    """How a script ended: its exit code and what it printed."""

    code: int
    output: str
    errors: str

    def finished(self) -> "ScriptResult":
        """Checks that it came to its end; returns this."""
        assert self.code == 0, self.errors
        return self

    def succeeded(self) -> "ScriptResult":
        """Checks that it came to its end, and warned of nothing; returns this."""
        assert (self.code, self.errors) == (0, "")
        return self


@pytest.fixture
def run_script(capfd, monkeypatch):
    """Runs a script of the top level, or a stage of `albert-tf`, in this process as a user would in one of its own."""

    def run(name: str, *arguments: str, **flag_values) -> ScriptResult:
        """Returns how it ended; a flag's value may be a bool, a number, a path, a list, or None: left out."""
        given = {flag: value for flag, value in flag_values.items() if value is not None}
        arguments = [*arguments, *(_as_flag(flag, value) for flag, value in given.items())]
        started = [str(ROOT / name)] if name.endswith(".py") else ["albert-tf", name]
        monkeypatch.setattr(sys, "argv", [*started, *arguments])
        capfd.readouterr()
        with _flags_of_their_own():
            code = 0
            try:
                run_command(name)
            except SystemExit as stop:
                code = stop.code or 0
        captured = capfd.readouterr()
        return ScriptResult(code, captured.out, captured.err)

    return run


def run_command(name):
    """Runs a script of the top level, or a stage of `albert-tf`, whose command line is in sys.argv."""
    if name.endswith(".py"):
        runpy.run_path(str(ROOT / name), run_name="__main__")
    else:
        runpy.run_module("albert_tf", run_name="__main__", alter_sys=True)


def _as_flag(flag, value):
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no{flag}"
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return f"--{flag}={value}"


@contextlib.contextmanager
def _flags_of_their_own():
    """Forgets, afterwards, the flags that a script defined: absl keeps one set of flags for the whole process."""
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        flags.FLAGS.unparse_flags()
