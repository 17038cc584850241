"""A model's folder is given to another model under load: whoever asks meanwhile gets whole answers of the first."""

import http.client
import itertools
import json
import pathlib
import shutil
import threading

import numpy as np
import pytest
from fake_server import PREDICT, wait_for
from tiny_config import tiny_config

import albert_tf
from albert_tf.finetuning import Classification
from albert_tf.serving.formats import open_export

SHIPPED = pathlib.Path(__file__).resolve().parent.parent.parent / "models" / "albert_ko_small"
TEXTS = ["좋다", "", "정말 재미있는 영화 " * 20, "ㅋㅋ 👩‍🚀"]


class Clients:
    """Threads that ask until they are told to stop; an answer is a label and numbers for each text.

    Attributes:
        num_right: How many answers were those of the model that was there first.
        wrong: All others, and what was raised.
    """

    def __init__(self, make_ask):
        self.num_right, self.wrong, self._is_over, self._make_ask = 0, [], threading.Event(), make_ask
        self._expected = make_ask()(TEXTS)
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(4)]
        for thread in self._threads:
            thread.start()

    def _run(self, first):
        ask = self._make_ask()
        for number in itertools.count(first):
            if self._is_over.is_set() or self.wrong:
                return
            begin = number % len(TEXTS)
            try:
                found = ask(TEXTS[begin:])
            except Exception as error:
                self.wrong.append(error)
                return
            if is_same(found, self._expected[begin:]):
                self.num_right += 1
            else:
                self.wrong.append(found)

    def go_on(self):
        """Waits until more answers have come, or a wrong one."""
        wanted = self.num_right + 40
        wait_for(lambda: self.num_right >= wanted or self.wrong)

    def stop(self):
        self._is_over.set()
        for thread in self._threads:
            thread.join()


def is_same(found, expected):
    """Returns whether answers are the same but for last digits, which differ by what else is in a batch."""
    return len(found) == len(expected) and all(
        label == other and np.allclose(values, others, rtol=0, atol=1e-4)
        for (label, values), (other, others) in zip(found, expected)
    )


def redeploy(folder, other, go_on):
    """Gives a folder to another model in all ways that programs have."""
    go_on()
    shutil.copytree(other, folder, dirs_exist_ok=True)  # written over, as cp does
    go_on()
    folder.rename(folder.with_name("former"))
    shutil.copytree(other, folder)
    shutil.rmtree(folder.with_name("former"))
    go_on()
    shutil.rmtree(folder)
    go_on()


@pytest.fixture
def deployed(export_task, sample_tokenizer, tmp_path):
    """Returns the folder of an export, and that of another model."""

    def deploy(model_format):
        config = tiny_config(len(sample_tokenizer), initializer_range=0.5)
        tasks = {
            name: Classification(config, labels) for name, labels in (("films", ("a", "b")), ("other", ("c", "d", "e")))
        }
        return [
            pathlib.Path(shutil.copytree(export_task(task, model_format), tmp_path / name))
            for name, task in tasks.items()
        ]

    return deploy


@pytest.mark.slow
def test_server_answers_with_the_model_that_it_was_started_with(start, deployed):
    folder, other = deployed("saved_model")
    server = start(model=open_export(folder))

    def connect():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

        def ask(texts):
            connection.request("POST", PREDICT, json.dumps({"instances": texts}).encode())
            answer = connection.getresponse()
            content = json.loads(answer.read())
            assert answer.status == 200, content
            return [(row["label"], row["probabilities"]) for row in content["predictions"]]

        return ask

    clients = Clients(connect)
    redeploy(folder, other, clients.go_on)
    clients.stop()
    assert not clients.wrong
    assert server.application.answers.keys() == {200}


@pytest.mark.slow
def test_loaded_export_answers_with_the_model_that_it_was(deployed):
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    folder, other = deployed("litert")
    model = albert_tf.load(folder)

    def ask(texts):
        return [(each["label"], list(each["probabilities"].values())) for each in model.predict(texts)]

    clients = Clients(lambda: ask)
    redeploy(folder, other, clients.go_on)
    clients.stop()
    assert not clients.wrong


@pytest.mark.slow
def test_loaded_folder_answers_with_the_model_that_it_was(tmp_path):
    folder, other = (pathlib.Path(shutil.copytree(SHIPPED, tmp_path / name)) for name in ("films", "other"))
    for path in other.iterdir():
        path.write_bytes(path.read_bytes()[::-1])
    model = albert_tf.load(folder)
    clients = Clients(lambda: lambda texts: [("", vector) for vector in model.encode(texts)])
    redeploy(folder, other, clients.go_on)
    clients.stop()
    assert not clients.wrong
