"""The documents as a site, and the pictures in them."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from pages import ROOT

import albert_tf

FIGURES = ROOT / "docs" / "figures"


def test_citation_is_of_this_version():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {albert_tf.__version__}" in lines


@pytest.mark.slow
def test_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("material", reason="needs mkdocs-material: pip install -r requirements-docs.txt")
    pytest.importorskip("mkdocstrings", reason="needs mkdocstrings: pip install -r requirements-docs.txt")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    pages = {path.parent.name for path in (tmp_path / "site").glob("**/index.html")}
    assert {"quick-start", "concepts", "troubleshooting", "reference"} <= pages
    assert "빠른 시작" in (tmp_path / "site" / "ko" / "index.html").read_text(encoding="utf-8")
    classification = (tmp_path / "site" / "classification" / "index.html").read_text(encoding="utf-8")
    assert '<code class="whole">--learning_rate</code>' in classification and "stylesheets/site.css" in classification
    assert not _fetched_from_elsewhere(tmp_path / "site")
    _check_search(tmp_path / "site" / "concepts", other="ko/")
    _check_search(tmp_path / "site" / "ko" / "concepts", other="../")


def _check_search(page, other):
    """Checks that what the search of a page looks through is all there, and none of it of the other language."""
    text = (page / "index.html").read_text(encoding="utf-8")
    base = (page / re.search(r'<script id="__config"[^>]*>[^<]*?"base": "([^"]*)"', text)[1]).resolve()
    docs = json.loads((base / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    places = {entry["location"].partition("#")[0] for entry in docs}
    assert len(places) > 20 and not [place for place in places if place.startswith(other)]
    assert all((base / place / "index.html").exists() for place in places)
    assert base == page.parent


def _fetched_from_elsewhere(site: pathlib.Path) -> list[str]:
    """Returns the pages that load a script, style, font or picture from another host."""
    loading = ('<script src="http', 'rel="stylesheet" href="http', '<img src="http', 'rel="preconnect"')
    return [
        str(page)
        for page in site.glob("**/*.html")
        if any(words in page.read_text(encoding="utf-8") for words in loading)
    ]


def test_pictures_are_drawn_from_the_code_as_it_is(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    specification = importlib.util.spec_from_file_location("draw", FIGURES / "draw.py")
    draw = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(draw)
    for name, text in draw.pictures().items():
        drawn = (FIGURES / name).read_text(encoding="utf-8")
        assert drawn == text, f"{name} is of an earlier state; run python docs/figures/draw.py"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["base", "large"])
def test_table_of_parameters_is_counted(monkeypatch, model):
    monkeypatch.syspath_prepend(str(FIGURES))
    counts = list(importlib.import_module("concepts").parameters_by_part(model).values())
    numbers = " | ".join(f"{count:,}" for count in [*counts, sum(counts)])
    assert f"| {model} | {numbers} |" in (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
