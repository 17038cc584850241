"""build_vocab.py as a user runs it."""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from text_strategies import SCHEMES

from albert_tf.base import console
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


ON = ("lower_case", "split_punctuation", "keep_emoji", "split_emoji")
OFF = ("strip_accents", "squeeze_repeats", "full_width_to_ascii", "split_digits")
DEFAULTS = {**dict.fromkeys(ON, True), **dict.fromkeys(OFF, False)}


@pytest.mark.parametrize("switch", DEFAULTS)
def test_every_switch_is_a_flag_and_saved_with_the_vocabulary(build, switch):
    flag = "do_lower_case" if switch == "lower_case" else switch
    _, folder = build(**{flag: not DEFAULTS[switch]})
    settings = KoreanWordPieceTokenizer.load(folder).to_dict()
    assert {name: settings[name] for name in DEFAULTS} == {**DEFAULTS, switch: not DEFAULTS[switch]}
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    assert ("재미있다." in pieces) == (switch == "split_punctuation")


@pytest.mark.slow
def test_same_input_gives_the_same_bytes_in_another_process(build, tmp_path, sample_corpus):
    flags = {"input_file": sample_corpus[0], "vocab_size": 4_000}
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


def test_compressed_json_lines_give_the_same_bytes(build, tmp_path, corpus):
    content = (json.dumps({"본문": corpus.read_text(encoding="utf-8")}) + "\n").encode()
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(content))
    result, built = build("json", input_file=tmp_path / "corpus.jsonl.gz", text_fields="본문")
    assert result.code == 0, result.errors
    assert files_of(build("plain")[1]) == files_of(built)


def test_long_text_is_sampled_by_the_seed(build, sample_corpus):
    flags = {"input_file": sample_corpus[0], "vocab_size": 3_000, "max_sentences": 50}
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
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pieces_end_where_josa_begin(build, scheme):
    pytest.importorskip("kiwipiepy")
    flags = {"vocab_size": 90, "wordpiece_scheme": scheme}
    (result, cut), (_, same), (_, whole) = (
        build("cut", morphemes="kiwi", **flags),
        build("same", morphemes="kiwi", **flags),
        build("whole", **flags),
    )
    assert result.code == 0, result.errors
    assert files_of(cut) == files_of(same) != files_of(whole)
    pieces = KoreanWordPieceTokenizer.load(cut).tokenize("나는 영화를 보았다.")
    expected = {
        "continuation": ["나", "##는", "영화", "##를", "보", "##았다", "."],
        "end_of_word": ["나", "는_", "영화", "를_", "보", "았다", "."],
    }
    assert pieces == expected[scheme]


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


@pytest.mark.parametrize(
    ("flag_values", "message"),
    [
        ({"input_file": "absent/*.txt"}, "--input_file: no file matches absent/*.txt"),
        ({"input_file": ""}, "--input_file is missing"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_mistakes_end_in_one_sentence(build, flag_values, message):
    result, folder = build(**flag_values)
    assert result.code == 1 and not folder.exists()
    assert result.errors.startswith(f"error: {message}") and result.errors.count("\n") == 1


def test_text_without_words_is_refused(build, corpus):
    corpus.write_text("\n\n \u3000\n\u200b\n", encoding="utf-8")
    result, folder = build()
    assert result.code == 1 and not folder.exists()
    assert result.errors == "error: the text contains no words to build a vocabulary from\n"


def test_line_that_is_not_utf_8_is_named_and_may_be_skipped(build, tmp_path, corpus):
    bad_corpus = tmp_path / "bad.txt"
    lines = corpus.read_bytes().split(b"\n")
    bad_corpus.write_bytes(b"\n".join([*lines[:2], "영화".encode() + b"\xff" + "관".encode(), *lines[2:]]))
    result, folder = build(input_file=bad_corpus)
    assert result.code == 1 and not folder.exists()
    assert f"{bad_corpus}, line 3: not valid UTF-8" in result.errors and result.errors.count("\n") == 1
    result, skipped = build("skipped", input_file=bad_corpus, on_bad_text="skip")
    assert result.code == 0, result.errors
    assert "--on_bad_text=skip: 1 lines can't be read as they are" in result.output
    assert files_of(skipped) == files_of(build("clean")[1])


@pytest.mark.slow
def test_long_runs_of_reviews_are_learnt_from(build, shared_data, tmp_path):
    with gzip.open(shared_data / "corpus_reviews" / "nsmc_reviews.txt.gz", "rt", encoding="utf-8") as file:
        runs = [review for review in file if re.search(r"([가-힣ㄱ-ㅣ])\1{85,}", review)]
    assert len(runs) > 9
    path = tmp_path / "runs.txt"
    path.write_text("".join(runs * 3), encoding="utf-8")
    result, folder = build(input_file=path, vocab_size=4000)
    assert result.code == 0, result.errors
    pieces = KoreanWordPieceTokenizer.load(folder).vocabulary.pieces
    assert 200 < max(len(piece.removeprefix("##").encode()) for piece in pieces) <= 256


@pytest.mark.slow
def test_progress_is_shown_in_both_passes(build, monkeypatch, corpus):
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_LINES", {True: 0, False: 0})
    corpus.write_text("\n".join(LINES * 9000), encoding="utf-8")
    result, _ = build()
    for words in ("looked at", "counted the words of"):
        assert re.search(rf"^{words} 1 MB, \d+% of the corpus, [\d.]+ MB/s, ETA \d+ s$", result.output, re.MULTILINE)


def test_unused_slots_that_nobody_asked_for_are_explained(build):
    result, _ = build(vocab_size=3000)
    assert re.search(
        r"^2,[89]\d\d of them are \[unused\], because the text has no more characters", result.output, re.M
    )
    result, _ = build("small", vocab_size=60)
    assert result.code == 0 and "because" not in result.output


@pytest.mark.parametrize("given", ["list", "file"])
def test_slots_are_given_pieces(build, run_script, tmp_path, given):
    _, old = build()
    (tmp_path / "pieces.txt").write_text("새말\r\n\n##끝말\n", encoding="utf-8")
    flags = {"vocab_file": old / "vocab.txt", "output_dir": tmp_path / "new"}
    value = "새말,##끝말" if given == "list" else tmp_path / "pieces.txt"
    result = run_script("build_vocab.py", assign_unused=value, **flags)
    assert result.code == 0, result.errors
    assert "gave 2 slots a piece" in result.output
    before, after = (KoreanWordPieceTokenizer.load(folder) for folder in (old, tmp_path / "new"))
    assert after.vocabulary.pieces[5:7] == ["새말", "##끝말"]
    assert after.tokenize("새말 새말끝말 영화") == ["새말", "새말", "##끝말", *before.tokenize("영화")]
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
        ({"language_exponent": -1}, "--language_exponent=-1 must be from 0"),
        (
            {"languages": "korean,korean+english"},
            "korean+english is a table of pairs, but only text is read here; write each language into a file",
        ),
        ({"input_file": f"{corpus},{table}"}, "pairs.tsv is a table, but only text is read here; write each language"),
        ({"input_file": table, "languages": None, "language_exponent": None}, "pairs.tsv is a table, but only text"),
        ({"languages": None}, "--language_exponent goes with --languages, of which it says how much each counts"),
    ):
        given = {"input_file": files, "languages": "korean,english", "language_exponent": 0.3, **changes}
        result, folder = build("refused", **{name: value for name, value in given.items() if value is not None})
        assert result.code == 1 and message in result.errors and result.errors.count("\n") == 1
        assert not folder.exists()
