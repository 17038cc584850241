"""The contestants of `benchmarks.same_hour`, a file each. Each measures its rate, trains, and tells loss and accuracy."""
