"""The steps that train, compiled for TPUs by the compiler in libtpu, which needs no TPU.

Each task is compiled for a few TPUs, and each TPU compiles a few tasks; ALBERT_TF_EVERY_TPU=1 tries all with all.
"""

import functools
import itertools
import json
import os
import pathlib
import re

import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS
from albert_tf.modeling.kernels import tied_cross_entropy
from albert_tf.objectives.objective import with_batch_size
from albert_tf.runs.tpu_compiler import (
    ReplicaStrategy,
    UnsupportedOperationError,
    compile_program,
    lower,
    lower_step,
    planned_names,
    planned_objective,
    zeros,
)

pytest.importorskip("jax")
pytest.importorskip("libtpu")
pytestmark = pytest.mark.slow

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"
EVERYTHING = bool(os.environ.get("ALBERT_TF_EVERY_TPU"))
TOPOLOGIES = ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2")


def pairs(shift):
    """Returns pairs of a task and a TPU in which each of both occurs, or all; another shift gives others.

    What a TPU may not take are operations of the encoder, which all tasks share; they differ in their heads.
    """
    if EVERYTHING:
        return list(itertools.product(sorted(TASKS), TOPOLOGIES))
    topologies = itertools.islice(itertools.cycle(TOPOLOGIES), shift, None)
    return list(zip(sorted(TASKS), topologies, strict=False))


# Of sizes that fill a TPU's registers and not much more: the compiler takes most of the time.
SMALL = AlbertConfig(
    vocab_size=1024,
    embedding_size=128,
    hidden_size=128,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=512,
    max_position_embeddings=128,
)


KNOWS_ENTITIES = {
    "num_entities": 5000,
    "entity_size": 100,
    "entity_layer": 1,
    "entity_name_edges": 12000,
    "entity_name_collisions": 5,
    "entity_name_length": 8,
}


@functools.cache
def compiled(
    config,
    name,
    batch_size,
    max_seq_length,
    predictions=None,
    topology="v5e:2x2",
    num_replicas=1,
    turned_on=(),
    **options,
):
    """Returns what a step takes; predictions and settings that are turned on only for pre-training."""
    options.setdefault("optimizer", "adamw")  # compiles in less time than LAMB
    objective = planned_objective(name, config, predictions, dict.fromkeys(turned_on, True))
    program = lower_step(objective, batch_size, max_seq_length, num_replicas=num_replicas, **options)
    return compile_program(program, topology, num_replicas)


def counted_flops(name, config, batch_size=8):
    """Returns what an objective says that some examples of 128 pieces take."""
    objective = planned_objective(name, config)
    return objective.flops(with_batch_size(objective.batch_spec(128), batch_size))


def test_step_stays_as_small_as_it_is():
    # Every block is the same; the last one, which computes what is read alone, and one before it stand for all.
    step = compiled(SMALL.replace(num_hidden_layers=2), "albert", 8, 128)
    # Versions of the compiler differ a little.
    assert step.bytes_accessed < 114e6
    assert step.temporary_bytes < 3.9e6
    assert step.flops < 2.13e9


def test_base_step_stays_as_small_as_it_is():
    # The figures of all twelve blocks, in docs/performance.md, come from benchmarks.tpu_step.
    config = AlbertConfig.from_json_file(CONFIGS / "albert_base_v2.json").replace(num_hidden_layers=2)
    step = compiled(config, "albert", 32, 512, 76)
    assert step.bytes_accessed < 8.5e9
    assert step.temporary_bytes < 570 * 2**20
    assert step.flops < 1.1e12


@pytest.mark.parametrize("pooling", ["mean", "aligned"])
def test_classifier_that_reads_all_states_compiles_and_counts_right(pooling):
    config = SMALL.replace(classifier_pooling=pooling, position_initializer="sinusoidal")
    step = compiled(config, "classify", 8, 128, attention="plain")
    counted = counted_flops("classify", config)
    assert counted <= step.flops < 1.2 * counted


@pytest.mark.parametrize("name", ["squad", "squad_v2"])
def test_aligned_questions_compile_and_count_right(name):
    config = SMALL.replace(question_alignment="words")
    step = compiled(config, name, 8, 128, attention="plain")
    counted = counted_flops(name, config)
    assert counted <= step.flops < 1.2 * counted


def test_tagger_that_reads_characters_compiles_and_counts_right():
    config = SMALL.replace(num_hidden_layers=2, character_ngrams=True)
    step = compiled(config, "tag", 8, 128, attention="plain")
    counted = counted_flops("tag", config)
    assert counted <= step.flops < 1.5 * counted


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_pre_training_with_lamb_compiles(dtype):
    step = compiled(SMALL, "albert", 8, 128, 20, optimizer="lamb", dtype=dtype)
    assert step.temporary_bytes > 0 and step.code_bytes > 0


def test_muon_compiles_with_a_moment_less_and_fifteen_products_more_for_each_matrix():
    muon, adam = (compiled(SMALL, "albert", 8, 128, 20, optimizer=optimizer) for optimizer in ("muon", "adamw"))
    narrow, wide = SMALL.hidden_size, SMALL.intermediate_size
    assert adam.argument_bytes - muon.argument_bytes == pytest.approx(4 * (4 * narrow**2 + 2 * narrow * wide), rel=0.05)
    # Five times over: X X^T, its square, and their product with X.
    products = 4 * 3 * narrow**3 + 2 * (2 * narrow**2 * wide + narrow**3)
    assert muon.flops - adam.flops == pytest.approx(5 * 2 * products, rel=0.05)


def test_long_constants_of_booleans_are_spelled():
    """The compiler's library reads packed bits in another way."""

    def first_of_16(values):
        return tf.where((tf.range(256) % 16 < 1)[:, None], values, 0.0)

    program = lower(first_of_16, [tf.zeros([256, 8])])
    rows = [number % 16 < 1 for number in range(256)]
    assert any(json.dumps(shaped) in program for shaped in (rows, [[row] for row in rows]))
    assert compile_program(program, "v5e:2x2").argument_bytes > 0


@pytest.mark.parametrize("name", sorted({*planned_names()} - {*TASKS, "distil"}))
def test_every_objective_of_pre_training_compiles(name):
    config = SMALL.replace(num_hidden_layers=2, is_causal=name == "causal")
    config = config.replace(**KNOWS_ENTITIES) if name == "entities" else config
    assert compiled(config, name, 8, 128).temporary_bytes > 0


@pytest.mark.parametrize(("kind", "changes"), [("relations", {}), ("logits", {}), ("layers", {"hidden_size": 256})])
def test_student_and_teacher_compile_and_count_right(kind, changes, tmp_path):
    teacher = SMALL.replace(num_hidden_layers=4, sharing="none", **changes)
    (tmp_path / "albert_config.json").write_text(json.dumps(teacher.to_dict()))
    settings = {"teacher": str(tmp_path), "distillation": kind}
    objective = planned_objective("distil", SMALL.replace(num_hidden_layers=2), settings=settings)
    step = compile_program(lower_step(objective, 8, 128, "adamw", attention="plain"), "v5e:2x2")
    counted = objective.flops(with_batch_size(objective.batch_spec(128), 8))
    assert counted <= step.flops < 1.5 * counted
    # Beside the student's weights and moments are the teacher's weights.
    alone = compiled(SMALL.replace(num_hidden_layers=2), "roberta", 8, 128, attention="plain")
    assert step.argument_bytes - alone.argument_bytes > 2 * 4 * 12 * SMALL.hidden_size**2


def test_entities_compile_and_count_right():
    config = SMALL.replace(num_hidden_layers=2, **KNOWS_ENTITIES)
    step = compiled(config, "entities", 8, 128, attention="plain")
    counted = counted_flops("entities", config)
    assert counted <= step.flops < 1.1 * counted
    # Vectors and names have no moments.
    plain = compiled(SMALL.replace(num_hidden_layers=2), "roberta", 8, 128, attention="plain")
    told = 4 * 5000 * 100
    assert told < step.argument_bytes - plain.argument_bytes < 2.5 * told


def test_names_are_found_on_a_tpu():
    config = SMALL.replace(num_hidden_layers=2, **KNOWS_ENTITIES)
    with_names, plain = (compiled(each, "tag", 8, 128, attention="plain") for each in (config, SMALL))
    assert with_names.argument_bytes - plain.argument_bytes > 4 * (5000 * 100 + 3 * 12000)


def test_disentangled_embeddings_take_another_table_and_its_moments():
    config = SMALL.replace(num_hidden_layers=2, is_causal=False)
    shared = compiled(config, "electra", 8, 128)
    apart = compiled(config, "electra", 8, 128, turned_on=("disentangled_embeddings",))
    rows = SMALL.vocab_size + SMALL.max_position_embeddings + SMALL.type_vocab_size + 2  # gamma and beta
    assert apart.argument_bytes - shared.argument_bytes == pytest.approx(3 * 4 * rows * SMALL.embedding_size, rel=0.02)
    assert apart.flops < 1.02 * shared.flops


def test_gpt_compiles_and_counts_right():
    config = SMALL.replace(
        is_causal=True, norm_position="pre", language_model_head="tied", type_vocab_size=0, pooler=False
    )
    step = compiled(config, "causal", 8, 128, attention="plain")
    counted = counted_flops("causal", config)
    assert counted <= step.flops < 1.1 * counted


DISENTANGLED = {
    "relative_attention": "p2c|c2p",
    "position_buckets": 64,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "pooler": False,
    "type_vocab_size": 0,
}


def test_disentangled_attention_compiles_and_gathers_nothing_for_pairs_of_pieces():
    config = SMALL.replace(num_hidden_layers=2, **DISENTANGLED)
    step = compiled(config, "roberta", 8, 128)
    assert not re.search(r"\[8,2,128,128\]\S* (?:gather|scatter|dynamic-slice)\(", step.text)
    # Putting scores in their place is a product, too, which is not counted.
    placing = 4 * 2 * 2 * 8 * config.num_attention_heads * 128 * 128 * 128
    counted = counted_flops("roberta", config)
    assert counted + placing <= step.flops < 1.1 * (counted + placing)
    assert step.bytes_accessed < 242e6


def test_replaced_tokens_compile_with_disentangled_attention():
    config = SMALL.replace(num_hidden_layers=2, **DISENTANGLED)
    assert compiled(config, "electra", 8, 128, turned_on=("disentangled_embeddings",)).temporary_bytes > 0


# The base step of BERT is ALBERT's with other weights in each layer.
FAMILIES = {
    "roberta": {"position_offset": 2, "max_position_embeddings": 130, "type_vocab_size": 1, "embedding_size": 128},
    "electra": {"pooler": False, "classification_head": "dense_gelu", "embedding_size": 64},
    "distilbert": {"pooler": False, "classification_head": "dense_relu", "type_vocab_size": 0},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_compile_with_flash_attention_and_count_right(family):
    config = SMALL.replace(sharing="none", hidden_act="gelu_erf", model_type=family, **FAMILIES[family])
    step = compiled(config, "roberta", 8, 128)
    assert compiled(SMALL, "roberta", 8, 128).flops * 0.9 < step.flops < compiled(SMALL, "roberta", 8, 128).flops * 1.1
    assert step.temporary_bytes < 4.3e6
    assert compiled(config, "classify", 8, 128).temporary_bytes < 4.3e6


@pytest.mark.parametrize(("name", "topology"), pairs(0))
def test_predictions_compile_for_every_tpu(name, topology):
    task, strategy = TASKS[name](SMALL), ReplicaStrategy(1, runs_pallas_kernels=False)
    with strategy.scope():
        models = task.make_models(attention="plain", dtype="mixed_bfloat16")
    batch = zeros(with_batch_size(task.batch_spec(128), 8))

    def predict(*values):
        return strategy.run(lambda given: task.outputs(given, **models), args=(dict(zip(batch, values)),))

    program = lower(predict, list(batch.values()))
    assert compile_program(program, topology).output_bytes > 0


@pytest.mark.parametrize(("name", "topology"), pairs(1))
def test_fine_tuning_compiles_for_every_tpu(name, topology):
    runs_kernels = topology not in ("v2:2x2", "v3:2x2")
    step = compiled(SMALL, name, 8, 128, topology=topology, runs_pallas_kernels=runs_kernels)
    assert step.temporary_bytes > 0
    assert runs_kernels or "tpu_custom_call" not in step.text


def test_replicas_add_their_gradients_up():
    alone = compiled(SMALL, "albert", 8, 128, 20)
    together = compiled(SMALL, "albert", 8, 128, 20, topology="v5e:16x16", num_replicas=256)
    assert "all-reduce" not in alone.text
    assert "all-reduce" in together.text or "reduce-scatter" in together.text


def test_program_that_xla_can_not_write_down_is_compiled_all_the_same():
    config = AlbertConfig.from_json_file(CONFIGS / "albert_demo.json").replace(num_hidden_layers=1)
    step = compiled(config, "albert", 16, 128, 20, topology="v5p:2x2x1", num_replicas=4)
    assert step.temporary_bytes > 0 and step.text is None


def test_less_is_kept_with_rematerialization():
    # A v3 has little room on the chip itself, so that activations are in HBM.
    config = SMALL.replace(num_hidden_layers=2)
    plain, attention, block = (
        compiled(config, "albert", 32, 128, 20, topology="v3:2x2", attention="plain", remat=remat)
        for remat in ("none", "attention", "block")
    )
    assert block.temporary_bytes < 0.75 * plain.temporary_bytes
    assert attention.temporary_bytes < 0.95 * plain.temporary_bytes
    assert plain.flops < attention.flops < block.flops


def test_flash_attention_keeps_no_scores():
    # The last block computes what is read alone; the one before it has all the scores.
    config = SMALL.replace(num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256)
    plain, flash = (compiled(config, "albert", 8, 256, 20, attention=attention) for attention in ("plain", "flash"))
    assert "tpu_custom_call" in flash.text and "tpu_custom_call" not in plain.text
    scores = f"[8,{config.num_attention_heads},256,256]"
    assert scores in plain.text and scores not in flash.text
    assert flash.bytes_accessed < 0.95 * plain.bytes_accessed


@pytest.mark.parametrize(
    ("topology", "dtype"), [("v4:2x2x1", "float32"), ("v5p:2x2x1", "mixed_bfloat16"), ("v6e:2x2", "float32")]
)
def test_flash_attention_compiles_for_every_tpu_from_v4_on(topology, dtype):
    config = SMALL.replace(max_position_embeddings=512, attention_probs_dropout_prob=0.1)
    assert "tpu_custom_call" in compiled(config, "albert", 2, 512, 8, topology=topology, dtype=dtype).text


@pytest.mark.parametrize(("topology", "dtype"), [("v5e:2x2", "float32"), ("v4:2x2x1", "mixed_bfloat16")])
def test_causal_attention_among_documents_writes_nothing_for_each_pair_of_pieces(topology, dtype):
    config = SMALL.replace(
        max_position_embeddings=512, intermediate_size=256, attention_probs_dropout_prob=0.1, is_causal=True
    )
    step = compiled(config, "causal", 2, 512, topology=topology, dtype=dtype)
    assert "tpu_custom_call" in step.text and "512,512]" not in step.text


def test_dropout_keeps_no_masks():
    dropping = SMALL.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    without, with_dropout = (compiled(config, "albert", 8, 128, 20) for config in (SMALL, dropping))
    assert with_dropout.temporary_bytes < 1.2 * without.temporary_bytes
    assert with_dropout.bytes_accessed < 1.15 * without.bytes_accessed


def test_logits_are_never_held_all_at_once():
    config = SMALL.replace(vocab_size=16000, intermediate_size=128)
    step = compiled(config, "albert", 256, 16, 16, remat="block")
    logits = 4 * 256 * 16 * config.vocab_size
    assert step.temporary_bytes < logits


def test_operations_that_the_compiler_leaves_out_are_known():
    embedding_size, vocab_size = 128, 1024

    def train(states, table, bias, labels, weights):
        with tf.GradientTape() as tape:
            tape.watch([states, table, bias])
            loss, _ = tied_cross_entropy.tied_cross_entropy(states, table, bias, labels, weights)
        return tape.gradient(loss, [states, table, bias])

    def flops(num_rows):
        """Returns what the compiler counts, and what it leaves out, for each row."""
        states, table = tf.zeros([num_rows, embedding_size]), tf.zeros([vocab_size, embedding_size])
        rows = [tf.zeros([num_rows], tf.int32), tf.zeros([num_rows])]
        counted = compile_program(lower(train, [states, table, tf.zeros([vocab_size]), *rows]), "v5e:2x2").flops
        return (counted + tied_cross_entropy.uncounted_flops(num_rows, embedding_size, vocab_size)) / num_rows

    assert flops(3 * 4096) == pytest.approx(flops(4096), rel=0.05)


def test_operation_that_no_tpu_knows_is_named():
    with pytest.raises(UnsupportedOperationError, match="AsString"):
        lower(lambda values: tf.strings.length(tf.strings.as_string(values)), [tf.ones([2])])


def test_shape_that_depends_on_values_is_refused():
    with pytest.raises(UnsupportedOperationError, match="a shape depends on values"):
        lower(lambda values: 2.0 * tf.unique(values)[0], [tf.ones([4])])
