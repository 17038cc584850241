"""Heads of other runs begin by the names of their outputs, and what keeps a model from other libraries is told."""

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.finetuning import Classification, Entities, MultiLabel, MultipleChoice, QuestionAnswering, Regression
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.interchange.foreign_config import check_head
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.modeling.layers import named_variables
from albert_tf.training.run_folder.restoring import load_init_checkpoint

CONFIG = tiny_config(16, hidden_dropout_prob=0.0)


@pytest.fixture
def head_of(tmp_path):
    """Returns what a task's model begins with: kernel of the head, what is said, and what the checkpoint holds."""

    def load(before, after, complete_for=None, knows_settings=True, **more_settings):
        model = before.make_model()
        values = {f"model/{name}": variable.numpy() for name, variable in named_variables(model).items()}
        write_checkpoint(str(tmp_path / "model.ckpt-1"), {**values, "global_step": np.int64(1)})
        write_json(tmp_path / "albert_config.json", CONFIG.to_dict())
        if knows_settings:
            write_json(tmp_path / "run_settings.json", {**before.identity(), **before.settings(), **more_settings})
        variables = named_variables(after.make_model())
        line, _ = load_init_checkpoint(str(tmp_path), variables, complete_for, objective=after)
        return variables["head/dense/kernel"].numpy(), line, values["model/head/dense/kernel"]

    return load


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        (Classification(CONFIG, ("a", "b", "c")), Classification(CONFIG, ("c", "a", "b")), [2, 0, 1]),
        (MultiLabel(CONFIG, ("a", "b", "c")), MultiLabel(CONFIG, ("b", "c", "a")), [1, 2, 0]),
        (Entities(CONFIG, ("PS", "LC")), Entities(CONFIG, ("LC", "PS")), [0, 3, 4, 1, 2]),
        (Regression(CONFIG), Regression(CONFIG), [0]),
        (QuestionAnswering(CONFIG), QuestionAnswering(CONFIG), [0, 1]),
    ],
)
def test_head_of_the_same_outputs_is_taken_by_their_names(head_of, before, after, order):
    for complete_for in (None, "run"):
        found, line, kernel = head_of(before, after, complete_for)
        np.testing.assert_array_equal(found, kernel[:, order])
        assert "random" not in line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Classification(CONFIG, ("긍정", "부정")), Classification(CONFIG, ("0", "1"))),
        (Classification(CONFIG, ("a", "b")), MultiLabel(CONFIG, ("a", "b"))),
        (QuestionAnswering(CONFIG), Classification(CONFIG, ("0", "1"))),
        (MultipleChoice(CONFIG), Regression(CONFIG)),
        (Entities(CONFIG, ("PS",)), Entities(CONFIG, ("LC",))),
    ],
)
def test_head_of_other_outputs_is_begun_anew_or_refused(head_of, before, after):
    found, line, kernel = head_of(before, after)
    assert found.shape == kernel.shape
    assert not np.array_equal(found, kernel)
    assert line.endswith("; of another task there, so from random weights here: head")
    with pytest.raises(InputError, match=r"is for another task or other labels, as run_settings\.json beside it says"):
        head_of(before, after, "run")


def test_head_of_which_nothing_is_known_is_taken_by_its_shape(head_of):
    tasks = Classification(CONFIG, ("긍정", "부정")), Classification(CONFIG, ("0", "1"))
    found, _, kernel = head_of(*tasks, knows_settings=False)
    np.testing.assert_array_equal(found, kernel)


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        (("LABEL_0", "LABEL_1"), ("1", "0"), [1, 0]),
        (("CONTRADICTION", "ENTAILMENT"), ("entailment", "contradiction"), [1, 0]),
    ],
)
def test_head_of_another_library_is_taken_by_names_in_another_spelling(head_of, before, after, order):
    tasks = Classification(CONFIG, before), Classification(CONFIG, after)
    found, _, kernel = head_of(*tasks, "run", texts_are_assumed=True)
    np.testing.assert_array_equal(found, kernel[:, order])
    with pytest.raises(InputError, match="is for another task or other labels"):
        head_of(*tasks, "run")


LABELS = ("나쁨", "좋음")
PAIRS = DataFiles(text_pair_column="other", metrics=("pearson",), is_regression=True)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (Classification(tiny_config(classifier_pooling="mean"), LABELS), "train with pooling=first"),
        (Regression(tiny_config(classifier_pooling="aligned"), PAIRS), "train with pooling=first"),
        (Entities(tiny_config(character_ngrams=True), ("LOC",)), "with run_ner.py --nocharacter_ngrams"),
        (QuestionAnswering(tiny_config(question_alignment="words")), "with run_squad.py --question_alignment=none"),
    ],
)
def test_what_will_be_refused_is_told_with_what_avoids_it(task, told):
    [sentence] = task.limits_elsewhere()
    assert sentence.startswith("transformers can't express ") and sentence.endswith(told)
    what = sentence.removeprefix("transformers can't express ").partition(";")[0]
    with pytest.raises(InputError) as error:
        check_head(PortableModel(task.config, {"head/dense/bias": None}, task=type(task)), "huggingface")
    assert what in str(error.value)


def test_what_answers_otherwise_there_is_told():
    config = tiny_config(classifier_pooling="first")
    [sentence] = MultiLabel(config, LABELS).limits_elsewhere()
    assert "no thresholds" in sentence
    [sentence] = Classification(config, LABELS, doc_stride=5).limits_elsewhere()
    assert "no windows (doc_stride=5)" in sentence
    for task in (Classification(config, LABELS), Entities(config, ("LOC",)), QuestionAnswering(config)):
        assert task.limits_elsewhere() == []
