"""The model card of a run, README.md in Hugging Face's form: what the run knows of model, data, recipe and scores.

It follows from the run's files and its data's manifests alone, so a command that is repeated writes the same again.
"""

import hashlib
import json
import math
import os
import re

import tensorflow as tf

from albert_tf.files import read_json, read_text, write_text
from albert_tf.tokenization import KoreanWordPieceTokenizer, Tokenizer
from albert_tf.training.run_folder.guard import FOUND_AT, read_settings
from albert_tf.training.run_folder.results import DATA_FILE, EVAL_RESULTS_FILE

CARD_FILE = "README.md"

# The task of a model as Hugging Face calls it, by its class.
_PIPELINE_TAGS = {
    "AlbertForPreTraining": "fill-mask",
    "AlbertForSequenceClassification": "text-classification",
    "AlbertForTokenClassification": "token-classification",
    "AlbertForQuestionAnswering": "question-answering",
    "AlbertForConditionalQuestionAnswering": "question-answering",
    "AlbertForMultipleChoice": "multiple-choice",
}

# Of a task of a user's own, whose model may be any.
_OTHER_TAG = "feature-extraction"

# Values of --task_name that name no data set.
_FILE_FORMATS = ("tsv", "csv", "jsonl", "parquet", "conll")

# Its hash tells whether somebody has changed the card since.
_MARK = re.compile(r"<!-- Written by albert_tf \(([0-9a-f]{16})\)[^\n]*-->\n\n")

_COUNTS = {
    "documents": "documents",
    "sentences": "sentences",
    "words": "words",
    "tokens": "pieces",
}
# Settings that stand in sections of their own.
_NOT_OF_RECIPE = ("albert_config", "tokenizer", "init_checkpoint", "train_file", "data", "input_files", FOUND_AT)


def write_model_card(
    folder: str,
    model: tf.keras.Model,
    tokenizer: Tokenizer | None,
    manifests: list[dict] | None = None,
    license_name: str | None = None,
) -> str | None:
    """Writes the card of the run in a folder, unless somebody has written or changed the one that is there.

    Args:
        folder: The run's.
        model: Its model.
        tokenizer: What the data is encoded with, None if unknown.
        manifests: Of pre-training data, for each phase, as the builder wrote them; may lack anything.
        license_name: The model's licence as Hugging Face spells it; None for that of the card that is there.

    Returns:
        The path of the card; None if nothing was written, also where the folder holds no settings of a run.
    """
    path = os.path.join(folder, CARD_FILE)
    settings = read_settings(folder)
    present = read_text(path, "the model card") if tf.io.gfile.exists(path) else None
    if settings is None or (present is not None and not is_unchanged(present)):
        return None
    if license_name is None and present is not None:
        found = re.search(r"^license: (.*)$", present, re.MULTILINE)
        license_name = found and json.loads(found[1])
    results, data = (_read(folder, name) for name in (EVAL_RESULTS_FILE, DATA_FILE))
    evaluated_on = data.get(EVAL_RESULTS_FILE, {}).get("name")
    if evaluated_on and evaluated_on == (settings.get("train_file") or {}).get("name") and settings.get("dev_fraction"):
        # Else it would look as if the model were judged by what it has learnt.
        evaluated_on = f"{100 * settings['dev_fraction']:.3g}% of {evaluated_on}, put aside"
    name = os.path.basename(os.path.abspath(folder)) if "://" not in folder else folder.rstrip("/").split("/")[-1]
    kinds = (kind.__name__ for kind in type(model).__mro__)
    tag = next((_PIPELINE_TAGS[kind] for kind in kinds if kind in _PIPELINE_TAGS), _OTHER_TAG)
    dataset = settings.get("task_name")
    dataset = None if dataset in _FILE_FORMATS else dataset
    front = _front_matter(name, tag, tokenizer, license_name, dataset, results, evaluated_on)
    sections = [
        f"# {name}\n\n{_introduction(settings, model, tag)}",
        _model_section(settings, model),
        _data_section(settings, manifests or [], evaluated_on),
        _table("Recipe", _recipe(settings)),
        _tokenizer_section(tokenizer, manifests or []),
        _scores_section(results, evaluated_on),
        None if tag == _OTHER_TAG else _use_section(model, tag),
    ]
    write_text(path, _with_mark(front, "\n\n".join(filter(None, sections)) + "\n"))
    return path


def is_unchanged(card: str) -> bool:
    """Whether a card was written by `write_model_card`, and by nobody since."""
    found = _MARK.search(card)
    return bool(found) and _hash(card[: found.start()] + card[found.end() :]) == found[1]


def for_transformers(card: str) -> str:
    """Returns a card for the same model in Hugging Face's format: transformers loads it, and so not by our example."""
    card = card.replace("\nlibrary_name: albert_tf\n", "\nlibrary_name: transformers\n", 1)
    return _MARK.sub("", card).partition("\n## Use\n")[0] + "\n" if _MARK.search(card) else card


def _with_mark(front, body):
    mark = (
        f"Written by albert_tf ({_hash(front + body)}) from what the run knows; once you change it, it stays as it is."
    )
    return f"{front}<!-- {mark} -->\n\n{body}"


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(folder, name):
    path = os.path.join(folder, name)
    return read_json(path, "the results of the run") if tf.io.gfile.exists(path) else {}


def _front_matter(name, tag, tokenizer, license_name, dataset, results, evaluated_on):
    """Returns YAML between two lines of dashes; every scalar is spelled as in JSON, which YAML can read."""
    lines = []
    if isinstance(tokenizer, KoreanWordPieceTokenizer):
        lines.append("language: ko")
    if license_name:
        lines.append(f"license: {_quoted(license_name)}")
    lines += ["library_name: albert_tf", f"pipeline_tag: {tag}", "tags:", "- albert", "- tensorflow"]
    if dataset:
        lines += ["datasets:", f"- {_quoted(dataset)}"]
    scores = _scores(results)
    if scores:
        lines += ["metrics:", *(f"- {metric}" for metric in scores)]
        lines += ["model-index:", f"- name: {_quoted(name)}", "  results:", "  - task:", f"      type: {tag}"]
        lines += ["    dataset:", f"      name: {_quoted(evaluated_on or 'held-out')}"]
        lines += [f"      type: {_quoted(dataset or 'own')}", "    metrics:"]
        for metric, value in scores.items():
            # YAML takes 1e-05 for a word.
            number = re.sub(r"^(-?\d+)e", r"\1.0e", _number(value))
            lines += [f"    - type: {metric}", f"      value: {number}"]
    return "---\n" + "\n".join(lines) + "\n---\n"


def _introduction(settings, model, tag):
    init_checkpoint = settings.get("init_checkpoint")
    # Earlier versions wrote its path alone.
    path = init_checkpoint.get("path") if isinstance(init_checkpoint, dict) else init_checkpoint
    start = _last_names(path) if path else None
    begun = f"It began with the weights of `{start}`." if start else "It began with random weights."
    command = settings.get("command")
    made = f"trained by `{command}` of albert_tf" if command else "trained with albert_tf"
    return f"An ALBERT of {model.count_params():,} parameters for {tag}, {made}. {begun}"


def _model_section(settings, model):
    rows = [("class", f"`{type(model).__name__}`"), ("parameters", f"{model.count_params():,}")]
    return _table("Model", [*rows, *_as_rows(settings.get("albert_config", {}))])


def _data_section(settings, manifests, evaluated_on):
    train_file = settings.get("train_file")
    rows = [("training file", f"`{train_file['name']}`, SHA-256 {train_file['sha256']}")] if train_file else []
    # Earlier versions didn't write down how many there were.
    if train_file and "examples" in train_file:
        rows.append(("training examples", f"{train_file['examples']:,}"))
    for number, manifest in enumerate(filter(None, manifests), start=1):
        phase = f" of phase {number}" if len(manifests) > 1 else ""
        rows.append((f"files{phase}", ", ".join(f"`{name}`" for name in manifest.get("input_files", []))))
        rows += [(f"{title}{phase}", f"{manifest[key]:,}") for key, title in _COUNTS.items() if key in manifest]
        for split, found in manifest.get("splits", {}).items():
            title = f"{split.replace('_', '-')} examples{phase}"
            rows.append((title, f"{found['examples']:,}, masking {found['masking']}"))
        options = {name: value for name, value in manifest.get("options", {}).items() if name != "masking_options"}
        rows += _as_rows({**options, **manifest.get("options", {}).get("masking_options", {})}, phase)
    if evaluated_on:
        rows.append(("evaluated on", f"`{evaluated_on}`"))
    return _table("Data", rows)


def _recipe(settings):
    return _as_rows({name: value for name, value in settings.items() if name not in _NOT_OF_RECIPE})


def _tokenizer_section(tokenizer, manifests):
    if tokenizer is None:
        return None
    rows = [("class", f"`{type(tokenizer).__name__}`"), ("vocabulary size", f"{len(tokenizer):,}")]
    rates = [manifest["unknown_word_rate"] for manifest in manifests if "unknown_word_rate" in manifest]
    rows += [("unknown words of the training text", f"{rate:.2%}") for rate in rates[:1]]
    return _table("Tokenizer", [*rows, *_as_rows(tokenizer.to_dict())])


def _scores_section(results, evaluated_on):
    if not results:
        return None
    where = f" of `{evaluated_on}`" if evaluated_on else ""
    rows = [(name, _number(value)) for name, value in results.items() if isinstance(value, (int, float))]
    return _table(f"Scores{where}", rows)


def _use_section(model, tag):
    kind = type(model).__name__
    call = 'outputs = model(tokenizer(["텍스트"], padding=True, return_tensors="tf"))\n'
    # A published folder, which takes the card along, knows no task.
    answers = "\n\nThe folder of the run itself also answers by `albert_tf.load(folder).predict([...])`."
    answers = "" if tag == "fill-mask" else answers
    return f"""## Use

```python
from albert_tf.modeling import {kind}
from albert_tf.tokenization import load_tokenizer

folder = "path/to/this/folder"
tokenizer = load_tokenizer(folder)
model = {kind}.from_pretrained(folder)
{"" if tag == "multiple-choice" else call}```{answers}"""


def _scores(results):
    """Returns the results that are measures, and numbers."""
    return {
        name: value
        for name, value in results.items()
        if name not in ("global_step", "num_examples") and isinstance(value, (int, float)) and math.isfinite(value)
    }


def _as_rows(values, suffix=""):
    return [(f"{name}{suffix}", _shown(value)) for name, value in values.items() if value not in (None, [], {})]


def _shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    return _number(value) if isinstance(value, (int, float)) else str(value)


def _number(value):
    """Returns a number as JSON spells it, so that whoever reads the card finds the value of the files."""
    return json.dumps(value)


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


def _last_names(path):
    """Returns folder and name of a checkpoint; where the folder lay is nobody's business."""
    return "/".join(path.split("/")[-2:])


def _table(title, rows):
    if not rows:
        return None
    lines = [f"| {name} | {value.replace('|', '&#124;')} |" for name, value in rows]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *lines])
