"""Fine-tuning from Python, in one call: what `albert_tf.fit` does."""

from albert_tf.finetuning.from_python.examples import KINDS, read_given
from albert_tf.finetuning.from_python.fit import fit_folder, split_settings

__all__ = ["KINDS", "fit_folder", "read_given", "split_settings"]
