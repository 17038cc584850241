"""A page in the browser to try a model on texts of one's own: Gradio's interface."""

import gradio as gr

from albert_tf.asking.model import Model
from albert_tf.asking.texts import OPTIONS
from albert_tf.base.errors import InputError

# What a model may be asked on the page: the first of these that it can.
_ASKED = ("predict", "fill_mask", "generate", "find_replaced")


def build_page(model: Model, name: str) -> gr.Interface:
    """Returns the page of a model, which it calls by a name; raises InputError if the model gives vectors alone."""
    ability = next((each for each in _ASKED if each in model.abilities), None)
    if ability is None:
        raise model.cannot("predict")
    fields = model.task.input_fields if ability == "predict" else ("text",)

    def ask(*values):
        """Returns the probabilities that an answer has, of a mask those of the first one, and the whole answer."""
        values = [value.splitlines() if field == OPTIONS else value for field, value in zip(fields, values)]
        try:
            (answer,) = getattr(model, ability)([tuple(values)] if ability == "predict" else values)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from error
        if ability == "fill_mask":
            return {guess["piece"]: guess["probability"] for guess in answer[0]}, answer
        return answer.get("probabilities") if isinstance(answer, dict) else None, answer

    return gr.Interface(
        ask,
        [gr.Textbox(label=f"{each}, one per line" if each == OPTIONS else each, lines=3) for each in fields],
        [gr.Label(label="확률 · Probabilities"), gr.JSON(label="답 · Answer")],
        title=name,
        flagging_mode="never",
        analytics_enabled=False,
        api_name="ask",
    )
