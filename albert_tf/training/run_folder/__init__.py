"""A run's folder: checkpoints, settings, results, and who may write into it."""
