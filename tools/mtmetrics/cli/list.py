"""``mtmetrics list``: which metrics and presets there are, for which languages, and what works here now."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.options import add_output_options
from mtmetrics.cli.results import pick_format

if TYPE_CHECKING:
    from mtmetrics.artifacts.presets import Preset
    from mtmetrics.scorers.registry import Metric


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "list",
        help="list metrics, presets, languages, and what works offline",
        description="Lists every metric with its presets: what it compares translations with, the languages or the "
        "directions that it knows, and whether all that it loads is on this machine. Loads nothing; mtmetrics doctor "
        "scores a pair with each.",
    )
    parser.add_argument("names", nargs="*", metavar="METRIC", help="only these (default: all)")
    add_output_options(parser, ("table", "json", "markdown", "csv", "tsv"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a row per metric and preset."""
    from mtmetrics.evaluation.table_styles import STYLES
    from mtmetrics.scorers.registry import METRICS, find_metric

    rows = [row for name in args.names or METRICS for row in _rows(find_metric(name))]
    form = pick_format(args.format)
    if form == "json":
        print(json.dumps({"metrics": rows}, ensure_ascii=False, indent=1))
        return 0
    table = [["metric", "preset", "compares with", "languages", "offline"]]
    for row in rows:
        compared = " or ".join(row["compares_with"])
        table.append([row["metric"], row["preset"], compared, _in_words(row["languages"]), row["offline"]])
    print(STYLES[form](table, ()))
    return 0


def _rows(metric: "Metric") -> Iterator[dict[str, Any]]:
    from mtmetrics.artifacts.presets import load_preset, preset_names
    from mtmetrics.errors import MTMetricsError
    from mtmetrics.scorers.registry import has_presets

    columns = [column.removesuffix("s") for column in metric.values]
    about = {"metric": metric.name, "preset": "", "compares_with": columns, "languages": ["any"], "offline": "yes"}
    if not has_presets(metric.name):
        try:
            metric.made_by()()
        except MTMetricsError as error:
            about["offline"] = f"no: {error}"
        yield about
        return
    fluency = metric.name == "fluency"  # the language models of another metric's presets
    for name in preset_names("xmoverscore" if fluency else metric.name):
        bundle = load_preset("xmoverscore" if fluency else metric.name, name)
        settings = bundle.settings
        if fluency:
            settings = {"language_models": settings["language_models"], "languages": [*settings["language_models"]]}
        only = metric.only(settings)
        compared = columns if only is None else [only.removesuffix("s")]
        known = {"languages": _languages(bundle, settings), "offline": _offline(bundle, settings)}
        yield about | {"preset": name, "compares_with": compared} | known


def _languages(bundle: "Preset", settings: Mapping[str, Any]) -> list[str]:
    """The directions that have maps or that a preset was made for, else its languages; none where it does not say."""
    from mtmetrics.maps.files import mapped_pairs

    if "lang_pair" in settings:
        return [settings["lang_pair"]]
    maps = settings.get("maps", {})
    kind = maps.get("kind", "none")
    pairs = mapped_pairs(bundle.path(maps.get("artifact", ".")), kind) if kind != "none" else []
    english = any("minilm" in name.lower() for _, name in artifacts_of(settings))
    return pairs or settings.get("languages") or (["en"] if english else [])


def _in_words(languages: Sequence[str]) -> str:
    """Languages as they are; directions with the sources of each target together."""
    if not any("-" in language for language in languages):
        return " ".join(languages) or "those of its models"
    sources: dict[str, list[str]] = {}
    for source, _, target in (pair.partition("-") for pair in languages):
        sources.setdefault(target, []).append(source)
    return "; ".join(f"{' '.join(found)} \N{RIGHTWARDS ARROW} {target}" for target, found in sources.items())


def _offline(bundle: "Preset", settings: Mapping[str, Any]) -> str:
    """``yes``, or what is missing on this machine."""
    from mtmetrics.artifacts.models import model_folder
    from mtmetrics.errors import ArtifactError, MissingExtraError
    from mtmetrics.maps.files import is_local

    named = list(artifacts_of(settings))
    if not named:
        return "no: names no model; train one"
    for key, name in named:
        try:
            if key != "artifact":
                model_folder(bundle.path(name), local_files_only=True)
            elif not is_local(bundle.path(name)):
                return f"no: lacks {name}"
        except MissingExtraError as error:
            return f"no: {error}"
        except ArtifactError:
            return f"no: lacks {name}"
    return "yes"


def artifacts_of(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The models and maps that the tables of a preset name, with the key that names each."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from artifacts_of(value)
        elif key in ("model", "words", "sentences", "artifact"):
            yield key, value
