"""Asking a trained model, and exporting it; what needs TensorFlow here is imported when it is used."""
