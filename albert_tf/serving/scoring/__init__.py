"""The probability of texts to a pre-trained model, by themselves or as answers."""
