"""The next piece: packed documents against the same documents alone."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.objectives.language_models import find_documents
from albert_tf.pretraining_data.input_pipeline import pad_batch

CONFIG = tiny_config(60, embedding_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, is_causal=True)
GPT = {"norm_position": "pre", "language_model_head": "tied", "embedding_size": 32, "type_vocab_size": 0}
LENGTH, CLS = 12, 2


def make_objective_and_model(seed=0, **changes):
    """Returns the objective, and a model whose weights are all far from where they begin."""
    objective = make_objective("causal", CONFIG.replace(pooler=False, **changes))
    model, draws = objective.make_model(), np.random.default_rng(seed)
    for name, variable in named_variables(model).items():
        variable.assign(draws.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, variable.shape))
    return objective, model


def rows_of(documents):
    """Returns records: each row is a list of documents, of which only the lengths are given, [CLS] included."""
    draws, shape = np.random.default_rng(1), [len(documents), LENGTH]
    ids, mask, segments = np.zeros(shape, int), np.zeros(shape, int), np.zeros(shape, int)
    for row, lengths in enumerate(documents):
        begin = 0
        for number, length in enumerate(lengths):
            ids[row, begin : begin + length] = [CLS, *draws.integers(5, CONFIG.vocab_size, length - 1)]
            segments[row, begin : begin + length] = number % 2
            begin += length
        mask[row, :begin] = 1
    features = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    features["num_characters"] = np.array([[2 * sum(lengths)] for lengths in documents])
    return {name: tf.constant(values, tf.int32) for name, values in features.items()}


def prepared(objective, documents):
    return objective.prepare(rows_of(documents), tf.constant([0, 0], tf.int64))


PACKED = [[5, 4, 3], [12], [2, 7]]


def test_documents_are_numbered_and_their_positions_begin_anew():
    rows = rows_of(PACKED)
    numbers, positions = find_documents(rows["segment_ids"], rows["input_mask"])
    assert numbers.numpy().tolist() == [[1] * 5 + [2] * 4 + [3] * 3, [1] * 12, [1] * 2 + [2] * 7 + [0] * 3]
    assert positions.numpy().tolist() == [
        [*range(5), *range(4), *range(3)],
        [*range(12)],
        [*range(2), *range(7), 0, 0, 0],
    ]


@pytest.mark.parametrize("changes", [{}, {"position_offset": 3, "type_vocab_size": 1}, GPT], ids=str)
def test_packed_documents_cost_what_they_cost_alone(changes):
    objective, model = make_objective_and_model(**changes)
    batch = prepared(objective, PACKED)
    packed = objective.compute(batch, False, None, model=model)
    total, count, right = 0.0, 0, 0.0
    ids, numbers = batch["input_ids"].numpy(), batch["document_ids"].numpy()
    for row, document in zip(*np.nonzero(np.diff(numbers, prepend=0, axis=1) > 0)):
        pieces = ids[row][numbers[row] == numbers[row, document]][None]
        positions = np.arange(pieces.shape[1])[None] + model.config.position_offset
        logits = model({"input_ids": pieces, "position_ids": positions})["masked_lm_logits"].numpy()[0, :-1]
        logits = logits.astype(np.float64)
        labels = pieces[0, 1:]
        total += (np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(labels)), labels]).sum()
        right += (logits.argmax(-1) == labels).sum()
        count += len(labels)
    assert count == sum(length - 1 for row in PACKED for length in row)
    for name, expected, weight in (
        ("causal_lm_loss", total, count),
        ("causal_lm_accuracy", right, count),
        ("bits_per_character", total / np.log(2), 2 * sum(map(sum, PACKED))),
    ):
        assert float(packed[name][0]) == pytest.approx(expected, rel=1e-5), name
        assert float(packed[name][1]) == weight
    assert float(objective.loss_weights(batch)["causal_lm_loss"]) == count
    # If documents saw one another it would be another number.
    mixed = objective.compute(batch | {"document_ids": batch["input_mask"]}, False, None, model=model)
    assert abs(float(mixed["causal_lm_loss"][0]) / total - 1) > 1e-3


def test_what_fills_a_batch_up_changes_nothing():
    objective, model = make_objective_and_model()
    batch = prepared(objective, PACKED)
    results = [objective.compute(each, False, None, model=model) for each in (batch, pad_batch(batch, 5))]
    for name, (value, weight) in results[0].items():
        assert float(value) == pytest.approx(float(results[1][name][0]), rel=1e-6), name
        assert float(weight) == float(results[1][name][1])


@pytest.mark.parametrize("name", ["roberta", "halves", "translation", "electra"])
def test_masked_pieces_of_a_model_that_sees_one_side_are_refused(name):
    with pytest.raises(InputError) as error:
        make_objective(name, CONFIG.replace(pooler=False))
    assert str(error.value) == (
        f"{name if name == 'electra' else 'masked_lm'} reads pieces from both sides, and those of this model see only "
        "what comes before them (is_causal=true); use `objective=causal`, or set is_causal to false in "
        "`albert_config_file`"
    )


def test_model_that_sees_what_it_is_to_predict_is_refused():
    with pytest.raises(InputError) as error:
        make_objective("causal", CONFIG.replace(is_causal=False))
    assert str(error.value) == (
        "causal_lm needs pieces that see only those before them; set is_causal to true in `albert_config_file`"
    )
