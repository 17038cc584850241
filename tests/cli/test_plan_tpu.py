"""plan_tpu.py as a user runs it."""

import json
import pathlib

import pytest

from albert_tf.config import AlbertConfig

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"


@pytest.fixture
def plan(run_script):
    """Runs plan_tpu.py for the demo's model at length 64."""

    def run(**flag_values):
        arguments = {"albert_config_file": CONFIGS / "albert_demo.json", "max_seq_length": 64, **flag_values}
        return run_script("plan_tpu.py", **arguments)

    return run


@pytest.fixture
def compiler():
    """Skips a test where the compiler is not installed."""
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_one_batch_is_one_object(plan, write_config):
    config = AlbertConfig.from_json_file(CONFIGS / "albert_demo.json").replace(num_hidden_layers=1)
    result = plan(
        albert_config_file=write_config(config),
        tpu="v5e",
        train_batch_size=16,
        max_predictions_per_seq=10,
        optimizer="adamw",
        remat="none",
        json=True,
    )
    assert result.code == 0, result.errors
    assert all("compiling a batch" in line for line in result.errors.splitlines()), result.errors
    figures = json.loads(result.output)
    assert {"temporary_bytes", "argument_bytes", "bytes_accessed", "flops", "compile_seconds"} <= figures.keys()
    assert figures["argument_bytes"] > 3 * 4 * 500_000, "weights and two moments"


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_batch_that_does_not_fit_is_named_with_what_to_do(plan):
    result = plan(tpu="v5e", train_batch_size=16, compile_timeout=1)
    assert result.code == 1
    assert "error: --train_batch_size=16 does not fit a replica of v5e-1, or took longer than" in result.errors
    assert "--compile_timeout=1 seconds to compile; lower --train_batch_size" in result.errors


@pytest.mark.parametrize(
    ("flag_values", "sentence"),
    [
        ({"tpu": "v9"}, "--tpu=v9 is unknown; it must be one of v5e,"),
        ({"max_seq_length": 1024}, "--max_seq_length=1024 is more than the model's max_position_embeddings, 128"),
        ({"tpu": "v5e,v3-8", "attention": "flash"}, "--attention=flash needs a TPU from v4 on; use --attention=plain"),
        ({"albert_config_file": "nowhere.json"}, "can't read the model config nowhere.json: no such file"),
    ],
)
def test_mistake_costs_one_sentence(plan, flag_values, sentence):
    result = plan(**flag_values)
    assert result.code == 1 and not result.output
    assert result.errors.startswith(f"error: {sentence}") and result.errors.count("\n") == 1
