"""One step of training and one of evaluation, the same code for every kind of device.

An objective gives the cost of a batch; the step does the rest: gradients averaged over the global batch, summed over
micro-batches and replicas, the update, and metrics that stay on the device. The update, with clipping and the skip of
what is not finite, is `AdamW.apply` of optimization/optimizers.py, its formulas are in optimization/updates.py, and
`TrainingRun` of run.py makes the optimizer.
"""

import collections.abc
import functools
import typing

import tensorflow as tf

from albert_tf.modeling.kernels.elementwise import fold_in
from albert_tf.objectives import Objective
from albert_tf.objectives.objective import Batch
from albert_tf.training.batches import compute_in_parts, has_any_length
from albert_tf.training.train_state import MetricSums, TrainState


def make_replica_step(
    state: TrainState, seed: int, gradient_accumulation_steps: int = 1
) -> collections.abc.Callable[[Batch, tf.Tensor], None]:
    """Returns a function (batch, step) that trains one step inside a replica.

    The batch is cut into `gradient_accumulation_steps` micro-batches, of which only one is in work at a time. Replica r
    draws the dropout of its micro-batch k of K as the replica r K + k would without accumulation.
    """
    objective, models, optimizer = state.objective, state.models, state.optimizer
    coefficients = objective.loss_coefficients
    variables = optimizer.trained_variables
    count = gradient_accumulation_steps

    def replica_step(batch, step):
        context = tf.distribute.get_replica_context()
        seed_of_step = fold_in(tf.constant([seed, 0]), step)
        first_index = tf.cast(context.replica_id_in_sync_group, tf.int32) * count
        # Each loss is divided by its weight over the global batch, so that adding gradients up gives the gradient of
        # the average over the global batch, however the examples are spread.
        local_weights = objective.loss_weights(batch)
        weights = context.all_reduce("SUM", [local_weights[name] for name in coefficients])

        def compute_gradients(micro_batch, index):
            dropout_seed = fold_in(seed_of_step, first_index + index)
            gradients_of_part = functools.partial(compute_gradients_of_part, dropout_seed)
            return _add_up(compute_in_parts(gradients_of_part, micro_batch, objective.compares_examples))

        def compute_gradients_of_part(dropout_seed, part):
            with tf.GradientTape() as tape:
                computed = objective.compute(part, training=True, dropout_seed=dropout_seed, **models)
                averages = {
                    name: tf.math.divide_no_nan(computed[name][0], weight)
                    for name, weight in zip(coefficients, weights)
                }
                loss = total_loss(averages, coefficients)
                scaled = optimizer.scaled(loss)
            gradients = tape.gradient(scaled, variables)
            # What the loss doesn't depend on, such as the pooler of a question answering model, is left as it is.
            found = {name: tf.convert_to_tensor(values) for name, values in gradients.items() if values is not None}
            return found, loss, computed

        if count == 1:
            gradients, loss, computed = compute_gradients(batch, 0)
        else:
            lengths = objective.vector_metrics
            names = (*coefficients, *objective.metric_names)
            shapes = {name: [lengths[name]] if name in lengths else [] for name in names}
            gradients, loss, computed = _accumulate(compute_gradients, batch, count, variables, shapes)
        *reduced, loss = context.all_reduce("SUM", [*gradients.values(), loss])
        applied = optimizer.apply(dict(zip(gradients, reduced)), step, loss)
        state.metric_sums.update({**computed, **optimizer.metrics(applied)}, applied.is_finite)

    return replica_step


def _accumulate(compute_gradients, batch, count, variables, metric_shapes):
    """Returns the sums of what `compute_gradients` returns over `count` micro-batches, computed one after the other."""
    micro_batches = {name: _cut(values, count) for name, values in batch.items()}
    reached = set()

    def add_one(index, gradients, loss, computed):
        more_gradients, more_loss, more_computed = compute_gradients(
            {name: tf.gather(values, index) for name, values in micro_batches.items()}, index
        )
        reached.update(more_gradients)
        gradients = {name: total + more_gradients.get(name, 0.0) for name, total in gradients.items()}
        return index + 1, gradients, loss + more_loss, tf.nest.map_structure(tf.add, computed, more_computed)

    _, gradients, loss, computed = tf.while_loop(
        lambda index, *_: index < count,
        add_one,
        (
            tf.constant(0),
            {name: tf.zeros(variable.shape) for name, variable in variables.items()},
            tf.zeros([]),
            {name: (tf.zeros(shape), tf.zeros(shape)) for name, shape in metric_shapes.items()},
        ),
        maximum_iterations=count,
        parallel_iterations=1,
    )
    return {name: total for name, total in gradients.items() if name in reached}, loss, computed


def _add_up(results):
    """Returns the sums of equal nested structures of tensors."""
    return results[0] if len(results) == 1 else tf.nest.map_structure(lambda *tensors: tf.add_n(tensors), *results)


def _cut(values, count):
    """Returns [B, ...] as [count, B / count, ...]; what is known of the shape stays known, which a TPU needs."""
    examples, *rest = values.shape
    dynamic = tf.shape(values)
    rest = [dynamic[axis] if size is None else size for axis, size in enumerate(rest, start=1)]
    return tf.reshape(values, [count, -1 if examples is None else examples // count, *rest])


def make_train_function(
    state: TrainState, seed: int, stop_requested: tf.Variable, gradient_accumulation_steps: int = 1
) -> typing.Callable:
    """Returns a tf.function (iterator, number of steps) that trains that many, or fewer if `stop_requested`.

    Each raises `global_step` by one; `stop_requested`, a bool variable of the host, is looked at before it.
    """
    replica_step = make_replica_step(state, seed, gradient_accumulation_steps)
    global_step = state.global_step

    @tf.function(autograph=False)  # which halves the time until the first step, and nothing here needs it
    def train_steps(iterator, num_steps):
        def is_to_go_on(done):
            return (done < num_steps) & ~stop_requested.read_value()

        def train_one(done):
            state.strategy.run(replica_step, args=(next(iterator), tf.cast(global_step.read_value(), tf.int32)))
            global_step.assign_add(1)
            return (done + 1,)

        tf.while_loop(is_to_go_on, train_one, (tf.constant(0),))

    return train_steps


def total_loss(averages: collections.abc.Mapping, coefficients: collections.abc.Mapping[str, float]):
    """Returns the sum of each loss times its coefficient; of tensors or numbers."""
    # No product with 1, which is what most coefficients are.
    terms = [averages[name] if factor == 1.0 else factor * averages[name] for name, factor in coefficients.items()]
    return tf.add_n(terms) if tf.is_tensor(terms[0]) else sum(terms)


def make_eval_function(
    strategy: tf.distribute.Strategy, objective: Objective, models: dict[str, tf.keras.Model], sums: MetricSums
) -> typing.Callable:
    """Returns a tf.function (batch) that adds the batch's metrics to `sums`, which must have the objective's names."""

    def compute(part):
        return objective.compute(part, training=False, dropout_seed=None, **models)

    def replica_step(batch):
        sums.update(_add_up(compute_in_parts(compute, batch, objective.compares_examples)))

    @tf.function(autograph=False, reduce_retracing=has_any_length(strategy))
    def eval_step(batch):
        strategy.run(replica_step, args=(batch,))

    return eval_step
