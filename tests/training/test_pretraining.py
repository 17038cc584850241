"""Objectives of pre-training: replicas, and steps that are compiled, learn as one."""

import json

import numpy as np
import pytest
from tiny_training import CONFIG, PREDICTIONS, SEQUENCE_LENGTH, TinyRun, assert_same_training, make_examples

from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training.devices import make_strategy

pytestmark = pytest.mark.slow


def learn_alike(objective, examples, compiles=True):
    """Checks that two replicas and one whose steps are compiled learn as one does; returns all runs."""
    options = [{}, {"num_cpu_replicas": 2}, *[{"jit_compile": "true"}] * compiles]
    runs = [TinyRun.start(strategy=make_strategy(**each), optimizer="adamw", objective=objective) for each in options]
    for run in runs:
        run.take_steps(examples, 8)
        assert_same_training(run, runs[0])
    return runs


def make_blocks(count):
    """Returns examples of up to three documents; every fourth one is empty, as what fills a batch up."""
    draws = np.random.default_rng(0)
    numbers = np.sort(draws.integers(1, 4, [count, SEQUENCE_LENGTH]))
    numbers[3::4] = 0
    begins = np.array([[np.flatnonzero(row == number)[0] for number in row] for row in numbers])
    blocks = {
        "input_ids": draws.integers(5, CONFIG.vocab_size, numbers.shape) * (numbers > 0),
        "input_mask": numbers > 0,
        "segment_ids": np.zeros_like(numbers),
        "document_ids": numbers,
        "position_ids": np.arange(SEQUENCE_LENGTH) - begins,
    }
    characters = draws.integers(5, 30, count) * (numbers[:, 0] > 0)
    return {name: values.astype(np.int32) for name, values in blocks.items()} | {
        "num_characters": characters.astype(np.float32)
    }


def test_what_comes_next():
    family = {"norm_position": "pre", "language_model_head": "tied", "embedding_size": 16, "type_vocab_size": 0}
    objective = make_objective("causal", CONFIG.replace(is_causal=True, pooler=False, **family))
    run, *_ = learn_alike(objective, make_blocks(24), compiles=False)
    assert {"causal_lm_loss", "causal_lm_accuracy", "bits_per_character"} <= run.averages.keys()


def make_masked(count):
    """Returns examples whose masked pieces are told by the others; every fourth one is empty, as what fills a batch."""
    examples, draws = make_examples(count), np.random.default_rng(1)
    positions = np.sort(np.argsort(draws.random([count, 6]), axis=1)[:, :PREDICTIONS], axis=1).astype(np.int32)
    examples["masked_lm_positions"] = positions
    examples["masked_lm_ids"] = np.take_along_axis(examples["input_ids"], positions, axis=1)
    np.put_along_axis(examples["input_ids"], positions, 4, axis=1)
    examples["replacement_draws"] = draws.random([count, PREDICTIONS], np.float32)
    for name in ("input_mask", "masked_lm_weights"):
        examples[name][3::4] = 0
    return examples


def test_which_pieces_were_replaced():
    config = CONFIG.replace(pooler=False, classification_head="dense_gelu")
    options = {"settings": {"generator_size": 0.5}, "masking": MaskingOptions(PREDICTIONS)}
    objective, examples = make_objective("electra", config, **options), make_masked(24)
    run, *_ = learn_alike(objective, {name: examples[name] for name in objective.batch_spec(SEQUENCE_LENGTH)})
    expected = {"masked_lm_loss", "replaced_token_loss", "replaced_token_share", "replaced_token_auc"}
    assert expected <= run.averages.keys()
    assert any(name.startswith("generator/") for name in run.weights())


def teacher_of(run):
    return {name: variable.numpy() for name, variable in named_variables(run.state.models["teacher"]).items()}


def test_what_a_frozen_teacher_does(tmp_path):
    (tmp_path / "albert_config.json").write_text(json.dumps(CONFIG.replace(num_hidden_layers=2).to_dict()))
    options = {"settings": {"teacher": str(tmp_path), "distillation": "layers"}, "masking": MaskingOptions(PREDICTIONS)}
    objective = make_objective("distil", CONFIG.replace(hidden_size=8), **options)
    examples = {name: make_examples(24)[name] for name in objective.batch_spec(SEQUENCE_LENGTH)}
    examples["input_mask"][3::4] = 0  # as what fills a batch
    before = teacher_of(TinyRun.start(optimizer="adamw", objective=objective))
    for run in learn_alike(objective, examples, compiles=False):
        np.testing.assert_equal(teacher_of(run), before)
        names = run.state.named_variables()
        assert not [name for name in names if "teacher" in name]
        assert {"projection/kernel", "first_moments/projection/kernel"} <= names.keys()
        assert run.averages.keys() >= objective.loss_coefficients.keys()
