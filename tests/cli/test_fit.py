"""`albert_tf.fit` computes what the commands that fine-tune compute, and they go on with its runs."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from runs import write_model

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining

NOUNS = ("영화", "책", "날", "일", "곳")
TEXTS = [f"{word} {noun}" for word in ("정말 좋은", "너무 나쁜", "그저 그런", "꼭 다시") for noun in NOUNS]


@pytest.fixture(scope="module")
def model(tiny_config, sample_tokenizer, tmp_path_factory):
    """A folder to begin from."""
    folder = tmp_path_factory.mktemp("pretrained")
    tf.keras.utils.set_random_seed(3)
    return str(write_model(folder, AlbertForPreTraining(tiny_config), sample_tokenizer))


def weights_of(folder):
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith("model/")}


@pytest.mark.slow
def test_fit_trains_what_the_command_trains(model, tmp_path, run_script, capfd):
    labels = [str(number % 2) for number in range(len(TEXTS))]
    run = tmp_path / "fitted"
    fitted = albert_tf.fit(TEXTS, labels, model=model, output_dir=run, num_train_epochs=3)
    assert set(fitted.predict(["좋다"])[0]["probabilities"]) == {"0", "1"}
    assert fitted.results["num_examples"] == 5 and 0 <= fitted.results["accuracy"] <= 1
    flags = {
        "task_name": "jsonl",
        "data_dir": run / "data",
        "text_column": "text",
        "init_checkpoint": model,
        "dev_fraction": 0.25,
        "early_stopping": 5,
        "num_train_epochs": 3,
        "do_train": True,
        "do_eval": True,
        "output_dir": tmp_path / "commanded",
    }
    run_script("run_classifier.py", **flags).succeeded()
    for name, value in weights_of(tmp_path / "commanded").items():
        np.testing.assert_array_equal(weights_of(run)[name], value, err_msg=name)
    # A command goes on with it, and knows where the data are.
    run_script("run_classifier.py", do_eval=True, output_dir=run).succeeded()
    # The same call finds the run finished; other examples are refused, and nothing of the run is lost.
    before = {path: path.read_bytes() for path in run.rglob("*.index")}
    capfd.readouterr()
    again = albert_tf.fit(TEXTS, labels, model=model, output_dir=run, num_train_epochs=3, verbose=0)
    assert all(line.startswith("warning: ") for line in capfd.readouterr().out.splitlines())
    assert again.predict(TEXTS) == fitted.predict(TEXTS)
    with pytest.raises(InputError, match="fitted holds a model that was fitted to other examples; choose"):
        albert_tf.fit(TEXTS, labels[::-1], model=model, output_dir=run)
    for changes, message in (
        ({"model": str(tmp_path / "commanded")}, "`init_checkpoint` is .*/commanded/.*, and was "),
        ({"model": model, "dev_fraction": 0.5}, "`dev_fraction` is 0.5, and was 0.25"),
    ):
        with pytest.raises(InputError, match=message):
            albert_tf.fit(TEXTS, labels, output_dir=run, num_train_epochs=3, **changes)
    assert {path: path.read_bytes() for path in run.rglob("*.index")} == before


def test_examples_that_could_not_be_learnt_may_be_replaced(model, tmp_path):
    for labels, message in (("a" * 20, "'a' is the only label"), ("ab" * 10, "`freeze`: no variable matches nothing")):
        with pytest.raises(InputError, match=message):
            albert_tf.fit(TEXTS, list(labels), model=model, output_dir=tmp_path / "run", freeze=["nothing"])


CONTEXT = "도서관은 강가에 있다. 월요일에는 쉰다."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "labels", "asked", "names"),
    [
        (TEXTS, np.linspace(0.1, 4.9, len(TEXTS)), "좋다", {"score"}),
        (list(zip(TEXTS, TEXTS[::-1])), [n % 3 for n in range(len(TEXTS))], ("가", "나"), {"label", "probabilities"}),
        (TEXTS, [["a", "b"], ["b"], [], ["a"]] * 5, "좋다", {"labels", "probabilities"}),
        (TEXTS, [[(0, 2, "X")]] * len(TEXTS), "좋은 책", {"entities", "tags"}),
        ([("언제 쉬나?", CONTEXT)] * 4, [(13, 16)] * 4, ("언제?", CONTEXT), {"id", "text", "begin", "end", "nbest"}),
    ],
    ids=["numbers", "pairs", "label sets", "places", "answers"],
)
def test_every_kind_is_learnt_and_predicted(model, tmp_path, capsys, texts, labels, asked, names):
    dev = (texts[:2], labels[:2])
    fitted = albert_tf.fit(texts, labels, model, tmp_path, dev=dev, num_train_steps=2, max_seq_length=32)
    told = capsys.readouterr().out.splitlines()
    assert 3 <= len(told) <= 15
    judged = [line for line in told if line.startswith("warning: 2 of the 2 evaluation examples have texts that are")]
    assert len(judged) == 1
    assert set(fitted.predict([asked])[0]) >= names
    assert fitted.results["num_examples"] == 2
    assert pathlib.Path(tmp_path / "data").is_dir()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rat": 1e-4}, "`learning_rat` is not a setting of a training; did you mean learning_rate?"),
        ({"learning_rate": "5e-5"}, "`learning_rate` must be a number above 0. Received: 5e-5"),
        ({"batch_size": 8}, "`batch_size` is called train_batch_size here"),
        ({"init_checkpoint": "x"}, "`init_checkpoint` is called model here"),
        ({"pooling": "most"}, "`pooling` must be one of first, mean, last, aligned. Received: most"),
        ({"dev_fraction": 1.0}, "`dev_fraction` must be less than 1"),
        ({"verbose": 3}, "`verbose` must be a whole number from 0 to 2"),
        ({"model": "nowhere"}, "`model`: no checkpoint at nowhere"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_written(model, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        albert_tf.fit(["가", "나"] * 5, ["a", "b"] * 5, **{"model": model, "output_dir": tmp_path / "run", **changes})


def test_bad_value_is_refused_in_the_same_words_by_fit_a_command_and_a_recipe(model, tmp_path, run_script):
    with pytest.raises(InputError) as error:
        albert_tf.fit(TEXTS, list("ab" * 10), model=model, output_dir=tmp_path / "run", train_batch_size=0)
    recipe = tmp_path / "recipe.cfg"
    recipe.write_text("--train_batch_size=0\n")
    for flags in ({"train_batch_size": 0}, {"flagfile": recipe}):
        result = run_script("run_classifier.py", output_dir=tmp_path / "run", **flags)
        assert result.errors == f"error: {error.value}\n".replace("`train_batch_size`", "--train_batch_size")
    assert not (tmp_path / "run").exists()
