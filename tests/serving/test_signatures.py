"""What exported models answer: the same as the tasks themselves predict, from raw strings, whatever the strings."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_config import tiny_config

from albert_tf.errors import InputError
from albert_tf.finetuning import (
    Classification,
    ConditionalQuestionAnswering,
    Entities,
    MultipleChoice,
    QuestionAnswering,
    Regression,
    runner,
)
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.question_answering.windows import WindowOptions
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.heads import mean_state
from albert_tf.modeling.layers import named_variables
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures import DEFAULT, make_signatures
from albert_tf.training.devices.strategy import strategy_of
from albert_tf.training.outputs import make_output_function

MAX_SEQ_LENGTH = 24
TEXTS = [
    "좋다",
    "정말 재미있고 배우들의 연기도 훌륭한 영화였다. 다시 보고 싶다! 친구들과 함께 한번 더 보러 갈 생각이다",
    "",
    "   \t ",
    "한글 한글 ㅋㅋㅋㅋ ㅠㅠ ＡＢＣ １２３ 👩‍🚀 é\u0301 \u200b끝",
    "\u0000 NUL \ufffd",
]
LONG_TEXT = " ".join(TEXTS) * 3
QUESTIONS = ["무엇을 보고 싶은가?", "누구와 함께 가는가", "", "?", "끝은 어디인가", "어디"]


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


def trained(task, tokenizer, seed=1):
    tf.keras.utils.set_random_seed(seed)
    model = task.make_model()
    return TrainedModel(model, tokenizer, MAX_SEQ_LENGTH, task, "model.ckpt-1", {})


def predictions_of(asked, inputs):
    """Returns what the task itself predicts."""
    task = asked.task
    examples = task.examples_of(inputs)
    features = task.encode(examples, asked.tokenizer, MAX_SEQ_LENGTH)
    encoded = runner.EncodedFile("", examples, features, MAX_SEQ_LENGTH)
    compute = make_output_function(
        strategy_of(named_variables(asked.model)), lambda batch: task.outputs(batch, asked.model)
    )
    return runner.compute_predictions(task, encoded, 4, lambda _, dataset: compute(dataset))


def answers_of(asked):
    """Returns the traced function of the default signature, from lists of texts to arrays."""
    signature = make_signatures(asked).trace()[DEFAULT]
    return lambda *texts: {name: value.numpy() for name, value in signature(*map(as_strings, texts)).items()}


def as_strings(texts):
    return tf.constant([text.encode() for text in texts], tf.string, shape=[len(texts)])


def test_labels_are_those_that_the_task_predicts(config, sample_tokenizer):
    asked = trained(Classification(config, ("나쁨", "좋음", "보통")), sample_tokenizer)
    outputs = answers_of(asked)(TEXTS)
    for row, expected in enumerate(predictions_of(asked, TEXTS)):
        assert outputs["label"][row].decode() == expected["label"]
        assert [label.decode() for label in outputs["labels"][row]] == list(expected["probabilities"])
        np.testing.assert_allclose(outputs["probabilities"][row], list(expected["probabilities"].values()), rtol=1e-5)
        assert outputs["probability"][row] == outputs["probabilities"][row].max()


@pytest.mark.parametrize("pooling", ["first", "aligned"])
def test_pairs_get_the_numbers_that_the_task_predicts(config, sample_tokenizer, pooling):
    files = DataFiles(text_pair_column="other", metrics=("pearson",), is_regression=True)
    asked = trained(Regression(config.replace(classifier_pooling=pooling), files), sample_tokenizer)
    found = answers_of(asked)(TEXTS, TEXTS[::-1])["score"]
    expected = [prediction["score"] for prediction in predictions_of(asked, list(zip(TEXTS, TEXTS[::-1])))]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


HEADS = [QuestionAnswering, ConditionalQuestionAnswering]


def assert_same_answers(asked, questions, contexts, ask):
    outputs = ask(questions, contexts)
    for row, expected in enumerate(predictions_of(asked, list(zip(questions, contexts)))):
        found = tuple(outputs[name][row] for name in ("begin", "end"))
        assert (outputs["answer"][row].decode(), *found) == (
            expected["text"],
            *(-1 if expected[name] is None else expected[name] for name in ("begin", "end")),
        ), contexts[row]
        if expected["nbest"]:
            assert outputs["score"][row] == pytest.approx(expected["nbest"][0]["score"], rel=1e-4, abs=1e-4)
        if "null_odds" in expected:
            assert outputs["null_odds"][row] == pytest.approx(expected["null_odds"], rel=1e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("may_be_unanswerable", [False, True])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("alignment", ["none", "words"])
def test_answers_are_those_that_the_task_predicts(config, sample_tokenizer, head, may_be_unanswerable, alignment):
    config = config.replace(question_alignment=alignment)
    task = head(config, WindowOptions(4, 6), may_be_unanswerable=may_be_unanswerable)
    for seed in range(2):
        asked = trained(task, sample_tokenizer, seed)
        if asked.model.question_alignment is not None:  # a new one does nothing
            kernel = asked.model.question_alignment.mix.kernel
            kernel.assign(np.random.default_rng(seed).normal(size=kernel.shape, scale=0.3))
        ask = answers_of(asked)
        assert_same_answers(asked, QUESTIONS, TEXTS, ask)
        assert_same_answers(asked, QUESTIONS[:1], [LONG_TEXT], ask)


def assert_same_entities(asked, texts, ask):
    outputs = ask(texts)
    for row, (text, expected) in enumerate(zip(texts, predictions_of(asked, texts))):
        found = [
            {"type": kind.decode(), "begin": begin, "end": end, "text": part.decode()}
            for kind, begin, end, part in zip(*(outputs[name][row] for name in ("types", "begins", "ends", "texts")))
            if kind
        ]
        assert found == expected["entities"], text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["characters", "words"])
def test_entities_are_those_that_the_task_predicts(config, sample_tokenizer, form):
    for seed in range(4):
        asked = trained(Entities(config, ("PS", "LC"), form), sample_tokenizer, seed)
        assert_same_entities(asked, [*TEXTS, LONG_TEXT], answers_of(asked))


UNUSUAL = "가각힣ㄱㅏ\u1100\u1161\u11a8\u0301é ＡÀ\u200d👩🚀\ufe0f\u0000\t\u3000\u202e\u05d0İς.,!a1"
STRINGS = st.text(st.one_of(st.sampled_from(UNUSUAL), st.characters(exclude_categories=["Cs"])), max_size=60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["characters", "words", *HEADS])
def test_any_string_is_answered_as_by_the_task(config, sample_tokenizer, kind):
    is_tagger = isinstance(kind, str)
    task = Entities(config, ("PS", "LC"), kind) if is_tagger else kind(config, WindowOptions(4, 6))
    asked = trained(task, sample_tokenizer)
    ask = answers_of(asked)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(STRINGS, min_size=1, max_size=8))
    def check(texts):
        if is_tagger:
            assert_same_entities(asked, texts, ask)
        else:
            assert_same_answers(asked, texts[::-1], texts, ask)

    check()


@pytest.fixture
def pretrained(config, sample_tokenizer):
    tf.keras.utils.set_random_seed(1)
    return TrainedModel(AlbertForPreTraining(config), sample_tokenizer, MAX_SEQ_LENGTH, None, "model.ckpt-1", {})


def features_of(texts, tokenizer):
    """Returns what the model reads, encoded by Python."""
    rows = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    length = max(map(len, rows))
    ids = np.array([row + [0] * (length - len(row)) for row in rows], np.int32)
    mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in rows], np.int32)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}


def test_texts_get_their_embeddings(pretrained, sample_tokenizer):
    texts = [TEXTS[0], TEXTS[4][:12], ""]
    batch = features_of(texts, sample_tokenizer)
    outputs = pretrained.model.encoder(batch)
    found = make_signatures(pretrained).trace()[DEFAULT](as_strings(texts))
    mean = mean_state(outputs["sequence_output"], tf.constant(batch["input_mask"]))
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["pooled"], outputs["pooled_output"], rtol=1e-4, atol=1e-5)


def test_pieces_get_their_embeddings_and_places(pretrained, sample_tokenizer):
    texts = [TEXTS[0], TEXTS[4][:12], ""]
    batch = features_of(texts, sample_tokenizer)
    states = pretrained.model.encoder(batch)["sequence_output"]
    found = make_signatures(pretrained).trace()["pieces"](as_strings(texts))
    np.testing.assert_allclose(found["embeddings"], states, rtol=1e-4, atol=1e-5)
    for row, encoding in enumerate(sample_tokenizer.encode_batch(texts)):
        count = len(encoding.ids)
        assert [piece.decode() for piece in found["pieces"].numpy()[row]][:count] == encoding.tokens
        assert set(found["pieces"].numpy()[row][count:]) <= {b""}
        places = zip(found["begins"].numpy()[row].tolist(), found["ends"].numpy()[row].tolist())
        assert list(places)[:count] == encoding.offsets


def test_masks_get_the_most_probable_pieces(pretrained, sample_tokenizer):
    texts = ["정말 [MASK]", "[MASK] 영화 [MASK]", "없다"]
    found = make_signatures(pretrained).trace()["fill_mask"](as_strings(texts))
    guesses, probabilities = found["guesses"].numpy(), found["probabilities"].numpy()
    assert guesses.shape == probabilities.shape == (3, 2, 10)
    ids = sample_tokenizer.encode("정말").ids
    ids.insert(-1, sample_tokenizer.vocabulary.id_of("[MASK]"))
    logits = pretrained.model({"input_ids": tf.constant([ids])})["masked_lm_logits"][0, -2]
    expected, best = tf.math.top_k(tf.nn.softmax(logits), 10)
    assert [piece.decode() for piece in guesses[0, 0]] == [sample_tokenizer.vocabulary.pieces[id] for id in best]
    np.testing.assert_allclose(probabilities[0, 0], expected, rtol=1e-4)
    for nothing in ((0, 1), (2, 0), (2, 1)):
        assert set(guesses[nothing]) == {b""} and not probabilities[nothing].any()
    assert all(guesses[1].ravel())


@pytest.mark.parametrize("name", ["labels", "answers", "entities"])
def test_no_text_gets_no_answer(config, sample_tokenizer, name):
    tasks = {"labels": Classification(config), "answers": QuestionAnswering(config), "entities": Entities(config)}
    ask = answers_of(trained(tasks[name], sample_tokenizer))
    outputs = ask([], []) if name == "answers" else ask([])
    assert all(len(value) == 0 for value in outputs.values())


def test_model_that_chooses_can_not_be_exported(config, sample_tokenizer):
    with pytest.raises(InputError, match="fine-tuned for MultipleChoice can't be exported; "):
        make_signatures(trained(MultipleChoice(config), sample_tokenizer))
