"""A run's folder: what is written into it, that no other run's is touched, and that all workers hold one."""

import json
import threading

import pytest
import tensorflow as tf
from tiny_training import CONFIG

from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.config import AlbertConfig
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from albert_tf.training.devices import Agreement
from albert_tf.training.run_folder import held_folder
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


def test_check_writes_nothing_and_claim_no_tokenizer_that_there_is_not(tmp_path):
    check_output_dir(str(tmp_path / "run"), SETTINGS, CONFIG, TOKENIZER)
    assert not list(tmp_path.iterdir())
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, None)
    assert contents(tmp_path).keys() == {"albert_config.json", "run_settings.json"}


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
        ("`command` is run_classifier, and was run_pretraining; ", changed(command="run_classifier")),
        ("`input_files` is 0.tfrecord,1", changed(input_files=[[f"{n}.tfrecord" for n in range(99)]])),
        ("the content of its training data is not what it was; put ", changed(data=["4567"])),
        ("`hidden_dropout_prob` is 0.1, and was 0.0; ", {"config": CONFIG.replace(hidden_dropout_prob=0.1)}),
        ("`tokenizer` is ", {"tokenizer": KoreanWordPieceTokenizer(OTHER_VOCABULARY)}),
        ("`tokenizer` is ", {"tokenizer": KoreanWordPieceTokenizer(TOKENIZER.vocabulary, lower_case=False)}),
        ("`tokenizer` is ", {"tokenizer": None}),
    ],
)
def test_folder_of_another_run_is_refused(tmp_path, expected, changes):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    assert f" holds another run: {expected}" in assert_refused(tmp_path, **changes)


def test_same_checkpoint_and_data_may_lie_elsewhere_or_be_gone(tmp_path):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    for path, sha256 in (("/copied/model.ckpt-3", "ab"), ("/there/model.ckpt-3", None), ("/there", None)):
        changes = {"init_checkpoint": {"path": path, "index_sha256": sha256}, "found_at": {"input_file": ["/copy"]}}
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


def test_model_to_be_used_is_that_of_the_run(tmp_path):
    claim_output_dir(str(tmp_path), SETTINGS, CONFIG, TOKENIZER)
    folder, settings = str(tmp_path), read_settings(str(tmp_path))
    for tokenizer in (TOKENIZER, None):
        check_model(folder, settings, CONFIG, tokenizer)
    with pytest.raises(InputError, match="`hidden_size` is 32, and was 16"):
        check_model(folder, settings, CONFIG.replace(hidden_size=32), TOKENIZER)
    with pytest.raises(InputError, match="`tokenizer` is "):
        check_model(folder, settings, CONFIG, KoreanWordPieceTokenizer(OTHER_VOCABULARY))


def test_checkpoints_of_unknown_origin_are_refused(tmp_path):
    tf.train.Checkpoint(value=tf.Variable(1.0)).save(str(tmp_path / "run[1]" / "model.ckpt"))
    assert "checkpoints of another run" in assert_refused(tmp_path / "run[1]")


def test_files_of_another_model_or_vocabulary_are_not_replaced(tmp_path):
    (tmp_path / "albert_config.json").write_text(json.dumps({"vocab_size": 99, "embedding_size": 8}))
    assert "albert_config.json" in assert_refused(tmp_path)
    (tmp_path / "albert_config.json").unlink()
    OTHER_VOCABULARY.to_file(tmp_path / "vocab.txt")
    assert "vocab.txt" in assert_refused(tmp_path)
    KoreanWordPieceTokenizer(TOKENIZER.vocabulary, lower_case=False).save(tmp_path)
    assert "tokenizer.json" in assert_refused(tmp_path)


class ThreadsAgreement(Agreement):
    """Two threads of this process instead of processes that exchange numbers over the network."""

    def __init__(self, barrier, numbers, index):
        self._barrier, self._numbers, self._index = barrier, numbers, index

    def _exchange(self, number):
        """Returns the numbers of all threads."""
        self._numbers[self._index] = number
        self._barrier.wait(timeout=30)
        numbers = list(self._numbers)
        self._barrier.wait(timeout=30)
        return numbers

    def any(self, is_true):
        return any(self._exchange(is_true))

    def of_chief(self, value):
        return self._exchange(value)[0]


@pytest.fixture
def hold(monkeypatch):
    """Lets two workers hold a folder each, for a moment; returns the error of each, None without one."""
    monkeypatch.setattr(held_folder, "_SECONDS_UNTIL_SEEN", 1.0)

    def run(*folders):
        barrier, numbers, errors = threading.Barrier(2), [0, 0], ["did not come to its end"] * 2

        def hold_one(index):
            agreement = ThreadsAgreement(barrier, numbers, index)
            try:
                with held_folder.hold_folder(str(folders[index]), agreement, is_chief=index == 0) as check:
                    check()
                    barrier.wait(timeout=30)  # neither leaves before the other has come in
                errors[index] = None
            except InputError as error:
                errors[index] = str(error)

        threads = [threading.Thread(target=hold_one, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return errors

    return run


def test_workers_hold_one_folder_and_are_refused_with_folders_of_their_own(hold, tmp_path):
    assert hold(tmp_path / "run", tmp_path / "run") == [None, None]
    first, second = tmp_path / "first", tmp_path / "second"
    assert hold(first, second) == [
        "another worker can't continue; see its messages",
        f"`output_dir={second}` is not the folder that the first worker writes to; give one that all workers can read, "
        "such as gs://...",
    ]
    assert not first.exists() and not second.exists()


def test_folder_that_the_first_worker_can_not_write_to_ends_all(hold, tmp_path):
    (tmp_path / "file").write_text("in the way")
    errors = hold(tmp_path / "file" / "run", tmp_path / "file" / "run")
    assert errors[0].startswith(f"`output_dir={tmp_path}/file/run` can't be written to (")
    assert errors[1] == "another worker can't continue; see its messages"


@pytest.fixture(params=["{tmp_path}/run", "ram://{tmp_path.name}/run"])
def folder(request, tmp_path):
    """A folder that is not there yet, on this machine's disk or on a file system like Cloud Storage's."""
    return request.param.format(tmp_path=tmp_path)


@pytest.fixture
def hold_alone(monkeypatch):
    """Holds a folder for a run of one worker, which looks at the owner whenever it is asked."""
    monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 0.0)
    return lambda folder: held_folder.hold_folder(folder, Agreement(tf.distribute.get_strategy()), is_chief=True)


def owner_of(folder):
    path = f"{folder}/{held_folder.OWNER_FILE}"
    return json.loads(tf.io.gfile.GFile(path).read()) if tf.io.gfile.exists(path) else None


def run_elsewhere(folder):
    """Lets a run on another machine, which no lock keeps away, take a folder over."""
    write_json(f"{folder}/{held_folder.OWNER_FILE}", {"host": "elsewhere", "process": 7, "token": 1})


def test_run_names_itself_while_it_trains(hold_alone, folder):
    with hold_alone(folder) as check:
        check()
        assert {"host", "process", "token"} == owner_of(folder).keys()
    assert owner_of(folder) is None


def test_run_that_another_machine_took_over_writes_no_more(hold_alone, folder):
    with hold_alone(folder) as check:
        run_elsewhere(folder)
        with pytest.raises(InputError) as error:
            check()
    assert str(error.value) == (
        f"{folder} was taken over by process 7 on elsewhere; nothing more is written; check if that one still runs"
    )
    assert owner_of(folder)["host"] == "elsewhere", "the file is the other's"


def test_run_that_was_taken_over_and_ended_elsewhere_writes_no_more(hold_alone, folder):
    with hold_alone(folder) as check:
        tf.io.gfile.remove(f"{folder}/{held_folder.OWNER_FILE}")
        with pytest.raises(InputError, match="was taken over by a run that has ended; nothing more is written"):
            check()


def test_run_takes_over_from_one_that_was_killed_elsewhere_and_says_so(hold_alone, folder, capsys):
    tf.io.gfile.makedirs(folder)
    run_elsewhere(folder)
    with hold_alone(folder) as check:
        check()
        assert capsys.readouterr().err == (
            f"warning: {folder} is taken over from process 7 on elsewhere, which stops when it next looks at the "
            "folder; train on one machine at a time\n"
        )
        assert owner_of(folder)["host"] != "elsewhere"


def test_look_that_fails_ends_no_run(hold_alone, folder, monkeypatch):
    def read(_):
        raise tf.errors.UnavailableError(None, None, "try again")

    with hold_alone(folder) as check, monkeypatch.context() as patch:
        patch.setattr(held_folder, "_read", read)
        check()


def test_owner_is_not_looked_at_all_the_time(hold_alone, folder, monkeypatch):
    with hold_alone(folder) as check:
        monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 1000.0)
        run_elsewhere(folder)
        check()
        monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 0.0)
        with pytest.raises(InputError):
            check()
