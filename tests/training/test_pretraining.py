"""Objectives of pre-training: replicas, and steps that are compiled, learn as one; what has no use is left alone."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import (
    CONFIG,
    PREDICTIONS,
    SEQUENCE_LENGTH,
    TinyRun,
    assert_same_training,
    make_examples,
    unevenly_weighted_examples,
)
from tpu import make_tpu_strategy, trace_training

from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]

MASKED_LM = {"masked_lm_loss", "masked_lm_accuracy"}


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
    run, *_ = learn_alike(objective, make_blocks(24))
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


@pytest.mark.parametrize("num_languages", [2, 0])
def test_pairs_of_translations(num_languages):
    objective = make_objective("translation", CONFIG.replace(num_languages=num_languages, pooler=False))
    examples = unevenly_weighted_examples(8)
    first = np.arange(len(examples["input_ids"]))[:, None] % 2
    pairs = {**examples, "language_ids": (first ^ examples["segment_ids"]).astype(np.int32)}
    pairs = {name: pairs[name] for name in pairs if name not in ("sentence_order_labels", "example_weights")}
    run, *_ = learn_alike(objective, pairs, compiles=False)
    assert run.averages.keys() >= MASKED_LM


def teacher_of(run):
    return {name: variable.numpy() for name, variable in named_variables(run.state.models["teacher"]).items()}


@pytest.mark.parametrize(("kind", "width"), [("relations", 16), ("logits", 16), ("layers", 8)])
def test_what_a_frozen_teacher_does(kind, width, tmp_path):
    (tmp_path / "albert_config.json").write_text(json.dumps(CONFIG.replace(num_hidden_layers=2).to_dict()))
    options = {"settings": {"teacher": str(tmp_path), "distillation": kind}, "masking": MaskingOptions(PREDICTIONS)}
    objective = make_objective("distil", CONFIG.replace(hidden_size=width), **options)
    examples = {name: make_examples(24)[name] for name in objective.batch_spec(SEQUENCE_LENGTH)}
    for name in {"input_mask", "masked_lm_weights"} & examples.keys():
        examples[name][3::4] = 0  # as what fills a batch
    before = teacher_of(TinyRun.start(optimizer="adamw", objective=objective))
    for run in learn_alike(objective, examples, compiles=False):
        np.testing.assert_equal(teacher_of(run), before)
        names = run.state.named_variables()
        assert not [name for name in names if "teacher" in name]
        assert ("projection/kernel" in names) == ("first_moments/projection/kernel" in names) == (kind == "layers")
        assert run.averages.keys() >= objective.loss_coefficients.keys()


def serves_order(name):
    return "pooler" in name or "sentence_order" in name


def test_what_serves_sentence_order_alone_is_left_as_it_is():
    run = TinyRun.start(num_replicas=2, objective=make_objective("roberta", CONFIG))
    before = run.weights()
    averages = run.take_steps(make_examples(12), 4)
    trust_ratios = {f"trust_ratio/{name}" for name in before if name.endswith(("kernel", "embeddings"))}
    expected = {name for name in trust_ratios if not serves_order(name)}
    assert averages.keys() == MASKED_LM | {"gradient_norm"} | expected
    assert expected < trust_ratios
    changed = {name for name, weights in run.weights().items() if not np.array_equal(weights, before[name])}
    assert changed == {name for name in before if not serves_order(name)}
    assert any(map(serves_order, before))


def test_masked_lm_is_the_same_with_and_without_pairs():
    dataset = tf.data.Dataset.from_tensor_slices(make_examples(8)).batch(4)
    run = TinyRun.start()
    pairs, single = (
        Evaluator(run.strategy, make_objective(name, CONFIG), run.state.models).evaluate(dataset)
        for name in ("albert", "roberta")
    )
    assert pairs.keys() == {"loss", "sentence_order_loss", "sentence_order_accuracy"} | MASKED_LM
    assert single == {"loss": pairs["masked_lm_loss"], **{name: pairs[name] for name in MASKED_LM}}


def test_step_without_pairs_is_traced_for_tpus():
    # Outside of a graph, operations would be sent to cores that are not there.
    with tf.Graph().as_default():
        run = TinyRun.start(strategy=make_tpu_strategy(), objective=make_objective("roberta", CONFIG))
        nodes = trace_training(run.state, make_examples(2))
        names = [name for name in run.optimizer.first_moments if not serves_order(name)]
    reductions = [node for node in nodes if node.op == "CrossReplicaSum"]
    assert len(reductions) == len(names) + 3, "one for each gradient, the weight of the loss, the loss and the metrics"
