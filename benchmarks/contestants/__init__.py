"""The contestants of `benchmarks.same_hour`, a file each, which train, and of `benchmarks.serving`, which answer."""
