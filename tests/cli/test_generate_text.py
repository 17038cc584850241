"""generate-text: how texts of the command line and of files go on, and mistakes in what it is asked to do."""

import json

import pytest

import albert_tf
from albert_tf.cli.main import answers

TEXTS = ["오늘은 비가", "", "내일은 눈이 ", "a\u200b쀍"]
SETTINGS = {"max_pieces": 6, "top_k": 50, "top_p": 0.9, "seed": 3, "temperature": 1.3, "repetition_penalty": 1.2}


@pytest.fixture
def file_flags(causal_checkpoint, tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps({'text': text, 'id': 7})}\n" for text in TEXTS))
    return {
        "model_dir": causal_checkpoint,
        "input_file": tmp_path / "in.jsonl",
        "output_file": tmp_path / "out.jsonl",
        **SETTINGS,
    }


@pytest.mark.slow
def test_rows_of_a_file_go_on_as_in_python(run_script, file_flags, causal_checkpoint, tmp_path):
    model = albert_tf.load(causal_checkpoint)
    with pytest.warns(UserWarning, match="some inputs hold words that the vocabulary can't spell, such as a"):
        expected = model.generate(TEXTS, **SETTINGS)
    result = run_script("generate-text", **file_flags).succeeded()
    assert f"\nwrote {file_flags['output_file']}: 4 lines; " in result.output
    assert (
        "warning: 1 input with words that the vocabulary can't spell, which the model reads as [UNK]" in result.output
    )
    found = [json.loads(line) for line in file_flags["output_file"].read_text().splitlines()]
    assert found == [{"id": 7, **answer} for answer in expected]
    line = json.dumps("가 " * 200)
    (tmp_path / "long.jsonl").write_text(f'"오늘은"\n{line}\n')
    flags = {**file_flags, "input_file": tmp_path / "long.jsonl", "output_file": tmp_path / "other.jsonl"}
    result = run_script("generate-text", **flags)
    assert result.code == 1 and "long.jsonl, line 2: has 200 pieces, which with [CLS] leave no room" in result.errors
    assert result.errors.endswith("; or pass --on_bad_row=skip\n")
    assert not flags["output_file"].exists()
    result = run_script("generate-text", **{**flags, "on_bad_row": "skip", "max_pieces": 200}).finished()
    first, second = map(json.loads, flags["output_file"].read_text().splitlines())
    assert first["text"].startswith("오늘은") and "leave no room" in second["error"]
    is_short = first["stopped_by"] == "positions"
    assert ("1 text stopped before --max_pieces=200, at the model's last position" in result.output) == is_short


def test_texts_of_the_command_line_are_printed(run_script, causal_checkpoint):
    result = run_script(
        "generate-text", "--text=오늘은", "--text=내일", model_dir=causal_checkpoint, max_pieces=4
    ).succeeded()
    first, second = result.output.splitlines()
    assert first.startswith("오늘은") and second.startswith("내일")
    model = albert_tf.load(causal_checkpoint)
    (answer,) = model.generate(["오늘은"])
    assert answers(model, ["오늘은"]) == [answer["text"]]
    assert json.loads(answers(model, ["오늘은"], as_json=True)[0]) == {"input": "오늘은", **answer}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_dir": ""}, "--model_dir is missing; see --help"),
        ({"model_dir": "nowhere"}, "--model_dir=nowhere: there is no such folder; put the name right"),
        ({"input_file": ""}, "--text and --input_file are missing; give one of them"),
        ({"output_file": ""}, "--output_file is missing; see --help"),
        ({"text": "오늘은"}, "--input_file can't be used with --text, whose continuations are printed; leave one out"),
        ({"temperature": -1}, "--temperature must be a number from 0 to 100. Received: -1.0"),
        ({"model_dir": "models/albert_ko_small"}, "was not pre-trained to continue texts, as with objective=causal"),
    ],
)
def test_mistake_costs_one_sentence(run_script, file_flags, tmp_path, assert_refused, changes, message):
    assert message in assert_refused(lambda: run_script("generate-text", **{**file_flags, **changes}), tmp_path)
