"""The page: what is typed, and what the model makes of it."""

import gradio as gr

from albert_tf.asked_texts import OPTIONS
from albert_tf.serving.playground import views
from albert_tf.serving.playground.model import FILL_MASK, PlaygroundModel
from albert_tf.serving.playground.wording import EXAMPLES, MASK_EXAMPLES, WORDS, language_of
from albert_tf.text_encoding import replace_halves

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
        texts = [gr.Textbox(label=I18N(each), lines=2 + 3 * (each in _LONG_INPUTS)) for each in model.inputs]
        button = gr.Button(I18N("ask"), variant="primary", elem_id="ask")
        asked = [button.click, *(text.submit for text in texts)]
        # Of how many options there are, no example can know.
        if not model.num_choices:
            examples = MASK_EXAMPLES if model.guesses_masks else EXAMPLES[tuple(model.inputs)]
            names = [example[0] for example in examples]
            gr.Examples(examples, texts, label="예시 · Examples", example_labels=names)
        with gr.Tab(I18N("masks" if model.guesses_masks else "answer")):
            answer = gr.HTML(elem_id="answer")
        with gr.Tab(I18N("pieces")):
            pieces = gr.HTML(elem_id="pieces")
        # Of what was asked, and not of what stands in the box by then, is the attention shown.
        asked_about = gr.State(())
        if model.shows_attention:
            with gr.Tab(I18N("attention")):
                _add_attention(model, asked_about)

        def show(request: gr.Request, *values):
            return *_show(model, values, WORDS[language_of(request.headers.get("accept-language"))]), values

        for event in asked:
            event(show, texts, [answer, pieces, asked_about], api_name=False)
    return page


def _add_attention(model, texts):
    with gr.Row():
        layer = gr.Slider(1, model.num_layers, model.num_layers, step=1, label=I18N("layer"))
        head = gr.Slider(1, model.num_heads, 1, step=1, label=I18N("head"))
    found = gr.HTML(elem_id="attention")

    def look(values, layer, head):
        values, _ = _cut(values or [""])
        attention = model.attention(*values, max_pieces=_MAX_PIECES_OF_HEAT_MAP)
        return views.heat_map(attention.pieces, attention.probabilities[int(layer) - 1, int(head) - 1])

    for event in (texts.change, layer.change, head.change):
        event(look, [texts, layer, head], [found], api_name=False)


def _show(model, texts, words):
    texts, is_cut = _cut(texts)
    note = views.note(words["is_cut"].format(count=_MAX_CHARACTERS)) if is_cut else ""
    pieces = [views.bordered(text, model.pieces(text)) for text in texts]
    if len(pieces) > 1:
        pieces = [views.titled(words[name], each) for name, each in zip(model.inputs, pieces)]
    return note + _answer(model, texts, words), "".join(pieces)


def _answer(model, texts, words):
    """Returns what the model says of its input, by what it was trained for."""
    if model.guesses_masks:
        return _guesses(model, texts[0], words)
    if model.num_choices and len(texts[-1].splitlines()) != model.num_choices:
        return views.note(words["wrong_number"].format(count=model.num_choices))
    found = model.ask(*texts)
    if "probabilities" in found:
        return views.bars(dict(zip(found["labels"], found["probabilities"])))
    if "types" in found:
        spans = list(zip(found["begins"], found["ends"], found["types"]))
        return views.marked(texts[0], spans) if spans else views.note(words["no_entity"])
    if "answer" in found:
        if found["begin"] < 0:
            return views.note(words["no_answer"])
        return views.marked(texts[-1], [(found["begin"], found["end"], "")])
    return views.number(found["score"])


def _guesses(model, text, words):
    found = model.ask(text, signature=FILL_MASK)
    masks = [dict(zip(*mask)) for mask in zip(found["guesses"], found["probabilities"])]
    return views.guesses(masks) if masks else views.note(words["no_mask"])


def _cut(texts):
    """Returns the texts, none longer than is read, and whether one was."""
    texts = [replace_halves(text or "") for text in texts]
    return [text[:_MAX_CHARACTERS] for text in texts], any(len(text) > _MAX_CHARACTERS for text in texts)
