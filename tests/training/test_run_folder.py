"""A run's folder: what is written into it, and that no other run's is touched."""

import json

import pytest
import tensorflow as tf
from tiny_training import CONFIG

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from albert_tf.training.run_folder.guard import check_model, check_output_dir, claim_output_dir, read_settings

SETTINGS = {
    "command": "run_pretraining",
    "objective": "albert",
    "learning_rate": 0.01,
    "train_batch_size": 8,
    "num_train_steps": 300,
    "input_files": [["a.tfrecord"]],
    "data": ["0123"],
    "init_checkpoint": {"path": "/there/model.ckpt-3", "index_sha256": "ab"},
    "found_at": {"input_file": ["/data/*.tfrecord"]},
}
TOKENIZER = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "나", "##는"]))
OTHER_VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "너", "##는"])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_refused(folder, settings=SETTINGS, config=CONFIG, tokenizer=TOKENIZER):
    """Checks that neither function accepts the folder or changes it, and returns the message."""
    before = contents(folder)
    messages = set()
    for function in (check_output_dir, claim_output_dir):
        with pytest.raises(InputError) as error:
            function(str(folder), settings, config, tokenizer)
        messages.add(str(error.value))
    assert contents(folder) == before
    (message,) = messages
    assert message.startswith(f"`output_dir={folder}` holds ") and "choose another folder" in message
    assert "\n" not in message and len(message) < 400
    return message


def test_claim_writes_what_later_commands_need(tmp_path):
    folder = tmp_path / "new" / "run"
    claim_output_dir(str(folder), SETTINGS, CONFIG, TOKENIZER)
    assert AlbertConfig.from_json_file(folder / "albert_config.json") == CONFIG
    assert KoreanWordPieceTokenizer.load(folder).identity == TOKENIZER.identity
    settings = json.loads((folder / "run_settings.json").read_text())
    assert {name: settings[name] for name in SETTINGS} == SETTINGS


def test_claim_without_tokenizer_writes_none(tmp_path):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, None)
    assert contents(tmp_path).keys() == {"albert_config.json", "run_settings.json"}


def test_check_alone_writes_nothing(tmp_path):
    check_output_dir(str(tmp_path / "run"), SETTINGS, CONFIG, TOKENIZER)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("broke_off", [False, True])
def test_same_run_claims_its_folder_again_or_completes_it(tmp_path, broke_off):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    before = contents(tmp_path)
    if broke_off:
        (tmp_path / "run_settings.json").unlink()
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert contents(tmp_path) == before


def changed(**changes):
    return {"settings": {**SETTINGS, **changes}}


def without(name):
    return {"settings": {key: value for key, value in SETTINGS.items() if key != name}}


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("`learning_rate` is 0.02, and was 0.01; ", changed(learning_rate=0.02)),
        ("`labels` is 0,1, and was None; ", changed(labels=["0", "1"])),
        ("`train_batch_size` is None, and was 8; ", without("train_batch_size")),
        ("`num_train_steps` is 500, and was 300; ", changed(num_train_steps=500)),
        ("`num_train_steps` is 200, and was 300; ", changed(num_train_steps=200)),
        ("`command` is run_classifier, and was run_pretraining; ", changed(command="run_classifier")),
        ("`input_files` is 0.tfrecord,1", changed(input_files=[[f"{n}.tfrecord" for n in range(99)]])),
        ("the content of its training data is not what it was; put ", changed(data=["4567"])),
        ("`hidden_dropout_prob` is 0.1, and was 0.0; ", {"config": CONFIG.replace(hidden_dropout_prob=0.1)}),
        ("`tokenizer` is ", {"tokenizer": KoreanWordPieceTokenizer(OTHER_VOCABULARY)}),
        ("`tokenizer` is ", {"tokenizer": KoreanWordPieceTokenizer(TOKENIZER.vocabulary, lower_case=False)}),
        ("`is_causal` is True, and was False; ", {"config": CONFIG.replace(is_causal=True)}),
        ("`tokenizer` is ", {"tokenizer": None}),
    ],
)
def test_folder_of_another_run_is_refused(tmp_path, expected, changes):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert f" holds another run: {expected}" in assert_refused(tmp_path, **changes)


@pytest.mark.parametrize(
    ("path", "index_sha256"),
    [("/there/model.ckpt-3", "ab"), ("/copied/model.ckpt-3", "ab"), ("/there/model.ckpt-3", None), ("/there", None)],
    ids=["same", "copied", "gone", "folder gone"],
)
@pytest.mark.parametrize("found_at", ["/data/*.tfrecord", "/copy"])
def test_same_checkpoint_and_data_may_lie_elsewhere_or_be_gone(tmp_path, path, index_sha256, found_at):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    changes = {"init_checkpoint": {"path": path, "index_sha256": index_sha256}, "found_at": {"input_file": [found_at]}}
    check_output_dir(str(tmp_path), {**SETTINGS, **changes}, CONFIG, TOKENIZER)


@pytest.mark.parametrize(
    ("init_checkpoint", "expected"),
    [
        (None, "`init_checkpoint` is None, and was /there/model.ckpt-3; "),
        ({"path": "/elsewhere", "index_sha256": None}, "`init_checkpoint` is /elsewhere, and was /there/model.ckpt-3"),
        (
            {"path": "/there/model.ckpt-9", "index_sha256": "cd"},
            "it began with /there/model.ckpt-3, and `init_checkpoint` is now /there/model.ckpt-9; name the former, ",
        ),
        (
            {"path": "/there/model.ckpt-3", "index_sha256": "cd"},
            "what it began with, /there/model.ckpt-3, has changed since; put it back",
        ),
    ],
)
def test_another_checkpoint_is_refused(tmp_path, init_checkpoint, expected):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert expected in assert_refused(tmp_path, {**SETTINGS, "init_checkpoint": init_checkpoint})


def test_shards_that_are_damaged_by_now_are_not_compared(tmp_path):
    settings = {**SETTINGS, "data": [{"a.tfrecord": "1", "b.tfrecord": "2"}]}
    claim_output_dir(str(tmp_path), settings, CONFIG, TOKENIZER)
    check_output_dir(str(tmp_path), {**settings, "data": [{"a.tfrecord": "1", "b.tfrecord": None}]}, CONFIG, TOKENIZER)
    other = {"a.tfrecord": "1", "b.tfrecord": "3"}
    assert "data is not what it was (b.tfrecord); " in assert_refused(tmp_path, {**settings, "data": [other]})
    assert "data is not what it was; " in assert_refused(tmp_path, {**settings, "data": [{"a.tfrecord": "1"}]})


def test_settings_that_do_not_say_what_was_learnt_are_refused(tmp_path):
    (tmp_path / "run_settings.json").write_text(json.dumps({"learning_rate": 0.01}))
    with pytest.raises(InputError, match='"objective" is missing; the file was changed, or another program wrote it'):
        read_settings(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "tokenizer", "expected"),
    [
        (CONFIG.replace(hidden_size=32), TOKENIZER, "`hidden_size` is 32, and was 16"),
        (CONFIG, KoreanWordPieceTokenizer(OTHER_VOCABULARY), "`tokenizer` is "),
        (CONFIG, TOKENIZER, None),
        (CONFIG, None, None),
    ],
)
def test_model_to_be_used_is_that_of_the_run(tmp_path, config, tokenizer, expected):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    settings = read_settings(str(tmp_path))
    if expected is None:
        check_model(str(tmp_path), settings, config, tokenizer)
    else:
        with pytest.raises(InputError, match=expected):
            check_model(str(tmp_path), settings, config, tokenizer)


@pytest.mark.parametrize("name", ["run", "run[1]"])
def test_checkpoints_of_unknown_origin_are_refused(tmp_path, name):
    tf.train.Checkpoint(value=tf.Variable(1.0)).save(str(tmp_path / name / "model.ckpt"))
    assert "checkpoints of another run" in assert_refused(tmp_path / name)


def test_files_of_another_model_or_vocabulary_are_not_replaced(tmp_path):
    (tmp_path / "albert_config.json").write_text(json.dumps({"vocab_size": 99, "embedding_size": 8}))
    assert "albert_config.json" in assert_refused(tmp_path)
    (tmp_path / "albert_config.json").unlink()
    OTHER_VOCABULARY.to_file(tmp_path / "vocab.txt")
    assert "vocab.txt" in assert_refused(tmp_path)
    KoreanWordPieceTokenizer(TOKENIZER.vocabulary, lower_case=False).save(tmp_path)
    assert "tokenizer.json" in assert_refused(tmp_path)
