"""Teachers: ours, beside labels and of texts without, and models of others, of which nothing says what they read."""

import json
import shutil

import pytest
import varied_data as data
from runs import assert_same_variables, read_results, read_rows, stopped_copy, write_model

import albert_tf
from albert_tf import modeling
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions

pytestmark = pytest.mark.slow

MODELS = {
    "classify": modeling.AlbertForSequenceClassification,
    "score": modeling.AlbertForSequenceClassification,
    "tag": modeling.AlbertForTokenClassification,
    "squad": modeling.AlbertForQuestionAnswering,
    "race": modeling.AlbertForMultipleChoice,
    None: modeling.AlbertForPreTraining,
}
TAGS = ("PS-B", "PS-I", "O", "LC-B", "LC-I")


def correct_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def write_theirs(tiny_config, sample_tokenizer, tmp_path):
    """Writes a model with random weights as transformers does, with names of its outputs, and returns its folder."""

    def write(task, labels=(), name="theirs", **changes):
        theirs = tmp_path / name
        sizes = [len(labels)] if labels else [1] * (task == "score")
        ours = write_model(tmp_path / f"{name} of ours", MODELS[task](tiny_config, *sizes), sample_tokenizer)
        convert_checkpoint("albert_tf", "huggingface", str(ours), str(theirs), ReadOptions(task=task))
        if labels:
            changes["id2label"] = dict(enumerate(labels))
        correct_config(theirs, **changes)
        return theirs

    return write


@pytest.fixture
def learn(run_script, checkpoint, tmp_path):
    """Runs a script for two steps, as a rule with a teacher."""
    usual = {"init_checkpoint": checkpoint, "output_dir": tmp_path / "run", "max_seq_length": 40}
    usual |= {"num_train_steps": 2, "train_batch_size": 4, "do_train": True}
    return lambda script, **changes: run_script(script, **{**usual, **changes})


def pairs(folder):
    return "run_classifier.py", {
        "task_name": "question_pair",
        "data_dir": data.write_data_set(folder / "data", "question_pair"),
    }


def rated(folder):
    files = {"data_dir": data.write_reviews(folder / "data"), "label_column": "score"}
    return "run_classifier.py", {"task_name": "tsv", "regression": True, **files}


def words(folder):
    return "run_ner.py", {"task_name": "naver_ner", "data_dir": data.write_entities(folder / "data")}


def choices(folder):
    return "run_race.py", {"task_name": "jsonl", "data_dir": data.write_choices(folder / "data")}


def questions(folder):
    train, dev = (data.write_questions(folder / f"{count}.json", count, has_impossible=True) for count in (12, 4))
    files = {"train_file": train, "predict_file": dev, "doc_stride": 8}
    return "run_squad.py", {**files, "version_2_with_negative": True, "head": "independent"}


def test_teacher_of_another_command_is_learnt_from_and_told_beside(learn, tmp_path):
    script, files = choices(tmp_path)
    learn(script, **files, output_dir=tmp_path / "teacher", random_seed=1).succeeded()
    unlabelled = files["data_dir"] / "test.jsonl"
    flags = {**files, "teacher": tmp_path / "teacher", "unlabelled_file": unlabelled}
    result = learn(script, **flags, do_eval=True).succeeded()
    assert f"3 texts of {unlabelled} are added to the training" in result.output
    accuracy = read_results(tmp_path / "run")["teacher_accuracy"]
    assert f"the teacher: accuracy {accuracy:.4f}\n" in result.output


def test_teacher_of_another_kind_is_refused(learn, assert_refused, tmp_path):
    script, files = choices(tmp_path)
    rows = [json.loads(line) for line in (files["data_dir"] / "train.jsonl").read_text().splitlines()]
    (tmp_path / "two").mkdir()
    lines = "".join(json.dumps({**row, "options": row["options"][:2], "answer": 0}) + "\n" for row in rows)
    (tmp_path / "two" / "train.jsonl").write_text(lines)
    assert learn(script, **{**files, "data_dir": tmp_path / "two"}, output_dir=tmp_path / "teacher").code == 0
    told = assert_refused(lambda: learn(script, **files, teacher=tmp_path / "teacher"), tmp_path)
    assert told.endswith(
        "chooses from 2 options, but here there are 3; name a teacher that was fine-tuned for the same"
    )


@pytest.mark.parametrize(
    ("case", "head", "labels", "measure"),
    [
        (pairs, "classify", ("LABEL_0", "LABEL_1"), "accuracy"),
        (rated, "score", (), "pearson"),
        (words, "tag", TAGS, "entity_f1"),
        (choices, "race", (), "accuracy"),
        (questions, "squad", (), "f1"),
    ],
)
def test_teacher_reads_what_the_task_reads(
    learn, write_theirs, without_training, tmp_path, case, head, labels, measure
):
    script, files = case(tmp_path)
    result = learn(script, **files, teacher=write_theirs(head, labels), do_eval=True).finished()
    assert "nothing tells what it reads, so it is given what this task reads" in result.output
    assert f"teacher_{measure}" in read_results(tmp_path / "run")


def test_names_of_labels_may_be_corrected_before_the_run_begins(learn, write_theirs, without_training, tmp_path):
    script, files = pairs(tmp_path)
    theirs = write_theirs("classify", ("다름", "같음"))
    result = learn(script, **files, teacher=theirs)
    assert result.code == 1 and result.errors == (
        f"error: --teacher={theirs} has the labels 다름, 같음, but here they are 0, 1; name a teacher that was "
        "fine-tuned for the same, or correct id2label in the config.json that it was converted from\n"
    )
    correct_config(theirs, id2label={"0": "0", "1": "1"})
    assert learn(script, **files, teacher=theirs).code == 0
    correct_config(theirs, id2label={"0": "1", "1": "0"})
    result = learn(script, **files, teacher=theirs)
    assert result.code == 1 and "converted_teacher was converted from another model than" in result.errors


@pytest.mark.parametrize(
    ("case", "head", "labels", "changes", "sentence"),
    [
        (words, "tag", ("UNK", *TAGS), {}, "was not fine-tuned for a task that is known here: its labels are not O, "),
        (pairs, None, (), {}, "was not fine-tuned for a task that is known here: it has no head; name a model that"),
        (questions, "squad", (), {"head": "conditional"}, "name a teacher of the same task, or pass --head=independ"),
        (pairs, "classify", ("0", "1"), {"multi_label": True}, "or correct problem_type in the config.json that it"),
    ],
)
def test_refusal_says_what_to_do_each_time(learn, write_theirs, tmp_path, case, head, labels, changes, sentence):
    script, files = case(tmp_path)
    theirs = write_theirs(head, labels)
    for _ in range(2):  # what was converted is kept
        result = learn(script, **{**files, **changes}, teacher=theirs)
        assert result.code == 1 and result.errors.startswith(f"error: --teacher={theirs} ")
        assert sentence in result.errors and result.errors.count("\n") == 1


def test_what_was_converted_by_hand_reads_what_the_task_reads_too(learn, write_theirs, without_training, tmp_path):
    theirs = write_theirs("classify", ("LABEL_0", "LABEL_1"))
    convert_checkpoint("huggingface", "albert_tf", str(theirs), str(tmp_path / "converted"))
    script, files = pairs(tmp_path)
    assert learn(script, **files, teacher=tmp_path / "converted").code == 0


@pytest.mark.parametrize(
    ("case", "head", "labels", "measure"), [(words, "tag", TAGS, "entity_f1"), (questions, "squad", (), "f1")]
)
def test_model_is_evaluated_with_the_head_that_it_has(learn, write_theirs, tmp_path, case, head, labels, measure):
    """Trained, a model as small as this one would get a head that reads more."""
    script, files = case(tmp_path)
    theirs = write_theirs(head, labels)
    learn(script, **files, init_checkpoint=theirs, do_train=False, do_eval=True).finished()
    assert measure in read_results(tmp_path / "run")


@pytest.fixture
def teacher(classify, folder_of_run):
    """The folder of a classifier whose labels stand in another order; not to be changed."""
    if not folder_of_run.exists():
        assert classify(do_train=True, labels="1,0", output_dir=folder_of_run).code == 0
    return folder_of_run


@pytest.fixture
def unlabelled(reviews, tmp_path):
    """A file of texts without labels."""
    texts = [row["document"] for row in read_rows(reviews / "test.tsv")]
    (tmp_path / "unlabelled.tsv").write_text("\n".join(["document", *texts]) + "\n", encoding="utf-8")
    return tmp_path / "unlabelled.tsv"


def test_teacher_is_told_beside_and_the_run_goes_on_with_it_alone(classify, teacher, unlabelled, tmp_path):
    taught = {"teacher": teacher, "unlabelled_file": unlabelled, "teacher_weight": 1.0}
    flags = {**taught, "do_train": True, "do_eval": True, "labels": "0,1", "save_checkpoints_steps": 1}
    result = classify(**flags).succeeded()
    assert "5 texts of " in result.output and "are added to the training" in result.output
    assert "are also in" not in result.output
    results = read_results(tmp_path / "run")
    assert f"the teacher: accuracy {results['teacher_accuracy']:.4f}\n" in result.output
    assert results["num_examples"] == 7
    settings = json.loads((tmp_path / "run" / "run_settings.json").read_text())
    assert settings["train_file"]["examples"] == 12 and settings["unlabelled_files"]["name"] == "unlabelled.tsv"
    assert albert_tf.load(tmp_path / "run").predict(["좋아요"])[0]["probabilities"].keys() == {"0", "1"}

    again = stopped_copy(tmp_path / "run", tmp_path / "again", 3)
    result = classify(do_train=True, do_eval=True, output_dir=again, data_dir=None, init_checkpoint=None)
    assert result.code == 0 and f"restored {again}/model.ckpt-2\n" in result.output
    assert_same_variables(again / "model.ckpt-3", tmp_path / "run" / "model.ckpt-3")
    result = classify(**{**flags, "teacher_weight": 0.5}, output_dir=again)
    assert result.code == 1 and "--teacher_weight is 0.5, and was 1.0" in result.errors
    unlabelled.write_text("document\n다른 글\n", encoding="utf-8")
    result = classify(**flags, output_dir=again)
    assert result.code == 1 and "the content of its training data is not what it was (unlabelled.tsv)" in result.errors


def test_teacher_of_another_config_is_another_one(classify, teacher, reviews, without_training, tmp_path):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    flags = {"teacher": other, "unlabelled_file": reviews / "dev.tsv", "do_train": True, "do_eval": True}
    result = classify(**flags)
    assert result.code == 0 and f"warning: 7 of them are also in {reviews}/dev.tsv, so if the" in result.output
    # A block that is shared is applied twice: the weights are the same.
    path = other / "albert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": 2}))
    result = classify(**flags)
    assert result.code == 1 and "the config, tokenizer or labels of its teacher have changed since" in result.errors


def test_texts_that_the_teacher_reads_the_beginning_of_are_told(classify, teacher, without_training, tmp_path):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    path = other / "run_settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_seq_length": 4}))
    result = classify(teacher=other, do_train=True)
    assert result.code == 0 and f" texts that --teacher={other} reads are cut: " in result.output
    assert "; max_seq_length is 4, and can be raised to " in result.output


def test_checkpoint_that_would_not_be_the_teacher_is_refused(
    classify, teacher, without_training, assert_refused, tmp_path
):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    newest = sorted(other.glob("model.ckpt-*.index"))[-1]
    for path in other.glob(f"{newest.stem}.*"):
        shutil.copy(path, other / path.name.replace(newest.stem, "model.ckpt-1"))
    flags = {"teacher": other / "model.ckpt-1", "do_train": True}
    told = assert_refused(lambda: classify(**flags), tmp_path)
    assert told.startswith(f"--teacher={other}/model.ckpt-1: the teacher would be {other / newest.stem}, the best")
    assert classify(teacher=other / newest.stem, do_train=True).code == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"teacher": "nowhere"}, "nowhere: there is no such folder; name the folder of a model"),
        ({"labels": "0,1,2"}, "has the labels 1, 0, but here they are 0, 1, 2; name a teacher that was fine-tuned for"),
        ({"regression": True}, "was fine-tuned for Classification, but the task here is Regression; name a teacher"),
        ({"teacher": None, "teacher_weight": 0.5}, "--teacher_weight has an effect only with a teacher; name one with"),
        ({"teacher_temperature": 0.0}, "--teacher_temperature must be a number above 0. Received: 0"),
        ({"unlabelled_file": "nowhere.tsv"}, "can't read nowhere.tsv"),
        ({"do_train": False, "do_eval": True}, "--teacher has an effect only in training; add --do_train, or leave"),
    ],
)
def test_what_can_not_teach_is_one_sentence(classify, teacher, assert_refused, tmp_path, changes, sentence):
    flags = {"teacher": teacher, "do_train": True, **changes}
    assert sentence in assert_refused(lambda: classify(**flags), tmp_path)
