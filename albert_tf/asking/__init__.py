"""Asking a model, whatever computes its answers; nothing here imports TensorFlow."""
