"""Licence and base model of what a run began with stand on the run's own card, and nothing that no card says."""

import json

import pytest
from tiny_config import tiny_config

from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.training.run_folder.model_card import (
    carried_facts,
    facts_of,
    license_beside,
    share_alike_warning,
    with_base_model,
    write_model_card,
)

KLUE = "---\nlanguage: ko\nlicense: cc-by-sa-4.0\nbase_model: klue/roberta-base\n---\n# KLUE-RoBERTa\n"
CONFIG = tiny_config(7)
OTHER = "---\nlicense: other\nlicense_name: own-1.0\nlicense_link: LICENSE\n---\n"


@pytest.fixture
def begun_with(tmp_path):
    """Returns a function from the card of a model to the settings of a run that began with it."""

    def settings(card=None):
        start = tmp_path / "start"
        start.mkdir(exist_ok=True)
        if card is not None:
            (start / "README.md").write_bytes(card if isinstance(card, bytes) else card.encode())
        return {"init_checkpoint": {"path": str(start / "model.ckpt-0"), "index_sha256": "0"}}

    return settings


@pytest.mark.parametrize(
    ("card", "facts"),
    [
        (KLUE, {"license": "cc-by-sa-4.0", "base_model": "klue/roberta-base"}),
        (KLUE.replace("\n", "\r\n"), {"license": "cc-by-sa-4.0", "base_model": "klue/roberta-base"}),
        (OTHER, {"license": "other", "license_name": "own-1.0", "license_link": "LICENSE"}),
        ('---\nlicense: "mit"  # as the authors say\n---\n', {"license": "mit"}),
        ("---\nlicense: [mit]\n---\n", {"license": "mit"}),
        ("---\nlicense:\n- mit\n- 'apache-2.0'\ntags:\n- bert\n---\n", {"license": ["mit", "apache-2.0"]}),
        ("---\nlicense: [mit, apache-2.0]\n---\n", {"license": ["mit", "apache-2.0"]}),
        ("---\nlicense:\ntags:\n- bert\n---\n", {}),
        ("---\nlanguage: ko\n---\nlicense: mit\n", {}),
        ("# A model\n\nlicense: mit\n", {}),
        ("\n---\nlicense: mit\n---\n", {}),
        ("", {}),
    ],
)
def test_front_matter_is_read(card, facts):
    assert facts_of(card) == facts


def test_front_matter_is_read_as_yaml_reads_it():
    yaml = pytest.importorskip("yaml", reason="compares with PyYAML, which transformers brings")
    for card in (KLUE, OTHER, "---\nlicense:\n- mit\n- apache-2.0\n---\n", "---\nlicense: 'mit' # yes\n---\n"):
        expected = yaml.safe_load(card.split("---\n")[1])
        assert facts_of(card) == {key: value for key, value in expected.items() if key != "language"}


def test_base_model_is_added_once():
    assert with_base_model(KLUE, "other/model") == KLUE
    assert facts_of(with_base_model(OTHER, "klue/bert-base")) == {**facts_of(OTHER), "base_model": "klue/bert-base"}
    assert with_base_model("# A model\n", "klue/bert-base") == "---\nbase_model: klue/bert-base\n---\n# A model\n"


def test_present_card_goes_before_that_of_the_start_and_the_user_before_both(begun_with):
    settings = begun_with(OTHER)
    assert carried_facts(settings) == facts_of(OTHER)
    assert carried_facts(settings, KLUE) == facts_of(KLUE)
    assert carried_facts(settings, "# Mine\n") == facts_of(OTHER)
    assert carried_facts(settings, KLUE, "mit") == {"license": "mit", "base_model": "klue/roberta-base"}


def test_licence_that_gives_a_work_away_says_nothing_of_what_is_made_of_it(begun_with):
    settings = begun_with("---\nlicense: CC0-1.0\nbase_model: a/b\n---\n")
    assert carried_facts(settings) == {"base_model": "a/b"}
    assert carried_facts(settings, license_name="mit") == {"license": "mit", "base_model": "a/b"}


@pytest.mark.parametrize("card", [None, "# A model\n", b"---\nlanguage: \xff\n---\n"])
def test_nothing_is_invented(begun_with, card):
    settings = begun_with(card)
    assert carried_facts(settings) == {} and share_alike_warning(settings, "mit") is None
    assert carried_facts({"init_checkpoint": None}) == {} and carried_facts({}, license_name="mit") == {
        "license": "mit"
    }


@pytest.mark.parametrize("license_name", ["mit", "cc-by-4.0", "cc-by-sa-3.0"])
def test_another_licence_than_a_share_alike_one_is_told(begun_with, license_name):
    warning = share_alike_warning(begun_with(KLUE), license_name)
    assert "is under cc-by-sa-4.0, which" in warning and warning.endswith(f"not under {license_name}")


@pytest.mark.parametrize(("card", "license_name"), [("# A model\n", "mit"), (OTHER, None)])
def test_another_licence_than_that_of_a_share_alike_teacher_is_told(begun_with, tmp_path, card, license_name):
    teacher = tmp_path / "teacher"
    teacher.mkdir()
    (teacher / "README.md").write_text(KLUE)
    settings = {**begun_with(card), "teacher": {"path": str(teacher / "model.ckpt-1"), "index_sha256": None}}
    warning = share_alike_warning(settings, license_name)
    assert warning.startswith("warning: the teacher of this model is under cc-by-sa-4.0, which")
    assert warning.endswith(f"not under {license_name or facts_of(OTHER)['license']}")
    assert share_alike_warning(settings, "cc-by-sa-4.0") is None


@pytest.mark.parametrize(
    ("card", "license_name"), [(KLUE, "cc-by-sa-4.0"), (KLUE, "CC-BY-SA-4.0"), (KLUE, None), (OTHER, "mit")]
)
def test_nothing_is_told_of_what_may_be(begun_with, card, license_name):
    assert share_alike_warning(begun_with(card), license_name) is None


def test_card_of_a_run_carries_the_licence_on(begun_with, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    settings = {**begun_with(KLUE), "objective": "Classification", "albert_config": CONFIG.to_dict()}
    (run / "run_settings.json").write_text(json.dumps(settings))
    model = AlbertForSequenceClassification(CONFIG, num_labels=2)
    card = (run / "README.md") if write_model_card(str(run), model, None) else None
    assert facts_of(card.read_text()) == facts_of(KLUE)
    # Where the start is gone, the card that is there still says it.
    (tmp_path / "start" / "README.md").unlink()
    write_model_card(str(run), model, None)
    assert facts_of(card.read_text()) == facts_of(KLUE)
    write_model_card(str(run), model, None, license_name="mit")
    assert facts_of(card.read_text()) == {"license": "mit", "base_model": "klue/roberta-base"}


@pytest.mark.parametrize(("card", "expected"), [(KLUE, "cc-by-sa-4.0"), ("---\nlicense: cc0-1.0\n---\n", "cc0-1.0")])
def test_licence_of_a_model_is_its_own(begun_with, card, expected):
    checkpoint = begun_with(card)["init_checkpoint"]["path"]
    assert license_beside(checkpoint) == {"license": expected}
    assert license_beside(begun_with("# A model\n")["init_checkpoint"]["path"]) == {}
