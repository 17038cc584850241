"""Tables and coloured texts, as HTML and as text."""

from albert_tf.notebook.tables import Marked, Table, pieces, shade


def test_table_is_html_with_its_texts_escaped():
    page = Table(("a", "b<"), [("1,234", "<i>x</i>")])._repr_html_()
    assert "b&lt;" in page and "&lt;i&gt;x&lt;/i&gt;" in page and "<i>" not in page


def test_numbers_stand_right_and_texts_left():
    page = Table(("", ""), [("1,234.5%", "4:30"), ("x1", "")])._repr_html_()
    assert page.count("text-align:right") == 2


def test_coloured_text_in_a_table_stays_coloured():
    marked = Marked([("서울", "#cfe8ff", "LOC"), ("에서", "", "")])
    page = Table(("",), [[marked]])._repr_html_()
    assert "background:#cfe8ff" in page and "LOC" in page
    assert repr(marked) == "[서울 LOC]에서"


def test_pieces_cover_the_text_with_what_lies_between_them():
    assert repr(pieces("밥을  먹다", [(0, 0), (0, 1), (1, 2), (4, 6), (0, 0)])) == "[밥][을]  [먹다]"


def test_shade_is_red_below_zero_and_blue_above():
    assert shade(-1).startswith("rgba(214") and shade(1).startswith("rgba(31")
    assert shade(0).endswith("0.00)") and shade(5) == shade(1)
