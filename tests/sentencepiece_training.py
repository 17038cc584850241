"""SentencePiece models as ALBERT's are trained, on a text that stays as it is."""

import io
import pathlib

# The README of google-research/albert: 30,000 pieces of unigrams, no begin or end of sentence.
AS_ALBERT = {
    "model_type": "unigram",
    "pad_id": 0,
    "unk_id": 1,
    "bos_id": -1,
    "eos_id": -1,
    "control_symbols": "[CLS],[SEP],[MASK]",
    "user_defined_symbols": '(,),",-,.,–,£,€',
    "character_coverage": 0.99995,
}


def train_model(lines: list[str], vocab_size: int, **options) -> bytes:
    """Returns the content of a .model file."""
    import sentencepiece

    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=content,
        vocab_size=vocab_size,
        num_threads=1,
        minloglevel=2,
        **{**AS_ALBERT, **options},
    )
    return content.getvalue()


def english_lines() -> list[str]:
    """Lines of English, and some numbers: `english_lines.txt`, what the documents said once, whatever they say now."""
    lines = (pathlib.Path(__file__).parent / "english_lines.txt").read_text(encoding="utf-8").splitlines()
    numbers = [
        f"In {year}, {year + 1}, or {year % 7},{year} there were {year % 10}, not {year}." for year in range(1990, 2030)
    ]
    # So there is a piece that ends in a digit and a comma.
    return [*lines, *numbers, *["There were 16, or 16 of 16, with 16, or 16."] * 100]
