"""The training step: the update of a plain computation, on any number of replicas, in parts, and on several cores."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear, unevenly_weighted_points
from tiny_training import CONFIG, SCHEDULE, TinyRun, assert_same_training, never, unevenly_weighted_examples

from albert_tf.modeling.kernels.elementwise import dropout, part_of_batch
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.training import batches, evaluation, train_step
from albert_tf.training.batches import compute_in_parts
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator, make_output_function
from albert_tf.training.train_step import make_train_function

BATCH_SIZE, STEPS = 8, 3


def trained(num_replicas):
    """Returns a run after a few steps of LAMB."""
    run = TinyRun.start(num_replicas)
    run.take_steps(unevenly_weighted_examples(BATCH_SIZE), BATCH_SIZE)
    return run


@pytest.mark.slow
@pytest.mark.keras_2
def test_two_replicas_pretrain_as_one():
    assert_same_training(trained(2), trained(1))


@pytest.mark.slow
@pytest.mark.usefixtures("without_noise")
def test_four_replicas_train_as_one():
    runs = []
    for num_replicas in (4, 1):
        runs.append(start_linear(num_replicas))
        runs[-1].take_steps(unevenly_weighted_points(), 8)
    assert_same_training(*runs)


def plain_losses(model, batch):
    """Returns the two losses, each the mean of -log p over what has weight 1."""
    outputs = model(batch)

    def mean_loss(logits, labels, weights):
        log_probs = tf.gather(tf.math.log_softmax(logits), labels, batch_dims=labels.ndim)
        return -tf.reduce_sum(log_probs * weights) / tf.reduce_sum(weights)

    return (
        mean_loss(outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]),
        mean_loss(outputs["sentence_order_logits"], batch["sentence_order_labels"], batch["example_weights"]),
    )


def plain_update(weights, gradient, moments, learning_rate):
    """Returns new float64 weights and moments, by the formulas of LAMB's paper (You et al., 2020)."""
    m = 0.9 * moments[0] + 0.1 * gradient
    v = 0.999 * moments[1] + 0.001 * gradient**2
    update = m / (np.sqrt(v) + 1e-6)
    if weights.ndim == 2:  # biases and LayerNorm weights are vectors
        update += 0.01 * weights
        update *= np.linalg.norm(weights) / np.linalg.norm(update)
    return weights - learning_rate * update, (m, v)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
@pytest.mark.keras_2
def test_step_is_that_of_a_plain_computation():
    model = TinyRun.start().model
    variables = named_variables(model)
    weights = {name: variable.numpy().astype(np.float64) for name, variable in variables.items()}
    moments = {name: (np.zeros_like(values), np.zeros_like(values)) for name, values in weights.items()}
    examples, losses, counts, norms = unevenly_weighted_examples(BATCH_SIZE), [], [], []
    for step in range(STEPS):
        batch = {name: values[step * BATCH_SIZE : (step + 1) * BATCH_SIZE] for name, values in examples.items()}
        with tf.GradientTape() as tape:
            losses.append(plain_losses(model, batch))
            loss = tf.add_n(losses[-1])
        gradients = {
            name: tf.convert_to_tensor(gradient).numpy().astype(np.float64)
            for name, gradient in tape.gradient(loss, variables).items()
        }
        counts.append((batch["masked_lm_weights"].sum(), batch["example_weights"].sum()))
        norms.append(np.sqrt(sum(np.sum(gradient**2) for gradient in gradients.values())))
        for name, gradient in gradients.items():
            clipped = gradient / max(norms[-1], 1.0)
            learning_rate = 0.01 * (step + 1) / 3  # the warm-up
            weights[name], moments[name] = plain_update(weights[name], clipped, moments[name], learning_rate)
            variables[name].assign(weights[name])

    assert min(norms) < 1.0 < max(norms), "clipping is not tested both ways"
    assert SCHEDULE.num_warmup_steps == STEPS and SCHEDULE.peak == 0.01
    masked_lm_loss, sentence_order_loss = np.average(losses, axis=0, weights=counts)
    actual = trained(1)
    for name, expected in weights.items():
        # The root mean square, because Adam magnifies rounding where a gradient is next to zero.
        assert np.sqrt(np.mean((actual.weights()[name] - expected) ** 2)) < 5e-6, name
    expected = {
        "masked_lm_loss": masked_lm_loss,
        "sentence_order_loss": sentence_order_loss,
        "gradient_norm": np.mean(norms),
    }
    assert {name: actual.averages[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def dropout_seeds(monkeypatch, seed):
    """Returns the seeds that three steps on two replicas give their model."""
    seeds, run = [], start_linear(num_replicas=2)

    def record(shape, seed):
        tf.py_function(lambda values: seeds.append(tuple(values.numpy())), [seed], [])
        return 0.0

    monkeypatch.setattr("tensorflow.random.stateless_normal", record)
    train_steps = make_train_function(run.state, seed, never())
    dataset = tf.data.Dataset.from_tensor_slices(make_linear_examples(12)).batch(4)
    train_steps(iter(batches.distribute_batches(run.strategy, dataset)), tf.constant(3))
    assert run.global_step.numpy() == 3
    return set(seeds)


@pytest.mark.slow
def test_dropout_seed_follows_from_seed_step_and_replica(monkeypatch):
    seeds = dropout_seeds(monkeypatch, 1)
    assert len(seeds) == 3 * 2
    assert dropout_seeds(monkeypatch, 1) == seeds
    assert not dropout_seeds(monkeypatch, 2) & seeds


@functools.cache
def fitted(num_replicas, parts):
    """Returns a run after three steps."""
    run = start_linear(num_replicas)
    run.take_steps(unevenly_weighted_points(), BATCH_SIZE, parts)
    return run


@pytest.fixture
def fitted_anew():
    """Forgets the runs before and after, because a test changes how they are made."""
    fitted.cache_clear()
    yield
    fitted.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("fitted_anew", "without_noise")
@pytest.mark.parametrize(("num_replicas", "parts"), [(1, 4), (2, 2)])
def test_batch_in_parts_gives_the_update_of_the_whole(num_replicas, parts):
    assert_same_training(fitted(num_replicas, parts), fitted(1, 1))


@pytest.mark.slow
@pytest.mark.keras_2
def test_pretraining_in_parts_gives_the_update_of_the_whole():
    runs = []
    for parts in (4, 1):
        runs.append(TinyRun.start(objective=make_objective("roberta", CONFIG)))
        before = runs[-1].weights()
        runs[-1].take_steps(unevenly_weighted_examples(BATCH_SIZE), BATCH_SIZE, parts)
    assert_same_training(*runs)
    for run in runs:
        untouched = {name for name, values in run.weights().items() if np.array_equal(values, before[name])}
        # Nothing reaches these without pairs; weight decay alone would have moved the kernels.
        assert untouched == {name for name in before if "pooler" in name or "sentence_order" in name}
        assert any(name.endswith("kernel") for name in untouched)


@pytest.mark.slow
def test_noise_depends_on_the_number_of_micro_batches_alone():
    for num_replicas, parts in ((1, 4), (4, 1)):
        assert_same_training(fitted(num_replicas, parts), fitted(2, 2))
    with pytest.raises(AssertionError):
        assert_same_training(fitted(1, 4), fitted(1, 1))


WITH_DROPOUT = CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
OF_DISTANCES = WITH_DROPOUT.replace(relative_attention="p2c|c2p", position_buckets=4)


@pytest.fixture
def on_cores(monkeypatch):
    """Lets the code believe in a number of cores."""
    return lambda count: monkeypatch.setattr(batches, "num_usable_cores", lambda: count)


@pytest.fixture
def counts(monkeypatch):
    """Returns a list that notes how many parts steps have when they are traced."""
    noted = []

    def note(*arguments):
        results = compute_in_parts(*arguments)
        noted.append(len(results))
        return results

    for module in (train_step, evaluation):
        monkeypatch.setattr(module, "compute_in_parts", note)
    return noted


def sizes_of_parts(batch, strategy=None, **options):
    """Returns how many examples each part has."""

    @tf.function(autograph=False)
    def compute():
        count = functools.partial(compute_in_parts, lambda part: tf.shape(part["values"])[0], **options)
        return (strategy or make_strategy()).run(count, args=({"values": batch},))

    return [int(size) for size in compute()]


@pytest.mark.parametrize(
    ("cores", "examples", "sizes"), [(1, 8, [8]), (2, 8, [4, 4]), (4, 6, [2] * 3), (8, 2, [1] * 2)]
)
def test_each_core_has_an_equal_part(on_cores, cores, examples, sizes):
    on_cores(cores)
    assert sizes_of_parts(tf.zeros([examples, 3])) == sizes


def test_batch_stays_whole_where_cores_can_not_share_it(on_cores):
    on_cores(2)
    assert sizes_of_parts(tf.zeros([7, 3])) == [7]
    assert sizes_of_parts(tf.zeros([8, 3]), compares_examples=True) == [8]
    assert sizes_of_parts(tf.zeros([8, 3]), make_strategy(jit_compile="true")) == [8]


def test_part_drops_what_the_whole_batch_drops_there():
    values, seed = tf.ones([6, 5, 4]), tf.constant([3, -2])
    parts = []
    for index in range(3):
        with part_of_batch(tf.constant(index)):
            parts.append(dropout(values[:2], 0.5, seed))
            whole = dropout(values, 0.5, seed, has_examples=False)
    np.testing.assert_array_equal(tf.concat(parts, axis=0), dropout(values, 0.5, seed))
    np.testing.assert_array_equal(whole, dropout(values, 0.5, seed))


@pytest.mark.slow
@pytest.mark.parametrize(("config", "gradient_accumulation_steps"), [(WITH_DROPOUT, 2), (OF_DISTANCES, 1)])
def test_cores_train_as_one_does_and_end_with_the_same_bits_each_time(
    on_cores, counts, config, gradient_accumulation_steps
):
    runs = []
    for cores in (1, 4, 4):
        on_cores(cores)
        runs.append(TinyRun.start(config=config, objective=make_objective("albert", config)))
        examples = unevenly_weighted_examples(BATCH_SIZE)
        runs[-1].take_steps(examples, BATCH_SIZE, gradient_accumulation_steps, drop_remainder=True)
    assert sorted(set(counts)) == [1, 4]
    alone, together, again = runs
    assert_same_training(together, alone)
    np.testing.assert_equal(again.weights(), together.weights())


@pytest.mark.slow
def test_cores_evaluate_and_predict_as_one_does(on_cores, counts):
    run = TinyRun.start()
    dataset = tf.data.Dataset.from_tensor_slices(unevenly_weighted_examples(BATCH_SIZE)).batch(
        BATCH_SIZE, drop_remainder=True
    )
    results, outputs = [], []
    for cores in (1, 2):
        on_cores(cores)
        results.append(Evaluator(run.strategy, run.state.objective, run.state.models).evaluate(dataset))
        outputs.append(make_output_function(run.strategy, lambda batch: run.model(batch))(dataset))
    assert counts == [1, 1, 2, 2]
    assert results[1] == pytest.approx(results[0], rel=1e-5)
    for name, expected in outputs[0].items():
        np.testing.assert_allclose(outputs[1][name], expected, atol=1e-5, err_msg=name)
