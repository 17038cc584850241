"""The page: what is typed, and what the model makes of it."""

import html

import gradio as gr
import pandas as pd

from albert_tf.asked_texts import OPTIONS
from albert_tf.errors import InputError
from albert_tf.serving.playground.model import PRETRAINING, PlaygroundModel
from albert_tf.serving.playground.wording import EXAMPLES, MASK_EXAMPLES, NO_MASK, NOTHING_FOUND, WORDS
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization.vocabulary import MASK

_MAX_CHARACTERS = 5000
# More would fit on no screen.
_MAX_PIECES_OF_HEAT_MAP = 40
_LONG_INPUTS = ("context", "passage", OPTIONS)

I18N = gr.I18n(**WORDS)


def build_page(model: PlaygroundModel, name: str) -> gr.Blocks:
    """Returns the page of a model.

    Args:
        model: Whom to ask.
        name: What the page calls it.
    """
    with gr.Blocks(analytics_enabled=False, title=name) as page:
        gr.Markdown(f"# {name}")
        texts = [
            gr.Textbox(label=I18N(each), lines=2 + 3 * (each in _LONG_INPUTS), max_length=_MAX_CHARACTERS)
            for each in model.inputs
        ]
        button = gr.Button(I18N("ask"), variant="primary", elem_id="ask")
        examples = MASK_EXAMPLES if model.task == PRETRAINING else EXAMPLES.get(tuple(model.inputs))
        if examples:
            gr.Examples(examples, texts, label="예시 · Examples", example_labels=[example[0] for example in examples])
        answer, show_answer = _answer_of(model)
        with gr.Accordion(I18N("pieces"), open=False):
            pieces = [_marked(label=I18N(each), elem_id=f"pieces_{each}") for each in model.inputs]
        # Of what was asked, and not of what stands in the box by then, is the attention shown.
        asked_about = gr.State([])
        if model.shows_attention:
            _add_attention(model, asked_about)

        def ask(*values):
            values = [replace_halves(text or "")[:_MAX_CHARACTERS] for text in values]
            if model.task == PRETRAINING and MASK not in values[0]:
                raise gr.Error(NO_MASK, print_exception=False)
            try:
                found = show_answer(values, model.ask(values))
            except InputError as error:
                raise gr.Error(str(error), print_exception=False) from error
            return found, *(_show_pieces(model.pieces(text)) for text in values), values

        gr.on(
            [button.click, *(text.submit for text in texts)], ask, texts, [answer, *pieces, asked_about], api_name=False
        )
    return page


def _answer_of(model):
    """Returns the block that shows an answer, and a function of the texts and the prediction for what it shows."""
    if model.task == PRETRAINING:
        return gr.Dataframe(label=I18N("masks"), elem_id="answer", interactive=False), _show_guesses
    if model.task in ("Classification", "MultipleChoice"):
        return gr.Label(label=I18N("answer"), elem_id="answer"), lambda _, found: found["probabilities"]
    if model.task == "Regression":
        return gr.Number(label=I18N("answer"), elem_id="answer", precision=4), lambda _, found: found["score"]
    return _marked(label=I18N("answer"), elem_id="answer"), _show_spans


def _marked(**options):
    return gr.HighlightedText(combine_adjacent=False, show_legend=False, **options)


def _show_guesses(_, masks):
    columns = {
        f"{MASK} {number}": [f"{piece}  {probability:.1%}" for piece, probability in mask.items()]
        for number, mask in enumerate(masks, 1)
    }
    return pd.DataFrame(columns)


def _show_spans(texts, found):
    """Returns the last text with its entities, or the answer to a question, marked."""
    spans = found.get("entities")
    if spans is None:
        spans = [] if found["begin"] is None else [{**found, "type": "✓"}]
    entities = [{"entity": each["type"], "start": each["begin"], "end": each["end"]} for each in spans]
    if not entities:
        gr.Info(NOTHING_FOUND)
    return {"text": texts[-1], "entities": entities}


def _show_pieces(pieces):
    return [(piece, f"{begin}–{end}") for piece, begin, end in pieces]


def _add_attention(model, texts):
    num_layers, num_heads = model.num_layers_and_heads
    with gr.Accordion(I18N("attention"), open=False):
        with gr.Row():
            layer = gr.Slider(1, num_layers, num_layers, step=1, label=I18N("layer"))
            head = gr.Slider(1, num_heads, 1, step=1, label=I18N("head"))
        found = gr.HTML(elem_id="attention")

    def look(values, layer, head):
        if not values:
            return ""
        attention = model.attention(values, _MAX_PIECES_OF_HEAT_MAP)
        return _heat_map(attention.pieces, attention.probabilities[int(layer) - 1, int(head) - 1])

    gr.on([texts.change, layer.change, head.change], look, [texts, layer, head], [found], api_name=False)


def _heat_map(pieces, weights):
    """Returns a table of how much each piece, a row, looks at each other one, a column, as HTML."""
    table = pd.DataFrame(weights).style.format("").map(lambda weight: f"background: rgba(34, 87, 155, {weight:.3f})")
    for axis in ("index", "columns"):
        table = table.format_index(lambda place: html.escape(pieces[place]), axis=axis)
    return table.set_table_styles([{"selector": "th.col_heading", "props": "writing-mode: vertical-rl"}]).to_html()
