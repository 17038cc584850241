"""Distillation: a model learns from a larger one, which is frozen."""
