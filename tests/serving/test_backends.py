"""A model is asked in one way, whatever computes: its folder, its SavedModel or its LiteRT export."""

import functools
import json
import pathlib

import numpy as np
import odd_texts
import pytest
from asked_models import assert_same, trained
from tiny_config import tiny_config

import albert_tf
from albert_tf.asking.answers import DEFAULT, ValueAnswer, rows_of
from albert_tf.asking.model import Model
from albert_tf.base.errors import InputError
from albert_tf.finetuning import (
    Classification,
    ConditionalQuestionAnswering,
    Entities,
    MultiLabel,
    QuestionAnswering,
    Regression,
)
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.tasks.question_windows import WindowOptions
from albert_tf.serving import exporting
from albert_tf.serving.folder import FolderBackend
from albert_tf.serving.formats import find_export, open_export

TEXTS = [*odd_texts.TEXTS, "[CLS] 영화 [SEP] [MASK]", "좋은 영화 " * 40]
PAIRS = list(zip(TEXTS, TEXTS[::-1]))
LABELS = ("나쁨", "좋음", "보통")
NUMBERS = DataFiles(text_pair_column="other", metrics=("pearson",), is_regression=True)
WINDOWS = WindowOptions(4, 6)

# What makes the task, given a config, with changes of that; and what it is asked.
CASES = {
    "labels": (functools.partial(Classification, labels=LABELS), {}, TEXTS),
    "labels of windows": (functools.partial(Classification, labels=LABELS, doc_stride=8), {}, TEXTS),
    "several labels": (functools.partial(MultiLabel, labels=LABELS), {}, TEXTS),
    "numbers": (functools.partial(Regression, files=NUMBERS, sigmoid=True), {}, PAIRS),
    "numbers of aligned pairs": (
        functools.partial(Regression, files=NUMBERS),
        {"classifier_pooling": "aligned"},
        PAIRS,
    ),
    "answers or none": (
        functools.partial(QuestionAnswering, window_options=WINDOWS, may_be_unanswerable=True),
        {"question_alignment": "words"},
        PAIRS,
    ),
    "conditional answers or none": (
        functools.partial(ConditionalQuestionAnswering, window_options=WINDOWS, may_be_unanswerable=True),
        {},
        PAIRS,
    ),
    "entities of words": (functools.partial(Entities, types=("PS", "LC"), form="words"), {}, TEXTS),
    "entities of characters": (
        functools.partial(Entities, types=("PS", "LC"), form="characters", decoding="best_sequence"),
        {"character_ngrams": True},
        TEXTS,
    ),
}


def randomize_new_weights(model, seed=1):
    """Lets what does nothing in a new model say something."""
    numbers = np.random.default_rng(seed)
    if getattr(model, "question_alignment", None) is not None:
        kernel = model.question_alignment.mix.kernel
        kernel.assign(numbers.normal(size=kernel.shape, scale=0.3))
    if model.config.character_ngrams:
        model.head.table.assign(numbers.normal(size=model.head.table.shape))


@pytest.fixture(scope="module", params=sorted(CASES))
def case(request, sample_tokenizer):
    """Returns a model, and what it is asked."""
    make_task, changes, inputs = CASES[request.param]
    task = make_task(tiny_config(len(sample_tokenizer), initializer_range=0.5, **changes))
    asked = trained(task, sample_tokenizer)
    randomize_new_weights(asked.model)
    if isinstance(task, MultiLabel):  # of which one is given to no text
        predictions = Model(FolderBackend(asked, "folder")).predict(inputs)
        probabilities = np.sort([list(each["probabilities"].values()) for each in predictions], axis=0)
        task.thresholds = (probabilities[[-1, 2, 3], range(3)] + 1e-4).astype(np.float32)
    return asked, inputs


@pytest.fixture(scope="module")
def export(case, tmp_path_factory):
    """Exports the model in a format; returns the folder of all versions."""

    @functools.cache
    def export_as(model_format):
        folder = str(tmp_path_factory.mktemp("exports") / model_format)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exporting, "load_trained", lambda *_, **__: case[0])
            exporting.export_model("", folder, model_format=model_format)
        return folder

    return export_as


def columns_of(backend, inputs):
    """Returns the rows that a client gets who names no signature."""
    names = backend.signatures[DEFAULT]["inputs"]
    columns = [inputs] if len(names) == 1 else zip(*inputs)
    return rows_of(backend.compute(DEFAULT, dict(zip(names, columns))))


@pytest.mark.slow
def test_every_backend_says_the_same(case, export):
    asked, inputs = case
    folder, saved_model = FolderBackend(asked, "folder"), open_export(export("saved_model"))
    expected = Model(folder).predict(inputs, batch_size=3)
    assert_same(Model(saved_model).predict(inputs, batch_size=3), expected, inputs)
    assert folder.signatures == saved_model.signatures
    assert Model(folder).predict([]) == Model(saved_model).predict([]) == []
    rows = columns_of(saved_model, inputs)
    assert_same(columns_of(folder, inputs), rows, inputs)
    assert all(list(row) == list(rows[0]) for row in rows)
    if not issubclass(asked.task.kind.answer, ValueAnswer):
        return
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    if asked.task.reads_beside_ids or asked.config.classifier_pooling == "aligned":
        pytest.skip("other runtimes can't hold it")
    litert = open_export(export("litert"))
    assert_same(Model(litert).predict(inputs, batch_size=3), expected, inputs)
    assert_same(columns_of(litert, inputs), rows, inputs)
    assert litert.signatures == saved_model.signatures


@pytest.mark.slow
@pytest.mark.parametrize("case", ["several labels"], indirect=True)
def test_thresholds_of_a_card_must_be_there_and_as_many_as_labels(case, export):
    found = find_export(export("litert"))
    path = pathlib.Path(found.folder) / "model_card.json"
    card = json.loads(path.read_text())
    assert card["thresholds"] == [float(each) for each in case[0].task.thresholds]
    del card["thresholds"]
    for changes in ({"thresholds": [0.5]}, {}):
        path.write_text(json.dumps({**card, **changes}))
        with pytest.raises(InputError, match="thresholds"):
            albert_tf.load(found.folder)
