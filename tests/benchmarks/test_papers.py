"""The page about the papers: what is stored, how it is shown, and that the page is up to date."""

import json
from pathlib import Path

import papers
import pytest

from mtmetrics.judgements.public_sets import datasets
from mtmetrics.reports.recipes import load_recipe

TABLE = {
    "recipe": {"name": "zhao2020-table1"},
    "columns": [{"lp": "de-en"}, {"lp": "fi-en"}],
    "rows": [
        {
            "title": "chrF++ [mini]",
            "values": [{"value": 0.5}, {"value": 0.7}],
            "published": {"de-en": 0.25, "cs-en": 0.1},
        },
        {
            "title": "Mover [mini, maps=m, layer=5]",
            "values": [
                {"value": None, "undefined": "not scored: no map in /a/b; do this"},
                {"value": 0.25},
            ],
            "published": {"de-en": 0.5, "fi-en": 0.75},
        },
        {"title": "RUSE", "published": {"de-en": 0.5}, "problem": "not part of this package"},
    ],
}


def test_cells_have_ours_and_the_papers() -> None:
    rows = papers.rows_of(TABLE)
    lines = papers.table(rows, ["cs-en", "de-en", "fi-en"]).splitlines()
    assert lines[0] == "|  | de-en | fi-en | average |"
    # The average is over what both have.
    assert lines[2] == "| chrF++ | 0.500 / 0.250 | 0.700 | 0.500 / 0.250 |"
    assert lines[3] == "| Mover [layer=5] | – / 0.500 | 0.250 / 0.750 | 0.250 / 0.750 |"
    assert len(lines) == 4


def test_what_is_not_run_says_why() -> None:
    assert papers.not_run(papers.rows_of(TABLE)) == [
        "- Mover [layer=5] (de-en): no map",
        "- RUSE: not part of this package",
    ]


def test_averages_and_words_are_shown_alike() -> None:
    document = {
        "rows": [
            {"title": "a", "measured": {"x": 0.5}, "published": {"x": 0.25}},
            {"title": "b", "measured": {}, "published": {"x": 0.25}, "problem": "lost"},
        ]
    }
    rows = papers.rows_of(document)
    assert papers.table(rows, ["x"]).splitlines()[2:] == ["| a | 0.500 / 0.250 |"]
    assert papers.not_run(rows) == ["- b: lost"]


def test_every_recipe_has_a_section_with_its_command() -> None:
    text = papers.page({})
    for name in papers.recipe_names():
        assert f"`mtmetrics evaluate --recipe {name} --preset mini" in text
    counted = papers.page({"zhao2020-table1": {"seconds": 1, "document": TABLE}})
    assert "| all | 250 | 219 | 2 |" in counted
    assert "| all | 250 | 219 | 0 |" in text


def test_the_page_is_what_the_script_writes() -> None:
    assert papers.main(["--check"]) == 0


def test_measures_what_is_there_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "papers.json"
    kept = {"seconds": 1, "document": TABLE}
    stored.write_text(json.dumps({"zhao2020-table1": kept}))
    monkeypatch.setattr(papers, "STORED", stored)
    monkeypatch.setattr(papers, "PAGE", tmp_path / "papers.md")
    monkeypatch.setattr(papers, "PRESET", "nothing")
    (tmp_path / "wmt17-cased").mkdir()
    rows = [
        {"lp": "de-en", "source": "s", "translation": text, "reference": "a b c", "human": human}
        for text, human in (("a b c", 1.0), ("a b x", 0.5), ("y y y", 0.0))
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "wmt17-cased" / "de-en.jsonl").write_text(lines)
    names = ["mathur2019-table1", "mathur2019-table3", "zhao2020-table3"]
    note = "The first three sentences."
    assert papers.main([*names, "--sets", str(tmp_path), "--note", note]) == 0
    found = json.loads(stored.read_text())
    assert found["zhao2020-table1"] == kept
    assert found.keys() == {"zhao2020-table1", "mathur2019-table1"}
    page = (tmp_path / "papers.md").read_text()
    assert "| chrF | " in page
    assert "BERTR, " in page
    assert page.count(f"\n{note}\n") == 1
    printed = capsys.readouterr().out
    assert "mathur2019-table3: left out, none of its sets" in printed
    assert "zhao2020-table3: left out, needs dictionaries" in printed


def test_sets_of_averages_are_those_of_their_tables() -> None:
    sets = papers._sets(load_recipe("belouadi2023-table2"))
    assert {*sets} <= {*datasets()}
    assert "mlqe-pe-test" in sets
