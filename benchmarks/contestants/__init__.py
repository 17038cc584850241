"""The contestants of `benchmarks.same_hour`, a file each: each measures its rate, trains, and tells how well."""
