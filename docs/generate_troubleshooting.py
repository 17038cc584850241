"""Writes docs/troubleshooting.md, and the Korean page, from the code: `python docs/generate_troubleshooting.py`.

Every call of a class of errors that ends a command is found in the source; what a sentence holds of files, flags and
numbers is shown as "…". What groups of sentences have in common is in troubleshooting_groups.py.
"""

import ast
import itertools
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
LIBRARY = FOLDER.parent / "albert_tf"
PAGES = {"en": FOLDER / "troubleshooting.md", "ko": FOLDER / "troubleshooting.ko.md"}
sys.path.insert(0, str(FOLDER))

from troubleshooting_groups import END, GROUPS, INTRODUCTION

# Errors that don't derive from InputError, but reach a user as a sentence: bad lines by way of another error that names
# file and line, the others as a server's answer.
_OTHERS = {"BadLineError", "_BadLineError", "RefusedError", "ChildProcessError"}
_OPEN = "…"
_MOST = 8  # of the sentences that one place in the code may say


def error_classes(trees: dict[str, ast.Module]) -> set[str]:
    """Returns the names of InputError and all classes derived from it, and of the others that reach a user."""
    names = {"InputError"}
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    while derived := {name for name, above in bases.items() if above & names} - names:
        names |= derived
    return names | _OTHERS


def sentences_of(expression: ast.expr, assigned: dict[str, list[ast.expr]] | None = None) -> list[str]:
    """Returns what an expression may say, with "…" for what is only known when the command runs.

    Args:
        expression: The argument of an error.
        assigned: What the function around it assigns to names, which may be a part of the sentence.
    """
    assigned = assigned or {}
    if isinstance(expression, ast.Constant):
        return [str(expression.value)]
    if isinstance(expression, ast.JoinedStr):
        # A name is looked up once, so that one which grows by itself comes to an end.
        choices = [sentences_of(part, assigned) for part in expression.values]
        return ["".join(parts) for parts in itertools.islice(itertools.product(*choices), _MOST)]
    if isinstance(expression, ast.FormattedValue):
        return sentences_of(expression.value, assigned) if expression.conversion == -1 else [_OPEN]
    if isinstance(expression, ast.IfExp):
        return sentences_of(expression.body, assigned) + sentences_of(expression.orelse, assigned)
    if isinstance(expression, ast.BinOp) and (_is_text(expression.left) or _is_text(expression.right)):
        pairs = itertools.product(sentences_of(expression.left, assigned), sentences_of(expression.right, assigned))
        return [left + right for left, right in pairs]
    if isinstance(expression, ast.Name) and expression.id in assigned:
        others = {name: values for name, values in assigned.items() if name != expression.id}
        return [text for value in assigned[expression.id] for text in sentences_of(value, others)]
    return [_OPEN]


def assigned_texts(function: ast.AST) -> dict[str, list[ast.expr]]:
    """Returns the texts that a function assigns to names, by name."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values for name, values in found.items() if any(map(_is_text, values))}


def _is_text(expression):
    if isinstance(expression, ast.IfExp):
        return _is_text(expression.body) or _is_text(expression.orelse)
    return isinstance(expression, ast.JoinedStr) or isinstance(getattr(expression, "value", None), str)


def find_sentences() -> dict[str, set[str]]:
    """Returns the sentences of each file of the library, by its path below albert_tf/."""
    paths = {path.relative_to(LIBRARY).as_posix(): path for path in sorted(LIBRARY.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    classes = error_classes(trees)
    found = {}
    for name, tree in trees.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            assigned = assigned_texts(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", None) in classes and node.args:
                    # The error of a line has its number first.
                    said = {_tidy(text) for text in sentences_of(node.args[-1], assigned)}
                    found.setdefault(name, set()).update(text for text in said if re.search(r"[A-Za-z]{3}", text))
    return found


def _tidy(text):
    """Returns a sentence in one line, with one "…" where several would meet."""
    return re.sub(f"{_OPEN}+", _OPEN, " ".join(text.split()))


def group_of(name: str) -> int:
    """Returns the number of the group whose prefix of a path is the longest that fits.

    Raises:
        KeyError: No group is for this file.
    """
    fitting = [
        (len(prefix), number)
        for number, group in enumerate(GROUPS)
        for prefix in group.files
        if name.startswith(prefix)
    ]
    if not fitting:
        raise KeyError(f"no group of docs/troubleshooting_groups.py is for albert_tf/{name}")
    return max(fitting)[1]


def write_pages() -> dict[str, str]:
    """Returns the page in each language; the sentences are the same."""
    by_group = {}
    for name, sentences in find_sentences().items():
        by_group.setdefault(group_of(name), set()).update(sentences)
    pages = {}
    for language in PAGES:
        lines = [INTRODUCTION[language]]
        for number, group in enumerate(GROUPS):
            lines += [f"## {group.title[language]}", group.meaning[language].strip(), ""]
            fixed_first = sorted(by_group.get(number, ()), key=lambda text: (re.sub(r"[^a-z]", "", text.lower()), text))
            lines += [f"- {_as_code(text)}" for text in fixed_first] + [""]
        pages[language] = "\n".join([*lines, END[language]])
    return pages


def _as_code(text):
    """Returns a sentence as Markdown code, whatever it holds."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    for language, text in write_pages().items():
        PAGES[language].write_text(text, encoding="utf-8")
