"""The pre-training task on examples that are no pairs: nothing of sentence order is learnt, reported or spoilt."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, TinyRun, make_examples
from tpu import make_tpu_strategy, trace_training

from albert_tf.objectives import make_objective
from albert_tf.training.evaluation import Evaluator

MASKED_LM = {"masked_lm_loss", "masked_lm_accuracy"}
SENTENCE_ORDER = {"sentence_order_loss", "sentence_order_accuracy"}

pytestmark = pytest.mark.slow


def serves_sentence_order(name):
    return "pooler" in name or "sentence_order" in name


def test_what_serves_sentence_order_alone_is_left_as_it_is():
    run = TinyRun.start(num_replicas=2, objective=make_objective("roberta", CONFIG))
    before = run.weights()
    averages = run.take_steps(make_examples(12), 4)
    trust_ratios = {f"trust_ratio/{name}" for name in before if name.endswith(("kernel", "embeddings"))}
    expected = {name for name in trust_ratios if not serves_sentence_order(name)}
    assert averages.keys() == MASKED_LM | {"gradient_norm"} | expected
    assert expected < trust_ratios
    changed = {name for name, weights in run.weights().items() if not np.array_equal(weights, before[name])}
    assert changed == {name for name in before if not serves_sentence_order(name)}
    assert any(map(serves_sentence_order, before))


def test_masked_lm_is_the_same_with_and_without_pairs():
    dataset = tf.data.Dataset.from_tensor_slices(make_examples(8)).batch(4)
    run = TinyRun.start()
    pairs, single = (
        Evaluator(run.strategy, make_objective(name, CONFIG), run.state.models).evaluate(dataset)
        for name in ("albert", "roberta")
    )
    assert pairs.keys() == {"loss"} | MASKED_LM | SENTENCE_ORDER
    assert single == {"loss": pairs["masked_lm_loss"], **{name: pairs[name] for name in MASKED_LM}}


def test_step_without_pairs_is_traced_for_tpus():
    # Outside of a graph, operations would be sent to cores that are not there.
    with tf.Graph().as_default():
        run = TinyRun.start(strategy=make_tpu_strategy(), objective=make_objective("roberta", CONFIG))
        nodes = trace_training(run.state, make_examples(2))
        names = [name for name in run.optimizer.first_moments if not serves_sentence_order(name)]
    reductions = [node for node in nodes if node.op == "CrossReplicaSum"]
    assert len(reductions) == len(names) + 3, "one for each gradient, the weight of the loss, the loss and the metrics"
