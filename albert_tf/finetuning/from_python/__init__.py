"""Fine-tuning from Python, in one call: what `albert_tf.fit` does."""
