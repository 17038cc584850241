"""Tasks of labelled texts: classes, several labels, numbers, options."""
