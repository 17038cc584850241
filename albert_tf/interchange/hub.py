"""Putting a folder on the Hugging Face hub, or on another server of its kind, which HF_ENDPOINT names."""

import re

from albert_tf.errors import InputError, first_line, with_extra

_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def check_hub_name(name: str) -> None:
    """Checks, before any work, that a model can be put on the hub under a name.

    Raises:
        InputError: It is no "owner/model", or huggingface_hub is not installed.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"`push_to_hub={name}` must be owner/model, such as my-team/albert-ko")
    _library()


def push_folder(folder: str, name: str, is_private: bool = True) -> str:
    """Puts all files of a folder on the hub in one commit, and returns where they are.

    Whoever runs this is who `hf auth login` or the environment variable HF_TOKEN says.

    Args:
        folder: A local folder.
        name: Owner and model; the model is made if it is not there.
        is_private: Whether a model that is made is seen by its owner alone.

    Raises:
        InputError: The hub can't be reached or refuses; nothing is there then that was not before.
    """
    hub = _library()
    api = hub.HfApi()
    try:
        api.create_repo(name, private=is_private, exist_ok=True)
        commit = api.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload with albert_tf")
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        raise InputError(
            f"{folder} was written, but can't be uploaded to the hub as {name} ({first_line(error)}); correct "
            f"that, then run hf upload {name} {folder}"
        ) from error
    return str(commit.repo_url) if hasattr(commit, "repo_url") else f"{api.endpoint}/{name}"


def _library():
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError as error:
        raise InputError(
            f"`push_to_hub` needs huggingface_hub, which is not installed; pip install {with_extra('hub')}"
        ) from error
    return huggingface_hub
