"""run_classifier.py from flags to scores and predictions."""

import json
import re
import signal

import numpy as np
import pytest
import tensorflow as tf
from runs import read_results, read_rows

import albert_tf
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.tasks.labelled_text import LabelledText, encode_examples
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.modeling.layers import named_variables


def probabilities_of(folder, texts, tokenizer, num_labels):
    """Returns what the model in a run's newest checkpoint says of texts, computed without the loop."""
    model = AlbertForSequenceClassification(AlbertConfig.from_json_file(folder / "albert_config.json"), num_labels)
    reader = tf.train.load_checkpoint(str(folder))
    for name, variable in named_variables(model).items():
        variable.assign(reader.get_tensor(f"model/{name}/.ATTRIBUTES/VARIABLE_VALUE"))
    features = encode_examples(tokenizer, [LabelledText(text, None, None, 0) for text in texts], 32)
    return tf.nn.softmax(model(features)["logits"]).numpy()


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_classifier_is_trained_evaluated_and_used(classify, reviews, tmp_path, sample_tokenizer, contents):
    run = tmp_path / "run"
    result = classify(do_train=True, do_eval=True, do_predict=True).succeeded()
    assert "new, from random weights: head; not used here: " in result.output
    assert f"wrote 5 predictions of test.tsv to {run}/predictions.tsv\n" in result.output

    dev, test = read_rows(reviews / "dev.tsv"), read_rows(reviews / "test.tsv")
    probabilities = probabilities_of(run, [row["document"] for row in dev], sample_tokenizer, 2)
    labels = np.array([int(row["label"]) for row in dev])
    results = read_results(run)
    loss = -np.log(probabilities[np.arange(7), labels]).mean()
    assert results == pytest.approx(
        {
            "global_step": 3,
            "num_examples": 7,
            "blind_accuracy": max(labels.mean(), 1 - labels.mean()),
            "linear_accuracy": json.loads((run / "linear_scores.json").read_text())["scores"]["accuracy"],
            "loss": loss,
            "classification_loss": loss,
            "accuracy": (probabilities.argmax(axis=-1) == labels).mean(),
        },
        rel=1e-4,
    )

    predictions = read_rows(run / "predictions.tsv")
    assert [(row["text"], row["label"]) for row in predictions] == [(row["document"], row["label"]) for row in test]
    probabilities = probabilities_of(run, [row["document"] for row in test], sample_tokenizer, 2)
    written = [[float(row["p(0)"]), float(row["p(1)"])] for row in predictions]
    np.testing.assert_allclose(written, probabilities, atol=1e-4)
    assert [int(row["prediction"]) for row in predictions] == probabilities.argmax(axis=-1).tolist()

    # What a finished folder holds is enough to go on with.
    before = contents(run)
    for name in ("eval_results.json", "predictions.tsv"):
        (run / name).unlink()
    (reviews / "train.tsv").unlink()
    assert classify(init_checkpoint=None, do_eval=True).code == 0
    assert read_results(run) == results
    assert classify(init_checkpoint=None, do_eval=True, baselines=False).code == 0
    assert read_results(run) == {name: value for name, value in results.items() if name != "linear_accuracy"}
    assert classify(init_checkpoint=None, do_predict=True).code == 0
    assert contents(run)["predictions.tsv"] == before["predictions.tsv"]
    assert contents(run)["model.ckpt-3.index"] == before["model.ckpt-3.index"]


@pytest.mark.slow
@pytest.mark.parametrize(("epochs", "steps"), [(1, 3), (2.5, 8), (0.01, 1)])
def test_epochs_are_counted_in_steps(classify, without_training, epochs, steps):
    assert classify(do_train=True, num_train_epochs=epochs).code == 0
    (run,) = without_training
    assert run.phases[-1].end_step == steps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag_values", "expected"),
    [
        ({"early_stopping": 2}, 3),
        ({"early_stopping": 2, "save_checkpoints_steps": 30}, 30),
        ({"early_stopping": 2, "eval_every_steps": 7}, 7),
        ({}, None),
    ],
)
def test_run_that_may_end_early_is_evaluated_often(classify, without_training, flag_values, expected):
    result = classify(do_train=True, do_eval=True, train_step=60, **flag_values).finished()
    assert without_training[0].settings.eval_every_steps == expected
    assert ("\n--eval_every_steps=3, for --early_stopping\n" in result.output) == (expected == 3)


@pytest.mark.slow
def test_training_of_a_few_labels_ends_early(classify, tmp_path):
    # A rate this high only makes it worse.
    result = classify(
        do_train=True, do_eval=True, early_stopping=2, train_step=40, learning_rate=1.0, warmup_step=0
    ).finished()
    assert "ended early at step " in result.output


@pytest.mark.slow
def test_dropout_of_a_small_model_is_on_where_no_flag_says_otherwise(classify, without_training, contents, tmp_path):
    assert classify(do_train=True).code == 0
    written = json.loads(contents(tmp_path / "run")["albert_config.json"])
    settings = json.loads(contents(tmp_path / "run")["run_settings.json"])
    assert (written["hidden_dropout_prob"], settings["token_dropout"]) == (0.2, 0.15)
    off = {"output_dir": tmp_path / "off", "dropout": 0.0, "token_dropout": 0.0}
    assert classify(do_train=True, **off).code == 0
    assert json.loads(contents(tmp_path / "off")["albert_config.json"])["attention_probs_dropout_prob"] == 0.0
    hidden, whole = ((run.first_batch["input_ids"].numpy() == 4).sum() for run in without_training)
    assert hidden > 0 == whole


@pytest.mark.slow
def test_pairs_get_a_number(classify, reviews, tmp_path):
    rows = [f"비가 온다\t비가 {word}\t{score}\n" for word, score in (("온다", 5), ("왔다", 3.5), ("없다", 1))]
    for name in ("train", "dev"):
        (reviews / f"sts-{name}.tsv").write_text("".join(["sentence1\tsentence2\tscore\n", *(2 * rows)]))
    result = classify(task_name="korsts", do_train=True, do_eval=True, do_predict=True, eval_every_steps=1)
    assert result.code == 0 and "6 examples in " in result.output
    results = read_results(tmp_path / "run")
    assert {"spearman", "pearson", "squared_error", "global_step"} <= results.keys()
    best = json.loads((tmp_path / "run" / "best_checkpoint.json").read_text())
    assert best["metric"] == "spearman" and best["value"] == pytest.approx(results["spearman"])
    predicted = [float(row["prediction"]) for row in read_rows(tmp_path / "run" / "predictions.tsv")]
    errors = np.array([5, 3.5, 1] * 2) - predicted
    assert results["squared_error"] == pytest.approx((errors**2).mean(), rel=1e-3)
    assert json.loads((tmp_path / "run" / "albert_config.json").read_text())["classifier_pooling"] == "aligned"
    asked = albert_tf.load(tmp_path / "run").predict([("비가 온다", "비가 온다")])
    assert asked[0]["score"] == pytest.approx(predicted[0], abs=1e-3)


@pytest.mark.slow
def test_head_may_learn_at_a_rate_of_its_own(classify, without_training):
    assert classify(do_train=True, learning_rate=1e-4, head_learning_rate=1e-2, pooling="first").code == 0
    (run,) = without_training
    assert (run.settings.learning_rate, run.settings.head_learning_rate) == (1e-4, 1e-2)


@pytest.mark.slow
def test_labels_may_be_measured_otherwise_and_weighted(classify, reviews, tmp_path, contents):
    classify(do_train=True, do_eval=True, metrics="macro_f1,matthews", class_weights="balanced").finished()
    assert {"macro_f1", "matthews", "accuracy"} <= read_results(tmp_path / "run").keys()
    settings = json.loads(contents(tmp_path / "run")["run_settings.json"])
    assert settings["metrics"] == ["macro_f1", "matthews"] and settings["class_weights"] == ["balanced"]


@pytest.mark.slow
def test_pairs_of_texts_with_named_labels(classify, reviews, tmp_path, without_training):
    (reviews / "train.tsv").write_text(
        "a\tb\tgold\n비가 온다\t날이 흐리다\tentailment\n비가 온다\t맑다\tcontradiction\n"
    )
    (reviews / "test.tsv").write_text("b\ta\n우산을 샀다\t비가 온다\n")
    flags_of_columns = {"text_column": "a", "text_pair_column": "b", "label_column": "gold"}
    assert classify(do_train=True, do_predict=True, **flags_of_columns).code == 0
    (row,) = read_rows(tmp_path / "run" / "predictions.tsv")
    assert list(row) == ["text", "text_pair", "label", "prediction", "p(contradiction)", "p(entailment)"]
    assert (row["text"], row["text_pair"], row["label"]) == ("비가 온다", "우산을 샀다", "")
    assert float(row["p(contradiction)"]) + float(row["p(entailment)"]) == pytest.approx(1, abs=2e-4)


def test_what_makes_a_run_slow_or_keeps_it_here_is_told_at_its_start(classify, without_training, monkeypatch):
    monkeypatch.setattr("albert_tf.runs.settings.training.computes_in_bfloat16", lambda: False)
    output = classify(do_train=True, use_bfloat16=True, pooling="mean").output
    assert "warning: this processor has no products in bfloat16; without --use_bfloat16 it is faster" in output
    assert "transformers can't express classifier_pooling=mean" in output
    assert "to convert this model for it later, train with pooling=first" in output


def test_labels_are_told_before_training(classify, reviews, without_training):
    with (reviews / "train.tsv").open("a") as file:
        file.write("".join(f"{number}\t좋은 영화\t1\n" for number in range(40)) + "99\t나쁜 영화\t O\n\n")
    output = classify(do_train=True).output
    told = re.search(
        r"^3 labels in the 53 examples of .*train.tsv:  O \(1\), 0 \(\d+\), 1 \(\d+\)$", output, re.MULTILINE
    )
    assert told, output


@pytest.mark.slow
def test_labels_that_nobody_named_may_be_left_out(classify, reviews, without_training):
    path = reviews / "train.tsv"
    path.write_text(path.read_text() + "99\t그저 그렇다\t2\n")
    flag_values = {"labels": "0,1", "on_bad_row": "skip", "class_weights": "balanced"}
    result = classify(do_train=True, **flag_values).finished()
    assert f"warning: 1 row left out; the first: {path}, line 14: label '2' is not in the list 0, 1" in result.output
    assert f"\n2 labels in the 12 examples of {path}: " in result.output


@pytest.mark.slow
def test_labels_may_hold_commas(classify, reviews, tmp_path, without_training):
    for name in ("train", "test"):
        text = (reviews / f"{name}.tsv").read_text()
        (reviews / f"{name}.tsv").write_text(text.replace("\t0\n", "\t나쁨, 아주\n").replace("\t1\n", "\t좋음\n"))
    assert classify(do_train=True, do_predict=True, labels='좋음,"나쁨, 아주"').code == 0
    row, *_ = read_rows(tmp_path / "run" / "predictions.tsv")
    assert list(row)[-2:] == ["p(좋음)", "p(나쁨, 아주)"]


@pytest.mark.slow
def test_file_to_predict_may_leave_labels_open(classify, reviews, tmp_path, without_training):
    (reviews / "test.tsv").write_text("document\tlabel\n좋다\t\n나쁘다\t?\n\n")
    assert classify(do_train=True, do_predict=True).code == 0
    assert [row["label"] for row in read_rows(tmp_path / "run" / "predictions.tsv")] == ["", "?"]


def test_vocabulary_and_config_may_be_named(
    classify, config_file, sample_tokenizer_dir, tmp_path, without_training, contents
):
    result = classify(
        init_checkpoint=None,
        albert_config_file=config_file,
        vocab_file=f"{sample_tokenizer_dir}/vocab.txt",
        do_train=True,
    )
    assert result.code == 0 and "\ntraining from random weights\n" in result.output
    assert result.output.startswith("device: ")
    assert {
        "vocab.txt",
        "tokenizer.json",
        "albert_config.json",
        "run_settings.json",
        "data_of_results.json",
        "README.md",
    } == contents(tmp_path / "run").keys()
    assert "\n| training file: examples | 12 |\n" in (tmp_path / "run" / "README.md").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "nothing to do: pass --do_train, --do_eval or --do_predict"),
        ({"do_train": True, "task_name": None}, "--task_name is missing; see --help"),
        ({"do_train": True, "data_dir": "nowhere"}, "--data_dir=nowhere: there is no such folder"),
        ({"do_eval": True, "task_name": "nsmc"}, "--data_dir=.* has no ratings_dev.txt or ratings_test.txt"),
        ({"do_train": True, "init_checkpoint": None}, "--albert_config_file is missing; name it, or a model to start "),
        ({"do_train": True, "init_checkpoint": "nowhere"}, "--init_checkpoint=nowhere: there is no such folder or "),
        ({"do_train": True, "vocab_file": "nowhere.txt"}, "can't read the vocabulary nowhere.txt: no such file"),
        ({"do_train": True, "max_seq_length": 129}, "--max_seq_length=129 is more than .* 128"),
        (
            {"do_train": True, "labels": "0,2"},
            ".*train.tsv, line 4: label '1' is not in the list 0, 2 .set the list with --labels.; ",
        ),
        ({"do_train": True, "do_lower_case": False}, "--do_lower_case=False contradicts .*tokenizer.json"),
        ({"do_train": True, "num_trials": 2}, "--num_trials and --trials need --do_train "),
        ({"do_train": True, "head_learning_rate": 0.0}, "--head_learning_rate must be a number above 0. Received: 0"),
        (
            {"do_train": True, "metrics": "pearson"},
            "--metrics=pearson is not one of this task's metrics: accuracy, f1, ",
        ),
        ({"do_train": True, "class_weights": "1,0"}, "--class_weights=1,0 must be balanced, or a number above 0 for "),
        ({"do_train": True, "learning_rate": "nan"}, "--learning_rate must be a number above 0. Received: nan"),
        ({"do_train": True, "regression": True, "text_column": "label", "label_column": "document"}, ".* not a number"),
        (
            {"do_train": True, "random_seed": 1 << 31},
            "--random_seed must be a whole number, at least 0 and at most 2147483647. Received: 2147483648",
        ),
        ({"do_predict": True, "predict_batch_size": 3, "num_cpu_replicas": 2}, "--predict_batch_size=3 must be "),
    ],
)
def test_mistake_costs_one_sentence(classify, assert_refused, tmp_path, changes, message):
    assert re.match(message, assert_refused(lambda: classify(**changes), tmp_path / "run"))
    assert not (tmp_path / "run").exists(), "the folder is still free for the corrected command"


def test_model_and_vocabulary_of_different_sizes_are_refused(
    classify, assert_refused, tiny_config, write_config, tmp_path
):
    path = write_config(tiny_config.replace(vocab_size=3999))
    message = assert_refused(lambda: classify(albert_config_file=path, do_train=True), tmp_path / "run")
    assert re.match("vocab_size in --albert_config_file is 3999, but .*vocab.txt has 4000 pieces", message)


@pytest.mark.parametrize("name", ["dev", "test"])
def test_mistake_in_a_later_file_is_found_before_training(classify, reviews, assert_refused, tmp_path, name):
    with (reviews / f"{name}.tsv").open("a") as file:
        file.write("99\t별점을 잘못 매김\t5\n")
    message = assert_refused(lambda: classify(do_train=True, do_eval=True, do_predict=True), tmp_path / "run")
    line = {"dev": 9, "test": 7}[name]
    assert message.startswith(
        f"{reviews}/{name}.tsv, line {line}: label '5' is not in the list 0, 1 (set the list with --labels); "
    )


@pytest.mark.parametrize("flag", ["do_train", "do_eval", "do_predict"])
def test_folder_of_another_run_is_refused(classify, checkpoint, assert_refused, flag):
    message = assert_refused(lambda: classify(output_dir=checkpoint, **{flag: True}), checkpoint)
    assert message == (f"--output_dir={checkpoint} holds another run, of run_pretraining.py; choose another folder")


def test_checkpoint_of_another_vocabulary_is_refused(classify, assert_refused, sample_tokenizer, tmp_path):
    """Its size is the same, so that only the tokenizer.json beside the checkpoint tells."""
    pieces = sample_tokenizer.vocabulary.pieces
    (tmp_path / "other.txt").write_text("".join(f"{piece}\n" for piece in [*pieces[:-2], pieces[-1], pieces[-2]]))
    message = assert_refused(lambda: classify(vocab_file=tmp_path / "other.txt", do_train=True), tmp_path / "run")
    assert "was trained with that tokenizer, which is not the one of" in message


@pytest.mark.slow
def test_two_replicas_end_with_the_same_results(
    forked, classify, classifier_flags, write_config, tiny_config, tmp_path
):
    """In a process of its own, where the script itself must make the replicas."""
    config = write_config(tiny_config.replace(classifier_dropout_prob=0.0))
    everything = {"albert_config_file": config, "do_train": True, "do_eval": True, "do_predict": True, "dropout": 0}
    replicas = {"output_dir": tmp_path / "two", "num_cpu_replicas": 2}
    assert forked.run("run_classifier.py", {**classifier_flags, **everything, **replicas}, tmp_path).code == 0
    assert classify(**everything).code == 0
    assert read_results(tmp_path / "two") == pytest.approx(read_results(tmp_path / "run"), rel=1e-4)
    first, second = (read_rows(tmp_path / run / "predictions.tsv") for run in ("two", "run"))
    assert [row["prediction"] for row in first] == [row["prediction"] for row in second]


@pytest.mark.slow
def test_interrupt_stops_training_with_a_checkpoint(stop, classifier_flags, tmp_path):
    """As SIGTERM does, and without the evaluation and the predictions of a model that is not finished."""
    classifier_flags.update(train_step=100_000, iterations_per_loop=200, do_train=True, do_eval=True, do_predict=True)
    classifier_flags.update(save_checkpoints_steps=100_000)
    printed = stop("run_classifier.py", "step 200/", signal.SIGINT, **classifier_flags)
    step = int(re.search(r"^stopped by Ctrl-C; saved at step ([\d,]+); ", printed, re.MULTILINE)[1].replace(",", ""))
    assert [path.stem for path in (tmp_path / "run").glob("*.index")] == [f"model.ckpt-{step}"]
    assert not {"eval_results.json", "predictions.tsv"} & {path.name for path in (tmp_path / "run").iterdir()}
    with pytest.warns(
        UserWarning, match=rf"the training in .*run has reached step {step:,} of 100,000; repeat its command"
    ):
        albert_tf.load(tmp_path / "run")
