"""ALBERT for Korean, in TensorFlow 2, aimed at Cloud TPU."""

__version__ = "0.2.0"


def load(folder):
    """Returns a fine-tuned folder as an object that predicts; see `albert_tf.serving.Predictor`."""
    from albert_tf.serving import Predictor  # so that importing the package alone takes no time

    return Predictor(folder)
