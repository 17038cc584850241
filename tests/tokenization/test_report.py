"""The report on a vocabulary, counted by hand or by plain Python."""

import sys

import pytest
from text_strategies import SCHEMES, SPECIAL_TOKENS

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary, vocabulary_report

PIECES = [*SPECIAL_TOKENS, "영화", "##는", "##를", "재미", "##있다", "나", "보다", "."]
LINES = ["영화는 재미있다.", "나는 영화를 보다", "뷁", "나"]


@pytest.fixture(scope="module")
def tokenizer() -> KoreanWordPieceTokenizer:
    return KoreanWordPieceTokenizer(Vocabulary(PIECES))


@pytest.fixture
def without_kiwi(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)


def test_counts_are_those_counted_by_hand(tokenizer, without_kiwi):
    found = vocabulary_report.measure(tokenizer, LINES)
    # 영화 ##는 | 재미 ##있다 | . || 나 ##는 | 영화 ##를 | 보다 || [UNK] || 나
    assert (found["num_sentences"], found["num_words"], found["num_pieces"]) == (4, 8, len(PIECES))
    assert (found["unknown_words"], found["unknown_word_share"]) == (1, 1 / 8)
    assert found["unknown_sentence_share"] == 1 / 4
    assert found["pieces_per_word"] == 11 / 7
    assert found["characters_per_piece"] == 16 / 11
    assert found["never_used_pieces"] == 0
    unused = len(PIECES) - len(SPECIAL_TOKENS) - 1
    assert vocabulary_report.measure(tokenizer, LINES[3:])["never_used_pieces"] == unused


def test_marks_of_words_are_no_characters(without_kiwi):
    pieces = [*SPECIAL_TOKENS, "나_", "는_", "밥", "\ufffd"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces), wordpiece_scheme="end_of_word")
    found = vocabulary_report.measure(tokenizer, ["나 나 밥_"])  # 나_ 나_ 밥 and an underscore of the text
    assert found["unknown_words"] == 0 and found["characters_per_piece"] == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_share_of_borders_before_josa(scheme):
    pytest.importorskip("kiwipiepy")
    mark = "_" if scheme == "end_of_word" else ""
    inside = "" if scheme == "end_of_word" else "##"
    # 영화|를 is cut where the josa begins; 학교에서 is one piece, so its border isn't.
    pieces = [*SPECIAL_TOKENS, "영화", f"{inside}를{mark}", f"학교에서{mark}", "보았다"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces), wordpiece_scheme=scheme)
    found = vocabulary_report.measure(tokenizer, ["학교에서 영화를 보았다"])
    assert found["unknown_words"] == 0
    assert (found["josa_borders"], found["josa_border_share"]) == (2, 0.5)


def test_without_kiwi_josa_are_left_out(tokenizer, without_kiwi):
    found = vocabulary_report.measure(tokenizer, LINES)
    assert found["josa_borders"] is None and found["josa_border_share"] is None
    table = vocabulary_report.format_table("first", found).split("\n")
    assert table[0] == "|  | first |" and {line.count("|") for line in table} == {3}
    assert {"| share of unknown words | 12.500% |", "| borders before josa | - |"} <= set(table)


@pytest.mark.parametrize("lines", [[], ["", " \u200b"]], ids=["nothing", "spaces"])
def test_text_without_words_is_refused(tokenizer, lines):
    with pytest.raises(InputError, match="no words to report on"):
        vocabulary_report.measure(tokenizer, lines)


def test_text_of_unknown_words_alone_has_no_averages(tokenizer, without_kiwi):
    found = vocabulary_report.measure(tokenizer, ["뷁"])
    assert found["unknown_word_share"] == 1 and found["pieces_per_word"] is None


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES * 3), encoding="utf-8")
    return path


def test_command_reports_on_a_vocabulary_that_is_there(run_script, tokenizer, text, tmp_path, without_kiwi):
    tokenizer.save(tmp_path / "vocabulary")
    vocab_file = tmp_path / "vocabulary" / "vocab.txt"
    result = run_script("build_vocab.py", report=True, vocab_file=vocab_file, input_file=text)
    assert result.code == 0, result.errors
    assert "kiwipiepy is not installed, so nothing is said about josa" in result.output
    assert "| unknown words | 3 |" in result.output
    assert (
        vocabulary_report.format_table(str(vocab_file), vocabulary_report.measure(tokenizer, LINES * 3))
        in result.output
    )
    refused = run_script(
        "build_vocab.py", report=True, vocab_file=vocab_file, input_file=text, output_dir=tmp_path / "report"
    )
    assert refused.code == 1 and "writes nothing; leave --output_dir out" in refused.errors
    assert not (tmp_path / "report").exists()


def test_command_reports_on_the_vocabulary_just_built(run_script, text, tmp_path, without_kiwi):
    flags = {"input_file": text, "output_dir": tmp_path / "built", "vocab_size": 60, "num_unused": 1}
    result = run_script("build_vocab.py", report=True, **flags)
    assert result.code == 0, result.errors
    assert "| unknown words | 0 |" in result.output
    assert (tmp_path / "built" / "vocab.txt").exists()


def test_command_refuses_a_vocabulary_without_report(run_script, text, tmp_path):
    result = run_script("build_vocab.py", vocab_file=tmp_path / "vocab.txt", input_file=text, output_dir=tmp_path)
    assert result.code == 1 and result.errors.startswith("error: --vocab_file goes with --report")
