"""An objective says whether pieces see their own document alone, from which a run chooses the kernel of attention."""

import pytest
import tensorflow as tf
from distilled_models import CONFIG, LENGTH, PREDICTIONS, distil

from albert_tf.modeling import encoder
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.runs.tpu_compiler import zeros


@pytest.fixture
def documents_seen(monkeypatch):
    """Returns a function that traces an objective, and returns whether its encoders are given documents."""

    def trace(objective):
        cases, choose = [], encoder.choose_kernel

        def note(attention, hidden_size, case):
            cases.append(case.has_documents)
            return choose(attention, hidden_size, case)

        monkeypatch.setattr(encoder, "choose_kernel", note)
        models = objective.make_models()
        cases.clear()  # making a model may call it

        @tf.function(autograph=False)
        def compute(batch):
            return objective.compute(batch, training=True, dropout_seed=tf.constant([0, 1]), **models)

        compute.get_concrete_function(zeros(with_batch_size(objective.batch_spec(LENGTH), 4)))
        assert cases
        return set(cases)

    return trace


@pytest.mark.parametrize(
    ("name", "changes", "settings"),
    [
        ("albert", {}, {}),
        ("halves", {}, {}),
        ("causal", {"is_causal": True}, {}),
        ("electra", {}, {"generator_size": 0.5}),
    ],
)
def test_whether_documents_are_kept_apart_is_told_beforehand(name, changes, settings, documents_seen):
    objective = make_objective(name, CONFIG.replace(**changes), settings=settings, masking=MaskingOptions(PREDICTIONS))
    assert documents_seen(objective) == {objective.separates_documents(objective.batch_spec(LENGTH))}


@pytest.mark.parametrize("packing", ["order", "halves"])
def test_a_student_tells_it_of_what_it_reads(packing, write_teacher, documents_seen):
    objective = distil(CONFIG, write_teacher(CONFIG), packing)
    assert documents_seen(objective) == {objective.separates_documents(objective.batch_spec(LENGTH))}
    assert objective.separates_documents(objective.batch_spec(LENGTH)) == (packing == "halves")
