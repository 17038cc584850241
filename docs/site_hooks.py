"""What `mkdocs build` does to each page besides what its plugins do (`hooks` of mkdocs.yml)."""

import json
import pathlib
import re

from mkdocs.plugins import event_priority

# A browser would break `--learning_rate` after its hyphens. What is longer has to break somewhere on a telephone.
_WORD = re.compile(r"<code>([^\s<]{1,32})</code>")
# Where a page's script finds the root of the site: `search/search_index.json` is there, and what that names.
_BASE = re.compile(r'(<script id="__config"[^>]*>[^<]*?"base": ")\.\./?')
_KOREAN = "ko/"
_INDEX = pathlib.PurePath("search", "search_index.json")


def on_page_content(html: str, **_) -> str:
    """Marks code of one word, such as a flag, for the style sheet to keep whole."""
    return _WORD.sub(r'<code class="whole">\1</code>', html)


def on_post_page(output: str, page, **_) -> str:
    """Makes the folder of the Korean pages the root that their search looks in."""
    return _BASE.sub(_one_level_less, output) if page.url.startswith(_KOREAN) else output


def _one_level_less(match):
    rest = match.string[match.end() :]
    return match[1] + ("." if rest.startswith('"') else "")


@event_priority(-200)  # after the plugin of languages, which puts those of all languages into one index
def on_post_build(config, **_) -> None:
    """Gives the pages of each language an index of their own, so that a search finds no others."""
    site = pathlib.Path(config.site_dir)
    index = json.loads((site / _INDEX).read_text(encoding="utf-8"))
    english, korean = [], []
    for entry in index["docs"]:
        place = entry["location"]
        inside = place.removeprefix(_KOREAN)
        (english if inside == place else korean).append({**entry, "location": inside})
    _write_index(site, index, english)
    _write_index(site / _KOREAN, index, korean)


def _write_index(folder, index, docs):
    path = folder / _INDEX
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**index, "docs": docs}, ensure_ascii=False), encoding="utf-8")
