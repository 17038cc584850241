"""Long texts are read in windows, each text counting once by the mean of its logits, or are cut and told of."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.base.texts import mean_over_windows, softmax
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, MultiLabel, MultipleChoice, QuestionAnswering, Regression, runner
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.task import CUT, describe_cuts, length_limit
from albert_tf.finetuning.tasks.labelled_text import LabelledText, encode_in_windows
from albert_tf.tokenization.model_inputs import cut_windows
from albert_tf.training import RunSettings, TrainingRun

TEXTS = ["좋다", "정말 재미있고 배우들의 연기도 훌륭한 영화였다 " * 6, "", "그저 그렇다 " * 9, "나쁘다"]
LENGTH, STRIDE = 16, 6
NUMBERS = DataFiles(is_regression=True, metrics=("pearson",))


@given(st.integers(0, 200), st.integers(1, 30), st.integers(1, 40))
def test_windows_hold_every_piece_and_the_last_ends_with_the_text(num_pieces, room, stride):
    rows, begins, ends = cut_windows(np.array([num_pieces, room]), room, stride)
    assert rows.tolist() == [0] * (len(rows) - 1) + [1] and (begins[-1], ends[-1]) == (0, room)
    borders = list(zip(begins[:-1].tolist(), ends[:-1].tolist()))
    assert all(0 < end - begin <= room for begin, end in borders) or borders == [(0, 0)]
    assert {piece for begin, end in borders for piece in range(begin, end)} == set(range(num_pieces))
    assert borders[0][0] == 0 and borders[-1][1] == num_pieces
    assert all(begin + room < num_pieces for begin, _ in borders[:-1])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1), st.randoms())
def test_mean_is_that_of_each_texts_windows(counts, random):
    rows = np.repeat(np.arange(len(counts)), counts)
    values = np.array([[random.uniform(-5, 5) for _ in range(3)] for _ in rows], np.float32)
    expected = [values[rows == row].astype(float).mean(axis=0) for row in range(len(counts))]
    np.testing.assert_allclose(mean_over_windows(values, rows), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mean_over_windows(values[:, 0], rows), np.array(expected)[:, 0], rtol=1e-5, atol=1e-6)


def test_windows_are_the_parts_of_a_text_between_special_tokens(sample_tokenizer):
    features = encode_in_windows(sample_tokenizer, TEXTS, LENGTH, STRIDE)
    vocabulary = sample_tokenizer.vocabulary
    cls, sep = (vocabulary.id_of(token) for token in ("[CLS]", "[SEP]"))
    found = [row[mask > 0].tolist() for row, mask in zip(features["input_ids"], features["input_mask"])]
    expected = [
        [cls, *ids[begin:end], sep]
        for ids in sample_tokenizer.encode_ids(TEXTS).to_list()
        for _, begin, end in zip(*cut_windows(np.array([len(ids)]), LENGTH - 2, STRIDE))
    ]
    assert found == expected and len(found) > len(TEXTS)
    of_texts = np.zeros(len(TEXTS))
    np.add.at(of_texts, features["text_indices"], features["window_weights"])
    np.testing.assert_allclose(of_texts, 1, rtol=1e-6)


def logits_by_hand(model, tokenizer, text):
    """Returns the mean of the logits of a text's windows, each computed by itself."""
    features = encode_in_windows(tokenizer, [text], LENGTH, STRIDE)
    found = [
        model({name: features[name][[row]] for name in ("input_ids", "input_mask", "segment_ids")})["logits"][0].numpy()
        for row in range(len(features["input_ids"]))
    ]
    return np.mean(np.array(found, np.float64), axis=0)


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5, classifier_dropout_prob=0.0)


@pytest.mark.parametrize("is_regression", [False, True])
def test_a_text_counts_once_in_the_loss(config, sample_tokenizer, is_regression):
    if is_regression:
        task = Regression(config, NUMBERS, doc_stride=STRIDE)
    else:
        task = Classification(config, ("0", "1"), doc_stride=STRIDE)
    labels = [str(number % 2) for number in range(len(TEXTS))]
    examples = [LabelledText(text, None, label, line) for line, (text, label) in enumerate(zip(TEXTS, labels))]
    features = task.encode(examples, sample_tokenizer, LENGTH)
    batch = {name: tf.constant(features[name]) for name in task.batch_spec(LENGTH) if name in features}
    batch["example_weights"] = tf.ones(len(features["input_ids"]))
    model = task.make_model()
    (total, weight) = task.compute(batch, False, None, model)[task.loss_name]
    assert float(weight) == pytest.approx(len(TEXTS)) == float(task.loss_weights(batch)[task.loss_name])

    logits = model(batch)["logits"].numpy().astype(np.float64)
    rows, targets = features["text_indices"], np.array(labels, int)[features["text_indices"]]
    losses = (logits[:, 0] - targets) ** 2
    if not is_regression:
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(rows)), targets]
    expected = sum(losses[rows == row].mean() for row in range(len(TEXTS)))
    assert float(total) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_trace")
def test_long_texts_are_classified_alike_in_a_run_and_by_what_it_leaves(tmp_path, config, sample_tokenizer, capsys):
    truth = np.arange(len(TEXTS)) % 2
    path, task = tmp_path / "train.tsv", Classification(config, doc_stride=STRIDE)
    path.write_text("document\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, truth)))
    tf.keras.utils.set_random_seed(1)
    settings_of_run = RunSettings(num_train_steps=2, train_batch_size=2, learning_rate=0.01, optimizer="adamw")
    run = TrainingRun(tmp_path / "run", task, task.make_model(), settings_of_run, sample_tokenizer)
    file = runner.load_file(task, str(path), sample_tokenizer, LENGTH)
    assert runner.train(run, file, file, token_dropout=0.1)
    results, expected = runner.evaluate(run, file), runner.predict(run, file, 2)
    assert "2 texts in " in capsys.readouterr().out
    loaded = albert_tf.load(tmp_path / "run")
    by_hand = [softmax(logits_by_hand(loaded.model, sample_tokenizer, text)) for text in TEXTS]
    shares = [list(each["probabilities"].values()) for each in loaded.predict(TEXTS, batch_size=2)]
    np.testing.assert_allclose(shares, by_hand, rtol=1e-4)
    np.testing.assert_allclose([list(each["probabilities"].values()) for each in expected], by_hand, rtol=1e-4)
    assert results["accuracy"] == pytest.approx((np.array(by_hand).argmax(axis=1) == truth).mean())
    assert loaded.num_cut == 0


@pytest.mark.parametrize("is_regression", [False, True])
def test_answers_follow_from_the_mean_of_the_logits(config, sample_tokenizer, is_regression):
    if is_regression:
        task, label = Regression(config, NUMBERS, doc_stride=STRIDE), "1"
    else:
        task, label = MultiLabel(config, ("a", "b"), doc_stride=STRIDE), ("b",)
    examples = [LabelledText(text, None, label, line) for line, text in enumerate(TEXTS)]
    features = task.encode(examples, sample_tokenizer, LENGTH)
    assert features["label_values"].tolist() == [1 if is_regression else [0, 1]] * len(features["input_ids"])
    model = task.make_model()
    batch = {name: tf.constant(features[name]) for name in ("input_ids", "input_mask", "segment_ids")}
    predictions = task.predict(
        examples, features, {name: each.numpy() for name, each in task.outputs(batch, model).items()}
    )
    logits = np.array([logits_by_hand(model, sample_tokenizer, text) for text in TEXTS])
    if is_regression:
        found, expected = [each["score"] for each in predictions], logits[:, 0]
    else:
        found = [list(each["probabilities"].values()) for each in predictions]
        expected = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_pairs_and_strides_that_are_none_are_refused():
    for stride in (0, True, 2.5):
        with pytest.raises(InputError, match="`doc_stride` must be a whole number from 1"):
            Classification(tiny_config(), doc_stride=stride)
    with pytest.raises(InputError, match="`doc_stride=8` is for single texts; of pairs the longer text is cut"):
        Classification(tiny_config(), files=DATASETS["kornli"], doc_stride=8)


def test_settings_of_runs_without_windows_stay_as_they_were():
    assert "doc_stride" not in Classification(tiny_config()).settings()
    task = Classification(tiny_config(), doc_stride=8)
    again = Classification.from_settings(tiny_config(), {**task.settings()})
    assert again.doc_stride == 8


LONG, SHORT = "아주 긴 이야기를 하나 들려주고 싶다", "나무"
CUT_LENGTH = 12


@pytest.fixture
def pieces(sample_tokenizer):
    return lambda text: len(sample_tokenizer.tokenize(text))


def task(kind, tokenizer, **options):
    return kind(AlbertConfig(vocab_size=len(tokenizer.vocabulary), max_position_embeddings=32), **options)


def test_pieces_of_texts_and_pairs_that_are_cut_are_counted(sample_tokenizer, pieces):
    single = task(Classification, sample_tokenizer, labels=("0", "1"))
    found = single.encode(single.examples_of([SHORT, LONG]), sample_tokenizer, CUT_LENGTH)[CUT]
    np.testing.assert_array_equal(found, [0, max(0, pieces(LONG) + 2 - CUT_LENGTH)])
    pairs = task(Classification, sample_tokenizer, labels=("0", "1"), files=DataFiles(text_pair_column="other"))
    found = pairs.encode(pairs.examples_of([(SHORT, SHORT), (LONG, LONG)]), sample_tokenizer, CUT_LENGTH)[CUT]
    np.testing.assert_array_equal(found, [0, 2 * pieces(LONG) + 3 - CUT_LENGTH])
    assert found[1] > 0 and found.dtype == np.int32


def test_pieces_of_passages_and_questions_that_are_cut_are_counted(sample_tokenizer, pieces):
    choices = task(MultipleChoice, sample_tokenizer, num_choices=2)
    found = choices.encode(choices.examples_of([(LONG, SHORT, [SHORT, LONG])]), sample_tokenizer, CUT_LENGTH)[CUT]
    texts = [f"{SHORT} {SHORT}", f"{SHORT} {LONG}"]
    np.testing.assert_array_equal(found, [[pieces(LONG) + pieces(text) + 3 - CUT_LENGTH for text in texts]])
    questions = task(QuestionAnswering, sample_tokenizer)
    asked = questions.examples_of([(LONG, LONG), (SHORT, LONG)])
    features = questions.encode(asked, sample_tokenizer, CUT_LENGTH)
    np.testing.assert_array_equal(features[CUT], [pieces(LONG) - (CUT_LENGTH - 3) // 2, 0])
    told = questions.describe_cuts(features, CUT_LENGTH, "in a.json")
    kept = (CUT_LENGTH - 3) // 2 + pieces(SHORT)
    share = (pieces(LONG) - (CUT_LENGTH - 3) // 2) / (pieces(LONG) + pieces(SHORT))
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
