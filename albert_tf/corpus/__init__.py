"""Reading text: files and their formats, documents, sentences; for vocabularies and pre-training data alike."""
