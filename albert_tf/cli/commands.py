"""The commands, in the order in which they are needed. Imports nothing, for setup.py reads it without the package."""

# The name of each, its module, which has a function `run`, and what it does.
COMMANDS = (
    ("build-vocab", "albert_tf.cli.build_vocab", "makes a vocabulary of your text"),
    ("create-pretraining-data", "albert_tf.cli.create_pretraining_data", "turns text into examples for pre-training"),
    (
        "plan-tpu",
        "albert_tf.cli.plan_tpu",
        "computes what training takes on a TPU, and which batch fits, without a TPU",
    ),
    ("run-pretraining", "albert_tf.cli.run_pretraining", "pre-trains a model on the examples"),
    (
        "run-classifier",
        "albert_tf.cli.run_classifier",
        "teaches a model your labels or scores, for texts or pairs of texts",
    ),
    ("run-ner", "albert_tf.cli.run_ner", "teaches a model to find entities"),
    ("run-squad", "albert_tf.cli.run_squad", "teaches a model to answer questions about a text"),
    ("run-race", "albert_tf.cli.run_race", "teaches a model to choose among options"),
    ("predict", "albert_tf.cli.predict", "predicts every line of a file"),
    (
        "score-text",
        "albert_tf.cli.score_text",
        "scores how natural each line of a file is, or labels it without training",
    ),
    ("generate-text", "albert_tf.cli.generate_text", "continues texts, or every line of a file, with a causal model"),
    (
        "export-model",
        "albert_tf.cli.export_model",
        "writes a model that needs nothing of this library: SavedModel, LiteRT or ONNX",
    ),
    ("serve", "albert_tf.cli.serve", "serves an export over HTTP"),
    ("playground", "albert_tf.cli.playground", "opens a page to try a model in the browser"),
    (
        "convert-checkpoint",
        "albert_tf.cli.convert_checkpoint",
        "writes a folder for others to start from, or converts from and to other libraries",
    ),
    ("demo", "albert_tf.cli.demo", "runs every stage once on a sample, in a few minutes"),
    ("files", "albert_tf.cli.files", "prints where configs, the small model and samples are"),
)
