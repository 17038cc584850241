"""A student learns from a frozen teacher: losses against float64, its beginning, and whom it can't learn from."""

import numpy as np
import pytest
import tensorflow as tf
from distilled_models import AS_DEBERTA, CONFIG, KINDS, LENGTH, OTHER, batch_of, computed, distil, loaded, random_model

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.student import begin_with_layers, student_config


def softmax(logits):
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def divergence(taught, learnt):
    """KL(teacher || student) of two sets of logits, where a key of no weight is left out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = softmax(taught) * (np.log(softmax(taught)) - np.log(softmax(learnt)))
    return np.where(softmax(taught) > 0, terms, 0).sum(axis=-1)


def queries_keys_values(encoder, states, number):
    """Returns what the application of a block projects, float64, from its own kernels."""
    layer = encoder.attention_layers[encoder.sub_layers_of(number)[0]]
    weights = {name: variable.numpy() for name, variable in named_variables(layer).items()}
    states = states.numpy().astype(np.float64)
    return [states @ weights[f"{name}/kernel"] + weights[f"{name}/bias"] for name in ("query", "key", "value")]


def relations(states, num_heads, sees):
    heads = states.reshape(*states.shape[:2], num_heads, -1).transpose(0, 2, 1, 3)
    scores = heads @ heads.swapaxes(-1, -2) / np.sqrt(heads.shape[-1])
    return np.where(sees[:, None], scores, -np.inf)


# Either of two models, or both, may know distances; their scores are no part of what is compared.
BOTH = pytest.mark.parametrize(("student", "teacher"), [({}, {}), ({}, AS_DEBERTA), (AS_DEBERTA, {})], ids=str)


@BOTH
@pytest.mark.parametrize(("number", "num_heads"), [(-1, 0), (0, 4)])
def test_relations_are_those_of_minilm(write_teacher, student, teacher, number, num_heads):
    folder = write_teacher(OTHER.replace(**teacher))
    objective = distil(CONFIG.replace(**student), folder, teacher_layer=number, relation_heads=num_heads)
    models, batch = loaded(objective), batch_of()
    found, _ = computed(objective, models, batch)
    mask = batch["input_mask"].numpy()
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    both = []
    for encoder, layer in ((models["teacher"], number % 3), (models["model"].encoder, 1)):
        states = encoder(inputs, output_hidden_states=True)["hidden_states"][layer]
        both.append(queries_keys_values(encoder, states, layer))
    sees = np.broadcast_to(mask[:, None] == 1, [3, LENGTH, LENGTH])
    for name, known, learnt in zip(("query", "key", "value"), *both):
        # 24 columns of the teacher leave room for one head of at least 16.
        maps = [relations(states, num_heads or 1, sees) for states in (known, learnt)]
        expected = (divergence(*maps).mean(axis=1) * mask).sum()
        total, weight = found[f"{name}_relation_loss"]
        assert float(weight) == mask.sum() and expected > 1
        np.testing.assert_allclose(total, expected, rtol=1e-4)


def test_default_number_of_relation_heads_divides_both_widths(write_teacher):
    wide = CONFIG.replace(hidden_size=768, num_attention_heads=12, num_hidden_layers=1, intermediate_size=8)
    objective = distil(wide.replace(hidden_size=312), write_teacher(wide))
    assert objective._loss._num_heads(objective.config, objective.teacher_config) == 24
    assert objective._loss._num_heads(wide, wide) == 48  # MiniLMv2's


@pytest.mark.keras_2
def test_layers_are_those_of_tinybert(write_teacher):
    # Two groups of two blocks teach two blocks, which are one: what counts is how often blocks are applied.
    teacher = OTHER.replace(num_attention_heads=2, num_hidden_layers=2, inner_group_num=2)
    objective = distil(CONFIG, write_teacher(teacher), distillation="layers")
    models, batch = loaded(objective), batch_of()
    projection = named_variables(models["projection"])
    projection["bias"].assign(tf.linspace(-1.0, 1.0, 24))
    with tf.GradientTape() as tape:
        found = objective.compute(batch, training=True, dropout_seed=None, **models)
        loss = tf.add_n([found[name][0] for name in objective.loss_coefficients])
    gradients = tape.gradient(loss, projection)
    mask = batch["input_mask"].numpy().astype(np.float64)
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    encoders = models["model"].encoder, models["teacher"]
    states = [encoder(inputs, output_hidden_states=True)["hidden_states"] for encoder in encoders]
    scores = [
        [
            scores_of(*queries_keys_values(encoder, each[number], number)[:2], num_heads=2)
            for number in range(len(each) - 1)
        ]
        for encoder, each in zip(encoders, states)
    ]
    states = [[values.numpy().astype(np.float64) for values in each] for each in states]
    of_attention = of_states = 0.0
    gradient = np.zeros([16, 24])
    for example, length in enumerate((12, 9, 5)):
        for own, other in ((0, 1), (1, 3)):
            distances = (scores[0][own] - scores[1][other])[example, :, :length, :length] ** 2
            of_attention += distances.mean(axis=(0, 2)).sum()
        for own, other in ((0, 0), (1, 2), (2, 4)):
            learnt, taught = states[0][own][example, :length], states[1][other][example, :length]
            distances = learnt @ projection["kernel"].numpy() + projection["bias"].numpy() - taught
            of_states += (distances**2).mean(axis=1).sum()
            gradient += learnt.T @ distances * 2 / 24
    np.testing.assert_allclose(found["attention_loss"][0], of_attention, rtol=1e-4)
    np.testing.assert_allclose(found["hidden_state_loss"][0], of_states, rtol=1e-4)
    np.testing.assert_allclose(gradients["kernel"], gradient, rtol=1e-3, atol=1e-3)
    assert all(float(weight) == mask.sum() for _, weight in found.values())


def scores_of(queries, keys, num_heads):
    heads = (states.reshape(*states.shape[:2], num_heads, -1).transpose(0, 2, 1, 3) for states in (queries, keys))
    query, key = heads
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])


@BOTH
def test_logits_are_those_of_distilbert(write_teacher, student, teacher):
    narrow = CONFIG.replace(num_hidden_layers=3, embedding_size=6, sharing="none", **teacher)
    objective = distil(CONFIG.replace(**student), write_teacher(narrow), distillation="logits")
    assert objective.loss_coefficients == {"masked_lm_loss": 2.0, "logit_loss": 5.0, "cosine_loss": 1.0}
    models, batch = loaded(objective), batch_of()
    found, gradients = computed(objective, models, batch)
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    mask = batch["input_mask"].numpy()
    outputs = [models[name](inputs) for name in ("teacher", "model")]
    taught, learnt = (each["masked_lm_logits"].numpy().astype(np.float64) for each in outputs)
    divergences = 4 * divergence(taught / 2, learnt / 2)
    np.testing.assert_allclose(found["logit_loss"][0], (divergences * mask).sum(), rtol=1e-4)
    states = [each["sequence_output"].numpy().astype(np.float64) for each in outputs]
    known, states = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in states)
    np.testing.assert_allclose(found["cosine_loss"][0], ((1 - (known * states).sum(-1)) * mask).sum(), rtol=1e-4)
    agrees = (taught.argmax(-1) == learnt.argmax(-1)) * mask
    assert float(found["agreement"][0]) == agrees.sum()
    chosen = np.take_along_axis(learnt, batch["masked_lm_positions"].numpy()[..., None], 1)
    losses = -np.log(np.take_along_axis(softmax(chosen), batch["masked_lm_ids"].numpy()[..., None], 2))[..., 0]
    np.testing.assert_allclose(
        found["masked_lm_loss"][0], (losses * batch["masked_lm_weights"].numpy()).sum(), rtol=1e-4
    )
    assert all(float(found[name][1]) == mask.sum() for name in ("logit_loss", "cosine_loss", "agreement"))
    variables = named_variables(models["model"])
    with tf.GradientTape() as tape:
        outputs = models["model"](inputs)
        logits = tf.math.log_softmax(outputs["masked_lm_logits"] / 2)
        losses = -5 * 4 * tf.reduce_sum(softmax(taught / 2).astype(np.float32) * logits, axis=-1)
        losses -= tf.reduce_sum(
            tf.math.l2_normalize(outputs["sequence_output"], -1) * known.astype(np.float32), axis=-1
        )
        loss = tf.reduce_sum(losses * mask) / mask.sum()
    expected = tape.gradient(loss, variables)
    for name in ("masked_lm_head/output_bias", "masked_lm_head/transform/kernel", "encoder/embeddings/word_embeddings"):
        one, other = (tf.convert_to_tensor(each[name]).numpy() for each in (gradients, expected))
        assert np.abs(one - other).max() < 1e-4 * np.abs(other).max(), name


@pytest.mark.parametrize(("kind", "changes"), [*((kind, {}) for kind in KINDS), ("logits", AS_DEBERTA)], ids=str)
def test_nothing_is_to_be_learnt_of_oneself(write_teacher, kind, changes):
    config = CONFIG.replace(**changes)
    # A teacher with dropout: in training mode it would differ from itself.
    folder = write_teacher(config.replace(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5))
    objective = distil(config, folder, distillation=kind)
    models = loaded(objective, seed=1)
    found, gradients = computed(objective, models, batch_of())
    for name in objective.loss_coefficients:
        if name != "masked_lm_loss":
            assert abs(found[name][0] / found[name][1]) < 1e-6
    for name, values in gradients.items():
        assert values is None or np.abs(tf.convert_to_tensor(values)).max() < 1e-6, name
    if kind == "logits":
        assert found["agreement"][0] == found["agreement"][1]


@pytest.mark.parametrize("kind", KINDS)
def test_padding_neither_teaches_nor_learns(write_teacher, kind):
    objective = distil(CONFIG, write_teacher(CONFIG), distillation=kind)
    models, batch = loaded(objective), batch_of()
    filled = batch_of(input_ids=tf.where(batch["input_mask"] == 1, batch["input_ids"], 7))
    expected, actual = (objective.compute(each, False, None, **models) for each in (batch, filled))
    for name in objective.loss_coefficients:
        np.testing.assert_allclose(actual[name][0], expected[name][0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["relations", "layers"])
def test_halves_are_read_apart(write_teacher, kind):
    objective = distil(CONFIG, write_teacher(CONFIG), "halves", distillation=kind)
    models, batch = loaded(objective), batch_of()
    # The second half of the first row alone, as an example of its own.
    half = {name: values[:1, 6:] for name, values in batch.items() if not name.startswith("masked")}
    half["segment_ids"] = tf.zeros_like(half["segment_ids"])
    first = {name: values[:1] for name, values in batch.items() if not name.startswith("masked")}
    begin = {**first, "input_mask": tf.constant([[1] * 6 + [0] * 6])}
    apart = [objective.compute(each, False, None, **models) for each in (begin, half)]
    together = objective.compute(first, False, None, **models)
    for name in objective.loss_coefficients:
        np.testing.assert_allclose(together[name][0], sum(each[name][0] for each in apart), rtol=1e-5)


def test_text_is_masked_only_where_masked_pieces_are_learnt(write_teacher):
    folder = write_teacher(CONFIG)
    records = batch_of()
    masked_ids = records["input_ids"].numpy()
    for kind, weight in (("relations", -1.0), ("relations", 1.0), ("logits", -1.0)):
        objective = distil(CONFIG, folder, distillation=kind, masked_lm_weight=weight)
        batch = objective.prepare(records, tf.constant([1, 2], tf.int64))
        assert batch.keys() == objective.batch_spec(LENGTH).keys()
        is_masked = (kind, weight) != ("relations", -1.0)
        assert ("masked_lm_ids" in batch) == is_masked == objective.fills_masks
        expected = masked_ids.copy()
        if not is_masked:
            for row, column in zip(*np.nonzero(records["masked_lm_weights"])):
                expected[row, records["masked_lm_positions"][row, column]] = records["masked_lm_ids"][row, column]
        np.testing.assert_array_equal(batch["input_ids"], expected)


def test_masked_pieces_may_be_learnt_beside_relations(write_teacher):
    folder, batch = write_teacher(CONFIG), batch_of()
    alone, both = distil(CONFIG, folder), distil(CONFIG, folder, masked_lm_weight=0.5)
    models = loaded(both)
    assert both.loss_coefficients["masked_lm_loss"] == 0.5
    expected, found = alone.compute(batch, False, None, **models), both.compute(batch, False, None, **models)
    for name in alone.loss_coefficients:
        np.testing.assert_allclose(found[name][0], expected[name][0], rtol=1e-6)
    assert "masked_lm_head/" in alone.untouched(models["model"])
    assert "masked_lm_head/" not in both.untouched(models["model"])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *((kind, changes) for kind in KINDS for changes in ({}, {"norm_position": "pre", "sharing": "attention"})),
        ("relations", {"sharing": "ffn"}),
        ("layers", {"sharing": "none"}),
        ("relations", {"relative_attention": "p2c|c2p", "sharing": "none"}),
        ("logits", {"relative_attention": "c2p", "num_hidden_layers": 1}),
    ],
    ids=str,
)
def test_what_no_gradient_reaches_is_named(write_teacher, kind, changes):
    objective = distil(CONFIG.replace(**changes), write_teacher(CONFIG), distillation=kind)
    models = loaded(objective)
    variables, batch = named_variables(models["model"]), batch_of()
    with tf.GradientTape() as tape:
        found = objective.compute(batch, training=True, dropout_seed=tf.constant([1, 2]), **models)
        loss = tf.add_n([found[name][0] for name in objective.loss_coefficients])
    gradients = tape.gradient(loss, variables)
    untouched = {name for name in variables if name.startswith(objective.untouched(models["model"]))}
    assert untouched == {name for name, gradient in gradients.items() if gradient is None}


@pytest.mark.parametrize(
    ("teacher", "layers", "changes"),
    [
        ({"num_hidden_layers": 4}, (0, 2), {"num_hidden_layers": 2, "num_hidden_groups": 1}),
        ({"num_hidden_layers": 4, "num_hidden_groups": 4}, (1, 3), {"num_hidden_layers": 2, "num_hidden_groups": 2}),
        ({"num_hidden_layers": 4, "num_hidden_groups": 2}, (0, 2, 3), {"num_hidden_layers": 3, "num_hidden_groups": 3}),
        ({"num_hidden_layers": 3, "sharing": "none"}, (0, 2), {"num_hidden_layers": 2, "num_hidden_groups": 1}),
        ({"num_hidden_layers": 2, "inner_group_num": 2}, (1,), {"num_hidden_layers": 1, "num_hidden_groups": 1}),
        ({"num_hidden_layers": 3, "sharing": "none", **AS_DEBERTA}, (0, 2), {"num_hidden_layers": 2}),
    ],
)
def test_student_begins_with_layers_of_the_teacher(write_teacher, teacher, layers, changes):
    config = CONFIG.replace(**teacher)
    folder, known = write_teacher(config), random_model(config)
    own = student_config(config, layers)
    assert own == config.replace(**changes)
    tf.keras.utils.set_random_seed(9)
    student = AlbertForPreTraining(own)
    line, at_random = begin_with_layers(student, layers, folder, "`teacher`")
    assert line == f"beginning with layers {', '.join(map(str, layers))} of {folder}" and at_random == []
    inputs = {"input_ids": batch_of()["input_ids"]}
    states = known.encoder(inputs, output_hidden_states=True)["hidden_states"]
    found = student.encoder(inputs, output_hidden_states=True)["hidden_states"]
    np.testing.assert_array_equal(found[0], states[0])
    if layers[0] == 0:
        np.testing.assert_allclose(found[config.inner_group_num], states[config.inner_group_num], rtol=1e-6)
    for number in range(own.num_blocks):
        layer, position = divmod(number, own.inner_group_num)
        there = layers[layer] * own.inner_group_num + position
        for kind, mine, theirs in zip(
            ("attention", "feed_forward"), student.encoder.sub_layers_of(number), known.encoder.sub_layers_of(there)
        ):
            pairs = (
                named_variables(getattr(model.encoder, f"{kind}_layers")[place])
                for model, place in ((student, mine), (known, theirs))
            )
            for (name, value), expected in zip(next(pairs).items(), next(pairs).values()):
                np.testing.assert_array_equal(value, expected, err_msg=name)


def test_what_the_teacher_lacks_is_told(write_teacher):
    folder = write_teacher(CONFIG, without=["masked_lm_head/", "encoder/pooler/"])
    line, at_random = begin_with_layers(AlbertForPreTraining(CONFIG), (0, 1), folder, "`teacher`")
    assert {name.split("/")[0] for name in at_random} == {"encoder", "masked_lm_head"}
    assert line.endswith("; new, from random weights: encoder/pooler, masked_lm_head")
    models = loaded(distil(CONFIG, folder))  # nothing of that is read
    assert models["teacher"].pooler is None
    with pytest.raises(InputError, match=r"`teacher=.*` lacks masked_lm_head/.*, so there is nothing to learn from it"):
        loaded(distil(CONFIG, folder, distillation="logits"))


LAYERS, LOGITS = {"distillation": "layers"}, {"distillation": "logits"}
THREE_HEADS = {"num_attention_heads": 3, "hidden_size": 12}


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({}, {"distillation": "magic"}, "`distillation=magic` must be one of relations, logits, layers"),
        ({}, {"relation_heads": 5}, "`relation_heads=5` must divide the width of the student, 16, and that of .* 24;"),
        ({}, {**LAYERS, "relation_heads": 2}, "`relation_heads=2` has no meaning for `distillation=layers`, only for"),
        ({}, {**LOGITS, "teacher_layer": 0}, "`teacher_layer=0` has no meaning for"),
        ({}, {"teacher_layer": 3}, "`teacher_layer=3` must be a layer of `teacher=.*`, 0 to 2, or -1"),
        ({}, LOGITS, "compares states one by one, and hidden_size is 16 in the student and 24 in"),
        ({"hidden_size": 24, "vocab_size": 41}, LOGITS, "compares guesses one by one, and vocab_size is 41 in the stu"),
        ({}, LAYERS, "compares heads one by one, and num_attention_heads is 2 in the student and 3"),
        ({**THREE_HEADS}, LAYERS, "`teacher=.*` has 3 layers, no multiple of the student's 2; give the student others"),
        ({}, {"student_layers": "0,3"}, "`student_layers` names layer 3, and the teacher has 3, from 0 to 2"),
        ({}, {"student_layers": "1"}, "names 1 layers of 1 blocks, and the student has 2 of 1; make them equal"),
        ({}, {"student_layers": "2,0"}, "`student_layers=2,0` must be layers of the teacher, from 0, in order"),
        ({}, {"masked_lm_weight": -5.0}, "`masked_lm_weight` must be a number from 0 on, or -1. Received: -5.0"),
        ({"num_languages": 2}, {}, "doesn't tell the student what language a text is in"),
        ({**THREE_HEADS, "relative_attention": "c2p"}, LAYERS, "can't compare scores of relative_attention; use"),
        ({"is_causal": True, "pooler": False}, {}, r"those of the student .* \(is_causal=true\); use another model"),
        ({}, {"teacher": "nowhere"}, "`teacher=nowhere`: there is no such folder or checkpoint; name the folder"),
    ],
)
def test_models_that_can_not_be_compared_are_refused(write_teacher, changes, settings, message):
    with pytest.raises(InputError, match=message):
        distil(CONFIG.replace(**changes), **{"teacher": write_teacher(OTHER), **settings})


def test_teachers_that_do_not_suit_a_student_are_refused(write_teacher):
    of_distances, wide, short = (
        write_teacher(CONFIG.replace(**changes), seed)
        for seed, changes in enumerate((AS_DEBERTA, {"intermediate_size": 32}, {"max_position_embeddings": 8}))
    )
    with pytest.raises(InputError, match="can't compare scores of relative_attention; use"):
        distil(CONFIG, of_distances, distillation="layers")
    objective = distil(CONFIG, wide, student_layers="0,1")
    with pytest.raises(InputError, match=r"has the shape .*, and .* of the student has .*; make the configs equal"):
        objective.begin(objective.make_model())
    with pytest.raises(InputError, match="in `teacher`, max_seq_length=12 is more than the model's max_position"):
        distil(CONFIG, short).batch_spec(LENGTH)


def test_without_teacher_there_is_a_model_and_nothing_to_train():
    objective = distil(CONFIG, "")
    assert isinstance(objective.make_model(), AlbertForPreTraining)
    with pytest.raises(InputError, match="`objective=distil` needs a teacher; name the folder of a model with"):
        objective.make_models()


def test_roberta_teaches_a_model_that_counts_positions_otherwise(write_teacher):
    roberta = CONFIG.replace(position_offset=1, type_vocab_size=1, sharing="none", pooler=False)
    objective = distil(CONFIG, write_teacher(roberta))
    found, _ = computed(objective, loaded(objective), batch_of())
    assert all(np.isfinite(total) and total > 0 for total, _ in found.values())
