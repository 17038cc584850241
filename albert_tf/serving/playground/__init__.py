"""A page in the browser to try a model on texts of one's own."""
