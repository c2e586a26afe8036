"""The tables of the papers: whole, plausible, and made of metrics that exist."""

import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.recipes import RecipeRow, load_recipe, recipe_names
from mtmetrics.evaluation.run import MetricSpec
from mtmetrics.inputs import language_pair

NAMES = [
    "belouadi2023-table5",
    "belouadi2023-table6",
    "mathur2019-table1",
    "mathur2019-table3",
    "song2021-table3",
    "song2021-table4",
    "song2021-table5",
    "zhao2020-table1",
    "zhao2020-table5",
]
# Averages that differ from the mean of their row in the paper itself.
AS_PRINTED = {("mathur2019-table1", "BiLSTM (TrainL)"), ("song2021-table5", "Leaderboard baseline")}


def rows(recipe: str) -> dict[str, RecipeRow]:
    return {row.title: row for row in load_recipe(recipe).rows}


def test_all_are_there() -> None:
    assert recipe_names() == NAMES
    with pytest.raises(InputError, match="recipe 'zhao2020': must be one of belouadi2023-table5"):
        load_recipe("zhao2020")


@pytest.mark.parametrize("name", NAMES)
def test_numbers(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.level in {"segment", "system"}
    assert len({row.title for row in recipe.rows}) == len(recipe.rows)
    for pair in recipe.pairs:
        language_pair(pair)
    for row in recipe.rows:
        assert [row.metric, row.column, row.why_not].count(None) == 2, row.title
        assert all(-1 <= value <= 1 for value in row.published.values())
        if row.average is not None and len(row.published) == len(recipe.pairs) and (name, row.title) not in AS_PRINTED:
            mean = sum(row.published.values()) / len(row.published)
            assert row.average == pytest.approx(mean, abs=0.00051), row.title


@pytest.mark.parametrize(
    ("recipe", "title", "pair", "number"),
    [
        ("zhao2020-table1", "SentBLEU", "tr-en", 0.538),
        ("zhao2020-table1", "Mover-2 + CLP(M-BERT) + LM", "fi-en", 0.633),
        ("zhao2020-table5", "Mover-2 + UMD(M-BERT)", "de-en", 0.973),
        ("mathur2019-table1", "BERTR", "zh-en", 0.687),
        ("mathur2019-table3", "ESIM (TrainL)", "ru-en", 0.921),
        ("song2021-table3", "SSS + BERTScore", "en-ru", 0.553),
        ("song2021-table5", "SSS", "ro-en", 0.694),
        ("belouadi2023-table5", "DistilScore", "cs-en", 0.4642),
        ("belouadi2023-table6", "SentSim (BERTScore)", "en-de", 0.0615),
    ],
)
def test_some_numbers_of_the_papers(recipe: str, title: str, pair: str, number: float) -> None:
    assert rows(recipe)[title].published[pair] == number


def test_what_could_not_be_read_is_left_out() -> None:
    row = rows("zhao2020-table5")["Cosine + CLP(LASER)"]
    assert set(row.published) == {"cs-en", "de-en", "fi-en", "lv-en", "zh-en"}
    assert all(row.published == {} for row in load_recipe("song2021-table4").rows)


def test_entries_take_the_preset() -> None:
    song = rows("song2021-table3")
    wmd = song["WMD"].entry("mini")
    assert wmd.metric == MetricSpec.parse("sentsim:mini:setting=src-mt,combine=sss+wmd")
    assert (wmd.part, wmd.falls) == ("wmd", True)
    # Both rows come from one run of the metric.
    whole = song["SSS + WMD"].entry("mini")
    assert (whole.metric, whole.part) == (wmd.metric, "score")
    laser = rows("zhao2020-table1")["Cosine + LASER"].entry("mini")
    assert (laser.metric, laser.why_not) == (None, "LASER is not part of this package")
