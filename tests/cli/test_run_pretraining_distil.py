"""A student that learns from a frozen teacher, from shards to a model that is fine-tuned."""

import json
import shutil

import pytest
from runs import assert_same_run, read_results, stopped_copy, variables_in

import albert_tf
from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer

pytestmark = pytest.mark.slow

RELATIONS = {f"{name}_relation_loss" for name in ("query", "key", "value")}


@pytest.fixture
def with_teacher(checkpoint, config_file):
    """Flags of a run that learns from the folder of another one."""
    return {"objective": "distil", "teacher": checkpoint, "albert_config_file": config_file}


@pytest.fixture
def trained(pretrain, with_teacher, folder_of_run):
    """The folder of a run, evaluated; not to be changed."""
    if not folder_of_run.exists():
        result = pretrain(**with_teacher, output_dir=folder_of_run).succeeded()
        assert "unigram entropy" not in result.output  # no loss of it can be compared with that
    return folder_of_run


def test_teacher_is_neither_trained_nor_saved(trained, checkpoint):
    before = variables_in(checkpoint / "model.ckpt-3")
    assert not [name for name in variables_in(trained / "model.ckpt-4") if "teacher" in name]
    settings = json.loads((trained / "run_settings.json").read_text())
    assert settings["teacher"]["path"] == str(checkpoint / "model.ckpt-3")
    assert settings["frozen_models"].keys() == {"teacher", "teacher_config"}
    assert read_results(trained).keys() == {"global_step", "loss", *RELATIONS}
    after = variables_in(checkpoint / "model.ckpt-3")
    assert all((after[name] == value).all() for name, value in before.items())
    assert f"and learnt from `{checkpoint.name}/model.ckpt-3`" in (trained / "README.md").read_text()
    model = albert_tf.load(trained)
    assert model.abilities == ("encode", "similarity")
    with pytest.raises(InputError, match="was not pre-trained to fill in what is missing"):
        model.fill_mask(["오늘은 [MASK]"])


def test_stopped_run_ends_with_the_same_bits_by_its_folder_alone(pretrain, trained, tmp_path, checkpoint):
    run = stopped_copy(trained, tmp_path / "run", 4)
    other = shutil.copytree(checkpoint, tmp_path / "other")
    values = variables_in(other / "model.ckpt-3")
    values["model/encoder/embeddings/word_embeddings"] += 0.1
    write_checkpoint(str(other / "model.ckpt-3"), values)
    result = pretrain(input_file=None, albert_config_file=None, teacher=other)
    assert result.code == 1 and "the content of teacher, which it learns from, is not what it was" in result.errors
    same = shutil.copytree(checkpoint, tmp_path / "same")  # the content counts, and not the place
    result = pretrain(input_file=None, albert_config_file=None, teacher=same)
    assert result.code == 0 and f"\nrestored {run}/model.ckpt-2\n" in result.output
    assert_same_run(run, trained, 4)
    result = pretrain(relation_heads=2)
    assert result.code == 1 and "--relation_heads is 2, and was 0" in result.errors


def test_student_of_logits_begins_as_its_teacher_and_fills_masks(pretrain, with_teacher, tmp_path):
    flags = {**with_teacher, "albert_config_file": None, "student_layers": "0", "distillation": "logits"}
    result = pretrain(**flags).succeeded()
    assert "beginning with layers 0 of " in result.output and "training from random weights" not in result.output
    assert "a masked_lm_loss that needs no context" in result.output
    results = read_results(tmp_path / "run")
    losses = {"masked_lm_loss": 2, "logit_loss": 5, "cosine_loss": 1}
    assert results["loss"] == pytest.approx(sum(results[name] * factor for name, factor in losses.items()), rel=1e-6)
    assert results["logit_loss"] < 0.1 and results["agreement"] > 0.5  # it began as its teacher
    assert len(albert_tf.load(tmp_path / "run").fill_mask(["오늘은 [MASK]"])[0][0]) == 5


def test_projection_is_saved_and_left_out_of_what_the_run_is_for(
    pretrain, with_teacher, tiny_config, write_config, tmp_path, request
):
    config, run = write_config(tiny_config.replace(hidden_size=8)), tmp_path / "run"
    flags = {**with_teacher, "albert_config_file": config, "distillation": "layers"}
    pretrain(**flags, num_train_steps=2).succeeded()
    assert read_results(run).keys() == {"global_step", "loss", "attention_loss", "hidden_state_loss"}
    assert "projection/kernel" in variables_in(run / "model.ckpt-2")
    assert not (run / "projection").exists()
    assert albert_tf.load(run).encode(["오늘은"]).shape == (1, 8)
    # Another run goes on with it; one that compares nothing leaves it.
    request.getfixturevalue("without_training")
    begun = {"init_checkpoint": run, "output_dir": tmp_path / "begun", "do_eval": False}
    assert "loaded 2 variables of the projection\n" in pretrain(**flags, **begun).output
    begun["output_dir"] = tmp_path / "other"
    result = pretrain(objective="albert", albert_config_file=config, **begun).succeeded()
    assert "the projection" not in result.output


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"teacher": "nowhere"},
            "--teacher=nowhere: there is no such folder or checkpoint; name the folder of a model",
        ),
        ({"teacher": None}, "--objective=distil needs a teacher; name the folder of a model with --teacher"),
        ({"objective": None}, "--teacher has no meaning for --objective=albert; leave it out"),
        (
            {"student_layers": "0", "word_embeddings": "cooccurrence"},
            "--student_layers and --word_embeddings both say what the model begins with",
        ),
        ({"student_layers": "4"}, "--student_layers names layer 4, and the teacher has 1, from 0 to 0"),
    ],
)
def test_what_can_not_be_learnt_is_one_sentence(pretrain, with_teacher, assert_refused, tmp_path, changes, sentence):
    message = assert_refused(lambda: pretrain(**{**with_teacher, **changes}), tmp_path)
    assert message.startswith(sentence)


def test_teacher_of_another_vocabulary_is_refused(pretrain, with_teacher, checkpoint, assert_refused, tmp_path):
    other = shutil.copytree(checkpoint, tmp_path / "other")
    pieces = (other / "vocab.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "vocab.txt").write_text("\n".join([*pieces[:-2], pieces[-1], pieces[-2]]) + "\n", encoding="utf-8")
    KoreanWordPieceTokenizer.from_vocab_file(str(tmp_path / "vocab.txt")).save(other)
    for _ in range(2):
        message = assert_refused(lambda: pretrain(**{**with_teacher, "teacher": other}), tmp_path)
        assert "has a different vocabulary from the data, which both models read piece by piece; make the " in message
        (other / "tokenizer.json").unlink(missing_ok=True)  # as in folders of the original


def test_teacher_whose_shared_block_is_applied_more_often_is_another_one(
    pretrain, with_teacher, trained, checkpoint, tmp_path
):
    other = shutil.copytree(checkpoint, tmp_path / "other")
    config = json.loads((other / "albert_config.json").read_text())
    (other / "albert_config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    result = pretrain(**{**with_teacher, "teacher": other}, output_dir=trained)
    assert result.code == 1 and "the content of teacher_config, which it learns from, is not what" in result.errors
