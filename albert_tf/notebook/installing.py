"""The first cell of a notebook: installs what is missing, for any device, before TensorFlow is imported."""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys

from albert_tf import startup

# Set where continuous integration runs the notebooks: nothing is installed, and sizes are small.
TEST_VARIABLE = "ALBERT_TF_NOTEBOOK_TEST"

_NEEDED = ("tensorflow", "tensorflow_text", "tokenizers", "kiwipiepy", "matplotlib", "sklearn")
_TPU_FILES = ("/dev/accel0", "/dev/vfio/0")
_NVIDIA_FILES = ("/dev/nvidia0",)
# Versions that go together on a TPU: docs/tpu.md, "Install".
_FOR_TPU = (
    ["tensorflow-tpu==2.20.0", "libtpu==0.0.14", "jax==0.6.2", "jaxlib==0.6.2", "absl-py>=2.1", "numpy>=1.26,<3"],
    ["--no-deps", "tensorflow-text==2.20.1"],
    ["tokenizers>=0.20,<0.24", "kiwipiepy>=0.24,<0.25", "matplotlib>=3.8", "scikit-learn>=1.5"],
)


def is_test() -> bool:
    """Returns whether this is a run of continuous integration, at reduced size."""
    return bool(os.environ.get(TEST_VARIABLE))


def install(root: str = ".") -> None:
    """Installs into the Python of this notebook what is missing, and prepares TensorFlow's start.

    On a machine with a TPU that is TensorFlow for TPU; else the library's extra `notebooks`, with the TensorFlow that
    is there already if it is one that the library takes. On Colab also a font with Hangul.

    Args:
        root: The checkout of albert_tf.

    Raises:
        CalledProcessError: pip failed; what it said stands above.
    """
    startup.keep_memory()
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    has_tpu = any(map(os.path.exists, _TPU_FILES))
    if is_test():
        print("a test: nothing is installed")
    elif not missing:
        print("nothing to install")
    else:
        print(f"installing, a few minutes: {', '.join(missing)} missing", flush=True)
        for arguments in pip_arguments(root, has_tpu, any(map(os.path.exists, _NVIDIA_FILES)), installed_tensorflow()):
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", *arguments], check=True)
        importlib.invalidate_caches()
        print("installed")
    if has_tpu and importlib.util.find_spec("libtpu"):
        _prepare_tpu()
    if "COLAB_RELEASE_TAG" in os.environ and shutil.which("apt-get"):
        # Without it labels in Korean become numbers, which is no reason to stop.
        subprocess.run(["apt-get", "install", "-y", "-qq", "fonts-nanum"], capture_output=True, check=False)
    _import_quietly()


def installed_tensorflow() -> str | None:
    """Returns the version of TensorFlow that is installed, None if none is."""
    try:
        return importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:
        return None


def pip_arguments(root: str, has_tpu: bool, has_gpu: bool, tensorflow: str | None) -> list[list[str]]:
    """Returns what `pip install` is called with, one call after the other.

    Args:
        root: The checkout of albert_tf.
        has_tpu: Whether this machine has a TPU.
        has_gpu: Whether it has an NVIDIA GPU.
        tensorflow: The version of TensorFlow that is there, None if none is.
    """
    if has_tpu:
        return [*map(list, _FOR_TPU)]
    packages = [f"{root}[notebooks]"]
    series = ".".join((tensorflow or "").split(".")[:2])
    if series in ("2.19", "2.20", "2.21"):
        # What is there was made for the drivers that are there.
        packages += [f"tensorflow=={tensorflow}", f"tensorflow-text=={series}.*"]
    elif has_gpu:
        packages.append("tensorflow[and-cuda]>=2.19,<2.22")
    return [packages]


def _import_quietly():
    """Imports TensorFlow without what it says at its start and on the way."""
    with startup.without_messages_of_libraries(shows_crash=False):
        import tensorflow as tf
    tf.get_logger().setLevel("ERROR")
    from absl import logging

    logging.set_verbosity(logging.ERROR)


def _prepare_tpu():
    """Sets what TensorFlow needs to find a TPU through PJRT (docs/tpu.md)."""
    import libtpu

    os.environ.setdefault("PJRT_DEVICE", "TPU")
    os.environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
    os.environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", libtpu.get_library_path())
