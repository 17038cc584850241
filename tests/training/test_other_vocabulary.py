"""A model that goes on with another vocabulary computes what it did, wherever both spell a text alike."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.tokenization import KoreanWordPieceTokenizer, TokenizerLayer
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary, config_for_vocabulary
from albert_tf.training.run_folder.restoring import check_tokenizer, load_init_checkpoint

LETTERS = ["영", "화", "##화", "##영", "재", "미"]
PAD_FIRST = KoreanWordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]))
CLS_FIRST = KoreanWordPieceTokenizer(Vocabulary(["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", *LETTERS[::-1], "재미"]))
CONFIG = tiny_config(len(PAD_FIRST), hidden_size=8, intermediate_size=8, max_position_embeddings=16)
ROBERTA = CONFIG.replace(model_type="roberta", sharing="none", type_vocab_size=1)


def write_model(folder, config, tokenizer):
    """Writes a model with random weights, and returns it."""
    tf.keras.utils.set_random_seed(3)
    model = AlbertForPreTraining(config)
    for variable in model.trainable_variables:
        variable.assign(tf.random.normal(variable.shape, stddev=0.3))
    values = {f"model/{name}": value.numpy() for name, value in named_variables(model).items()}
    write_checkpoint(str(folder / "model.ckpt-0"), {**values, "global_step": 0})
    (folder / "albert_config.json").write_text(json.dumps(config.to_dict()))
    if tokenizer is not None:
        tokenizer.save(folder)
    return model


def masked_lm_logits(model, tokenizer, text, length):
    inputs = TokenizerLayer(tokenizer, length)(text)
    states = model.encoder(inputs)["sequence_output"][:, :5]
    return model.masked_lm_head(
        tf.reshape(states, [-1, states.shape[-1]]), model.encoder.embeddings.word_embeddings
    ).numpy()


@pytest.mark.parametrize(
    "config, known, new",
    [
        (CONFIG, PAD_FIRST, CLS_FIRST),
        (ROBERTA.replace(position_offset=1), PAD_FIRST, CLS_FIRST),
        (ROBERTA.replace(position_offset=2, vocab_size=len(CLS_FIRST)), CLS_FIRST, PAD_FIRST),
    ],
    ids=["albert", "pad_goes_to_1", "pad_goes_to_0"],
)
def test_what_both_vocabularies_spell_alike_is_computed_alike(tmp_path, config, known, new):
    before = write_model(tmp_path, config, known)
    now = config_for_vocabulary(config, str(tmp_path), new)
    assert now.vocab_size == len(new) and now.longest_sequence == config.longest_sequence
    after = AlbertForPreTraining(now)
    change = OtherVocabulary.of_checkpoint(str(tmp_path), new, now)
    line, missing = load_init_checkpoint(str(tmp_path), named_variables(after), vocabulary=change)
    assert not missing and f"the vocabulary is not the one of {tmp_path}/tokenizer.json: of {len(new)} pieces " in line
    expected = masked_lm_logits(before, known, "영화 재", 10)
    found = masked_lm_logits(after, new, "영화 재", 10)
    both = [piece for piece in new.vocabulary.pieces if piece in known.vocabulary]
    columns = [[each.vocabulary.id_of(piece) for piece in both] for each in (known, new)]
    np.testing.assert_allclose(found[:, columns[1]], expected[:, columns[0]], rtol=1e-5, atol=1e-5)
    # A vocabulary that were not carried over, or positions that stayed where they were, would show.
    assert np.abs(found[:, : len(both)] - expected[:, : len(both)]).max() > 0.1


def test_the_same_tokenizer_changes_nothing(tmp_path):
    write_model(tmp_path, CONFIG, PAD_FIRST)
    assert config_for_vocabulary(CONFIG, str(tmp_path), PAD_FIRST) == CONFIG
    assert OtherVocabulary.of_checkpoint(str(tmp_path), PAD_FIRST, CONFIG) is None


def test_same_pieces_read_otherwise_are_no_other_vocabulary(tmp_path):
    write_model(tmp_path, CONFIG, PAD_FIRST)
    cased = KoreanWordPieceTokenizer(Vocabulary(PAD_FIRST.vocabulary.pieces), lower_case=False)
    assert OtherVocabulary.of_checkpoint(str(tmp_path), cased, CONFIG) is None
    with pytest.raises(InputError, match="was trained with that tokenizer, which is not the one of"):
        check_tokenizer(cased, str(tmp_path))


def test_tokenizer_that_is_not_of_the_checkpoint_beside_it_is_refused(tmp_path):
    write_model(tmp_path, CONFIG.replace(vocab_size=15), PAD_FIRST)
    with pytest.raises(InputError, match=r"vocab_size in `albert_config_file` is 15, but .* has 11 pieces"):
        OtherVocabulary.of_checkpoint(str(tmp_path), CLS_FIRST, CONFIG)


def test_checkpoint_without_its_tokenizer_is_refused_for_a_vocabulary_of_another_size(tmp_path):
    write_model(tmp_path, CONFIG, None)
    with pytest.raises(
        InputError, match=r"has 11 pieces, the vocabulary has 12, and there is no tokenizer\.json beside"
    ):
        config_for_vocabulary(CONFIG, str(tmp_path), CLS_FIRST)
