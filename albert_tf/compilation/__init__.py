"""The compilers and devices of a step; nothing here knows of models or optimizers."""
