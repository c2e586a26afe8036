"""Tables of cards: defined once, measured once, written wherever they are shown. Inputs and outputs
of cards: written from the settings of the metrics."""

import dataclasses
import json
import shutil
from pathlib import Path

import cards
import pytest
from helpers import write

import mtmetrics.artifacts.catalog
from mtmetrics.artifacts.presets import Preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.checksums import sha256_file
from mtmetrics.layout import metric_names, metric_scripts
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import METRICS, MetricEntry

SHOWING = [path for path in cards.cards() if cards.tables_in(path.read_text(encoding="utf-8"))]
TABLES = """
[lengths]
head = "set"
columns = [
    { title = "score" },
    { title = "short is good", turned = true },
    { title = "chrF", metric = "chrf" },
]
metric = "prediction_length"
rows = [
    { title = "de-en", data = "a/de-en.jsonl" },
    { title = "fi-en", data = "a/fi-en.jsonl", only = ["score"] },
    { title = "mean", data = ["a/de-en.jsonl", "a/fi-en.jsonl"], bold = true, only = ["score", "short is good"] },
    { title = "the paper", values = [0.5, 0.25, 0.125] },
]
"""
CARD = "# Card\n\n<!-- table: thing/lengths -->\nold\n<!-- end of table -->\n\nafter\n"
# Translations of 1, 2, 3, 4 words; `prediction_length` holds the shorter one for better.
HUMAN = {"de": [4.0, 3.0, 2.0, 1.0], "fi": [1.0, 2.0, 3.0, 4.0]}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with one metric, one artifact that shows its table, and data."""
    for card in ("metrics/thing/README.md", "hub_artifacts/model/README.md", "README.md"):
        write(tmp_path / card, CARD)
    write(tmp_path / "metrics/thing/tables.toml", TABLES)
    checksum = sha256_file(tmp_path / "hub_artifacts/model/README.md")
    entry = (
        '[model]\nkind = "encoder"\nrepository = "x/y"\nrevision = "main"\nbundled = '
        "true\n[model.files]\n"
    )
    write(tmp_path / "hub_artifacts/catalog.toml", f'{entry}"README.md" = "{checksum}"')
    for source, judgements in HUMAN.items():
        row = {"lp": f"{source}-en", "source": "x", "reference": "a b c"}
        rows = [
            row | {"translation": "a " * n, "human": human} for n, human in enumerate(judgements, 1)
        ]
        write(
            tmp_path / f"data/a/{source}-en.jsonl", "".join(json.dumps(row) + "\n" for row in rows)
        )
    monkeypatch.setattr(cards, "metric_scripts", lambda: tmp_path / "metrics")
    for module in (cards, mtmetrics.artifacts.catalog):
        monkeypatch.setattr(module, "bundled_artifacts", lambda: tmp_path / "hub_artifacts")
    return tmp_path


def renewed(tree: Path, *metrics: str) -> list[Path]:
    """Measures what some metrics need, writes the cards, and returns those that changed."""
    cards.measure(metrics, tree / "data", ModelPool())
    return cards.write_cards()


def test_measures_stores_and_writes(tree: Path) -> None:
    changed = renewed(tree)
    expected = ["metrics/thing/README.md", "hub_artifacts/model/README.md", "README.md"]
    assert [path.relative_to(tree).as_posix() for path in changed] == expected
    card = (tree / "README.md").read_text(encoding="utf-8")
    lines = card.splitlines()
    assert lines[3] == "| set | score | short is good | chrF |"
    assert lines[5].startswith("| de-en | 1.000 | -1.000 | ")
    assert lines[6] == "| fi-en | -1.000 |  |  |"
    assert lines[7] == "| **mean** | **0.000** | **0.000** |  |"
    assert lines[8] == "| the paper | 0.500 | 0.250 | 0.125 |"
    assert lines[9:] == ["<!-- end of table -->", "", "after"]
    stored = cards.load_measurements(tree / "metrics/thing")
    measured = [
        ("chrf", "a/de-en.jsonl"),
        ("prediction_length", "a/de-en.jsonl"),
        ("prediction_length", "a/fi-en.jsonl"),
    ]
    assert sorted(stored) == measured
    one = stored["prediction_length", "a/fi-en.jsonl"]
    assert (one.segments, one.pearson) == (4, {"score": -1.0})
    assert one.sha256 == sha256_file(tree / "data/a/fi-en.jsonl")[:16]
    assert list(mtmetrics.artifacts.catalog.find_problems("model")) == []


def test_nothing_is_measured_twice(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed(tree)
    scored = []
    real = cards.score_together
    monkeypatch.setattr(cards, "score_together", lambda s, f: scored.extend(s) or real(s, f))
    assert renewed(tree) == []
    assert scored == []
    [first, *_] = (tree / "data/a/fi-en.jsonl").read_text().splitlines()
    other = first.replace("1.0", "0.0").replace('"a "', '"a a a "')
    write(tree / "data/a/fi-en.jsonl", f"{first}\n{other}")
    assert len(renewed(tree, "thing")) == 3
    assert [scorer.signature.split("|")[0] for scorer in scored] == ["prediction_length"]


def test_a_measurement_with_another_signature_is_made_again(tree: Path) -> None:
    renewed(tree)
    folder = tree / "metrics/thing"
    good = cards.load_measurements(folder)
    stale = {
        key: dataclasses.replace(row, signature="old", pearson={"score": 0.5})
        for key, row in good.items()
    }
    cards.save_measurements(folder, stale)
    renewed(tree)
    assert cards.load_measurements(folder) == good


def test_what_was_measured_survives_an_interruption(tree: Path) -> None:
    (tree / "data/a/fi-en.jsonl").unlink()
    with pytest.raises(InputError, match="fi-en.jsonl"):
        renewed(tree)
    assert {file for _, file in cards.load_measurements(tree / "metrics/thing")} == {
        "a/de-en.jsonl"
    }
    assert (tree / "README.md").read_text(encoding="utf-8") == CARD


def test_from_the_command_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data-root", str(tree / "data"), "--device", "cpu"]
    assert cards.main(["other", *data]) == 2
    assert capsys.readouterr() == (
        "",
        "cards.py: other: has no tables.toml; those with one are: thing\n",
    )
    assert cards.main(["thing", *data]) == 0
    assert [Path(line).parent.name for line in capsys.readouterr().out.splitlines()] == [
        "thing",
        "model",
        tree.name,
    ]
    path = tree / "metrics/thing/tables.toml"
    path.write_text(path.read_text().replace('metric = "chrf"', 'metric = "chrf", part = "lm"'))
    assert cards.main(data) == 1
    assert capsys.readouterr().err == "cards.py: chrf: no part 'lm'; there are: score\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("turned = true", "tuned = true", "unknown key 'tuned' of a column"),
        ("[0.5, 0.25, 0.125]", "[0.5, 0.25]", "the row 'the paper' needs 3 values"),
        ('head = "set"\n', "", "KeyError"),
        ("[lengths]", "[lengths", "cannot be read"),
    ],
)
def test_definitions_that_cannot_be_used(tree: Path, old: str, new: str, message: str) -> None:
    path = tree / "metrics/thing/tables.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(ArtifactError, match=message):
        cards.load_tables(path.parent)


def test_a_measurement_that_two_metrics_show_is_stored_with_both(tree: Path) -> None:
    shutil.copytree(tree / "metrics/thing", tree / "metrics/other")
    (tree / "metrics/other/README.md").write_text(CARD.replace("thing", "other"), encoding="utf-8")
    renewed(tree, "thing")
    assert (
        cards.load_measurements(tree / "metrics/other")
        == cards.load_measurements(tree / "metrics/thing")
        != {}
    )
    assert "old" not in (tree / "metrics/other/README.md").read_text(encoding="utf-8")


def test_tables_that_nobody_defines_stay_as_they_are() -> None:
    card = CARD + CARD.replace("thing", "else").replace("old\n", "")
    assert cards.tables_in(card) == {"thing/lengths": "old", "else/lengths": ""}
    assert cards.with_tables(card, {}) == card
    expected = card.replace("else/lengths -->\n", "else/lengths -->\nnew\n")
    assert cards.with_tables(card, {"else/lengths": "new"}) == expected


def test_folders_without_measurements(tree: Path) -> None:
    folder = tree / "metrics/thing"
    assert cards.load_measurements(folder) == {}
    (folder / "results.json").write_text("{")
    with pytest.raises(ArtifactError, match="cannot be read as measurements"):
        cards.load_measurements(folder)


def test_cards_are_checked_and_written_without_data(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renewed(tree)
    card = tree / "metrics/thing/README.md"
    good = card.read_text(encoding="utf-8")
    assert cards.main(["--check"]) == 0
    card.write_text(good.replace("0.250", "0.999"), encoding="utf-8")
    assert capsys.readouterr().out == ""
    assert cards.main(["--check"]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"{card}\n"
    assert "run python tests/benchmarks/cards.py" in shown.err
    assert "0.999" in card.read_text(encoding="utf-8")
    assert cards.main([]) == 0
    assert card.read_text(encoding="utf-8") == good


@pytest.mark.parametrize("argv", [["thing"], ["--check", "--data-root", "x"]])
def test_calls_that_contradict_themselves(argv: list[str]) -> None:
    with pytest.raises(SystemExit):
        cards.main(argv)


def test_inputs_and_outputs_follow_from_the_settings_of_a_metric(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        case: str = settings.option("keep", "keep letters or fold them", choices=("keep", "fold"))
        depth: int | None = settings.option(None, "steps, at most 9")

    class Thing(Scorer):
        metric = "thing"
        sides = ("source", "reference")
        usual_preset = None
        scale = "from 0 to 1"
        parts_help = "`one` and `two`"

    Thing.Settings = Settings
    monkeypatch.setitem(METRICS, "thing", MetricEntry("thing", Thing))
    monkeypatch.setattr(cards, "preset_names", lambda metric: ["big", "small"])
    presets = {"big": {"score": {"depth": 3}}, "small": {"score": {"depth": 1, "case": "fold"}}}
    monkeypatch.setattr(
        cards, "load_preset", lambda metric, name: Preset(name, metric, tree, presets[name])
    )
    card = tree / "metrics/thing/README.md"
    sections = "<!-- inputs -->\n<!-- end of inputs -->\n\n<!-- outputs -->\nold\n<!-- end of outputs -->\n"
    card.write_text(f"# Thing\n\n{sections}\nafter\n", encoding="utf-8")
    assert cards.outdated_cards().keys() == {card}
    assert cards.write_cards() == [card]
    assert cards.outdated_cards() == {}
    lines = card.read_text(encoding="utf-8").splitlines()
    assert "| `references` | `list` of `str`, or of `list` of `str` |" in "\n".join(lines)
    values = '`"keep"`, `"fold"`'
    default = '`"keep"`; `small`: `"fold"`'
    assert f"| `case` | {values} | {default} | `keep` letters or `fold` them |" in lines
    assert "| `depth` | `int` | `big`: `3`; `small`: `1` | steps, at most 9 |" in lines
    assert "| `scores` | `list` of `float` | one score per segment, from 0 to 1 |" in lines
    assert any(line.startswith("| `parts` |") and "return_parts=True" in line for line in lines)
    assert not any(line.startswith("| `alignments` |") for line in lines)
    assert lines[-1] == "after"


def test_a_card_of_no_metric_has_no_inputs(tree: Path) -> None:
    (tree / "metrics/thing/README.md").write_text("<!-- inputs -->\n<!-- end of inputs -->\n")
    with pytest.raises(ArtifactError, match="thing is no metric"):
        cards.outdated_cards()


def test_cards_are_up_to_date() -> None:
    """If this fails: ``python tests/benchmarks/cards.py`` writes the cards."""
    assert cards.outdated_cards() == {}


@pytest.mark.parametrize("name", [*metric_names()])
def test_every_card_has_its_inputs_and_outputs(name: str) -> None:
    card = (metric_scripts() / name / "README.md").read_text(encoding="utf-8")
    for section in cards.sections_of(METRICS[name]).values():
        assert section in card


@pytest.mark.parametrize("card", SHOWING, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_tables_of_cards_are_defined_and_measured(card: Path) -> None:
    tables, stored = known()
    for name in cards.tables_in(card.read_text(encoding="utf-8")):
        assert name in tables, name
        assert tables[name].needs() <= stored.keys(), name


def test_every_table_is_shown_and_only_what_is_needed_is_stored() -> None:
    shown = {name for card in SHOWING for name in cards.tables_in(card.read_text(encoding="utf-8"))}
    assert shown == set(known()[0])
    for folder in cards.table_folders():
        needed = set().union(*(table.needs() for table in cards.load_tables(folder).values()))
        assert set(cards.load_measurements(folder)) == needed, folder.name


def known() -> tuple[dict, dict]:
    """All tables by name, and all stored measurements."""
    tables, stored = {}, {}
    for folder in cards.table_folders():
        tables |= cards.load_tables(folder)
        stored |= cards.load_measurements(folder)
    return tables, stored
