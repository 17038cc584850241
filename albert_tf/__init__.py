"""ALBERT for Korean, in TensorFlow 2, aimed at Cloud TPU."""

__version__ = "0.2.0"


def load(folder):
    """Returns a model as an object that predicts.

    Args:
        folder: Of a command that fine-tunes, for `albert_tf.serving.Predictor`; or what `export_model.py
            --format=litert` has written, for `albert_tf.litert.LiteRTPredictor`, which needs no TensorFlow.
    """
    from albert_tf.litert import LiteRTPredictor, find_litert  # here, so that importing the package alone takes no time

    exported = find_litert(folder)
    if exported is not None:
        return LiteRTPredictor(exported)
    from albert_tf.serving import Predictor

    return Predictor(folder)
