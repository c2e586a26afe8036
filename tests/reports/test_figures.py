"""Properties that all pictures share: fonts that have the characters, and files that are whole or absent."""

import sys
import warnings
from pathlib import Path

import matplotlib
import pytest
from matplotlib import font_manager

from mtmetrics.errors import InputError, MTMetricsError, install_command
from mtmetrics.reports import figures
from mtmetrics.reports.figures import (
    LabelFonts,
    check_plot_file,
    finished,
    label_fonts,
    new_figure,
    save_figure,
)


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch):
    def set_families(**families: str) -> None:
        """Leaves these families and their characters, in this order."""
        monkeypatch.setattr(figures, "_families", lambda: list(families))
        known = {"DejaVu Sans": "abc�", **families}
        monkeypatch.setattr(figures, "_characters", lambda family: frozenset(known[family]))

    return set_families


def test_chinese_gets_a_font_that_has_it() -> None:
    assert label_fonts(["Größe", "дом", "σπίτι", " \n"]) == LabelFonts(["DejaVu Sans"], frozenset())
    chosen = label_fonts(["他昨天没有去学校。", "house"])
    assert chosen.families[0] == "DejaVu Sans"
    assert (chosen.missing, chosen.advice) == (frozenset(), "")
    paths = [
        font_manager.findfont(font_manager.FontProperties(family=family))
        for family in chosen.families
    ]
    held = [set(font_manager.get_font(path).get_charmap()) for path in paths]
    assert set(map(ord, "他昨天没有去学校。house")) <= set().union(*held)


def test_families_follow_as_long_as_they_have_what_is_missing(only) -> None:
    only(one="xy", two="y", three="yz", four="w")
    assert label_fonts(["a", "xyz"]).families == ["DejaVu Sans", "one", "three"]
    assert label_fonts(["y"]).families == ["DejaVu Sans", "one"]


def test_what_nobody_has_is_named_once_and_replaced(only, monkeypatch: pytest.MonkeyPatch) -> None:
    only(one="x")
    chosen = label_fonts(["axq", "q\u200d!"])
    assert chosen.missing == {"q", "!", "\u200d"}
    assert chosen.shown("axq\u200d!") == "ax��"
    advice = "no font here has the characters ! (U+0021) q (U+0071) (drawn as �); install a font"
    assert chosen.advice.startswith(advice)
    assert label_fonts(["\u200d"]).advice == ""
    assert "j (U+006A) and 4 more" in LabelFonts([], frozenset("abcdefghijklmn")).advice
    monkeypatch.setattr(figures, "_named", set())
    with pytest.warns(UserWarning, match="no font here") as caught:
        chosen.warn(stacklevel=2)
    assert [(str(warning.message), warning.filename) for warning in caught] == [
        (chosen.advice, __file__)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        label_fonts(["q"]).warn(stacklevel=2)


def test_families_and_the_packaged_font(monkeypatch: pytest.MonkeyPatch) -> None:
    figures._families.cache_clear()
    families = figures._families()
    assert "DejaVu Sans" in families
    assert not [name for name in families if "resort" in name.lower()]
    packaged = figures._packaged_font() is not None
    assert (families[0] == "Noto Sans SC") == packaged
    assert ("pip" in LabelFonts([], frozenset("中")).advice) != packaged
    monkeypatch.setattr(figures, "_packaged_font", lambda: None)
    assert f"for Chinese, {install_command('plot')}" in LabelFonts([], frozenset("中")).advice


def test_zhplot_is_not_imported() -> None:
    before = matplotlib.rcParams.copy()
    figures._families.cache_clear()
    label_fonts(["中"])
    assert "zhplot" not in sys.modules
    assert matplotlib.rcParams.copy() == before


def test_texts_are_no_formulas_and_have_fonts_with_their_characters(only) -> None:
    only(one="x")
    figure = new_figure(2.0, 1.0)
    figure.add_subplot().set_title("$x_1$")
    with pytest.warns(UserWarning, match=r"has the characters \$ \(U\+0024\) 1 \(U\+0031\) _"):
        title = finished(figure).axes[0].title
    assert (title.get_text(), title.get_parse_math()) == ("�x���", False)
    assert title.get_fontfamily() == ["DejaVu Sans", "one"]


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    save_figure(new_figure(2.0, 1.0), tmp_path / "one.png")
    with Image.open(tmp_path / "one.png") as image:
        image.load()
        assert image.size == (300, 150)

    def fail(self, path: Path, **_) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(MTMetricsError, match="No space left"):
        save_figure(new_figure(2.0, 1.0), tmp_path / "two.png")
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]


def test_files_that_no_plot_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, message in (
        ("plot.gif", "must end in .png, .svg, .pdf"),
        ("none/plot.png", "there is no folder"),
    ):
        with pytest.raises(InputError, match=message):
            check_plot_file(tmp_path / name, "a plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MTMetricsError, match=r"--plot needs matplotlib; pip install .*\[plot\]'"):
        check_plot_file(tmp_path / "plot.png", "--plot")


@pytest.mark.parametrize(
    ("end", "begin"), [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")]
)
def test_the_end_of_the_name_says_the_format_and_the_file_holds_no_date(
    tmp_path: Path, end: str, begin: bytes
) -> None:
    files = [tmp_path / f"{name}{end}" for name in "ab"]
    for file in files:
        figure = new_figure(2.0, 1.0)
        figure.add_subplot().plot([1, 2])
        check_plot_file(file, "--plot")
        save_figure(figure, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(begin)
