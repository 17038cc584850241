"""A published folder holds the run's model, whole, and says what nothing has trained; our table has all variables."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from random_models import CLASSES, CONFIGS, write_ours
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.checkpoint_files import CheckpointReader, resolve_checkpoint, write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.finetuning import TASKS, MultiLabel
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.variables import variable_shapes
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import read_untrained
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS


@pytest.fixture(scope="module")
def run_folder(sample_tokenizer, tmp_path_factory):
    """The folder of a run: two checkpoints with moments and averages, of which the first is the best."""
    folder = tmp_path_factory.mktemp("run")
    config = tiny_config(len(sample_tokenizer.vocabulary))
    write_json(folder / "albert_config.json", config.to_dict())
    sample_tokenizer.save(folder)
    for step in (1, 2):
        tf.keras.utils.set_random_seed(step)
        values = {name: value.numpy() for name, value in named_variables(AlbertForPreTraining(config)).items()}
        groups = {"model": 0.0, "averages": 0.001, "first_moments": 1.0}
        state = {f"{group}/{name}": value + more for group, more in groups.items() for name, value in values.items()}
        write_checkpoint(str(folder / f"model.ckpt-{step}"), {**state, "global_step": np.int64(step)})
    write_json(folder / "best_checkpoint.json", {"checkpoint": "model.ckpt-1", "step": 1})
    return folder


def publish(path, folder, dtype=None):
    *_, written = convert_checkpoint("albert_tf", "albert_tf", str(path), str(folder), weights_dtype=dtype)
    return written


def test_card_and_what_was_never_trained_come_along(run_folder, tmp_path):
    (run_folder / "README.md").write_text("# A card")
    write_json(run_folder / "untrained.json", {"untrained": ["encoder/pooler/kernel"]})
    publish(run_folder, tmp_path / "model")
    for name in ("README.md", "untrained.json"):
        (run_folder / name).unlink()
    assert (tmp_path / "model" / "README.md").read_text() == "# A card"
    assert read_untrained(resolve_checkpoint(str(tmp_path / "model"))) == {"encoder/pooler/kernel"}


def averages(run_folder, step):
    reader = CheckpointReader(str(run_folder / f"model.ckpt-{step}"))
    names = [name for name in reader.shapes if name.startswith("averages/")]
    return {name.removeprefix("averages/"): value for name, value in reader.read(names).items()}


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2.0**-11), ("float32", 0.0)])
def test_published_model_has_the_best_averaged_weights_and_nothing_else(run_folder, tmp_path, dtype, tolerance):
    written = publish(run_folder, tmp_path / "model", dtype)
    assert sorted(os.listdir(tmp_path / "model")) == [
        "albert_config.json",
        "model.ckpt-1.data-00000-of-00001",
        "model.ckpt-1.index",
        "tokenizer.json",
        "vocab.txt",
    ]
    num_bytes = sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    assert written == f"wrote {tmp_path / 'model'}: {num_bytes / 1e6:.1f} MB"
    weights = averages(run_folder, 1)
    checkpoint = resolve_checkpoint(str(tmp_path / "model"))
    assert CheckpointReader(checkpoint).shapes.keys() == {f"model/{name}" for name in weights}
    model = AlbertForPreTraining.from_pretrained(tmp_path / "model")
    stored = (tmp_path / "model" / "model.ckpt-1.data-00000-of-00001").stat().st_size
    assert 1 < stored / (np.dtype(dtype).itemsize * model.count_params()) < 1.5  # names take the rest
    for name, variable in named_variables(model).items():
        assert variable.dtype == tf.float32
        np.testing.assert_allclose(variable.numpy(), weights[name], rtol=tolerance, atol=2.0**-25)
    KoreanWordPieceTokenizer.load(tmp_path / "model")


def test_a_named_checkpoint_is_taken_instead_of_the_best(run_folder, tmp_path):
    publish(run_folder / "model.ckpt-2", tmp_path / "model", "float32")
    published = AlbertForPreTraining.from_pretrained(tmp_path / "model")
    weights = averages(run_folder, 2)
    for name, variable in named_variables(published).items():
        np.testing.assert_array_equal(variable.numpy(), weights[name])


def test_what_can_not_be_published_is_refused_and_nothing_is_written(run_folder, tmp_path):
    target = tmp_path / "model"
    with pytest.raises(InputError, match="`input_path`: no checkpoint at"):
        publish(tmp_path / "nowhere", target)
    write_checkpoint(str(tmp_path / "model.ckpt-3"), {"model/encoder/kernel": np.float32([1e5])})
    for name in ("albert_config.json", "tokenizer.json", "vocab.txt"):
        with pytest.raises(InputError, match=r"`input_path`: no (albert_config|tokenizer)\.json|vocab\.txt"):
            publish(tmp_path / "model.ckpt-3", target)
        (tmp_path / name).write_bytes((run_folder / name).read_bytes())
    with pytest.raises(InputError, match="`weights_dtype=float16`: model/encoder/kernel has values that are too large"):
        publish(tmp_path / "model.ckpt-3", target)
    assert not target.exists()
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    for path, reason in ((target, "holds something already"), (target / "mine.txt", "can't be written to")):
        with pytest.raises(InputError, match=reason):
            publish(run_folder, path)
    assert os.listdir(target) == ["mine.txt"]


@pytest.mark.slow
def test_fine_tuned_model_is_asked_as_before_with_its_thresholds(sample_tokenizer, tmp_path):
    config = tiny_config(len(sample_tokenizer.vocabulary), initializer_range=0.5)
    task, folder = MultiLabel(config, ("a", "b")), tmp_path / "run"
    folder.mkdir()
    write_json(folder / "albert_config.json", config.to_dict())
    write_json(folder / "run_settings.json", {"objective": "MultiLabel", "max_seq_length": 16, **task.settings()})
    write_json(folder / "thresholds.json", {"a": 0.125, "b": 1.0})
    sample_tokenizer.save(folder)
    values = {f"model/{name}": value.numpy() for name, value in named_variables(task.make_model()).items()}
    write_checkpoint(str(folder / "model.ckpt-1"), values)
    publish(folder, tmp_path / "model", "float32")
    run, published = albert_tf.load(folder), albert_tf.load(tmp_path / "model")
    assert published.task.thresholds.tolist() == [0.125, 1.0]
    assert published.predict(["좋다", "나쁘다"]) == run.predict(["좋다", "나쁘다"])


POOLER = ["encoder/pooler/bias", "encoder/pooler/kernel"]


@pytest.mark.parametrize("target", ["albert_tf", "google"])
def test_untrained_pooler_is_told(tmp_path, target):
    config = CONFIGS["albert"]
    pieces = [*SPECIAL_TOKENS, *(f"##{number}" for number in range(config.vocab_size - len(SPECIAL_TOKENS)))]
    folder, _ = write_ours(tmp_path / "ours", config, tokenizer=KoreanWordPieceTokenizer(Vocabulary(pieces)))
    assert not any("random" in each for each in convert_checkpoint("albert_tf", target, folder, str(tmp_path / "a")))
    (tmp_path / "ours" / "untrained.json").write_text(json.dumps({"untrained": [*POOLER, "of/no/variable"]}))
    sentences = convert_checkpoint("albert_tf", target, folder, str(tmp_path / "b"))
    assert "still random, because nothing has trained it: encoder/pooler" in sentences
    if target == "albert_tf":
        assert read_untrained(str(tmp_path / "b" / "model.ckpt-0")) >= set(POOLER)
        assert not (tmp_path / "a" / "untrained.json").exists()


OF_DISTANCES = {
    "own keys": {"relative_attention": "c2p", "position_buckets": 4},
    "own queries": {"relative_attention": "p2c", "num_hidden_layers": 2, "sharing": "none"},
    "both, as in version 3": {"relative_attention": "p2c|c2p", "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    "no positions": {"relative_attention": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0},
}
ALL_CONFIGS = {**CONFIGS, **{name: tiny_config(**values) for name, values in OF_DISTANCES.items()}}


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_table_has_the_variables_of_the_pre_training_model(name):
    model = CLASSES[None](ALL_CONFIGS[name])
    shapes = {name: tuple(variable.shape) for name, variable in named_variables(model).items()}
    assert variable_shapes(ALL_CONFIGS[name]) == shapes


@pytest.mark.parametrize(
    ("task", "outputs"), [("classify", 3), ("score", 0), ("tag", 5), ("squad", 0), ("squad_v2", 0)]
)
def test_table_has_the_variables_of_every_head(task, outputs):
    config = CONFIGS["albert"]
    model = CLASSES[task](config)
    shapes = {name: tuple(variable.shape) for name, variable in named_variables(model).items()}
    found = variable_shapes(config, TASKS[task], outputs)
    assert {name: shape for name, shape in found.items() if name.startswith(("encoder/", "head/"))} == shapes
