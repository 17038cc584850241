"""Whose data a notebook reads: the samples that come along, or the user's own."""

import importlib
import os

from albert_tf.errors import InputError

_DRIVE = "/content/drive"


def find_data(data: str, sample: str, own_folder: str = "uploads") -> str:
    """Returns the path of the data to read.

    Args:
        data: "samples"; "upload" for a dialog of Colab's in which to choose files; or the path of a file or folder. A
            path in Google Drive, as Colab knows it (`/content/drive/MyDrive/...`), asks for leave to read there.
        sample: What "samples" stands for.
        own_folder: Where uploaded files go.

    Raises:
        InputError: There is no such file or folder, or this is not Colab.
    """
    if data == "samples":
        return sample
    if data == "upload":
        return _upload(own_folder)
    if data.startswith(_DRIVE) and not os.path.isdir(os.path.join(_DRIVE, "MyDrive")):
        _colab("drive").mount(_DRIVE)
    if not os.path.exists(data):
        raise InputError(f'DATA="{data}": there is no such file or folder')
    return data


def _upload(folder):
    os.makedirs(folder, exist_ok=True)
    for name, content in _colab("files").upload().items():
        with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
            file.write(content)
    if not os.listdir(folder):
        raise InputError('DATA="upload": no file was chosen; run the cell again')
    return folder


def _colab(part):
    """Returns a part of the package that only Colab has."""
    try:
        return importlib.import_module(f"google.colab.{part}")
    except ImportError as error:
        raise InputError(
            "uploads and Google Drive are Colab's; elsewhere put the files into a folder and name it in DATA"
        ) from error
