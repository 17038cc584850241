"""The model card of a run, README.md in Hugging Face's form: its model, data, recipe and scores.

It follows from the run's files and its data's manifests alone, so a command that is repeated writes the same again.
"""

import hashlib
import json
import math
import os
import re

import tensorflow as tf

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE, find_beside_checkpoint
from albert_tf.base.files import read_json, read_text, write_text
from albert_tf.config import FAMILIES
from albert_tf.tokenization import KoreanWordPieceTokenizer, Tokenizer
from albert_tf.training.run_folder.guard import CHECKPOINTS, DATA_FILE, FOUND_AT, read_settings

CARD_FILE = "README.md"
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LICENSE, _BASE_MODEL = "license", "base_model"
# The first says what `license: other` is, and the second where it stands.
_OF_LICENSE = (_LICENSE, "license_name", "license_link")
# Licences under which what is made of a work has to be shared, too.
_SHARE_ALIKE = ("cc-by-sa", "cc-by-nc-sa")
# Those that give a work away and ask nothing: whoever makes something of it says alone under which licence that is.
_DEDICATIONS = ("cc0-1.0", "pddl", "unlicense")

Facts = dict[str, str | list[str]]


def facts_of(card: str) -> Facts:
    """Returns licence and `base_model` of a card's front matter: words, or lists of words; others are left out."""
    found = _FRONT_MATTER.match(card)
    values = {key: _values(found[1], key) for key in (*_OF_LICENSE, _BASE_MODEL)} if found else {}
    return {key: words[0] if len(words) == 1 else words for key, words in values.items() if words}


def with_base_model(card: str, base_model: str) -> str:
    """Returns a card that names the model it is made of, unless it names one already."""
    found = _FRONT_MATTER.match(card)
    line = f"{_BASE_MODEL}: {base_model}\n"
    if found is None:
        return f"---\n{line}---\n{card}"
    return card if _values(found[1], _BASE_MODEL) else card[: found.end(1)] + line + card[found.end(1) :]


def carried_facts(settings: dict, present_card: str = "", license_name: str | None = None) -> Facts:
    """Returns the facts for a run's card: as asked, else as in its present card, else as in that of its start."""
    of_start, present = _facts_of_start(settings), facts_of(present_card)
    named = {_LICENSE: license_name} if license_name is not None else present if _LICENSE in present else of_start
    return _of_license(named) | {key: value for key, value in (of_start | present).items() if key == _BASE_MODEL}


def license_beside(checkpoint: str) -> Facts:
    """Returns the licence in the card of a checkpoint's folder; nothing where there is none."""
    return _of_license(_facts_of_card_beside(checkpoint))


def share_alike_warning(settings: dict, license_name: str | None) -> str | None:
    """Returns a warning if a model learnt from is share-alike, and the chosen licence, or the start's, is another."""
    of_start, of_teacher = (_licenses(settings, name) for name in CHECKPOINTS)
    chosen = of_start if license_name is None else [license_name]
    for what, licenses in (("model that this one started from", of_start), ("teacher of this model", of_teacher)):
        share_alike = [name for name in licenses if name.lower().startswith(_SHARE_ALIKE)]
        if chosen and share_alike and not {*map(str.lower, chosen)} & {*map(str.lower, licenses)}:
            return (
                f"warning: the {what} is under {share_alike[0]}, which requires what is made of it to be shared under "
                f"the same licence, not under {chosen[0]}"
            )
    return None


def _licenses(settings, name):
    found = _facts_of_model(settings, name).get(_LICENSE, [])
    return [found] if isinstance(found, str) else found


def _facts_of_start(settings):
    """Returns the facts of the model that a run began with; if that has no licence, with its teacher's licence."""
    start, teacher = (_facts_of_model(settings, name) for name in CHECKPOINTS)
    return start if _LICENSE in start else start | _of_license(teacher)


def _of_license(facts):
    return {key: facts[key] for key in _OF_LICENSE if key in facts}


def _path_of(settings, name):
    """Returns the path of the checkpoint that a setting of a run names, None for none."""
    return (settings.get(name) or {}).get("path")


def _facts_of_card_beside(checkpoint):
    path = find_beside_checkpoint(checkpoint, CARD_FILE)
    if path is None:
        return {}
    with tf.io.gfile.GFile(path, "rb") as file:
        return facts_of(file.read().decode("utf-8", errors="replace"))


def _facts_of_model(settings, name):
    """Returns the facts of a checkpoint's card that go on to what is made of it."""
    facts = _facts_of_card_beside(_path_of(settings, name))
    is_given_away = str(facts.get(_LICENSE)).lower() in _DEDICATIONS
    return {key: value for key, value in facts.items() if key not in _OF_LICENSE or not is_given_away}


def _values(front, key):
    """Returns the words that YAML gives a key, on its line or as a list on those below."""
    found = re.search(rf"^{key}:[ \t]*(.*?)\r?\n((?:[ \t]*-[ \t].*\n)*)", front, re.MULTILINE)
    if found is None:
        return []
    on_line = re.sub(r"(?:^|\s)#.*", "", found[1]).strip()
    words = on_line[1:-1].split(",") if on_line.startswith("[") else [on_line]
    words += [re.sub(r"\s#.*", "", line).strip()[1:] for line in found[2].splitlines()]
    return [word for word in (word.strip().strip("\"'").strip() for word in words) if word]


# Its hash tells whether somebody has changed the card since.
_MARK = re.compile(r"<!-- Written by albert_tf \(([0-9a-f]{16})\)[^\n]*-->\n\n")
# Settings that stand in sections of their own.
_IN_SECTIONS = ("albert_config", "tokenizer", *CHECKPOINTS, "teacher_setup", "train_file", "data", "input_files")
_OF_MANIFEST = ("input_files", "documents", "sentences", "words", "tokens", "unknown_word_rate")
# What to ask a model, by what Hugging Face calls that.
_QUESTIONS = {
    "fill-mask": 'fill_mask(["오늘은 날씨가 정말 [MASK]."])',
    "text-classification": 'predict(["..."])  # or tuples of two texts, if it was trained on pairs',
    "token-classification": 'predict(["..."])',
    "question-answering": 'predict([("question", "text that answers it")])',
    "sentence-similarity": 'similarity([("...", "...")])  # or encode(["..."]), a vector of each text',
    "text-generation": 'generate(["오늘은 날씨가"])',
    "multiple-choice": 'predict([("passage", "question", ["option", "option"])])',
}
_EXAMPLE = """## Use

```python
import albert_tf

model = albert_tf.load("path/to/this/folder")
model.{0}
```

`{1}.from_pretrained("path/to/this/folder")` of `albert_tf.modeling` is the Keras model itself."""
_SIGNIFICANT_DIGITS = 6
# Of the results, what is not the model's own.
_NO_SCORES = ("global_step", "num_examples", "blind_", "linear_", "teacher_")


def write_model_card(
    folder: str,
    model: tf.keras.Model,
    tokenizer: Tokenizer | None,
    manifests: list[dict] | None = None,
    license_name: str | None = None,
) -> str | None:
    """Writes the card of the run in a folder, unless somebody has written or changed it; returns the path, or None.

    Manifests are those of pre-training data, for each phase, as the builder wrote them; they may lack anything. The
    licence is spelled as Hugging Face does; None for that of the card that is there, or else of the model that the run
    began with. Nothing is written where the folder holds no settings of a run, either.
    """
    path, manifests = os.path.join(folder, CARD_FILE), manifests or []
    settings = read_settings(folder)
    present = read_text(path, "the model card") if tf.io.gfile.exists(path) else ""
    if settings is None or (present and not is_unchanged(present)):
        return None
    carried = carried_facts(settings, present, license_name)
    results, data = (_read(os.path.join(folder, name)) for name in (EVAL_RESULTS_FILE, DATA_FILE))
    results = {name: _rounded(value) for name, value in results.items()}
    name = os.path.basename(os.path.abspath(folder) if "://" not in folder else folder.rstrip("/"))
    tag = getattr(model, "hf_tag", "feature-extraction")
    if tag == "fill-mask" and settings.get("albert_config", {}).get("is_causal"):
        tag = "text-generation"
    evaluated_on = _evaluated_on(settings, data)
    model_type = settings.get("albert_config", {}).get("model_type", "albert")
    model_class, parameters, tokenizer_class = type(model).__name__, model.count_params(), type(tokenizer).__name__
    of_tokenizer = tokenizer and {"class": tokenizer_class, "vocabulary size": len(tokenizer), **tokenizer.to_dict()}
    front = _front_matter(name, tag, model_type, tokenizer, carried, settings.get("task_name"), results, evaluated_on)
    sections = [
        f"# {name}\n\n{FAMILIES[model_type].title} of {parameters:,} parameters for {tag}, {_origin(settings)}",
        _table("Model", {"class": model_class, "parameters": parameters, **settings.get("albert_config", {})}),
        _table("Data", {**_training_data(settings, manifests), "evaluated on": evaluated_on}),
        _table("Recipe", {name: value for name, value in settings.items() if name not in (*_IN_SECTIONS, FOUND_AT)}),
        _table("Tokenizer", of_tokenizer or {}),
        _table("Scores", results),
        _EXAMPLE.format(_QUESTIONS[tag], model_class) if tag in _QUESTIONS else "",
    ]
    body = "\n\n".join(filter(None, sections)) + "\n"
    _write(path, front, body)
    return path


def write_further_card(run_folder: str, name: str) -> None:
    """Writes the card of an additional model, unless somebody has written or changed it; the run's licences go on."""
    card, path = (os.path.join(folder, CARD_FILE) for folder in (run_folder, os.path.join(run_folder, name)))
    of_run, present = (read_text(each, "the model card") if tf.io.gfile.exists(each) else "" for each in (card, path))
    if not present or is_unchanged(present):
        body = f"# {name}\n\nTrained together with the model of the folder above, whose card tells the rest.\n"
        _write(path, _yaml(["library_name: albert_tf"], facts_of(of_run)), body)


def _write(path, front, body):
    mark = f"Written by albert_tf ({_hash(front + body)}) from what the run knows"
    write_text(path, f"{front}<!-- {mark}; once you change it, it stays as it is. -->\n\n{body}")


def is_unchanged(card: str) -> bool:
    """Whether a card was written by `write_model_card`, and by nobody since."""
    found = _MARK.search(card)
    return bool(found) and _hash(card[: found.start()] + card[found.end() :]) == found[1]


def for_transformers(card: str) -> str:
    """Returns a card for the same model in Hugging Face's format: transformers loads it, and so not by our example."""
    card = card.replace("\nlibrary_name: albert_tf\n", "\nlibrary_name: transformers\n", 1)
    return _MARK.sub("", card).partition("\n## Use\n")[0] + "\n" if _MARK.search(card) else card


def _rounded(value):
    """Returns a number without the digits that its 32 bits don't have."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path):
    return read_json(path, "the results of the run") if tf.io.gfile.exists(path) else {}


def _evaluated_on(settings, data):
    """Returns the data of the scores in words; a share of the training file is called so, as the rest was learnt."""
    name, share = data.get(EVAL_RESULTS_FILE, {}).get("name"), settings.get("dev_fraction")
    is_share = name and share and name == (settings.get("train_file") or {}).get("name")
    return f"{100 * share:.3g}% of {name}, put aside" if is_share else name


def _front_matter(name, tag, model_type, tokenizer, carried: Facts, dataset, results, evaluated_on):
    """Returns YAML between two lines of dashes; values are spelled as in JSON, which YAML can read."""
    if dataset in ("tsv", "csv", "jsonl", "parquet", "datasets", "conll"):  # formats of files
        dataset = None
    scores = {
        name: value
        for name, value in results.items()
        if not name.startswith(_NO_SCORES) and isinstance(value, int | float) and math.isfinite(value)
    }
    result = {
        "task": {"type": tag},
        "dataset": {"name": evaluated_on or "held-out", "type": dataset or "own"},
        "metrics": [{"type": name, "value": value} for name, value in scores.items()],
    }
    rest = {
        **carried,
        "datasets": [dataset] if dataset else None,
        "metrics": list(scores),
        "model-index": [{"name": name, "results": [result]}] if scores else None,
    }
    lines = ["language: ko"] * isinstance(tokenizer, KoreanWordPieceTokenizer)
    lines += ["library_name: albert_tf", f"pipeline_tag: {tag}", f"tags: [{model_type}, tensorflow]"]
    return _yaml(lines, rest)


def _yaml(lines, more):
    """Returns lines between two lines of dashes, and those of further values behind them."""
    lines = [*lines, *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in more.items() if value)]
    # YAML takes 1e-05 for a word.
    return "---\n" + re.sub(r'(": -?\d+)e(?=[-\d])', r"\1.0e", "\n".join(lines)) + "\n---\n"


def _origin(settings):
    """Returns the training and the first weights of a model in words, but not where these lay."""
    command = settings.get("command")
    start, teacher = (
        path and f"`{'/'.join(path.split('/')[-2:])}`" for path in (_path_of(settings, name) for name in CHECKPOINTS)
    )
    start = f"the weights of {start}" if start else "random weights"
    taught = f", and learnt from {teacher}" if teacher else ""
    return f"trained {f'by `{command}` of' if command else 'with'} albert_tf. It started from {start}{taught}."


def _training_data(settings, manifests):
    rows = {f"training file: {name}": value for name, value in (settings.get("train_file") or {}).items()}
    for number, manifest in enumerate(filter(None, manifests), start=1):
        options = {**manifest.get("options", {})}
        masking = options.pop("masking_options", {})
        found = {name: manifest.get(name) for name in _OF_MANIFEST} | options | masking
        for split, each in manifest.get("splits", {}).items():
            found[f"{split} examples"] = f"{each['examples']}, masking {each['masking']}"
        rows |= {f"{name} of phase {number}" if len(manifests) > 1 else name: found[name] for name in found}
    return rows


def _table(title, values):
    """Returns a section, "" without values; what is no text is spelled as in JSON, as in the run's files."""
    rows = []
    for name, value in values.items():
        if value not in (None, "", [], {}):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            rows.append(f"| {name} | {shown.replace('|', '&#124;')} |")
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *rows]) if rows else ""
