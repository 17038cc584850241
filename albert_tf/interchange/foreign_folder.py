"""Folders of other libraries as if they were ours, for whoever only wants to ask the model in them."""

import collections.abc
import contextlib
import os
import tempfile
import typing

from albert_tf.files import gfile_for
from albert_tf.interchange import huggingface, keras_hub
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.ours import NO_TASK
from albert_tf.modeling.pretrained import CONFIG_FILE

# By the files that tell them.
_WEIGHTS = {
    "huggingface": (huggingface.WEIGHTS_FILE, huggingface.INDEX_FILE, *huggingface.PICKLES),
    "keras_hub": (keras_hub.WEIGHTS_FILE,),
}


class OurFolder(typing.NamedTuple):
    """A folder of ours that holds what another library's did.

    Attributes:
        path: The folder.
        why_no_task: Why the head that was there can't be asked, None where it can, or there was none.
    """

    path: str
    why_no_task: str | None


def format_of(folder: str) -> str | None:
    """Returns of which other library a folder is, a key of `conversion.FORMATS`; None if it is ours, or of none."""
    exists = gfile_for(folder).exists
    if exists(os.path.join(folder, CONFIG_FILE)) or not exists(os.path.join(folder, huggingface.CONFIG_FILE)):
        return None
    return next(
        (name for name, files in _WEIGHTS.items() if any(exists(os.path.join(folder, file)) for file in files)), None
    )


@contextlib.contextmanager
def as_ours(folder: str, source: str) -> collections.abc.Iterator[OurFolder]:
    """Gives a folder of ours, which is gone afterwards, with the model of another library.

    Args:
        folder: Of the other library.
        source: Which one; what `format_of` returned.

    Raises:
        InputError: The model can't be converted.
    """
    with tempfile.TemporaryDirectory(prefix="albert_tf_") as temporary:
        path = os.path.join(temporary, "model")
        sentences = convert_checkpoint(source, "albert_tf", folder, path)
        reasons = [sentence.partition(NO_TASK)[2] for sentence in sentences if NO_TASK in sentence]
        yield OurFolder(path, reasons[0] if reasons else None)
