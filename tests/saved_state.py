"""The part of a checkpoint that a model needs which is not trained on."""


def state_of(variables, global_step):
    """Returns a model's variables, and the step, by the names that they have in a checkpoint."""
    return {**{f"model/{name}": variable for name, variable in variables.items()}, "global_step": global_step}
