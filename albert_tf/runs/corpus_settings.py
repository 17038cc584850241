"""The settings of a corpus: of the commands that begin with text."""

import dataclasses

from albert_tf.corpus.reader import ON_BAD_TEXT_CHOICES, CorpusReader, find_corpus_files
from albert_tf.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusSettings(Settings):
    """What text to read."""

    input_file: tuple[str, ...] | None = setting(
        None,
        "Text or .jsonl files, .gz too, or .parquet; comma-separated paths, globs or folders, also those that datasets "
        "has saved.",
        in_python=False,
    )
    text_field: str = setting(
        "text",
        "Field (.jsonl) or column that holds a document, or title,text, one after the other.",
        aliases=("text_fields",),
    )
    on_bad_text: str = setting("fail", "What to do with a line that can't be read.", choices=ON_BAD_TEXT_CHOICES)

    def corpus_reader(self) -> CorpusReader:
        """Returns the reader of the files that `input_file` names."""
        return CorpusReader(find_corpus_files(self.input_file, "input_file"), self.on_bad_text, self.text_field)
