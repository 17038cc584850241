"""A few shapes of SVG, drawn on white so that they read on dark pages too."""

import html

INK, PALE, LINE, ACCENT, SECOND = "#1f2933", "#f4f6fb", "#9aa5b8", "#3f51b5", "#c2571a"
_SANS = "system-ui, 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
_MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Drawing:
    """Shapes in the order in which they are added.

    Args:
        width: In pixels.
        height: In pixels.
        title: What a screen reader says.
    """

    def __init__(self, width: int, height: int, title: str):
        self._size, self._title = (width, height), title
        self._shapes = []

    def box(self, x: float, y: float, width: float, height: float, fill: str = PALE, stroke: str = LINE) -> None:
        """Adds a rectangle with round corners, by its upper left corner."""
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" stroke="{stroke}"/>'
        )

    def text(self, x: float, y: float, words: str, size: float = 13, *, mono=False, bold=False, **look) -> None:
        """Adds a line of text whose middle is at x, or with anchor="start" its beginning; fill is its colour."""
        weight = ' font-weight="600"' if bold else ""
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{_MONO if mono else _SANS}" font-size="{size:g}"{weight} '
            f'text-anchor="{look.get("anchor", "middle")}" fill="{look.get("fill", INK)}">{html.escape(words)}</text>'
        )

    def arrow(self, *points: tuple[float, float], both_ends: bool = False) -> None:
        """Adds a line through points, with a head at its end, or at both."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        start = ' marker-start="url(#head)"' if both_ends else ""
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="1.6" marker-end="url(#head)"{start}/>'
        )

    def mark(self, x: float, y: float, number: int, fill: str) -> None:
        """Adds a numbered disc."""
        self._shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="9.5" fill="{fill}"/>')
        self.text(x, y + 4, str(number), 11.5, bold=True, fill="#ffffff")

    def to_svg(self) -> str:
        """Returns the picture as a file's text."""
        width, height = self._size
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>'
        )
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{html.escape(self._title)}</title>",
            head,
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *self._shapes,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"
