"""ALBERT for Korean, in TensorFlow 2, aimed at Cloud TPU."""

__version__ = "0.3.0"


def load(folder):
    """Returns a model as an object to ask.

    Args:
        folder: A path: the `output_dir` of a command that trains, a published model, or what
            `export_model.py --format=litert` has written.

    Returns:
        A `Predictor` of what was fine-tuned, with `predict`; a `PretrainedModel` of what was not, with `fill_mask` and
        `encode`; of an export a `LiteRTPredictor`, which predicts without TensorFlow.

    Raises:
        InputError: The folder holds none of these, or ai-edge-litert, which the last needs, is missing.
    """
    from albert_tf.litert import LiteRTPredictor, find_litert  # here, so that importing the package alone takes no time

    exported = find_litert(folder)
    if exported is not None:
        return LiteRTPredictor(exported)
    from albert_tf.serving import Predictor, PretrainedModel, holds_finetuned

    return Predictor(folder) if holds_finetuned(folder) else PretrainedModel(folder)
