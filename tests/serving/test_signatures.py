"""Exported models answer what the tasks themselves predict, from raw strings."""

import functools
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from asked_models import MAX_SEQ_LENGTH, answers_of, as_strings, predictions_of, traced, trained
from odd_texts import TEXTS
from tiny_config import tiny_config

import albert_tf
from albert_tf.asking.answers import ANSWERS
from albert_tf.base.errors import InputError
from albert_tf.finetuning import Entities, MultipleChoice, QuestionAnswering
from albert_tf.finetuning.tasks.question_windows import WindowOptions
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.exporting import trace_for_ids
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signature_base import compute_by_length
from albert_tf.serving.signatures import DEFAULT, make_signatures

LONG_TEXT = " ".join(TEXTS) * 3
QUESTIONS = ["무엇을 보고 싶은가?", "누구와 함께 가는가", "", "?", "끝은 어디인가", "어디"]


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.mark.slow
def test_windows_are_computed_a_few_at_a_time(config, sample_tokenizer, monkeypatch):
    """So that the memory that texts of 100,000 characters take is that of the few."""
    compute, counts = QuestionAnswering.outputs, []

    def outputs(task, batch, model):
        tf.py_function(lambda count: counts.append(int(count)), [tf.shape(batch["input_ids"])[0]], [])
        return compute(task, batch, model)

    asked = trained(QuestionAnswering(config, WindowOptions(4, 6)), sample_tokenizer)
    texts = [LONG_TEXT, LONG_TEXT[40:], *TEXTS]
    questions = [*QUESTIONS, *QUESTIONS[:2]]
    expected = predictions_of(asked, list(zip(questions, texts)))
    monkeypatch.setattr(QuestionAnswering, "outputs", outputs)
    found = answers_of(asked)(questions, texts)
    assert [answer.decode() for answer in found["answer"]] == [prediction["text"] for prediction in expected]
    assert sum(counts) > 40 and max(counts) == 8


@pytest.fixture
def pretrained(config, sample_tokenizer):
    tf.keras.utils.set_random_seed(1)
    return TrainedModel(AlbertForPreTraining(config), sample_tokenizer, MAX_SEQ_LENGTH, None, "model.ckpt-1", {})


def test_pooler_that_says_nothing_of_a_text_is_not_asked(config, sample_tokenizer):
    for learnt, untrained, pools in (
        (config, [], True),
        (config, ["encoder/pooler/kernel", "encoder/pooler/bias"], False),
        (config.replace(is_causal=True), [], False),
        (config.replace(pooler=False), [], False),
    ):
        model = AlbertForPreTraining(learnt)
        asked = TrainedModel(model, sample_tokenizer, MAX_SEQ_LENGTH, None, "", {}, frozenset(untrained))
        expected = {"mean", "pooled"} if pools else {"mean"}
        assert set(traced(asked).structured_outputs) == expected
        expected = {"sequence_output", "pooled_output"} if pools else {"sequence_output"}
        assert set(trace_for_ids(asked).structured_outputs) == expected


@pytest.mark.slow
def test_masks_of_many_texts_are_guessed_a_few_texts_at_a_time(pretrained, monkeypatch):
    compute, counts = AlbertForPreTraining.call, []

    @functools.wraps(compute)
    def call(model, inputs, *args, **options):
        tf.py_function(lambda count: counts.append(int(count)), [tf.shape(inputs["input_ids"])[0]], [])
        return compute(model, inputs, *args, **options)

    texts = ["[MASK] " * (number % 5) + "영화 " * (number % 3) for number in range(20)]
    alone = answers_of(pretrained, "fill_mask")
    expected = [alone([text]) for text in texts]
    monkeypatch.setattr(AlbertForPreTraining, "call", call)
    found = answers_of(pretrained, "fill_mask")(texts)
    assert sum(counts) == 20 and max(counts) == 8
    assert found["guesses"].shape == found["probabilities"].shape == (20, 4, 10)
    for row, one in enumerate(expected):
        num_masks = row % 5
        np.testing.assert_array_equal(found["guesses"][row][:num_masks], one["guesses"][0])
        np.testing.assert_allclose(found["probabilities"][row][:num_masks], one["probabilities"][0], rtol=1e-4)
        assert set(found["guesses"][row][num_masks:].ravel()) <= {b""}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["answers", "entities"])
def test_no_text_gets_no_answer(config, sample_tokenizer, name):
    tagger = Entities(config.replace(character_ngrams=True), decoding="best_sequence")
    ask = answers_of(trained(tagger if name == "entities" else QuestionAnswering(config), sample_tokenizer))
    outputs = ask([], []) if name == "answers" else ask([])
    assert all(len(value) == 0 for value in outputs.values())


@pytest.mark.slow
def test_no_text_gets_no_embedding(pretrained):
    graphs = make_signatures(pretrained).trace()
    assert list(graphs) == [DEFAULT, "pieces", "fill_mask"]
    for graph in graphs.values():
        assert all(len(value) == 0 for value in graph(as_strings([])).values())


def test_model_that_chooses_can_not_be_exported(config, sample_tokenizer):
    with pytest.raises(InputError, match="fine-tuned for MultipleChoice can't be exported; "):
        make_signatures(trained(MultipleChoice(config), sample_tokenizer))


def batch_of(lengths, padded_to):
    ids = np.arange(len(lengths) * padded_to, dtype=np.int32).reshape([len(lengths), padded_to])
    mask = (np.arange(padded_to) < np.array(lengths, int).reshape([-1, 1])).astype(np.int32)
    return {"input_ids": tf.constant(ids * mask), "input_mask": tf.constant(mask)}


def outputs_of(batch):
    """Returns a number for each text, two for each piece, and how long the group is."""
    ids = tf.cast(batch["input_ids"], tf.float32)
    sizes = tf.fill([tf.shape(ids)[0]], tf.shape(ids)[1])
    return {"sum": tf.reduce_sum(ids, axis=1), "of_pieces": tf.stack([ids, -ids], axis=2), "length": sizes}


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_outputs_are_those_of_the_whole_batch(count):
    lengths = np.random.default_rng(count).integers(1, 30, count)
    batch = batch_of(lengths, max(lengths, default=2))
    # An export is traced for any number of texts of any length.
    specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in batch}
    traced = tf.function(lambda batch: compute_by_length(outputs_of, batch), autograph=False, input_signature=[specs])
    found, expected = traced(batch), outputs_of(batch)
    for name in ("sum", "of_pieces"):
        np.testing.assert_array_equal(found[name], expected[name])
    assert traced.get_concrete_function().structured_outputs["of_pieces"].shape.as_list() == [None, None, 2]
    # No text shares a group with much longer ones: in order of length, each group is as long as its longest.
    group_lengths = np.sort(found["length"])
    longest = [max(np.sort(lengths)[begin : begin + 8]) for begin in range(0, count, 8)]
    assert group_lengths.tolist() == np.repeat(longest, 8)[:count].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("model_format", ["saved_model", "litert"])
def test_answer_that_the_model_does_not_give_is_refused(export_classifier, tmp_path, model_format):
    if model_format == "litert":
        pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    folder = shutil.copytree(export_classifier(model_format), tmp_path / "served")
    [card] = folder.rglob("model_card.json")
    values = json.loads(card.read_text(encoding="utf-8"))
    for name in [*ANSWERS, "other"]:
        thresholds = {"thresholds": [0.5, 0.5]} if name == "labels" else {}
        card.write_text(json.dumps({**values, "answer": name, **thresholds}), encoding="utf-8")
        if name == "label" or (name == "labels" and model_format == "litert"):  # whose outputs look the same
            assert albert_tf.load(folder).predict(["좋다"])
            continue
        with pytest.raises(InputError) as error:
            albert_tf.load(folder).predict(["좋다"])
        assert "\n" not in str(error.value)
