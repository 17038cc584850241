"""ALBERT for Korean, in TensorFlow 2, aimed at Cloud TPU."""

__version__ = "0.2.0"


def load(folder):
    """Returns a model as an object that predicts.

    Args:
        folder: A path: the --output_dir of a command that fine-tunes, or what `export_model.py --format=litert` has
            written.

    Returns:
        A `Predictor` of the former; of the latter a `LiteRTPredictor`, which needs no TensorFlow.

    Raises:
        InputError: The folder holds neither, or ai-edge-litert, which the latter needs, is missing.
    """
    from albert_tf.litert import LiteRTPredictor, find_litert  # here, so that importing the package alone takes no time

    exported = find_litert(folder)
    if exported is not None:
        return LiteRTPredictor(exported)
    from albert_tf.serving import Predictor

    return Predictor(folder)
