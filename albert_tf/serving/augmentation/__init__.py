"""Copies of texts with other words in them, to learn from what a teacher says of them."""
