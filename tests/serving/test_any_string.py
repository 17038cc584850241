"""Strings of all kinds: what exports answer is what Python's tokenizer and the tasks find, to a character.

Strings without a form in UTF-8 and bytes that are no UTF-8 end in no error either. ALBERT_TF_STRINGS=10000 asks about
so many.
"""

import json
import os
import random
import re

import numpy as np
import pytest
import tensorflow as tf
from asked_models import (
    MAX_SEQ_LENGTH,
    answers_of,
    as_strings,
    assert_same,
    cut,
    features_of,
    graph_predictions_of,
    predictions_of,
    trained,
)
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tiny_config import tiny_config

from albert_tf.base.files import replace_halves
from albert_tf.finetuning import Classification, Entities, QuestionAnswering
from albert_tf.finetuning.question_answering.windows import WindowOptions
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.heads import mean_state
from albert_tf.serving.loading import TrainedModel

pytestmark = pytest.mark.slow

NUM_STRINGS, TEXTS_AT_ONCE, NUM_BYTES_OF_LONG = int(os.environ.get("ALBERT_TF_STRINGS", 400)), 400, 9_000
SYLLABLES = "가각힣한글영화재미있다ㅋㅠ "
JAMO = "\u1100\u1112\u1161\u1175\u11a8\u11c2\u11a7ㄱㅎㅏㅣ\u3164\u302e "
RIGHT_TO_LEFT = "אבג\u05d0\u05b0ابت\u064b\u200f\u202e\u202c1a ."
OTHERS = "\ufeff\0\t\n\u3000\u0301é ＡÀ\u200d👩🚀❤\ufe0f\u20e3İς_,!a1漢\ufffd"
# Characters that are no characters yet may be some in the next version of Unicode.
ANY_CHARACTER = st.characters(exclude_categories=["Cs", "Cn"])
STRING = st.one_of(
    *(st.text(st.sampled_from(kind), max_size=60) for kind in (SYLLABLES, JAMO, RIGHT_TO_LEFT)),
    st.text(st.one_of(st.sampled_from(SYLLABLES + JAMO + RIGHT_TO_LEFT + OTHERS), ANY_CHARACTER), max_size=60),
)


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.fixture(scope="module")
def strings():
    """Different strings, the empty one among them, and NUL."""
    found = {"": None, "\0": None}

    # One at a time, for hypothesis draws few of what is large.
    @settings(max_examples=NUM_STRINGS + NUM_STRINGS // 5, phases=[Phase.generate])
    @given(STRING)
    def collect(text):
        found[text] = None

    collect()
    assert len(found) >= NUM_STRINGS
    return list(found)[:NUM_STRINGS]


@pytest.fixture(scope="module")
def long_strings():
    """Strings of 9 kB in UTF-8: of one kind of characters each, of all of them, and a single word."""
    draw = random.Random(0)
    kinds = [SYLLABLES, JAMO, RIGHT_TO_LEFT, SYLLABLES + JAMO + RIGHT_TO_LEFT + OTHERS]
    texts = ["".join(draw.choices(kind, k=NUM_BYTES_OF_LONG)) for kind in kinds]
    texts = [text.encode()[:NUM_BYTES_OF_LONG].decode("utf-8", "ignore") for text in texts]
    return [*texts, "가" * (NUM_BYTES_OF_LONG // 3)]


def batches(strings, long_strings):
    """Yields lists of texts to ask at once, of all strings."""
    yield long_strings
    for begin in range(0, len(strings), TEXTS_AT_ONCE):
        yield strings[begin : begin + TEXTS_AT_ONCE]


class Asked:
    """A model that is asked in both ways about lists of texts: of questions about contexts each text is both.

    Args:
        kind: The form of entities, "answers", or "labels".
    """

    def __init__(self, kind, config, tokenizer):
        self._reads_pairs = kind == "answers"
        if self._reads_pairs:
            self._model = trained(QuestionAnswering(config, WindowOptions(16, 6)), tokenizer, max_seq_length=48)
        elif kind == "labels":
            self._model = trained(Classification(config, ("나쁨", "좋음", "보통")), tokenizer)
        else:
            self._model = trained(Entities(config, ("PS", "LC"), kind), tokenizer)
        self._ask = graph_predictions_of(self._model)

    def predict(self, texts):
        return predictions_of(self._model, list(zip(texts[::-1], texts)) if self._reads_pairs else texts, 64)

    def check(self, texts, predictions):
        """Checks that the export's graph says the same."""
        assert_same(self._ask(*[texts[::-1], texts] if self._reads_pairs else [texts]), predictions, texts)


@pytest.fixture(scope="module", params=["labels", "characters", "words", "answers"])
def asked(request, config, sample_tokenizer):
    return Asked(request.param, config, sample_tokenizer)


def test_any_string_is_answered_as_by_the_task(asked, strings, long_strings):
    for texts in batches(strings, long_strings):
        asked.check(texts, asked.predict(texts))


@pytest.fixture(scope="module")
def pretrained(config, sample_tokenizer):
    tf.keras.utils.set_random_seed(1)
    return TrainedModel(AlbertForPreTraining(config), sample_tokenizer, MAX_SEQ_LENGTH, None, "model.ckpt-1", {})


def test_any_string_gets_its_embeddings_and_its_pieces(pretrained, sample_tokenizer, strings, long_strings):
    ask, embed = answers_of(pretrained, "pieces"), answers_of(pretrained)
    for texts in batches(strings, long_strings):
        found, embeddings, batch = ask(texts), embed(texts), features_of(texts, sample_tokenizer)
        outputs = pretrained.model.encoder(batch)
        mean = mean_state(outputs["sequence_output"], tf.constant(batch["input_mask"]))
        np.testing.assert_allclose(embeddings["mean"], mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(embeddings["pooled"], outputs["pooled_output"], rtol=1e-4, atol=1e-5)
        for row, encoding in enumerate(sample_tokenizer.encode_batch(texts)):
            tokens, count = cut(encoding.tokens), len(cut(encoding.tokens))
            assert [piece.decode() for piece in found["pieces"][row][:count]] == tokens, texts[row]
            assert list(zip(found["begins"][row], found["ends"][row]))[:count] == cut(encoding.offsets), texts[row]
            assert not any(found["pieces"][row][count:])


HALVES = st.text(st.sampled_from("\ud800\udbff\udc00\udfff" + SYLLABLES + OTHERS), max_size=40)


def texts_of(strategy):
    found = []

    @settings(max_examples=100, phases=[Phase.generate])
    @given(strategy)
    def collect(text):
        found.append(text)

    collect()
    return found


def test_half_a_surrogate_pair_is_no_character_and_no_error(asked):
    texts = texts_of(HALVES)
    assert sum(map(bool, map(re.compile("[\ud800-\udfff]").search, texts))) > 30
    # Where they are part of an answer, they stand there as in the text.
    predictions = json.loads(replace_halves(json.dumps(asked.predict(texts), ensure_ascii=False)))
    asked.check([replace_halves(text) for text in texts], predictions)


def test_bytes_that_are_no_text_are_read_as_tensorflow_decodes_them(asked):
    texts = [*texts_of(st.binary(max_size=40)), *(text.encode("utf-8", "surrogatepass") for text in texts_of(HALVES))]
    decoded = tf.strings.unicode_transcode(as_strings(texts), "UTF-8", "UTF-8").numpy()
    asked.check(texts, asked.predict([text.decode() for text in decoded]))
