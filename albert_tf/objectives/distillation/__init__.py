"""A model learns from a larger one, which is frozen: one file for each way to compare the two."""
