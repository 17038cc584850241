"""Texts that are longer than what is read of them are counted, and told of."""

import numpy as np
import pytest

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, MultipleChoice, QuestionAnswering, runner
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.task import CUT, describe_cuts, length_limit

LONG, SHORT = "아주 긴 이야기를 하나 들려주고 싶다", "나무"
LENGTH = 12


@pytest.fixture
def pieces(sample_tokenizer):
    return lambda text: len(sample_tokenizer.tokenize(text))


def task(kind, tokenizer, **options):
    return kind(AlbertConfig(vocab_size=len(tokenizer.vocabulary), max_position_embeddings=32), **options)


def test_pieces_of_texts_and_pairs_that_are_cut_are_counted(sample_tokenizer, pieces):
    single = task(Classification, sample_tokenizer, labels=("0", "1"))
    found = single.encode(single.examples_of([SHORT, LONG]), sample_tokenizer, LENGTH)[CUT]
    np.testing.assert_array_equal(found, [0, max(0, pieces(LONG) + 2 - LENGTH)])
    pairs = task(Classification, sample_tokenizer, labels=("0", "1"), files=DataFiles(text_pair_column="other"))
    found = pairs.encode(pairs.examples_of([(SHORT, SHORT), (LONG, LONG)]), sample_tokenizer, LENGTH)[CUT]
    np.testing.assert_array_equal(found, [0, 2 * pieces(LONG) + 3 - LENGTH])
    assert found[1] > 0 and found.dtype == np.int32


def test_pieces_of_passages_and_questions_that_are_cut_are_counted(sample_tokenizer, pieces):
    choices = task(MultipleChoice, sample_tokenizer, num_choices=2)
    found = choices.encode(choices.examples_of([(LONG, SHORT, [SHORT, LONG])]), sample_tokenizer, LENGTH)[CUT]
    texts = [f"{SHORT} {SHORT}", f"{SHORT} {LONG}"]
    np.testing.assert_array_equal(found, [[pieces(LONG) + pieces(text) + 3 - LENGTH for text in texts]])
    questions = task(QuestionAnswering, sample_tokenizer)
    asked = questions.examples_of([(LONG, LONG), (SHORT, LONG)])
    features = questions.encode(asked, sample_tokenizer, LENGTH)
    np.testing.assert_array_equal(features[CUT], [pieces(LONG) - (LENGTH - 3) // 2, 0])
    told = questions.describe_cuts(features, LENGTH, "in a.json")
    kept = (LENGTH - 3) // 2 + pieces(SHORT)
    share = (pieces(LONG) - (LENGTH - 3) // 2) / (pieces(LONG) + pieces(SHORT))
    assert kept + features[CUT].sum() == pieces(LONG) + pieces(SHORT)
    assert told.startswith(f"warning: 1 of 2 questions in a.json is cut: {share:.1%} of all pieces are left out, ")


def test_file_with_long_texts_says_so(tmp_path, sample_tokenizer, pieces, capsys):
    path = str(tmp_path / "train.tsv")
    (tmp_path / "train.tsv").write_text(f"document\tlabel\n{LONG}\t1\n{SHORT}\t0\n", encoding="utf-8")
    classifier = task(Classification, sample_tokenizer, labels=("0", "1"))
    runner.load_file(classifier, path, sample_tokenizer, 8)
    lost, total = pieces(LONG) + 2 - 8, pieces(LONG) + pieces(SHORT) + 4
    assert capsys.readouterr().out.endswith(
        f"warning: 1 of 2 texts in {path} is cut: {lost / total:.1%} of all pieces are left out, {lost} of one text at "
        "most; max_seq_length is 8, and can be raised to 32\n"
    )
    runner.load_file(classifier, path, sample_tokenizer, 32)
    assert "cut" not in capsys.readouterr().out


def test_few_long_texts_are_no_warning():
    cut = np.zeros(200, int)
    assert describe_cuts(cut, 1000, "text", "", "") is None
    cut[3], cut[7] = 5, 20
    told = describe_cuts(cut, 975, "text", "", length_limit(8, 8))
    assert told == (
        "2 of 200 texts are cut: 2.5% of all pieces are left out, 20 of one text at most; the model reads 8 pieces, so "
        "divide longer texts, or train a model that reads more"
    )
