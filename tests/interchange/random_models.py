"""Models with random weights as folders of ours, and what is compared of two models."""

import numpy as np
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf import modeling
from albert_tf.base.checkpoint_files import CheckpointReader, resolve_checkpoint, write_checkpoint
from albert_tf.base.files import write_json
from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import named_variables

# Our classes of models that transformers has, too, by what their heads are for.
OUR_CLASSES = {
    None: modeling.AlbertForPreTraining,
    "classify": modeling.AlbertForSequenceClassification,
    "tag": modeling.AlbertForTokenClassification,
    "squad": modeling.AlbertForQuestionAnswering,
    "race": modeling.AlbertForMultipleChoice,
}
CLASSES = {
    **OUR_CLASSES,
    "classify": lambda config: modeling.AlbertForSequenceClassification(config, 3),
    "score": lambda config: modeling.AlbertForSequenceClassification(config, 1),
    "tag": lambda config: modeling.AlbertForTokenClassification(config, 5),
    "squad_v2": modeling.AlbertForConditionalQuestionAnswering,
}
# Every shape in which layers can be shared, and each with sizes that no other variable has.
CONFIGS = {
    "albert": tiny_config(),
    "two groups of two": tiny_config(num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2, hidden_act="relu"),
    "as wide as its layers": tiny_config(embedding_size=16),
    "bert": tiny_config(num_hidden_layers=2, embedding_size=16, sharing="none"),
    "narrow, nothing shared": tiny_config(num_hidden_layers=2, sharing="none"),
}


def random_model(config, task=None):
    """Returns a model whose every variable is far from what it begins as."""
    model = CLASSES[task](config)
    random = np.random.default_rng(0)
    for name, variable in named_variables(model).items():
        variable.assign(random.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, variable.shape))
    return model


def write_ours(folder, config, task=None, tokenizer=None, settings=None):
    """Writes a folder of ours with random weights, and returns its path and its model."""
    model = random_model(config, task)
    folder.mkdir()
    values = {f"model/{name}": variable.numpy() for name, variable in named_variables(model).items()}
    write_checkpoint(str(folder / "model.ckpt-7"), {**values, "global_step": np.int64(7)})
    write_json(folder / "albert_config.json", config.to_dict())
    if tokenizer is not None:
        tokenizer.save(folder)
    if settings is not None:
        write_json(folder / "run_settings.json", settings)
    return str(folder), model


def read_variables(folder) -> dict[str, np.ndarray]:
    """Returns the variables in a folder of ours, by our names."""
    reader = CheckpointReader(resolve_checkpoint(str(folder)))
    names = [name for name in reader.shapes if name.startswith("model/")]
    return {name.removeprefix("model/"): value for name, value in reader.read(names).items()}


def assert_same_variables(folder, expected, but=()):
    """Compares the variables of a folder with those of a model or a dictionary, bit by bit."""
    if isinstance(expected, tf.keras.Model):
        expected = {name: variable.numpy() for name, variable in named_variables(expected).items()}
    found = read_variables(folder)
    assert found.keys() == {name for name in expected if not name.startswith(tuple(but))}
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def random_inputs(vocab_size=30):
    """Returns three texts of two segments, two of them padded."""
    random = np.random.default_rng(1)
    lengths, position = np.array([[10], [7], [4]]), np.arange(10)
    values = {
        "input_ids": random.integers(5, vocab_size, [3, 10]) * (position < lengths),
        "input_mask": position < lengths,
        "segment_ids": (lengths // 2 <= position) & (position < lengths),
    }
    return {name: tf.constant(value, tf.int32) for name, value in values.items()}


def config_in(folder) -> AlbertConfig:
    return AlbertConfig.from_json_file(f"{folder}/albert_config.json")
