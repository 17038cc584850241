"""build_vocab.py as a user runs it."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from text_strategies import SCHEMES

from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import UNUSED

LINES = ["영화는 정말 재미있다.", "나는 영화를 보았다.", "", "재미있는 영화였다ㅋㅋㅋ", "다시는 보지 않겠다!"]
VOCAB_SIZE = 120


@pytest.fixture
def corpus(tmp_path) -> pathlib.Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES * 3), encoding="utf-8")
    return path


@pytest.fixture
def build(run_script, tmp_path, corpus):
    """Runs the script on the corpus, unless flags say otherwise, and returns how it ended and its folder."""

    def run(name="built", **flag_values):
        flags = {"input_file": corpus, "vocab_size": VOCAB_SIZE, "num_unused": 3, **flag_values}
        return run_script("build_vocab.py", output_dir=tmp_path / name, **flags), tmp_path / name

    return run


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_builds_a_tokenizer_that_knows_its_text(build, scheme):
    result, folder = build(wordpiece_scheme=scheme)
    assert result.code == 0, result.errors
    tokenizer = KoreanWordPieceTokenizer.load(folder)
    assert len(tokenizer.vocabulary) == VOCAB_SIZE and tokenizer.wordpiece_scheme == scheme
    assert tokenizer.vocabulary.pieces[:6] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]
    has_prefixes = any(piece.startswith("##") for piece in tokenizer.vocabulary.pieces)
    assert has_prefixes == (scheme == "continuation")
    assert not any("[UNK]" in tokenizer.tokenize(line) for line in LINES)
    assert f"wrote {VOCAB_SIZE} pieces to {folder / 'vocab.txt'}" in result.output


def test_every_switch_is_a_flag_and_saved_with_the_vocabulary(build):
    on = ("lower_case", "split_punctuation", "keep_emoji", "split_emoji")
    off = ("strip_accents", "squeeze_repeats", "full_width_to_ascii", "split_digits")
    defaults = {**dict.fromkeys(on, True), **dict.fromkeys(off, False)}
    for number in range(3):  # of each two switches one is turned and the other isn't
        given = {name: value != (place >> number & 1) for place, (name, value) in enumerate(defaults.items())}
        flags = {"do_lower_case" if name == "lower_case" else name: value for name, value in given.items()}
        tokenizer = KoreanWordPieceTokenizer.load(build(str(number), **flags)[1])
        assert given.items() <= tokenizer.to_dict().items()
        assert ("재미있다." in tokenizer.vocabulary.pieces) != given["split_punctuation"]


@pytest.mark.slow
def test_same_input_gives_the_same_bytes_in_another_process(build, tmp_path, corpus):
    flags = {"input_file": corpus, "vocab_size": VOCAB_SIZE}
    _, folder = build(**flags)
    script = pathlib.Path(__file__).resolve().parents[2] / "build_vocab.py"
    command = [sys.executable, script, f"--output_dir={tmp_path / 'other'}", "--num_unused=3"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True)
    assert files_of(tmp_path / "other") == files_of(folder)


def test_files_and_lines_in_another_order_give_the_same_bytes(build, tmp_path):
    one, two = tmp_path / "1.txt", tmp_path / "2.txt"
    one.write_text("\n".join(LINES * 2), encoding="utf-8")
    two.write_text("\n".join(reversed(LINES)), encoding="utf-8")
    in_order, backwards = build("first", input_file=[one, two])[1], build("second", input_file=[two, one])[1]
    assert files_of(build()[1]) == files_of(in_order) == files_of(backwards)


def test_long_text_is_sampled_by_the_seed(build, sample_corpus):
    flags = {"input_file": sample_corpus[0], "vocab_size": 1_500, "max_sentences": 50}
    (result, one), (_, same), (_, other) = (
        build(name, **flags, random_seed=seed) for name, seed in (("one", 1), ("same", 1), ("other", 2))
    )
    lines = pathlib.Path(sample_corpus[0]).read_text(encoding="utf-8").split("\n")
    num_sentences = sum(bool(line.strip()) for line in lines)
    assert f"sampled 50 of {num_sentences} sentences" in result.output
    assert files_of(one) == files_of(same) != files_of(other)
    result, _ = build("all", **{**flags, "max_sentences": num_sentences})
    assert "--max_sentences" not in result.output


def test_alphabet_on_request(build):
    _, folder = build("basic", alphabet="basic", vocab_size=500)
    pieces = KoreanWordPieceTokenizer.load(folder).vocabulary.pieces
    assert {"~", "##z", "ㅎ", "##ㅢ", "영"} <= set(pieces) and "힣" not in pieces and len(pieces) == 500
    result, _ = build("all", alphabet="all", vocab_size=500)
    assert result.code == 1 and result.errors.startswith("error: --vocab_size=500 can't hold 22")


@pytest.mark.slow
def test_pieces_end_where_josa_begin(build):
    pytest.importorskip("kiwipiepy")
    result, cut = build("cut", morphemes="kiwi", vocab_size=90)
    assert result.code == 0, result.errors
    pieces = KoreanWordPieceTokenizer.load(cut).tokenize("나는 영화를 보았다.")
    assert pieces == ["나", "##는", "영화", "##를", "보", "##았다", "."]


def test_missing_library_is_named_before_anything_is_read(build, monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    result, folder = build(morphemes="kiwi")
    assert result.code == 1 and not folder.exists()
    assert result.errors.startswith("error: --morphemes=kiwi needs kiwipiepy") and result.errors.count("\n") == 1


def test_refuses_to_overwrite_unless_told(build):
    _, folder = build()
    before = files_of(folder)
    result, _ = build(vocab_size=VOCAB_SIZE + 1)
    assert result.code == 1 and "vocab.txt is there already" in result.errors and "--overwrite" in result.errors
    assert files_of(folder) == before
    result, _ = build(vocab_size=VOCAB_SIZE + 1, overwrite=True)
    assert result.code == 0 and len(KoreanWordPieceTokenizer.load(folder).vocabulary) == VOCAB_SIZE + 1


def test_mistake_ends_in_one_sentence(build):
    result, folder = build(input_file="absent/*.txt")
    assert result.code == 1 and not folder.exists()
    assert result.errors.startswith("error: --input_file: no file matches absent/*.txt")
    assert result.errors.count("\n") == 1


def test_text_without_words_is_refused(build, corpus):
    corpus.write_text("\n\n \u3000\n\u200b\n", encoding="utf-8")
    result, folder = build()
    assert result.code == 1 and not folder.exists()
    assert result.errors == "error: the text contains no words to build a vocabulary from\n"


def test_unused_slots_that_nobody_asked_for_are_explained(build):
    result, _ = build(vocab_size=3000)
    assert re.search(
        r"^2,[89]\d\d of them are \[unused\], because the text has no more characters", result.output, re.M
    )
    result, _ = build("small", vocab_size=56)
    assert result.code == 0 and "because" not in result.output


def test_slots_are_given_pieces(build, run_script, tmp_path):
    _, old = build()
    (tmp_path / "pieces.txt").write_text("새말\r\n\n##끝말\n", encoding="utf-8")
    flags = {"vocab_file": old / "vocab.txt", "output_dir": tmp_path / "new"}
    result = run_script("build_vocab.py", assign_unused=tmp_path / "pieces.txt", **flags)
    assert result.code == 0, result.errors
    assert "gave 2 slots a piece" in result.output
    before, after = (KoreanWordPieceTokenizer.load(folder) for folder in (old, tmp_path / "new"))
    assert after.vocabulary.pieces[5:7] == ["새말", "##끝말"]
    more = ",".join(f"새말{letter}" for letter in map(chr, range(ord("가"), ord("가") + 101)))  # fewer slots are there
    result = run_script("build_vocab.py", assign_unused=more, **{**flags, "output_dir": tmp_path / "grown"})
    slots = sum(UNUSED.fullmatch(piece) is not None for piece in before.vocabulary.pieces)
    told = f"gave {slots} slots a piece, added {101 - slots} behind, so that there are {len(before) + 101 - slots}"
    assert 0 < slots < 101 and told in result.output
    result = run_script("build_vocab.py", assign_unused="영화", **flags)
    assert result.code == 1 and "vocab.txt is there already" in result.errors


def test_slots_without_a_vocabulary_are_refused(run_script, tmp_path):
    result = run_script("build_vocab.py", assign_unused="새말", output_dir=tmp_path / "new")
    assert (result.code, result.errors) == (1, "error: --vocab_file is missing; see --help\n")


def test_languages_count_by_their_exponent(build, tmp_path, corpus):
    small = tmp_path / "small.txt"
    small.write_text("one two three\n" * 2)
    table = tmp_path / "pairs.tsv"
    table.write_text("korean\tenglish\n하나\tone\n")
    files = f"{corpus},{small}"
    result, folder = build(input_file=files, languages="korean,english", language_exponent=0.5)
    assert (result.code, result.errors) == (0, "")
    sizes = {name: int(value.replace(",", "")) for name, value in re.findall(r"(read) ([\d,]+) words", result.output)}
    counted = re.findall(r"^(\w+): ([\d.]+)% of the words, counted as ([\d.]+)%$", result.output, re.MULTILINE)
    assert [name for name, _, _ in counted] == ["korean", "english"]
    shares = [float(share) / 100 for _, share, _ in counted]
    roots = [share**0.5 for share in shares]
    assert [float(share) / 100 for _, _, share in counted] == pytest.approx([r / sum(roots) for r in roots], abs=2e-3)
    assert sizes["read"] > 45 and "one" in (folder / "vocab.txt").read_text().split("\n")
    for changes, message in (
        ({"languages": "korean"}, "--languages names 1 (korean) and --input_file 2 paths or globs"),
        ({"input_file": f"{corpus},{table}"}, "pairs.tsv is a table, but only text is read here; write each language"),
        ({"input_file": table, "languages": None, "language_exponent": None}, "pairs.tsv is a table, but only text"),
        ({"languages": None}, "--language_exponent goes with --languages, of which it says how much each counts"),
    ):
        given = {"input_file": files, "languages": "korean,english", "language_exponent": 0.3, **changes}
        result, folder = build("refused", **{name: value for name, value in given.items() if value is not None})
        assert result.code == 1 and message in result.errors and result.errors.count("\n") == 1
        assert not folder.exists()
