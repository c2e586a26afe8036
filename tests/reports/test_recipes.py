"""The tables of the papers: whole, plausible, and made of metrics that exist."""

import shlex
from pathlib import Path

import pytest

from mtmetrics.artifacts.presets import load_preset
from mtmetrics.checks import language_pair
from mtmetrics.cli.main import build_parser
from mtmetrics.errors import InputError
from mtmetrics.judgements.public_sets import datasets
from mtmetrics.judgements.readers import Condition
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import RowScores
from mtmetrics.reports.recipes import Recipe, RecipeRow, list_recipes, load_recipe
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.spec import MetricSpec

RUN = {
    "belouadi2023": "table4 table5 table6 table7",
    "mathur2019": "table1 table2-darr table2-pearson table3 table4 table5",
    "song2021": "table2 table3 table4 table5 table7 table8 table9 table10",
    "zhao2020": "table1 table3 table4 table5 table6 table7 table8",
}
NAMES = [f"{paper}-{table}" for paper, tables in RUN.items() for table in tables.split()]
# What is drawn or printed by calls of commands.
CALLED = {
    "belouadi2023": "figure3 figure4 figure5",
    "mathur2019": "figure1 figure1-crosses trains trainl",
    "song2021": "figure1 figure2",
    "zhao2020": "figure1 figure3 figure4",
}
# Rows of a table as bars, or at each layer.
DRAWN = [
    "song2021-figure3",
    "song2021-figure4",
    "song2021-figure5",
    "song2021-figure6",
    "song2021-figure7",
]
# Averages over tables.
AVERAGES = ["belouadi2023-table2", "zhao2020-figure2"]
# Averages that differ from the mean of their row in the paper itself.
AS_PRINTED = {
    ("mathur2019-table1", "BiLSTM (TrainL)"),
    ("song2021-table5", "Leaderboard baseline"),
    ("zhao2020-table7", "Cosine + UMD o CLP(LASER) + LM"),
    ("zhao2020-table7", "Mover-2 + CLP o UMD(M-BERT) + LM"),
}


def rows(recipe: str) -> dict[str, RecipeRow]:
    return {row.title: row for row in load_recipe(recipe).rows}


def test_all_are_listed_with_their_data() -> None:
    listed = {name: about for name, _, about in list_recipes()[1:]}
    called = [f"{paper}-{what}" for paper, listing in CALLED.items() for what in listing.split()]
    assert sorted(listed) == sorted([*NAMES, *called, *AVERAGES, *DRAWN])
    assert all(listed.values())
    with pytest.raises(InputError, match="recipe 'zhao2020': must be one of belouadi2023-figure3"):
        load_recipe("zhao2020")


@pytest.mark.parametrize(
    "name", [f"{paper}-{what}" for paper, all_ in CALLED.items() for what in all_.split()]
)
def test_calls_of_a_figure_are_commands_that_exist(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.runs
    places = {
        "data": "judged.jsonl",
        "preset": "mini",
        "out": "report",
        "model": recipe.model("mini"),
        "texts": "a.txt b.txt",
    }
    files = {"sets": [*recipe.pull], "text": ["a.txt"] * 6}
    assert bool(recipe.text) == any("{text" in line for line in recipe.runs)
    for line in recipe.runs:
        args = build_parser().parse_args(shlex.split(line.format(**places, **files)))
        for metric in getattr(args, "metric", None) or []:
            spec = MetricSpec.parse(metric)
            assert not dict(spec.options).keys() - {*METRICS[spec.metric].keywords()}
    assert {*recipe.pull} <= {*datasets()}


def kind(recipe: Recipe) -> str:
    tables = [load_recipe(mean.recipe) for mean in recipe.means.values()] or [recipe]
    return "pulled" if all(table.pull for table in tables) else "found"


def test_the_counts_in_the_documentation() -> None:
    recipes = [load_recipe(name) for name, *_ in list_recipes()[1:]]
    of = {
        what: [
            recipe
            for recipe in recipes
            if f"-{what}" in recipe.name and not recipe.name.endswith("-crosses")
        ]
        for what in ("table", "figure")
    }
    by_name: dict[str, set[str]] = {}
    for recipe in of["table"]:
        # Table 2 of Mathur et al. is two recipes.
        by_name.setdefault(recipe.name.removesuffix("-darr").removesuffix("-pearson"), set()).add(
            kind(recipe)
        )
    tables, figures = [*by_name.values()], [kind(recipe) for recipe in of["figure"]]
    rows = [row for recipe in of["table"] if not recipe.means for row in recipe.rows]
    ours = [row for row in rows if (row.metric or row.corpus) and not row.vectors]
    vectors = [row.vectors for row in rows if row.vectors]
    models = ", ".join(f"{name} {vectors.count(name)}" for name in ("LASER", "USE", "RCSLS"))
    found, half = tables.count({"found"}), tables.count({"pulled", "found"})
    texts = sum(bool(recipe.text) for recipe in of["figure"])
    lines = [
        f"| result tables | {len(tables)} | {tables.count({'pulled'})} | {found}, and {half} "
        f"half pulled |",
        f"| result figures | {len(figures)} | {figures.count('pulled')}, of which {texts} learn "
        f"from text that the user brings | {figures.count('found')} |",
        f"| all | {len(rows)} |",
        f"| of metrics of this package, or corpus BLEU by sacrebleu | {len(ours)} |",
        (
            "| of these: of UScore, after a production | "
            f"{sum(row.metric == 'uscore' for row in ours)} |"
        ),
        f"| with vectors that the user brings, or another encoder of sentences: {models} | {len(vectors)} |",
        f"| of other metrics of others, not run | {len(rows) - len(ours) - len(vectors)} |",
    ]
    text = (Path(__file__).parents[1] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert [line for line in lines if f"\n{line}" not in text] == []


def test_averages_are_of_rows_and_language_pairs_that_are_there() -> None:
    """The paper's averages are the means of its tables."""
    for name in AVERAGES:
        recipe = load_recipe(name)
        assert recipe.pairs == [*recipe.means]
        for column, mean in recipe.means.items():
            table = load_recipe(mean.recipe)
            assert (table.level, table.coefficient) == (recipe.level, recipe.coefficient)
            of = rows(mean.recipe)
            for row in (row for row in recipe.rows if column in row.published):
                average = of[row.title].average_over(mean.pairs or table.pairs)
                if (row.title, column) not in {
                    ("DistilScore", "WMT-17"),
                    ("UScore wrd+snt", "WMT-MQM"),
                }:  # as printed
                    assert row.published[column] == pytest.approx(average, abs=0.0006), (
                        name,
                        row.title,
                        column,
                    )


# The heads of the tables of public sets as they were published.
HEADERS = {
    "wmt-mqm": "lp src mt ref score raw system annotators domain year",
    "wmt17-da": "LP source translation reference HUMAN_score sentBLEU",
}


def test_fields_that_recipes_name_are_in_the_data_as_published() -> None:
    for recipe in (load_recipe(name) for name, *_ in list_recipes()[1:]):
        named = {row.column for row in recipe.rows if row.column}
        assert recipe.where.keys() <= {*recipe.pull}
        named |= {Condition.parse(where).field for where in recipe.where.values()}
        held = {field for name in recipe.pull for field in HEADERS.get(name, "").split()}
        assert named <= held, (
            f"{recipe.name}: {named - held} is no field of {' '.join(recipe.pull)}"
        )


def test_what_is_pulled_exists() -> None:
    pulled = [name for recipe in map(load_recipe, NAMES) for name in recipe.pull]
    metrics_tasks = {"wmt17-metrics", "wmt18-metrics", "wmt19-metrics"}
    others = {"wmt16-da", "wmt17-cased", "mlqe-pe-test", "multi30k-da", "eval4nlp-2021", "wmt-mqm"}
    assert {*pulled} == others | metrics_tasks
    assert {*pulled} <= {*datasets()}


@pytest.mark.parametrize("name", NAMES)
def test_numbers(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.level in {"segment", "system"}
    assert recipe.coefficient in {"pearson", "darr"}
    assert len({row.title for row in recipe.rows}) == len(recipe.rows)
    for pair in recipe.pairs:
        language_pair(pair)
    for row in recipe.rows:
        assert [
            row.metric,
            row.column,
            row.corpus or (row.why_not if row.metric is None else None),
        ].count(None) == 2
        if row.metric is not None:
            assert not row.options.keys() - {*METRICS[row.metric].keywords()}, row.title
        assert all(-1 <= value <= 1 for value in row.published.values())
        if (
            row.average is not None
            and len(row.published) == len(recipe.pairs)
            and (name, row.title) not in AS_PRINTED
        ):
            mean = sum(row.published.values()) / len(row.published)
            assert row.average == pytest.approx(mean, abs=0.00051), row.title


# Table, row, language pair, number.
PRINTED = """
zhao2020-table1 | SentBLEU | tr-en | 0.538
zhao2020-table1 | Mover-2 + CLP(M-BERT) + LM | fi-en | 0.633
zhao2020-table5 | Mover-2 + UMD(M-BERT) | de-en | 0.973
mathur2019-table1 | BERTR | zh-en | 0.687
mathur2019-table3 | ESIM (TrainL) | ru-en | 0.921
song2021-table3 | SSS + BERTScore | en-ru | 0.553
song2021-table5 | SSS | ro-en | 0.694
belouadi2023-table5 | DistilScore | cs-en | 0.4642
belouadi2023-table6 | SentSim (BERTScore) | en-de | 0.0615
belouadi2023-table4 | UScore++ wrd+snt | en-ru | 0.6414
belouadi2023-table7 | SentSim (WMD) | de-zh | -0.1154
zhao2020-table6 | Mover-1 + CLP o UMD(M-BERT) | de-en | 0.277
zhao2020-table7 | Mover-2 + CLP o UMD(M-BERT) + LM | tr-en | -0.036
zhao2020-table8 | Mover-2 + CLP(M-BERT) | kk-en | 0.993
song2021-table2 | SSS + WMD (MT-REF) | en-fr | 0.501
song2021-table4 | SSS | cs-en | 0.62232
song2021-table7 | BERTScore | tr-en | 0.718
song2021-table8 | SMD + BERTScore | zh-en | 0.503
mathur2019-table2-darr | BERTR | en-tr | 0.457
mathur2019-table2-pearson | BERTR | en-zh | 0.803
mathur2019-table4 | ESIM (TrainL) | en-lv | 0.954
mathur2019-table5 | ESIM (TrainL) | en-pt | 0.996
"""


def test_some_numbers_of_the_papers() -> None:
    for line in PRINTED.strip().splitlines():
        recipe, title, pair, number = line.split(" | ")
        assert rows(recipe)[title].published[pair] == float(number), line


def test_what_could_not_be_read_is_left_out() -> None:
    row = rows("zhao2020-table5")["Cosine + CLP(LASER)"]
    assert set(row.published) == {"cs-en", "de-en", "fi-en", "lv-en", "tr-en", "zh-en"}
    assert rows("song2021-table9")["SMD"].published == {}


def test_figures_draw_the_parts_that_the_tables_have() -> None:
    for figure, table in (("figure5", "table5"), ("figure6", "table3"), ("figure7", "table4")):
        drawn, printed = load_recipe(f"song2021-{figure}"), load_recipe(f"song2021-{table}")
        assert (drawn.rows, drawn.pairs, drawn.pull) == (printed.rows, printed.pairs, printed.pull)
    for name, side in (("song2021-figure3", "source"), ("song2021-figure4", "reference")):
        recipe = load_recipe(name)
        [row] = recipe.rows
        assert recipe.layers
        assert recipe.pairs == load_recipe("song2021-table3").pairs
        assert (row.part, row.falls, row.options["against"]) == ("wmd", True, side)


class _Depth:
    """A pool whose scorers have encoders of a number of layers."""

    def __init__(self, depth: int | None) -> None:
        self.encoder_depth = depth


@pytest.mark.parametrize(("depth", "layer"), [(6, 5), (12, 10), (24, 20), (4, 3), (None, None)])
def test_layers_are_those_of_the_paper_or_as_deep(
    depth: int | None, layer: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rows("song2021-table7")["BERTScore"]
    pool = ModelPool(local_files_only=True)
    assert dict(row.entry("paper").metric.options)["layer"] == 10
    assert "layer" not in dict(row.entry("mini").metric.options)
    monkeypatch.setattr(MetricSpec, "load", lambda *_: _Depth(depth))
    entry = row.at_its_layer(row.entry("mini"), pool, "de-en")
    assert dict(entry.metric.options).get("layer") == layer
    # The user's layer stays.
    for preset in ("paper", "mini"):
        asked = {"sentsim": MetricSpec.parse("sentsim::layer=3")}
        entry = row.at_its_layer(row.entry(preset, asked), pool, "de-en")
        assert dict(entry.metric.options)["layer"] == 3


def test_a_row_whose_encoder_is_not_there_keeps_its_layer_open(tmp_path: Path) -> None:
    row = rows("song2021-table7")["BERTScore"]
    entry = row.entry("mini", {"sentsim": MetricSpec("sentsim", str(tmp_path))})
    pool = ModelPool(local_files_only=True)
    assert row.at_its_layer(entry, pool, "de-en") == entry


def test_maps_are_for_the_rows_that_have_one() -> None:
    recipe = load_recipe("zhao2020-table6")
    entries = recipe.entries("mini", {}, maps="mine")
    for row, entry in zip(recipe.rows, entries, strict=True):
        if entry.metric is not None:
            is_mapped = row.options.get("map", "none") != "none"
            assert ("maps" in dict(entry.metric.options)) == is_mapped, row.title
    # Maps that the user names for a metric, or for vectors, win.
    asked = {"xmoverscore": MetricSpec.parse("xmoverscore:mini:maps=other")}
    mapped = rows("zhao2020-table6")["Mover-1 + CLP(M-BERT)"]
    assert dict(mapped.entry("mini", asked, maps="mine").metric.options)["maps"] == "other"
    vectors = {"LASER": {"encoder": "l.parquet", "maps": "theirs"}}
    laser = rows("zhao2020-table6")["Cosine + CLP(LASER)"]
    assert dict(laser.entry("mini", {}, vectors, "mine").metric.options)["maps"] == "theirs"
    with pytest.raises(InputError, match="--maps mine: recipe song2021-table3 has no rows with"):
        load_recipe("song2021-table3").entries("mini", {}, maps="mine")


def test_entries_take_the_preset() -> None:
    song = rows("song2021-table3")
    wmd = song["WMD"].entry("mini")
    assert wmd.metric == MetricSpec.parse("sentsim:mini:against=source,combine=sss+wmd")
    assert (wmd.part, wmd.falls) == ("wmd", True)
    # Both rows come from one run of the metric.
    whole = song["SSS + WMD"].entry("mini")
    assert (whole.metric, whole.part) == (wmd.metric, "score")


def test_vectors_of_other_models_are_brought() -> None:
    row = rows("zhao2020-table1")["Cosine + LASER"]
    absent = row.entry("paper")
    assert absent.metric is None
    assert absent.why_not.startswith(
        "vectors of LASER are not part of this package; --vectors LASER=FILE.parquet brings them"
    )
    # Another preset's mean vectors stand in their place, and the title says so.
    other = row.entry("mini")
    assert dict(other.metric.options)["encoder"] == "mini-encoder"
    assert "layer" not in dict(other.metric.options)
    marked = row.marked(RowScores(other, [[1.0]], ["m|v:1"]), ["de-en"])
    assert marked.entry.title == "Cosine + LASER [mini, encoder=mini-encoder]"
    named = row.entry("paper", {}, {"LASER": {"encoder": "my/labse"}})
    marked = row.marked(RowScores(named, [[1.0]], ["m|v:1"]), ["de-en"])
    assert marked.entry.title == "Cosine + LASER [encoder=my/labse]"
    words = rows("zhao2020-table5")["Mover-1 + RCSLS"]
    assert "--vectors RCSLS=FOLDER/{lang}.vec brings them" in words.entry("paper").why_not
    given = {"RCSLS": {"encoder": "r/{lang}.vec"}}
    assert ("encoder", "r/{lang}.vec") in words.entry("paper", {}, given).metric.options
    stored = {"LASER": {"encoder": "l.parquet"}}
    metric = row.entry("mini", {}, stored).metric
    assert metric == MetricSpec.parse(
        "xmoverscore:mini:similarity=cosine,map=none,lm=none,encoder=l.parquet"
    )
    mapped = rows("zhao2020-table6")["Cosine + UMD o CLP(LASER) + LM"]
    assert mapped.lm
    lacking = mapped.entry("paper", {}, stored).why_not
    assert lacking == (
        "needs a map of these vectors (mtmetrics train maps --encoder l.parquet --level sentence): "
        "--vectors LASER=l.parquet,maps=DIR"
    )
    metric = mapped.entry("paper", {}, {"LASER": {"encoder": "l.parquet", "maps": "m"}}).metric
    assert metric == MetricSpec.parse(
        "xmoverscore:paper:similarity=cosine,map=clp+umd,encoder=l.parquet,maps=m"
    )
    named = rows("zhao2020-table8")
    assert sum(row.vectors == "LASER" for row in named.values()) == 5
    with pytest.raises(
        InputError, match="--vectors USE: recipe zhao2020-table1 has rows of LASER, RCSLS"
    ):
        load_recipe("zhao2020-table1").entries("paper", {}, {"USE": {"encoder": "u"}})


def test_the_user_may_name_the_preset_of_a_metric() -> None:
    asked = {"uscore": MetricSpec.parse("uscore:made/{lp}:lm=none")}
    metric = rows("belouadi2023-table5")["UScore+ wrd"].entry("paper", asked).metric
    assert metric == MetricSpec.parse("uscore:made/{lp}:combine=wrd,weights=+,lm=none")
    recipe = load_recipe("belouadi2023-table5")
    presets = {entry.metric.preset for entry in recipe.entries("paper", asked) if entry.metric}
    assert presets == {None, "paper", "made/{lp}", "wmt20-comet-qe-da"}
    comet = rows("belouadi2023-table5")["COMET-QE"]
    assert comet.entry("mini").metric == MetricSpec("comet", "wmt20-comet-qe-da")
    assert comet.entry("mini", {"comet": MetricSpec("comet", "made")}).metric == MetricSpec(
        "comet", "made"
    )
    with pytest.raises(
        InputError,
        match="--metric bertr: recipe belouadi2023-table5 has rows of comet, sentbleu, xmover",
    ):
        recipe.entries("paper", {"bertr": MetricSpec("bertr")})


def test_rows_with_other_models_than_those_of_paper_have_a_preset_of_their_own() -> None:
    row = rows("song2021-table7")["WMD"]
    own = row.entry("paper").metric
    settings = load_preset("sentsim", own.preset).settings
    assert settings["mt-ref"]["words"] == "FacebookAI/roberta-base"
    assert row.entry("mini").metric.preset == "mini"
    assert row.marked(scored(row, "paper"), ["de-en"]).entry.title == "WMD"


def scored(row: RecipeRow, preset: str, *signatures: str, asked: str | None = None) -> RowScores:
    entry = row.entry(preset, {row.metric: MetricSpec.parse(asked)} if asked else {})
    return RowScores(entry, [[1.0]] * max(1, len(signatures)), list(signatures or ["m|v:1"]))


@pytest.mark.parametrize(
    ("preset", "asked", "signatures", "mark"),
    [
        ("paper", None, ["x|lm:gpt2*0.1|v:1"], ""),
        ("mini", None, ["x|lm:tiny*0.1|v:1"], " [mini]"),
        ("paper", None, ["x|lm:none|v:1"], " [no language model]"),
        ("mini", None, ["x|lm:tiny|v:1", "x|v:1"], " [mini, no language model for de-zh]"),
        ("paper", "xmoverscore::layer=8", ["x|lm:gpt2|v:1"], " [layer=8]"),
        ("mini", "xmoverscore:dir/{lp}:ngram=2", ["x|lm:gpt2|v:1"], " [dir/{lp}]"),
    ],
)
def test_what_is_not_run_as_published_has_a_mark(
    preset: str, asked: str, signatures: list[str], mark: str
) -> None:
    row = rows("zhao2020-table1")["Mover-2 + CLP(M-BERT) + LM"]
    pairs = ["de-en", "de-zh"][: len(signatures)]
    found = row.marked(scored(row, preset, *signatures, asked=asked), pairs)
    assert found.entry.title == f"Mover-2 + CLP(M-BERT) + LM{mark}"
    # Rows without models, and those that the paper ran without a language model, have no mark.
    table = rows("zhao2020-table1")
    for title, of_row in (
        ("chrF++", []),
        ("SentBLEU", []),
        ("Mover-2 + CLP(M-BERT)", ["x|lm:none|v:1"]),
    ):
        given = scored(table[title], "paper" if of_row else "mini", *of_row)
        assert table[title].marked(given, ["de-en"]).entry.title == title
