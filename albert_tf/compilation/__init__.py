"""What the step is compiled for, and by: nothing here knows of models or optimizers."""
