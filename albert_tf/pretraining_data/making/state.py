"""The state of a build on disk, so that a killed build can be resumed.

The folder lies beside the shards. It holds the plan (flags and input files), spill files, finished shards that wait for
the others, and a file of counts for each chunk and shard, which is written last and says that the rest is whole. A
chunk's counts, and a file for each finished file of the corpus, also say which text was read.
"""

import collections.abc
import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import re

import tensorflow as tf

import albert_tf
from albert_tf.base.console import ProgressLine
from albert_tf.base.errors import InputError, first_line, shorten
from albert_tf.base.files import read_json, replacing, sha256_of, write_json
from albert_tf.base.folders import hold
from albert_tf.pretraining_data import find_packing
from albert_tf.pretraining_data.entities import NameList
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, save_names
from albert_tf.pretraining_data.manifest import HELD_OUT, TRAIN, WORK_FOLDER, find_old_shards
from albert_tf.reading.blocks import BadCorpusError, FileStart
from albert_tf.reading.documents import CorpusReader
from albert_tf.tokenization import Tokenizer

RESUME_GOES_ON = "once that is corrected, `resume` continues"

_INTERRUPTED = "interrupted; repeat the command with `resume` to continue"
_PLAN_FILE = "plan.json"
# The name of a record that says what of a file of the corpus was read, and the file's number.
_OF_INPUT = re.compile(r"(?:chunk|input)-([0-9]+)(?:-[0-9]+)?(?=\.json$)")
_ERROR = "error-"
_OF_ERROR = re.compile(rf"{_ERROR}[0-9]+\.json$")


@contextlib.contextmanager
def open_work_folder(
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    resume: bool,
    names: NameList | None = None,
    engine: str | None = None,
) -> collections.abc.Iterator[tuple["WorkFolder", BuilderOptions, dict[str, list[str]]]]:
    """Checks what can be checked before any work, and opens the work folder of a build, with the tokenizer in it.

    Arguments as for `builder.build`; no engine can go on with the files of another. Yields the folder; the options,
    without held-out documents if there are no shards for them; and the paths of the shards of each split. Errors of the
    build that happen inside say how to go on; after a BadCorpusError the folder is removed.
    """
    options.masking_options.with_tokens_of(tokenizer.vocabulary)
    _check_mentions(options, names)
    folder = os.path.dirname(train_paths[0])
    find_old_shards(folder)
    shards = {TRAIN: train_paths, HELD_OUT: held_out_paths}
    if not held_out_paths:
        options = dataclasses.replace(options, held_out_fraction=0.0)
        del shards[HELD_OUT]
    try:
        with hold(folder, "output_file"):
            plan = _make_plan(reader, tokenizer, options, shards)
            work = WorkFolder(folder, plan | ({"engine": engine} if engine else {}), resume)
            if engine is None or work.corpus_counts() is not None:  # else workers read all of it once more, and compare
                work.check_inputs(reader.paths)
            tokenizer.save(work.path)
            save_names(names, work.path)
            try:
                yield work, options, shards
            except BadCorpusError:
                work.remove()
                raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_INTERRUPTED) from None
    except ChildProcessError as error:
        raise InputError(f"{error}; continue with `resume` and fewer `num_workers`") from error
    except (OSError, tf.errors.OpError) as error:
        raise InputError(f"can't write {folder}: {first_line(error)}; {RESUME_GOES_ON}") from error


def _check_mentions(options, names):
    if (options.names_sha256, options.num_names) != ((names.sha256, len(names)) if names else ("", 0)):
        raise InputError("`names_sha256` and `num_names` are of other names than `names`; use all three of one list")
    if not options.marks_mentions:
        return
    if not options.masking_options.do_whole_word_mask:
        raise InputError("names are masked whole, as words are; leave `do_whole_word_mask=false` out")
    if not find_packing(options.packing).masks_pieces:
        raise InputError(
            f"pieces of `packing={options.packing}` are not masked, so names have no effect; leave them out"
        )


class WorkFolder:
    """The folder of one build, whose plan, written as JSON, is what makes two builds the same.

    Raises InputError if a build is there that is not to be resumed, or one with another plan. Methods that read counts
    return None where they are not written yet.
    """

    def __init__(self, output_folder: str, plan: dict, resume: bool):
        self.path = os.path.join(output_folder, WORK_FOLDER)
        plan_path = os.path.join(self.path, _PLAN_FILE)
        if tf.io.gfile.exists(plan_path):
            if not resume:
                raise InputError(f"{self.path} holds an unfinished build; continue with `resume`, or delete the folder")
            _check_plan(self.path, read_json(plan_path, "the plan"), json.loads(json.dumps(plan)))
        else:
            if tf.io.gfile.exists(self.path):  # left by a removal that was killed
                tf.io.gfile.rmtree(self.path)
            write_json(plan_path, plan)

    def spill_path(self, run: str, split: str) -> str:
        return os.path.join(self.path, f"{run}.{split}.examples")

    def is_merged(self, run: str, split: str) -> bool:
        """Whether a run holds the examples of all that it is to be merged from."""
        return self._read(f"{run}.{split}") is not None

    def finish_merge(self, run: str, split: str, sources: list[str]) -> None:
        """Records that a run holds the examples of others, and deletes these."""
        if not self.is_merged(run, split):
            self._write(f"{run}.{split}", {"sources": sources})
        for source in sources:
            with contextlib.suppress(tf.errors.NotFoundError):  # a killed build may have got this far
                tf.io.gfile.remove(self.spill_path(source, split))

    def shard_path(self, split: str, shard: int) -> str:
        return os.path.join(self.path, f"{split}-{shard:05d}.tfrecord")

    def chunk_counts(self, chunk_id: tuple[int, int]) -> dict | None:
        record = self._read(chunk_run(chunk_id))
        return record and record["counts"]

    def write_chunk_counts(self, chunk_id: tuple[int, int], counts: dict, start: FileStart) -> None:
        """Records that the examples of a chunk are written, and which beginning of its file was read by then."""
        self._write(chunk_run(chunk_id), {"counts": counts, "start": start})

    def finish_input(self, file_index: int, path: str, file_start: FileStart) -> None:
        """Records the whole of a file of the corpus; raises InputError if it was another before."""
        before = self.input_file(file_index)
        if before is None:
            self._write(f"input-{file_index:05d}", {"start": file_start})
        elif before != file_start:
            raise self._other_text(path)

    def input_file(self, file_index: int) -> FileStart | None:
        """Returns the whole of a file of the corpus, None if it was not read to its end yet."""
        return self._read_start(f"input-{file_index:05d}")

    def check_inputs(self, paths: list[str]) -> None:
        """Checks that the files of the corpus are the same as before, as far as they were read."""
        # Of every file the last record: of its last chunk, or of the whole.
        names = sorted(tf.io.gfile.listdir(self.path))
        records = {int(found[1]): found[0] for found in map(_OF_INPUT.match, names) if found}
        progress = ProgressLine()
        for number, (file_index, name) in enumerate(sorted(records.items()), start=1):
            start = self._read_start(name)
            if sha256_of(paths[file_index], start.num_bytes) != start.sha256:
                raise self._other_text(paths[file_index])
            if progress.is_due:
                progress.show(f"compared {number} of {len(records)} files with what was read of them before")
        progress.finish()

    def corpus_counts(self) -> dict | None:
        return self._read("corpus")

    def write_corpus_counts(self, counts: dict) -> None:
        self._write("corpus", counts)

    def shard_counts(self, split: str, shard: int) -> dict | None:
        return self._read(f"{split}-{shard:05d}")

    def write_shard_counts(self, split: str, shard: int, counts: dict) -> None:
        self._write(f"{split}-{shard:05d}", counts)

    def write_error(self, file_index: int, error: InputError) -> None:
        self._write(f"{_ERROR}{file_index:05d}", {"message": str(error), "is_final": isinstance(error, BadCorpusError)})

    def take_errors(self) -> list[dict]:
        """Returns and deletes the errors, by file: a later run may fail for another reason."""
        names = [name.removesuffix(".json") for name in sorted(tf.io.gfile.listdir(self.path)) if _OF_ERROR.match(name)]
        errors = list(map(self._read, names))
        for name in names:
            tf.io.gfile.remove(self._path(name))
        return errors

    def remove(self) -> None:
        """Deletes the folder; first the plan, without which nothing in it counts."""
        tf.io.gfile.remove(os.path.join(self.path, _PLAN_FILE))
        with contextlib.suppress(tf.errors.OpError):  # a worker may have written meanwhile what it was at
            tf.io.gfile.rmtree(self.path)
        if tf.io.gfile.exists(self.path):
            tf.io.gfile.rmtree(self.path)

    def _other_text(self, path):
        return InputError(
            f"{path} is not the text that the unfinished build in {self.path} began with; put that back, or delete the "
            "folder to begin anew"
        )

    def _read_start(self, name):
        record = self._read(name)
        return record and FileStart(*record["start"])

    def _path(self, name):
        return os.path.join(self.path, f"{name}.json")

    def _read(self, name):
        if not tf.io.gfile.exists(self._path(name)):
            return None
        record = read_json(self._path(name), "the counts")
        if record.get("sha256") != _sha256(json.dumps(record.get("counts"))):
            raise InputError(f"{self._path(name)} is damaged; delete {self.path} to begin anew")
        return record["counts"]

    def _write(self, name, counts):
        # On one line, because indenting many numbers takes longer than counting them.
        text = json.dumps(counts)
        # Of a build that failed, steps may still run elsewhere: they must not make the folder anew.
        with replacing(self._path(name), makes_folder=False) as file:
            file.write(f'{{"sha256": "{_sha256(text)}", "counts": {text}}}'.encode())


def chunk_run(chunk_id: tuple[int, int]) -> str:
    return "chunk-{:05d}-{:06d}".format(*chunk_id)


def _sha256(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _check_plan(folder, old, new):
    for name in {**old, **new}:
        then, now = old.get(name), new.get(name)
        if then != now:
            if isinstance(then, list) and isinstance(now, list):  # of files, which may be many
                then, now = next(pair for pair in itertools.zip_longest(then, now) if pair[0] != pair[1])
            then, now = shorten(json.dumps(then)), shorten(json.dumps(now))
            raise InputError(
                f"{folder} holds an unfinished build with another {name} ({then}, now {now}); "
                "repeat the first command with `resume`, or delete the folder"
            )


def _make_plan(reader, tokenizer, options, shards):
    """Returns everything that the bytes of the shards depend on."""
    return {
        "version": albert_tf.__version__,
        "output": {split: [os.path.basename(path) for path in paths] for split, paths in shards.items()},
        "vocabulary or tokenizer settings": tokenizer.identity,
        **options.to_dict(),
        "on_bad_text": reader.on_bad_text,
        "text_field": reader.text_field,
        "input": [[path, size] for path, size in zip(reader.paths, reader.sizes())],
        "languages of the input": list(map(reader.source_of, range(len(reader.paths)))),
    }
