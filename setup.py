"""Packaging. Ranges here say what works; requirements*.txt pin what is tested."""

import pathlib
import re
import runpy

from setuptools import find_packages, setup

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "albert_tf" / "__init__.py").read_text(encoding="utf-8"))[1]
COMMANDS = runpy.run_path(str(ROOT / "albert_tf" / "cli" / "commands.py"))["COMMANDS"]

# Folders that users name in commands; a wheel holds them in albert_tf/shipped, for albert_tf/base/shipped_files.py.
SHIPPED = {f"albert_tf.shipped.{folder}": folder for folder in ("configs", "models", "samples")}

setup(
    name="albert_tf",
    version=VERSION,
    description="ALBERT for Korean in TensorFlow 2 and Keras, for Cloud TPU",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Natural Language :: Korean",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Typing :: Typed",
    ],
    packages=[*find_packages(include=["albert_tf", "albert_tf.*"]), *SHIPPED],
    package_dir=SHIPPED,
    package_data={"albert_tf": ["py.typed"], **{package: ["**/*"] for package in SHIPPED}},
    entry_points={
        "console_scripts": [
            "albert-tf=albert_tf.cli.main:run",
            *(f"albert-{stage}=albert_tf.cli.{place}" for stage, place, _ in COMMANDS),
        ]
    },
    # So that the package is found even by Python that runs in the folder that holds the checkout.
    options={"editable_wheel": {"mode": "compat"}},
    python_requires=">=3.10,<3.14",
    install_requires=[
        "tensorflow>=2.19,<2.22",
        "tensorflow-text>=2.19,<2.22",
        "tensorboard>=2.19,<2.22",  # tf.summary needs it, and tensorflow 2.21 no longer brings it
        "absl-py>=2.1",
        "numpy>=1.26,<3",
        "protobuf>=4.22",  # of tensorflow; models of SentencePiece are read with it
        "tokenizers>=0.20,<0.24",  # to build vocabularies: the first step of the road
    ],
    extras_require={
        "vocab": ["kiwipiepy>=0.24,<0.25"],
        "parquet": ["pyarrow>=15,<27"],
        "datasets": ["datasets>=4,<6"],  # to read the folders that it saves
        "plot": ["matplotlib>=3.8"],
        "metrics": ["scikit-learn>=1.5"],
        # To read models of transformers, and to write their tokenizers; bfloat16 needs this safetensors.
        "huggingface": ["safetensors>=0.8", "tokenizers>=0.20,<0.24"],
        "search": ["optuna>=4.1,<6"],  # for --trials
        "serve": ["uvicorn>=0.34,<0.55", "starlette>=0.52,<2", "prometheus_client>=0.20,<1"],
        "playground": ["gradio>=6,<7"],
        "litert": ["ai-edge-litert>=2"],  # to run what --format=litert writes
        "onnx": ["tf2onnx>=1.17", "onnx>=1.19", "onnxruntime>=1.23"],
        "beam": ["apache-beam>=2.77,<3"],
        "keras2": ["tf-keras>=2.19,<2.22"],
        # Not enough by itself: tensorflow has to stay away from tensorflow-tpu, see docs/tpu.md.
        "tpu": ["tensorflow-tpu>=2.19,<2.21", "libtpu>=0.0.14,<0.0.21"],
        "flash": ["jax>=0.6.2,<0.11"],
        # This jax needs Python 3.11.
        "tpu-compile": ["jax==0.10.2; python_version >= '3.11'", "libtpu==0.0.51; python_version >= '3.11'"],
        "test": [
            "safetensors>=0.8",
            "sentencepiece>=0.2.3",  # what ids and spans are compared with
            "pytest>=8",
            "pytest-xdist>=3",
            "hypothesis>=6.100",
            "ruff>=0.12",
        ],
        "docs": ["mkdocs-material>=9.7,<10", "mkdocs-static-i18n>=1.3,<2", "mkdocstrings[python]>=1,<2"],
        "notebooks": [
            "tokenizers>=0.20,<0.24",
            "kiwipiepy>=0.24,<0.25",
            "matplotlib>=3.8",
            "scikit-learn>=1.5",
            "ipython>=7.34",  # Colab's
        ],
        "bench": ["torch>=2.4", "transformers>=5", "keras-hub>=0.20"],
    },
)
