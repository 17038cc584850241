"""The settings of examples for pre-training: of which text, how they are packed and masked, and where they go."""

import dataclasses
import functools
import os
import shlex

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.settings import RARE, TRAINING, Settings, changed, setting
from albert_tf.objectives import DEFAULT_OBJECTIVE, OBJECTIVES, check_packing, default_objective
from albert_tf.pretraining_data import DEFAULT_PACKING, PACKINGS
from albert_tf.pretraining_data.languages import SourceReader, find_sources, languages_of, refuse_tables
from albert_tf.pretraining_data.making.builder import MASKING_CHOICES, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.manifest import MANIFEST_FILE
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions
from albert_tf.pretraining_data.packing import Packing
from albert_tf.reading.documents import ON_BAD_TEXT_CHOICES, SENTENCE_SPLITTERS, CorpusReader, find_corpus_files
from albert_tf.runs.settings.tokenizer import AnyTokenizerSettings
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE

_rare = functools.partial(setting, group=RARE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusSettings(Settings):
    """The text to read."""

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSettings(CorpusSettings, AnyTokenizerSettings):
    """The text that examples are made of, how, and the files to write them to."""

    languages: tuple[str, ...] | None = setting(
        None,
        "The language of each path or glob of --input_file; for a table of pairs the names of two columns, joined by "
        "+: ko,en,ko+en. By default unknown; for a table of two columns, their names.",
    )
    sentence_splitter: str = setting("none", "How lines of running text become sentences.", choices=SENTENCE_SPLITTERS)
    deduplicate: bool = setting(False, "Leave out documents whose text has occurred before.")
    output_file: tuple[str, ...] | None = setting(
        None, "TFRecord file for training, or a comma-separated list, one file a shard.", in_python=False
    )
    num_shards: int = setting(
        1, "Number of shards (for each language), if --output_file names one file.", least=1, in_python=False
    )
    held_out_file: str | None = setting(
        None, "TFRecord file for evaluation; held_out.tfrecord beside --output_file.", in_python=False
    )
    held_out_fraction: float = setting(0.05, "Share of documents kept for evaluation.", least=0, most=0.9)
    vocab_file: str | None = changed(help="Vocabulary; a tokenizer.json beside it says how to use it.")
    objective: str | None = setting(
        None,
        f"What will be learnt from the examples, and so how they are packed; by default {DEFAULT_OBJECTIVE}.",
        choices=OBJECTIVES,
    )
    sentence_pair: str | None = setting(
        None,
        "How sentences are packed, if not as usual for --objective. "
        + "; ".join(f"{packing.name}: {packing.summary}" for packing in PACKINGS.values())
        + ".",
        choices=PACKINGS,
    )
    random_next_sentence: bool = _rare(False, "The original's flag for --sentence_pair=next.")
    masking: str = setting(
        "dynamic", "dynamic: masked differently in each epoch; static: masked here.", choices=MASKING_CHOICES
    )
    do_whole_word_mask: bool = setting(True, "Mask whole words.")
    ngram: int = setting(3, "Longest run of words masked together.", least=1)
    favor_shorter_ngram: bool = _rare(
        True, "Runs of n words have a probability proportional to 1/n; otherwise all lengths are equally probable."
    )
    entity_file: str | None = _rare(
        None,
        "File with names of entities, one per line: a name at the beginning of a word is masked as a whole, and the "
        "rest of the word separately.",
    )
    do_permutation: bool = _rare(False, "Shuffle further pieces, as many as are masked, and predict them too.")
    max_seq_length: int = setting(512, "Length of an example in pieces.", least=8, group=TRAINING)
    max_predictions_per_seq: int | None = setting(
        None, "Maximum number of masked pieces in an example; by default max_seq_length * masked_lm_prob.", least=1
    )
    masked_lm_prob: float = setting(MaskingOptions.masked_lm_prob, "Share of pieces masked.", least=0.001, most=0.9)
    short_seq_prob: float | None = _rare(
        None,
        "Share of examples cut to a random shorter length; by default 0.1, and none of document_blocks.",
        least=0,
        most=1,
    )
    dupe_factor: int | None = setting(None, "How many times to cut each document; 1 if dynamic, 40 if static.", least=1)
    random_seed: int = setting(12345, "Seed of every random draw.", least=0, group=TRAINING)
    num_workers: int = setting(1, "Number of worker processes.", least=1)
    overwrite: bool = setting(False, "Replace existing shards.")
    resume: bool = setting(False, "Resume a build that was stopped; start one if there is none.", in_python=False)
    runner: str | None = setting(
        None, "Run on Apache Beam, not --num_workers: DirectRunner, DataflowRunner, ...", in_python=False
    )
    pipeline_arguments: str = _rare("", "With --runner: Apache Beam's own flags, in quotation marks.", in_python=False)

    def packing_and_objective(self) -> tuple[str, str]:
        """Returns the names of both, as far as the settings say them."""
        name = self.sentence_pair
        if self.random_next_sentence:
            if name not in (None, "next"):
                raise InputError(f"`random_next_sentence` contradicts `sentence_pair={name}`; leave one out")
            name = "next"
        if name is None:
            name = OBJECTIVES[self.objective].packings[0] if self.objective else DEFAULT_PACKING
        packing = PACKINGS[name]
        objective = self.objective or default_objective(packing)
        check_packing(objective, packing)
        return packing.name, objective

    def reader_of(self, packing: Packing) -> tuple[CorpusReader, tuple[str, ...]]:
        """Returns the reader of `input_file`, and of what languages it is, each once."""
        if not self.languages and not packing.takes_pairs:
            reader = self.corpus_reader()
            refuse_tables(reader.paths)
            return reader, ()
        paths, sources = find_sources(self.input_file, self.languages or (), packing.takes_pairs)
        refuse_tables([path for path, source in zip(paths, sources) if len(languages_of(source)) == 1])
        return SourceReader(paths, self.on_bad_text, self.text_field, sources=sources), tuple(dict.fromkeys(sources))

    def builder_options(self) -> BuilderOptions:
        """Returns how to make examples, as far as that doesn't follow from the text."""
        max_predictions = self.max_predictions_per_seq
        if max_predictions is None:
            max_predictions = default_max_predictions(self.max_seq_length, self.masked_lm_prob, self.do_permutation)
        if max_predictions >= self.max_seq_length:
            raise InputError(
                f"`max_predictions_per_seq={max_predictions}` must be less than `max_seq_length={self.max_seq_length}`"
            )
        packing, objective = self.packing_and_objective()
        if self.masking == "static" and not PACKINGS[packing].masks_pieces:
            raise InputError(f"`masking=static`: pieces of `sentence_pair={packing}` are not masked; leave it out")
        short_seq_prob = self.short_seq_prob
        if short_seq_prob is None:
            short_seq_prob = PACKINGS[packing].default_short_seq_prob
        return BuilderOptions(
            max_seq_length=self.max_seq_length,
            masking_options=MaskingOptions(
                max_predictions,
                self.masked_lm_prob,
                self.ngram,
                self.favor_shorter_ngram,
                self.do_whole_word_mask,
                self.do_permutation,
            ),
            masking=self.masking,
            packing=packing,
            objective=objective,
            sentence_splitter=self.sentence_splitter,
            deduplicate=self.deduplicate,
            dupe_factor=self.dupe_factor or (40 if self.masking == "static" else 1),
            short_seq_prob=short_seq_prob,
            held_out_fraction=self.held_out_fraction,
            random_seed=self.random_seed,
        )

    def output_paths(self, num_sources: int) -> tuple[list[str], list[str], list[str]]:
        """Returns the training shards, the held-out shards, and the other files that come with them."""
        for name, paths in (("output_file", self.output_file), ("held_out_file", [self.held_out_file or ""])):
            for path in paths:
                if path.endswith("/") or (path and tf.io.gfile.isdir(path)):
                    raise InputError(f"`{name}={path}` is a folder; name a file in it, such as train.tfrecord")
        train_paths = list(self.output_file)
        if len(train_paths) == 1:
            train_paths = shard_paths(train_paths[0], self.num_shards * num_sources)
        if len(train_paths) % num_sources:
            raise InputError(
                f"`output_file` names {len(train_paths)} files, which can't be divided evenly among {num_sources} "
                "languages; name a multiple of that, or one file and `num_shards`"
            )
        folder = os.path.dirname(train_paths[0])
        held_out_path = self.held_out_file or os.path.join(folder, "held_out.tfrecord")
        held_out_paths = [held_out_path] if self.held_out_fraction > 0 else []
        paths = [*train_paths, *held_out_paths]
        for path in paths:
            if paths.count(path) > 1:
                raise InputError(f"{path} is named twice; give `output_file` and `held_out_file` other names")
            if os.path.dirname(path) != folder:
                raise InputError(f"{path} is not in the folder of {train_paths[0]}; all shards share one manifest")
        other_files = [MANIFEST_FILE]
        source, name = (self.spm_model_file, MODEL_FILE) if self.spm_model_file else (self.vocab_file, VOCABULARY_FILE)
        if source != os.path.join(folder, name):
            other_files += [name, TOKENIZER_FILE]
        return train_paths, held_out_paths, [os.path.join(folder, name) for name in other_files]

    def split_pipeline_arguments(self) -> list[str]:
        """Returns `pipeline_arguments` cut as by a shell."""
        try:
            return shlex.split(self.pipeline_arguments)
        except ValueError as error:
            raise InputError(
                f"`pipeline_arguments={self.pipeline_arguments}` can't be split into arguments ({error}); correct its "
                "quotation marks"
            ) from error
