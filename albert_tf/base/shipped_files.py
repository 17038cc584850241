"""The files that the library includes, in a checkout as in an installed wheel: configs, the small model, samples.

Imports nothing but the standard library, for `albert-tf files` is to answer at once.
"""

import difflib
import os
import re

from albert_tf.base.errors import InputError, describe

SHIPPED_FOLDERS = ("configs", "models", "samples")

_HUB_NAME = re.compile(r"\w[\w-]*/\w[\w.-]*")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# setup.py puts the folders of the checkout there.
_IN_WHEEL = os.path.join(_PACKAGE, "shipped")


def shipped_path(name: str = "") -> str:
    """Returns the path of an included file or folder by its path in the repository; "" is the folder around all."""
    root = _IN_WHEEL if os.path.isdir(_IN_WHEEL) else os.path.dirname(_PACKAGE)
    if not name:
        return root
    path = os.path.normpath(os.path.join(root, name))
    is_shipped = os.path.relpath(path, root).split(os.sep)[0] in SHIPPED_FOLDERS
    if not is_shipped or not os.path.exists(path):
        raise InputError(f"no {name} is included; look in {', '.join(SHIPPED_FOLDERS)} in {root}")
    return path


def find_or_shipped(folder: str | os.PathLike) -> str:
    """Returns a folder, or the included one if a relative path names none here; InputError for a name of the hub."""
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


def did_you_mean(path: str) -> str:
    """Returns "; did you mean ...?" with a folder, beside a missing one or included, that is spelled alike, or ""."""
    parent = os.path.dirname(path)
    beside = [os.path.join(parent, name) for name in os.listdir(parent or ".")] if os.path.isdir(parent or ".") else []
    models = {f"models/{name}": name for name in os.listdir(os.path.join(shipped_path(), "models"))}
    for folder, name in models.items():
        if difflib.get_close_matches(path, (folder, name), 1, cutoff=0.8):
            return f"; did you mean {folder}?"
    alike = difflib.get_close_matches(path, filter(os.path.isdir, beside), 1, cutoff=0.8)
    return f"; did you mean {alike[0]}?" if alike else ""


def or_shipped(path: str) -> str:
    """Returns a path as it is, or the included one's if it is relative and names nothing here."""
    if os.path.isabs(path) or "://" in path or os.path.exists(path):
        return path
    try:
        return shipped_path(path)
    except InputError:
        return path
