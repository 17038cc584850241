"""Reading text: files and their formats, documents and sentences; for vocabularies and pre-training data."""
