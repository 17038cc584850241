"""What `mkdocs build` does to each page besides what its plugins do (`hooks` of mkdocs.yml)."""

import re

# A browser would break `--learning_rate` after its hyphens. What is longer has to break somewhere on a telephone.
_WORD = re.compile(r"<code>([^\s<]{1,32})</code>")


def on_page_content(html: str, **_) -> str:
    """Marks code of one word, such as a flag, for the style sheet to keep whole."""
    return _WORD.sub(r'<code class="whole">\1</code>', html)
