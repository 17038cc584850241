"""Characters that a tokenizer removes change no entity and no answer, in Python or in the graph of an export."""

import re
import typing

import pytest
from asked_models import assert_same, graph_predictions_of, predictions_of, trained
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tiny_config import tiny_config

from albert_tf.finetuning import Entities, QuestionAnswering
from albert_tf.finetuning.question_answering.windows import WindowOptions
from albert_tf.tokenization import KoreanWordPieceTokenizer

pytestmark = pytest.mark.slow

NUM_TEXTS = 80
CONTROLS = "\x02\x1b"
REMOVED = CONTROLS + "\x00\u200b\ufeff\u200d\u200e\u2060\u00ad\ufffd"
ACCENTS = "\u0301\ufe0f"
KOREAN, ENGLISH = "김철수서울영화배우가나는에서 한국의   .,!ab", "the text of a model   is, we train.!"


class Inserted(typing.NamedTuple):
    """A text with characters put in; `places` says where each of the others stands."""

    plain: str
    text: str
    places: list[int]

    def kept_in(self, begin, end):
        """Returns the first and the last character of the plain text, spaces left out, in a span of the other."""
        found = [
            number
            for number, (character, place) in enumerate(zip(self.plain, self.places))
            if begin <= place < end and not character.isspace()
        ]
        return found[0], found[-1]


def inserted(kept, removed):
    """Returns a strategy of texts with characters that are removed, anywhere and several at once."""

    def insert(plain, insertions):
        characters = [(number, 1, character) for number, character in enumerate(plain)]
        characters += [(place % (len(plain) + 1), 0, character) for place, character in insertions]
        characters.sort(key=lambda each: each[:2])
        places = [place for place, (_, is_plain, _) in enumerate(characters) if is_plain]
        return Inserted(plain, "".join(character for *_, character in characters), places)

    insertions = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(removed)), min_size=1, max_size=12)
    return st.builds(insert, st.text(st.sampled_from(kept), min_size=1, max_size=40), insertions)


def before_words(text):
    """Returns a text with a zero-width space before each word, which SentencePiece takes for a space."""
    places = [match.end() - 1 for match in re.finditer("\u200b*[^\u200b]", re.sub(r"(\S+)", "\u200b\\1", text))]
    return Inserted(text, re.sub(r"(\S+)", "\u200b\\1", text), places)


class Kind(typing.NamedTuple):
    """A tokenizer, and texts that it reads as the plain ones."""

    tokenizer: typing.Any
    texts: list[Inserted]


@pytest.fixture(scope="module", params=["continuation", "end_of_word", "sentencepiece"])
def kind(request, sample_tokenizer):
    if request.param == "sentencepiece":  # other format characters are spaces to it
        tokenizer, kept, removed = request.getfixturevalue("english_tokenizer"), ENGLISH, CONTROLS + ACCENTS
    else:
        tokenizer = KoreanWordPieceTokenizer(sample_tokenizer.vocabulary, request.param, strip_accents=True)
        kept, removed = KOREAN, REMOVED + ACCENTS
    found = []

    @settings(max_examples=NUM_TEXTS, phases=[Phase.generate])
    @given(inserted(kept, removed))
    def collect(text):
        found.append(text)

    collect()
    found += [before_words(each.plain) for each in found]
    encoded = [tokenizer.encode_ids([getattr(each, name) for each in found]).to_list() for name in ("text", "plain")]
    texts = [each for each, ids, expected in zip(found, *encoded) if ids == expected]
    assert len(texts) > NUM_TEXTS
    return Kind(tokenizer, texts)


@pytest.fixture
def config(kind):
    return tiny_config(len(kind.tokenizer), initializer_range=0.5)


@pytest.mark.parametrize("form", ["words", "characters"])
def test_entities_stay_where_they_were(kind, config, form):
    asked = trained(Entities(config, ("PS", "LC"), form), kind.tokenizer)
    texts, plain_texts = [each.text for each in kind.texts], [each.plain for each in kind.texts]
    found, expected, count = predictions_of(asked, texts), predictions_of(asked, plain_texts), 0
    for each, prediction, plain in zip(kind.texts, found, expected):
        entities = prediction["entities"]
        assert [(entity["type"], *each.kept_in(entity["begin"], entity["end"])) for entity in entities] == [
            (entity["type"], entity["begin"], entity["end"] - 1) for entity in plain["entities"]
        ], each
        assert len(prediction["tags"]) - len(prediction.get("unread", [])) >= len(plain["tags"])
        for entity in entities:
            assert entity["text"] == each.text[entity["begin"] : entity["end"]]
            if form == "words":  # whole ones
                around = each.text[: entity["begin"]][-1:] + each.text[entity["end"] :][:1]
                assert not around.strip(), each
        count += len(entities)
    assert count > len(texts)
    assert_same(graph_predictions_of(asked)(texts), found, texts)


def test_answers_stay_where_they_were(kind, config):
    asked = trained(QuestionAnswering(config, WindowOptions(4, 6)), kind.tokenizer)
    texts, plain_texts = [each.text for each in kind.texts], [each.plain for each in kind.texts]
    questions = plain_texts[::-1]
    found = predictions_of(asked, list(zip(texts[::-1], texts)))
    for each, prediction, plain in zip(kind.texts, found, predictions_of(asked, list(zip(questions, plain_texts)))):
        assert (prediction["begin"] is None) == (plain["begin"] is None), each
        if plain["text"].strip():
            unchanged = Inserted(each.plain, each.plain, list(range(len(each.plain))))
            found_there = each.kept_in(prediction["begin"], prediction["end"])
            assert found_there == unchanged.kept_in(plain["begin"], plain["end"]), each
            assert prediction["text"] == each.text[prediction["begin"] : prediction["end"]]
    assert_same(graph_predictions_of(asked)(texts[::-1], texts), found, texts)
