"""The promises to users are as they were recorded: flags and their help, settings of runs, bytes of data, public names.

`ALBERT_TF_RECORD=1 pytest tests/cli/test_recorded.py` records anew; the difference belongs in the commit that made it.
"""

import hashlib
import importlib
import inspect
import json
import os
import pathlib
import re
import shutil

import pytest
import varied_data
from absl import flags
from tiny_config import tiny_config
from writing_commands import Inputs, make_cases

from albert_tf.cli.command import define_flags, help_text
from albert_tf.cli.commands import COMMANDS, find_command
from albert_tf.pretraining_data.manifest import manifest_identity, read_manifest
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.runs.phases import make_phase, objective_of
from albert_tf.training import RunSettings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORDED = ROOT / "tests" / "recorded"
VOCABULARY = ROOT / "models" / "albert_ko_small" / "vocab.txt"

# How each packing and way to mask is asked for.
DATA = {
    **{
        packing: {"sentence_pair": packing}
        for packing in ("order", "next", "document_sentences", "full_sentences", "halves", "document_blocks")
    },
    "static": {"masking": "static", "dupe_factor": 2},
    "pieces": {"masking": "static", "do_whole_word_mask": False, "ngram": 1, "masked_lm_prob": 0.3},
    "permuted": {"masking": "static", "do_permutation": True, "favor_shorter_ngram": False},
    "entities": {"entity_file": "names.txt"},
    "pairs": {"sentence_pair": "translation_pairs", "input_file": "pairs.tsv", "held_out_fraction": 0},
    "languages": {"objective": "roberta", "languages": "ko", "input_file": "korean.txt"},
}
RUNS = {"pre-training": {}, "classifier": {}, "questions": {}, "choices": {}, "entities": {}}


def check(name, text):
    """Compares a text with the recorded one, or records it."""
    path = RECORDED / name
    if os.environ.get("ALBERT_TF_RECORD"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("stage", [stage for stage, *_ in COMMANDS if stage != "files"])
def test_flags_and_their_help(stage):
    before, settings = set(flags.FLAGS), find_command(stage).settings
    define_flags(settings)
    defined = sorted(set(flags.FLAGS) - before)
    values = flags.FlagValues()
    try:
        short = help_text(f"albert-tf {stage}", settings)
        for name in defined:
            values[name] = flags.FLAGS[name]
        everything = values.get_help(include_special_flags=False)
    finally:
        for name in defined:
            delattr(flags.FLAGS, name)
    places = "\n\n".join(_titles_and_flags(short))
    check(f"helpfull/{stage.replace('-', '_')}.txt", f"{places}\n\n--helpfull\n\n{everything}\n")


def _titles_and_flags(help_text):
    """Yields each group of --help, with the names of its flags."""
    for group in help_text.split("\n\n"):
        title, *_ = group.splitlines()
        yield "\n".join([title, *re.findall(r"^ +--(\S+?):", group, re.MULTILINE)])


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_settings_of_a_run(
    name, shards, config_file, sample_tokenizer_dir, checkpoint, run_script, without_training, tmp_path
):
    inputs = Inputs(
        shards / "corpus.txt", shards, config_file, pathlib.Path(sample_tokenizer_dir), checkpoint, checkpoint, tmp_path
    )
    case = next(case for case in make_cases(inputs, lambda *_: None) if case.name == name)
    # Which measures answers get is settled where they are evaluated.
    given = {**case.given(tmp_path / "run"), "do_eval": name == "questions", "do_predict": False}
    if name == "pre-training":
        del given["do_predict"]
    run_script(case.script, **given).finished()
    settings = json.loads((tmp_path / "run" / "run_settings.json").read_text(encoding="utf-8"))
    check(f"run_settings/{case.script.removesuffix('.py')}.json", _without_places(settings, shards.parent))


def _without_places(settings, base):
    """Returns settings as text in which folders of this run have no name of their own."""
    text = json.dumps(settings, ensure_ascii=False, indent=1, sort_keys=True)
    return re.sub(rf"{re.escape(str(base.parent))}[^\"]*/", "FOLDER/", text) + "\n"


@pytest.mark.slow
def test_bytes_of_shards(run_script, sample_corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("names.txt").write_text("서울\n영화\n한국\n사람\n")
    shutil.copy(sample_corpus[0], "korean.txt")
    rows = [f"{varied_data.text_of(n)}\t{varied_data.text_of(n + 1)}" for n in range(40)]
    pathlib.Path("pairs.tsv").write_text("\n".join(["ko\ten", *rows]) + "\n")
    lines = []
    for name, changes in DATA.items():
        values = {
            "input_file": sample_corpus,
            "vocab_file": VOCABULARY,
            "output_file": f"{name}/train.tfrecord",
            "max_seq_length": 48,
            "held_out_fraction": 0.2,
            **changes,
        }
        run_script("create_pretraining_data.py", **values).finished()
        for path in sorted(pathlib.Path(name).glob("*.tfrecord")):
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    check("shards.txt", "\n".join(lines) + "\n")
    # What runs have written down of their data, and what they have learnt from.
    identities = [f"{manifest_identity(read_manifest(f'{name}/manifest.json'))}  {name}" for name in DATA]
    batches = [line for name in ("order", "halves", "full_sentences", "entities") for line in _digests_of_batches(name)]
    check("batches.txt", "\n".join(identities + batches) + "\n")


def _digests_of_batches(folder):
    """Returns the hash of the first two batches of each split of shards."""
    config = tiny_config(8000)
    shards = find_shards([f"{folder}/train*"], config)
    settings = RunSettings(num_train_steps=4, train_batch_size=4, eval_batch_size=4, learning_rate=1e-3)
    phase = make_phase(objective_of(config, shards), shards, settings)
    lines = []
    for split, dataset in (("train", phase.make_dataset(0, 0, 1)), ("held_out", phase.make_eval_dataset())):
        digest = hashlib.sha256()
        for batch in dataset.take(2).as_numpy_iterator():
            for _, values in sorted(batch.items()):
                digest.update(values.tobytes())
        lines.append(f"{digest.hexdigest()}  {folder} {split}")
    return lines


def test_public_names():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    lines = [_described(name) for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]
    check("public_names.txt", "\n".join(lines) + "\n")


def _described(identifier):
    """Returns a public name with its arguments, and those of its methods."""
    module, _, name = identifier.rpartition(".")
    try:
        value = importlib.import_module(identifier)
    except ModuleNotFoundError:
        value = getattr(importlib.import_module(module), name)
    lines = [identifier + _arguments(value)]
    if inspect.isclass(value):
        methods = sorted(name for name in vars(value) if not name.startswith("_"))
        lines += [f"  .{name}{_arguments(getattr(value, name))}" for name in methods]
    return "\n".join(lines)


def _arguments(value):
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    try:
        return f"({', '.join(inspect.signature(value).parameters)})"
    except (TypeError, ValueError):
        return ""
