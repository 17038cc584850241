"""What a student begins with, and which teachers it can not learn from."""

import numpy as np
import pytest
import tensorflow as tf
from distilled_models import AS_DEBERTA, CONFIG, LENGTH, OTHER, batch_of, computed, distil, loaded, random_model

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.student import begin_with_layers, student_config


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


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({}, {"distillation": "magic"}, "`distillation=magic` must be one of relations, logits, layers"),
        ({}, {"relation_heads": 5}, "`relation_heads=5` must divide the width of the student, 16, and that of .* 24;"),
        (
            {},
            {"distillation": "layers", "relation_heads": 2},
            "`relation_heads=2` has no meaning for `distillation=layers`, only for relations; leave it out",
        ),
        ({}, {"distillation": "logits", "teacher_layer": 0}, "`teacher_layer=0` has no meaning for"),
        ({}, {"relation_heads": -2}, "`relation_heads=-2` must divide"),
        ({}, {"teacher_layer": 3}, "`teacher_layer=3` must be a layer of `teacher=.*`, 0 to 2, or -1, the last"),
        ({}, {"distillation": "logits"}, "compares states one by one, and hidden_size is 16 in the student and 24 in"),
        (
            {"hidden_size": 24, "num_attention_heads": 2, "vocab_size": 41},
            {"distillation": "logits"},
            "compares guesses one by one, and vocab_size is 41 in the student and 40 in `teacher=",
        ),
        (
            {},
            {"distillation": "layers"},
            "compares heads one by one, and num_attention_heads is 2 in the student and 3",
        ),
        (
            {"num_attention_heads": 3, "hidden_size": 12},
            {"distillation": "layers"},
            "`teacher=.*` has 3 layers, no multiple of the student's 2; give the student others",
        ),
        ({}, {"student_layers": "0,3"}, "`student_layers` names layer 3, and the teacher has 3, from 0 to 2"),
        ({}, {"student_layers": "1"}, "names 1 layers of 1 blocks, and the student has 2 of 1; make them equal"),
        ({}, {"student_layers": "2,0"}, "`student_layers=2,0` must be layers of the teacher, from 0, in order"),
        ({}, {"student_layers": "all"}, "`student_layers=all` must be layers of the teacher, from 0, in order"),
        ({}, {"masked_lm_weight": -5.0}, "`masked_lm_weight` must be a number from 0 on, or -1. Received: -5.0"),
        ({}, {"masked_lm_weight": float("nan")}, "`masked_lm_weight` must be a number. Received: nan"),
        ({"num_languages": 2}, {}, "doesn't tell the student what language a text is in \\(num_languages=2\\)"),
        (
            {"relative_attention": "c2p", "num_attention_heads": 3, "hidden_size": 12},
            {"distillation": "layers"},
            "can't compare scores of relative_attention; use `distillation=relations`",
        ),
        ({"is_causal": True, "pooler": False}, {}, "those of the student see only what comes before them"),
        ({}, {"teacher": "nowhere"}, "`teacher=nowhere`: there is no such folder or checkpoint; name the folder"),
    ],
)
def test_models_that_can_not_be_compared_are_refused(write_teacher, changes, settings, message):
    with pytest.raises(InputError, match=message):
        distil(CONFIG.replace(**changes), **{"teacher": write_teacher(OTHER), **settings})


def test_attention_of_a_teacher_that_knows_distances_is_not_compared(write_teacher):
    teacher = write_teacher(CONFIG.replace(**AS_DEBERTA))
    with pytest.raises(InputError, match="can't compare scores of relative_attention; use") as error:
        distil(CONFIG, teacher, distillation="layers")
    assert "\n" not in str(error.value)


def test_student_of_other_shapes_than_its_layers_is_refused(write_teacher):
    config = CONFIG.replace(intermediate_size=32)
    objective = distil(CONFIG, write_teacher(config), student_layers="0,1")
    with pytest.raises(InputError, match=r"has the shape .*, and .* of the student has .*; make the configs equal"):
        objective.begin(objective.make_model())


def test_teacher_of_fewer_positions_than_the_data_is_refused(write_teacher):
    objective = distil(CONFIG, write_teacher(CONFIG.replace(max_position_embeddings=8)))
    with pytest.raises(InputError, match="in `teacher`, max_seq_length=12 is more than the model's max_position"):
        objective.batch_spec(LENGTH)


def test_without_teacher_there_is_a_model_and_nothing_to_train():
    objective = distil(CONFIG, "")
    assert isinstance(objective.make_model(), AlbertForPreTraining)
    with pytest.raises(
        InputError, match="`objective=distil` needs a teacher; name the folder of a model with `teacher`"
    ):
        objective.make_models()


def test_roberta_teaches_a_model_that_counts_positions_otherwise(write_teacher):
    roberta = CONFIG.replace(position_offset=1, type_vocab_size=1, sharing="none", pooler=False)
    objective = distil(CONFIG, write_teacher(roberta))
    found, _ = computed(objective, loaded(objective), batch_of())
    assert all(np.isfinite(total) and total > 0 for total, _ in found.values())
