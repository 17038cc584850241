"""Damaged and malicious files cost a sentence, whatever is in them.

ALBERT_TF_DAMAGED_FOLDERS=10000 tries so many of each kind.
"""

import collections
import json
import os
import random
import shutil
import struct

import pytest
from random_models import CONFIGS, write_ours
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.interchange import google_tf1, huggingface, keras_hub, ours
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

COUNT = int(os.environ.get("ALBERT_TF_DAMAGED_FOLDERS", 300))

# What a value in a JSON file may turn into.
NASTY = [
    None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "0", "\u0000", "\ud800", "한국어", "../../etc/passwd", "/etc/passwd", "..", ".",
    "model.safetensors.index.json", "config.json", "x" * 1000, "F32", "F64", "I64", "BF16", "F8_E4M3", [], [[]], [0, 0],
    [0, 4], [4, 0], [-1, 3], [1.5, 2], [2**62, 2**62], [0] * 40, {}, {"0": 1}, {"a": {"a": {}}}, ["AlbertModel"], [7],
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each kind that is read: one file, and shards with an index."""
    place = tmp_path_factory.mktemp("fuzz")
    pieces = [*SPECIAL_TOKENS, "나", "##는", "a", *(f"##{number}" for number in range(22))]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces))
    folder, _ = write_ours(place / "ours", tiny_config(), "classify", tokenizer)
    convert_checkpoint("albert_tf", "huggingface", folder, str(place / "one"), ReadOptions(task="classify"))
    shutil.copytree(place / "one", place / "two")
    header, data = parse((place / "two" / "model.safetensors").read_bytes())
    names = [name for name in header if name != "__metadata__"]
    for file, part in (("a.safetensors", names[:9]), ("b.safetensors", names[9:])):
        first = min(header[name]["data_offsets"][0] for name in part)
        moved = {
            name: {**header[name], "data_offsets": [place - first for place in header[name]["data_offsets"]]}
            for name in part
        }
        last = max(header[name]["data_offsets"][1] for name in part)
        (place / "two" / file).write_bytes(build(moved, data[first:last]))
    (place / "two" / "model.safetensors").unlink()
    weight_map = {name: "a.safetensors" if name in names[:9] else "b.safetensors" for name in names}
    (place / "two" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return {name: {path.name: path.read_bytes() for path in (place / name).iterdir()} for name in ("one", "two")}


def parse(content):
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def build(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def mutate_value(values, draw):
    """Returns JSON values of which one, somewhere, is another, is gone, or is new."""
    if isinstance(values, dict) and values and draw.random() < 0.9:
        key = draw.choice(list(values))
        choice = draw.random()
        if choice < 0.1:
            return {name: value for name, value in values.items() if name != key}
        if choice < 0.2:
            return {**values, draw.choice(["x", "", "sharing", "head", key + "x", "\udc00"]): draw.choice(NASTY)}
        return {**values, key: mutate_value(values[key], draw)}
    if isinstance(values, list) and values and draw.random() < 0.7:
        position = draw.randrange(len(values))
        return [*values[:position], mutate_value(values[position], draw), *values[position + 1 :]]
    return draw.choice(NASTY)


def mutate_bytes(content, draw):
    """Returns bytes of which some are others, are gone, are there twice, or are new."""
    content = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 8])):
        begin = draw.randrange(len(content) + 1) if draw.random() < 0.5 else draw.randrange(min(len(content), 200) + 1)
        end = min(len(content), begin + draw.choice([0, 1, 1, 4, 64]))
        new = [b"", bytes(draw.randrange(256) for _ in range(end - begin)), bytes(content[begin:end]) * 2]
        new += [struct.pack("<Q", draw.choice([0, 1, 2**63, 2**64 - 1, 10**8, len(content)])), b"[" * 3000, b"9" * 5000]
        content[begin:end] = draw.choice(new)
    return bytes(content[: draw.choice([len(content)] * 5 + [draw.randrange(len(content) + 1)])])


def mutate_file(name, content, draw):
    if draw.random() < 0.3:
        return mutate_bytes(content, draw)
    if name.endswith(".safetensors"):
        header, data = parse(content)
        return build(mutate_value(header, draw), data)
    if name.endswith(".json"):
        return json.dumps(mutate_value(json.loads(content), draw)).encode()
    return mutate_bytes(content, draw)


def read_whole(module, folder, target=None):
    """Reads a folder and every value of its model, and may write it as ours; returns what became of it."""
    try:
        model = module.read(str(folder), ReadOptions())
        if target is not None:
            target.mkdir()
            model.notes += ours.write(model, str(target))
            shutil.rmtree(target)
        for weight in model.weights.values():
            assert weight.read().shape == weight.shape
        for sentence in model.notes:
            assert "\n" not in sentence
            sentence.encode("utf-8")
    except InputError as error:
        message = str(error)
        assert message and "\n" not in message and "Traceback" not in message
        message.encode("utf-8", "backslashreplace")
        if target is not None:
            shutil.rmtree(target, ignore_errors=True)
        return "refused"
    return "read"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "two"])
def test_thousands_of_damaged_folders_cost_no_more_than_a_sentence(folders, tmp_path, kind):
    draw = random.Random(7)
    files = folders[kind]
    folder = tmp_path / kind
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert read_whole(huggingface, folder) == "read"
    results = collections.Counter()
    for _ in range(COUNT):
        name = draw.choice([*files, "config.json", *[name for name in files if "safetensors" in name] * 3])
        (folder / name).write_bytes(mutate_file(name, files[name], draw))
        # What labels and settings may do wrong is seen when they are written; that takes its time.
        writes = "config" in name and draw.random() < 0.15
        results[read_whole(huggingface, folder, tmp_path / "ours" if writes else None)] += 1
        (folder / name).write_bytes(files[name])
    # Both happen: most changes are noticed, and some change nothing that matters, such as a value of a weight.
    assert results["refused"] > COUNT // 4 and results["read"] > COUNT // 20


@pytest.mark.slow
@pytest.mark.parametrize("module", [keras_hub, google_tf1])
def test_damaged_folders_of_other_formats_cost_no_more_than_a_sentence(tmp_path, module):
    draw = random.Random(7)
    name = module.__name__.rpartition(".")[2].removesuffix("_tf1")
    folder, _ = write_ours(tmp_path / "ours", CONFIGS["albert"])
    convert_checkpoint("albert_tf", name, folder, str(tmp_path / "theirs"))
    files = {path.name: path.read_bytes() for path in (tmp_path / "theirs").iterdir()}
    results = collections.Counter()
    for _ in range(100):
        name = draw.choice([*files, *[name for name in files if "config" in name] * 2])
        (tmp_path / "theirs" / name).write_bytes(mutate_file(name, files[name], draw))
        results[read_whole(module, tmp_path / "theirs")] += 1
        (tmp_path / "theirs" / name).write_bytes(files[name])
    assert results["refused"] > 20 and results["read"] > 3
