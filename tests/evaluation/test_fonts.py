"""Fonts of labels: whoever is chosen has the glyphs, and what nobody has is named."""

import subprocess
import sys

import pytest
from matplotlib import font_manager

from mtmetrics.evaluation import fonts
from mtmetrics.evaluation.fonts import LabelFonts, label_fonts


def charmap(family: str) -> set[int]:
    return set(font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=family))).get_charmap())


@pytest.fixture
def only(monkeypatch):
    """Leaves these families and their characters, in this order."""

    def set_families(**families: str) -> None:
        monkeypatch.setattr(fonts, "_candidates", lambda: list(families))
        known = {"DejaVu Sans": "abc�", **families}
        monkeypatch.setattr(fonts, "_characters", lambda family, wanted: frozenset(wanted) & set(known[family]))
        fonts._choose.cache_clear()

    yield set_families
    fonts._choose.cache_clear()


def test_latin_cyrillic_and_greek_need_one_family():
    assert label_fonts(["Größe", "дом", "σπίτι", " \n"]) == LabelFonts(["DejaVu Sans"], frozenset())


def test_chinese_gets_a_font_that_has_it():
    chosen = label_fonts(["他昨天没有去学校。", "house"])
    assert chosen.families[0] == "DejaVu Sans"
    assert not chosen.missing
    assert not chosen.advice
    covered = set().union(*map(charmap, chosen.families))
    assert {ord(character) for character in "他昨天没有去学校。house"} <= covered


def test_the_widest_cover_comes_first_and_as_few_as_will_do(only):
    only(one="xy", two="yz", three="wxyz")
    assert label_fonts(["a", "xyz"]).families == ["DejaVu Sans", "three"]
    assert label_fonts(["y"]).families == ["DejaVu Sans", "one"]
    only(one="xy", two="yzw")
    assert label_fonts(["xyzw"]).families == ["DejaVu Sans", "two", "one"]


def test_what_nobody_has_is_named_and_replaced(only):
    only(one="x")
    chosen = label_fonts(["axq", "q\u200d!"])
    assert chosen.missing == {"q", "!", "\u200d"}
    assert chosen.shown("axq\u200d!") == "ax��"
    assert chosen.advice.startswith(
        "no font here has the characters ! (U+0021) q (U+0071) (drawn as �); install a font"
    )
    assert label_fonts(["\u200d"]).advice == ""
    many = LabelFonts([], frozenset("abcdefghijklmn"))
    assert "j (U+006A) and 4 more" in many.advice


def test_advice_without_the_packaged_font(monkeypatch):
    monkeypatch.setattr(fonts, "_packaged_font", lambda: None)
    assert "for Chinese, pip install 'mtmetrics[plot]'" in LabelFonts([], frozenset("中")).advice
    monkeypatch.undo()
    if fonts._packaged_font() is not None:
        assert "pip" not in LabelFonts([], frozenset("中")).advice


def test_fonts_of_last_resort_are_no_candidates():
    assert not [name for name in fonts._candidates() if "resort" in name.lower()]
    assert "DejaVu Sans" in fonts._candidates()


def test_zhplot_is_not_imported():
    program = (
        "import sys, matplotlib; before = matplotlib.rcParams.copy();"
        "from mtmetrics.evaluation.fonts import label_fonts; label_fonts(['中']);"
        "print('zhplot' in sys.modules, matplotlib.rcParams.copy() == before, 'matplotlib.pyplot' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "True", "False"]
