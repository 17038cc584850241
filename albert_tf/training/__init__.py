"""The training and evaluation loop, the same on TPU, GPU and CPU."""
