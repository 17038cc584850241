"""The settings of fine-tuning where the user gives none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_config import tiny_config

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.finetuning import Classification
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.defaults import (
    choose_max_seq_length,
    default_character_ngrams,
    default_learning_rate,
    default_num_train_epochs,
    default_pooling,
    default_token_dropout,
    evaluation_period,
    finetuning_settings,
    has_much_to_keep,
    num_steps,
    with_default_dropout,
)
from albert_tf.finetuning.tasks.labelled_text import LabelledText
from albert_tf.finetuning.tasks.regression import Regression


@pytest.mark.parametrize(
    ("hidden_size", "random", "pretrained"),
    [(64, 5e-4, 1.5e-4), (256, 5e-4, 1.5e-4), (512, 1.2e-4, 1.2e-4), (768, 5e-5, 5e-5), (4096, 5e-5, 5e-5)],
)
def test_rate_is_the_originals_for_large_models_and_higher_for_small_ones(hidden_size, random, pretrained):
    config = tiny_config(100).replace(hidden_size=hidden_size)
    assert default_learning_rate(config, is_pretrained=False) == random
    assert default_learning_rate(config, is_pretrained=True) == pretrained


@pytest.mark.parametrize(("num_hidden_layers", "rate"), [(4, 5e-4), (12, 1.7e-4), (24, 8.3e-5)])
def test_deep_model_begins_from_random_weights_at_a_lower_rate(num_hidden_layers, rate):
    config = tiny_config(100).replace(hidden_size=256, num_hidden_layers=num_hidden_layers)
    assert default_learning_rate(config, is_pretrained=False) == rate
    assert default_learning_rate(config, is_pretrained=True) == 1.5e-4
    assert default_learning_rate(config, is_pretrained=False, highest=1e-3) == 5e-4
    for is_pretrained in (False, True):
        assert default_learning_rate(config.replace(classifier_pooling="aligned"), is_pretrained=is_pretrained) == 5e-4


def test_task_may_raise_the_rate_of_small_models():
    for hidden_size, rate in ((128, 1e-3), (256, 5e-4), (768, 5e-5)):
        config = tiny_config(100).replace(hidden_size=hidden_size)
        assert default_learning_rate(config, is_pretrained=True, highest=1e-3) == rate


@pytest.mark.parametrize(
    ("hidden_size", "pooling", "reads_pairs", "expected"),
    [
        (128, "mean", True, "aligned"),
        (768, "first", True, "first"),
        (128, "mean", False, "mean"),
        (128, "first", False, "first"),
        (128, "aligned", False, "mean"),
        (768, "aligned", True, "aligned"),
    ],
)
def test_small_models_align_pairs(hidden_size, pooling, reads_pairs, expected):
    config = tiny_config(100).replace(hidden_size=hidden_size, classifier_pooling=pooling)
    assert default_pooling(config, reads_pairs) == expected


def test_first_piece_of_a_causal_model_is_not_read():
    config = tiny_config(100).replace(hidden_size=768, classifier_pooling="first", is_causal=True)
    assert default_pooling(config, reads_pairs=True) == "last"
    assert default_pooling(config.replace(classifier_pooling="mean"), reads_pairs=True) == "mean"


def test_small_models_read_characters_and_large_ones_where_their_config_says_so():
    for hidden_size, reads_them, expected in ((256, False, True), (768, False, False), (768, True, True)):
        config = tiny_config(100).replace(hidden_size=hidden_size, character_ngrams=reads_them)
        assert default_character_ngrams(config) == expected


def test_what_told_replaced_pieces_is_fine_tuned_at_the_rate_of_random_weights(tmp_path):
    config = tiny_config(100)
    rates = {"masked_lm_head": 1.5e-4, "replaced_token_head": 5e-4}
    for head, rate in rates.items():
        checkpoint = str(tmp_path / head / "model.ckpt-1")
        write_checkpoint(checkpoint, {f"model/{head}/dense/kernel": np.zeros([2, 2], np.float32)})
        for path in (checkpoint, str(tmp_path / head)):
            assert finetuning_settings(config, 1000, init_checkpoint=path).learning_rate == rate
    assert has_much_to_keep(str(tmp_path / "nothing")), "refused where it is loaded"
    assert not has_much_to_keep(None)


def dropouts(config):
    return config.hidden_dropout_prob, config.attention_probs_dropout_prob


def test_small_models_are_fine_tuned_with_dropout_and_large_ones_with_that_of_the_config():
    small = tiny_config(100).replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.3)
    assert dropouts(with_default_dropout(small, 1000)) == (0.2, 0.3)
    assert dropouts(with_default_dropout(small, 20_000)) == (0.1, 0.3)
    assert default_token_dropout(small, may_hide_pieces=True) == 0.15
    assert default_token_dropout(small, may_hide_pieces=False) == 0.0
    large = small.replace(hidden_size=768)
    assert with_default_dropout(large, 10) == large
    assert default_token_dropout(large, may_hide_pieces=True) == 0.0


def test_of_aligned_pairs_more_pieces_are_hidden_and_they_are_read_more_often():
    aligned = tiny_config(100).replace(classifier_pooling="aligned")
    assert default_token_dropout(aligned, may_hide_pieces=True) == 0.25
    assert default_token_dropout(aligned, may_hide_pieces=True, predicts_numbers=True) == 0.15
    assert default_token_dropout(aligned, may_hide_pieces=False) == 0.0
    assert [default_num_train_epochs(6000, token_dropout=share) for share in (0.0, 0.15, 0.25)] == [6, 6, 9]
    assert default_num_train_epochs(10, token_dropout=0.25) == 60


def test_pieces_are_hidden_of_single_texts_and_of_pairs_that_are_compared():
    may_hide = {name: files.may_hide_pieces for name, files in DATASETS.items()}
    assert may_hide["nsmc"] and may_hide["question_pair"] and may_hide["korsts"] and may_hide["sts-b"]
    assert not may_hide["kornli"] and not may_hide["klue_nli"] and not may_hide["pawsx_ko"]
    for name in ("question_pair", "kornli", "nsmc"):
        task = Classification(tiny_config(100), DATASETS[name].labels, DATASETS[name])
        assert task.may_hide_pieces == may_hide[name]
    regression = Regression(tiny_config(100), DATASETS["korsts"])
    assert regression.may_hide_pieces and regression.predicts_numbers


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_examples_take_fewer_passes_and_more_steps(one, other):
    few, many = sorted((one, other))
    assert 60 >= default_num_train_epochs(few) >= default_num_train_epochs(many) >= 3
    assert num_steps(default_num_train_epochs(few), few, 32) >= 1
    if many >= 1.2 * few:  # passes are whole numbers
        steps = [default_num_train_epochs(count) * count for count in (few, many)]
        assert steps[0] <= steps[1]


def test_settings_that_are_given_replace_the_defaults():
    config = tiny_config(100)
    settings = finetuning_settings(config, 200)
    assert (settings.num_train_steps, settings.num_warmup_steps) == (round(35 * 200 / 32), 21)
    assert settings.bias_correction
    settings = finetuning_settings(config, 200, num_train_steps=50, learning_rate=0.1)
    assert (settings.num_train_steps, settings.num_warmup_steps, settings.learning_rate) == (50, 5, 0.1)
    assert finetuning_settings(config, 200, train_batch_size=8).num_train_steps == 35 * 200 / 8


@pytest.mark.parametrize(
    ("num_long", "longest", "expected"),
    [(1, 64, 8), (2, 64, 24), (300, 64, 24), (300, 12, 12)],  # one may be cut, for it is less than 0.5%
)
def test_length_leaves_nearly_all_texts_whole_and_is_at_most_the_models(sample_tokenizer, num_long, longest, expected):
    short, long = "책", " ".join(["책"] * 20)  # 3 and 22 pieces, with [CLS] and [SEP]
    task = Classification(tiny_config(len(sample_tokenizer.vocabulary)).replace(max_position_embeddings=longest))
    examples = [LabelledText(text, None, "0", 1) for text in [long] * num_long + [short] * (300 - num_long)]
    assert choose_max_seq_length(task, examples, sample_tokenizer) == expected


@pytest.mark.parametrize(
    ("num_train_steps", "num_examples", "expected"),
    [
        (219, 200, 11),  # 35 passes: 20 evaluations
        (500, 1000, 32),  # 16 passes: one each
        (2500, 20_000, 250),  # 4 passes: 10 evaluations
        (3, 200, 1),
    ],
)
def test_run_that_may_end_early_is_evaluated_ten_to_twenty_times(num_train_steps, num_examples, expected):
    assert evaluation_period(num_train_steps, num_examples, 32) == expected
