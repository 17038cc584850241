"""Python values become the examples that files of the same content hold, or are refused by their number."""

import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.runs.from_python import settings_for, write_given
from albert_tf.runs.given_data import read_dev, read_given

CONTEXT = "도서관은 강가에 있다. 월요일에는 쉰다."


def written(folder, data):
    """Returns what the task reads of the file that the examples are written to."""
    path = write_given(data, str(folder), "train")
    settings, config = settings_for(data, {}).placed([path]), tiny_config()
    return settings.completed(config, is_known=False).make_task(config).read(path)


@pytest.mark.parametrize(
    ("labels", "kind", "expected"),
    [
        (["좋음", "나쁨"], "labels", ["좋음", "나쁨"]),
        ([1, 0], "labels", ["1", "0"]),
        ([True, np.bool_(False)], "labels", ["true", "false"]),
        ([3.5, 1.0], "numbers", [3.5, 1.0]),
        (np.array([3.0, 1.0], np.float32), "numbers", [3.0, 1.0]),
        ([["a", "b"], []], "multi_label", [["a", "b"], []]),
        ([{"b", "a"}, ()], "multi_label", [["a", "b"], []]),
        ([1.0, 2], "labels", ["1", "2"]),  # not all of them are numbers with a fraction
    ],
)
def test_kind_follows_from_the_labels(labels, kind, expected):
    found = read_given(["가", "나"], labels)
    assert (found.kind, found.labels) == (kind, expected)
    assert f'kind="{kind}"' in found.describe()


def test_kind_may_be_said():
    assert read_given(["가", "나"], [1.0, 0.0], kind="labels").labels == ["1", "0"]
    assert read_given(["가", "나"], [1, 0], kind="numbers").labels == [1.0, 0.0]


def test_pairs_may_be_lists_as_json_has_them():
    found = read_given([["가", "나"], ["다", "라"]], [1.5, 0.5])
    assert (found.kind, found.texts) == ("numbers", [("가", "나"), ("다", "라")])
    assert read_given([["가", "나"]], [["O", "B-X"]]).kind == "entities"


def test_numbers_that_may_be_classes_are_told():
    assert 'if these are classes, pass kind="labels"' in read_given(["가", "나"], [1.0, 0.0]).describe()
    assert "classes" not in read_given(["가", "나"], [1.5, 0.0]).describe()


def test_tables_give_their_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": ["가", "나"], "other": ["다", "라"], "label": [1, 0], "grade": [0.5, 1.5]})
    assert read_given(frame, None).texts == ["가", "나"]
    assert read_given(frame["text"], frame["grade"]).labels == [0.5, 1.5]
    found = read_given(frame, "grade", ("text", "other"))
    assert (found.texts, found.labels) == ([("가", "다"), ("나", "라")], [0.5, 1.5])

    class Table(dict):
        """As a datasets.Dataset whose labels have names."""

        column_names = ("text", "label")
        features = types.MappingProxyType({"label": types.SimpleNamespace(names=["부정", "긍정"])})

    assert read_given(Table(text=["가", "나"], label=[1, 0]), None).labels == ["긍정", "부정"]
    train = read_given(["가", "나"], ["긍정", "부정"])
    dev = read_dev(Table(text=["다"], label=[1]), None, "text", train)
    assert (dev.texts, dev.labels) == (["다"], ["긍정"])
    with pytest.raises(InputError, match=r"labels\[0\] must be a string that is not empty.*Received: None"):
        read_given(Table(text=["가", "나"], label=[-1, 0]), None)
    with pytest.raises(InputError, match="`dev` must be a table, or a tuple of texts and labels"):
        read_dev(["가"], None, ("text",), train)
    tags = types.SimpleNamespace(feature=types.SimpleNamespace(names=["O", "B-PS"]))
    Table.features = {"label": tags}
    found = read_given(Table(text=[["김철수", "왔다"]], label=[[1, 0]]), None)
    assert (found.kind, found.labels) == ("entities", [["B-PS", "O"]])
    Table.column_names = {"train": ["text"], "test": ["text"]}
    for table, labels, message in (
        (frame, "stars", "the table has no column 'stars', but text, other, label, grade; name them with"),
        (frame, [1, 0], "for a table, `labels` must be the name of the column that holds them"),
        (Table(), None, r"a DatasetDict holds several tables \(train, test\); give one, as dataset\['train'\]"),
    ):
        with pytest.raises(InputError, match=message):
            read_given(table, labels)


# What ends a line somewhere stays inside of JSON.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from(["a", "ㅋㅋ", "1.0"])), min_size=2))
def test_any_texts_and_labels_come_back(tmp_path_factory, rows):
    rows = [*rows, ("가", "나", "a"), ("가", "나", "b")]
    data = read_given([row[:2] for row in rows], [row[2] for row in rows])
    found = written(tmp_path_factory.mktemp("data"), data)
    assert [(each.text, each.text_pair, each.label) for each in found] == rows


def test_label_sets_and_numbers_come_back(tmp_path):
    labels = [["a,b", "ㅋ"], [], ["ㅋ"]]
    found = written(tmp_path / "sets", read_given(["가", "나", "다"], labels))
    assert [list(each.label) for each in found] == labels
    found = written(tmp_path / "numbers", read_given(["가", "나"], [0.1, -2e-7]))
    assert [float(each.label) for each in found] == [0.1, -2e-7]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["김철수가", "왔다", "#", "1", "a b"]), min_size=1), min_size=1), st.randoms())
def test_words_and_tags_come_back(tmp_path_factory, sentences, random):
    sentences = [*sentences, ["서울"]]
    tags = [[random.choice(["O", "B-PER", "I-PER"]) for _ in words] for words in sentences[:-1]] + [["B-LOC"]]
    found = written(tmp_path_factory.mktemp("data"), read_given(sentences, tags))
    assert [[each.text[begin:end] for begin, end in each.units] for each in found] == sentences
    assert [list(each.tags) for each in found] == tags


def test_entities_by_their_places_come_back(tmp_path):
    texts = ["김철수가 서울에 왔다 ㅋㅋ", "아무도 없다"]
    labels = [[(5, 7, "LOC"), {"begin": 0, "end": 3, "type": "PER"}], []]
    found = written(tmp_path, read_given(texts, labels))
    assert [each.text for each in found] == texts
    inside = [(begin, tag) for (begin, _), tag in zip(found[0].units, found[0].tags) if tag != "O"]
    assert inside == [(0, "B-PER"), (1, "I-PER"), (2, "I-PER"), (5, "B-LOC"), (6, "I-LOC")]
    assert set(found[1].tags) == {"O"}


@pytest.mark.parametrize(
    "label", [(11, 14), {"text": "월요일", "answer_start": 13}, {"text": ["월요일"], "answer_start": [13]}]
)
def test_answers_come_back(tmp_path, label):
    begin = CONTEXT.index("월요일")
    label = (begin, begin + 3) if isinstance(label, tuple) else label
    [found] = written(tmp_path, read_given([("언제 쉬나?", CONTEXT)], [label]))
    assert (found.question, found.context) == ("언제 쉬나?", CONTEXT)
    assert [(answer.text, answer.begin) for answer in found.answers] == [("월요일", begin)]
    assert not found.is_impossible


@pytest.mark.parametrize("missing", [None, {"text": [], "answer_start": []}])
def test_questions_may_have_no_answer(tmp_path, missing):
    data = read_given([("언제?", CONTEXT), ("왜?", CONTEXT)], [(0, 4), missing])
    path = write_given(data, str(tmp_path), "train")
    config = tiny_config()
    settings = settings_for(data, {}).placed([path]).completed(config, is_known=False)
    task = settings.make_task(config)
    assert [question.is_impossible for question in task.read(path)] == [False, True]
    assert task.may_be_unanswerable and settings.head == "conditional"


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["가"], [1, 2], "1 texts and 2 labels; give one entry of labels for each text"),
        ([], [], "there are no texts"),
        ("가나", ["1", "2"], "`texts` must be a list, or a column of a table. Received: '가나'"),
        (["가", None], [0, 1], r"texts\[1\] must be a string, a tuple of two, or a list of words. Received: None"),
        (["가", ("가", "나")], [0, 1], r"texts\[1\] must be a string, as the first is"),
        (["가", "나"], ["a", None], r"labels\[1\] must be a string that is not empty, a whole number.*Received: None"),
        (["가", "나"], [[], []], "all labels are empty lists; set `kind` to multi_label or entities"),
        (["가", "나"], [["a"], ["b", 1]], r"labels\[1\] must be a list of strings, which may be empty"),
        (["가", "나"], [1, 0.5], r"labels\[1\] must be a string that is not empty, a whole number.*Received: 0.5"),
        (["가", "나"], [1.5, float("nan")], r"labels\[1\] must be a number. Received: nan"),
        ([["가", "나"]], [["O"]], r"labels\[0\] must be a tag for each of the 2 words"),
        (["가나"], [[(0, 3, "PER")]], r"labels\[0\] must be a list of \(begin, end, type\) in characters of the text"),
        (["가나다"], [[(0, 2, "PER"), (1, 3, "LOC")]], r"none of which overlap"),
        (["가나다"], [[(0, 2)]], r"labels\[0\] must be a list of \(begin, end, type\)"),
        ([("왜?", "가나다")], [(2, 5)], r"labels\[0\] must be the \(begin, end\) of the answer in the text"),
        ([("왜?", "가나다")], [{"text": "라", "answer_start": 0}], r"labels\[0\]: '라' is not in the text at 0"),
    ],
)
def test_what_can_not_be_used_is_named_by_its_number(texts, labels, message):
    with pytest.raises(InputError, match=message):
        read_given(texts, labels)


@pytest.mark.parametrize("word", ["가\t나", " 가", "-DOCSTART-", "## 가", ""])
def test_words_that_files_of_entities_can_not_hold_are_refused(tmp_path, word):
    data = read_given([["나", word]], [["O", "B-X"]])
    with pytest.raises(InputError, match=r"texts\[0\]: "):
        write_given(data, str(tmp_path), "train")


FLAGS = {"text": ["가", "나", "다"], "욕설": [1, 0, 0], "혐오": [1.0, 0.0, 1.0], "other": [2, 3, 4]}


def test_columns_of_1_and_0_are_several_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(FLAGS)
    found = read_given(table, ["욕설", "혐오"])
    assert (found.kind, found.labels) == ("multi_label", [["욕설", "혐오"], [], ["혐오"]])
    assert [example.label for example in written(tmp_path, found)] == [("욕설", "혐오"), (), ("혐오",)]
    assert read_dev(table[2:], ["욕설", "혐오"], ("text",), found).labels == [["혐오"]]
    with pytest.raises(InputError, match="row 0: other must be 1 or 0"):
        read_given(table, ["욕설", "other"])
    with pytest.raises(InputError, match="no column '성차별'"):
        read_given(table, ["욕설", "성차별"])
    with pytest.raises(InputError, match="`labels` is a table; give one of its columns"):
        read_given(FLAGS["text"], table[["욕설", "혐오"]])


@pytest.mark.parametrize("kind", [None, "multi_label"])
@pytest.mark.parametrize("labels", [[[1, 0], [0, 0]], np.array([[1.0, 0.0], [0.0, 0.0]]), [[True, False], [False]]])
def test_lists_of_1_and_0_are_refused_with_what_to_give(labels, kind):
    with pytest.raises(InputError, match="lists of 1 and 0 without names"):
        read_given(["가", "나"], labels, kind=kind)


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        ((["가", "나"], ["1", "0"]), (["다"], ["2"]), r"labels\[0\] has '2', which no training example has"),
        ((["가", "나"], [["a"], []]), (["다"], [["b"]]), r"labels\[0\] has 'b'"),
        ((["가", "나"], [[(0, 1, "PS")], []]), (["다"], [[(0, 1, "LC")]]), r"labels\[0\] has 'LC'"),
        ((["가", "나"], ["1", "0"]), ([("다", "라")], ["1"]), r"texts\[0\] must be a string, like the training texts"),
    ],
)
def test_what_to_evaluate_on_must_be_like_what_is_trained_on(train, dev, message):
    data = read_given(*train)
    with pytest.raises(InputError, match=message):
        read_dev(dev, None, ("text",), data)


def test_half_a_surrogate_pair_in_a_text_is_read_as_files_are(tmp_path):
    found = read_given(["정말\ud83d 좋다", "가"], ["1", "0"])
    assert [example.text for example in written(tmp_path, found)] == ["정말\ufffd 좋다", "가"]
    assert read_given([("가\ud83d", "나")], [1.5]).texts == [("가\ufffd", "나")]
