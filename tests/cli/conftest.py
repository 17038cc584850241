"""Small inputs for whole runs of the training scripts."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import types

import pytest
import tensorflow as tf
from forked_commands import ForkedCommands
from matplotlib.figure import Figure
from writing_commands import CASE_NAMES, Inputs, make_cases

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.pretraining_data.making.builder import BuilderOptions, build
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import CorpusReader
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.run_folder.guard import claim_output_dir
from albert_tf.training.train_loop import TrainResult

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QUICK_SCRIPT = pathlib.Path(__file__).with_name("quick_script.py")


@pytest.fixture(scope="module", autouse=True)
def quick_training(quick_to_trace):
    """Lets the few steps of each run in this process be traced quickly; `start_process` does so in others.

    Nor are its pictures drawn, which takes as long as a tenth of a run; tests of each picture draw it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, file, **_: file.write(b"a picture"))
        yield


@pytest.fixture(scope="session")
def tiny_config(sample_tokenizer) -> AlbertConfig:
    """A model for the sample's vocabulary that trains a step in no time."""
    return AlbertConfig(
        vocab_size=len(sample_tokenizer.vocabulary),
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=128,
    )


@pytest.fixture(scope="session")
def write_config(tmp_path_factory):
    """Writes a model config into a folder of its own and returns the path."""

    def write(config: AlbertConfig) -> pathlib.Path:
        path = tmp_path_factory.mktemp("config") / "albert_config.json"
        path.write_text(json.dumps(config.to_dict()))
        return path

    return write


@pytest.fixture(scope="session")
def config_file(tiny_config, write_config):
    """Path of the tiny model's config."""
    return write_config(tiny_config)


@pytest.fixture(scope="session")
def build_shards(sample_corpus, sample_tokenizer, tmp_path_factory):
    """Builds train.tfrecord and held_out.tfrecord of a few documents in a folder of their own."""

    def build_with(max_seq_length, max_predictions_per_seq, **options) -> pathlib.Path:
        folder = tmp_path_factory.mktemp("shards")
        documents = itertools.islice(CorpusReader(sample_corpus).documents(), 12)
        (folder / "corpus.txt").write_text("\n\n".join("\n".join(document) for document in documents))
        options = {"held_out_fraction": 0.3, **options}
        held_out = [str(folder / "held_out.tfrecord")] if options["held_out_fraction"] else []
        build(
            CorpusReader([str(folder / "corpus.txt")]),
            sample_tokenizer,
            BuilderOptions(max_seq_length, MaskingOptions(max_predictions_per_seq), **options),
            [str(folder / "train.tfrecord")],
            held_out,
        )
        return folder

    return build_with


@pytest.fixture(scope="session")
def shards(build_shards) -> pathlib.Path:
    """A folder of shards with sequences of 32 pieces."""
    return build_shards(32, 5)


@pytest.fixture(scope="session")
def checkpoint(tiny_config, sample_tokenizer, tmp_path_factory) -> pathlib.Path:
    """The folder of a pre-training run that has just begun, with config and tokenizer."""
    return _begin_run(tmp_path_factory.mktemp("checkpoint"), "albert", tiny_config, sample_tokenizer)


@pytest.fixture(scope="session")
def causal_checkpoint(tiny_config, sample_tokenizer, tmp_path_factory) -> pathlib.Path:
    """Likewise, of a causal model."""
    config = tiny_config.replace(is_causal=True, pooler=False, initializer_range=0.3)
    return _begin_run(tmp_path_factory.mktemp("causal"), "causal", config, sample_tokenizer)


def _begin_run(folder, objective, config, tokenizer):
    settings = {"command": "run_pretraining", "objective": objective, "learning_rate": 1.0}
    claim_output_dir(str(folder), settings, config, tokenizer)
    tf.keras.utils.set_random_seed(5)
    variables = named_variables(AlbertForPreTraining(config))
    checkpointer = Checkpointer(
        str(folder),
        {
            **{f"model/{name}": value for name, value in variables.items()},
            "global_step": tf.Variable(3, dtype=tf.int64),
        },
    )
    checkpointer.save()
    checkpointer.wait()
    return folder


@pytest.fixture
def flag_values(shards, config_file, tmp_path):
    """Flags of a run of four steps."""
    return {
        "input_file": shards / "train.tfrecord",
        "albert_config_file": config_file,
        "output_dir": tmp_path / "run",
        "do_eval": True,
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "num_train_steps": 4,
        "num_warmup_steps": 1,
        "save_checkpoints_steps": 2,
    }


@pytest.fixture
def pretrain(run_script, flag_values):
    """Runs the script; flags may be replaced or, with None, left out."""
    return lambda **changes: run_script("run_pretraining.py", **{**flag_values, **changes})


@pytest.fixture(scope="session")
def pretrained_folder(tmp_path_factory):
    """A folder for the pre-training run that the first test trains for all of them."""
    return tmp_path_factory.mktemp("pretrained") / "run"


@pytest.fixture(scope="module")
def folder_of_run(tmp_path_factory):
    """A folder for the run that the first test of a module trains for all of them."""
    return tmp_path_factory.mktemp("trained") / "run"


@pytest.fixture
def pretrained(pretrain, pretrained_folder):
    """The folder of a run of four steps, saved at the second and the last, that was evaluated; not to be changed."""
    if not pretrained_folder.exists():
        assert pretrain(output_dir=pretrained_folder).code == 0
    return pretrained_folder


@pytest.fixture(scope="session")
def classified_folder(tmp_path_factory):
    """A folder for the classifier that the first test trains for all of them."""
    return tmp_path_factory.mktemp("classified") / "run"


@pytest.fixture
def classified(classify, classified_folder):
    """The folder of a classifier of three steps, evaluated and used; not to be changed."""
    if not classified_folder.exists():
        classify(output_dir=classified_folder, do_train=True, do_eval=True, do_predict=True).succeeded()
    return classified_folder


@pytest.fixture
def without_training(monkeypatch):
    """Replaces the loop; returns a list of what each run would have trained with."""
    runs = []

    def train(state, phases, settings, *others):
        *_, claim = others
        claim()
        models = {
            model_name: {name: variable.numpy() for name, variable in named_variables(model).items()}
            for model_name, model in state.models.items()
        }
        runs.append(
            types.SimpleNamespace(
                models=models,
                weights=models["model"],
                optimizer=state.optimizer,
                first_batch=next(iter(phases[0].make_dataset(0, 0, 1))),
                phases=phases,
                settings=settings,
                global_step=int(state.global_step.numpy()),
            )
        )
        return TrainResult(is_finished=True)

    monkeypatch.setattr("albert_tf.training.run.train", train)
    return runs


@pytest.fixture
def contents():
    """Returns every file below a folder, by name; an absent folder has none."""

    def read(folder: pathlib.Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return read


@pytest.fixture
def assert_refused(contents):
    """Checks that a script ended with one sentence and left a folder as it was."""

    def check(run, folder: pathlib.Path) -> str:
        before = contents(folder)
        result = run()
        lines = [line for line in result.errors.splitlines() if line]
        assert result.code == 1, result
        assert len(lines) == 1 and lines[0].startswith("error: "), result.errors
        assert contents(folder) == before
        return lines[0].removeprefix("error: ")

    return check


@pytest.fixture(scope="session")
def start_process():
    """Starts a script in a process of its own, for what only a fresh process can show; it is traced quickly there."""

    def start(name: str, environment: dict[str, str] | None = None, **flag_values) -> subprocess.Popen:
        arguments = [
            f"--{flag}={str(value).lower() if isinstance(value, bool) else value}"
            for flag, value in flag_values.items()
        ]
        return subprocess.Popen(
            [sys.executable, str(QUICK_SCRIPT), str(ROOT / name), *arguments],
            env={**os.environ, **(environment or {})},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # As a terminal would; a job that runs in the background ignores Ctrl-C, and so would what it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start


@pytest.fixture
def without_autograph(tmp_path):
    """The environment of a process, and a look at what AutoGraph, which takes seconds, has converted in it.

    A process that ends deletes what was converted: look while it runs, or after it was killed.
    """
    folder = tmp_path / "temporary"
    folder.mkdir()

    def converted():
        return list(folder.glob("__autograph_generated_file*"))

    return types.SimpleNamespace(environment={"TMPDIR": str(folder)}, converted=converted)


@pytest.fixture(scope="session")
def forked():
    """Runs commands in processes that start at once; see `ForkedCommands`."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler, called cc")
    with ForkedCommands() as commands:
        yield commands


@pytest.fixture(scope="session")
def run_case(forked):
    """Runs a command that writes, into "out" in a folder; it may get a signal at a change of a file there."""

    def run(case, folder, signal_at=0, number=signal.SIGKILL):
        if case.into_folder:
            (folder / "out").mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        return forked.run(case.script, case.given(folder / "out"), folder, signal_at, number)

    return run


@pytest.fixture(scope="session")
def writing_cases(run_case, shards, config_file, sample_tokenizer_dir, checkpoint, causal_checkpoint, tmp_path_factory):
    """Every command that writes; see `writing_commands`."""

    def run(case, folder):
        ended = run_case(case, folder.parent)
        assert ended.code == 0, ended.errors
        (folder.parent / "out").rename(folder)

    folder = tmp_path_factory.mktemp("writing")
    tokenizer_dir = pathlib.Path(sample_tokenizer_dir)
    inputs = Inputs(shards / "corpus.txt", shards, config_file, tokenizer_dir, checkpoint, causal_checkpoint, folder)
    return make_cases(inputs, run)


@pytest.fixture(params=CASE_NAMES)
def writing_case(request, writing_cases):
    """One of them."""
    return next(case for case in writing_cases if case.name == request.param)


@pytest.fixture
def reviews(tmp_path):
    """A folder of train.tsv, dev.tsv and test.tsv with a few of the sample's reviews."""
    header, *lines = (ROOT / "samples" / "reviews" / "train.tsv").read_text(encoding="utf-8").splitlines()
    folder = tmp_path / "reviews"
    folder.mkdir()
    for name, part in (("train", lines[:12]), ("dev", lines[12:19]), ("test", lines[19:24])):
        (folder / f"{name}.tsv").write_text("\n".join([header, *part]) + "\n")
    return folder


@pytest.fixture
def finetuning_flags(checkpoint, tmp_path):
    """Flags of a run of three steps, whatever it learns."""
    return {
        "init_checkpoint": checkpoint,
        "output_dir": tmp_path / "run",
        "max_seq_length": 32,
        "train_step": 3,
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "predict_batch_size": 2,
        "learning_rate": 0.01,
    }


@pytest.fixture
def classifier_flags(reviews, finetuning_flags):
    """Flags of a run of three steps."""
    return {"task_name": "tsv", "data_dir": reviews, **finetuning_flags}


@pytest.fixture
def classify(run_script, classifier_flags):
    """Runs the script; flags may be added, replaced or, with None, left out."""
    return lambda **changes: run_script("run_classifier.py", **{**classifier_flags, **changes})
