"""The build side of pre-training data: from documents to TFRecord shards and their manifest."""
