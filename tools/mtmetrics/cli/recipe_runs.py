"""``mtmetrics evaluate --recipe``: a table or figure of a paper, from its data to the report.

A recipe is one of five things: a table of metrics, a table of averages over other tables, a table
of word-by-word translations, a figure of the layers of an encoder, or a figure that other mtmetrics
command lines draw. `mtmetrics.reports.recipes` describes the fields of a recipe."""

import argparse
import dataclasses
import re
import sys
from pathlib import Path

from mtmetrics._version import __version__
from mtmetrics.artifacts.download import is_offline
from mtmetrics.checks import names_of_pair
from mtmetrics.cli import messages, options
from mtmetrics.cli.data import pulled
from mtmetrics.cli.judged_files import judged_files
from mtmetrics.cli.layers import layer_studies, save_layers
from mtmetrics.cli.output import check_target, print_report, print_warnings
from mtmetrics.cli.recipe_calls import run_calls
from mtmetrics.cli.recipe_pictures import draw_against_published, draw_averages, draw_measured
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.io.tables import read_word_pairs
from mtmetrics.judgements.judged import Judged
from mtmetrics.judgements.public_sets import datasets
from mtmetrics.probes.word_by_word import judge_words, literal_pairs, report_words
from mtmetrics.reports.agreement import Measure, MetricTable, check_table, remarks, usual_test
from mtmetrics.reports.agreement_report import report_layers, report_metrics
from mtmetrics.reports.averages import report_averages
from mtmetrics.reports.metric_runs import Entry
from mtmetrics.reports.recipes import Recipe, judge_recipe, load_recipe
from mtmetrics.scorers.spec import MetricSpec


def run_recipe(args: argparse.Namespace) -> None:
    """Runs the table or figure that the arguments name, on the data of --data, or on public data.

    Raises:
        InputError: an option does not fit the recipe, or its data is missing.
    """
    recipe = load_recipe(args.recipe)
    # A flag of a single metric elsewhere; here it is for all rows that have a map.
    args.maps_of_rows, args.maps = args.maps, None
    if args.column or args.parts or args.layers:
        raise InputError("--recipe names its own rows; leave out --column, --parts and --layers")
    if args.plot or args.draw or args.weigh:
        raise InputError("--recipe draws with --report DIR; leave out --plot, --draw and --weigh")
    if args.tuned_preset or args.tried or args.agreement:
        raise InputError("--recipe writes no preset; leave out --tune, --try and --agreement")
    measure = Measure(args.coefficient or recipe.coefficient, args.group)
    _refuse_options(args, recipe, measure)
    args.level = recipe.level
    tables = [load_recipe(mean.recipe) for mean in recipe.means.values()] or [recipe]
    rows = [row for table in tables for row in table.rows]
    # Raises InputError for metrics, vectors and maps that no row uses.
    dataclasses.replace(recipe, rows=rows).entries(
        "paper", _user_metrics(args), _vectors(args), args.maps_of_rows
    )
    if recipe.means:
        _print_averages(args, recipe, measure)
        return
    _find_data(args, recipe)
    if recipe.runs:
        _write_report(args.report, recipe, run_calls(args, recipe))
    elif recipe.layers:
        _draw_layers(args, recipe, measure)
    elif recipe.word_by_word:
        _print_words(args, recipe)
    else:
        _print_table(args, recipe, measure)


def _refuse_options(args: argparse.Namespace, recipe: Recipe, measure: Measure) -> None:
    """Raises InputError for options that do not fit the recipe."""
    if (measure.label, args.level or recipe.level) != (recipe.coefficient, recipe.level):
        raise InputError(
            f"--recipe {recipe.name}: the paper's numbers are {recipe.coefficient} of each "
            f"{recipe.level}; leave out other choices"
        )
    if args.report is not None:
        check_target(args.report, "--report", folder=True)
    elif recipe.draws:
        raise InputError(
            f"--recipe {recipe.name}: draws a picture, or several tables; say with --report DIR "
            "where"
        )
    if recipe.runs and (args.metric or args.vectors or args.maps_of_rows):
        raise InputError(
            f"--recipe {recipe.name}: its calls name their metrics; leave out --metric, --vectors "
            "and --maps"
        )
    if recipe.word_by_word or any("{texts}" in line for line in recipe.runs):
        if not args.text:
            raise InputError(f"--recipe {recipe.name}: pass --text: {recipe.text}")
        return
    placeholders = {name for line in recipe.runs for name in re.findall(r"{text\[\d+]}", line)}
    if len(args.text or []) != len(placeholders):
        advice = (
            f"pass --text: {recipe.text}" if placeholders else "leave out --text, it reads none"
        )
        raise InputError(f"--recipe {recipe.name}: {advice}")


def _find_data(
    args: argparse.Namespace, recipe: Recipe, *, takes_single_files: bool = True
) -> None:
    """Sets `args.data` and `args.where` to the data of a recipe.

    Single files of --data are used as they are. A folder of --data may hold public sets of the
    recipe. Without --data, public sets are fetched unless they are in the cache.

    Args:
        args: parsed arguments; `data` and `where` are set.
        recipe: the table or figure.
        takes_single_files: whether --data may name single files. With several tables it would be
            unclear which table a file is for.

    Raises:
        InputError: the data is not public and --data is missing, or --data has to be a folder.
    """
    folders = []
    for name in recipe.pull:  # in the order of the recipe, whose calls count the sets
        for path in args.data or []:
            folder = Path(path) / name
            if folder.is_dir():
                folders.append((name, folder))
    if args.data and not folders:
        if not takes_single_files:
            raise InputError(
                f"--data {' '.join(args.data)}: a folder with {' or '.join(recipe.pull)}, as "
                "'mtmetrics data pull --out' makes it, is needed"
            )
        return
    if not recipe.pull:
        if recipe.data:
            raise InputError(
                f"--recipe {recipe.name}: its data cannot be pulled; pass --data: {recipe.data}"
            )
        return
    if not folders:
        for name in recipe.pull:
            _announce(name)
        folders = [(name, Path(pulled(name)["folder"])) for name in recipe.pull]
    args.data = [str(folder) for _, folder in folders]
    # `args.where` takes one condition, and no recipe has more. Sets without its field keep all rows.
    conditions = [recipe.where[name] for name, _ in folders if name in recipe.where]
    if conditions and not args.where:
        args.where = conditions[0]


def _announce(name: str) -> None:
    """Prints how much of a public set will be fetched."""
    from tqdm import tqdm

    dataset = datasets()[name]
    missing = [file for file in dataset.files if not (dataset.cache / file).exists()]
    if missing and not (messages.quiet or is_offline()):
        size = dataset.size(missing)
        size_text = "unknown size" if size is None else f"{tqdm.format_sizeof(size)}B"
        note = f"{len(missing)} files, {size_text}, to {dataset.cache}; licence: {dataset.licence}"
        print(f"mtmetrics: {name}: fetching {note}", file=sys.stderr)


def _print_averages(args: argparse.Namespace, recipe: Recipe, measure: Measure) -> None:
    """Runs the tables that the recipe averages. If one cannot be run, the reason is printed, and
    the others still run.

    Raises:
        MTMetricsError: no table could be run.
    """
    names = dict.fromkeys(mean.recipe for mean in recipe.means.values())
    recipes = [load_recipe(name) for name in names]
    tables = {}
    for table_recipe in recipes:
        table_args = argparse.Namespace(**vars(args) | {"level": table_recipe.level})
        try:
            _find_data(table_args, table_recipe, takes_single_files=len(recipes) == 1)
            tables[table_recipe.name] = _run_table(table_args, table_recipe, measure)
        except MTMetricsError as error:
            print(f"mtmetrics: {table_recipe.name}: not run: {error}", file=sys.stderr)
    if not tables:
        raise MTMetricsError(
            f"--recipe {recipe.name}: nothing could be run; the lines above say why"
        )
    report = report_averages(recipe, tables)
    print_report(report, args)
    if args.report is None:
        return
    paragraphs = [report.render("markdown"), *draw_averages(args.report, tables, recipe)]
    for table_recipe in recipes:
        if table_recipe.name in tables:
            table_report = report_metrics(tables[table_recipe.name], {}, table_recipe)
            paragraphs.append(table_report.render("markdown"))
    _write_report(args.report, recipe, paragraphs)


def _print_table(args: argparse.Namespace, recipe: Recipe, measure: Measure) -> None:
    table = _run_table(args, recipe, measure)
    report = report_metrics(table, {"field": args.field}, recipe)
    print_report(report, args)
    if args.report is not None:
        draw = draw_measured if recipe.bars else draw_against_published
        picture_paragraphs = draw(args.report, table, recipe)
        _write_report(args.report, recipe, [report.render("markdown"), *picture_paragraphs])


def _draw_layers(args: argparse.Namespace, recipe: Recipe, measure: Measure) -> None:
    """Prints and draws how the rows of a figure agree with people at each layer of the encoder."""
    args.layers = "all"
    [entry] = _entries(args, recipe)
    files = _files_of_recipe(judged_files(args), recipe)
    studies = layer_studies(args, entry, files, measure, intervals=True, recipe=recipe)
    metric = str(entry.metric)
    report = report_layers(studies, {"recipe": recipe.name, "metric": metric})
    print_report(report, args)
    for table in studies.values():
        print_warnings(remarks(table))
    path = Path(args.report) / f"{recipe.name}.svg"
    path.parent.mkdir(exist_ok=True)
    save_layers(str(path), studies, metric)
    picture = f"![{recipe.title}]({path.name})"
    _write_report(args.report, recipe, [report.render("markdown"), picture])


def _print_words(args: argparse.Namespace, recipe: Recipe) -> None:
    """Prints how often the rows of a table prefer word-by-word translations.

    Raises:
        InputError: a language pair has no dictionary.
    """
    entries = _entries(args, recipe)
    files = _files_of_recipe(judged_files(args), recipe)
    literal_texts = []
    for file in files:
        dictionaries = [path for path in args.text if file.lang_pair in Path(path).name]
        if not dictionaries:
            raise InputError(
                f"--text {' '.join(args.text)}: no file has {file.lang_pair} in its name; needed: "
                f"{recipe.text}"
            )
        word_pairs = [pair for path in dictionaries for pair in read_word_pairs(path)]
        literal_texts.append(literal_pairs(file, word_pairs))
    sentences = sum(len(texts.sources) for texts in literal_texts)
    with messages.scoring(2 * sentences * sum(entry.metric is not None for entry in entries)):
        rows = judge_words(recipe, entries, literal_texts, options.model_pool(args))
    report = report_words(recipe, rows, literal_texts)
    print_report(report, args)
    if args.report is not None:
        _write_report(args.report, recipe, [report.render("markdown")])


def _user_metrics(args: argparse.Namespace) -> dict[str, MetricSpec]:
    """Returns the metrics of --metric: name -> its specification.

    Raises:
        InputError: two of them are the same metric; the rows of a metric take one preset.
    """
    metrics: dict[str, MetricSpec] = {}
    for text, spec in options.metric_specs(args, default_metrics=()).items():
        if spec.metric in metrics:
            raise InputError(
                f"--metric {text}: {metrics[spec.metric]} replaces the rows of {spec.metric} "
                "already; name it once"
            )
        metrics[spec.metric] = spec
    return metrics


def _vectors(args: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Parses --vectors: name of a model -> options with which a metric reads the vectors of the
    model from a file or by another encoder, and its maps if there are any."""
    options_of_model = {}
    for text in args.vectors or []:
        model, equals, paths = text.partition("=")
        file, _, maps = paths.partition(",maps=")
        if not (model and equals and file):
            raise InputError(
                f"--vectors {text}: MODEL=FILE.parquet or MODEL=ENCODER is needed, perhaps with "
                ",maps=DIR"
            )
        if file.endswith(".parquet") and not Path(file).is_file():
            raise InputError(f"--vectors {text}: {file}: no such file")
        options_of_model[model] = {"encoder": file} | ({"maps": maps} if maps else {})
    return options_of_model


def _run_table(args: argparse.Namespace, recipe: Recipe, measure: Measure) -> MetricTable:
    """Runs the rows of a table on the data of the arguments, and prints warnings."""
    with_intervals = args.ci or bool(recipe.bars)
    test = args.significance or usual_test(measure)
    check_table(measure, test, intervals=with_intervals)
    entries = _entries(args, recipe)
    files = _files_of_recipe(judged_files(args), recipe)
    pool = options.model_pool(args)
    metrics = sum(entry.metric is not None for entry in entries)
    with messages.scoring(metrics * sum(map(len, files))):
        runs, table = judge_recipe(
            recipe, entries, files, pool, measure, test=test, intervals=with_intervals
        )
    print_warnings([*runs.notes(), *remarks(table)])
    return table


def _entries(args: argparse.Namespace, recipe: Recipe) -> list[Entry]:
    """Returns the rows of a table as they are run: with the metrics and vectors of the user, in the
    rows that use them."""
    metrics = {row.metric for row in recipe.rows}
    models = {row.vectors for row in recipe.rows}
    return recipe.entries(
        args.preset or "paper",
        {name: spec for name, spec in _user_metrics(args).items() if name in metrics},
        {model: files for model, files in _vectors(args).items() if model in models},
        args.maps_of_rows if any(row.is_mapped for row in recipe.rows) else None,
    )


def _files_of_recipe(files: list[Judged], recipe: Recipe) -> list[Judged]:
    """Returns the files of the table's language pairs, in the paper's order, each with the table's
    name of its pair. Prints which pairs are left out.

    Raises:
        InputError: no file has one of the table's pairs.
    """
    files_of_table, other_pairs = [], []
    for file in files:
        names = names_of_pair(file.lang_pair, recipe.pairs)
        if names:
            files_of_table.append(dataclasses.replace(file, lang_pair=names[0]))
        else:
            other_pairs.append(file.lang_pair)
    if not files_of_table:
        pairs = " ".join(dict.fromkeys(file.lang_pair for file in files))
        raise InputError(
            f"--recipe {recipe.name}: the data holds {pairs}, the table {' '.join(recipe.pairs)}"
        )
    if other_pairs and not messages.quiet:
        pairs = " ".join(dict.fromkeys(other_pairs))
        print(f"mtmetrics: left out, since the table has no such column: {pairs}", file=sys.stderr)
    return sorted(files_of_table, key=lambda file: recipe.pairs.index(file.lang_pair))


def _write_report(folder: str, recipe: Recipe, paragraphs: list[str]) -> None:
    """Writes a page of Markdown about a recipe."""
    make_folder(Path(folder))
    footer = f"Made by mtmetrics {__version__}: `mtmetrics evaluate --recipe {recipe.name}`."
    text = [f"# {recipe.title}", recipe.citation, recipe.note, *paragraphs, footer]
    path = Path(folder) / f"{recipe.name}.md"
    write_atomic(path, "\n\n".join(filter(None, text)) + "\n")
    print(f"mtmetrics: the report is {path}", file=sys.stderr)
