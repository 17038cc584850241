"""Every block of code in the documents is run on small data, or its flags are read, or it says why it is not run."""

import doctest
import pathlib
import re
import shlex

import pytest
from pages import PAGES, ROOT, blocks_of, name_of
from small_runs import WORKPLACES

from albert_tf.cli.command import define_flags, parse_flags, settings_from_flags
from albert_tf.cli.commands import COMMANDS

ENGLISH = [page for page in PAGES if not page.name.endswith(".ko.md")]
# Pages whose Python other tests run.
RUN_ELSEWHERE = {
    "docs/library.md": "tests/test_docs.py",
    "docs/keras.md": "tests/test_docs.py",
    "docs/entities.md": "tests/test_docs.py",
    "docs/objectives.md": "tests/objectives/test_objective_of_ones_own.py",
}
STAGES = [stage for stage, *_ in COMMANDS]
_OURS = re.compile(r"(?:python (?=\w+\.py|-m benchmarks)|albert-tf )(?P<script>(?:-m )?\w[\w.-]*)(?P<flags>.*)")


def commands_of(block):
    """Returns the commands of a block, one a line: without prompt, what was printed, and comments."""
    text = block.text.replace("\\\n", " ")
    lines = text.splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def printed_lines(block):
    """Returns what a block shows that its commands print."""
    text = block.text.replace("\\\n", " ")
    return [line for line in text.splitlines() if not line.startswith("$ ")] if "$ " in text else []


def our_commands(page):
    """Returns (script, flags as they are typed) of every command of this project on a page."""
    found = []
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language:
            continue
        for command in commands_of(block):
            match = _OURS.match(command)
            is_whole = command.count("'") % 2 == 0
            if match and is_whole and "$" not in command and "=F " not in command:
                found.append((match["script"], shlex.split(match["flags"].replace(" ...", ""), comments=True)))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_run_or_says_why_not(page):
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{name_of(page)}, line {block.line}"
        if block.comment.startswith("not run: "):
            continue
        if block.language == "python" or block.comment == "run":
            assert name_of(page).replace(".ko.md", ".md") in {*WORKPLACES, *RUN_ELSEWHERE}, f"{where}: nothing runs it"
            continue
        assert not block.language, f"{where}: say in a comment before it why it is not run"
        for command in commands_of(block):
            assert _OURS.match(command), f"{where}: say in a comment before it why it is not run: {command}"


@pytest.mark.parametrize("page", [page for page in ENGLISH if our_commands(page)], ids=name_of)
def test_flags_of_commands_are_known_and_their_values_possible(run_script, monkeypatch, page):
    monkeypatch.chdir(ROOT)  # for flagfiles
    for script, flags_given in our_commands(page):
        if script.startswith("-m "):
            source = ROOT / (script.removeprefix("-m ").replace(".", "/") + ".py")
            given = {flag.lstrip("-").partition("=")[0] for flag in flags_given}
            assert given <= _flags_defined_in(source), f"{name_of(page)}: {script}"
            continue

        def read_flags(main, settings, output_flag=None, flags_given=flags_given, script=script):
            define_flags(settings)
            parse_flags([script, *flags_given], settings)
            settings_from_flags(settings)

        monkeypatch.setattr("albert_tf.cli.command.run", read_flags)
        is_there = (ROOT / script).is_file() if script.endswith(".py") else script in STAGES
        assert is_there, f"{name_of(page)}: there is no {script}"
        assert run_script(script).code == 0, f"{name_of(page)}: {script} {flags_given}"


def _flags_defined_in(source):
    """Returns the names of the flags that a file defines, and the forms of switches that are off."""
    names = re.findall(r'DEFINE_\w+\(\s*"(\w+)"', source.read_text(encoding="utf-8"))
    return {*names, *(f"no{name}" for name in names)}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ENGLISH], ids=name_of)
def test_korean_page_shows_no_other_code(page):
    english = page.with_name(page.name.replace(".ko.md", ".md"))
    ours, theirs = (
        [re.sub(r"\s*#.*", "", block.text) for block in blocks_of(path.read_text(encoding="utf-8"))]
        for path in (page, english)
    )
    assert [text for text in ours if text not in theirs] == []


@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_trace")
@pytest.mark.parametrize("name", WORKPLACES)
def test_blocks_run(run_script, monkeypatch, tmp_path, name):
    workplace = WORKPLACES[name]
    for module in workplace.needs:
        pytest.importorskip(module, reason=f"{name} needs it")
    monkeypatch.chdir(tmp_path)
    for folder in ("models", "samples"):
        pathlib.Path(folder).symlink_to(ROOT / folder)
    names = workplace.prepare(tmp_path)
    for block in blocks_of((ROOT / name).read_text(encoding="utf-8")):
        if block.comment.startswith("not run: "):
            continue
        if block.language == "python":
            _run_python(workplace.change(block.text), names, f"{name}, line {block.line}")
        elif block.comment == "run":
            printed = "".join(_run(run_script, workplace, command) for command in commands_of(block))
            _assert_printed(printed_lines(block), printed, f"{name}, line {block.line}")


def _run(run_script, workplace, command):
    """Runs a command in this process, with the smaller sizes of the page; returns what it prints."""
    script, flags_given = _OURS.match(command)["script"], shlex.split(_OURS.match(command)["flags"], comments=True)
    more = workplace.more_flags.get(script, {})
    kept = [flag for flag in flags_given if flag.lstrip("-").partition("=")[0] not in more]
    result = run_script(script, *kept, **more)
    assert result.code == 0, f"{command}\n{result.errors}"
    return result.output


def _run_python(text, names, where):
    """Runs a block of Python; a block of examples with >>> must give what it shows."""
    if ">>> " not in text:
        exec(compile(text, where, "exec"), names)
        return
    examples = doctest.DocTestParser().get_doctest(text, names, where, where, 0)
    report = []
    result = doctest.DocTestRunner().run(examples, out=report.append, clear_globs=False)
    names.update(examples.globs)
    assert result.failed == 0, "".join(report)


def _assert_printed(shown, printed, where):
    """Checks that what a block shows was printed in this order, but for numbers; "..." stands for anything."""
    lines = iter([_without_numbers(line) for line in printed.splitlines()])
    for line in shown:
        if line.strip() == "..." or not line.strip():
            continue
        pattern = re.escape(_without_numbers(line)).replace(r"\.\.\.", ".*")
        assert any(re.fullmatch(pattern, other.rstrip()) for other in lines), f"{where}: not printed: {line}\n{printed}"


def _without_numbers(line):
    return re.sub(r"-?\d[\d,.]*(e-?\d+)?", "N", line)
