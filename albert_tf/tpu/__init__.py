"""The real TPU compiler, without a TPU: what a step takes before anything is rented."""
