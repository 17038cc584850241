"""Texts with tags: how files write them, how tags are spelled, and which entities they make."""

import re

import pytest

from albert_tf.base.errors import InputError
from albert_tf.finetuning.tasks.tagged_text import (
    DATASETS,
    METRICS,
    Entity,
    TaggedText,
    entities_of,
    normalize_tag,
    read_tagged,
    strict_entities_of,
    types_of,
)


def write(tmp_path, text):
    (tmp_path / "train.tsv").write_bytes(text.encode())
    return str(tmp_path / "train.tsv")


CHARACTERS = "## 주석\n## klue-ner-0\t<김:PS>이 감\n김\tB-PS\n이\tO\n \tO\n감\tO\n\n#\tO\n1\tB-QT\n\n"
OF_CHARACTERS = [
    TaggedText("김이 감", ((0, 1), (1, 2), (3, 4)), ("B-PS", "O", "O"), 3),
    TaggedText("#1", ((0, 1), (1, 2)), ("O", "B-QT"), 8),
]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (
            "words",
            "서울에 김철수씨 .\tLOC-B PER-B O\n-\tO\n10\u00a0000 원\tB-NUM O\n",
            [
                TaggedText("서울에 김철수씨 .", ((0, 3), (4, 8), (9, 10)), ("B-LOC", "B-PER", "O"), 1),
                TaggedText("-", ((0, 1),), ("O",), 2),
                TaggedText("10\u00a0000 원", ((0, 6), (7, 8)), ("B-NUM", "O"), 3),
            ],
        ),
        ("characters", CHARACTERS, OF_CHARACTERS),
        ("characters", CHARACTERS.replace("\n", "\r\n"), OF_CHARACTERS),
        (
            "conll",  # columns between blanks, and lines of blanks between sentences
            "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n \nPeter  X I-PER\n\t \n",
            [
                TaggedText("EU rejects", ((0, 2), (3, 10)), ("B-ORG", "O"), 3),
                TaggedText("Peter", ((0, 5),), ("I-PER",), 6),
            ],
        ),
        (
            "conll",  # between tabs, where blanks are part of a word
            "New York\tB-LOC\n에서\tO\n10\u00a0000\tB-NUM\n",
            [TaggedText("New York 에서 10\u00a0000", ((0, 8), (9, 11), (12, 18)), ("B-LOC", "O", "B-NUM"), 1)],
        ),
        (
            "conll",  # what looks like a comment is a word inside of a sentence
            "-DOCSTART- O\n## doc 1\n##봄\tB-TAG\n##\tO\n",
            [TaggedText("##봄 ##", ((0, 3), (4, 6)), ("B-TAG", "O"), 3)],
        ),
    ],
)
def test_every_form_is_read(tmp_path, form, text, expected):
    assert read_tagged(write(tmp_path, text), form, needs_tags=True) == expected


def test_running_numbers_before_the_words_are_not_read(tmp_path, capsys):
    path = write(tmp_path, "1\t하늘이\tPER_B\n2\t왔다\t-\n\n1\t비\t-\n")
    found = read_tagged(path, "conll", needs_tags=True)
    assert [(each.text, each.tags) for each in found] == [("하늘이 왔다", ("B-PER", "O")), ("비", ("O",))]
    assert capsys.readouterr().out == (
        f"{path}: 2 sentences, a word (column 2) and its tag (column 3) a line, tabs between them; column 1 not read; "
        "2 tags: B-PER, O\n  the first: 하늘이/B-PER 왔다/O\n"
    )
    (found,) = read_tagged(write(tmp_path, "1\t하늘이\n2\t왔다\n"), "conll", needs_tags=False)
    assert (found.text, found.tags) == ("하늘이 왔다", None)
    damaged = "1\t하늘이\tPER_B\n3\t왔다\t-\n\n1\t비\t-\n\n1\t눈\t-\n"
    found = read_tagged(write(tmp_path, damaged), "conll", needs_tags=True)
    assert [each.text for each in found] == ["하늘이 왔다", "비", "눈"]
    # Numbers may be words, where nothing else could be one.
    (found,) = read_tagged(write(tmp_path, "1 B-NUM\n2 O\n"), "conll", needs_tags=True)
    assert (found.text, found.tags) == ("1 2", ("B-NUM", "O"))


@pytest.mark.parametrize(
    ("form", "text"), [("words", "김철수\n"), ("characters", "김\n \n감\n"), ("conll", "EU\n  \n")]
)
def test_text_to_predict_needs_no_tags(tmp_path, form, text):
    path = write(tmp_path, text)
    (found,) = read_tagged(path, form, needs_tags=False)
    assert found.tags is None
    with pytest.raises(InputError, match=f"{re.escape(path)}, line 1: no tags"):
        read_tagged(path, form, needs_tags=True)


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("words", "간 다\tO\n", "line 1: 2 words, but 1 tags"),
        ("words", "간\tO\n다\tPER\n", "line 2: 'PER' is not a tag such as B-PER"),
        ("characters", "간\tO\n다라\tO\n", "line 2: not one character, a tab and its tag"),
        ("characters", "간\tO\n다\n", "line 2: not one character"),
        ("conll", "EU B-ORG\nrejects\n", "line 2: not a word and its tag"),
        ("conll", "EU\tB-ORG\nrejects O\n", "line 2: no tab, as other lines have between their columns"),
        ("conll", "EU rejects\tB-ORG O\n", "line 1: a whole sentence and its tags, .* `task_name=naver_ner`"),
    ],
)
def test_malformed_line_is_named_or_its_sentence_left_out(tmp_path, capsys, form, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=f"{re.escape(path)}, {message}.*`on_bad_row=skip`"):
        read_tagged(path, form, needs_tags=True)
    good = {"words": "집\tO\n", "characters": "\n집\tO\n", "conll": "\n집 O\n"}[form]
    good = good.replace(" ", "\t") if "\t" in text else good
    found = read_tagged(write(tmp_path, text + good), form, needs_tags=True, on_bad_row="skip")
    assert found[-1].text == "집" and "warning: 1 row left out; the first: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "name", "count"),
    [
        ("naver_ner/train.tsv", "naver_ner", 6500),
        ("naver_ner/dev.tsv", "naver_ner", 1000),
        ("klue/klue-ner-v1.1_dev.tsv", "klue_ner", 5000),
    ],
)
def test_published_files_are_read_whole(shared_data, path, name, count):
    texts = read_tagged(str(shared_data / path), DATASETS[name].form, needs_tags=True)
    assert len(texts) == count and all(len(text.units) == len(text.tags) for text in texts)


def test_types_are_those_of_the_entities_of_which_there_must_be_one(tmp_path):
    assert types_of((write(tmp_path, "서울 김\tB-LOC PER-I\n"),), "words") == ["LOC", "PER"]
    with pytest.raises(InputError, match="has no sentence that can be used"):
        types_of(write(tmp_path, "\n\n"), "words")
    with pytest.raises(InputError, match="has no entity"):
        types_of(write(tmp_path, "-\tO\n"), "words")


def test_tags_are_normalized_or_refused():
    for tag, expected in (("B-PER", "B-PER"), ("NUM-I", "I-NUM"), ("O", "O"), ("-", "O"), ("I-AFW-X", "I-AFW-X")):
        assert normalize_tag(tag) == expected
    for tag in ("PER", "E-PER", "B-", "-B", "S"):
        with pytest.raises(ValueError, match=tag):
            normalize_tag(tag)


def test_entities_begin_and_end():
    tags = ["B-A", "I-A", "B-A", "O", "I-B", "I-B", "I-A", "B-B"]
    assert entities_of(tags) == [
        Entity(0, 2, "A"),
        Entity(2, 3, "A"),
        Entity(4, 6, "B"),
        Entity(6, 7, "A"),
        Entity(7, 8, "B"),
    ]
    assert strict_entities_of(tags) == [Entity(0, 2, "A"), Entity(2, 3, "A"), Entity(7, 8, "B")]


TRUTH = [["B-A", "I-A", "O", "B-B"], ["O", "B-B", "I-B"], ["B-C"]]
FOUND = [["B-A", "I-A", "O", "I-B"], ["O", "B-B", "O"], ["O"]]


def test_measures_are_those_of_seqeval_and_scikit_learn():
    """The numbers are what seqeval 1.2.2 and scikit-learn 1.9 print for these tags."""
    measured = {name: function(TRUTH, FOUND) for name, function in METRICS.items()}
    assert measured["entity_f1"] == pytest.approx(4 / 7)
    assert measured["entity_precision"] == pytest.approx(2 / 3)
    assert measured["entity_recall"] == pytest.approx(1 / 2)
    assert measured["entity_macro_f1"] == pytest.approx(1 / 3)
    # O counts [CLS] and [SEP] as well: 8 of 8 true ones found, and 10 found.
    f1 = {"O": 16 / 18, "B-A": 1.0, "I-A": 1.0, "B-B": 2 / 3, "I-B": 0.0, "B-C": 0.0}
    assert measured["character_macro_f1"] == pytest.approx(sum(f1.values()) / 6)
    nothing = [["O"] * len(tags) for tags in TRUTH]
    assert {function(TRUTH, nothing) for name, function in METRICS.items() if name.startswith("entity")} == {0.0}
