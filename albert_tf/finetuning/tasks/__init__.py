"""The fine-tuning tasks: labels and numbers of texts, options to choose from, entities, and answers to questions."""
