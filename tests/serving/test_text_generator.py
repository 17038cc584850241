"""Texts that go on: they read on as text, are the same whatever else is asked, and are refused where they can't."""

import numpy as np
import pytest
import sentencepiece_training

from albert_tf.base.errors import InputError
from albert_tf.serving.decoder import GenerationOptions
from albert_tf.serving.text_generator import TextGenerator, continuation_text, encode_prompts, may_come
from albert_tf.tokenization import KoreanWordPieceTokenizer, SentencePieceModel, SentencePieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

WORDS = "이 영화 ##는 ##를 정말 재미 ##있 ##다 . ! , ( ) ^ 보 ##고 10 점"
END_OF_WORD = "이 이_ 영화 영화_ 는 는_ 정말_ 재미 있 다 다_ . ._ 가 가_ 좋"
NUM_POSITIONS = 32


@pytest.fixture(scope="module")
def continuation():
    return KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "[unused0]", *WORDS.split()]))


@pytest.fixture(scope="module")
def end_of_word():
    pieces = [*SPECIAL_TOKENS, *END_OF_WORD.split()]
    return KoreanWordPieceTokenizer(Vocabulary(pieces), wordpiece_scheme="end_of_word")


@pytest.fixture(scope="module")
def sentencepiece(sample_lines):
    pytest.importorskip("sentencepiece")
    content = sentencepiece_training.train_model(sample_lines, 2000, normalization_rule_name="identity")
    return SentencePieceTokenizer(SentencePieceModel.from_bytes(content), strip_accents=False)


def reads_on(tokenizer, text, pieces):
    (prompt,) = encode_prompts(tokenizer, [text])
    return text + continuation_text(tokenizer, text, prompt, [tokenizer.vocabulary.id_of(piece) for piece in pieces])


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("이 영화", ["##는", "정말"], "이 영화는 정말"),
        ("이 영화", ["정말", "재미", "##있", "##다", "."], "이 영화 정말 재미있다."),
        ("이 영화 ", ["정말"], "이 영화 정말"),
        ("이  영화\n", ["정말"], "이  영화\n정말"),
        ("재미", ["##있", "##다", "!", "!"], "재미있다!!"),
        ("재미있다.", ["정말"], "재미있다. 정말"),
        ("재미있다 (", ["정말", ")"], "재미있다 (정말)"),
        ("재미있다^", ["^"], "재미있다^^"),
        ("", ["이", "영화", ","], "이 영화,"),
        ("이 쀍", ["영화", "##는"], "이 쀍 영화는"),
        ("이 영화", [], "이 영화"),
    ],
)
def test_pieces_of_the_continuation_scheme_read_on(continuation, text, pieces, expected):
    assert reads_on(continuation, text, pieces) == expected


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("이 영화", ["는_", "정말_", "재미", "있", "다", "."], "이 영화는 정말 재미있다."),
        ("이 영화 ", ["정말_", "재미"], "이 영화 정말 재미"),
        ("재미있다.", ["정말_"], "재미있다. 정말"),  # of the next sentence
        ("", ["이_", "영화"], "이 영화"),
    ],
)
def test_pieces_of_the_end_of_word_scheme_read_on(end_of_word, text, pieces, expected):
    assert reads_on(end_of_word, text, pieces) == expected


def test_space_behind_a_text_is_in_its_last_piece(end_of_word):
    texts = ["이 영화", "이 영화 ", "", " "]
    found = [[end_of_word.vocabulary.pieces[each] for each in ids] for ids in encode_prompts(end_of_word, texts)]
    assert found == [["[CLS]", "이_", "영화"], ["[CLS]", "이_", "영화_"], ["[CLS]"], ["[CLS]"]]


def test_pieces_of_sentencepiece_read_on(sentencepiece):
    pieces = sentencepiece.tokenize("오늘은 날씨가 맑습니다")
    for count in range(1, len(pieces)):
        before = "".join(pieces[:count]).replace("▁", " ").lstrip()
        assert reads_on(sentencepiece, before, pieces[count:]) == "오늘은 날씨가 맑습니다"
    place = next(place for place, piece in enumerate(pieces) if place and piece.startswith("▁"))
    assert reads_on(sentencepiece, "오늘은 ", pieces[place:]) == "오늘은 날씨가 맑습니다"
    assert reads_on(sentencepiece, "", pieces) == "오늘은 날씨가 맑습니다"


def test_prompts_are_documents_that_have_not_ended(continuation):
    """As the data for a causal model begin: [CLS] before the text, and no [SEP]."""
    (ids,) = encode_prompts(continuation, ["이 영화는"])
    assert [continuation.vocabulary.pieces[each] for each in ids] == ["[CLS]", "이", "영화", "##는"]


@pytest.mark.parametrize("tokenizer", ["continuation", "end_of_word", "sentencepiece"])
def test_what_stands_for_no_text_never_comes(tokenizer, request):
    tokenizer = request.getfixturevalue(tokenizer)
    allowed = may_come(tokenizer)
    reserved = {piece for piece in tokenizer.vocabulary.pieces if tokenizer.vocabulary.is_reserved(piece)}
    found = {piece for piece, is_allowed in zip(tokenizer.vocabulary.pieces, allowed) if not is_allowed}
    separator = tokenizer.vocabulary.pieces[tokenizer.vocabulary.id_of("[SEP]")]
    assert found == reserved - {separator} and separator in reserved and len(found) >= 4


@pytest.fixture(scope="module")
def generator(continuation, make_model, quick_to_trace):
    model = make_model(len(continuation), max_position_embeddings=NUM_POSITIONS)
    return TextGenerator(model, continuation)


# Seven texts, or eight: each way to choose is traced once for so many rows.
TEXTS = ["이 영화", "이 영화는 정말 재미있다", "", "정말 ", "보고 ", "이", "10점"]


def test_text_goes_on_as_it_does_alone(generator):
    options = GenerationOptions(max_pieces=12, top_p=0.95, seed=5)
    together = generator.generate(TEXTS, options, batch_size=16)
    assert generator.generate(TEXTS, options, batch_size=1) == together
    assert generator.generate([*TEXTS[::-1], "이 이"], options, batch_size=8)[:7] == together[::-1]
    for text, answer in zip(TEXTS, together):
        assert answer["text"] == text + answer["continuation"] and answer["text"].startswith(text)
        assert answer["num_pieces"] <= 12 and "[SEP]" not in answer["text"]
        assert (answer["num_pieces"] == 12) or answer["stopped_by"] == "document"
    assert generator.generate([], options, 4) == []


def test_seed_and_text_decide_what_is_drawn(generator):
    def found(seed, texts=TEXTS):
        options = GenerationOptions(max_pieces=12, temperature=3.0, top_p=0.99, seed=seed)
        return [answer["continuation"] for answer in generator.generate(texts, options, 8)]

    assert found(1) == found(1) and found(1) != found(2)
    same = found(1, ["이"] * 8)
    assert len(set(same)) == 1


def test_text_stops_at_the_last_position_and_says_so(generator):
    text = "이 " * (NUM_POSITIONS - 4)
    options = (GenerationOptions(top_p=0.95, seed=seed) for seed in range(8))
    found = [generator.generate([text], each, batch_size=1)[0] for each in options]
    assert {answer["stopped_by"] for answer in found} <= {"positions", "document"}
    assert {answer["num_pieces"] for answer in found if answer["stopped_by"] == "positions"} == {3}


def test_text_with_a_mask_is_refused_by_its_number(generator):
    for ask in (generator.check_room, lambda texts: generator.generate(texts, GenerationOptions(), 4)):
        with pytest.raises(
            InputError, match=r"input 1 contains \[MASK\], but texts are only continued at their ends; ta"
        ):
            ask(["이", "이 [MASK]"])


def test_text_without_room_is_refused_by_its_number(generator):
    generator.check_room(["이 " * (NUM_POSITIONS - 2), ""])
    text = "이 " * (NUM_POSITIONS - 1)
    for ask in (generator.check_room, lambda texts: generator.generate(texts, GenerationOptions(), 4)):
        with pytest.raises(InputError) as error:
            ask(["이", text])
        assert str(error.value) == (
            "input 1 has 31 pieces, which with [CLS] leave no room in the model's 32 positions for what comes after "
            "them; shorten it"
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["end_of_word", "sentencepiece"])
def test_other_tokenizers_go_on(name, request, make_model, quick_to_trace):
    tokenizer = request.getfixturevalue(name)
    generator = TextGenerator(make_model(len(tokenizer), 0.1), tokenizer)
    for answer in generator.generate(["이 영화", "이 영화 ", ""], GenerationOptions(max_pieces=8), 4):
        assert answer["text"].strip() and not set("▁_") & set(answer["text"])
        assert np.char.count(answer["text"], "  ") == 0
