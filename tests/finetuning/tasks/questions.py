"""Made-up questions, files of them, and a tokenizer that knows every character."""

import json

from albert_tf.finetuning.tasks.squad import Answer, Question
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = "가나다라마바사각한국은는을를의abcdefé0123.,()《》?"


def character_tokenizer(**settings) -> KoreanWordPieceTokenizer:
    """Returns a tokenizer each of whose pieces is one character."""
    pieces = [*CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
    return KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *pieces]), **settings)


def make_question(context: str, answer: str | None = None, question: str = "국은?", **fields) -> Question:
    """Returns a question whose answer is the first place of a text."""
    answers = () if answer is None else (Answer(answer, context.index(answer)),)
    return Question(**{"id": "q", "question": question, "context": context, "answers": answers, **fields})


def write_squad(path, paragraphs) -> str:
    """Writes a file of [(context, [question entry, ...]), ...] in the form of SQuAD and returns its path."""
    paragraphs = [{"context": context, "qas": entries} for context, entries in paragraphs]
    path.write_text(json.dumps({"version": "1", "data": [{"title": "제목", "paragraphs": paragraphs}]}))
    return str(path)


def entry(question_id: str, answer: str | None, begin: int = 0, **fields) -> dict:
    """Returns a question as a file holds it."""
    answers = [] if answer is None else [{"text": answer, "answer_start": begin}]
    return {"id": question_id, "question": "누구?", "answers": answers, **fields}
