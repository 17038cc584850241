"""Formulas of the papers in NumPy, in float64."""

import numpy as np


def gelu(x):
    """Returns the approximation with tanh."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attention_and_gradients(query, key, value, upstream, bias, head_size):
    """Returns the context and the gradients of queries, keys and values, all of them [B, S, H]."""

    def heads(states):
        return states.reshape(*states.shape[:2], -1, head_size).swapaxes(1, 2)

    def whole(states):
        return states.swapaxes(1, 2).reshape(states.shape[0], states.shape[2], -1)

    query, key, value, upstream = map(heads, (query, key, value, upstream))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(head_size) + bias[:, None]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    probs = weights / weights.sum(-1, keepdims=True)
    probs_gradient = upstream @ value.swapaxes(-1, -2)
    scores_gradient = probs * (probs_gradient - (probs * probs_gradient).sum(-1, keepdims=True)) / np.sqrt(head_size)
    gradients = scores_gradient @ key, scores_gradient.swapaxes(-1, -2) @ query, probs.swapaxes(-1, -2) @ upstream
    return [whole(values) for values in (probs @ value, *gradients)]
