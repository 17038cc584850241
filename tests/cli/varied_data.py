"""Files for the commands that train, of texts of three lengths in turn, so that batches of four differ in length."""

import csv
import json

from tables import save_splits

from albert_tf.finetuning.datasets import DATASETS

WORDS = ["오늘은", "비가", "오고", "내일은", "눈이", "온다고", "하니", "친구와", "집에서", "밥을", "먹고", "가자"]
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


def write_entities(folder):
    """Writes tagged sentences in the form of naver_ner, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in PARTS.items():
        lines = []
        for text in map(text_of, range(count)):
            tags = [{"친구와": "B-PS", "집에서": "B-LC"}.get(word, "O") for word in text.split()]
            lines.append(f"{text}\t{' '.join(tags)}\n")
        (folder / f"{part}.tsv").write_text("".join(lines))
    return folder
