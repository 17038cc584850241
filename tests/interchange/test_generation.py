"""Greedy text of converted models against `generate` of transformers, with the same weights."""

import pytest
from huggingface_conversion import randomized, write_word_pieces
from test_gpt2 import BERT, GPT2

import albert_tf
from albert_tf.serving.text_generator import continuation_text, encode_prompts, may_come
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_to_trace")]

NUM_POSITIONS, MAX_PIECES = 48, 12
SYLLABLES = "가나다라마바사아자차카타"
PIECES = [*SPECIAL_TOKENS, *SYLLABLES, *(f"##{each}" for each in SYLLABLES), "파"]
TEXTS = ["가나 다", "라", "", "가나다라 마바사", "타카 차자 아사 바 "]


def gpt2(transformers):
    config = transformers.GPT2Config(**{**GPT2, "n_positions": NUM_POSITIONS, "n_layer": 2})
    return transformers.GPT2LMHeadModel(config)


def bert_decoder(transformers):
    config = transformers.BertConfig(**{**BERT, "max_position_embeddings": NUM_POSITIONS, "num_hidden_layers": 2})
    return transformers.BertLMHeadModel(config)


@pytest.mark.parametrize(("make", "repetition_penalty"), [(gpt2, 1.4), (bert_decoder, 1.0)])
def test_greedy_text_is_that_of_transformers(transformers, tmp_path, make, repetition_penalty):
    import torch

    theirs = randomized(make(transformers))
    theirs.save_pretrained(tmp_path)
    write_word_pieces(tmp_path, PIECES)
    model = albert_tf.load(tmp_path)
    assert model.abilities == ("generate", "score", "choose", "encode", "similarity")
    found = model.generate(TEXTS, MAX_PIECES, temperature=0, repetition_penalty=repetition_penalty)
    vocabulary = model.tokenizer.vocabulary
    never = [number for number, allowed in enumerate(may_come(model.tokenizer)) if not allowed]
    for text, ids, answer in zip(TEXTS, encode_prompts(model.tokenizer, TEXTS), found):
        # After a space a word begins, which transformers can say of all pieces alone, and not of the first.
        if text != text.rstrip() or not text:
            continue
        input_ids = torch.tensor(ids).long()[None]
        generated = theirs.generate(
            input_ids,
            attention_mask=torch.ones_like(input_ids),
            max_new_tokens=MAX_PIECES,
            do_sample=False,
            num_beams=1,
            repetition_penalty=repetition_penalty,
            suppress_tokens=never,
            eos_token_id=vocabulary.id_of("[SEP]"),
            pad_token_id=vocabulary.id_of("[PAD]"),
        )[0, len(ids) :].tolist()
        new_ids = [each for each in generated if each != vocabulary.id_of("[SEP]")]
        assert answer["continuation"] == continuation_text(model.tokenizer, text, ids, new_ids)
        assert answer["num_pieces"] == len(new_ids)
        assert answer["stopped_by"] == ("document" if len(new_ids) < len(generated) else "max_pieces")
