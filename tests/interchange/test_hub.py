"""Folders on the hub, at a stand-in for it: all files in one commit, and one sentence where that can't be."""

import sys

import pytest
from hub_stand_in import running_hub

from albert_tf.errors import InputError
from albert_tf.interchange.hub import check_hub_name, push_folder


@pytest.fixture
def hub(monkeypatch, tmp_path):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with running_hub() as hub:
        api = huggingface_hub.HfApi
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: api(hub.endpoint))  # it was read at the import
        yield hub


def test_all_files_of_a_folder_come_to_the_hub(hub, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    contents = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 100, "README.md": "# 모델\n".encode()}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    assert push_folder(str(folder), "someone/model").endswith("/someone/model")
    assert hub.files == contents
    [made] = hub.made
    assert made["name"] == "model" and made["organization"] == "someone"
    assert made.get("private") is True or made.get("visibility") == "private"
    assert set(hub.tokens) == {"Bearer hf_of_nobody"}


def test_refusal_is_one_sentence_that_says_how_to_go_on(hub, tmp_path):
    hub.refuses = True
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError) as failure:
        push_folder(str(tmp_path), "someone/model")
    message = str(failure.value)
    assert message.startswith(f"{tmp_path} was written, but can't be uploaded to the hub as someone/model (")
    assert message.endswith(f"correct that, then run hf upload someone/model {tmp_path}") and "\n" not in message


def test_name_and_library_are_looked_at_before_any_work(monkeypatch):
    with pytest.raises(InputError, match="`push_to_hub=model` must be owner/model"):
        check_hub_name("model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match="`push_to_hub` needs huggingface_hub, which is not installed; pip install "):
        check_hub_name("someone/model")
