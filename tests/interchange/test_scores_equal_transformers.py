"""Scores of texts are those of a loop over transformers' own models, one mask and one text at a time."""

import math
import re
from itertools import chain

import pytest
from huggingface_conversion import randomized, write_word_pieces

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

SYLLABLES = "가나다라마바사아자차카타파하"
PIECES = [*SPECIAL_TOKENS, *SYLLABLES, *(f"##{each}" for each in SYLLABLES), ".", "!"]
SIZES = {
    "vocab_size": len(PIECES),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
TEXTS = ["가나다 라마바사.", "하", "자 차카 타파하가나 다!! 라", "나 다 라 마.", "바사아자차카타파하가나다라마바"]
ONE_PIECE_WORDS = "나 다 라 마."

pytestmark = pytest.mark.slow


@pytest.fixture
def load(tmp_path):
    """Saves a model of theirs, with a vocabulary of syllables, and loads it as ours."""

    def save_and_load(theirs):
        theirs.save_pretrained(tmp_path)
        write_word_pieces(tmp_path, PIECES)
        return albert_tf.load(tmp_path)

    return save_and_load


def words_of(text):
    """Returns the ids of the pieces of each word; here every syllable is a piece, and so is every mark."""
    words = re.findall(r"\w+|[^\w\s]", text)
    return [
        [PIECES.index(character if place == 0 else f"##{character}") for place, character in enumerate(word)]
        for word in words
    ]


def log_probability(theirs, ids, position, label):
    import torch

    with torch.no_grad():
        logits = theirs.double()(input_ids=torch.tensor([ids])).logits[0, position]
    return float(logits[label] - torch.logsumexp(logits, dim=0))


def pseudo_log_likelihood(theirs, text, masks_rest_of_word):
    """As Salazar et al. (2020) and Kauf and Ivanova (2023) describe it."""
    cls, sep, mask = (PIECES.index(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
    words, total = words_of(text), 0.0
    for number, word in enumerate(words):
        for place, piece in enumerate(word):
            rest = [mask] * len(word[place + 1 :]) if masks_rest_of_word else word[place + 1 :]
            before = [cls, *chain(*words[:number]), *word[:place]]
            ids = [*before, mask, *rest, *chain(*words[number + 1 :]), sep]
            total += log_probability(theirs, ids, len(before), piece)
    return total


def test_masked_model_gives_the_pseudo_log_likelihood(transformers, load):
    theirs = randomized(transformers.BertForMaskedLM(transformers.BertConfig(**SIZES)))
    model = load(theirs)
    by_method = {}
    for method, masks_rest_of_word in (("within_word", True), ("piece", False)):
        found = by_method[method] = model.score(TEXTS, method)
        expected = [pseudo_log_likelihood(theirs, text, masks_rest_of_word) for text in TEXTS]
        assert [each["score"] for each in found] == pytest.approx(expected, abs=1e-4)
    assert by_method["within_word"] == model.score(TEXTS)
    same = [TEXTS.index(ONE_PIECE_WORDS), TEXTS.index("하")]
    differences = [abs(first["score"] - second["score"]) for first, second in zip(*by_method.values())]
    assert [difference == 0 for difference in differences] == [row in same for row in range(len(TEXTS))]
    assert max(differences) > 0.1


def test_causal_model_gives_the_log_likelihood(transformers, load):
    import torch

    theirs = randomized(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=len(PIECES), n_positions=40, n_embd=32, n_layer=2, n_head=4)
        )
    )
    model = load(theirs)
    assert model.encode(["가나 다", "라"], pooling="last").shape == (2, 32)
    with pytest.raises(InputError, match="was not pre-trained to fill in what is missing"):
        model.fill_mask(["가 [MASK]"])
    found = model.score(TEXTS)
    for text, each in zip(TEXTS, found, strict=True):
        ids = torch.tensor([[PIECES.index("[CLS]"), *chain(*words_of(text))]])
        with torch.no_grad():
            loss = theirs.double()(input_ids=ids, labels=ids).loss.item()  # the mean over all but [CLS]
        assert each["score"] == pytest.approx(-loss * (ids.shape[1] - 1), abs=1e-4)
        assert each["num_pieces"] == ids.shape[1] - 1 and math.isfinite(each["score"])
