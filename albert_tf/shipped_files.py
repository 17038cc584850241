"""What the library includes, in a checkout as in an installed wheel: configs, the small model, samples.

Imports nothing but the standard library, for `albert-files` is to answer at once.
"""

import os
import re

from albert_tf.errors import InputError, describe

SHIPPED_FOLDERS = ("configs", "models", "samples")

_HUB_NAME = re.compile(r"\w[\w-]*/\w[\w.-]*")

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
# setup.py puts the folders of the checkout there.
_IN_WHEEL = os.path.join(_PACKAGE, "shipped")


def shipped_path(name: str = "") -> str:
    """Returns the path of a file or folder that is included.

    Args:
        name: Its path in the repository, such as "configs/albert_small.json" or "models/albert_ko_small"; empty for the
            folder that holds all of them.
    """
    root = _IN_WHEEL if os.path.isdir(_IN_WHEEL) else os.path.dirname(_PACKAGE)
    if not name:
        return root
    path = os.path.normpath(os.path.join(root, name))
    is_shipped = os.path.relpath(path, root).split(os.sep)[0] in SHIPPED_FOLDERS
    if not is_shipped or not os.path.exists(path):
        raise InputError(f"no {name} is included; look in {', '.join(SHIPPED_FOLDERS)} in {root}")
    return path


def find_or_shipped(folder: str | os.PathLike) -> str:
    """Returns a folder as it is, or the included one if a relative path names none here.

    So `models/albert_ko_small` is found from every folder.

    Raises:
        InputError: There is no such folder, and it is called as models of the Hugging Face hub are.
    """
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"a folder must be named by its path. Received: {describe(folder)}")
    folder = os.fspath(folder)
    found = or_shipped(folder)
    if _HUB_NAME.fullmatch(found) and not os.path.exists(found) and not os.path.isdir(os.path.dirname(found)):
        raise InputError(
            f"{folder}: there is no such folder; to use a model of the Hugging Face hub, first run hf download "
            f"{folder}, which prints its folder"
        )
    return found


def or_shipped(path: str) -> str:
    """Returns a path as it is, or of the included one if it is a relative one that names nothing here."""
    if os.path.isabs(path) or "://" in path or os.path.exists(path):
        return path
    try:
        return shipped_path(path)
    except InputError:
        return path
