"""Files for the commands that train, of texts of three lengths in turn, so that batches of four differ in length."""

import csv
import json

import numpy as np
from tables import save_splits

from albert_tf.finetuning.datasets import DATASETS

WORDS = ["오늘은", "비가", "오고", "내일은", "눈이", "온다고", "하니", "친구와", "집에서", "밥을", "먹고", "가자"]
FORMS = ("naver_ner", "klue_ner", "conll")
PARTS = {"train": 12, "dev": 5, "test": 3}


def text_of(number):
    """Returns a text of 1 to 34 words."""
    length = (1, 9, 33)[number % 3] + number // 3 % 2
    return " ".join((WORDS * 4)[number % 5 :][:length])


def write_rows(path, columns, rows):
    """Writes rows in the form that the ending names; without one it is a split that datasets saves."""
    extension = path.suffix
    path.parent.mkdir(parents=True, exist_ok=True)
    if extension == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([dict(zip(columns, row)) for row in rows]), path)
    elif not extension:
        save_splits(path.parent, **{path.name: dict(zip(columns, map(list, zip(*rows))))})
    elif extension in (".json", ".jsonl"):
        objects = [_nested(dict(zip(columns, row))) for row in rows]
        lines = [json.dumps(row, ensure_ascii=False) for row in objects]
        path.write_text("\n".join(lines) + "\n" if extension == ".jsonl" else f"[{','.join(lines)}]")
    else:
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter="," if extension == ".csv" else "\t").writerows([columns, *rows])


def _nested(row):
    """Returns {"a": {"b": x}} of {"a.b": x}."""
    nested = {}
    for name, value in row.items():
        *parents, last = name.split(".")
        level = nested
        for parent in parents:
            level = level.setdefault(parent, {})
        level[last] = value
    return nested


def write_data_set(folder, name):
    """Writes a data set of `DATASETS` as it is published, and returns its folder."""
    files = DATASETS[name]
    columns = [files.text_column, *filter(None, [files.text_pair_column]), files.label_column]
    labels = files.labels or ("0", "1")
    for part, names in {"train": files.train, "dev": files.dev, "test": files.test}.items():
        rows = []
        for number in range(PARTS[part]):
            label = str(number % 6 / 2) if files.is_regression else labels[number % len(labels)]
            rows.append(
                [text_of(number), text_of(number + 3), label] if len(columns) == 3 else [text_of(number), label]
            )
        name = names[0] if isinstance(names[0], str) else names[0][0]
        if files.columns:  # without a header
            values = [dict(zip(columns, row)) for row in rows]
            rows = [[each.get(column, "") for column in files.columns] for each in values]
            write_rows(folder / name, rows[0], rows[1:])
        else:
            write_rows(folder / name, columns, rows)
    return folder


def write_reviews(folder, parts=PARTS):
    """Writes texts with another text, a label and a number, and returns the folder."""
    for part, count in parts.items():
        rows = [[text_of(n), text_of(n + 3), n % 2, n % 6 / 2] for n in range(count)]
        write_rows(folder / f"{part}.tsv", ["document", "other", "label", "score"], rows)
    return folder


def write_questions(path, count, has_impossible=False):
    """Writes questions about texts of several lengths in the form of SQuAD."""
    paragraphs = []
    for number in range(count):
        context = text_of(number)
        answer = {"text": context.split()[-1], "answer_start": context.rindex(context.split()[-1])}
        is_impossible = has_impossible and number % 2 == 0
        entry = {"id": f"{number}", "question": "무엇을 하나?", "answers": [] if is_impossible else [answer]}
        paragraphs.append({"context": context, "qas": [{**entry, "is_impossible": is_impossible}]})
    path.write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))
    return path


def write_choices(folder, parts=PARTS):
    """Writes questions with three options as JSON lines, and returns the folder."""
    for part, count in parts.items():
        rows = [[text_of(n), "무엇을 하나?", WORDS[:3], n % 3] for n in range(count)]
        write_rows(folder / f"{part}.jsonl", ["passage", "question", "options", "answer"], rows)
    return folder


def write_race(folder):
    """Writes articles of both levels as RACE has them, and returns the folder."""
    for part, count in PARTS.items():
        for level in ("middle", "high"):
            (folder / part / level).mkdir(parents=True)
            for number in range(count):
                article = {
                    "article": text_of(number),
                    "questions": ["무엇을 _?"],
                    "options": [WORDS[:4]],
                    "answers": ["B"],
                }
                (folder / part / level / f"{number}.txt").write_text(json.dumps({**article, "id": f"{number}"}))
    return folder


def write_entity_vectors(folder):
    """Writes vectors of entities whose names are words of the other texts, and returns the folder."""
    folder.mkdir(parents=True)
    (folder / "entities.txt").write_text("\n".join(WORDS) + "\n")
    np.save(folder / "entity_vectors.npy", np.random.default_rng(0).normal(size=[len(WORDS), 4]).astype(np.float32))
    return folder


def write_entities(folder, form, parts=PARTS):
    """Writes tagged sentences in one of the forms of run_ner.py, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in parts.items():
        sentences = []
        for number in range(count):
            words = text_of(number).split()
            tags = ["B-PS" if word == "친구와" else "B-LC" if word == "집에서" else "O" for word in words]
            if form == "naver_ner":
                sentences.append(f"{' '.join(words)}\t{' '.join(tags)}\n")
                continue
            if form == "klue_ner":
                words, tags = (
                    list("".join(words)),
                    [tag for word, tag in zip(words, tags) for tag in _of_characters(word, tag)],
                )
            sentences.append("".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags)) + "\n")
        (folder / f"{part}.tsv").write_text("".join(sentences))
    return folder


def _of_characters(word, tag):
    return [tag, *[tag.replace("B-", "I-")] * (len(word) - 1)]
