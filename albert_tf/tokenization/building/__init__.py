"""Building vocabularies, and judging them."""
