"""Fills the page of the guide about the papers with what was measured: ``papers.py --sets DIR``.

    mtmetrics data pull wmt15-da wmt16-da wmt17-cased wmt17-metrics mlqe-pe-test ... --out SETS
    python tests/benchmarks/papers.py --sets SETS --text zhao2020-table3=cs-en.tsv,de-en.tsv,fi-en.tsv

Each table and figure of the papers whose sets and texts are there is run with a bundled preset by
``mtmetrics evaluate --recipe``. What comes out is stored in ``papers.json`` beside this
file after each recipe, and the page `tools/guide/papers.md` is written from all that is stored.
A recipe whose sets or texts are not there keeps what is stored of it. Without ``--sets`` nothing is
measured, and the page alone is written; with ``--check`` nothing is written, and the exit code is 1
where the page is not what the script would write."""

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.cli.main import main as mtmetrics_main
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import write_atomic
from mtmetrics.reports.recipes import Recipe, load_recipe, recipe_names
from mtmetrics.reports.styles import correlation_text, markdown
from mtmetrics.statistics.correlation import Correlation

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tools" / "guide" / "papers.md"
STORED = Path(__file__).with_suffix(".json")
PRESET = "mini"
_PAPERS = {
    "zhao2020": "Zhao et al. (2020): XMoverScore",
    "mathur2019": "Mathur et al. (2019): BERTR, BiLSTM, ESIM",
    "song2021": "Song et al. (2021): SentSim",
    "belouadi2023": "Belouadi and Eger (2023): UScore",
}
_BEGIN = """\
# Tables and figures of the papers

`mtmetrics evaluate --recipes` lists the tables and figures of the four papers that this package
runs, with their data:

```bash
mtmetrics evaluate --recipes | head -4
```

```text
{listing}
```

`--recipe NAME` runs one. It fetches the data first, and prints the paper's numbers beside those
measured. The papers used large models. This page shows what `{preset}`, which ships with the
package, gives in their place. So the numbers say how far `{preset}` is from the papers, not whether
the papers are right. With the papers' models, leave `--preset` out.

In a cell the number of `{preset}` comes first, then the paper's. One number alone is ours; after a
dash it is the paper's, and the row was not run there. *average* is over the columns that both have.

`mini-maps` has maps of words alone. Where a command says `--maps MAPS`, MAPS was a copy of that folder,
with maps of sentence vectors that were fitted for this page from parallel text:
`mtmetrics train maps --encoder mini-encoder --level sentence --lp de-en --parallel de-en.jsonl
--sentences 3000 --half --out MAPS` for German, and alike for the other languages.

{count}

One command makes this page: [tests/benchmarks/papers.py](../../tests/benchmarks/papers.py). Do not
edit it by hand.
"""


class Row(NamedTuple):
    """A row of a table: our numbers and the paper's.

    Attributes:
        title: of the row.
        measured: column -> our number.
        published: column -> the paper's number.
        problem: why nothing was measured; empty where something was.
        missing: column -> why it was not measured, where others were.
    """

    title: str
    measured: dict[str, float]
    published: dict[str, float]
    problem: str = ""
    missing: Mapping[str, str] = {}


def rows_of(document: Mapping[str, Any]) -> list[Row]:
    """The rows of what ``--recipe NAME --format json`` prints about a table."""
    rows = []
    names = [column["lp"] for column in document.get("columns", [])]
    for row in document["rows"]:
        measured: dict[str, float] = {}
        missing: dict[str, str] = {}
        if "measured" in row:
            measured = {name: value for name, value in row["measured"].items() if value is not None}
        for name, value in zip(names, row.get("values", []), strict=False):
            if value["value"] is not None:
                measured[name] = value["value"]
            else:
                missing[name] = value["undefined"].removeprefix("not scored: ")
        published = row["published"]
        problem = row.get("problem", "" if measured else "; ".join(missing.values()))
        rows.append(
            Row(_title(row["title"]), measured, published, problem, missing if measured else {})
        )
    return rows


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """The rows in Markdown, ours before the paper's; columns without any number of ours are left
    out, and so are rows without one."""
    run = [row for row in rows if row.measured]
    kept = [name for name in columns if any(name in row.measured for row in run)]
    lines = []
    for row in run:
        cells = [_pair(row.measured.get(name), row.published.get(name)) for name in kept]
        both = [name for name in kept if name in row.measured and name in row.published]
        if len(kept) > 1:
            ours = _mean([row.measured[name] for name in both or row.measured])
            cells.append(_pair(ours, _mean([row.published[name] for name in both])))
        lines.append([row.title, *cells])
    head = ["", *kept, *(["average"] if len(kept) > 1 else [])]
    return markdown([head, *lines], range(1, len(head))) if lines else ""


def not_run(rows: Sequence[Row]) -> list[str]:
    """A line for each reason why rows, or some of their columns, were not measured."""
    titles_of_reason: dict[str, list[str]] = {}
    for row in rows:
        if not row.measured:
            titles_of_reason.setdefault(_short(row.problem), []).append(row.title)
        for name, reason in row.missing.items():
            titles_of_reason.setdefault(_short(reason), []).append(f"{row.title} ({name})")
    return [
        f"- {', '.join(titles)}: {reason or 'the tables that are averaged say why'}"
        for reason, titles in titles_of_reason.items()
    ]


def layers(document: Mapping[str, Any]) -> str:
    """A figure of layers in Markdown: the mean correlation at each."""
    lines = [[str(row["layer"]), _number(row["pearson"]["mean"])] for row in document["layers"]]
    return markdown([["layer", PRESET], *lines], range(2))


def command(recipe: Recipe, *, has_maps: bool = False) -> str:
    """The command that runs a table or figure, as a user types it.

    Args:
        recipe: the table or figure.
        has_maps: whether it was run with other maps than those of the preset.
    """
    words = [f"mtmetrics evaluate --recipe {recipe.name} --preset {PRESET}"]
    if has_maps:
        words.append("--maps MAPS")
    if recipe.text:
        words.append("--text FILE ...")
    if recipe.draws:
        words.append("--report DIR")
    return " ".join(words)


def section(recipe: Recipe, stored: Mapping[str, Any] | None) -> list[str]:
    """The paragraphs about a table or figure.

    Args:
        recipe: the table or figure.
        stored: what was measured; None where nothing was.
    """
    title = recipe.title.partition(":")[2].strip()
    label = recipe.title.partition(" of ")[0]
    has_maps = bool(stored and stored.get("has_maps"))
    paragraphs = [f"### {label}: {title}", f"`{command(recipe, has_maps=has_maps)}`"]
    if recipe.text:
        paragraphs.append(f"FILE: {recipe.text}.")
    if recipe.bars:
        drawn = load_recipe(recipe.bars).title.partition(" of ")[0]
        return [*paragraphs, f"The numbers are those of {drawn}."]
    if stored is None:
        sets = " ".join(dict.fromkeys(_sets(recipe)))
        where = f"`mtmetrics data pull {sets}` fetches it" if sets else recipe.data
        return [*paragraphs, f"Not measured yet. Data: {where}."]
    document = stored["document"]
    if "output" in document:
        paragraphs.append(document["output"])
    elif "layers" in document:
        paragraphs.append(layers(document))
    else:
        rows = rows_of(document)
        reasons = "\n".join(not_run(rows))
        paragraphs += [table(rows, recipe.pairs), f"Not run:\n\n{reasons}" if reasons else ""]
    return [paragraph for paragraph in [*paragraphs, stored.get("note")] if paragraph]


def counts(stored: Mapping[str, Any]) -> str:
    """How many rows of each paper's tables were measured, in Markdown."""
    lines = []
    for paper, title in _PAPERS.items():
        numbers = [0, 0, 0]
        for recipe in _recipes(paper):
            if not recipe.rows or recipe.means or recipe.bars or recipe.layers:
                continue
            numbers[0] += len(recipe.rows)
            numbers[1] += sum(row.metric is not None or row.corpus for row in recipe.rows)
            if recipe.name in stored:
                rows = rows_of(stored[recipe.name]["document"])
                numbers[2] += sum(bool(row.measured) for row in rows)
        lines.append([title, *map(str, numbers)])
    total = [str(sum(int(line[number]) for line in lines)) for number in (1, 2, 3)]
    head = ["rows of tables", "all", "of metrics of this package", "measured here"]
    return markdown([head, *lines, ["all", *total]], range(1, 4))


def page(stored: Mapping[str, Any]) -> str:
    """The page, from what was measured: name of a recipe -> its document and its seconds."""
    lines = _run(["evaluate", "--recipes"])[1].splitlines()[:4]
    # The columns of the whole list are too wide for a page.
    listing = "\n".join(re.sub(" {2,}", "  ", re.sub("─+", "───", line)) for line in lines)
    paragraphs = [
        _BEGIN.format(listing=listing, preset=PRESET, count=counts(stored)).strip(),
    ]
    for paper, title in _PAPERS.items():
        paragraphs.append(f"## {title}")
        for recipe in _recipes(paper):
            paragraphs += section(recipe, stored.get(recipe.name))
    return "\n\n".join(paragraphs) + "\n"


def measure(recipe: Recipe, args: argparse.Namespace) -> dict[str, Any] | None:
    """Runs a table or figure; None, after a line that says why, where it cannot be run.

    Args:
        recipe: the table or figure.
        args: the arguments of the script.
    """
    if not any((Path(args.sets) / name).is_dir() for name in _sets(recipe)):
        print(f"{recipe.name}: left out, none of its sets is in {args.sets}", flush=True)
        return None
    texts = dict(item.split("=", 1) for item in args.text).get(recipe.name, "")
    if recipe.text and not texts:
        print(f"{recipe.name}: left out, needs {recipe.text}", flush=True)
        return None
    words = ["evaluate", "--recipe", recipe.name, "--preset", PRESET, "--data", args.sets]
    words += ["--quiet", "--local-files-only"]
    words += ["--text", *texts.split(",")] if texts else []
    words += (
        ["--maps", args.maps] if args.maps and any(row.is_mapped for row in recipe.rows) else []
    )
    words += [] if recipe.runs else ["--format", "json"]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        words += ["--report", folder] if recipe.draws else []
        code, output, messages = _run(words)
        # Models that a recipe trains lie in the folder, whose name means nothing to a reader.
        output = output.replace(f"{folder}/", "")
    seconds = round(time.monotonic() - began)
    if code:
        reason = (messages.strip().splitlines() or [f"exit code {code}"])[-1]
        print(f"{recipe.name}: {seconds} s, not run: {reason}", flush=True)
        return None
    print(f"{recipe.name}: {seconds} s", flush=True)
    document = json.loads(output) if not recipe.runs else {"output": _tables_in(output)}
    measured: dict[str, Any] = {"seconds": seconds, "document": _rounded(document)}
    if "--maps" in words:
        measured["has_maps"] = True
    return measured | ({"note": args.note} if args.note else {})


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, stores and writes the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="RECIPE", help="recipes (default: all)")
    parser.add_argument("--sets", metavar="DIR", help="folder with the public sets as folders")
    parser.add_argument(
        "--text",
        nargs="+",
        default=[],
        metavar="RECIPE=FILE,...",
        help="texts that a recipe reads (its --text)",
    )
    parser.add_argument("--maps", metavar="NAME|DIR", help="maps (default: those of the preset)")
    parser.add_argument(
        "--note", metavar="TEXT", help="a remark that stands under each table that is measured now"
    )
    parser.add_argument("--check", action="store_true", help="compare the page, write nothing")
    args = parser.parse_args(argv)
    stored: dict[str, Any] = {}
    if STORED.is_file():
        stored = json.loads(STORED.read_text(encoding="utf-8"))
    if args.check:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page(stored))
    known = recipe_names()
    for name in args.names:
        if name not in known:
            raise InputError(f"{name}: no recipe; there are: {', '.join(known)}")
    recipes = [load_recipe(name) for name in args.names or known]
    # Bars draw the numbers of a table.
    for recipe in (recipe for recipe in recipes if args.sets and not recipe.bars):
        measured = measure(recipe, args)
        if measured is not None:
            stored[recipe.name] = measured
            text = json.dumps(stored, ensure_ascii=False, indent=1, sort_keys=True)
            write_atomic(STORED, text + "\n")
    write_atomic(PAGE, page(stored))
    return 0


def _recipes(paper: str) -> list[Recipe]:
    """The tables of a paper in the order of their numbers, then its figures."""
    recipes = [load_recipe(name) for name in recipe_names() if name.startswith(paper)]

    def place(recipe: Recipe) -> tuple[bool, int, str]:
        """Whether it is a figure, and its number."""
        number = recipe.title.split()[1]
        return recipe.title.startswith("Figure"), int(number) if number.isdigit() else 99, number

    return sorted(recipes, key=place)


def _sets(recipe: Recipe) -> list[str]:
    """Names of the public sets that a recipe reads, or that the tables of its averages read."""
    tables = [load_recipe(mean.recipe) for mean in recipe.means.values()]
    return [name for table in [recipe, *tables] for name in table.pull]


def _run(words: Sequence[str]) -> tuple[int, str, str]:
    """Runs a command in this process: its exit code, and what it printed."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = mtmetrics_main([*words])
    return code, stdout.getvalue(), stderr.getvalue()


def _tables_in(output: str) -> str:
    """The tables of a Markdown text, without what stands between them."""
    blocks = [block for block in output.split("\n\n") if block.startswith("|")]
    return "\n\n".join(blocks)


def _rounded(value: Any) -> Any:
    """Plain data with four decimals."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def _pair(ours: float | None, published: float | None) -> str:
    """A cell: our number, then the paper's."""
    if ours is None:
        return "" if published is None else f"– / {_number(published)}"
    return _number(ours) if published is None else f"{_number(ours)} / {_number(published)}"


def _number(value: float) -> str:
    return correlation_text(Correlation(value))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _short(reason: str) -> str:
    """A reason up to its first semicolon, after which the advice for the user stands, without folders
    of this machine."""
    return re.sub(r" (in )?/\S+", "", reason.partition(";")[0])


def _title(title: str) -> str:
    """The title of a row with its differences from the paper in brackets, but for the preset and
    the maps, which the whole page has."""
    name, bracket, differences = title.partition(" [")
    items = dict.fromkeys(re.split("[,;] ", differences.removesuffix("]")))
    kept = [item for item in items if item != PRESET and not item.startswith("maps=")]
    return f"{name} [{', '.join(kept)}]" if bracket and kept else name


if __name__ == "__main__":
    sys.exit(main())
