"""Every link between the documents leads somewhere."""

import re

import pytest
from pages import LINKING_PAGES, PAGES, ROOT, anchors_of, links_of, name_of


def broken_links(page):
    """Returns the links of a page that lead to no file, or to no heading."""
    broken = []
    for link in links_of(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.is_relative_to(ROOT) or not path.exists() or (anchor and not has_anchor(path, anchor)):
            broken.append(link)
    return broken


def has_anchor(path, anchor):
    """Returns whether a file is a page with such a heading."""
    return path.suffix == ".md" and anchor in anchors_of(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", LINKING_PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page):
    assert not broken_links(page)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "docs"], ids=name_of)
def test_pages_of_the_site_link_to_nothing_outside_of_it(page):
    links = links_of(page.read_text(encoding="utf-8"))
    assert not [link for link in links if link.startswith("../")]


@pytest.mark.parametrize("page", LINKING_PAGES, ids=name_of)
def test_files_of_this_repository_that_a_page_names_are_there(page):
    named = re.findall(
        r"\b(?:albert_tf|benchmarks|configs|docs|notebooks|tests)/[\w/.]+\.(?:py|md|json|cfg|svg|png|ipynb)\b",
        page.read_text(encoding="utf-8"),
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_broken_links_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("test_links.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A page\n[a](#a-page) [b](#b) [c](missing.md) `[d](code.md)` ![e](page.md)\n```\n[f](g)\n```\n")
    assert broken_links(page) == ["#b", "missing.md"]
