"""Labels of plots: in Korean where a font has it, else numbers, never empty boxes."""

import pytest
from matplotlib import font_manager

from albert_tf.finetuning.texts import classification
from albert_tf.finetuning.texts.classification import drawable, hangul_font


@pytest.fixture
def no_fonts(monkeypatch):
    """A machine without a font that has Hangul."""
    latin = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", latin)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [font.fname for font in latin])


def test_ascii_labels_need_no_font(no_fonts):
    assert drawable(("0", "1")) == (("0", "1"), None)


def test_korean_labels_become_numbers_where_no_font_has_them(no_fonts):
    assert hangul_font() is None
    assert drawable(("부정", "긍정"), "piece") == (["piece 0", "piece 1"], None)


def test_font_that_was_just_installed_is_found(no_fonts, monkeypatch, tmp_path):
    path = str(tmp_path / "NanumGothic.ttf")
    installed = font_manager.FontEntry(fname=path, name="NanumGothic")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [path])
    monkeypatch.setattr(
        font_manager.fontManager, "addfont", lambda found: font_manager.fontManager.ttflist.append(installed)
    )
    assert drawable(("부정", "긍정")) == (("부정", "긍정"), "NanumGothic")
    assert classification.hangul_font() == "NanumGothic"
