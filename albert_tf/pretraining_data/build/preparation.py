"""How a build begins: what is checked before any work, and the work folder that it can be resumed from."""

import collections.abc
import contextlib
import dataclasses
import os

import tensorflow as tf

import albert_tf
from albert_tf.corpus.errors import BadCorpusError
from albert_tf.corpus.reader import CorpusReader
from albert_tf.errors import InputError, first_line
from albert_tf.folder_lock import hold
from albert_tf.mentions.names import NameList
from albert_tf.pretraining_data.build.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.build.mentions import save_names
from albert_tf.pretraining_data.build.publishing import find_old_shards
from albert_tf.pretraining_data.build.work_folder import WorkFolder
from albert_tf.pretraining_data.manifest import HELD_OUT, TRAIN
from albert_tf.pretraining_data.packing import find_packing
from albert_tf.tokenization import Tokenizer

RESUME_GOES_ON = "once that is corrected, `resume` continues"

_INTERRUPTED = "interrupted; repeat the command with `resume` to continue"


def prepare(
    tokenizer: Tokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    names: NameList | None = None,
) -> tuple[BuilderOptions, dict[str, list[str]]]:
    """Checks, before any work, what can be checked, and returns the options and the paths of each split's shards.

    Args:
        tokenizer: Tokenizer whose vocabulary must hold every special token.
        options: How to make examples; returned without held-out documents if there are no shards for them.
        train_paths: Shards for training.
        held_out_paths: Shards for evaluation, maybe none.
        names: Those whose hash the options hold.

    Raises:
        InputError: A special token is missing, the options contradict the names or one another, or the manifest of an
            earlier build can't be read.
    """
    options.masking_options.with_tokens_of(tokenizer.vocabulary)
    _check_mentions(options, names)
    find_old_shards(os.path.dirname(train_paths[0]))
    if not held_out_paths:
        return dataclasses.replace(options, held_out_fraction=0.0), {TRAIN: train_paths}
    return options, {TRAIN: train_paths, HELD_OUT: held_out_paths}


@contextlib.contextmanager
def open_work_folder(
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    shards: dict[str, list[str]],
    resume: bool,
    engine: str | None = None,
    names: NameList | None = None,
) -> collections.abc.Iterator[WorkFolder]:
    """Opens the work folder of a build, with the tokenizer in it; errors of the build say how to go on.

    Args:
        reader: The corpus.
        tokenizer: The tokenizer.
        options: How to make examples.
        shards: The paths of each split, all in one folder.
        resume: Go on with a build that is there.
        engine: What runs the build, if not the local builder: neither can go on with the other's files.
        names: Those whose hash the options hold.

    Raises:
        BadCorpusError: The corpus can't be used; the work folder is removed.
        InputError: A file can't be read or written, another command writes the folder, or a worker was killed.
        KeyboardInterrupt: The build was interrupted; says that `resume` continues.
    """
    folder = os.path.dirname(shards[TRAIN][0])
    try:
        with hold(folder, "output_file"):
            plan = _make_plan(reader, tokenizer, options, shards)
            work = WorkFolder(folder, plan | ({"engine": engine} if engine else {}), resume)
            if engine is None or work.corpus_counts() is not None:  # else workers read all of it once more, and compare
                work.check_inputs(reader.paths)
            tokenizer.save(work.path)
            save_names(names, work.path)
            try:
                yield work
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
    """Checks that mentions of entities can be masked whole, by what the options say."""
    if (options.names_sha256, options.num_names) != ((names.sha256, len(names)) if names else ("", 0)):
        raise InputError(
            "`names_sha256` and `num_names` belong to other names than those given as `names`; use all three of "
            "one list"
        )
    if not options.marks_mentions:
        return
    if not options.masking_options.do_whole_word_mask:
        raise InputError("names are masked whole, as words are; leave `do_whole_word_mask=false` out")
    if not find_packing(options.packing, "packing").masks_pieces:
        raise InputError(
            f"pieces of `packing={options.packing}` are not masked, so names have no effect; leave them out"
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
