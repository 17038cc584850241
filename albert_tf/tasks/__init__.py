"""What fine-tuning needs beyond the model: reading examples, metrics, predictions."""
