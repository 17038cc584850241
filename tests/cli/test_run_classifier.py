"""run_classifier.py from flags to scores and predictions."""

import json
import re
import signal
import time

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
@pytest.mark.parametrize(("flag_values", "expected"), [({}, 3), ({"save_checkpoints_steps": 30}, 30)])
def test_run_that_may_end_early_is_evaluated_often(classify, without_training, flag_values, expected):
    result = classify(do_train=True, do_eval=True, early_stopping=2, train_step=60, **flag_values).finished()
    assert without_training[0].settings.eval_every_steps == expected
    assert ("\n--eval_every_steps=3, for --early_stopping\n" in result.output) == (expected == 3)


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


def test_what_makes_a_run_slow_or_keeps_it_here_is_told_at_its_start(classify, without_training, monkeypatch):
    monkeypatch.setattr("albert_tf.runs.settings.training.computes_in_bfloat16", lambda: False)
    output = classify(do_train=True, use_bfloat16=True, pooling="mean").output
    assert "warning: this processor has no products in bfloat16; without --use_bfloat16 it is faster" in output
    assert "transformers can't express classifier_pooling=mean" in output
    assert "to convert this model for it later, train with pooling=first" in output


@pytest.mark.slow
def test_labels_that_nobody_named_may_be_left_out(classify, reviews, without_training):
    path = reviews / "train.tsv"
    path.write_text(path.read_text() + "99\t그저 그렇다\t2\n")
    flag_values = {"labels": "0,1", "on_bad_row": "skip", "class_weights": "balanced"}
    result = classify(do_train=True, **flag_values).finished()
    assert f"warning: 1 row left out; the first: {path}, line 14: label '2' is not in the list 0, 1" in result.output
    assert f"\n2 labels in the 12 examples of {path}: " in result.output


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
        ({"do_train": True, "max_seq_length": 129}, "--max_seq_length=129 is more than .* 128"),
        (
            {"do_train": True, "labels": "0,2"},
            ".*train.tsv, line 4: label '1' is not in the list 0, 2 .set the list with --labels.; ",
        ),
        ({"do_train": True, "do_lower_case": False}, "--do_lower_case=False contradicts .*tokenizer.json"),
        ({"do_train": True, "num_trials": 2}, "--num_trials and --trials need --do_train "),
        (
            {"do_train": True, "metrics": "pearson"},
            "--metrics=pearson is not one of this task's metrics: accuracy, f1, ",
        ),
        ({"do_train": True, "class_weights": "1,0"}, "--class_weights=1,0 must be balanced, or a number above 0 for "),
        ({"do_train": True, "regression": True, "text_column": "label", "label_column": "document"}, ".* not a number"),
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


@pytest.mark.parametrize("flag", ["do_train", "do_predict"])
def test_folder_of_another_run_is_refused(classify, checkpoint, assert_refused, flag):
    message = assert_refused(lambda: classify(output_dir=checkpoint, **{flag: True}), checkpoint)
    assert message == (f"--output_dir={checkpoint} holds another run, of run_pretraining.py; choose another folder")


@pytest.mark.slow
def test_trained_model_is_used_from_elsewhere_and_by_two_replicas_alike(run_script, reviews, classified, tmp_path):
    used = {"init_checkpoint": classified, "output_dir": tmp_path / "used", "num_cpu_replicas": 2}
    run_script("run_classifier.py", data_dir=reviews, do_eval=True, do_predict=True, **used).succeeded()
    found, expected = (read_results(folder) for folder in (tmp_path / "used", classified))
    for name in ("num_examples", "accuracy", "classification_loss"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4)
    first, second = (read_rows(folder / "predictions.tsv") for folder in (tmp_path / "used", classified))
    assert [row["text"] for row in first] == [row["text"] for row in second]
    shares = [[float(row["p(1)"]) for row in rows] for rows in (first, second)]
    np.testing.assert_allclose(*shares, atol=2e-4)


@pytest.mark.slow
def test_interrupt_stops_training_with_a_checkpoint(start_process, without_autograph, classifier_flags, tmp_path):
    """In the middle of a loop, and without the evaluation and the predictions of a model that is not finished."""
    classifier_flags.update(train_step=100_000, iterations_per_loop=200, do_train=True, do_eval=True, do_predict=True)
    classifier_flags.update(save_checkpoints_steps=100_000)
    with start_process("run_classifier.py", without_autograph.environment, **classifier_flags) as process:
        next(line for line in process.stdout if line.startswith("step 200/"))
        time.sleep(0.3)  # until what comes after the line is under way
        converted = without_autograph.converted()
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=300)
    assert not converted, "a tf.function or tf.data converts code"
    assert process.returncode == 128 + signal.SIGINT, printed
    step = int(re.search(r"^stopped by Ctrl-C; saved at step ([\d,]+); ", printed, re.MULTILINE)[1].replace(",", ""))
    assert step % 200, "it stopped between two loops"
    assert [path.stem for path in (tmp_path / "run").glob("*.index")] == [f"model.ckpt-{step}"]
    assert not {"eval_results.json", "predictions.tsv"} & {path.name for path in (tmp_path / "run").iterdir()}
    with pytest.warns(
        UserWarning, match=rf"the training in .*run has reached step {step:,} of 100,000; repeat its command"
    ):
        albert_tf.load(tmp_path / "run")
