"""The page to try a model: what is shown is escaped and right; in a browser it is typed, clicked and read."""

import pathlib
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.errors import with_extra
from albert_tf.finetuning import ConditionalQuestionAnswering, Entities, MultipleChoice, QuestionAnswering
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.playground import model as playground_model
from albert_tf.serving.playground import views
from albert_tf.serving.playground.model import PlaygroundModel
from albert_tf.serving.playground.wording import EXAMPLES, WORDS, language_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "models" / "albert_ko_small"
EVIL = "<script>alert('&')</script>"


@pytest.mark.parametrize(
    "shown",
    [
        views.bars({EVIL: 0.5}),
        views.marked(EVIL, []),
        views.marked(f"a{EVIL}", [(1, len(EVIL), EVIL)]),
        views.bordered(EVIL, [(EVIL, 0, 3)]),
        views.guesses([{EVIL: 1.0}]),
        views.heat_map([EVIL], np.ones([1, 1])),
        views.note(EVIL),
    ],
)
def test_what_is_typed_is_never_markup(shown):
    assert "<script" not in shown and "&lt;scri" in shown


def test_most_probable_comes_first():
    shown = views.bars({"적음": 0.25, "많음": 0.75})
    assert shown.index("많음") < shown.index("적음") and "75.0%" in shown and "width:75.00%" in shown


def test_spans_are_marked_where_they_are():
    shown = views.marked("홍길동은 서울에 산다", [(0, 3, "PER"), (5, 7, "LOC")])
    assert ">홍길동<sup" in shown and "</mark>은 <mark" in shown and shown.endswith("</mark>에 산다</div>")


@pytest.mark.parametrize(
    ("header", "language"),
    [("ko-KR,ko;q=0.9,en;q=0.8", "ko"), ("fr,en;q=0.5,ko;q=0.1", "en"), ("de", "en"), ("", "en"), (None, "en")],
)
def test_browser_says_which_language(header, language):
    assert language_of(header) == language


def test_both_languages_say_the_same_things():
    assert list(WORDS["ko"]) == list(WORDS["en"])
    assert all({*inputs} < {*WORDS["ko"]} for inputs in EXAMPLES)
    assert all(len(example) == len(inputs) for inputs, examples in EXAMPLES.items() for example in examples)


@pytest.mark.slow
def test_export_is_asked_without_its_attention(exported_classifier):
    model = PlaygroundModel(exported_classifier)
    assert (model.task, model.inputs, model.guesses_masks) == ("Classification", ["text"], False)
    assert not model.shows_attention
    found = model.ask("좋은 영화 \x00 \ud800")
    assert found["labels"] == ["나쁨", "좋음"] and sum(found["probabilities"]) == pytest.approx(1)
    assert [text for _, *text in model.pieces("좋은 영화")][-1][-1] == 5


@pytest.mark.slow
def test_litert_export_is_asked(export_classifier, exported_classifier):
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    model, other = PlaygroundModel(export_classifier("litert")), PlaygroundModel(exported_classifier)
    assert (model.task, model.inputs, model.guesses_masks) == ("Classification", ["text"], False)
    assert not model.shows_attention
    found, expected = model.ask("좋은 영화 \ud800"), other.ask("좋은 영화 \ud800")
    assert list(found) == list(expected) and found["labels"] == expected["labels"]
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-5)
    assert model.pieces("좋은 영화") == other.pieces("좋은 영화")


@pytest.fixture
def model_for(monkeypatch, config, sample_tokenizer):
    """Returns the model of the page for a folder with random weights of a task."""

    def load(task):
        tf.keras.utils.set_random_seed(1)
        trained = TrainedModel(task.make_model(), sample_tokenizer, 64, task, "model.ckpt-1", {})
        monkeypatch.setattr(playground_model, "load_trained", lambda *_: trained)
        return PlaygroundModel("nowhere")

    return load


@pytest.fixture(scope="module")
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


def test_model_that_chooses_is_asked_with_an_option_a_line(model_for, config):
    model = model_for(MultipleChoice(config, num_choices=3))
    assert model.inputs == ["passage", "question", "options"] and not model.shows_attention
    found = model.ask("민수는 어제 시장에 갔다.", "민수는 어제 어디에 갔나?", "학교\n시장\n집")
    assert found["labels"] == ["A. 학교", "B. 시장", "C. 집"] and sum(found["probabilities"]) == pytest.approx(1)

    page = pytest.importorskip("albert_tf.serving.playground.page", reason="needs gradio")
    answer, pieces = page._show(model, ["민수는 시장에 갔다.", "어디에?", "학교\n시장"], WORDS["en"])
    assert "Write 3 options, one a line." in answer
    assert [pieces.count(f">{title}<") for title in ("Passage", "Question", "Options, one a line")] == [1, 1, 1]
    answer, _ = page._show(model, ["민수는 시장에 갔다.", "어디에?", "학교\n시장\n집"], WORDS["en"])
    assert all(option in answer for option in ("A. 학교", "B. 시장", "C. 집"))
    page.build_page(model, "아무 이름")


def test_attention_of_two_texts_is_that_of_both(model_for, config):
    model = model_for(QuestionAnswering(config))
    question, context = "어디에서 봤나요?", "이 영화는 서울에서 봤다."
    both = [[piece for piece, *_ in model.pieces(text)] for text in (question, context)]
    attention = model.attention(question, context, max_pieces=40)
    assert attention.pieces == ["[CLS]", *both[0], "[SEP]", *both[1], "[SEP]"]
    assert attention.probabilities.shape == (1, 2, *[len(attention.pieces)] * 2)
    assert len(model.attention("글 " * 100, "글 " * 100, max_pieces=11).pieces) == 11


@pytest.mark.parametrize("task", [QuestionAnswering, ConditionalQuestionAnswering])
def test_attention_is_that_of_what_the_model_reads(model_for, config, task):
    model = model_for(task(config.replace(question_alignment="words")))
    texts = "영화는 어디에서 봤나요?", "이 영화는 서울에서 봤다."
    # The layer begins with zeros, and then the encoder reads the words themselves.
    begun = model.attention(*texts, max_pieces=40).probabilities
    kernel = model._trained.model.question_alignment.mix.kernel
    kernel.assign(tf.random.stateless_normal(kernel.shape, [1, 2]))
    found = model.attention(*texts, max_pieces=40).probabilities
    assert found.shape == begun.shape and np.abs(found - begun).max() > 0.01


@pytest.mark.slow
def test_shipped_model_guesses_masks_and_shows_its_attention():
    model = PlaygroundModel(SHIPPED)
    text = "이 영화는 배우들의 [MASK]가 훌륭하다."
    found = model.ask(text, signature="fill_mask")
    assert np.shape(found["guesses"]) == (1, 10) and "연기" in found["guesses"][0]
    pieces = model.pieces(text)
    assert [(text[begin:end]) for piece, begin, end in pieces if piece == "[MASK]"] == ["[MASK]"]
    assert all(piece.removeprefix("##") == text[begin:end] for piece, begin, end in pieces)

    attention = model.attention(text, max_pieces=40)
    assert attention.pieces == ["[CLS]", *(piece for piece, *_ in pieces), "[SEP]"]
    size = len(attention.pieces)
    assert attention.probabilities.shape == (model.num_layers, model.num_heads, size, size)
    np.testing.assert_allclose(attention.probabilities.sum(axis=-1), 1, atol=1e-5)
    assert len(model.attention("글 " * 100, max_pieces=10).pieces) == 10


def test_missing_library_is_named(run_script, monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
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
    page.get_by_role("button", name="물어보기").click()
    page.wait_for_selector("#answer .bars")
    assert {"나쁨", "좋음"} <= set(page.locator("#answer").inner_text().split())
    page.get_by_role("tab", name="조각").click()
    page.wait_for_selector("#pieces .pieces")
    assert page.locator("#pieces").inner_text().startswith("재") and "<s##c" in page.locator("#pieces").inner_text()
    assert page.get_by_role("tab", name="주의").count() == 0
    # Nothing leaves the machine.
    assert all("127.0.0.1" in url or url.startswith(("data:", "blob:")) for url in page.requested)


@pytest.mark.slow
def test_shipped_model_is_tried_in_a_browser(open_page):
    page = open_page(SHIPPED, "en-US")
    page.get_by_text("이 영화는 배우들의 [MASK]가 훌륭하다.").first.click()
    # The example is there a moment after the click.
    page.wait_for_function("document.querySelector('textarea').value.includes('[MASK]')")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector("#answer .guesses")
    assert "연기" in page.locator("#answer").inner_text()
    page.get_by_role("tab", name="Attention").click()
    page.locator("#attention table", has_text="[MASK]").wait_for()
    # What is typed and not asked changes nothing.
    of_head_1 = page.locator("#attention table").inner_html()
    page.locator("textarea").first.fill("다른 글")
    page.get_by_role("spinbutton").last.fill("2")
    page.get_by_role("spinbutton").last.press("Enter")
    page.wait_for_function("(before) => document.querySelector('#attention table').innerHTML != before", arg=of_head_1)
    assert "[MASK]" in page.locator("#attention").inner_text()
    page.locator("textarea").first.fill("빈칸이 없는 글")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("tab", name="Fill the gaps").click()
    page.wait_for_selector("#answer .note")
    assert page.locator("#answer").inner_text() == "Write [MASK] where the model is to guess."


@pytest.mark.slow
def test_answer_is_marked_in_a_browser(open_page, export_task, config):
    folder = export_task(QuestionAnswering(config))
    texts = ["어디에서 봤나요?", f"이 영화는 서울에서 봤다. {EVIL}"]
    expected = PlaygroundModel(folder).ask(*texts)
    assert expected["begin"] >= 0
    page = open_page(folder, "ko-KR")
    for box, text in zip(page.locator("textarea").all(), texts):
        box.fill(text)
    page.get_by_role("button", name="물어보기").click()
    page.wait_for_selector("#answer .marked")
    assert page.locator("#answer .marked").text_content() == texts[1]
    assert page.locator("#answer mark").text_content() == expected["answer"]
    page.get_by_role("tab", name="조각").click()
    page.wait_for_selector("#pieces .pieces")
    assert page.locator("#pieces .pieces").count() == 2
    assert {"질문", "본문"} <= set(page.locator("#pieces").inner_text().split())


@pytest.mark.slow
def test_entities_are_marked_in_a_browser(open_page, export_task, config):
    folder = export_task(Entities(config, ("PS", "LC")))
    text = "김민수 씨는 지난 3월 부산에 다녀왔다."
    found = PlaygroundModel(folder).ask(text)
    assert found["texts"]
    page = open_page(folder, "en-US")
    page.locator("textarea").first.fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector("#answer mark")
    marks = page.locator("#answer mark").all_text_contents()
    assert marks == [part + kind for part, kind in zip(found["texts"], found["types"])]
