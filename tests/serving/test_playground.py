"""The page to try a model: what is shown is right and no markup; in a browser it is typed, clicked and read."""

import http.client
import pathlib
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

pytest.importorskip("gradio", reason="needs gradio: pip install 'albert_tf[playground]'")

from albert_tf.errors import InputError, with_extra
from albert_tf.finetuning import ConditionalQuestionAnswering, Entities, MultipleChoice, QuestionAnswering
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving import playground, predictor, pretrained_model
from albert_tf.serving.attention import read_attention
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.playground import PlaygroundModel

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "models" / "albert_ko_small"
EVIL = "<script>alert('&')</script>"


def test_what_is_typed_is_never_markup():
    shown = playground._heat_map([EVIL], np.ones([1, 1]))
    assert "<script" not in shown and shown.count("&lt;scri") == 2


def test_spans_are_marked_where_they_are():
    entities = {"entities": [{"type": "PER", "begin": 0, "end": 3}, {"type": "LOC", "begin": 5, "end": 7}]}
    shown = playground._show_spans(["홍길동은 서울에 산다"], entities)
    assert [shown["text"][each["start"] : each["end"]] for each in shown["entities"]] == ["홍길동", "서울"]
    assert [each["entity"] for each in shown["entities"]] == ["PER", "LOC"]
    assert playground._show_spans(["질문", "본문"], {"begin": None})["entities"] == []


@pytest.mark.slow
def test_exports_are_asked_without_their_attention(export_classifier, exported_classifier):
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    models = [PlaygroundModel(folder) for folder in (exported_classifier, export_classifier("litert"))]
    for model in models:
        assert (model.task, model.inputs, model.shows_attention) == ("Classification", ["text"], False)
        assert model.pieces("좋은 영화")[-1][-1] == 5
    found, of_litert = (model.ask(["좋은 영화 \x00"])["probabilities"] for model in models)
    assert list(found) == ["나쁨", "좋음"] and sum(found.values()) == pytest.approx(1)
    assert of_litert == pytest.approx(found, abs=1e-5)


@pytest.mark.slow
def test_export_of_a_pretrained_model_is_asked_as_its_folder_is(exported_shipped):
    text = "이 영화는 배우들의 [MASK]가 [MASK]."
    exported, expected = PlaygroundModel(exported_shipped).ask([text]), PlaygroundModel(SHIPPED).ask([text])
    assert [len(mask) for mask in exported] == [10, 10]
    for mask, guesses in zip(exported, expected):
        assert mask == pytest.approx(guesses, abs=1e-5)


@pytest.fixture
def model_for(monkeypatch, config, sample_tokenizer):
    """Returns the model of the page for a folder with random weights of a task."""

    def load(task):
        tf.keras.utils.set_random_seed(1)
        trained = TrainedModel(task.make_model(), sample_tokenizer, 64, task, "model.ckpt-1", {})
        monkeypatch.setattr(predictor, "load_finetuned", lambda *_: trained)
        monkeypatch.setattr(predictor, "checkpoint_identity", lambda _: {"index_sha256": ""})
        return PlaygroundModel("nowhere")

    return load


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.mark.slow
def test_model_that_chooses_is_asked_with_an_option_a_line(model_for, config):
    model = model_for(MultipleChoice(config, num_choices=3))
    assert model.inputs == ["passage", "question", "options"] and not model.shows_attention
    asked = ["민수는 어제 시장에 갔다.", "민수는 어제 어디에 갔나?", "학교\n시장\n집"]
    found = model.ask(asked)["probabilities"]
    assert list(found) == ["A. 학교", "B. 시장", "C. 집"] and sum(found.values()) == pytest.approx(1)
    with pytest.raises(InputError, match="a list of 3 options"):
        model.ask([*asked[:2], "학교\n시장"])
    playground.build_page(model, "아무 이름")


def test_attention_of_two_texts_is_that_of_both(model_for, config):
    model = model_for(QuestionAnswering(config))
    texts = ["어디에서 봤나요?", "이 영화는 서울에서 봤다."]
    both = [[piece for piece, *_ in model.pieces(text)] for text in texts]
    attention = read_attention(model.model, *texts, max_pieces=40)
    assert attention.pieces == ["[CLS]", *both[0], "[SEP]", *both[1], "[SEP]"]
    assert attention.probabilities.shape == (1, 2, *[len(attention.pieces)] * 2)
    assert len(read_attention(model.model, *["글 " * 100, "글 " * 100], max_pieces=11).pieces) == 11


@pytest.mark.parametrize("task", [QuestionAnswering, ConditionalQuestionAnswering])
def test_attention_is_that_of_what_the_model_reads(model_for, config, task):
    asked = model_for(task(config.replace(question_alignment="words")))
    texts = ["영화는 어디에서 봤나요?", "이 영화는 서울에서 봤다."]
    # The layer begins with zeros, and then the encoder reads the words themselves.
    begun = read_attention(asked.model, *texts, max_pieces=40).probabilities
    kernel = asked.model.model.question_alignment.mix.kernel
    kernel.assign(tf.random.stateless_normal(kernel.shape, [1, 2]))
    found = read_attention(asked.model, *texts, max_pieces=40).probabilities
    assert found.shape == begun.shape and np.abs(found - begun).max() > 0.01


@pytest.mark.slow
def test_shipped_model_guesses_masks_and_shows_its_attention():
    model = PlaygroundModel(SHIPPED)
    text = "이 영화는 배우들의 [MASK]가 훌륭하다."
    (guesses,) = model.ask([text])
    assert len(guesses) == 10 and "연기" in guesses
    pieces = model.pieces(text)
    assert [text[begin:end] for piece, begin, end in pieces if piece == "[MASK]"] == ["[MASK]"]
    assert all(piece.removeprefix("##") == text[begin:end] for piece, begin, end in pieces)

    attention = read_attention(model.model, *[text], max_pieces=40)
    assert attention.pieces == ["[CLS]", *(piece for piece, *_ in pieces), "[SEP]"]
    size = len(attention.pieces)
    assert attention.probabilities.shape == (4, 4, size, size)
    np.testing.assert_allclose(attention.probabilities.sum(axis=-1), 1, atol=1e-5)
    assert len(read_attention(model.model, *["글 " * 100], max_pieces=10).pieces) == 10


def test_model_that_fills_no_masks_has_no_page(monkeypatch, config, sample_tokenizer):
    model = AlbertForPreTraining(config.replace(is_causal=True))
    trained = TrainedModel(model, sample_tokenizer, 64, None, "", {}, fills_masks=False, predicts_next=True)
    monkeypatch.setattr(playground.albert_tf, "load", lambda _: asked)
    monkeypatch.setattr(pretrained_model, "load_trained", lambda *_: trained)
    monkeypatch.setattr(pretrained_model, "checkpoint_identity", lambda _: {"index_sha256": ""})
    asked = pretrained_model.PretrainedModel("gpt")
    with pytest.raises(InputError, match=r"^gpt was not pre-trained to fill in what is missing"):
        PlaygroundModel("gpt")


def test_missing_library_is_named(run_script, monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    monkeypatch.delitem(sys.modules, "albert_tf.serving.playground")
    result = run_script("playground.py", model_dir=SHIPPED)
    assert result.code == 1 and result.errors.startswith("error: playground.py needs gradio (")
    assert result.errors.endswith(f"); pip install {with_extra('playground')}\n")


class Page:
    """The page of a model in a process of its own."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, str(ROOT / "playground.py"), f"--model_dir={folder}", f"--port={port}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = f"http://127.0.0.1:{port}"
        assert self.process.stdout.readline() == f"open {self.address} in a browser; stop with Ctrl-C\n"

    def answers(self, method, path, body=None, **headers):
        """Returns the status of the answer to a request."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status


@pytest.mark.slow
def test_page_takes_no_uploads_and_answers_no_other_site():
    opened = Page(SHIPPED)
    try:
        join = "/gradio_api/queue/join"
        assert opened.answers("GET", "/") == 200
        assert opened.answers("GET", "/", Origin=opened.address) == 200
        assert opened.answers("GET", "/", Origin="http://evil.example") == 403
        assert opened.answers("GET", "/", Host="evil.example:7860") == 403
        assert opened.answers("GET", "/", Host="localhost") == 200  # as browsers say it of port 80
        assert opened.answers("POST", "/gradio_api/upload", b"1" * 1000) == 404
        for path in ("/gradio_api/info", "/config", "/gradio_api/file=/etc/passwd", "/monitoring"):
            assert opened.answers("GET", path) == 404
        assert opened.answers("POST", join, b"1" * 200_000) == 413
        assert opened.answers("POST", join, iter([b"1"])) == 413
        assert opened.answers("POST", join, b"{}") == 422
    finally:
        opened.process.kill()
        opened.process.wait()


@pytest.fixture
def open_page():
    """Opens the page of a folder in Chromium, in a language."""
    pytest.importorskip("gradio", reason="needs gradio: pip install 'albert_tf[playground]'")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium: apt install chromium")
    pages = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])

        def open_in(folder, locale):
            pages.append(Page(folder))
            page = browser.new_context(locale=locale).new_page()
            page.requested = []
            page.on("request", lambda request: page.requested.append(request.url))
            page.goto(pages[-1].address)
            page.wait_for_selector("#ask")
            return page

        yield open_in
        browser.close()
    for page in pages:
        page.process.kill()
        page.process.wait()


@pytest.mark.slow
def test_export_is_tried_in_a_browser(open_page, exported_classifier):
    page = open_page(exported_classifier, "ko-KR")
    page.locator("textarea").first.fill(f"재미있는 영화 {EVIL}")
    page.get_by_role("button", name="예측하기").click()
    page.locator("#answer", has_text="나쁨").wait_for()
    assert "좋음" in page.locator("#answer").inner_text()
    page.get_by_role("button", name="토큰").click()
    page.locator("#pieces_text", has_text="재").wait_for()
    assert page.locator("#pieces_text").get_by_text("<").count() and not page.locator("#pieces_text script").count()
    assert page.get_by_role("button", name="어텐션").count() == 0
    # Nothing leaves the machine.
    assert all("127.0.0.1" in url or url.startswith(("data:", "blob:")) for url in page.requested)


@pytest.mark.slow
def test_shipped_model_is_tried_in_a_browser(open_page):
    page = open_page(SHIPPED, "en-US")
    page.get_by_text("이 영화는 배우들의 [MASK]가 훌륭하다.").first.click()
    # The example is there a moment after the click.
    page.wait_for_function("document.querySelector('textarea').value.includes('[MASK]')")
    page.get_by_role("button", name="예측하기 · Predict").click()
    page.locator("#answer", has_text="연기").wait_for()
    page.get_by_role("button", name="Attention").click()
    page.locator("#attention table", has_text="[MASK]").wait_for()
    # What is typed and not asked changes nothing.
    of_head_1 = page.locator("#attention table").inner_html()
    page.locator("textarea").first.fill("다른 글")
    page.get_by_role("spinbutton").last.fill("2")
    page.get_by_role("spinbutton").last.press("Enter")
    page.wait_for_function("(before) => document.querySelector('#attention table').innerHTML != before", arg=of_head_1)
    assert "[MASK]" in page.locator("#attention").inner_text()
    page.locator("textarea").first.fill("빈칸이 없는 글")
    page.get_by_role("button", name="예측하기 · Predict").click()
    page.get_by_text("· Write [MASK] where the model is to guess.").wait_for()


@pytest.mark.slow
def test_answer_is_marked_in_a_browser(open_page, export_task, config):
    folder = export_task(QuestionAnswering(config))
    texts = ["어디에서 봤나요?", f"이 영화는 서울에서 봤다. {EVIL}"]
    expected = PlaygroundModel(folder).ask(texts)
    assert expected["begin"] is not None
    page = open_page(folder, "ko-KR")
    for box, text in zip(page.locator("textarea").all(), texts):
        box.fill(text)
    page.get_by_role("button", name="예측하기").click()
    page.locator("#answer", has_text="✓").wait_for()
    assert page.locator("#answer .highlighted .text").text_content() == expected["text"]
    assert "".join(page.locator("#answer .text").all_text_contents()) == texts[1]
    page.get_by_role("button", name="토큰").click()
    page.locator("#pieces_question", has_text="질문").wait_for()
    page.locator("#pieces_context", has_text="본문").wait_for()


@pytest.mark.slow
def test_entities_are_marked_in_a_browser(open_page, export_task, config):
    folder = export_task(Entities(config, ("PS", "LC")))
    text = "김민수 씨는 지난 3월 부산에 다녀왔다."
    found = PlaygroundModel(folder).ask([text])["entities"]
    assert found
    page = open_page(folder, "en-US")
    page.locator("textarea").first.fill(text)
    page.get_by_role("button", name="예측하기 · Predict").click()
    page.locator("#answer", has_text=found[0]["type"]).first.wait_for()
    shown = page.locator("#answer .highlighted .text").all_text_contents()
    assert shown == [text[each["begin"] : each["end"]] for each in found]
    assert page.locator("#answer .label").all_text_contents() == [each["type"] for each in found]
