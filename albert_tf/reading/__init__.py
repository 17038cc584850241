"""Text and tables from files: documents and sentences, rows and their values; without TensorFlow."""
