"""The commands, in the order in which they are needed. Imports nothing of ours, for setup.py reads it by itself."""

import importlib

# The name of each, its function in albert_tf.cli, and what it does.
COMMANDS = (
    ("build-vocab", "build_vocab:build_vocab", "makes a vocabulary of your text"),
    ("create-pretraining-data", "training:create_pretraining_data", "turns text into examples for pre-training"),
    ("plan-tpu", "plan_tpu:plan_tpu", "computes what training takes on a TPU, and which batch fits, without a TPU"),
    ("run-pretraining", "training:run_pretraining", "pre-trains a model on the examples"),
    ("run-classifier", "training:run_classifier", "teaches a model your labels or scores, for texts or pairs of texts"),
    ("run-ner", "training:run_ner", "teaches a model to find entities"),
    ("run-squad", "training:run_squad", "teaches a model to answer questions about a text"),
    ("run-race", "training:run_race", "teaches a model to choose among options"),
    ("predict", "predict:predict", "predicts every line of a file"),
    ("score-text", "pretrained:score_text", "scores how natural each line of a file is, or labels it without training"),
    ("generate-text", "pretrained:generate_text", "continues texts, or every line of a file, with a causal model"),
    (
        "export-model",
        "convert:export_model",
        "writes a model that needs nothing of this library: SavedModel, LiteRT or ONNX",
    ),
    ("serve", "serve:serve", "serves an export over HTTP"),
    ("playground", "playground:playground", "opens a page to try a model in the browser"),
    (
        "convert-checkpoint",
        "convert:convert_checkpoint",
        "writes a folder for others to start from, or converts from and to other libraries",
    ),
    ("demo", "demo:demo", "runs every stage once on a sample, in a few minutes"),
    ("files", "main:files", "prints where configs, the small model and samples are"),
)


def find_command(name):
    """Returns the function of a command; all but that of files have their `settings`."""
    module, _, function = next(place for each, place, _ in COMMANDS if each == name).partition(":")
    return getattr(importlib.import_module(f"albert_tf.cli.{module}"), function)
