"""SentencePiece, the tokenizer of the English ALBERTs and of some Korean ones."""
