"""A run's folder: what is written into it, and that no other run's is touched."""

import json

import pytest
import tensorflow as tf
from tiny_training import CONFIG

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from albert_tf.training.run_folder import check_output_dir, claim_output_dir, write_eval_results

SETTINGS = {"learning_rate": 0.01, "train_batch_size": 8, "input_files": ["a.tfrecord"], "init_checkpoint": None}
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
    assert message.startswith(f"--output_dir={folder} holds ") and "choose another folder" in message
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


def test_same_run_claims_its_folder_again(tmp_path):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    before = contents(tmp_path)
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("learning_rate", {"settings": {**SETTINGS, "learning_rate": 0.02}}),
        ("init_checkpoint", {"settings": {**SETTINGS, "init_checkpoint": "elsewhere"}}),
        ("input_files", {"settings": {**SETTINGS, "input_files": [f"{number}.tfrecord" for number in range(99)]}}),
        ("labels", {"settings": {**SETTINGS, "labels": ["0", "1"]}}),
        ("train_batch_size", {"settings": {n: v for n, v in SETTINGS.items() if n != "train_batch_size"}}),
        ("hidden_dropout_prob", {"config": CONFIG.replace(hidden_dropout_prob=0.1)}),
        ("tokenizer", {"tokenizer": KoreanWordPieceTokenizer(OTHER_VOCABULARY)}),
        ("tokenizer", {"tokenizer": KoreanWordPieceTokenizer(TOKENIZER.vocabulary, lower_case=False)}),
        ("tokenizer", {"tokenizer": None}),
    ],
)
def test_folder_of_another_run_is_refused(tmp_path, name, changes):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert f"its {name} is " in assert_refused(tmp_path, **changes)


def test_checkpoints_of_unknown_origin_are_refused(tmp_path):
    tf.train.Checkpoint(value=tf.Variable(1.0)).save(str(tmp_path / "model.ckpt"))
    assert "checkpoints of another run" in assert_refused(tmp_path)


def test_files_of_another_model_or_vocabulary_are_not_replaced(tmp_path):
    (tmp_path / "albert_config.json").write_text(json.dumps({"vocab_size": 99}))
    assert "albert_config.json" in assert_refused(tmp_path)
    (tmp_path / "albert_config.json").unlink()
    OTHER_VOCABULARY.to_file(tmp_path / "vocab.txt")
    assert "vocab.txt" in assert_refused(tmp_path)
    KoreanWordPieceTokenizer(TOKENIZER.vocabulary, lower_case=False).save(tmp_path)
    assert "tokenizer.json" in assert_refused(tmp_path)


def test_claim_that_broke_off_is_completed(tmp_path):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    before = contents(tmp_path)
    (tmp_path / "run_settings.json").unlink()
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert contents(tmp_path) == before


def test_eval_results_are_flat_json(tmp_path):
    write_eval_results(str(tmp_path), {"global_step": 3, "loss": 0.25})
    assert json.loads((tmp_path / "eval_results.json").read_text()) == {"global_step": 3, "loss": 0.25}
