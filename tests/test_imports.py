"""Imports inside the library go one way."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "albert_tf"

BASE = "errors files json_types config"
# Each part of the library, from the bottom up, and the parts that it may use.
MAY_IMPORT = {
    "errors": "",
    "startup": "errors",  # imported before TensorFlow and all that needs it
    "quiet_tensorflow": "startup",
    "text_encoding": "errors",
    "file_errors": "errors",
    "files": "errors file_errors text_encoding",
    "json_types": "errors",
    "folder_lock": "errors file_errors files",
    "whole_folders": "errors file_errors files folder_lock",
    "families": "",
    "config": "errors files families",
    "checkpoint_files": "errors files json_types",
    "verbosity": "",
    "progress_line": "verbosity",
    "cores": "",
    "shipped_files": "errors",
    "plot_labels": "",
    "settings": "errors",
    "child_process": "",
    "lacking_characters": "",
    "text_fields": "errors",
    "saved_datasets": "errors files",
    "text_windows": "",
    "pair_truncation": "errors",
    # What a model is asked and answers, without what computes.
    "asking": f"{BASE} text_encoding settings cores lacking_characters pair_truncation",
    "corpus": f"{BASE} text_encoding verbosity progress_line text_fields saved_datasets",
    # None of these imports TensorFlow.
    "rows": "errors verbosity text_encoding file_errors files text_fields corpus",
    "litert": "errors json_types text_encoding files asking lacking_characters text_windows pair_truncation",
    "server": "errors text_encoding asking",
    "batch_prediction": "errors text_encoding files folder_lock json_types progress_line asking text_fields rows",
    "tokenization": f"{BASE} quiet_tensorflow asking pair_truncation text_encoding lacking_characters progress_line",
    "mentions": "errors files config tokenization",
    "pretraining_data": f"{BASE} quiet_tensorflow startup folder_lock progress_line child_process corpus rows "
    "tokenization mentions",
    "compilation": "",
    "modeling": f"{BASE} quiet_tensorflow checkpoint_files compilation mentions",  # knows nothing of text
    "generation": "errors quiet_tensorflow settings compilation tokenization modeling",
    "optimization": "errors quiet_tensorflow config compilation",
    "objectives": "errors config quiet_tensorflow settings mentions pretraining_data modeling",
    "training": f"{BASE} families quiet_tensorflow settings verbosity cores folder_lock checkpoint_files progress_line "
    "tokenization modeling optimization objectives",
    "trials": f"{BASE} quiet_tensorflow folder_lock checkpoint_files training",
    "pretraining": f"{BASE} quiet_tensorflow checkpoint_files tokenization mentions pretraining_data modeling "
    "objectives training",
    "finetuning": f"{BASE} quiet_tensorflow settings verbosity folder_lock checkpoint_files "
    "text_encoding plot_labels asking "
    "text_windows text_fields corpus saved_datasets rows tokenization pretraining_data modeling objectives training",
    # Other libraries' models know what their head is for, and so must we.
    "interchange": f"{BASE} families quiet_tensorflow verbosity pair_truncation whole_folders checkpoint_files "
    "tokenization modeling objectives training finetuning",
    "serving": f"{BASE} quiet_tensorflow startup settings text_encoding folder_lock whole_folders "
    "checkpoint_files asking shipped_files text_fields rows litert tokenization modeling generation objectives "
    "training finetuning",
    "tpu": f"{BASE} quiet_tensorflow child_process pretraining_data modeling optimization objectives "
    "training finetuning",
    "runs": f"{BASE} quiet_tensorflow startup settings verbosity text_encoding cores folder_lock checkpoint_files "
    "shipped_files asking text_fields corpus rows tokenization mentions pretraining_data modeling objectives "
    "training trials pretraining finetuning interchange serving",
    "api": "startup settings verbosity shipped_files asking modeling finetuning interchange serving runs",
}
MAY_IMPORT = {part: set(allowed.split()) for part, allowed in MAY_IMPORT.items()}
MAY_IMPORT["cli"] = set(MAY_IMPORT)
MAY_IMPORT["__main__"] = {"cli"}
SCRIPTS = {path.stem for path in ROOT.glob("*.py")}


def part_of(path):
    """Returns the folder or module of the library that a file belongs to."""
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def imported_modules(source):
    """Returns the full names of all modules that a text imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names.add(node.module)
            # `from albert_tf import config` names a part of the library too.
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def imported_parts(source):
    """Returns the parts of the library that a text imports."""
    parts = (name.split(".") for name in imported_modules(source))
    return {names[1] for names in parts if names[0] == "albert_tf" and len(names) > 1}


LIBRARY_FILES = sorted(path for path in LIBRARY.rglob("*.py") if path != LIBRARY / "__init__.py")


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_module_imports_only_what_lies_below_it(path):
    part = part_of(path)
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what albert_tf.{part} may import"
    source = path.read_text(encoding="utf-8")
    assert imported_parts(source) <= MAY_IMPORT[part] | {part}
    assert not {name.split(".")[0] for name in imported_modules(source)} & SCRIPTS


def test_table_has_no_cycles():
    below = set()
    for part, allowed in MAY_IMPORT.items():
        assert allowed <= below, f"{part} may import what is listed after it"
        below.add(part)


def test_flags_are_known_to_the_commands_alone():
    assert not [
        path
        for path in LIBRARY_FILES
        if part_of(path) != "cli" and {"absl.flags", "absl.app"} & imported_modules(path.read_text(encoding="utf-8"))
    ]


def test_package_itself_imports_nothing_but_its_functions():
    assert imported_parts((LIBRARY / "__init__.py").read_text(encoding="utf-8")) == {"api"}


def test_every_kind_of_import_is_seen():
    source = "import albert_tf.files\nfrom albert_tf import config\ndef f():\n    from albert_tf.tpu.steps import g\n"
    assert {"files", "config", "tpu"} == imported_parts(source)
