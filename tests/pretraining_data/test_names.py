"""Lists of names, and their mentions in batches, compared with a search written in plain Python."""

import functools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.sequences import build_trie, find_sequences
from albert_tf.pretraining_data.entities import MAX_PIECES_OF_NAME, NameList, read_names
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

PIECES = [*SPECIAL_TOKENS, "이순신", "##은", "서울", "대학교", "대학", "##교", "lg", "##에", "##a"]


@pytest.fixture(scope="module")
def tokenizer():
    return KoreanWordPieceTokenizer(Vocabulary(PIECES))


def written(tmp_path, text):
    path = tmp_path / "names.txt"
    path.write_bytes(text.encode())
    return str(path)


def test_names_and_what_identifies_them_are_read(tokenizer, tmp_path):
    decomposed = "\u1109\u1165\u110b\u116e\u11af 대학교"
    names = read_names(written(tmp_path, f"\ufeff이순신\tPS\r\n\n  \n{decomposed}\n"), tokenizer)
    assert names.names == ("이순신", "서울 대학교")
    assert names.identifiers == ("PS", "")
    assert names.pieces == ((5,), (7, 8))
    assert not names.left_out
    assert names.tell_left_out() == ""


def test_names_that_no_piece_spells_are_left_out_and_counted(tokenizer, tmp_path):
    too_long = "서울 " * 1000
    names = read_names(written(tmp_path, f"김유신\nLG\nlg\n강감찬\n서울\n\u200b\n[MASK]\n{too_long}"), tokenizer)
    assert names.names == ("LG", "서울")
    assert names.tell_left_out().split("; ") == [
        "3 has a word that the vocabulary can't spell, as 김유신",
        "1 has the pieces of another name, as lg",
        "1 has no piece, as \u200b",
        f"1 has more than {MAX_PIECES_OF_NAME} pieces, as {too_long[:100]}...",
    ]


def test_hash_tells_lists_apart(tokenizer):
    hashes = {
        NameList.from_rows(rows, tokenizer).sha256
        for rows in ([("서울", "")], [("서울", "LC")], [("서울", ""), ("김유신", "")], [("김유신", ""), ("서울", "")])
    }
    assert len(hashes) == 4


def test_name_of_several_lines_is_left_out(tokenizer):
    # A build writes names into a file, one a line, for its workers.
    names = NameList.from_rows([("서울", ""), ("대학\n이순신", ""), ("이순신\t대학", "")], tokenizer)
    assert names.names == ("서울",)
    assert names.tell_left_out() == "2 has a tab or the end of a line, as 대학 이순신"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names.txt contains no names"),
        ("서울\n이순신\n\n서울\tLC\n", "names.txt, line 4: 서울 is on line 1 too; remove one"),
        ("서울\n\tLC\n", "names.txt, line 2: it must be a name"),
        ("서울\n이순신\r서울", "names.txt, line 2: it must be a name, .* Received: '이순신\\\\r서울'$"),
        ("서울 " * 1000, f"names.txt: no name can be .*[(]{('서울 ' * 50)[:100]}\\.\\.\\. has more than"),
        ("서울\t\t" * 1000, r"names.txt, line 1: it must be a name, .{,160}\.\.\.$"),
        ("김유신\n강감찬\n", "names.txt: no name can be found by this vocabulary"),
    ],
)
def test_bad_list_is_refused(tokenizer, tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_names(written(tmp_path, text), tokenizer)


def test_scheme_whose_pieces_do_not_tell_where_words_begin_is_refused(tmp_path):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "서울", "서울_"]), "end_of_word")
    with pytest.raises(InputError, match="end_of_word"):
        read_names(written(tmp_path, "서울\n"), tokenizer)


def test_josa_stays_outside_of_the_mention(tokenizer):
    names = NameList.from_rows([("이순신", ""), ("서울", ""), ("서울 대학교", "")], tokenizer)
    ids = tokenizer.encode_ids(["이순신은 서울 대학교에, 서울에"]).to_tensor()
    numbers, lengths = find_sequences(*build_trie(names.pieces, tokenizer.starts_word), ids)
    pieces = [tokenizer.vocabulary.pieces[each] for each in ids[0]]
    places = np.flatnonzero(numbers[0]).tolist()
    assert [pieces[p : p + n] for p, n in zip(places, tf.gather(lengths[0], places).numpy())] == [
        ["이순신"],
        ["서울", "대학교"],
        ["서울"],
    ]
    assert numbers.numpy()[0, places].tolist() == [1, 3, 2]


# Pieces 1 to 4 begin words, 5 to 8 go on with one; 0 pads and 9 is a special token, of which no name has any.
STARTS_WORD = np.array([True] * 5 + [False] * 4 + [True])
NAMES = st.lists(
    st.tuples(st.integers(1, 4), st.lists(st.integers(1, 8), max_size=4)).map(lambda name: (name[0], *name[1])),
    min_size=1,
    max_size=12,
    unique=True,
)


def reference(row, names):
    """Returns the numbers and the lengths of the mentions in a row, from left to right."""
    numbers, lengths = [0] * len(row), [0] * len(row)
    place = 0
    while place < len(row):
        found = [name for name in names if STARTS_WORD[row[place]] and tuple(row[place : place + len(name)]) == name]
        if found:
            longest = max(found, key=len)
            numbers[place], lengths[place] = names.index(longest) + 1, len(longest)
        place += max(lengths[place], 1)
    return numbers, lengths


def finder(names, starts_word=STARTS_WORD):
    return functools.partial(find_sequences, *build_trie(names, starts_word))


def found(names, rows):
    return [values.numpy().tolist() for values in finder(names)(tf.constant(rows, tf.int32))]


@hypothesis.settings(max_examples=50)
@hypothesis.given(NAMES, st.data())
def test_equals_a_search_from_left_to_right(names, data):
    # Text that is put together of names, in part, meets prefixes, overlaps and what follows a name.
    parts = st.one_of(st.sampled_from(names), st.integers(0, 9).map(lambda piece: (piece,)))
    rows = st.lists(parts, max_size=10).map(lambda row: (sum(row, ()) + (0,) * size)[:size])
    size = data.draw(st.integers(1, 24))
    rows = data.draw(st.lists(rows, min_size=1, max_size=3))
    numbers, lengths = found(names, rows)
    for row, *of_row in zip(rows, numbers, lengths):
        assert tuple(of_row) == reference(row, names)


def test_longest_name_is_found_and_none_within_a_word_or_across_a_special_token():
    assert found([(1,), (1, 5)], [[9, 1, 5, 6, 9, 0]]) == [[[0, 2, 0, 0, 0, 0]], [[0, 2, 0, 0, 0, 0]]]
    assert found([(5,), (1, 2)], [[1, 5, 5, 1, 9, 2]]) == [[[0] * 6], [[0] * 6]]
    assert found([(1, 2), (2, 3), (3, 4)], [[1, 2, 3, 4, 0]]) == [[[1, 0, 3, 0, 0]], [[2, 0, 2, 0, 0]]]


def test_many_names_are_told_apart():
    # So many edges have hashes in common; what differs in the last piece alone must not be found.
    generator = np.random.default_rng(0)
    vocab_size, starts_word = 30_000, np.arange(30_000) < 15_000
    drawn = generator.integers(0, [15_000, vocab_size, vocab_size], (10_000, 3))
    names = list({tuple(name) for name in drawn.tolist()})
    rows = np.array(names)
    find = finder(names, starts_word)
    numbers, lengths = (values.numpy() for values in find(tf.constant(rows, tf.int32)))
    np.testing.assert_array_equal(numbers[:, 0], np.arange(len(names)) + 1)
    np.testing.assert_array_equal(lengths[:, 0], 3)
    rows[:, 2] = (rows[:, 2] + 1) % vocab_size
    assert not set(map(tuple, rows[:100].tolist())) & set(names)
    assert not find(tf.constant(rows[:100], tf.int32))[0].numpy().any()


def test_shapes_are_static_and_it_compiles():
    plainly = finder([(1, 5), (1, 5, 2), (2, 3)])
    find = tf.function(plainly, jit_compile=True)
    ids = tf.constant([[1, 5, 2, 3, 0], [2, 3, 1, 5, 6]], tf.int32)
    assert all(output.shape == [2, 5] for output in find.get_concrete_function(ids).outputs)
    for compiled, plain in zip(find(ids), plainly(ids)):
        np.testing.assert_array_equal(compiled, plain)
