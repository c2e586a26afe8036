"""``mtmetrics evaluate --recipe``: a table or figure of a paper, from its data to the report."""

import argparse
import contextlib
import dataclasses
import io
import math
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics._version import __version__
from mtmetrics.checks import names_of_pair
from mtmetrics.cli import options
from mtmetrics.cli.data import pulled
from mtmetrics.cli.evaluate import layer_studies, save_layers
from mtmetrics.cli.judged_files import judged_files
from mtmetrics.cli.output import check_target, print_report, print_warnings
from mtmetrics.errors import InputError, MTMetricsError

if TYPE_CHECKING:
    from mtmetrics.judgements.judged import Judged
    from mtmetrics.reports.agreement import Measure, MetricTable
    from mtmetrics.reports.metric_runs import Entry
    from mtmetrics.reports.recipes import Recipe

_WARNING = "mtmetrics: warning: "
_FORWARDED = ("device", "dtype", "batch_tokens")


def run_recipe(args: argparse.Namespace) -> None:
    """Runs the table or figure that the arguments name, on their data, or on what is public."""
    from mtmetrics.reports.agreement import Measure
    from mtmetrics.reports.recipes import load_recipe

    recipe = load_recipe(args.recipe)
    if args.column or args.parts or args.layers:
        raise InputError("--recipe names its own rows; leave out --column, --parts and --layers")
    measure = Measure(args.coefficient or recipe.coefficient, args.group)
    if (measure.label, args.level or recipe.level) != (recipe.coefficient, recipe.level):
        what = f"the paper's numbers are {recipe.coefficient} of each {recipe.level}"
        raise InputError(f"--recipe {recipe.name}: {what}; leave out other choices")
    args.level = recipe.level
    if args.report is not None:
        check_target(args.report, "--report", folder=True)
    if recipe.draws and args.report is None:
        raise InputError(
            f"--recipe {recipe.name}: draws a picture, or several tables; say with --report DIR "
            "where"
        )
    if recipe.runs and (args.metric or args.vectors):
        raise InputError(
            f"--recipe {recipe.name}: its calls name their metrics; leave out --metric and "
            "--vectors"
        )
    texts = len({place for line in recipe.runs for place in re.findall(r"{text\[\d+]}", line)})
    if len(args.text or []) != texts:
        needed = f"pass --text: {recipe.text}" if texts else "leave out --text, it reads none"
        raise InputError(f"--recipe {recipe.name}: {needed}")
    if recipe.means:
        _print_averages(args, recipe, measure)
        return
    _find_data(args, recipe)
    if recipe.runs:
        _write(args.report, recipe, _called(args, recipe))
    elif recipe.layers:
        _draw_layers(args, recipe, measure)
    else:
        _print_table(args, recipe, measure)


def _find_data(args: argparse.Namespace, recipe: "Recipe", *, as_sets: bool = False) -> None:
    """The files that the user named, or the recipe's public sets: those in a folder that the user
    named, else fetched where they are not there yet.

    Args:
        as_sets: whether files by themselves will not do, since they do not say which table they are
            for.
    """
    folders = [(name, Path(path) / name) for path in args.data or [] for name in recipe.pull]
    sets = [(name, folder) for name, folder in folders if folder.is_dir()]
    if args.data and not sets:
        if as_sets:
            needed = (
                f"a folder with {' or '.join(recipe.pull)}, as 'mtmetrics data pull --out' makes "
                "it, is needed"
            )
            raise InputError(f"--data {' '.join(args.data)}: {needed}")
        return
    if not (recipe.pull or recipe.data):
        return
    if not recipe.pull:
        raise InputError(
            f"--recipe {recipe.name}: its data cannot be pulled; pass --data: {recipe.data}"
        )
    if not sets:
        for name in recipe.pull:
            _announce(name)
        sets = [(name, Path(pulled(name)["folder"])) for name in recipe.pull]
    args.data = [str(folder) for _, folder in sets]
    args.where = args.where or next(
        (recipe.where[name] for name, _ in sets if name in recipe.where), None
    )


def _announce(name: str) -> None:
    """Says how much of a public set is going to be fetched."""
    from tqdm import tqdm

    from mtmetrics.artifacts.download import is_offline
    from mtmetrics.judgements.public_sets import datasets

    dataset = datasets()[name]
    missing = [file for file in dataset.files if not (dataset.cache / file).exists()]
    if missing and not (options.quiet or is_offline()):
        size = dataset.size(missing)
        much = "size not told" if size is None else f"{tqdm.format_sizeof(size)}B"
        about = f"{len(missing)} files, {much}, to {dataset.cache}; licence: {dataset.licence}"
        print(f"mtmetrics: {name}: fetching {about}", file=sys.stderr)


def _print_averages(args: argparse.Namespace, recipe: "Recipe", measure: "Measure") -> None:
    """Runs the tables whose averages the recipe has; one that cannot be run says why, and the
    others go on."""
    from mtmetrics.reports.agreement_report import report_metrics
    from mtmetrics.reports.averages import report_averages
    from mtmetrics.reports.recipes import load_recipe

    recipes = [
        load_recipe(name) for name in dict.fromkeys(mean.recipe for mean in recipe.means.values())
    ]
    asked, vectors = _asked(args)
    dataclasses.replace(recipe, rows=[row for one in recipes for row in one.rows]).entries(
        "paper", asked, vectors
    )
    tables = {}
    for one in recipes:
        own = argparse.Namespace(**vars(args))
        own.level = one.level
        try:
            _find_data(own, one, as_sets=len(recipes) > 1)
            tables[one.name] = _measured(own, one, measure)
        except MTMetricsError as error:
            print(f"mtmetrics: {one.name}: not run: {error}", file=sys.stderr)
    if not tables:
        raise MTMetricsError(
            f"--recipe {recipe.name}: nothing could be run; the lines above say why"
        )
    report = report_averages(recipe, tables)
    print_report(report, args)
    if args.report is not None:
        parts = [report.render("markdown"), *_picture_of_averages(args.report, tables, recipe)]
        parts += [
            report_metrics(tables[one.name], {}, one).render("markdown")
            for one in recipes
            if one.name in tables
        ]
        _write(args.report, recipe, parts)


def _print_table(args: argparse.Namespace, recipe: "Recipe", measure: "Measure") -> None:
    from mtmetrics.reports.agreement_report import report_metrics

    recipe.entries("paper", *_asked(args))
    table = _measured(args, recipe, measure)
    report = report_metrics(table, {"field": args.field}, recipe)
    print_report(report, args)
    if args.report is not None:
        picture = (
            _bars(args.report, table, recipe)
            if recipe.bars
            else _picture(args.report, table, recipe)
        )
        _write(args.report, recipe, [report.render("markdown"), *picture])


def _draw_layers(args: argparse.Namespace, recipe: "Recipe", measure: "Measure") -> None:
    """Prints and draws how the rows of a figure agree with people at each layer of the encoder."""
    from mtmetrics.reports.agreement import remarks
    from mtmetrics.reports.agreement_report import report_layers

    args.layers = "all"
    [entry] = _entries(args, recipe)
    files = _of_recipe(judged_files(args), recipe)
    studies = layer_studies(args, entry, files, measure, intervals=True, recipe=recipe)
    spec = entry.metric
    report = report_layers(studies, {"recipe": recipe.name, "metric": str(spec)})
    print_report(report, args)
    for table in studies.values():
        print_warnings(remarks(table))
    path = Path(args.report) / f"{recipe.name}.svg"
    path.parent.mkdir(exist_ok=True)
    save_layers(str(path), studies, str(spec))
    _write(args.report, recipe, [report.render("markdown"), f"![{recipe.title}]({path.name})"])


def _asked(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """The metrics that the user names, by their names, and the stored vectors, by their models."""
    specs = options.metric_specs(args, usual=()).values()
    return {spec.metric: spec for spec in specs}, dict(map(_stored_vectors, args.vectors or []))


def _measured(args: argparse.Namespace, recipe: "Recipe", measure: "Measure") -> "MetricTable":
    """Runs the rows of a table on the data of the arguments, and says what is unusual; of the
    metrics and vectors that the user names those that it has rows of count."""
    from mtmetrics.reports.agreement import check_table, remarks, usual_test
    from mtmetrics.reports.recipes import judge_recipe

    if recipe.bars:
        args.ci = True  # whiskers
    test = args.significance or usual_test(measure)
    check_table(measure, test, intervals=args.ci)
    entries = _entries(args, recipe)
    files = _of_recipe(judged_files(args), recipe)
    pool = options.model_pool(args)
    with options.scoring(sum(entry.metric is not None for entry in entries) * sum(map(len, files))):
        runs, table = judge_recipe(
            recipe, entries, files, pool, measure, test=test, intervals=args.ci
        )
    print_warnings([*runs.notes(), *remarks(table)])
    return table


def _entries(args: argparse.Namespace, recipe: "Recipe") -> "list[Entry]":
    """The rows of a table as they are run, with those metrics and vectors of the user that it has
    rows of."""
    known = {name for row in recipe.rows for name in (row.metric, row.vectors)}
    given = (
        {name: value for name, value in table.items() if name in known} for table in _asked(args)
    )
    return recipe.entries(args.preset or "paper", *given)


def _stored_vectors(text: str) -> tuple[str, dict[str, str]]:
    """The model that an argument of ``--vectors`` names, and the options that its vectors and maps
    are."""
    model, equals, rest = text.partition("=")
    file, _, maps = rest.partition(",maps=")
    if not (model and equals and file):
        raise InputError(
            f"--vectors {text}: MODEL=FILE.parquet, or MODEL=FILE.parquet,maps=DIR, is needed"
        )
    if file.endswith(".parquet") and not Path(file).is_file():
        raise InputError(f"--vectors {text}: {file}: no such file")
    return model, {"encoder": file, **({"maps": maps} if maps else {})}


def _of_recipe(files: "list[Judged]", recipe: "Recipe") -> "list[Judged]":
    """The files of the table's language pairs, in the paper's order; a note says which were left
    out."""
    # Under the table's own names, by which its numbers are found.
    named = [(file, names_of_pair(file.lang_pair, recipe.pairs)) for file in files]
    of_table = [dataclasses.replace(file, lang_pair=names[0]) for file, names in named if names]
    kept = sorted(of_table, key=lambda file: recipe.pairs.index(file.lang_pair))
    if not kept:
        there = " ".join(dict.fromkeys(file.lang_pair for file in files))
        raise InputError(
            f"--recipe {recipe.name}: the data holds {there}, the table {' '.join(recipe.pairs)}"
        )
    others = dict.fromkeys(file.lang_pair for file, names in named if not names)
    if others and not options.quiet:
        print(
            f"mtmetrics: left out, since the table has no such column: {' '.join(others)}",
            file=sys.stderr,
        )
    return kept


def _picture(folder: str, table: "MetricTable", recipe: "Recipe") -> list[str]:
    """Draws the paper's numbers against ours, and returns what the report says of that: nothing
    without matplotlib or numbers."""
    from mtmetrics.reports.agreement_report import coefficient_name
    from mtmetrics.reports.figures import save_figure
    from mtmetrics.reports.plots import draw_published

    points = {}
    for row, paper in zip(table.rows, recipe.rows, strict=True):
        cells = zip(table.columns, row.cells, strict=False)
        found = [
            (paper.published.get(file.lang_pair, math.nan), cell.correlation.value)
            for file, cell in cells
        ]
        found = [pair for pair in found if not math.isnan(sum(pair))]
        if found:
            points[row.scored.entry.title] = found
    if not points:
        return []
    path = Path(folder) / f"{recipe.name}.svg"
    path.parent.mkdir(exist_ok=True)
    label = coefficient_name(table.measure)
    save_figure(
        draw_published(points, title=recipe.title.partition(":")[0], label=label), str(path)
    )
    return [f"![published numbers against those measured here]({path.name})"]


def _bars(folder: str, table: "MetricTable", recipe: "Recipe") -> list[str]:
    """Draws the measured rows of a table as bars, and returns what the report says of that; nothing
    where no row could be run."""
    from mtmetrics.reports.agreement_report import coefficient_name
    from mtmetrics.reports.figures import save_figure
    from mtmetrics.reports.plots import Bar, draw_bars

    several = len(table.labels) > 1
    bars = {}
    for row in table.rows:
        if row.cells:
            cells = [Bar(cell.correlation.value, *(cell.interval or ())[:2]) for cell in row.cells]
            bars[row.scored.entry.title] = [*cells, *([Bar(row.average.value)] if several else [])]
    if not bars:
        return []
    groups = [*table.labels, *(["mean"] if several else [])]
    path = Path(folder) / f"{recipe.name}.svg"
    path.parent.mkdir(exist_ok=True)
    title = f"{recipe.title.partition(':')[0]}, 95 % bootstrap intervals"
    save_figure(
        draw_bars(bars, groups, title=title, y_label=coefficient_name(table.measure)), str(path)
    )
    return [f"![{recipe.title}]({path.name})"]


def _picture_of_averages(
    folder: str, tables: "dict[str, MetricTable]", recipe: "Recipe"
) -> list[str]:
    """Draws the paper's averages and ours as bars of each row; nothing where no row has both."""
    from mtmetrics.reports.averages import average_rows
    from mtmetrics.reports.figures import save_figure
    from mtmetrics.reports.plots import Bar, draw_bars

    rows = average_rows(recipe, tables)
    bars = {}
    for column in recipe.pairs:
        published = [Bar(row.published.get(column, math.nan)) for row in rows]
        measured = [
            Bar(row.measured[column].value if column in row.measured else math.nan) for row in rows
        ]
        if any(not math.isnan(bar.value) for bar in measured):
            bars |= {f"{column}, published": published, f"{column}, here": measured}
    if not bars:
        return []
    path = Path(folder) / f"{recipe.name}.svg"
    path.parent.mkdir(exist_ok=True)
    title = recipe.title.partition(":")[0]
    save_figure(
        draw_bars(bars, [row.title for row in rows], title=title, y_label="average correlation"),
        str(path),
    )
    return [f"![published averages beside those measured here]({path.name})"]


def _called(args: argparse.Namespace, recipe: "Recipe") -> list[str]:
    """Runs the calls of a figure, and returns their output, each under its command line, and the
    pictures. A call that fails says why, and the others go on."""
    from mtmetrics.cli.main import build_parser, main

    folder = Path(args.report)
    folder.mkdir(exist_ok=True)
    preset = args.preset or "paper"
    if recipe.models and preset not in recipe.models:
        raise InputError(f"--recipe {recipe.name}: runs with --preset {' or '.join(recipe.models)}")
    given = [
        f"--{name.replace('_', '-')}={getattr(args, name)}"
        for name in _FORWARDED
        if getattr(args, name)
    ]
    given += ["--local-files-only"] if args.local_files_only else []
    given += ["--quiet"] if options.quiet else []
    data = [inside for path in args.data or [] for inside in _of_pairs(path, recipe.pairs)]
    parts, pictures, failed = [], [], 0
    for line in recipe.runs:
        places = {
            "data": shlex.join(data),
            "preset": shlex.quote(preset),
            "out": shlex.quote(str(folder)),
        }
        sets, text = (
            [shlex.quote(path) for path in paths or []] for paths in (args.data, args.text)
        )
        filled = line.format(**places, sets=sets, text=text, model=recipe.models.get(preset))
        words = shlex.split(filled)
        # What a command does not know, such as the number format of a training, is left out.
        _, unknown = build_parser(words[0]).parse_known_args([*words, *given])
        words += [word for word in given if word not in unknown]
        printed, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code = main(words)
        sys.stderr.write(said.getvalue())
        failed += code != 0
        messages = said.getvalue().strip().splitlines()
        text = printed.getvalue().strip() or ("" if code == 0 else messages[-1])
        warnings = [line for line in messages if line.startswith(_WARNING)]
        text = "\n\n".join(filter(None, [text, *warnings]))
        parts += [f"```bash\nmtmetrics {shlex.join(words)}\n```", text]
        made = [Path(word) for word in words if code == 0 and folder in Path(word).parents]
        drawn = [
            path
            for name in made
            for path in ([name] if name.suffix == ".svg" else sorted(name.glob("*.png")))
        ]
        pictures += [f"![{path.stem}]({path.relative_to(folder)})" for path in drawn]
    print("\n\n".join(part for part in parts if part))
    if failed == len(recipe.runs):
        raise MTMetricsError(
            f"--recipe {recipe.name}: nothing could be run; the lines above say why"
        )
    return [*parts, *pictures]


def _of_pairs(path: str, pairs: list[str]) -> list[str]:
    """A file; or of a folder those files that have one of the figure's language pairs in their
    names, if any has."""
    inside = sorted(map(str, Path(path).iterdir())) if pairs and Path(path).is_dir() else []
    return [name for name in inside if any(pair in Path(name).name for pair in pairs)] or [path]


def _write(folder: str, recipe: "Recipe", parts: list[str]) -> None:
    from mtmetrics.io.atomic import make_folder, write_atomic

    make_folder(Path(folder))
    note = [recipe.note] if recipe.note else []
    made = f"Made by mtmetrics {__version__}: `mtmetrics evaluate --recipe {recipe.name}`."
    text = "\n\n".join(
        [f"# {recipe.title}", recipe.citation, *note, *(part for part in parts if part), made]
    )
    path = Path(folder) / f"{recipe.name}.md"
    write_atomic(path, text + "\n")
    print(f"mtmetrics: the report is {path}", file=sys.stderr)
