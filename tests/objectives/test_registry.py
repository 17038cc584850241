"""Objectives are known by name, take some packings, tell which variables no loss depends on, and what pieces see."""

import re

import pytest
import tensorflow as tf
from distilled_models import LENGTH, distil
from test_imports import LIBRARY
from tiny_config import tiny_config
from tiny_entities import NUM_PIECES, with_entities

from albert_tf.base.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import default_objective, make_objective, usual_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.objectives.registry import settings_of_objectives
from albert_tf.pretraining_data.packing import PACKINGS
from albert_tf.tpu.compile_step import planned_names, planned_objective, zeros

CONFIG = tiny_config(50)


def test_every_packing_has_an_objective_that_it_is_made_for():
    defaults = {name: default_objective(packing) for name, packing in PACKINGS.items()}
    assert defaults == {
        "order": "albert",
        "next": "bert",
        "document_sentences": "roberta",
        "full_sentences": "roberta",
        "halves": "halves",
        "document_blocks": "causal",
        "translation_pairs": "translation",
    }


@pytest.mark.parametrize(
    ("changes", "name"), [({}, "albert"), ({"pooler": False}, "roberta"), ({"is_causal": True}, "causal")]
)
def test_model_that_does_not_say_what_it_learnt_has_an_objective_that_suits_it(changes, name):
    config = CONFIG.replace(**changes)
    assert usual_objective(config) == make_objective(name, config).name == name


@pytest.mark.parametrize(
    ("name", "losses"),
    [
        ("albert", ["masked_lm", "sentence_order"]),
        ("bert", ["masked_lm", "next_sentence"]),
        ("korealbert", ["masked_lm", "sentence_order", "word_order"]),
        ("roberta", ["masked_lm"]),
        ("halves", ["masked_lm", "halves"]),
        ("causal", ["causal_lm"]),
        ("translation", ["masked_lm"]),
    ],
)
def test_losses_are_composed(name, losses):
    objective = make_objective(name, CONFIG.replace(is_causal=name == "causal"))
    assert objective.identity() == {"objective": name}
    assert list(objective.loss_coefficients) == [f"{each}_loss" for each in losses]
    further = ("bits_per_character",) if name == "causal" else ()
    assert objective.metric_names == (*(f"{each}_accuracy" for each in losses), *further)


def test_settings_are_of_one_objective_and_have_one_name_each():
    names = [name for settings in settings_of_objectives() for name in settings.names()]
    assert len(set(names)) == len(names) > 0
    objective = make_objective("electra", CONFIG, settings={"generator_size": 0.5})
    switches = {"share_generator": False, "disentangled_embeddings": False, "replaced_token_weight": 50.0}
    assert objective.identity() == {"objective": "electra", "generator_size": 0.5, **switches}
    with pytest.raises(InputError, match="`generator_size` has no meaning for `objective=albert`; leave it out"):
        make_objective("albert", CONFIG, settings={"generator_size": 0.5})


def test_nothing_but_their_own_rooms_and_a_recipe_names_them():
    named = re.compile(
        r"[\"'](halves|roberta|causal|full_sentences|document_sentences|document_blocks|translation_pairs)[\"']|"
        r"\b(MaskedLM|SentenceOrder|WordOrder|Halves|CausalLM|DocumentBlocks|TranslationLM|TranslationPairs)\b"
    )
    # There it is a family of encoders, of which each can learn anything.
    families = ("config.py", "interchange/")
    rooms = ("objectives/", "pretraining_data/packing/", "cli/demo.py", *families)
    files = {str(path.relative_to(LIBRARY)): path.read_text(encoding="utf-8") for path in LIBRARY.rglob("*.py")}
    assert [name for name, text in files.items() if named.search(text) and not name.startswith(rooms)] == []


def test_objective_that_does_not_fit_is_one_sentence():
    with pytest.raises(InputError) as error:
        make_objective("albert", CONFIG, PACKINGS["halves"])
    assert str(error.value) == (
        "`objective=albert` needs examples packed as order, but these are packed as halves, for halves and "
        "distil; choose another objective"
    )
    with pytest.raises(InputError, match="`objective=of_tomorrow` is not known; use one of albert, bert, roberta"):
        make_objective("of_tomorrow", CONFIG)


TAUGHT = ("distil",)  # needs the folder of a teacher; see test_distillation.py


def config_for(name):
    if name == "entities":
        return with_entities(tiny_config(NUM_PIECES))
    return CONFIG.replace(is_causal=name == "causal")


OBJECTIVES = {
    **{name: planned_objective(name, config_for(name)) for name in planned_names() if name not in TAUGHT},
    "mean": planned_objective("classify", CONFIG.replace(classifier_pooling="mean")),
    "aligned": planned_objective("score", CONFIG.replace(classifier_pooling="aligned")),
    "aligned questions": planned_objective("squad_v2", CONFIG.replace(question_alignment="words")),
    "characters": planned_objective("tag", CONFIG.replace(character_ngrams=True)),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_untouched_variables_have_no_gradient(name):
    objective = OBJECTIVES[name]
    batch = zeros(with_batch_size(objective.batch_spec(8), 2))
    models = objective.make_models()
    model = models["model"]
    variables = {name: variable for name, variable in named_variables(model).items() if variable.trainable}
    with tf.GradientTape() as tape:
        computed = objective.compute(batch, training=True, dropout_seed=tf.constant([1, 2]), **models)
        loss = tf.add_n([computed[loss][0] for loss in objective.loss_coefficients])
    gradients = tape.gradient(loss, variables)
    untouched = {each for each in variables if each.startswith(objective.untouched(model))}
    assert untouched == {each for each, gradient in gradients.items() if gradient is None}
    reads_all = ("albert", "bert", "korealbert", "classify", "multi_label", "score", "race")
    assert bool(untouched) == (name not in reads_all)


def test_whether_documents_are_kept_apart_is_told_beforehand(write_teacher):
    names, teacher = ("albert", "halves", "causal", "electra"), write_teacher(CONFIG)
    objectives = {name: planned_objective(name, config_for(name)) for name in names}
    objectives |= {f"distil {packing}": distil(CONFIG, teacher, packing) for packing in ("order", "halves")}
    told = {name for name, each in objectives.items() if each.separates_documents(each.batch_spec(LENGTH))}
    assert told == {"halves", "causal", "distil halves"}
