"""The guard against mixing: two runs in one folder, or results of two data sets in one file.

It knows what a run began with, wherever that lies by now, and the settings in its folder. Results of other data than
the run's own go to files beside its own.
"""

import dataclasses
import hashlib
import os
import re
import typing

import tensorflow as tf

from albert_tf.base.checkpoint_files import SETTINGS_FILE, find_checkpoints, named_newest, resolve_checkpoint
from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_json, reading, sha256_of, write_json
from albert_tf.base.settings import check_types
from albert_tf.config import AlbertConfig
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE

_CHUNK_BYTES = 1 << 20


def absolute_path(path: str) -> str:
    """Returns a path that means the same from every working directory, spelled in one way."""
    scheme, separator, rest = path.rpartition("://")
    if not separator:
        return os.path.abspath(path)
    return f"{scheme}://{re.sub('/+', '/', rest).rstrip('/')}"


def file_identity(path: str) -> dict[str, str]:
    """Returns a file's name and the SHA-256 of its bytes; of a folder, of the names and digests of its files.

    Hidden files don't count.
    """
    digest = _folder_sha256(path) if tf.io.gfile.isdir(path) else sha256_of(path)
    return {"name": os.path.basename(path), "sha256": digest}


def joint_identity(identities: list[dict[str, str]]) -> dict[str, str]:
    """Returns the names of several files, and a SHA-256 of theirs, given what `file_identity` returned of each."""
    digests = "".join(f"{identity['sha256']}  {identity['name']}\n" for identity in identities)
    names = "+".join(identity["name"] for identity in identities)
    return {"name": names, "sha256": hashlib.sha256(digests.encode()).hexdigest()}


def shard_identity(path: str) -> str:
    """Returns the identity of a shard whose manifest holds no digest: size and SHA-256 of its first record."""
    with reading(path) as file:
        header = file.read(12)  # the length of the record, and the checksum of the length
        record = file.read(min(int.from_bytes(header[:8], "little"), _CHUNK_BYTES))
        size = tf.io.gfile.stat(path).length
    return f"{size}-{hashlib.sha256(record).hexdigest()}"


def checkpoint_identity(path: str | None) -> dict[str, str | None] | None:
    """Returns a checkpoint's absolute "path", given it or its folder, and the "index_sha256" of its index.

    The index holds the checksum of every variable; the hash is None where there is no checkpoint (any more).
    """
    if not path:
        return None
    found = resolve_checkpoint(path)
    if found is None:
        return {"path": absolute_path(path), "index_sha256": None}
    return {"path": absolute_path(found), "index_sha256": sha256_of(f"{found}.index")}


def is_same_checkpoint(earlier: dict | None, now: dict | None) -> bool:
    """Returns whether two of `checkpoint_identity` are the same; it may be gone by now, and its folder be named."""
    if earlier is None or now is None:
        return earlier is now
    if earlier["index_sha256"] and now["index_sha256"]:
        return earlier["index_sha256"] == now["index_sha256"]
    return now["path"] in (earlier["path"], os.path.dirname(earlier["path"]))


def _folder_sha256(folder):
    """Returns the SHA-256 of what sha256sum would print of the files below a folder, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(_names_below(folder)):
        digest.update(f"{sha256_of(os.path.join(folder, name))}  {name}\n".encode())
    return digest.hexdigest()


def _names_below(folder, prefix=""):
    """Yields the names of all files below a folder, but for hidden ones."""
    for name in tf.io.gfile.listdir(os.path.join(folder, prefix)):
        name = name.rstrip("/")  # so Cloud Storage spells a folder
        if name.startswith("."):
            continue
        path = os.path.join(prefix, name)
        if tf.io.gfile.isdir(os.path.join(folder, path)):
            yield from _names_below(folder, path)
        else:
            yield path


# Where the run found things; they may be found elsewhere later.
FOUND_AT = "found_at"

# Settings that name a checkpoint, which is told by its content: what a run begins with, and what it learns from.
CHECKPOINTS = ("init_checkpoint", "teacher")

# Of settings that are no flags, whose own types are checked where they are taken.
_TYPES = {
    "command": str,
    "objective": str,
    "albert_config": dict[str, typing.Any],
    **dict.fromkeys(CHECKPOINTS, dict[str, str | None] | None),
    "train_file": dict[str, str | int] | None,
    FOUND_AT: dict,
}
_PARTS = {**dict.fromkeys(CHECKPOINTS, ("path", "index_sha256")), "train_file": ("name", "sha256")}

# What runs in Python, without evaluation or teacher don't write.
_NOT_ALWAYS_WRITTEN = ("command", "eval_batch_size", "metrics", "teacher_setup")
_ANOTHER = "choose another folder"


def read_settings(folder: str) -> dict | None:
    """Returns the settings of the run in a folder, None if there is none."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not tf.io.gfile.exists(path):
        return None
    settings = read_json(path, "the settings of the run")
    check_types(settings, _TYPES, path, ("objective",))
    for name, parts in _PARTS.items():
        if isinstance(settings.get(name), dict):
            check_types(settings[name], {"path": str, "examples": int}, f'{path}, "{name}"', parts)
    if settings.get("albert_config"):
        try:
            AlbertConfig.from_dict(settings["albert_config"])
        except InputError as error:
            raise InputError(f'{path}, "albert_config": {error}') from error
    return settings


def check_output_dir(
    output_dir: str, settings: dict, config: AlbertConfig, tokenizer: Tokenizer | None, assumed: dict | None = None
) -> None:
    """Checks that a folder is free for a run or holds this very run; writes nothing.

    `settings` are all that decide what the run computes, JSON values by name: "command" among them, "init_checkpoint"
    as `checkpoint_identity` gives it, and under "found_at" those that may change. `assumed` are the values of settings
    that earlier runs don't name. An InputError if the folder holds a run with other settings, checkpoints of unknown
    origin, or files of another model or tokenizer.
    """
    earlier = read_settings(output_dir)
    if earlier is not None:
        missing = {name: value for name, value in (assumed or {}).items() if name in settings.keys() - earlier.keys()}
        check_same_settings(output_dir, {**earlier, **missing}, _all_settings(settings, config, tokenizer))
        return
    if find_checkpoints(output_dir) or named_newest(output_dir) is not None:
        raise InputError(f"`output_dir={output_dir}` holds checkpoints of another run; choose another folder")
    is_same = {CONFIG_FILE: lambda path: AlbertConfig.from_json_file(path) == config}
    if tokenizer is not None:
        is_same[tokenizer.vocabulary_file] = tokenizer.is_vocabulary_file
        is_same[TOKENIZER_FILE] = tokenizer.is_saved_as
    for name, same in is_same.items():
        path = os.path.join(output_dir, name)
        if tf.io.gfile.exists(path) and not same(path):
            raise InputError(f"`output_dir={output_dir}` holds a different {name}; choose another folder")


def check_model(
    folder: str, settings: dict, config: AlbertConfig, tokenizer: Tokenizer | None, flag: str = "output_dir"
) -> None:
    """Checks that model and tokenizer are those of a run that is to be used."""
    now = {"albert_config": config.to_dict(), "tokenizer": tokenizer and tokenizer.identity}
    earlier, now = _flatten(settings), _flatten(now)
    known = [name for name in now if earlier.get(name) is not None and now[name] is not None]
    check_same_settings(folder, {name: earlier[name] for name in known}, {name: now[name] for name in known}, flag)


def check_same_settings(folder: str, earlier: dict, now: dict, flag: str = "output_dir") -> None:
    """Checks that settings are those of a run."""
    earlier, now = _flatten(earlier), _flatten(now)
    for name in {**earlier, **now}:
        then, given = earlier.get(name), now.get(name)
        if not _is_same(name, then, given):
            raise InputError(f"`{flag}={folder}` holds another run: {_describe(name, then, given, folder)}")


def claim_output_dir(
    output_dir: str, settings: dict, config: AlbertConfig, tokenizer: Tokenizer | None, assumed: dict | None = None
) -> None:
    """Writes the settings, model config and tokenizer of a run into its folder, unless they are there already.

    Call it before the first checkpoint is written: from then on the folder takes no other run. Arguments and errors are
    those of `check_output_dir`.
    """
    check_output_dir(output_dir, settings, config, tokenizer, assumed)
    path = os.path.join(output_dir, SETTINGS_FILE)
    if tf.io.gfile.exists(path):
        return
    write_json(os.path.join(output_dir, CONFIG_FILE), config.to_dict())
    if tokenizer is not None:
        tokenizer.save(output_dir)
    write_json(path, _all_settings(settings, config, tokenizer))


def _all_settings(settings, config, tokenizer):
    identity = tokenizer.identity if tokenizer is not None else None
    return {**settings, "albert_config": config.to_dict(), "tokenizer": identity}


def _flatten(settings):
    """Returns settings whose model config is not one of them but so many, to tell which of its values differs."""
    config = settings.get("albert_config")
    # Fields that are not written are as they are by default.
    flat = {**settings, **(dataclasses.asdict(AlbertConfig.from_dict(config)) if config else {})}
    return {name: value for name, value in flat.items() if name not in ("albert_config", FOUND_AT)}


def _is_same(name, then, now):
    if name in CHECKPOINTS:
        return is_same_checkpoint(then, now)
    if name in _NOT_ALWAYS_WRITTEN and None in (then, now):
        return True
    if name == "data" and then and now and len(then) == len(now):
        return all(map(_is_same_data, then, now))
    if name in ("train_file", "unlabelled_files") and then and now:
        return then["sha256"] == now["sha256"]
    return then == now


def _is_same_data(then, now):
    """Whether data are the same: the hash of a manifest, or of each shard by name, None for one damaged by now."""
    if isinstance(then, dict) and isinstance(now, dict):
        return then.keys() == now.keys() and all(now[name] in (None, then[name]) for name in now)
    return then == now


def _describe(name, then, now, folder):
    """Returns a sentence about a difference, and what to do about it."""
    if name in CHECKPOINTS:
        then, now = (value and value["path"] for value in (then, now))
        what = "what it began with" if name == "init_checkpoint" else f"its {name}"
        if then == now:
            return f"{what}, {then}, has changed since; put it back, or {_ANOTHER}"
        if name == "init_checkpoint" and then and now and os.path.dirname(then) == os.path.dirname(now):
            return (
                f"it began with {then}, and `init_checkpoint` is now {now}; name the former, leave it out, or "
                "choose another folder"
            )
    if name in ("data", "train_file") or (name == "unlabelled_files" and then and now):
        skip = "leave out a damaged shard with `on_damaged_shard=skip`, " if name == "data" else ""
        return (
            f"the content of its training data is not what it was{_name_changed(then, now)}; put the data back, {skip}"
            f"or choose another folder, with `init_checkpoint={folder}` to train on with other data"
        )
    if name == "frozen_models" and then and now:
        changed = ", ".join(each for each in now if then.get(each, now[each]) != now[each])
        return f"the content of {changed}, which it learns from, is not what it was; put it back, or {_ANOTHER}"
    if name == "teacher_setup":
        return f"the config, tokenizer or labels of its teacher have changed since; put them back, or {_ANOTHER}"
    if name == "entities" and then and now:
        return f"the entities that it knows have changed since; put the folder of `entity_vectors` back, or {_ANOTHER}"
    then, now = shorten(_as_typed(then)), shorten(_as_typed(now))
    return f"`{name}` is {now}, and was {then}; put it back to resume that run, or {_ANOTHER}"


def _name_changed(then, now):
    """Returns the names of the files that have changed, in brackets, as far as they are known."""
    changed = [now["name"]] if isinstance(now, dict) else []
    for before, after in zip(then or [], now or []):
        if isinstance(before, dict) and isinstance(after, dict):
            changed += sorted(name for name in after if after[name] not in (None, before.get(name)))
    return f" ({shorten(', '.join(changed))})" if changed else ""


def _as_typed(value):
    return ",".join(map(_as_typed, value)) if isinstance(value, list) else str(value)


# Which files results go to: those of the run's own data, or others beside them for other data.

DATA_FILE = "data_of_results.json"


def claim_results(output_dir: str, data: dict[str, dict[str, str]]) -> None:
    """Records what data the files of results are of, but for those of which that is known already."""
    known = _known_data(output_dir)
    if data.keys() - known.keys():
        write_json(os.path.join(output_dir, DATA_FILE), {**data, **known})


def check_results_data(output_dir: str, file_name: str, data: dict[str, str]) -> None:
    """Checks that data are those that a run is measured with while it trains."""
    known = _known_data(output_dir).get(file_name)
    if known and known["sha256"] != data["sha256"]:
        raise InputError(
            f"`output_dir={output_dir}` holds a run that is evaluated on {_described_data(known)} while it trains, "
            f"but now on {_described_data(data)}; name the former again, or evaluate the latter without `do_train`"
        )


def read_results(path: str) -> dict[str, float | None]:
    """Returns the measures of eval_results.json by name."""
    values = read_json(path, "the results")
    return check_types(values, dict.fromkeys(values, float | None), path)


def results_path(
    output_dir: str, file_name: str, data: dict[str, str] | None, beside: str | None = None
) -> tuple[str, bool]:
    """Returns the path of the file for results, and whether it is the one for the run's own data, as for no data.

    Unknown data become its own where no such file is there yet. `beside` is the main file that this one adds to.
    """
    path = os.path.join(output_dir, file_name)
    if data is None:
        return path, True
    beside = beside or file_name
    known = _known_data(output_dir).get(beside)
    if known["sha256"] == data["sha256"] if known else not tf.io.gfile.exists(os.path.join(output_dir, beside)):
        return path, True
    stem, extension = os.path.splitext(path)
    name = re.sub(r"[^\w-]+", "_", os.path.splitext(data["name"])[0])
    return f"{stem}-{name}-{data['sha256'][:8]}{extension}", False


def _known_data(output_dir):
    path = os.path.join(output_dir, DATA_FILE)
    if not tf.io.gfile.exists(path):
        return {}
    known = read_json(path, "the data of the results")
    for name, data in known.items():
        check_types(data, {"name": str, "sha256": str}, f'{path}, "{name}"', ("name", "sha256"))
    return known


def _described_data(data):
    return f"{data['name']} with SHA-256 {data['sha256'][:8]}"
