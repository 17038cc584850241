"""Continues texts, token by token, with a causal language model."""

import albert_tf.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.generation.options import GenerationOptions
from albert_tf.generation.text_generator import TextGenerator

__all__ = ["GenerationOptions", "TextGenerator"]
