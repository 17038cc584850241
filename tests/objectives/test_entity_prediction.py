"""Which entity is mentioned: against float64, and what is told of it when."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config
from tiny_entities import NUM_PIECES, tiny_entities, with_entities

from albert_tf.base.errors import InputError
from albert_tf.objectives import make_objective
from albert_tf.objectives.knowledge import change_some, most_mentions, tell_entities
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.entities import read_known_entities
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens
from albert_tf.runs.phases import config_for_plan
from albert_tf.runs.tpu_compiler import planned_names, planned_objective, zeros
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.training.run_folder.other_vocabulary import config_for_vocabulary

PLAIN = tiny_config(NUM_PIECES, num_hidden_layers=2, initializer_range=0.3)
CONFIG = with_entities(PLAIN)
LABELS = np.array([3, 0, 1, 3, 2, 0, 1, 3], np.int32)
LENGTH = 32


def expected_losses(queries, table):
    """Returns the cross-entropy of each mention among the distinct entities, one by one."""
    distinct = sorted(set(LABELS) - {0})
    losses = []
    for query, label in zip(tf.unstack(queries), LABELS):
        if label:
            scores = tf.linalg.matvec(tf.gather(table, distinct), query)
            losses.append(tf.reduce_logsumexp(scores) - scores[distinct.index(label)])
    return tf.stack(losses)


def test_loss_and_gradient_are_those_of_distinct_entities_in_float64():
    generator = np.random.default_rng(0)
    table, queries = tf.constant(generator.normal(size=[4, 5])), tf.Variable(generator.normal(size=[8, 5]))
    with tf.GradientTape() as tape:
        expected = expected_losses(queries, table)
    expected_gradient = tape.gradient(expected, queries)
    rounded = tf.Variable(tf.cast(queries, tf.float32))
    with tf.GradientTape() as tape:
        losses, guesses, most_frequent = tell_entities(rounded, tf.cast(tf.gather(table, LABELS), tf.float32), LABELS)
        losses = tf.boolean_mask(losses, LABELS > 0)
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tape.gradient(losses, rounded), expected_gradient, atol=1e-5)
    scores = queries.numpy() @ table.numpy()[[1, 2, 3]].T
    np.testing.assert_array_equal(guesses, 1 + scores.argmax(1))
    assert int(most_frequent) == 3


def make_features(seed=0, batch_size=16):
    """Returns records, not masked yet, with many names."""
    generator = np.random.default_rng(seed)
    ids = generator.choice([10, 11, 12, 13, 14, 20, 40, 41], [batch_size, LENGTH])
    ids[:, 0], ids[:, -1] = 2, 3
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.ones([batch_size, LENGTH], tf.int32),
        "segment_ids": tf.zeros([batch_size, LENGTH], tf.int32),
        "token_boundary": tf.constant(ids < 40, tf.int32),
    }


@pytest.fixture(scope="module")
def objective():
    tokens = MaskingTokens(
        mask_id=4, unmaskable_ids=(0, 2, 3, 4), real_piece_ids=np.arange(5, NUM_PIECES, dtype=np.int32)
    )
    return make_objective("entities", CONFIG, masking=MaskingOptions(5, tokens=tokens), entities=tiny_entities())


def test_labels_are_of_the_text_and_what_is_told_of_what_is_read(objective):
    features = make_features()
    batch = objective.prepare(features, tf.constant([1, 2], tf.int64))
    assert {name: (values.shape[1:], values.dtype) for name, values in batch.items()} == {
        name: (spec.shape[1:], spec.dtype) for name, spec in objective.batch_spec(LENGTH).items()
    }
    find = objective.make_model().encoder.entity_fusion.find
    mentioned, read = (find(each["input_ids"]).numpy() for each in (features, batch))
    assert (mentioned != read).any()
    labels, positions = batch["entity_labels"].numpy(), batch["entity_positions"].numpy()
    for row, of_text in enumerate(mentioned):
        places = np.flatnonzero(of_text)[: most_mentions(LENGTH)]
        np.testing.assert_array_equal(positions[row, : len(places)], places)
        np.testing.assert_array_equal(labels[row], np.pad(of_text[places], [0, most_mentions(LENGTH) - len(places)]))
    told = batch["entity_ids"].numpy()
    assert not told[read == 0].any()
    is_kept = told == read
    assert 0.6 < is_kept[read > 0].mean() < 0.95
    assert float(objective.loss_weights(batch)["entity_loss"]) == np.count_nonzero(labels)
    again = objective.prepare(features, tf.constant([1, 2], tf.int64))
    other = objective.prepare(features, tf.constant([1, 3], tf.int64))
    np.testing.assert_array_equal(again["entity_ids"], told)
    assert (other["entity_ids"].numpy() != told).any()


def test_of_a_fifth_of_the_mentions_another_entity_or_none_is_told():
    entities = tf.tile(tf.constant([[0, 7]]), [1000, 20])
    told = change_some(entities, 50, tf.constant([3, 4], tf.int64)).numpy()
    assert not told[:, ::2].any()
    found = told[:, 1::2]
    assert 0.135 < (found == 0).mean() < 0.165
    others = found[(found != 0) & (found != 7)]
    assert 0.04 < others.size / found.size < 0.06
    counts = np.bincount(others, minlength=51)
    assert counts[0] == counts[7] == 0 and np.delete(counts, [0, 7]).min() > 0 and counts.size == 51


def test_losses_and_metrics_follow_from_the_states(objective):
    batch = objective.prepare(make_features(), tf.constant([1, 2], tf.int64))
    model = objective.make_model()
    results = {
        name: float(total) / float(weight)
        for name, (total, weight) in objective.compute(batch, False, None, model=model).items()
    }
    assert results.keys() == {*objective.loss_coefficients, *objective.metric_names}
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids", "entity_ids")}
    states = model.encoder(inputs)["sequence_output"].numpy().astype(np.float64)
    kernel, bias = (getattr(model.entity_head, name).numpy().astype(np.float64) for name in ("kernel", "bias"))
    labels, positions = batch["entity_labels"].numpy(), batch["entity_positions"].numpy()
    vectors, distinct = tiny_entities().vectors.astype(np.float64), sorted(set(labels.ravel()) - {0})
    losses, right, is_unseen = [], [], []
    for row, column in np.argwhere(labels):
        scores = vectors[np.array(distinct) - 1] @ (states[row, positions[row, column]] @ kernel + bias)
        losses.append(np.log(np.exp(scores).sum()) - scores[distinct.index(labels[row, column])])
        right.append(distinct[scores.argmax()] == labels[row, column])
        is_unseen.append(batch["entity_ids"].numpy()[row, positions[row, column]] != labels[row, column])
    mentioned = labels[labels > 0]
    assert results["entity_loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert results["entity_accuracy"] == pytest.approx(np.mean(right))
    assert 0 < sum(is_unseen) < len(is_unseen)
    assert results["entity_unseen_accuracy"] == pytest.approx(np.array(right)[is_unseen].mean())
    is_most_frequent = mentioned == np.bincount(mentioned).argmax()
    assert results["entity_blind_accuracy"] == pytest.approx(is_most_frequent[is_unseen].mean())


def test_batch_without_any_mention_costs_nothing(objective):
    features = make_features()
    features["input_ids"] = tf.where(features["input_ids"] > 4, 20, features["input_ids"])
    batch = objective.prepare(features, tf.constant([1, 2], tf.int64))
    loss, weight = objective.compute(batch, False, None, model=objective.make_model())["entity_loss"]
    assert float(loss) == float(weight) == 0 and not batch["entity_ids"].numpy().any()


def test_entities_tell_runs_apart(objective):
    assert objective.identity()["entities"] == "of four"
    assert "entity_head/" not in objective.untouched(objective.make_model())
    assert "entity_head/" in make_objective("roberta", CONFIG).untouched(None)


def test_entities_are_named_wherever_there_is_something_to_train():
    with pytest.raises(InputError, match="`objective=entities` needs the entities that the model is to know; name"):
        make_objective("entities", PLAIN)
    with pytest.raises(InputError, match="`objective=entities` needs the entities that the model was trained with"):
        make_objective("entities", CONFIG, masking=MaskingOptions(5), languages=())


@pytest.mark.parametrize("name", planned_names())
def test_model_of_entities_learns_anything_else_or_is_refused_at_once(name):
    if name in ("causal", "distil", "electra", "halves", "korealbert"):
        with pytest.raises(InputError, match=f"`objective={name}` doesn't find the entities that th.* knows"):
            planned_objective(name, CONFIG)
        return
    objective = planned_objective(name, CONFIG)
    batch = zeros(with_batch_size(objective.batch_spec(LENGTH), 2))
    computed = objective.compute(batch, training=False, dropout_seed=None, **objective.make_models())
    assert computed.keys() >= objective.loss_coefficients.keys()


def test_teacher_of_entities_and_another_vocabulary_are_refused(tmp_path, sample_tokenizer):
    (tmp_path / "albert_config.json").write_text(json.dumps(CONFIG.to_dict()))
    for student, teacher in ((PLAIN, tmp_path), (CONFIG, tmp_path)):
        options = {"settings": {"teacher": str(teacher)}, "masking": MaskingOptions(5)}
        with pytest.raises(InputError, match=r"`objective=distil` doesn't find the entities that .* knows"):
            make_objective("distil", student, **options)
    pieces = [piece for piece in sample_tokenizer.vocabulary.pieces if piece != "가"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    KoreanWordPieceTokenizer.from_vocab_file(str(tmp_path / "vocab.txt")).save(tmp_path)
    with pytest.raises(InputError, match="finds entities by the pieces of its own vocabulary"):
        config_for_vocabulary(CONFIG, str(tmp_path), sample_tokenizer)


def test_plans_know_how_large_a_folder_is_at_most(tmp_path, english_tokenizer):
    names = ["the", "the sun", "t" * 40, "t" * 60]  # the last two have too many pieces
    (tmp_path / "entities.txt").write_text("".join(f"{name}\n" for name in names))
    np.save(tmp_path / "entity_vectors.npy", np.zeros([4, 3]))
    planned = config_for_plan(PLAIN, str(tmp_path))
    assert (planned.num_entities, planned.entity_size, planned.entity_layer) == (4, 3, 1)
    assert (planned.entity_name_edges, planned.entity_name_length) == (4 + 8 + 32 + 32, 32)
    make_objective("entities", planned).make_model()
    assert config_for_plan(with_entities(PLAIN, entity_layer=0), str(tmp_path)).entity_layer == 0
    # No vocabulary needs more room, not even one that sees a space before a name.
    found = read_known_entities(tmp_path, english_tokenizer, "").sizes
    assert 0 < found.num_edges <= planned.entity_name_edges and found.max_length <= planned.entity_name_length
