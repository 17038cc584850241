"""What a run says of itself before it starts."""

import math

from albert_tf.training.phase import Phase
from albert_tf.training.train_state import TrainState, learnt_variables

# After so many passes over its examples a model knows them by heart, whatever they are.
_MANY_PASSES = 100


def describe_run(state: TrainState, phases: list[Phase]) -> str:
    """Returns a few lines: the size of the model, of its variables and of a batch, steps, and epochs over the data.

    Of a run that is resumed, it tells what is left.
    """
    named = state.named_variables()
    sizes = {name: math.prod(variable.shape) for name, variable in named.items()}
    learnt = learnt_variables(state.objective, state.models)
    parameters = sum(math.prod(variable.shape) for variable in learnt.values())
    trained = sum(math.prod(variable.shape) for variable in state.optimizer.trained_variables.values())
    num_bytes = sum(sizes[name] * variable.dtype.size for name, variable in named.items())
    frozen = "" if trained == parameters else f", of which {trained:,} are trained"
    replicas = state.strategy.num_replicas_in_sync
    done = int(state.global_step.numpy())
    where = f" on each of {replicas} replicas" if replicas > 1 else ""
    lines = [f"model: {parameters:,} parameters{frozen}; with the optimizer {num_bytes / 1e6:,.1f} MB{where}"]
    last_step = phases[-1].end_step
    if done >= last_step:
        return "\n".join([*lines, f"already trained to step {done:,} of {last_step:,}; nothing to train"])
    begin, going_on = done, f"continuing from step {done:,}: " if done else ""
    for phase in phases:
        if phase.end_step <= begin:
            continue
        batch, steps, examples = phase.examples, phase.end_step - begin, phase.num_examples
        parts = phase.gradient_accumulation_steps
        shares = f" = {replicas} x {batch // replicas:,}" if replicas > 1 else ""
        micro = "" if parts == 1 else f" in {parts} parts of {batch // replicas // parts:,}"
        pieces = f", sequences of {phase.sequence_length:,} pieces" if phase.sequence_length else ""
        epochs = "" if not examples else f", {steps * batch / examples:,.2f} epochs over {examples:,} examples"
        lines.append(f"{going_on}steps {begin:,} to {phase.end_step:,}: batch {batch:,}{shares}{micro}{pieces}{epochs}")
        if examples and (passes := steps * batch / examples) > _MANY_PASSES:
            lines.append(
                f"warning: {passes:,.0f} passes over {examples:,} examples, which the model will know by heart; train "
                "for fewer steps, or on more data"
            )
        begin, going_on = phase.end_step, ""
    return "\n".join(lines)
