"""Reading Markdown: links, headings, and blocks of code with the comment that stands before them."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("models/**/*.md"))
    if not path.is_symlink()
)
# Of the notebooks' page the links are checked alone.
LINKING_PAGES = [*PAGES, *ROOT.glob("notebooks/*.md")]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--\s*((?:(?!-->).)*?)\s*-->\s*\Z", flags=re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", flags=re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language ("" for none), its text, its line, and the HTML comment right before it or ""."""

    language: str
    text: str
    line: int
    comment: str


def name_of(path: pathlib.Path) -> str:
    """Returns how a page is called in messages."""
    return str(path.relative_to(ROOT))


def blocks_of(text: str) -> list[Block]:
    """Returns the fenced blocks of a page, in order."""
    blocks = []
    for match in _FENCE.finditer(text):
        comment = _COMMENT.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        blocks.append(Block(match[1], match[2], line, comment[1] if comment else ""))
    return blocks


def links_of(text: str) -> list[str]:
    """Returns the targets of all links and images that are not inside code."""
    return _LINK.findall(re.sub(r"`[^`\n]+`", "`code`", _FENCE.sub("", text)))


def anchors_of(text: str) -> set[str]:
    """Returns the anchors that GitHub and the site give to the headings of a page, and those that it names itself."""
    headings = _HEADING.findall(_FENCE.sub("", text))
    anchors = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in headings:
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        anchors.add(re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-"))
    return anchors
