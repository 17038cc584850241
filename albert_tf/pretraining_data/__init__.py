"""The read side of pre-training data: records, masking, sets of shards, and the input pipeline."""
