"""Outside of the command line sentences name settings, not flags: whoever reads them may have called a function."""

import ast
import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "albert_tf"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if PACKAGE / "cli" not in path.parents)

FLAG = re.compile(r"(?<![\w-])--(?=[a-z…])(?!help\b)\S*")  # every command has --help
COMMAND_LINE = re.compile(
    r"(?:\w+\.py|python -m [\w.]+|albert-tf [\w-]+|spm_train|hf download \S+)(?: +\(?--[\w.,=\[\]…-]+)+"
)
SETTING = re.compile(r"`\w+(?:=[^`]*)?`")

# What makes a setting, whose help is that of its flag, too.
FIELDS = {"setting", "free", "place", "changed", "_rare"}

# What is handed to other programs.
NO_SENTENCES = {"pretraining_data/making/beam_pipeline.py": {'--dask_npartitions=8".'}}


def strings_of(tree):
    """Yields the strings below a node but for help of settings, with … for what is filled in."""
    if isinstance(tree, ast.AnnAssign) and isinstance(tree.value, ast.Call) and ast.unparse(tree.value.func) in FIELDS:
        return
    if isinstance(tree, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in tree.values)
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(tree, ast.JoinedStr) and isinstance(node, ast.Constant)):
            yield from strings_of(node)


def flags_in(tree):
    return {flag for text in strings_of(tree) for flag in FLAG.findall(COMMAND_LINE.sub("", text))}


def printed_settings(tree):
    """Returns the settings in backquotes in what is printed, of which nobody makes flags."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("print", "log", "tell_once"):
            found.update(setting for text in strings_of(node) for setting in SETTING.findall(text))
    return found


@pytest.mark.parametrize(
    ("code", "flags", "printed"),
    [
        ('raise InputError(f"--{name} is missing; pass --do_train")', {"--…", "--do_train"}, set()),
        ('raise InputError("`learning_rate` is 3; export_model.py --format=onnx")', set(), set()),
        ('"""How it runs; `albert-tf serve --help` says more."""', set(), set()),
        ('raise InputError(f"hf download {name} --local-dir=my_model, and then that")', set(), set()),
        ('do_train: bool = free(False, "Train; with --do_eval also evaluate.")', set(), set()),
        ('self._progress.log(f"lower `learning_rate={rate}`")', set(), {"`learning_rate=…`"}),
    ],
)
def test_flags_and_printed_settings_are_found(code, flags, printed):
    tree = ast.parse(code)
    assert (flags_in(tree), printed_settings(tree)) == (flags, printed)


def test_sentences_of_the_library_name_settings_and_not_flags():
    found = {}
    for path in MODULES:
        name, tree = path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        found[name] = (flags_in(tree) - NO_SENTENCES.get(name, set())) | printed_settings(tree)
    assert not {name: each for name, each in found.items() if each}
