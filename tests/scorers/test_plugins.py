"""Metrics of other packages and files: known everywhere, checked, and refused by name where they
cannot be used."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mtmetrics as package
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import source_tree
from mtmetrics.scorers import registry
from mtmetrics.scorers.plugins import load_plugin

PLUGIN = '''
"""How far lengths differ."""
import dataclasses

import mtmetrics


class Lengths(mtmetrics.PluginMetric):
    """How far the length of a translation is from that of its source."""

    metric = "lengths"
    sides = ("source", "reference")
    usual = "source"
    lower_is_better = True
    floor = 100.0
    version = "7"

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(mtmetrics.Settings):
        """The options."""

        unit: str = mtmetrics.option("characters", "what is counted", choices=("characters", "words"), signed="unit")

    def segment_scores(self, predictions, sources=None, references=None):
        others = references if sources is None else sources
        count = len if self.settings.unit == "characters" else lambda text: len(text.split())
        return [abs(count(text) - count(other)) for other, text in zip(others, predictions)]
'''

pytestmark = pytest.mark.usefixtures("no_plugins")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "lengths.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path / "lengths.py"


def test_a_file_makes_a_metric_like_all_others(plugin: Path) -> None:
    assert load_plugin(plugin) == load_plugin(plugin) == ["lengths"]
    scorer = package.load("lengths", lang_pair="de-en", unit="words")
    result = scorer.score(["a small house", "x", "two"], sources=["ein Haus", "", "zwei"])
    assert result.segments.tolist() == [-1.0, -100.0, 0.0]
    assert str(result.segments[2]) == "0.0"
    assert result.report.blank == 1
    own = f"unit:words|sign:turned|plugin:7|v:{package.__version__}"
    assert result.signature == f"lengths|lp:de-en|against:source|{own}"
    against = package.load("lengths", against="reference")
    assert against.side == "reference"
    assert against.score(["ab"], references=[["a", "abc"]]).segments.tolist() == [-1.0]
    with pytest.raises(InputError, match="unit 'bytes': must be one of characters, words"):
        package.load("lengths", unit="bytes")


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    text = (source_tree() / "tools" / "guide" / "other_metrics.md").read_text(encoding="utf-8")
    [example] = re.findall(
        r"^```python\n(.*?PluginMetric.*?)^```", text, flags=re.MULTILINE | re.DOTALL
    )
    (tmp_path / "example.py").write_text(example.rpartition("```python\n")[2], encoding="utf-8")
    assert load_plugin(tmp_path / "example.py") == ["length_ratio"]
    assert package.load("length_ratio").score(["ab"], sources=["abcd"]).segments.tolist() == [-0.5]


def test_on_the_command_line(plugin: Path, mtmetrics, capsys: pytest.CaptureFixture) -> None:
    Path("rows.jsonl").write_text(
        '{"source": "ein Haus", "outputs": {"a": "a house", "b": "a small red house"}}\n' * 2
    )
    Path("rows.tsv").write_text("source\ttranslation\nein Haus\ta small house\n")
    code, out, err = mtmetrics(
        "score", "--plugin", plugin, "--metric", "lengths", "--unit", "words", "rows.tsv"
    )
    assert (code, err, json.loads(out)["scores"]) == (0, "", [-1.0])
    code, out, _ = mtmetrics(
        "score", f"--plugin={plugin}", "--metric", "lengths::unit=words", "rows.tsv"
    )
    assert (code, json.loads(out)["scores"]) == (0, [-1.0])
    code, out, _ = mtmetrics(
        "compare", "rows.jsonl", "--plugin", plugin, "--metric", "lengths", "--format", "json"
    )
    assert (code, "lengths|against:source|sign:turned" in out) == (0, True)
    assert (
        json.loads(mtmetrics("list", "--plugin", plugin, "lengths")[1])["metrics"][0]["offline"]
        == "yes"
    )
    with pytest.raises(SystemExit):
        mtmetrics("score", "--plugin", plugin, "--metric", "lengths", "--help")
    assert "--unit UNIT" in capsys.readouterr().out
    code, _, err = mtmetrics(
        "score", "--plugin", plugin, "--metric", "lengths", "--unit", "bytes", "rows.tsv"
    )
    assert (code, err) == (2, "mtmetrics: --unit 'bytes': must be one of characters, words\n")
    Path("two.tsv").write_text("ein Haus\ta small house\n")
    code, _, err = mtmetrics("score", "--plugin", plugin, "--metric", "lengths", "two.tsv")
    assert (code, "two columns can be read in two ways for lengths" in err) == (2, True)


OPTIONS = """
import dataclasses
from typing import Annotated, Literal, Optional, Union

import mtmetrics
from mtmetrics import option

Unit = Literal["characters", "words"]


class Many(mtmetrics.PluginMetric):
    metric = "many"

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(mtmetrics.Settings):
        flag_of_it: bool = option(False, "a flag", signed="flag")
        count_of_it: int = option(1, "a count", signed="count")
        size_of_it: float = option(1.0, "a size", signed="size")
        name_of_it: str = option("x", "a name", signed="name")
        unit_of_it: Unit = option("words", "a unit", choices=("characters", "words"), signed="unit")
        rank_of_it: Literal[1, 2] = option(1, "a rank", signed="rank")
        lone_of_it: int | None = option(None, "a count", signed="lone")
        most_of_it: Optional[float] = option(None, "a size", signed="most")
        either_of_it: Union[int, str] = option("all", "a count or a name", signed="either")
        mixed_of_it: Annotated[bool | str, "a note"] = option("auto", "a flag or a name", signed="mixed")

    def segment_scores(self, predictions, sources):
        return [float(len(text)) for text in predictions]
"""
VALUES = {
    "count": ("2", 2),
    "size": ("2", 2.0),
    "name": ("007", "007"),
    "unit": ("characters", "characters"),
    "rank": ("2", 2),
    "lone": ("3", 3),
    "most": ("3", 3.0),
    "either": ("4", 4),
    "mixed": ("true", True),
}


@pytest.mark.parametrize("start", ["", "from __future__ import annotations\n"])
def test_options_of_all_types_whatever_annotations_are(start: str, mtmetrics) -> None:
    Path("many.py").write_text(start + OPTIONS)
    Path("rows.tsv").write_text("source\ttranslation\nein Haus\ta house\n")
    load_plugin("many.py")
    scorer = package.load(
        "many", flag_of_it=True, **{f"{name}_of_it": value for name, (_, value) in VALUES.items()}
    )
    call = ["score", "--plugin", "many.py", "rows.tsv", "--format", "json"]
    flags = ["--flag-of-it", *(f"--{name}-of-it={text}" for name, (text, _) in VALUES.items())]
    values = ",".join(
        ["flag-of-it=true", *(f"{name}-of-it={text}" for name, (text, _) in VALUES.items())]
    )
    for given in (["--metric", "many", *flags], ["--metric", f"many::{values}"]):
        code, out, err = mtmetrics(*call, *given)
        assert (code, err) == (0, "")
        assert json.loads(out)["signature"] == scorer.signature
    assert (
        "flag:yes|count:2|size:2.0|name:007|unit:characters|rank:2|lone:3|most:3.0|either:4"
        in scorer.signature
    )
    for wrong in (["--count-of-it=x"], ["--size-of-it=x"], ["--lone-of-it=1.5"]):
        with pytest.raises(SystemExit):
            mtmetrics(*call, "--metric", "many", *wrong)
    for name in ("count", "size", "lone", "most"):
        with pytest.raises(InputError, match=f"{name}_of_it 'x': must be"):
            package.load("many", **{f"{name}_of_it": "x"})


def test_an_annotation_that_names_nothing_is_an_error_of_one_line(tmp_path: Path) -> None:
    text = "from __future__ import annotations\n" + OPTIONS.replace(
        "count_of_it: int", "count_of_it: Missing"
    )
    (tmp_path / "other.py").write_text(text)
    with pytest.raises(ArtifactError, match="name 'Missing' is not defined"):
        load_plugin(tmp_path / "other.py")


def test_in_filter_and_rerank(plugin: Path, mtmetrics) -> None:
    Path("pairs.tsv").write_text("ein Haus\ta house\nein Baum\ta very tall and old tree\nja\tyes\n")
    choice = (
        "--plugin",
        plugin,
        "--metric",
        "lengths",
        "--lp",
        "de-en",
        "--skip",
        "language",
        "--skip",
        "length",
    )
    code, out, err = mtmetrics("filter", *choice, "--threshold", "-1", "pairs.tsv")
    assert (code, out) == (0, "ein Haus\ta house\t-1.0\nja\tyes\t-1.0\n"), err
    rows = {"source": "ein Haus", "candidates": ["a small house", "a house", "a house!"]}
    Path("nbest.jsonl").write_text(json.dumps(rows) + "\n")
    for way, chosen in (((), "a house!"), (("--mbr", "--against", "reference"), "a house!")):
        code, out, err = mtmetrics(
            "rerank", "--plugin", plugin, "--metric", "lengths", *way, "nbest.jsonl"
        )
        assert (code, json.loads(out)["translation"]) == (0, chosen), err


def test_in_completion(plugin: Path) -> None:
    pytest.importorskip("argcomplete", reason="needs the extra 'completion'")
    line = "mtmetrics score --metric leng"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "IFS": " "}
    asked |= {"_ARGCOMPLETE_STDOUT_FILENAME": "found", "MTMETRICS_PLUGINS": str(plugin)}
    subprocess.run([sys.executable, "-m", "mtmetrics"], env=os.environ | asked, check=False)
    assert Path("found").read_text().strip() == "lengths"


def test_an_installed_package_is_found_by_its_entry_point(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, mtmetrics
) -> None:
    site = plugin.parent / "site"
    (site / "lengths-1.0.dist-info").mkdir(parents=True)
    plugin.rename(site / "lengths_plugin.py")
    (site / "lengths-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n"
    )
    points = site / "lengths-1.0.dist-info" / "entry_points.txt"
    points.write_text("[mtmetrics.metrics]\nlengths = lengths_plugin:Lengths\n")
    monkeypatch.syspath_prepend(str(site))
    assert package.load("lengths").score(["abcd"], sources=["abc"]).segments.tolist() == [-1.0]
    Path("rows.tsv").write_text("source\ttranslation\nein Haus\ta small house\n")
    code, out, _ = mtmetrics("score", "--metric", "lengths", "--unit", "words", "rows.tsv")
    assert (code, json.loads(out)["scores"]) == (0, [-1.0])
    assert "length of a translation" in str(
        [offer.label for offer in _offers() if offer.spec.metric == "lengths"]
    )
    points.write_text("[mtmetrics.metrics]\nbroken = lengths_plugin:Missing\n")
    registry.installed_plugins.cache_clear()
    with pytest.raises(
        ArtifactError,
        match=r"plugin broken of the package lengths: cannot be loaded \(AttributeError",
    ):
        registry.find_metric("other")


def _offers() -> tuple:
    from mtmetrics.page.offers import offers

    offers.cache_clear()
    try:
        return offers()
    finally:
        offers.cache_clear()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x = 1\n", InputError, "has no class made from mtmetrics.PluginMetric"),
        ("x = (\n", ArtifactError, r"cannot be loaded \(SyntaxError"),
        ("raise SystemExit(3)\n", ArtifactError, r"cannot be loaded \(SystemExit: 3\)"),
        ("import no_such_package\n", ArtifactError, r"cannot be loaded \(ModuleNotFoundError"),
        (
            PLUGIN.replace('"lengths"', '"chrf"'),
            InputError,
            "the name 'chrf' is taken by another metric",
        ),
        (PLUGIN.replace('metric = "lengths"', ""), InputError, "the class Lengths needs a name"),
        (
            PLUGIN.replace('"source", "reference"', '"target",'),
            InputError,
            "needs sides of source, reference, both",
        ),
        (PLUGIN.replace("100.0", "None"), InputError, "and a finite floor"),
        (
            f"{PLUGIN}\n\nclass Others(Lengths):\n    pass\n",
            InputError,
            "the name 'lengths' is taken by another metric",
        ),
    ],
)
def test_files_that_are_no_plugins(
    tmp_path: Path, text: str, kind: type[Exception], message: str
) -> None:
    (tmp_path / "other.py").write_text(text)
    with pytest.raises(kind, match=message):
        load_plugin(tmp_path / "other.py")


def test_an_option_that_the_command_has_is_refused(plugin: Path, mtmetrics) -> None:
    plugin.write_text(PLUGIN.replace("unit", "format"), encoding="utf-8")
    code, _, err = mtmetrics("score", "--plugin", plugin, "--metric", "lengths", "rows.tsv")
    assert (
        code,
        "--format" in err,
        "an option of a plug-in is one of the command, too" in err,
    ) == (2, True, True)


@pytest.mark.parametrize(
    "found", ["[1.0]", "[float('nan')] * len(others)", "['x'] * len(others)", "None"]
)
def test_scores_that_are_no_numbers_are_refused(plugin: Path, found: str) -> None:
    start = PLUGIN.index("        count = len")
    plugin.write_text(PLUGIN[:start] + f"        return {found}\n")
    load_plugin(plugin)
    with pytest.raises(InputError, match="metric lengths: "):
        package.load("lengths").score(["c", "d"], sources=["a", "b"])


def test_a_plugin_as_in_1_1_is_refused_with_the_method_that_works(plugin: Path) -> None:
    text = PLUGIN.replace(
        "(self, predictions, sources=None, references=None)", "(self, others, predictions)"
    )
    plugin.write_text(text)
    needed = r"the method is segment_scores\(self, predictions, sources=None, references=None\)$"
    with pytest.raises(InputError, match=needed):
        load_plugin(plugin)


def test_a_wheel_that_declares_a_metric_is_enough(tmp_path: Path) -> None:
    """Installed with pip into a folder of its own, and used from the command line."""
    name = "lengths-1.0.dist-info"
    files = {
        "lengths.py": (
            "import mtmetrics\n\n\n"
            "class Shortness(mtmetrics.PluginMetric):\n"
            '    metric = "shortness"\n\n'
            "    def segment_scores(self, predictions, sources):\n"
            "        return [-float(len(text)) for text in predictions]\n"
        ),
        f"{name}/METADATA": "Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n",
        f"{name}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}/entry_points.txt": "[mtmetrics.metrics]\nshortness = lengths:Shortness\n",
    }
    wheel = tmp_path / "lengths-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(
            f"{name}/RECORD", "".join(f"{file},,\n" for file in [*files, f"{name}/RECORD"])
        )
    target = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        target,
        wheel,
    ]
    subprocess.run(install, check=True, capture_output=True)
    (tmp_path / "rows.tsv").write_text("Ja.\tYes.\nNein.\tNo.\n")
    call = [
        sys.executable,
        "-m",
        "mtmetrics",
        "score",
        "--metric",
        "shortness",
        "--format",
        "json",
        "rows.tsv",
    ]
    paths = os.pathsep.join([str(target), *sys.path])
    done = subprocess.run(
        call,
        env=os.environ | {"PYTHONPATH": paths},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["scores"] == [-4.0, -3.0]
    assert found["signature"].startswith("shortness|")
