"""Models that others have fine-tuned with transformers: as --teacher, and evaluated. Nothing says what they read."""

import json

import pytest
import varied_data as data
from runs import read_results

from albert_tf import modeling
from albert_tf.checkpoint_files import write_checkpoint
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.modeling.layers import named_variables

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
        ours, theirs = tmp_path / f"{name} of ours", tmp_path / name
        sizes = [len(labels)] if labels else [1] * (task == "score")
        model = MODELS[task](tiny_config, *sizes)
        ours.mkdir()
        values = {f"model/{name}": value.numpy() for name, value in named_variables(model).items()}
        write_checkpoint(str(ours / "model.ckpt-0"), {**values, "global_step": 0})
        (ours / "albert_config.json").write_text(json.dumps(tiny_config.to_dict()))
        sample_tokenizer.save(ours)
        convert_checkpoint("albert_tf", "huggingface", str(ours), str(theirs), ReadOptions(task=task))
        if labels:
            changes["id2label"] = dict(enumerate(labels))
        correct_config(theirs, **changes)
        return theirs

    return write


@pytest.fixture
def learn(run_script, checkpoint, tmp_path):
    """Runs a script for two steps with a teacher."""

    def run(script, **changes):
        flags = {
            "init_checkpoint": checkpoint,
            "output_dir": tmp_path / "run",
            "max_seq_length": 40,
            "num_train_steps": 2,
            "train_batch_size": 4,
            "do_train": True,
        }
        return run_script(script, **{**flags, **changes})

    return run


def pairs(folder):
    return "run_classifier.py", {
        "task_name": "question_pair",
        "data_dir": data.write_data_set(folder / "data", "question_pair"),
    }


def rated(folder):
    files = {"data_dir": data.write_reviews(folder / "data"), "label_column": "score"}
    return "run_classifier.py", {"task_name": "tsv", "regression": True, **files}


def words(folder):
    return "run_ner.py", {"task_name": "naver_ner", "data_dir": data.write_entities(folder / "data", "naver_ner")}


def choices(folder):
    return "run_race.py", {"task_name": "jsonl", "data_dir": data.write_choices(folder / "data")}


def questions(folder):
    train, dev = (data.write_questions(folder / f"{count}.json", count, has_impossible=True) for count in (12, 4))
    files = {"train_file": train, "predict_file": dev, "doc_stride": 8}
    return "run_squad.py", {**files, "version_2_with_negative": True, "head": "independent"}


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
def test_teacher_reads_what_the_task_reads(learn, write_theirs, tmp_path, case, head, labels, measure):
    script, files = case(tmp_path)
    result = learn(script, **files, teacher=write_theirs(head, labels), do_eval=True)
    assert result.code == 0, result.errors
    assert "nothing tells what it reads, so it is given what this task reads" in result.output
    assert f"teacher_{measure}" in read_results(tmp_path / "run")


def test_names_of_labels_may_be_corrected_before_the_run_begins(learn, write_theirs, tmp_path):
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


def test_what_was_converted_by_hand_reads_what_the_task_reads_too(learn, write_theirs, tmp_path):
    theirs = write_theirs("classify", ("LABEL_0", "LABEL_1"))
    convert_checkpoint("huggingface", "albert_tf", str(theirs), str(tmp_path / "converted"))
    script, files = pairs(tmp_path)
    assert learn(script, **files, teacher=tmp_path / "converted").code == 0


@pytest.mark.parametrize(
    ("case", "head", "labels", "measure"),
    [
        (pairs, "classify", ("LABEL_0", "LABEL_1"), "accuracy"),
        (words, "tag", TAGS, "entity_f1"),
        (questions, "squad", (), "f1"),
    ],
)
def test_model_is_evaluated_with_the_head_that_it_has(learn, write_theirs, tmp_path, case, head, labels, measure):
    """Trained, a model as small as this one would get a head that reads more."""
    script, files = case(tmp_path)
    theirs = write_theirs(head, labels)
    result = learn(script, **files, init_checkpoint=theirs, do_train=False, do_eval=True)
    assert result.code == 0, result.errors
    assert measure in read_results(tmp_path / "run")
