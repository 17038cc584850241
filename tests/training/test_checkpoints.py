"""Checkpoints: names in the file, how many are kept, saving while training goes on, and starting from another run."""

import threading
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from saved_state import state_of
from tiny_training import CONFIG, TinyRun, loop_settings

from albert_tf.base.checkpoint_files import find_beside_checkpoint, find_checkpoints
from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import load_weights
from albert_tf.training.run_folder.checkpoints import Checkpointer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run that saved its first state at step 5, and the folder of the checkpoint."""
    run = TinyRun.start(ema_decay=0.9)
    run.global_step.assign(5)
    folder = tmp_path_factory.mktemp("saved")
    checkpointer = run.checkpointer(folder)
    checkpointer.save()
    checkpointer.wait()
    return run, folder


def checkpointer_of(folder, model):
    return Checkpointer(str(folder), state_of(named_variables(model), tf.Variable(0, dtype=tf.int64)))


def test_file_names_variables_after_the_path_in_the_model(saved):
    run, folder = saved
    shapes = {
        name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"): tuple(shape)
        for name, shape in tf.train.load_checkpoint(str(folder)).get_variable_to_shape_map().items()
    }
    assert shapes["model/encoder/embeddings/word_embeddings"] == (40, 8)
    assert shapes["model/encoder/attention_layers/0/query/kernel"] == (16, 16)
    assert shapes["model/sentence_order_head/dense/bias"] == (2,)
    prefixes = ("model", "first_moments", "second_moments", "averages")
    expected = {f"{prefix}/{name}": values.shape for prefix in prefixes for name, values in run.weights().items()}
    counters = {"global_step": (), "skipped_steps": (), "last_skipped_step": ()}
    bookkeeping = {**counters, "metric_sums": (2, len(run.state.metric_sums.names)), "_CHECKPOINTABLE_OBJECT_GRAPH": ()}
    assert shapes == {**expected, **bookkeeping}
    assert tf.train.latest_checkpoint(str(folder)) == f"{folder}/model.ckpt-5"


def test_restore_without_checkpoint_says_so_and_leaves_the_folder_alone(tmp_path):
    checkpointer = start_linear().checkpointer(tmp_path / "none")
    assert checkpointer.latest is None
    assert not checkpointer.restore_latest()
    assert not list(tmp_path.iterdir())


def test_model_alone_is_restored_without_complaint(saved, caplog):
    _, folder = saved
    checkpointer = checkpointer_of(folder, AlbertForPreTraining(CONFIG))
    assert checkpointer.restore_latest()
    del checkpointer  # TensorFlow complains of values that nobody took when the last reference goes
    assert not caplog.records


@pytest.mark.parametrize(
    "make",
    [
        lambda: AlbertForPreTraining(CONFIG.replace(intermediate_size=8)),
        lambda: AlbertForSequenceClassification(CONFIG, 3),
        lambda: AlbertForPreTraining(CONFIG.replace(num_hidden_layers=2, num_hidden_groups=2)),
    ],
    ids=["another width", "another head", "more variables"],
)
def test_checkpoint_of_another_model_is_not_restored(saved, make):
    _, folder = saved
    checkpointer = checkpointer_of(folder, make())
    with pytest.raises(InputError, match=r"model\.ckpt-5 belongs to another model") as error:
        checkpointer.restore_latest()
    assert "\n" not in str(error.value)


def test_newest_checkpoints_are_kept(tmp_path):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path, keep_checkpoint_max=2)
    for step in (1, 2, 10):
        run.global_step.assign(step)
        assert checkpointer.save() == f"{tmp_path}/model.ckpt-{step}"
    checkpointer.wait()
    assert sorted(path.name for path in tmp_path.glob("*.index")) == ["model.ckpt-10.index", "model.ckpt-2.index"]
    run.checkpointer(tmp_path, keep_checkpoint_max=2).restore_latest()
    assert run.global_step.numpy() == 10
    # A later process goes on counting those that it found.
    run.global_step.assign(11)
    checkpointer = run.checkpointer(tmp_path, keep_checkpoint_max=2)
    checkpointer.save()
    checkpointer.wait()
    assert sorted(path.name for path in tmp_path.glob("*.index")) == ["model.ckpt-10.index", "model.ckpt-11.index"]


@pytest.mark.parametrize("as_folder", [True, False])
def test_weights_that_another_model_shares_are_loaded(saved, as_folder):
    run, folder = saved
    model = AlbertForSequenceClassification(CONFIG, 3)
    variables = named_variables(model)
    head = variables["head/dense/kernel"].numpy()
    loaded, missing, unused = load_weights(str(folder) if as_folder else f"{folder}/model.ckpt-5", variables)
    assert unused == sorted(set(run.weights()) - set(loaded))
    assert any("sentence_order_head" in name for name in unused)
    assert sorted(missing) == ["head/dense/bias", "head/dense/kernel"]
    assert sorted(loaded + missing) == sorted(variables)
    assert all(name.startswith("encoder/") for name in loaded)
    for name in loaded:
        np.testing.assert_array_equal(variables[name].numpy(), run.weights()[name], err_msg=name)
    np.testing.assert_array_equal(variables["head/dense/kernel"].numpy(), head)


def test_weights_reach_every_replica(saved):
    run, folder = saved
    other = TinyRun.start(num_replicas=2, seed=1)
    variables = named_variables(other.model)
    load_weights(str(folder), variables)
    for name, expected in run.weights().items():
        for copy in other.strategy.experimental_local_results(variables[name]):
            np.testing.assert_array_equal(copy.numpy(), expected, err_msg=name)


def test_weights_of_another_shape_are_refused_before_any_is_assigned(saved):
    variables = named_variables(AlbertForPreTraining(CONFIG.replace(intermediate_size=8)))
    before = {name: variable.numpy() for name, variable in variables.items()}
    with pytest.raises(InputError, match=r"intermediate/kernel has shape \[16, 32\] in .* and \[16, 8\] in this model"):
        load_weights(str(saved[1]), variables)
    np.testing.assert_equal({name: variable.numpy() for name, variable in variables.items()}, before)


@pytest.mark.parametrize("name", ["", "missing/model.ckpt-5", "vocab.txt"])
def test_missing_checkpoint_is_named(tmp_path, name):
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    path = str(tmp_path / name) if name else str(tmp_path)
    with pytest.raises(InputError) as error:
        load_weights(path, named_variables(AlbertForPreTraining(CONFIG)))
    assert str(error.value) == f"`init_checkpoint`: no checkpoint at {path}"


def test_file_beside_a_checkpoint_is_found(saved, tmp_path):
    (tmp_path / "vocab.txt").touch()
    for checkpoint in (str(tmp_path), f"{tmp_path}/model.ckpt-5"):
        assert find_beside_checkpoint(checkpoint, "vocab.txt") == f"{tmp_path}/vocab.txt"
        assert find_beside_checkpoint(checkpoint, "albert_config.json") is None
    assert find_beside_checkpoint(None, "vocab.txt") is None


EXAMPLES = make_linear_examples(16)
WRITE = tf.train.Checkpoint.write


@pytest.fixture
def held_up(monkeypatch):
    """Holds up what writes a checkpoint until the event is set."""
    release = threading.Event()

    def write(checkpoint, path):
        assert release.wait(60)
        return WRITE(checkpoint, path)

    monkeypatch.setattr(tf.train.Checkpoint, "write", write)
    yield release
    release.set()


@pytest.fixture
def full_disk(monkeypatch):
    """Lets a disk be full from the call on; half of each checkpoint still has room."""

    def write(checkpoint, path):
        with open(f"{path}.data-00000-of-00001", "wb") as file:
            file.write(b"half a")
        raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device\nmore lines")

    return lambda: monkeypatch.setattr(tf.train.Checkpoint, "write", write)


def saved_kernel(path):
    return tf.train.load_checkpoint(path).get_tensor("model/kernel/.ATTRIBUTES/VARIABLE_VALUE")


def test_saving_waits_for_no_disk(tmp_path, held_up):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path)
    kernel = run.model.kernel.numpy()
    path = checkpointer.save()
    run.take_steps(EXAMPLES, 4)
    assert not np.array_equal(run.model.kernel, kernel)
    checkpointer.check()  # does not wait either
    assert not find_checkpoints(str(tmp_path))
    held_up.set()
    checkpointer.wait()
    assert find_checkpoints(str(tmp_path)) == [path]
    np.testing.assert_array_equal(saved_kernel(path), kernel, "as it was when it was asked for")


@pytest.mark.slow
def test_loop_saves_and_goes_on(tmp_path, held_up):
    run = start_linear()
    steps = []

    def release_at_the_end(step, averages):
        steps.append(step)
        assert not find_checkpoints(str(tmp_path)), "held up"
        if step == 4:
            held_up.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiny_training.Progress.update", lambda progress, *values: release_at_the_end(*values))
        options = loop_settings(iterations_per_loop=1, save_checkpoints_steps=2)
        assert run.train(tmp_path, EXAMPLES, 4, 4, options).is_finished
    assert steps == [1, 2, 3, 4]
    assert find_checkpoints(str(tmp_path)) == [f"{tmp_path}/model.ckpt-{step}" for step in (2, 4)]


def test_step_is_saved_once(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(tf.train.Checkpoint, "write", lambda self, path: written.append(path) or WRITE(self, path))
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path)
    checkpointer.save()
    checkpointer.save()
    checkpointer.wait()
    other = run.checkpointer(tmp_path)
    other.restore_latest()
    other.save()
    other.wait()
    assert written == [f"{tmp_path}/model.ckpt-0"]


def test_one_process_alone_writes(tmp_path):
    checkpointer = start_linear().checkpointer(tmp_path / "run", is_chief=False)
    assert checkpointer.save() == f"{tmp_path}/run/model.ckpt-0"
    checkpointer.wait()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["check", "wait", "save"])
def test_checkpoint_that_could_not_be_written_is_told_and_leaves_no_half(tmp_path, full_disk, call):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path, keep_checkpoint_max=1)
    run.global_step.assign(4)
    checkpointer.save()
    checkpointer.wait()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    full_disk()
    run.global_step.assign(8)
    checkpointer.save()
    checkpointer._pending.exception()  # waits without raising
    run.global_step.assign(12)
    with pytest.raises(InputError) as error:
        getattr(checkpointer, call)()
    sentence = f"can't save {tmp_path}/model.ckpt-8: {tmp_path}/model.ckpt-8; No space left on device; "
    assert str(error.value).startswith(
        f"{sentence}{tmp_path}/model.ckpt-4 is intact; free some space or choose another"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    checkpointer.wait()  # told once


def test_failed_step_can_be_saved_when_there_is_space_again(tmp_path):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.train.Checkpoint, "write", mock.Mock(side_effect=PermissionError("not allowed")))
        checkpointer.save()
        with pytest.raises(InputError, match=r"model\.ckpt-0: not allowed; none was written before; free some space"):
            checkpointer.wait()
    path = checkpointer.save()
    checkpointer.wait()
    assert find_checkpoints(str(tmp_path)) == [path]


def test_training_ends_at_a_checkpoint_that_could_not_be_written(tmp_path, full_disk):
    full_disk()
    run = start_linear()
    options = loop_settings(iterations_per_loop=1, save_checkpoints_steps=2)
    with pytest.raises(InputError, match=r"^can't save .*model\.ckpt-2: .*No space left on device; none was written"):
        run.train(tmp_path, EXAMPLES, 4, 100, options)
    assert run.global_step.numpy() <= 4, "the next checkpoint at the latest brings it to light"
