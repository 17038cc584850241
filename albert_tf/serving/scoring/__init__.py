"""How probable texts are to a pre-trained model, by themselves or as answers."""
