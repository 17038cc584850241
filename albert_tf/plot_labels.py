"""Labels of plots in Korean, without empty boxes where no font has their letters; needs matplotlib."""

import collections.abc
import os

_HANGUL_FONTS = ("NanumGothic", "Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic", "AppleGothic", "UnDotum")
_HANGUL_FILES = ("nanumgothic.ttf", "notosanscjk-regular.ttc", "notosanskr-regular.otf", "malgun.ttf", "undotum.ttf")


def hangul_font() -> str | None:
    """Returns the name of an installed font that has Hangul, None if there is none."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    installed = {font.name for font in fontManager.ttflist}
    if not installed.intersection(_HANGUL_FONTS):  # a notebook may have installed one after matplotlib's import
        for path in findSystemFonts():
            if os.path.basename(path).lower() in _HANGUL_FILES:
                fontManager.addfont(path)
        installed = {font.name for font in fontManager.ttflist}
    return next((name for name in _HANGUL_FONTS if name in installed), None)


def drawable(
    labels: collections.abc.Sequence[str], name: str = "label"
) -> tuple[collections.abc.Sequence[str], str | None]:
    """Returns labels, or `name` and a number where no font has their letters, and the font for them, None for any."""
    if all(label.isascii() for label in labels):
        return labels, None
    font = hangul_font()
    return (labels, font) if font else ([f"{name} {number}" for number in range(len(labels))], None)
