"""Finding the answer to a question in a text: reading, windows, spans, metrics, and the task itself."""
