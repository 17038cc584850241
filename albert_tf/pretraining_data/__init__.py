"""Documents to TFRecords, and TFRecords to batches."""
