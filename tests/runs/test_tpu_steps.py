"""Steps that train and predictions, compiled for TPUs by the compiler in libtpu, which needs no TPU.

Each task's predictions are compiled for one TPU; ALBERT_TF_EVERY_TPU=1 tries all with all.
"""

import functools
import itertools
import json
import os
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS
from albert_tf.modeling import AlbertForPreTraining
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
from albert_tf.serving.decoder import ChoiceKind, ChoiceNumbers, Decoder, GenerationOptions, Prompts

pytest.importorskip("jax")
pytest.importorskip("libtpu")
pytestmark = pytest.mark.slow

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"
EVERYTHING = bool(os.environ.get("ALBERT_TF_EVERY_TPU"))
TOPOLOGIES = ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2")


def pairs():
    """Returns pairs of a task and a TPU in which each of both occurs, or all.

    What a TPU may not take are operations of the encoder, which all tasks share; they differ in their heads.
    """
    if EVERYTHING:
        return list(itertools.product(sorted(TASKS), TOPOLOGIES))
    return list(zip(sorted(TASKS), itertools.cycle(TOPOLOGIES)))


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
def compiled(config, name, batch_size=8, max_seq_length=128, topology="v5e:2x2", num_replicas=1, **options):
    """Returns what a step takes."""
    options.setdefault("optimizer", "adamw")  # compiles in less time than LAMB
    objective = planned_objective(name, config)
    program = lower_step(objective, batch_size, max_seq_length, num_replicas=num_replicas, **options)
    return compile_program(program, topology, num_replicas)


def counted_flops(name, config, batch_size=8):
    """Returns what an objective says that some examples of 128 pieces take."""
    objective = planned_objective(name, config)
    return objective.flops(with_batch_size(objective.batch_spec(128), batch_size))


# Every block is the same; the last one, which computes what is read alone, and one before it stand for all. The figures
# of all twelve blocks of a base model, in docs/performance.md, come from benchmarks.tpu_step.
BLOCKS = SMALL.replace(num_hidden_layers=2)


def test_step_stays_as_small_as_it_is():
    step = compiled(BLOCKS, "albert")
    # Versions of the compiler differ a little.
    assert step.bytes_accessed < 114e6
    assert step.temporary_bytes < 3.9e6
    assert step.flops < 2.13e9


def test_classifier_that_aligns_pairs_compiles_and_counts_right():
    config = SMALL.replace(classifier_pooling="aligned")
    step = compiled(config, "classify", attention="plain")
    counted = counted_flops("classify", config)
    assert counted <= step.flops < 1.2 * counted


def test_long_constants_of_booleans_are_spelled():
    """The compiler's library reads packed bits in another way."""

    def first_of_16(values):
        return tf.where((tf.range(256) % 16 < 1)[:, None], values, 0.0)

    program = lower(first_of_16, [tf.zeros([256, 8])])
    rows = [number % 16 < 1 for number in range(256)]
    assert any(json.dumps(shaped) in program for shaped in (rows, [[row] for row in rows]))
    assert compile_program(program, "v5e:2x2").argument_bytes > 0


DISENTANGLED = {
    "relative_attention": "p2c|c2p",
    "position_buckets": 64,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "pooler": False,
    "type_vocab_size": 0,
}
# Each with what else a model may have.
FURTHER = {
    "causal": {"is_causal": True},
    "entities": {"num_hidden_layers": 2, **KNOWS_ENTITIES},
    "squad": {"question_alignment": "words"},
    "squad_v2": {"question_alignment": "words"},
    "tag": {"character_ngrams": True},
    "electra": DISENTANGLED,
}


@pytest.mark.parametrize("name", sorted({*planned_names()} - {"distil"}))
def test_step_of_every_objective_and_task_is_a_program_for_xla(name):
    objective = planned_objective(name, SMALL.replace(**FURTHER.get(name, {})))
    optimizer = "muon" if name == "roberta" else "adamw"
    assert "stablehlo" in lower_step(objective, 8, 128, optimizer)


def distilled(tmp_path, kind, **changes):
    """Returns the objective of a student of two blocks and a teacher of four."""
    teacher = SMALL.replace(num_hidden_layers=4, sharing="none", **changes)
    (tmp_path / "albert_config.json").write_text(json.dumps(teacher.to_dict()))
    return planned_objective("distil", BLOCKS, settings={"teacher": str(tmp_path), "distillation": kind})


def test_student_and_teacher_compile_and_count_right(tmp_path):
    objective = distilled(tmp_path, "relations")
    step = compile_program(lower_step(objective, 8, 128, "adamw", attention="plain"), "v5e:2x2")
    counted = objective.flops(with_batch_size(objective.batch_spec(128), 8))
    assert counted <= step.flops < 1.5 * counted


@pytest.mark.parametrize(("kind", "changes"), [("logits", {}), ("layers", {"hidden_size": 256})])
def test_other_ways_of_distilling_are_programs_for_xla(kind, changes, tmp_path):
    assert "stablehlo" in lower_step(distilled(tmp_path, kind, **changes), 8, 128, "adamw", attention="plain")


def test_entities_compile_and_count_right():
    config = BLOCKS.replace(**KNOWS_ENTITIES)
    counted = counted_flops("entities", config)
    assert counted <= compiled(config, "entities", attention="plain").flops < 1.1 * counted


def test_disentangled_attention_compiles_and_gathers_nothing_for_pairs_of_pieces():
    config = BLOCKS.replace(**DISENTANGLED)
    step = compiled(config, "roberta")
    assert not re.search(r"\[8,2,128,128\]\S* (?:gather|scatter|dynamic-slice)\(", step.text)
    # Putting scores in their place is a product, too, which is not counted.
    placing = 4 * 2 * 2 * 8 * config.num_attention_heads * 128 * 128 * 128
    counted = counted_flops("roberta", config)
    assert counted + placing <= step.flops < 1.1 * (counted + placing)
    assert step.bytes_accessed < 242e6


@pytest.mark.parametrize(("name", "topology"), pairs())
def test_predictions_compile_for_every_tpu(name, topology):
    task, strategy = TASKS[name](SMALL), ReplicaStrategy(1, runs_pallas_kernels=False)
    with strategy.scope():
        models = task.make_models(attention="plain", dtype="mixed_bfloat16")
    batch = zeros(with_batch_size(task.batch_spec(128), 8))

    def predict(*values):
        return strategy.run(lambda given: task.outputs(given, **models), args=(dict(zip(batch, values)),))

    program = lower(predict, list(batch.values()))
    assert compile_program(program, topology).output_bytes > 0


def test_replicas_add_their_gradients_up():
    assert "all_reduce" in lower_step(planned_objective("albert", SMALL), 8, 128, "adamw", num_replicas=256)


def test_program_that_xla_can_not_write_down_is_compiled_all_the_same():
    config = AlbertConfig.from_json_file(CONFIGS / "albert_demo.json").replace(num_hidden_layers=1)
    step = compiled(config, "albert", 16, topology="v5p:2x2x1", num_replicas=4)
    assert step.temporary_bytes > 0 and step.text is None


def test_rematerialization_computes_again_what_is_not_kept():
    plain, block = (compiled(BLOCKS, "albert", attention="plain", **options) for options in ({}, {"remat": "block"}))
    assert 1.05 * plain.flops < block.flops


def test_flash_attention_keeps_no_scores():
    plain, flash = (compiled(BLOCKS, "albert", **options) for options in ({"attention": "plain"}, {}))
    assert "tpu_custom_call" in flash.text and "tpu_custom_call" not in plain.text
    assert "[8,2,128,128]" in plain.text and "[8,2,128,128]" not in flash.text
    assert flash.bytes_accessed < plain.bytes_accessed


@pytest.mark.parametrize(("topology", "dtype"), [("v4:2x2x1", "float32"), ("v6e:2x2", "mixed_bfloat16")])
def test_flash_attention_compiles_for_other_tpus(topology, dtype):
    config = SMALL.replace(max_position_embeddings=256, attention_probs_dropout_prob=0.1)
    assert "tpu_custom_call" in compiled(config, "albert", 2, 256, topology, dtype=dtype).text


def test_causal_attention_among_documents_writes_nothing_for_each_pair_of_pieces():
    gpt = {"is_causal": True, "norm_position": "pre", "language_model_head": "tied", "pooler": False}
    config = SMALL.replace(
        max_position_embeddings=512, intermediate_size=256, attention_probs_dropout_prob=0.1, type_vocab_size=0, **gpt
    )
    step = compiled(config, "causal", 2, 512)
    assert "tpu_custom_call" in step.text and "512,512]" not in step.text


def test_dropout_keeps_no_masks():
    dropping = BLOCKS.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    without, with_dropout = (compiled(config, "albert") for config in (BLOCKS, dropping))
    assert with_dropout.temporary_bytes < 1.2 * without.temporary_bytes
    assert with_dropout.bytes_accessed < 1.15 * without.bytes_accessed


def test_operations_that_the_compiler_leaves_out_are_known_and_logits_never_held_all_at_once():
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
        step = compile_program(lower(train, [states, table, tf.zeros([vocab_size]), *rows]), "v5e:2x2")
        if num_rows > 4096:
            assert step.temporary_bytes < 4 * num_rows * vocab_size
        return (step.flops + tied_cross_entropy.uncounted_flops(num_rows, embedding_size, vocab_size)) / num_rows

    assert flops(3 * 4096) == pytest.approx(flops(4096), rel=0.05)


def test_operation_that_no_tpu_knows_is_named():
    with pytest.raises(UnsupportedOperationError, match="AsString"):
        lower(lambda values: tf.strings.length(tf.strings.as_string(values)), [tf.ones([2])])


def test_shape_that_depends_on_values_is_refused():
    with pytest.raises(UnsupportedOperationError, match="a shape depends on values"):
        lower(lambda values: 2.0 * tf.unique(values)[0], [tf.ones([4])])


def test_weights_and_moments_are_updated_in_place_and_bfloat16_moves_fewer_bytes():
    dropping = SMALL.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    exact, half = (
        compiled(dropping, "albert", optimizer="lamb", dtype=dtype, attention="plain")
        for dtype in ("float32", "mixed_bfloat16")
    )
    objective = planned_objective("albert", dropping)
    spec, counted = with_batch_size(objective.batch_spec(128), 8), counted_flops("albert", dropping)
    state = 3 * 4 * objective.make_model().count_params()  # float32 weights and two moments
    batch = sum(values.numpy().nbytes for values in zeros(spec).values())
    for step in (exact, half):
        assert counted < step.flops < 1.25 * counted
        assert state <= step.alias_bytes < 1.02 * state
        assert step.output_bytes - step.alias_bytes < 4096
        assert state + batch <= step.argument_bytes < 1.02 * (state + batch)
    assert half.bytes_accessed < 0.95 * exact.bytes_accessed


def test_gradient_accumulation_takes_less_memory():
    # A v3 has little room on the chip itself, so that activations are in HBM.
    at_once, in_parts = (
        compiled(SMALL, "albert", 32, topology="v3:2x2", attention="plain", gradient_accumulation_steps=parts)
        for parts in (1, 4)
    )
    # Activations shrink to a quarter; sums of gradients, as large as the model, are what parts need in addition.
    assert 0 < in_parts.temporary_bytes < 0.5 * at_once.temporary_bytes


def test_loop_that_goes_on_with_texts_compiles_and_copies_no_cache():
    batch_size, length, config = 8, 128, SMALL.replace(num_hidden_layers=2, is_causal=True, pooler=False)
    options = GenerationOptions(top_k=50, top_p=0.9, repetition_penalty=1.2)
    kind, strategy = ChoiceKind.of(options, config.vocab_size), ReplicaStrategy(1)
    with strategy.scope():
        model = AlbertForPreTraining(config, dtype="mixed_bfloat16")
    everything = np.ones(config.vocab_size, bool)
    decoder, ones = Decoder(model, everything, everything, end_id=3), tf.ones([batch_size], tf.int32)
    ids, weights = tf.zeros([batch_size, length], tf.int32), tf.zeros([batch_size, length])
    prompts = Prompts(ids, ones, ones, tf.zeros([batch_size], tf.bool), weights)

    def decode(*values):
        with strategy.scope():
            return decoder.decode(Prompts(*values[:5]), ChoiceNumbers(*values[5:]), kind, 32)

    step = compile_program(lower(decode, [*prompts, *ChoiceNumbers.of(options)]), "v5e:2x2")
    assert " while(" in step.text
    # Keys and values of every application, in bfloat16: a step writes into them, and copies none.
    caches = config.num_hidden_layers * 2 * batch_size * length * config.hidden_size * 2
    assert 0 < step.temporary_bytes < 2 * caches
