"""LAMB, AdamW and Muon against the algorithms written out in NumPy, in float64."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, Lamb, LearningRateSchedule, Muon, make_optimizer
from albert_tf.optimization.updates import orthogonalized
from albert_tf.training.devices import make_strategy

SCHEDULE = LearningRateSchedule(0.1, num_train_steps=100, num_warmup_steps=3)
SHAPES = {
    "encoder/query/kernel": [4, 3],
    "encoder/query/bias": [3],
    "encoder/layer_norm/gamma": [3],
    "encoder/ln_f/gamma": [3],
    "encoder/ln_f/beta": [3],
    "embeddings/word_embeddings": [5, 2],
    "head/output_bias": [5],
}
DECAYED = {"encoder/query/kernel", "embeddings/word_embeddings"}
LOSS = tf.constant(1.0)  # tells an optimizer no more than that it is finite


def reference_update(kind, weights, moments, gradients, step, *, weight_decay, bias_correction):
    """Changes weights and moments in place by one step, step 0 being the first (You et al., 2020; paper's settings)."""
    rate = 0.1 * (step + 1) / 3 if step < 3 else 0.1 * (1 - (step - 3) / 97)
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    for name, gradient in gradients.items():
        gradient = gradient / max(1.0, norm)
        m, v = moments[name]
        m[...] = 0.9 * m + 0.1 * gradient
        v[...] = 0.999 * v + 0.001 * gradient**2
        if bias_correction:
            m, v = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
        update = m / (np.sqrt(v) + 1e-6)
        if name in DECAYED:
            update = update + weight_decay * weights[name]
            norms = np.linalg.norm(weights[name]), np.linalg.norm(update)
            if kind == "lamb" and min(norms) > 0:
                update = update * norms[0] / norms[1]
        weights[name] -= rate * update
    return norm


def make_weights(seed=0):
    random = np.random.default_rng(seed)
    return {name: random.normal(size=shape) for name, shape in SHAPES.items()}


def make_variables(weights):
    return {name: tf.Variable(values, dtype=tf.float32) for name, values in weights.items()}


def as_tensors(values):
    return {name: tf.constant(value, tf.float32) for name, value in values.items()}


# Gradients are clipped, and not.
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lamb", "adamw"])
@pytest.mark.parametrize(
    ("bias_correction", "gradient_scale", "weight_decay"), [(False, 10.0, 0.01), (True, 0.01, 0.01), (True, 10.0, 0.0)]
)
def test_steps_equal_the_reference(kind, bias_correction, gradient_scale, weight_decay):
    random = np.random.default_rng(1)
    options = {"weight_decay": weight_decay, "bias_correction": bias_correction}
    weights = make_weights()
    moments = {name: (np.zeros(shape), np.zeros(shape)) for name, shape in SHAPES.items()}
    variables = make_variables(weights)
    optimizer = make_optimizer(kind, variables, SCHEDULE, **options)
    apply = tf.function(optimizer.apply)
    for step in range(6):
        gradients = {name: gradient_scale * random.normal(size=shape) for name, shape in SHAPES.items()}
        norm = reference_update(kind, weights, moments, gradients, step, **options)
        applied = apply(as_tensors(gradients), tf.constant(step), LOSS)
        assert applied.is_finite
        assert float(applied.gradient_norm) == pytest.approx(norm, rel=1e-5)  # before clipping
        for name, values in weights.items():
            np.testing.assert_allclose(variables[name], values, rtol=1e-4, atol=1e-5, err_msg=f"{name}, step {step}")
    for name, (m, v) in moments.items():
        np.testing.assert_allclose(optimizer.first_moments[name], m, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(optimizer.second_moments[name], v, rtol=1e-4, atol=1e-10)


def apply_once(optimizer_class, weights, gradients, **options):
    """Returns the weights after one step with rate 0.1."""
    variables = make_variables(weights)
    optimizer = optimizer_class(variables, LearningRateSchedule(0.1, num_train_steps=10), **options)
    optimizer.apply(as_tensors(gradients), tf.constant(0), LOSS)
    return {name: variable.numpy() for name, variable in variables.items()}


@pytest.mark.parametrize(("optimizer_class", "decay"), [(AdamW, 0.1 * 0.01), (Lamb, 0.1)])
def test_all_but_biases_and_layer_norms_decay(optimizer_class, decay):
    model = AlbertForPreTraining(AlbertConfig(30, 8, 16, 1, num_attention_heads=2, intermediate_size=16))
    ones = {name: np.ones(variable.shape) for name, variable in named_variables(model).items()}
    zeros = {name: np.zeros_like(values) for name, values in ones.items()}
    # Without a gradient, the update is the weight decay alone; LAMB scales it to the norm of the weights.
    for name, values in apply_once(optimizer_class, ones, zeros).items():
        kept = 1 - decay if name.endswith(("kernel", "embeddings")) else 1.0
        np.testing.assert_allclose(values, kept, rtol=1e-6, err_msg=name)


def test_variables_may_have_a_rate_of_their_own():
    weights = make_weights()
    gradients = {name: np.ones(shape) for name, shape in SHAPES.items()}
    usual = apply_once(AdamW, weights, gradients)
    (faster, *others) = weights
    found = apply_once(AdamW, weights, gradients, rate_factors={faster: 3.0})
    np.testing.assert_allclose(found[faster] - weights[faster], 3 * (usual[faster] - weights[faster]), rtol=1e-4)
    for name in others:
        np.testing.assert_array_equal(found[name], usual[name])


@pytest.mark.parametrize("optimizer_class", [AdamW, Lamb])
def test_variable_without_gradient_stays_as_it_is(optimizer_class):
    weights = make_weights()
    gradients = {"encoder/query/kernel": np.ones(SHAPES["encoder/query/kernel"])}
    for name, values in apply_once(optimizer_class, weights, gradients).items():
        assert np.allclose(values, weights[name]) == (name not in gradients), name


def test_lamb_reports_the_trust_ratio_of_each_variable_that_it_adapts():
    weights, gradients = make_weights(), make_weights(seed=1)
    lamb = Lamb(make_variables(weights), SCHEDULE)
    applied = lamb.apply(as_tensors(gradients), tf.constant(0), LOSS)
    assert applied.trust_ratios.keys() == DECAYED
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    for name, ratio in applied.trust_ratios.items():
        gradient = gradients[name] / max(1.0, norm)
        update = 0.1 * gradient / (np.sqrt(0.001 * gradient**2) + 1e-6) + 0.01 * weights[name]
        assert float(ratio) == pytest.approx(np.linalg.norm(weights[name]) / np.linalg.norm(update), rel=1e-4)
    metrics = {name: (float(value), float(weight)) for name, (value, weight) in lamb.metrics(applied).items()}
    ratios = {f"trust_ratio/{name}": (float(ratio), 1.0) for name, ratio in applied.trust_ratios.items()}
    assert metrics == {"gradient_norm": (float(applied.gradient_norm), 1.0), **ratios}
    assert set(lamb.metric_names) == set(metrics)


def test_what_has_no_trust_ratio_weighs_nothing():
    lamb = Lamb(make_variables(make_weights()), SCHEDULE)
    gradients = {"encoder/query/kernel": np.ones(SHAPES["encoder/query/kernel"])}
    metrics = lamb.metrics(lamb.apply(as_tensors(gradients), tf.constant(0), LOSS))
    weights = {name: float(weight) for name, (_, weight) in metrics.items()}
    assert weights == {
        "gradient_norm": 1.0,
        "trust_ratio/encoder/query/kernel": 1.0,
        "trust_ratio/embeddings/word_embeddings": 0.0,
    }
    adamw = AdamW(make_variables(make_weights()), SCHEDULE)
    assert adamw.metric_names == ("gradient_norm",)
    assert not adamw.apply(as_tensors(gradients), tf.constant(0), LOSS).trust_ratios


def test_lamb_does_not_adapt_weights_of_zero():
    weights = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    gradients = make_weights(seed=1)
    expected = apply_once(AdamW, weights, gradients)
    for name, values in apply_once(Lamb, weights, gradients).items():
        assert np.abs(values).max() > 0
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_nothing_moves_without_gradient_and_weight_decay():
    zeros = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    for start in (make_weights(), zeros):
        for name, values in apply_once(Lamb, start, zeros, weight_decay=0.0, bias_correction=True).items():
            np.testing.assert_array_equal(values, start[name].astype(np.float32), err_msg=name)


@pytest.mark.parametrize("clip_norm", [0.5, 2.0, 0.0])
def test_gradients_are_clipped_to_the_norm_asked_for_or_not_at_all(clip_norm):
    gradients = {name: 100 * values for name, values in make_weights(1).items()}
    optimizer = AdamW(make_variables(make_weights()), SCHEDULE, beta_1=0.0, clip_norm=clip_norm)
    optimizer.apply(as_tensors(gradients), tf.constant(0), LOSS)
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    for name, moment in optimizer.first_moments.items():  # each the gradient itself, as beta_1 is 0
        expected = gradients[name] * (clip_norm / norm if clip_norm else 1.0)
        np.testing.assert_allclose(moment.numpy(), expected, rtol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer_class", [AdamW, Lamb, Muon])
def test_replicas_stay_equal_to_a_single_device(optimizer_class):
    weights, gradients = make_weights(), make_weights(seed=1)
    options = {"rate_factors": {next(iter(weights)): 3.0}}
    expected = apply_once(optimizer_class, weights, gradients, **options)
    strategy = make_strategy(num_cpu_replicas=2)
    with strategy.scope():
        variables = make_variables(weights)
        optimizer = optimizer_class(variables, LearningRateSchedule(0.1, num_train_steps=10), **options)

    @tf.function(autograph=False)
    def step():
        strategy.run(lambda: optimizer.apply(as_tensors(gradients), tf.constant(0), LOSS) and None)

    step()
    for name, variable in variables.items():
        for copy in strategy.experimental_local_results(variable):
            np.testing.assert_allclose(copy, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight_decay", -0.01),
        ("beta_1", 1.0),
        ("beta_2", -0.1),
        ("epsilon", 0.0),
        ("clip_norm", float("nan")),
        ("ema_decay", 1.0),
    ],
)
def test_bad_option_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=rf"^{name} must .* Received: {value}$"):
        make_optimizer("lamb", {}, SCHEDULE, **{name: value})


def test_unknown_optimizer_is_refused():
    with pytest.raises(InputError, match=r"one of adamw, lamb, muon\. Received: sgd"):
        make_optimizer("sgd", {}, SCHEDULE)


FALLING = LearningRateSchedule(0.1, num_train_steps=100)
WIDE = "encoder/feed_forward_layers/0/intermediate/kernel"
TALL = "encoder/feed_forward_layers/0/output_dense/kernel"
SQUARE = "encoder/attention_layers/0/query/kernel"
MUON_SHAPES = {
    WIDE: [4, 6],
    TALL: [6, 4],
    SQUARE: [4, 4],
    "encoder/attention_layers/0/query/bias": [4],
    "encoder/embedding_hidden_mapping_in/kernel": [3, 4],
    "encoder/embeddings/word_embeddings": [9, 3],
}


def reference_orthogonalized(matrix):
    """Returns U f(S) V^T, f being the quintic applied five times to the singular values (Jordan et al., 2024)."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / np.linalg.norm(values)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left @ np.diag(values) @ right


def random_values(seed, scale=1.0):
    random = np.random.default_rng(seed)
    return {name: scale * random.normal(size=shape) for name, shape in MUON_SHAPES.items()}


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3)])
def test_singular_values_are_pushed_to_one(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    result = orthogonalized(tf.constant(matrix, tf.float32)).numpy()
    np.testing.assert_allclose(result, reference_orthogonalized(matrix), atol=2e-4)
    assert np.all(np.abs(np.linalg.svd(result, compute_uv=False) - 1.0) < 0.35)


def test_products_in_bfloat16_are_near():
    matrix = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    exact, near = orthogonalized(matrix), orthogonalized(tf.constant(matrix), "bfloat16")
    assert near.dtype == tf.float32
    # Each of five iterations adds up terms whose coefficients' sizes sum to 10, each rounded by at most 2**-9.
    assert 0.0 < np.linalg.norm(near - exact) / np.linalg.norm(exact) < 5 * 10 * 2**-9


def test_no_gradient_no_direction():
    np.testing.assert_array_equal(orthogonalized(tf.zeros([3, 4])), np.zeros([3, 4]))


@pytest.mark.parametrize("gradient_scale", [10.0, 0.01])  # clipped, not clipped
def test_matrices_of_blocks_follow_the_reference(gradient_scale):
    weights = random_values(0)
    variables = make_variables(weights)
    muon = Muon(variables, FALLING, weight_decay=0.01)
    moments = {name: np.zeros(MUON_SHAPES[name]) for name in (WIDE, TALL, SQUARE)}
    for step in range(4):
        gradients = random_values(step + 1, gradient_scale)
        muon.apply(as_tensors(gradients), tf.constant(step), LOSS)
        clipping = max(1.0, np.sqrt(sum((gradient**2).sum() for gradient in gradients.values())))
        for name, moment in moments.items():
            gradient = gradients[name] / clipping
            moment[...] = 0.95 * moment + gradient
            direction = 0.2 * np.sqrt(max(moment.shape)) * reference_orthogonalized(gradient + 0.95 * moment)
            weights[name] -= 0.1 * (1 - step / 100) * (direction + 0.01 * weights[name])
            np.testing.assert_allclose(variables[name], weights[name], atol=2e-4, err_msg=f"{name}, step {step}")


def test_everything_else_follows_adam():
    by_optimizer = {}
    for optimizer_class in (Muon, AdamW):
        variables = make_variables(random_values(0))
        optimizer = optimizer_class(variables, FALLING, bias_correction=True)
        for step in range(3):
            optimizer.apply(as_tensors(random_values(step + 1)), tf.constant(step), LOSS)
        by_optimizer[optimizer_class] = {name: variable.numpy() for name, variable in variables.items()}
    for name in MUON_SHAPES:
        is_same = np.array_equal(by_optimizer[Muon][name], by_optimizer[AdamW][name])
        assert is_same == (name not in (WIDE, TALL, SQUARE)), name


def test_matrices_of_blocks_need_one_moment():
    model = AlbertForPreTraining(AlbertConfig(30, 8, 16, 1, num_attention_heads=2, intermediate_size=16))
    variables = named_variables(model)
    muon = Muon(variables, FALLING)
    without = variables.keys() - muon.second_moments.keys()
    assert {name.split("layers/0/")[1] for name in without} == {
        "query/kernel",
        "key/kernel",
        "value/kernel",
        "output_dense/kernel",  # of attention and of the feed-forward block
        "intermediate/kernel",
    }
    assert muon.first_moments.keys() == variables.keys()
