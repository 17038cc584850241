"""The page to try a model: what is asked of which model, and what it answers over HTTP."""

import pathlib
import socket
import subprocess
import sys

import pytest
import tensorflow as tf
from tiny_config import tiny_config

pytest.importorskip("gradio", reason="needs gradio: pip install 'albert_tf[playground]'")

import gradio as gr
import gradio_client

import albert_tf
from albert_tf.asking.model import Model
from albert_tf.base.errors import InputError, with_extra
from albert_tf.cli.playground import build_page
from albert_tf.finetuning import MultipleChoice
from albert_tf.serving.folder import FolderBackend
from albert_tf.serving.loading import TrainedModel

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "models" / "albert_ko_small"


@pytest.mark.slow
def test_exports_are_asked_for_their_labels(export_classifier, exported_classifier):
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    for folder in (exported_classifier, export_classifier("litert")):
        model = albert_tf.load(folder)
        probabilities, answer = build_page(model, "").fn("좋은 영화 \x00")
        assert answer == model.predict(["좋은 영화 \x00"])[0] and probabilities == answer["probabilities"]
        assert list(probabilities) == ["나쁨", "좋음"]


@pytest.mark.slow
def test_model_that_chooses_is_asked_with_an_option_a_line(sample_tokenizer):
    tf.keras.utils.set_random_seed(1)
    task = MultipleChoice(tiny_config(len(sample_tokenizer), initializer_range=0.5), num_choices=3)
    trained = TrainedModel(task.make_model(), sample_tokenizer, 64, task, "model.ckpt-1", {})
    model = Model(FolderBackend(trained, "nowhere"))
    page, texts = build_page(model, ""), ["민수는 어제 시장에 갔다.", "민수는 어제 어디에 갔나?"]
    assert [box.label for box in page.input_components] == ["passage", "question", "options, one per line"]
    _, answer = page.fn(*texts, "학교\n시장\n집")
    assert answer == model.predict([(*texts, ["학교", "시장", "집"])])[0]
    with pytest.raises(gr.Error, match="a list of 3 options"):
        page.fn(*texts, "학교\n시장")


def test_model_that_gives_vectors_alone_has_no_page():
    class Encoder:
        abilities, encoder_settings = ("encode", "similarity"), {}

        def refusal(self, ability):
            return f"no {ability}"

    with pytest.raises(InputError, match="no predict"):
        build_page(Model(Encoder()), "")


def test_missing_library_is_named(run_script, monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    result = run_script("playground", model_dir=SHIPPED)
    assert result.code == 1 and result.errors.startswith("error: albert-tf playground needs gradio (")
    assert result.errors.endswith(f"); pip install {with_extra('playground')}\n")


@pytest.mark.slow
def test_shipped_model_guesses_masks_over_http():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "albert_tf", "playground", f"--model_dir={SHIPPED}", f"--port={port}"]
    text = "이 영화는 배우들의 [MASK]가 훌륭하다."
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            assert process.stdout.readline() == f"open {address} in a browser; stop with Ctrl-C\n"
            label, answer = gradio_client.Client(address, verbose=False).predict(text, api_name="/ask")
        finally:
            process.kill()
    expected = albert_tf.load(SHIPPED).fill_mask([text])[0]
    assert [guess["piece"] for guess in answer[0]] == [guess["piece"] for guess in expected[0]]
    assert label["label"] == expected[0][0]["piece"] == "연기"
