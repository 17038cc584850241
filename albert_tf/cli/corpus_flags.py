"""The flags of a corpus, and the reader that they ask for: of the commands that begin with text."""

from absl import flags

from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.corpus.reader import ON_BAD_TEXT_CHOICES, CorpusReader, find_corpus_files


def define_corpus_flags() -> None:
    """Defines what text to read."""
    flags.DEFINE_list(
        "input_file",
        None,
        "Text or .jsonl files, .gz too, or .parquet; comma-separated paths, globs or folders, also those that "
        "datasets has saved.",
    )
    flags.DEFINE_string(
        "text_field", "text", "Field (.jsonl) or column that holds a document, or title,text, one after the other."
    )
    with in_helpfull():
        flags.DEFINE_alias("text_fields", "text_field")
    flags.DEFINE_enum("on_bad_text", "fail", ON_BAD_TEXT_CHOICES, "What to do with a line that can't be read.")


def corpus_reader(given) -> CorpusReader:
    """Returns the reader of the files that the flags name, given what `resolved_flags` returned."""
    return CorpusReader(find_corpus_files(given.input_file, "input_file"), given.on_bad_text, given.text_field)
