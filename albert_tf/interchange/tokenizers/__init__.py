"""Tokenizers of other libraries, read from their files and written to them."""
