"""The families of encoders by their names in a config: how a card begins, and the class that converts their models.

A new one is a file with a subclass of `albert_tf.interchange.families.family.Family`, and a line here.
"""

import typing


class Registered(typing.NamedTuple):
    """A family that `model_type` stands for."""

    title: str  # a model of it, in cards
    converter: str  # its subclass of `Family`, imported when a model is converted


_CONVERTERS = "albert_tf.interchange.families"
FAMILIES = {
    "albert": Registered("An ALBERT", f"{_CONVERTERS}.albert.Albert"),
    "bert": Registered("A BERT", f"{_CONVERTERS}.bert.Bert"),
    "roberta": Registered("A RoBERTa", f"{_CONVERTERS}.roberta.Roberta"),
    "electra": Registered("An ELECTRA", f"{_CONVERTERS}.electra.Electra"),
    "distilbert": Registered("A DistilBERT", f"{_CONVERTERS}.bert.DistilBert"),
    "gpt2": Registered("A GPT-2", f"{_CONVERTERS}.gpt2.Gpt2"),
    "xlm-roberta": Registered("An XLM-RoBERTa", f"{_CONVERTERS}.roberta.XlmRoberta"),
    "xlm": Registered("An XLM", f"{_CONVERTERS}.xlm.Xlm"),
    "deberta-v2": Registered("A DeBERTa", f"{_CONVERTERS}.deberta.DebertaV2"),
}
