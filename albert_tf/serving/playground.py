"""A page in the browser to try a model on texts of one's own, of Gradio's blocks, in Korean and English."""

import html
import os
import typing

import gradio as gr
import pandas as pd
from starlette.middleware import Middleware

import albert_tf
from albert_tf.asked_texts import OPTIONS
from albert_tf.errors import InputError
from albert_tf.litert import LiteRTPredictor, find_litert
from albert_tf.serving.attention import read_attention
from albert_tf.serving.exported_predictor import ExportedPredictor
from albert_tf.serving.page_requests import PageRequestsOnly
from albert_tf.serving.predictor import Predictor
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.vocabulary import MASK

PRETRAINING = "pretraining"

_MAX_CHARACTERS = 5000
_MAX_PIECES = 40  # more of a heat map would fit on no screen
_LOCAL = ("127.0.0.1", "localhost", "::1")
_NAMES = {
    "text": "글 · Text",
    "text_pair": "둘째 글 · Second text",
    "question": "질문 · Question",
    "context": "본문 · Context",
    "passage": "지문 · Passage",
    OPTIONS: "보기, 한 줄에 하나씩 · Options, one per line",
}
_EXAMPLES = {
    ("text",): [
        ["배우들의 연기가 훌륭해서 두 번이나 봤어요."],
        ["김민수 씨는 지난 3월 부산에서 열린 행사에 다녀왔다."],
    ],
    ("text", "text_pair"): [["오늘 서울은 하루 종일 비가 내렸다.", "서울의 날씨가 맑았다."]],
    ("question", "context"): [["도서관은 언제 쉬나요?", "우리 동네 도서관은 강가에 있다. 월요일에는 쉰다."]],
    PRETRAINING: [["이 영화는 배우들의 [MASK]가 훌륭하다."], ["오늘은 날씨가 정말 [MASK]."]],
}


class PlaygroundModel:
    """A model to try: an export, or any folder that `albert_tf.load` takes; all are asked the same way.

    Attributes:
        task: The name of the `FinetuningTask` that it was trained for, or `PRETRAINING`.
        inputs: What is asked: the names of the texts.

    Raises:
        InputError: There is no model, or one that was pre-trained for something else than filling in masks.
    """

    def __init__(self, folder: str | os.PathLike):
        self.model = albert_tf.load(folder)
        if isinstance(self.model, ExportedPredictor | LiteRTPredictor):
            self.task, self.inputs = self.model.card["task"], self.model.card["input_fields"]
        elif isinstance(self.model, Predictor):
            self.task, self.inputs = type(self.model.task).__name__, [*self.model.task.input_fields]
        else:
            self.task, self.inputs = PRETRAINING, ["text"]
        if self.task == PRETRAINING and "fill_mask" not in self.model.abilities:  # nothing else is asked on the page
            raise self.model.cannot("fill_mask")
        is_litert = isinstance(self.model, LiteRTPredictor)
        self.tokenizer = load_tokenizer(find_litert(folder)) if is_litert else self.model.tokenizer

    @property
    def shows_attention(self) -> bool:
        """Whether it can tell what it looks at: an export can't, nor a model that reads a text once for each option."""
        return isinstance(self.model, Predictor | PretrainedModel) and self.task != "MultipleChoice"

    def ask(self, texts: list[str]) -> typing.Any:
        """Returns what `predict` says of one input; of a pre-trained model a {piece: probability} for each mask."""
        if self.task == PRETRAINING:
            (masks,) = self.model.fill_mask(texts, top_k=10)
            return [{guess["piece"]: guess["probability"] for guess in mask} for mask in masks]
        if self.task == "MultipleChoice":
            options = texts[-1].splitlines()
            (found,) = self.model.predict([(*texts[:-1], options)])
            named = zip(found["probabilities"].items(), options)
            return {"probabilities": {f"{letter}. {option}": value for (letter, value), option in named}}
        return self.model.predict([tuple(texts)])[0]

    def pieces(self, text: str) -> list[tuple[str, int, int]]:
        """Returns the pieces of a text, and from which character to before which each goes."""
        pieces, start = [], 0
        for part in text.split(MASK) if self.task == PRETRAINING else [text]:
            pieces += [(MASK, start - len(MASK), start)] * (start > 0)
            encoding = self.tokenizer.encode(part)
            spans = zip(encoding.tokens[1:-1], encoding.offsets[1:-1])
            pieces += [(piece, start + begin, start + end) for piece, (begin, end) in spans]
            start += len(part) + len(MASK)
        return pieces


def build_page(model: PlaygroundModel, name: str) -> gr.Blocks:
    """Returns the page of a model, which it calls by a name."""
    with gr.Blocks(analytics_enabled=False, title=name) as page:
        gr.Markdown(f"# {name}")
        lines = [5 if each in ("context", "passage", OPTIONS) else 2 for each in model.inputs]
        boxes = zip(model.inputs, lines)
        texts = [gr.Textbox(label=_NAMES[each], lines=count, max_length=_MAX_CHARACTERS) for each, count in boxes]
        button = gr.Button("예측하기 · Predict", variant="primary", elem_id="ask")
        examples = _EXAMPLES.get(PRETRAINING if model.task == PRETRAINING else tuple(model.inputs))
        if examples:
            gr.Examples(examples, texts, label="예시 · Examples", example_labels=[example[0] for example in examples])
        answer, show_answer = _answer_of(model)
        with gr.Accordion("토큰 · Pieces", open=False):
            pieces = [_marked(label=_NAMES[each], elem_id=f"pieces_{each}") for each in model.inputs]
        # Of what was asked, and not of what stands in the box by then, is the attention shown.
        asked_about = gr.State([])
        if model.shows_attention:
            _add_attention(model.model, asked_about)

        def ask(*values):
            values = [replace_halves(text or "")[:_MAX_CHARACTERS] for text in values]
            if model.task == PRETRAINING and MASK not in values[0]:
                message = "모델이 맞힐 자리에 [MASK]를 넣어 주세요. · Write [MASK] where the model is to guess."
                raise gr.Error(message, print_exception=False)
            try:
                found = show_answer(values, model.ask(values))
            except InputError as error:
                raise gr.Error(str(error), print_exception=False) from error
            shown = [[(piece, f"{begin}–{end}") for piece, begin, end in model.pieces(text)] for text in values]
            return found, *shown, values

        asking = [button.click, *(text.submit for text in texts)]
        gr.on(asking, ask, texts, [answer, *pieces, asked_about], api_name=False)
    return page


def _answer_of(model):
    """Returns the block that shows an answer, and a function of the texts and the prediction for what it shows."""
    options = {"label": "결과 · Prediction", "elem_id": "answer"}
    if model.task == PRETRAINING:
        return gr.Dataframe(interactive=False, **options), _show_guesses
    if model.task in ("Classification", "MultiLabel", "MultipleChoice"):
        return gr.Label(**options), lambda _, found: found["probabilities"]
    if model.task == "Regression":
        return gr.Number(precision=4, **options), lambda _, found: found["score"]
    return _marked(**options), _show_spans


def _marked(**options):
    return gr.HighlightedText(combine_adjacent=False, show_legend=False, **options)


def _show_guesses(_, masks):
    columns = [[f"{piece}  {probability:.1%}" for piece, probability in mask.items()] for mask in masks]
    return pd.DataFrame({f"{MASK} {number}": column for number, column in enumerate(columns, 1)})


def _show_spans(texts, found):
    """Returns the last text with its entities, or the answer to a question, marked."""
    answers = [] if found.get("begin") is None else [{**found, "type": "✓"}]
    spans = found.get("entities", answers)
    if not spans:
        gr.Info("글에서 찾지 못했습니다. · Nothing was found in the text.")
    entities = [{"entity": each["type"], "start": each["begin"], "end": each["end"]} for each in spans]
    return {"text": texts[-1], "entities": entities}


def _add_attention(model, texts):
    config = model.model.config
    num_layers = config.num_hidden_layers * config.inner_group_num
    with gr.Accordion("어텐션 · Attention", open=False):
        with gr.Row():
            layer = gr.Slider(1, num_layers, num_layers, step=1, label="층 · Layer")
            head = gr.Slider(1, config.num_attention_heads, 1, step=1, label="헤드 · Head")
        found = gr.HTML(elem_id="attention")

    def look(values, layer, head):
        if not values:
            return ""
        attention = read_attention(model, *values, max_pieces=_MAX_PIECES)
        return _heat_map(attention.pieces, attention.probabilities[int(layer) - 1, int(head) - 1])

    gr.on([texts.change, layer.change, head.change], look, [texts, layer, head], [found], api_name=False)


def _heat_map(pieces, weights):
    """Returns a table of how much each piece, a row, looks at each other one, a column, as HTML."""
    table = pd.DataFrame(weights).style.format("").map(lambda weight: f"background: rgba(34, 87, 155, {weight:.3f})")
    for axis in ("index", "columns"):
        table = table.format_index(lambda place: html.escape(pieces[place]), axis=axis)
    return table.set_table_styles([{"selector": "th.col_heading", "props": "writing-mode: vertical-rl"}]).to_html()


def open_page(folder: str, host: str, port: int) -> gr.Blocks:
    """Serves the page of a model; returns it, whose `block_thread` waits."""
    page = build_page(PlaygroundModel(folder), os.path.basename(os.path.abspath(folder)))
    page.launch(
        server_name=host,
        server_port=port,
        quiet=True,
        prevent_thread_lock=True,
        footer_links=[],
        app_kwargs={"middleware": [Middleware(PageRequestsOnly, is_local=host in _LOCAL)]},
        # Fonts of the reader's own machine: others would be loaded from elsewhere, and lack Hangul.
        theme=gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["monospace"]),
    )
    return page
