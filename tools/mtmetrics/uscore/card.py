"""The model card and the plots of a UScore preset."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.hub import REPOSITORY
from mtmetrics.errors import MTMetricsError
from mtmetrics.evaluation.figures import save_figure
from mtmetrics.evaluation.plots import draw_curves
from mtmetrics.evaluation.table_styles import markdown
from mtmetrics.extras import require_extra

log = logging.getLogger("mtmetrics")
_MODELS = {
    "encoder": "words",
    "maps": "map of the source side",
    "sentences": "sentence encoder",
    "translation": "pseudo-references",
}


def draw_rounds(folder: Path, lang_pair: str, found: Mapping[str, Any]) -> dict[str, str]:
    """Draws what was measured after each round; without matplotlib, says how to get it and goes on.

    Args:
        folder: where the plots go.
        lang_pair: such as ``"de-en"``.
        found: the results of `mtmetrics.uscore.measures`, by name of the measure.

    Returns:
        File name -> what the plot shows.
    """
    plots: dict[str, tuple[str, dict[str, dict[str, float | None]]]] = {}
    if "precision" in found:
        plots["precision.png"] = "P@1 of matching held-back sentences", found["precision"]
    for file, values in found.get("agreement", {}).items():
        levels = {
            level: {
                name.split(", ")[1]: value for name, value in values["pearson"].items() if name.startswith(f"{level}, ")
            }
            for level in ("words", "sentences")
        }
        plots[f"agreement-{file}.png"] = f"Pearson's r with human judgements of {file}", levels
    try:
        require_extra("plot", "the plots of the rounds")
    except MTMetricsError as error:
        log.warning("%s", error)
        return {}
    for name, (label, levels) in plots.items():
        lines = {
            level: {number: float("nan") if value is None else value for number, value in enumerate(rounds.values())}
            for level, rounds in levels.items()
            if rounds
        }
        x_label = "round (0: before the first)"
        figure = draw_curves(lines, title=lang_pair, x_label=x_label, y_label=label, least_span=0.2)
        save_figure(figure, folder / name)
    return {name: label for name, (label, _) in plots.items()}


def card(config: Mapping[str, Any], found: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """The text of README.md.

    Args:
        config: what config.json holds.
        found: see `draw_rounds`.
        plots: file name -> what the plot shows.
    """
    lang_pair = config["lang_pair"]
    source, target = lang_pair.split("-")
    blocks = [
        _front_matter(config, found),
        f"# UScore {lang_pair}",
        f"A preset of the metric `uscore` of `mtmetrics` for translations from {source} to {target}, which needs neither references nor "
        "human judgements (Belouadi and Eger, 2023). Made by `mtmetrics uscore` from monolingual text of both languages.",
        "## Use",
        f"```bash\nmtmetrics score --metric uscore --preset DIR --lp {lang_pair} -s source.{source} -t translation.{target}\n```",
        "`DIR` is this folder.",
        "## What it holds",
        _models(config),
        "## How it was made",
        "Settings, models and versions are in `config.json`. What each stage read and kept:",
        _stages(config["counts"]),
    ]
    if found:
        blocks += ["## Measured", *_measured(found), *(f"![{label}]({name})" for name, label in plots.items())]
    blocks += [
        "## Limits",
        "Mined pairs are often near-translations that differ in names and numbers, so differences of that kind hardly change the score. "
        "Scores compare translations of the same sources under the same signature. Whether the weights may be passed on depends on the "
        "terms of the text that they were trained on: fill in `license` above.",
    ]
    return "\n\n".join(blocks) + "\n"


def _front_matter(config: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The metadata that the Hub reads; `mtmetrics.artifacts.cards` says which are needed."""
    import yaml

    model = config["preset"]["encoder"]["model"]
    data: dict[str, Any] = {
        "library_name": "mtmetrics",
        "language": config["lang_pair"].split("-"),
        "license": "other",
        "license_name": "depends-on-the-training-text",
        "tags": ["mtmetrics", "machine-translation", "evaluation", "quality-estimation", "uscore"],
        "base_model": [model] if REPOSITORY.fullmatch(model) else [],
        "datasets": config["text"],
        "metrics": ["pearsonr"],
    }
    if "agreement" in found:
        data["model-index"] = [{"name": f"uscore {config['lang_pair']}", "results": _results(found["agreement"])}]
    return f"---\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}---"


def _results(files: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One result of a model-index per file of judged segments: the agreement of the metric with its usual weights."""
    results = []
    for file, values in files.items():
        # The levels with the tuned weights stand after the parts and after the word level alone.
        name, value = [(name, value) for name, value in values["pearson"].items() if name.endswith(", tuned")][-1]
        if value is not None:
            results.append(
                {
                    "task": {"type": "machine-translation-evaluation"},
                    "dataset": {"name": file, "type": file},
                    "metrics": [{"type": "pearsonr", "name": f"Pearson's r, {name}", "value": round(value, 3)}],
                }
            )
    return results


def _models(config: Mapping[str, Any]) -> str:
    rows = [["part", "model"]]
    for name, table in config["preset"].items():
        if "model" in table:
            rows.append([_MODELS.get(name, "fluency"), "`{}`".format(table["model"])])
        elif name == "maps":
            rows.append([_MODELS[name], table["kind"].upper()])
    left_out = config["preset"].get("score", {}).get("without", [])
    text = markdown(rows, ())
    return (
        f"{text}\n\nLeft out by name: {', '.join(left_out)}; the weights of what remains are scaled up."
        if left_out
        else text
    )


def _stages(counts: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [["stage", "counts"]]
    rows += [
        [name, ", ".join(f"{key} {value}" for key, value in values.items() if value)] for name, values in counts.items()
    ]
    return markdown(rows, ())


def _measured(found: Mapping[str, Any]) -> list[str]:
    blocks = []
    if "precision" in found:
        rows = [["P@1 of held-back sentences", "words", "sentences"]]
        levels = found["precision"]
        for name in levels["words"] | levels["sentences"]:
            rows.append([name, *(_number(levels[level].get(name)) for level in ("words", "sentences"))])
        blocks.append(markdown(rows, (1, 2)))
    if "agreement" in found:
        files = found["agreement"]
        rows = [
            ["Pearson's r with human judgements", *(f"{file} ({values['segments']})" for file, values in files.items())]
        ]
        names = dict.fromkeys(name for values in files.values() for name in values["pearson"])
        rows += [[name, *(_number(values["pearson"].get(name)) for values in files.values())] for name in names]
        blocks.append(markdown(rows, range(1, len(rows[0]))))
    return blocks


def _number(value: float | None) -> str:
    return "" if value is None else f"{round(value, 3) + 0.0:.3f}"
