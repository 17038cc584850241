"""A model that is told of entities, from a folder of vectors to a model that is fine-tuned, exported and asked."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from runs import assert_same_run, read_results, stopped_copy, variables_in

import albert_tf
from albert_tf.pretraining_data.entities import read_known_entities
from albert_tf.tokenization import load_tokenizer

pytestmark = pytest.mark.slow

LOSSES = {"masked_lm_loss", "entity_loss"}
METRICS = {"masked_lm_accuracy", "entity_accuracy", "entity_unseen_accuracy", "entity_blind_accuracy"}
WORDS = (
    *("시간", "오전", "오후", "처음", "영화", "사진", "엄마", "점심", "아침", "나", "책", "집", "그", "이", "두", "한"),
    *("가장", "하루", "여섯", "다음", "사람", "손님", "우리", "것", "곳", "때", "물", "길", "날", "말"),
    "없는 이름 ☃",
)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A folder of entity vectors; the last name can't be spelled."""
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "entities.txt").write_text("\n".join(WORDS) + "\n")
    np.save(folder / "entity_vectors.npy", np.random.default_rng(0).normal(size=[len(WORDS), 4]))
    return folder


@pytest.fixture
def with_entities(vectors):
    """Flags of a run."""
    return {"objective": "entities", "entity_vectors": vectors}


@pytest.fixture
def trained(pretrain, with_entities, folder_of_run):
    """The folder of a run, evaluated; not to be changed."""
    if not folder_of_run.exists():
        result = pretrain(**with_entities, output_dir=folder_of_run).succeeded()
        told = "30 entities of 31 have names that can be found; left out: 1 has a word that the vocabulary can't spell"
        assert told in result.output
    return folder_of_run


def test_vectors_stay_as_they_are_and_fusion_is_learnt(trained, vectors):
    assert read_results(trained).keys() == {"global_step", "loss", *LOSSES, *METRICS}
    early, late = (variables_in(trained / f"model.ckpt-{step}") for step in (2, 4))
    fusion = "model/encoder/entity_fusion/"
    expected = np.load(vectors / "entity_vectors.npy")[: len(WORDS) - 1].astype(np.float32)
    np.testing.assert_array_equal(late[f"{fusion}entity_embeddings"], expected)
    assert not [name for name in late if "moments/" in name and ("entity_embeddings" in name or "/name_" in name)]
    assert np.abs(late[f"{fusion}output_dense/kernel"]).max() > 0
    assert (late[f"{fusion}output_dense/kernel"] != early[f"{fusion}output_dense/kernel"]).any()
    assert (late["model/entity_head/kernel"] != early["model/entity_head/kernel"]).any()
    config = json.loads((trained / "albert_config.json").read_text())
    assert (config["num_entities"], config["entity_size"]) == (30, 4)
    settings = json.loads((trained / "run_settings.json").read_text())
    known = read_known_entities(vectors, load_tokenizer(str(trained)), "")
    assert settings["entities"] == known.sha256 and settings["found_at"]["entity_vectors"] == str(vectors)


def test_stopped_run_ends_with_the_same_bits_by_its_folder_alone(pretrain, trained, vectors, tmp_path):
    run = stopped_copy(trained, tmp_path / "run", 4)
    other = shutil.copytree(vectors, tmp_path / "other")
    np.save(other / "entity_vectors.npy", 2 * np.load(vectors / "entity_vectors.npy"))
    result = pretrain(input_file=None, albert_config_file=None, entity_vectors=other)
    assert (
        result.code == 1
        and "the entities that it knows have changed since; put the folder of --entity" in result.errors
    )
    same = shutil.copytree(vectors, tmp_path / "same")  # the content counts, and not the place
    result = pretrain(albert_config_file=None, entity_vectors=same)
    assert result.code == 0 and f"\nrestored {run}/model.ckpt-2\n" in result.output, result.errors
    assert_same_run(run, trained, 4)
    result = pretrain(input_file=None, albert_config_file=None)
    assert result.code == 0 and "already trained to step 4 of 4" in result.output, result.errors


def test_another_run_goes_on_with_the_same_entities_alone(
    pretrain, trained, vectors, with_entities, without_training, tmp_path
):
    flags = {**with_entities, "albert_config_file": None, "init_checkpoint": trained, "do_eval": False}
    result = pretrain(**flags).succeeded()
    assert "from random weights" not in result.output
    other = shutil.copytree(vectors, tmp_path / "other")
    np.save(other / "entity_vectors.npy", 2 * np.load(vectors / "entity_vectors.npy"))
    result = pretrain(**{**flags, "entity_vectors": other, "output_dir": tmp_path / "run2"})
    assert result.code == 1
    assert f"--init_checkpoint={trained} was trained with other entities than --entity_vectors={other}" in result.errors
    result = pretrain(**{**flags, "entity_vectors": None, "output_dir": tmp_path / "run3"})
    assert (result.code, result.errors) == (
        1,
        "error: --objective=entities needs the entities that the model was trained with; name the folder of their "
        "entities.txt and entity_vectors.npy with --entity_vectors\n",
    )


def test_plain_model_learns_entities_from_where_it_stands(pretrain, checkpoint, with_entities, without_training):
    flags = {**with_entities, "albert_config_file": None, "init_checkpoint": checkpoint}
    result = pretrain(**flags, do_eval=False).succeeded()
    learnt = "encoder/entity_fusion/transform, encoder/entity_fusion/output_dense, entity_head"
    assert f"new, from random weights: {learnt}\n" in result.output


def test_config_of_entities_alone_tells_a_model_nothing(pretrain, checkpoint, trained, assert_refused, tmp_path):
    flags = {"albert_config_file": trained / "albert_config.json", "output_dir": tmp_path / "run2"}
    for start in (None, checkpoint):
        message = assert_refused(lambda start=start: pretrain(**flags, init_checkpoint=start), tmp_path)
        assert message.startswith("the model has entities (num_entities=30), but nothing says which; start from")


def test_model_is_fine_tuned_published_and_exported(classify, run_script, pretrain, trained, with_entities, tmp_path):
    classify(do_train=True, init_checkpoint=trained, output_dir=tmp_path / "classifier").succeeded()
    texts = ["오늘 시장에 사람이 많다", "비가 온다"]
    model = albert_tf.load(tmp_path / "classifier")
    expected = [answer["probabilities"] for answer in model.predict(texts)]
    run_script("export_model.py", model_dir=tmp_path / "classifier", output_dir=tmp_path / "export").succeeded()
    exported = tf.saved_model.load(str(tmp_path / "export" / "1"))
    found = exported.signatures["serving_default"](text=tf.constant(texts))["probabilities"]
    np.testing.assert_allclose(found, [list(each.values()) for each in expected], atol=1e-6)
    flags = {"model_dir": tmp_path / "classifier", "output_dir": tmp_path / "litert", "format": "litert"}
    result = run_script("export_model.py", **flags)
    assert result.code == 1
    assert "LiteRT can't express the search for names of entities (num_entities=30)" in result.errors
    result = run_script("convert_checkpoint.py", input_path=trained, output_dir=tmp_path / "published").succeeded()
    published = variables_in(next((tmp_path / "published").glob("*.index")).with_suffix(""))
    name = "model/encoder/entity_fusion/name_edges"
    np.testing.assert_array_equal(published[name], variables_in(trained / "model.ckpt-4")[name])
    assert len(albert_tf.load(tmp_path / "published").fill_mask(["오늘은 [MASK]"])[0][0]) == 5
    # Its vectors are rounded to half precision, and so are those of whatever begins with it.
    flags = {**with_entities, "albert_config_file": None, "do_eval": False}
    flags |= {"num_train_steps": 1, "num_warmup_steps": 0}
    for start, run in (("published", "again"), ("again", "once more")):
        pretrain(**flags, init_checkpoint=tmp_path / start, output_dir=tmp_path / run).succeeded()
    flags = {"from": "albert_tf", "to": "google", "input_path": trained, "output_dir": tmp_path / "google"}
    result = run_script("convert_checkpoint.py", **flags)
    assert result.code == 1 and "which no other library does" in result.errors


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"entity_vectors": None}, "--objective=entities needs the entities that the model is to know; name"),
        ({"objective": None}, "--entity_vectors has no meaning for --objective=albert; leave it out"),
        ({"entity_vectors": "nowhere"}, "can't read the names that --entity_vectors=nowhere has vectors of"),
    ],
)
def test_what_can_not_be_learnt_is_one_sentence(pretrain, with_entities, assert_refused, tmp_path, changes, sentence):
    message = assert_refused(lambda: pretrain(**{**with_entities, **changes}), tmp_path)
    assert message.startswith(sentence)
