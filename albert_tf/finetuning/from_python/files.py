"""Writing examples of Python values in the forms that the commands read.

So whoever trains on them reads them as the commands do, and a command can go on with the run, or evaluate it.
"""

import os

from albert_tf.errors import InputError, quote
from albert_tf.files import to_json, write_text
from albert_tf.finetuning.from_python.examples import GivenData

# What ends a line somewhere, or a column.
_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
# Lines of such a word would be read as something else.
_NO_WORDS = ("## ", "-DOCSTART-")


def write_given(data: GivenData, folder: str, name: str) -> str:
    """Writes examples as the commands read them, as "train" or "dev" and the ending of their form; returns the path."""
    form, ending = _FORMS[data.kind]
    path = os.path.join(folder, f"{name}.{ending}")
    write_text(path, form(data))
    return path


def _rows(data):
    rows = []
    for text, label in zip(data.texts, data.labels):
        texts = dict(zip(("text", "text_pair"), text if isinstance(text, tuple) else (text,)))
        rows.append(to_json({**texts, "label": label}) + "\n")
    return "".join(rows)


def _tagged(data):
    """Returns words with their tags, a word a line; or characters, where entities are given by their places."""
    blocks = []
    for number, (text, label) in enumerate(zip(data.texts, data.labels)):
        units = list(zip(text, label)) if isinstance(text, list) else _tagged_characters(text, label)
        for unit, _ in units:
            is_word = isinstance(text, list)
            if _BREAKS.intersection(unit) or (is_word and (unit != unit.strip() or not unit)):
                raise InputError(
                    f"texts[{number}]: {quote(unit)} can't be written to a file of entities; replace each tab or "
                    "line break by one space, which moves no other character, and leave no spaces at the "
                    "borders of words"
                )
            if is_word and (unit == "##" or unit.startswith(_NO_WORDS)):
                raise InputError(f"texts[{number}]: {quote(unit)} is not a word in files of entities; leave it out")
        blocks.append("".join(f"{unit}\t{tag}\n" for unit, tag in units))
    return "\n".join(blocks)


def _tagged_characters(text, entities):
    tags = ["O"] * len(text)
    for begin, end, kind in entities:
        tags[begin:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - begin - 1)]
    return list(zip(text, tags))


def _questions(data):
    paragraphs = []
    for number, ((question, context), answers) in enumerate(zip(data.texts, data.labels)):
        written = [{"text": text, "answer_start": begin} for text, begin in answers]
        entry = {"id": str(number), "question": question, "answers": written, "is_impossible": not answers}
        paragraphs.append({"context": context, "qas": [entry]})
    return to_json({"version": "given", "data": [{"paragraphs": paragraphs}]}) + "\n"


# How examples of a kind are written down, and what ending the file has.
_FORMS = {
    "labels": (_rows, "jsonl"),
    "multi_label": (_rows, "jsonl"),
    "numbers": (_rows, "jsonl"),
    "entities": (_tagged, "tsv"),
    "answers": (_questions, "json"),
}
