"""The model card says what the run's files say, carries licences on, and is left alone once somebody has changed it."""

import json
import pathlib

import pytest
from tiny_config import tiny_config

from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForSequenceClassification,
)
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.training.run_folder.model_card import (
    carried_facts,
    facts_of,
    for_transformers,
    is_unchanged,
    license_beside,
    share_alike_warning,
    with_base_model,
    write_further_card,
    write_model_card,
)

RESULTS = {"global_step": 4, "num_examples": 200, "loss": 1e-05, "accuracy": 0.795}
MANIFEST = {
    "input_files": ["news.txt", "essay.txt"],
    "documents": 1952,
    "sentences": 10462,
    "words": 100768,
    "tokens": 233363,
    "unknown_word_rate": 0.000728,
    "options": {"sentence_pair": "order", "masking_options": {"ngram": 3, "do_permutation": False}},
    "splits": {"train": {"examples": 5158, "masking": "dynamic"}, "held_out": {"examples": 305, "masking": "static"}},
}


@pytest.fixture
def tokenizer():
    return KoreanWordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "밥", "##을"]))


@pytest.fixture
def model():
    return AlbertForSequenceClassification(tiny_config(7), num_labels=2)


@pytest.fixture
def folder(tmp_path, model):
    """The folder of a command that has trained and evaluated."""
    run = tmp_path / "films"
    run.mkdir()
    settings = {
        "command": "run_classifier",
        "objective": "Classification",
        "task_name": "nsmc",
        "learning_rate": 0.0001,
        "labels": ["bad|worse", "good"],
        "ema_decay": None,
        "init_checkpoint": {"path": "/home/someone/run/model.ckpt-9", "index_sha256": "0"},
        "train_file": {"name": "train.tsv", "sha256": "5d23", "examples": 20000},
        "found_at": {"data_dir": "/home/someone/reviews"},
        "albert_config": model.config.to_dict(),
    }
    (run / "run_settings.json").write_text(json.dumps(settings))
    (run / "eval_results.json").write_text(json.dumps(RESULTS))
    (run / "data_of_results.json").write_text(json.dumps({"eval_results.json": {"name": "dev.tsv", "sha256": "1"}}))
    return run


def read_card(path):
    """Returns the values of the front matter, and the rows of all tables."""
    yaml = pytest.importorskip("yaml", reason="front matter is read with PyYAML, which transformers brings")
    with open(path, encoding="utf-8") as file:
        _, front, body = file.read().split("---\n", 2)
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("| ") and line != "| | |"]
    return yaml.safe_load(front), dict(rows)


def test_card_of_a_generator_carries_the_licence_and_is_not_overwritten(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: cc-by-sa-4.0\nbase_model: a/b\n---\n# mine\n", "utf-8")
    path = tmp_path / "generator" / "README.md"
    path.parent.mkdir()
    write_further_card(str(tmp_path), "generator")
    card = path.read_text("utf-8")
    assert facts_of(card) == {"license": "cc-by-sa-4.0", "base_model": "a/b"} and "\n# generator\n" in card
    write_further_card(str(tmp_path), "generator")
    assert path.read_text("utf-8") == card
    path.write_text(card + "changed", "utf-8")
    write_further_card(str(tmp_path), "generator")
    assert path.read_text("utf-8") == card + "changed"


def test_card_says_what_results_and_settings_say(folder, model, tokenizer):
    path = write_model_card(str(folder), model, tokenizer, license_name="cc-by-4.0")
    front, rows = read_card(path)
    assert (front["language"], front["license"], front["datasets"]) == ("ko", "cc-by-4.0", ["nsmc"])
    assert (front["library_name"], front["pipeline_tag"]) == ("albert_tf", "text-classification")
    [entry] = front["model-index"]
    [result] = entry["results"]
    assert entry["name"] == "films" and result["dataset"] == {"name": "dev.tsv", "type": "nsmc"}
    scores = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert scores == {"loss": 1e-05, "accuracy": 0.795}  # numbers, all of them
    assert front["metrics"] == list(scores)

    assert rows["parameters"] == str(model.count_params())
    assert rows["hidden_size"] == str(model.config.hidden_size)
    assert rows["learning_rate"] == "0.0001" and rows["labels"] == '["bad&#124;worse", "good"]'
    assert (rows["training file: name"], rows["training file: sha256"]) == ("train.tsv", "5d23")
    assert rows["training file: examples"] == "20000" and rows["accuracy"] == "0.795"
    assert rows["vocabulary size"] == "7" and rows["lower_case"] == "true" and rows["strip_accents"] == "false"
    text = (folder / "README.md").read_text()
    assert "the weights of `run/model.ckpt-9`" in text and "someone" not in text
    assert "ema_decay" not in text, "settings without value"


def test_card_of_pretraining_says_what_the_manifest_says(folder, tokenizer):
    model = AlbertForPreTraining(tiny_config(7))
    front, rows = read_card(write_model_card(str(folder), model, tokenizer, [MANIFEST]))
    assert front["pipeline_tag"] == "fill-mask" and "license" not in front
    assert rows["input_files"] == '["news.txt", "essay.txt"]'
    counts = [rows[name] for name in ("documents", "sentences", "words", "tokens", "unknown_word_rate")]
    assert counts == ["1952", "10462", "100768", "233363", "0.000728"]
    assert rows["train examples"] == "5158, masking dynamic" and rows["held_out examples"] == "305, masking static"
    assert (rows["sentence_pair"], rows["ngram"], rows["do_permutation"]) == ("order", "3", "false")
    _, rows = read_card(write_model_card(str(folder), model, tokenizer, [MANIFEST, {**MANIFEST, "documents": 7}]))
    assert (rows["documents of phase 1"], rows["documents of phase 2"]) == ("1952", "7")


def test_card_is_written_again_the_same_and_with_new_results(folder, model, tokenizer):
    path = write_model_card(str(folder), model, tokenizer, license_name="cc-by-4.0")
    first = (folder / "README.md").read_text()
    assert is_unchanged(first)
    # The licence need not be named again.
    assert write_model_card(str(folder), model, tokenizer) == path
    assert (folder / "README.md").read_text() == first
    (folder / "eval_results.json").write_text(json.dumps({**RESULTS, "accuracy": 0.8}))
    write_model_card(str(folder), model, tokenizer)
    _, rows = read_card(path)
    assert rows["accuracy"] == "0.8"


@pytest.mark.parametrize("change", [lambda card: "# Mine\n", lambda card: card.replace("An ALBERT", "My ALBERT")])
def test_card_of_the_user_is_kept(folder, model, tokenizer, change):
    write_model_card(str(folder), model, tokenizer)
    mine = change((folder / "README.md").read_text())
    (folder / "README.md").write_text(mine)
    assert write_model_card(str(folder), model, tokenizer) is None
    assert (folder / "README.md").read_text() == mine


def test_model_of_a_task_of_ones_own_gets_a_card_without_an_example(folder, tokenizer):
    card = pathlib.Path(write_model_card(str(folder), AlbertEncoder(tiny_config(7)), tokenizer)).read_text("utf-8")
    assert "\npipeline_tag: feature-extraction\n" in card and "## Scores" in card and "## Use" not in card


def test_folder_without_a_run_gets_no_card(tmp_path, model, tokenizer):
    assert write_model_card(str(tmp_path), model, tokenizer) is None
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize(("make", "asked"), [(AlbertForPreTraining, "fill_mask"), (AlbertForMultipleChoice, "predict")])
def test_example_of_use_is_python(folder, tokenizer, make, asked):
    card = pathlib.Path(write_model_card(str(folder), make(tiny_config(7)), tokenizer)).read_text("utf-8")
    code = card.split("```python\n")[1].split("```")[0]
    compile(code, "README.md", "exec")
    assert f"\nmodel.{asked}([" in code


def test_card_for_transformers_names_it_and_shows_no_code_of_ours(folder, model, tokenizer):
    ours = pathlib.Path(write_model_card(str(folder), model, tokenizer)).read_text("utf-8")
    theirs = for_transformers(ours)
    assert "library_name: transformers\n" in theirs and "albert_tf.modeling" not in theirs and "<!--" not in theirs
    assert ours.split("## Model\n")[1].startswith(theirs.split("## Model\n")[1].rstrip("\n"))


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
    assert carried_facts({"init_checkpoint": None}) == {}
    assert carried_facts({}, license_name="mit") == {"license": "mit"}


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
    ("card", "license_name", "is_told"),
    [
        *((KLUE, name, True) for name in ("mit", "cc-by-4.0", "cc-by-sa-3.0")),
        *((KLUE, name, False) for name in ("cc-by-sa-4.0", "CC-BY-SA-4.0", None)),
        (OTHER, "mit", False),
    ],
)
def test_another_licence_than_a_share_alike_one_is_told(begun_with, card, license_name, is_told):
    warning = share_alike_warning(begun_with(card), license_name) or ""
    assert ("is under cc-by-sa-4.0, which" in warning and warning.endswith(f"not under {license_name}")) == is_told
    assert bool(warning) == is_told


def test_card_of_a_run_carries_the_licence_on(begun_with, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    settings = {**begun_with(KLUE), "objective": "Classification", "albert_config": CONFIG.to_dict()}
    (run / "run_settings.json").write_text(json.dumps(settings))
    model, card = AlbertForSequenceClassification(CONFIG, num_labels=2), run / "README.md"
    write_model_card(str(run), model, None)
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
