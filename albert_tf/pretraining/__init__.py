"""Pre-training on shards: from sets of shards to the phases of a run."""
