"""Objectives are known by name, take some packings, tell which variables no loss depends on, and what pieces see."""

import re

import pytest
import tensorflow as tf
from distilled_models import LENGTH, distil
from test_imports import LIBRARY
from tiny_config import tiny_config
from tiny_entities import NUM_PIECES, with_entities

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.modeling import encoder
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import default_objective, make_objective, usual_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.objectives.registry import settings_of_objectives
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.runs.tpu_compiler import planned_names, planned_objective, zeros

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
    data = [f"pretraining_data/{name}.py" for name in ("__init__", "packing", "full_sentences", "halves")]
    rooms = ("objectives/", *data, "cli/demo.py", *families)
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


@pytest.fixture
def documents_seen(monkeypatch):
    """Whether encoders are given documents that are kept apart, of each call."""
    seen, choose = [], encoder.choose_kernel

    def note(attention, hidden_size, case):
        seen.append(case.has_documents)
        return choose(attention, hidden_size, case)

    monkeypatch.setattr(encoder, "choose_kernel", note)
    return seen


@pytest.mark.parametrize("name", OBJECTIVES)
def test_untouched_variables_have_no_gradient_and_documents_are_kept_apart_as_told(name, documents_seen):
    objective = OBJECTIVES[name]
    batch = zeros(with_batch_size(objective.batch_spec(8), 2))
    models = objective.make_models()
    model = models["model"]
    documents_seen.clear()  # making a model may call it
    variables = {name: variable for name, variable in named_variables(model).items() if variable.trainable}
    with tf.GradientTape() as tape:
        computed = objective.compute(batch, training=True, dropout_seed=tf.constant([1, 2]), **models)
        loss = tf.add_n([computed[loss][0] for loss in objective.loss_coefficients])
    assert set(documents_seen) == {objective.separates_documents(objective.batch_spec(8))}
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


BASE = AlbertConfig(
    vocab_size=30000,
    embedding_size=128,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
)
B, S, P, FORWARD_AND_BACKWARD = 4, 512, 20, 3


def flops_of_an_example(objective, length=S):
    return objective.flops(with_batch_size(objective.batch_spec(length), B)) / B


def learning(name, config):
    return make_objective(name, config, masking=MaskingOptions(P))


def product(rows, inner, columns):
    """Returns the operations of a matrix product: a multiplication and an addition for each pair of numbers."""
    return 2 * rows * inner * columns


def base_block(length, read):
    """Returns the operations of a block of which so many positions are read."""
    attention = [
        *[product(length, 768, 768)] * 2,  # key and value, of every position
        *[product(read, 768, 768)] * 2,  # query, and what mixes the heads
        *[product(read, 64, length)] * 12,  # of each head, what it looks at
        *[product(read, length, 64)] * 12,  # and what it takes from there
    ]
    return sum(attention) + product(read, 768, 3072) + product(read, 3072, 768)


def base_encoder(length, read):
    return product(length, 128, 768) + 11 * base_block(length, length) + base_block(length, read)


def language_model(positions):
    return product(positions, 768, 128) + product(positions, 128, 30000)


POOLER = product(1, 768, 768)
CAUSAL, TIED = BASE.replace(is_causal=True), {"embedding_size": 768, "language_model_head": "tied"}
DISENTANGLED = BASE.replace(relative_attention="p2c|c2p", position_buckets=128, pooler=False)
# All positions are multiplied with distances, also in the last block.
BLOCK_WITH_DISTANCES = base_block(S, S) + 2 * 12 * product(S, 64, 256)
LAST_WITH_DISTANCES = BLOCK_WITH_DISTANCES - product(S - P - 1, 768, 768) - 2 * product(S - P - 1, 768, 3072)
ROOM = 51  # sentences of 8 pieces with two [SEP], after [CLS]
# Of each position and of the first one; and of whether there is an answer.
CONDITIONAL_END = product(S, 768, 768) + product(1, 768, 768) + product(S, 768, 1)
NO_ANSWER = product(1, S, 768) + product(1, 2 * 768, 768) + product(1, 768, 1)

# Objectives, and the operations of one example forward.
CASES = {
    "pre-training: encoder and both heads": (
        learning("albert", BASE),
        base_encoder(S, P + 1) + language_model(P) + POOLER + product(1, 768, 2),
    ),
    "halves: every position is read, and all sentences are compared": (
        learning("halves", BASE),
        base_encoder(S, S) + language_model(P) + product(2 * ROOM, S, 768) + product(ROOM, 768, B * ROOM),
    ),
    "causal: a prediction at every position": (learning("causal", CAUSAL), base_encoder(S, S) + language_model(S)),
    "causal with a tied head": (
        learning("causal", CAUSAL.replace(**TIED)),
        base_encoder(S, S) - product(S, 128, 768) + product(S, 768, 30000),
    ),
    "disentangled attention": (
        learning("roberta", DISENTANGLED),
        product(S, 128, 768) + 11 * BLOCK_WITH_DISTANCES + LAST_WITH_DISTANCES + language_model(P),
    ),
    "classification by the mean reads every position and has no pooler": (
        Classification(BASE.replace(classifier_pooling="mean")),
        base_encoder(S, S) + product(1, 768, 2),
    ),
    "classification by the last piece reads it and the first": (
        Classification(BASE.replace(classifier_pooling="last")),
        base_encoder(S, 2) + product(1, 768, 2),
    ),
    "an answer's span takes two scores a position": (
        QuestionAnswering(BASE),
        base_encoder(S, S) + product(S, 768, 2),
    ),
    "a span given its beginning takes a layer a position, and one for no answer": (
        ConditionalQuestionAnswering(BASE),
        base_encoder(S, S) + product(S, 768, 1) + CONDITIONAL_END + NO_ANSWER,
    ),
    "an encoder as wide as its embeddings has no mapping": (
        learning("albert", BASE.replace(embedding_size=768)),
        base_encoder(S, P + 1)
        - product(S, 128, 768)
        + product(P, 768, 768)
        + product(P, 768, 30000)
        + POOLER
        + product(1, 768, 2),
    ),
}


@pytest.mark.parametrize(("objective", "forward"), CASES.values(), ids=CASES)
def test_operations_are_those_of_the_products(objective, forward):
    assert flops_of_an_example(objective) == FORWARD_AND_BACKWARD * forward


def test_base_model_takes_as_many_as_is_known_of_it():
    assert flops_of_an_example(learning("albert", BASE)) == pytest.approx(0.271e12, rel=0.01)


def test_classification_takes_those_of_encoder_and_one_head():
    forward = base_encoder(64, 1) + POOLER + product(1, 768, 5)
    assert flops_of_an_example(Classification(BASE, tuple("abcde")), 64) == FORWARD_AND_BACKWARD * forward


@pytest.mark.parametrize("objective", [QuestionAnswering, ConditionalQuestionAnswering])
def test_aligning_a_question_takes_cosines_averages_and_a_layer(objective):
    aligning = product(S, 128, S) + product(S, S, 128) + product(S, 3 * 128, 128)
    found = flops_of_an_example(objective(BASE.replace(question_alignment="words")))
    assert found == pytest.approx(flops_of_an_example(objective(BASE)) + FORWARD_AND_BACKWARD * aligning)


def test_layers_count_whoever_shares_them():
    found = flops_of_an_example(learning("albert", BASE.replace(inner_group_num=2, num_hidden_layers=6)))
    assert found == flops_of_an_example(learning("albert", BASE))
