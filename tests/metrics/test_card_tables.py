"""Every table of measured numbers in a card is what the stored measurements say."""

import pytest

from mtmetrics.evaluation.card_tables import load_tables
from mtmetrics.evaluation.cards import cards, known_tables, table_folders, tables_in
from mtmetrics.evaluation.measurements import load_measurements

CARDS = [path for path in cards() if tables_in(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("card", CARDS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_tables_are_what_was_measured(card) -> None:
    """If this fails: ``mtmetrics evaluate --cards --data-root DIR`` writes the tables."""
    tables, measurements = known_tables()
    for name, text in tables_in(card.read_text(encoding="utf-8")).items():
        assert name in tables, name
        assert text == tables[name].render(measurements), name


def test_every_table_is_shown() -> None:
    shown = {name for card in CARDS for name in tables_in(card.read_text(encoding="utf-8"))}
    assert shown == set(known_tables()[0])


@pytest.mark.parametrize("folder", table_folders(), ids=lambda folder: folder.name)
def test_what_is_stored_is_what_the_tables_need(folder) -> None:
    needed = set().union(*(table.needs() for table in load_tables(folder).values()))
    assert set(load_measurements(folder)) == needed
