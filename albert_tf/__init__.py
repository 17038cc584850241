"""ALBERT for Korean, in TensorFlow 2, aimed at Cloud TPU.

    model = albert_tf.load()                    # the included small model, or any folder
    model.fill_mask(["배우들의 연기가 정말 [MASK]."])
    model = albert_tf.fit(texts, labels)        # a model of your own
    model.predict(["정말 재밌어요"])
    albert_tf.pretrain(texts, output_dir="run") # one that learns from text alone, to begin with

`load`, `fit` and `pretrain` are all that most people need. What they are made of lies in `albert_tf.config`,
`albert_tf.tokenization`, `albert_tf.modeling`, `albert_tf.finetuning` and `albert_tf.training`; docs/library.md and
docs/reference.md tell of it. On the command line, `albert-tf` lists what there is.
"""

import importlib

from albert_tf.api import fit, load, pretrain

__version__ = "0.3.0"

# The parts that are imported when somebody asks for them.
_PARTS = ("config", "finetuning", "modeling", "objectives", "runs", "serving", "tokenization", "training")

__all__ = ["fit", "load", "pretrain"]


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(["__version__", *__all__, *_PARTS])
