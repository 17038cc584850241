"""Names of entities and where a text mentions them."""
