"""Reading and writing whole text files, local or on Cloud Storage, so that no reader ever sees half a file.

Files are opened with `tf.io.gfile`, which knows Cloud Storage; where a process has no TensorFlow, with Python's own
functions. So nothing here imports TensorFlow by itself.
"""

import codecs
import collections
import collections.abc
import contextlib
import errno
import glob
import hashlib
import json
import math
import os
import re
import shutil
import sys
import types
import typing

from albert_tf.base.errors import InputError, file_errors, naming, reason_of, shorten

_BYTES_TO_LOOK_AT = 1 << 14  # to guess an encoding
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_HALVES = re.compile("[\ud800-\udfff]")
_HANGUL = re.compile("[가-힣ㄱ-ㅣ]")


def not_utf8(place: str, line: bytes, purpose: str) -> InputError:
    encoding = guess_encoding(line)
    what = f"not valid UTF-8 but, by its looks, {encoding}" if encoding else "not valid UTF-8"
    how = f" (iconv -f {encoding} -t UTF-8)" if encoding else ""
    return InputError(f"{place}: {what}; convert {purpose} to UTF-8{how}")


def replace_halves(text: str) -> str:
    """Returns a text with U+FFFD for half a surrogate pair, which is no character: tokenizers leave out both."""
    return _HALVES.sub("\ufffd", text)


def guess_encoding(content: bytes) -> str | None:
    """Returns the likely encoding of Korean text, as iconv names it, or None."""
    content = bytes(content[:_BYTES_TO_LOOK_AT])
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # Spaces, digits and line feeds have a zero byte in UTF-16, always on the same side; other encodings have none.
    num_zeros = content.count(0)
    for name, on_side in (("UTF-16LE", content[1::2].count(0)), ("UTF-16BE", content[0::2].count(0))):
        if num_zeros > len(content) / 50 and on_side >= num_zeros * 0.75:
            return name
    text = codecs.getincrementaldecoder("cp949")("replace").decode(content)
    others = len(_NOT_ASCII.findall(text))
    # Arbitrary bytes may decode to some Hanja and symbols, but rarely to Hangul.
    return "CP949" if others and "\ufffd" not in text and len(_HANGUL.findall(text)) > others * 0.8 else None


_BYTES_PER_BLOCK = 1 << 20

# What is not whole yet is called .NAME.unfinished. A file of this name alone lists files beside it that came into the
# folder one by one, while they do: `albert_tf.base.folders`.
UNFINISHED = ".unfinished"

_GLOB_CHARACTERS = "*?["

# How JSON spells the halves of what UTF-16 writes as two; one half alone is no character.
_HALF_CHARACTER = "\\ud"


def gfile_for(path: str):
    """Returns `tf.io.gfile`, or a class with its functions for local files in a process without TensorFlow.

    To import it for them would take longer than such a process runs.
    """
    if _has_tensorflow() or "://" in path:
        import tensorflow as tf

        return tf.io.gfile
    return _LocalFiles


def refuse_to_overwrite(paths: list[str], overwrite: bool) -> None:
    """Raises InputError if a file is there and isn't to be overwritten, or if a path is a folder or device."""
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path} is there already, and is no file; choose another place")
        if not overwrite and gfile_for(path).exists(path):
            raise InputError(f"{path} is there already; choose another place, or pass `overwrite` to replace it")


@contextlib.contextmanager
def reading(path: str, name: str | None = None) -> collections.abc.Iterator[typing.BinaryIO]:
    """Opens a file, which errors may call by another name than its path, to read its bytes.

    Raises InputError if it can't be read, or is a folder, device or pipe (as from a shell's `<(command)`), which can be
    read only once, and may never end.
    """
    name = name or path
    if "://" not in path and os.path.isdir(path):
        raise InputError(f"can't read {name}: a folder, not a file; name a file in it")
    if "://" not in path and os.path.exists(path) and not os.path.isfile(path):
        raise InputError(
            f"can't read {name}: a pipe or device, which can't be read twice; save its output to a file, and "
            "name that file"
        )
    try:
        with gfile_for(path).GFile(path, "rb") as file:
            yield file
    except file_errors() as error:
        raise InputError(f"can't read {name}: {reason_of(error)}") from error


def read_bytes(path: str | os.PathLike, purpose: str) -> bytes:
    """Returns the content of a file; errors name its purpose, as in "the vocabulary".

    Raises InputError if it can't be read, or is one of several files that a command has left unfinished.
    """
    path = os.fspath(path)
    if os.path.basename(path) in unfinished_files(os.path.dirname(path)):
        raise InputError(
            f"{path} is unfinished output of a command that was killed or is still running; repeat that command"
        )
    with reading(path, f"{purpose} {path}") as file:
        return file.read()


def sha256_of(path: str, num_bytes: int | None = None) -> str:
    digest, rest = hashlib.sha256(), sys.maxsize if num_bytes is None else num_bytes
    with reading(path) as file:
        while block := file.read(min(rest, _BYTES_PER_BLOCK)):
            digest.update(block)
            rest -= len(block)
    return digest.hexdigest()


def unfinished_files(folder: str) -> list[str]:
    """Returns the names of files in a folder that belong together and have not all been written yet."""
    path = os.path.join(folder, UNFINISHED)
    if not gfile_for(path).exists(path):
        return []
    try:
        with reading(path) as file:
            names = json.loads(file.read())
    except (ValueError, RecursionError):  # RecursionError: thousands of brackets
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path} is not a list of files that a command left unfinished; delete it if it is not yours")
    return names


def unfinished_path(path: str) -> str:
    """Returns the name of a file or folder while it is not whole."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}{UNFINISHED}")


def read_text(path: str | os.PathLike, purpose: str) -> str:
    """Returns the text of a UTF-8 file, without a byte order mark; errors as of `read_bytes`."""
    path = os.fspath(path)
    content = read_bytes(path, purpose)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        begin, end = content.rfind(b"\n", 0, error.start) + 1, content.find(b"\n", error.start)
        line = content[begin : end if end >= 0 else None]
        raise not_utf8(f"{path}, line {number}", line, purpose) from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike, makes_folder: bool = True) -> collections.abc.Iterator[typing.BinaryIO]:
    """Opens a file for bytes under a temporary name, and renames it once all is written."""
    path = os.fspath(path)
    gfile, temporary = gfile_for(path), unfinished_path(path)
    if makes_folder:
        gfile.makedirs(os.path.dirname(path) or ".")
    try:
        with naming(path):
            with gfile.GFile(temporary, "wb") as file:
                file.write(b"")  # a file that nothing is written to is not made
                yield file
            gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        with contextlib.suppress(*file_errors()):  # it takes space, which may be what there is none of
            gfile.remove(temporary)
        raise


def write_text(path: str | os.PathLike, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def read_json(path: str | os.PathLike, purpose: str) -> dict:
    """Returns the JSON object in a file; raises InputError if it isn't valid, also for NaN and names that repeat."""
    text, source = read_text(path, purpose), os.fspath(path)
    try:
        values = _DECODER.decode(text)
        if _HALF_CHARACTER in text.lower():
            json.dumps(values, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise InputError(f"{source}, line {error.lineno}: not valid JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets, no Unicode
        raise InputError(f"{source}: not a JSON object that can be read ({error})") from error
    if not isinstance(values, dict):
        raise InputError(f"{source} must hold one JSON object. Received: {type(values).__name__}")
    return values


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def _finite(digits):
    if math.isinf(float(digits)):
        raise ValueError(f"{digits[:20]} is too large a number")
    return float(digits)


def _without_twins(pairs):
    values = dict(pairs)
    if len(values) < len(pairs):
        name = next(name for name, count in collections.Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{json.dumps(name[:100])} stands there twice")
    return values


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_without_twins)


def to_json(value: typing.Any, **options) -> str:
    """Returns a value as JSON in one line, Hangul as it is; raises ValueError for NaN and infinity."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, **options)


def write_json(path: str | os.PathLike, values: dict) -> None:
    """Writes a JSON object, readable by people; errors as of `to_json`."""
    write_text(path, to_json(values, indent=2) + "\n")


def remove(path: str) -> None:
    """Deletes a file, or a folder with all that is in it; does nothing where neither is there."""
    gfile = gfile_for(path)
    if gfile.isdir(path):
        gfile.rmtree(path)
    elif gfile.exists(path):
        gfile.remove(path)


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder; none where there is no folder."""
    gfile = gfile_for(folder)
    # With a slash Cloud Storage spells a folder.
    return [name.rstrip("/") for name in gfile.listdir(folder)] if gfile.isdir(folder) else []


def empty(folder: str) -> None:
    """Deletes everything in a folder, but not the folder, which may be locked."""
    for name in names_in(folder):
        remove(os.path.join(folder, name))


def name_in_folder(folder: str, name: str, source: str) -> str:
    """Returns the path in a folder of a file that another file names; raises InputError if the name leads elsewhere."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or os.path.basename(name) != name:
        shown = shorten(json.dumps(name))
        raise InputError(f"{source} names {shown}, which is not a file in {folder or '.'}; correct the name")
    return os.path.join(folder, name)


def match_files(patterns: list[str], flag: str, endings: tuple[str, ...] = ()) -> list[str]:
    """Returns the files that paths or globs name, sorted, each once; `flag` is named in errors.

    A path or leading folder that exists is no glob, whatever it is called. Local paths are spelled without "./" and
    doubled slashes, so that the same file has the same path. With `endings`, a path may also be a folder, for the files
    in it that end so, but for hidden ones. Raises InputError if a pattern matches no file, or its folder can't be read.
    """
    paths = set()
    for pattern in patterns:
        path = _spell(pattern)
        try:
            is_folder = endings and gfile_for(path).isdir(path)
            matches = _files_in_folder(path, endings) if is_folder else _matches(path)
        except file_errors() as error:
            raise InputError(f"`{flag}`: can't look for {pattern}: {reason_of(error)}") from error
        if not matches:
            what = f"no {', '.join(endings)} file in" if is_folder else "no file matches"
            raise InputError(f"`{flag}`: {what} {pattern}")
        paths.update(matches)
    if not paths:
        raise InputError(f"`{flag}`: no file given")
    return sorted(paths)


def _files_in_folder(folder, endings):
    gfile = gfile_for(folder)
    names = [name for name in gfile.listdir(folder) if name.endswith(endings) and not name.startswith(".")]
    return [path for path in (os.path.join(folder, name) for name in names) if not gfile.isdir(path)]


def _matches(path):
    # A name may hold brackets that are no glob, such as "[2020] news.txt".
    gfile = gfile_for(path)
    names = [path] if gfile.exists(path) else gfile.glob(_escape_folders(path))
    return [name for name in map(_spell, names) if not gfile.isdir(name)]


def _spell(path):
    if "://" in path:
        return path
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(parts) or path


def _escape_folders(pattern):
    """Returns a glob in which the leading folders that exist stand for themselves."""
    *folders, name = pattern.split("/")
    for end, folder in enumerate(folders, start=1):
        if any(character in _GLOB_CHARACTERS for character in folder):
            if not gfile_for(pattern).isdir("/".join(pattern.split("/")[:end])):
                break
            folders[end - 1] = "".join(f"[{each}]" if each in _GLOB_CHARACTERS else each for each in folder)
    return "/".join([*folders, name])


class _LocalFiles:
    """The functions of `tf.io.gfile` that files of this machine need, by Python's own."""

    GFile = staticmethod(open)
    exists = staticmethod(os.path.exists)
    glob = staticmethod(glob.glob)
    isdir = staticmethod(os.path.isdir)
    listdir = staticmethod(os.listdir)
    remove = staticmethod(os.remove)
    rmtree = staticmethod(shutil.rmtree)

    @staticmethod
    def makedirs(path):
        os.makedirs(path, exist_ok=True)

    @staticmethod
    def rename(source, target, overwrite=False):
        if not overwrite and os.path.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.replace(source, target)

    @staticmethod
    def stat(path):
        return types.SimpleNamespace(length=os.stat(path).st_size)


def _has_tensorflow():
    return "tensorflow" in sys.modules
