"""What a production of UScore measures of itself, stage after stage, and the model card that tells
it."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.catalog import REPOSITORY
from mtmetrics.checks import language_pair, split_pair
from mtmetrics.errors import MTMetricsError, require_extra
from mtmetrics.io.atomic import write_atomic, write_json
from mtmetrics.judgements.judged import Judged, read_judged_segments
from mtmetrics.mining.neighbours import Index
from mtmetrics.mining.sides import encode_side
from mtmetrics.mining.word_level import find_closest
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.plots import draw_curves
from mtmetrics.reports.styles import decimals, markdown
from mtmetrics.scorers.uscore import WEIGHTS, UScore, part_weights, weighted_sum
from mtmetrics.scorers.xmoverscore import XMoverScore
from mtmetrics.statistics.correlation import pearson
from mtmetrics.uscore.common import Production, known_by
from mtmetrics.uscore.stages import Finished

_FILE = "measured.json"
_LEVELS = ("words", "sentences")
_MODELS = {"encoder": "words", "sentences": "sentence encoder", "translation": "pseudo-references"}
log = logging.getLogger("mtmetrics")


def precision(production: Production, pairs: Sequence[tuple[str, str]]) -> Finished:
    """The stage that measures P@1 of matching held-back sentences with their translations, after
    each round."""

    def measure(folder: Path) -> dict[str, Any]:
        languages, encoder = production.request.languages, production.encoder
        texts = [[pair[number] for pair in pairs] for number in (0, 1)]
        sides = [
            encode_side(side, encoder, language=each)
            for side, each in zip(texts, languages, strict=True)
        ]
        k, threads = production.config.remap_candidates, production.threads
        found: dict[str, dict[str, float]] = {level: {} for level in _LEVELS}
        for name, maps in _until(production.maps).items():
            numbers = find_closest(*sides, production.remapping(maps), k=k, threads=threads).targets
            targets = [
                *sides[1].texts,
                "",
            ]  # the last for those without a match, whose number is -1
            matched = [
                (source, targets[target])
                for source, target in zip(sides[0].texts, numbers, strict=True)
            ]
            found["words"][name] = precision_at_1(matched, pairs)
        for name, models in _until(production.models).items() if production.start.sentences else ():
            model = production.pool.sentence_encoder(production.sentence_encoder(models))
            encoded = [*map(model.encode, texts, languages)]
            queries, base = (side.vectors[side.index] for side in encoded)
            numbers = Index(base, measure="cosine").nearest(queries, 1).rows[:, 0]
            matched = [
                (pair[0], pairs[target][1]) for pair, target in zip(pairs, numbers, strict=True)
            ]
            found["sentences"][name] = precision_at_1(matched, pairs)
        write_json(folder / _FILE, found)
        return {"pairs": len(pairs)}

    settings = {
        "pairs": pairs,
        **production.settings("map", "remap_candidates"),
        **_models(production),
    }
    return production.stages.run(
        "precision", measure, settings=settings, after=[*production.maps, *production.models]
    )


def precision_at_1(found: Sequence[tuple[str, str]], pairs: Iterable[tuple[str, str]]) -> float:
    """Share of (sentence, closest target) that are among the translations (parallel sentence
    matching)."""
    translations = set(pairs)
    return sum(pair in translations for pair in found) / len(found)


def agreement(production: Production, final: UScore, preset: Finished) -> Finished:
    """The stage that measures Pearson's r with human judgements, of each round and of the metric
    that comes of them."""

    def measure(folder: Path) -> dict[str, Any]:
        found = {}
        for name, path in names.items():
            segments = read_judged_segments(path)
            human, columns = segments.judgements["human"], _columns(production, final, segments)
            values = {
                column: pearson(segments.take(scores), human).known
                for column, scores in columns.items()
            }
            found[name] = {"lp": segments.lang_pair, "segments": len(human), "pearson": values}
        write_json(folder / _FILE, found)
        return {"files": len(found)}

    judged = production.request.judged
    names = _names(judged)
    settings = {
        **production.settings("map"),
        "names": list(names),
        "signature": final.signature,
        **_models(production),
    }
    stages = [*production.maps, *production.models, preset]
    return production.stages.run(
        "agreement", measure, settings=settings, files=judged, after=stages
    )


def _until(stages: Sequence[Finished]) -> dict[str, Sequence[Finished]]:
    """Name -> the stages up to a round, from none at all to the last."""
    return {f"round {turn}" if turn else "start": stages[:turn] for turn in range(len(stages) + 1)}


def _models(production: Production) -> dict[str, Any]:
    return {**production.word_settings(), "sentences": known_by(production.start.sentences)}


def _names(paths: Sequence[str | Path]) -> dict[str, str | Path]:
    """A name for each file: its own, or that of its folder too where several files have the
    same."""
    stems = {path: Path(path).name.removesuffix(".gz").removesuffix(".jsonl") for path in paths}
    twice = {stem for stem in stems.values() if list(stems.values()).count(stem) > 1}
    parents = {
        path: f"{Path(path).resolve().parent.name}-" if stem in twice else ""
        for path, stem in stems.items()
    }
    return {parents[path] + stem: path for path, stem in stems.items()}


def _columns(production: Production, final: UScore, segments: Judged) -> dict[str, np.ndarray]:
    def scores(scorer: Any) -> Any:
        return scorer.score(segments.sources, segments.predictions)

    columns: dict[str, np.ndarray] = {}
    for name, maps in _until(production.maps).items():
        own = {
            "variant": "uscore",
            "remapping": production.remapping(maps),
            "workers": production.threads,
        }
        words = XMoverScore(production.encoder, lang_pair=production.lang_pair, **own)
        columns[f"words, {name}"] = scores(words).parts["mover"]
    for name, models in _until(production.models).items() if production.start.sentences else ():
        encoder = production.pool.sentence_encoder(production.sentence_encoder(models))
        sentences = UScore(sentences=encoder, combine="snt", lang_pair=production.lang_pair)
        columns[f"sentences, {name}"] = scores(sentences).segments
    parts = scores(final).parts
    columns |= {f"part {name}": values for name, values in parts.items() if name != "wrd"}
    levels = "+".join(final.level_weights)
    for weights in WEIGHTS:
        of_words, of_levels = part_weights(weights, levels, final.without)
        if of_words:
            parts = {**parts, "wrd": weighted_sum(parts, of_words)}
            columns[f"wrd, {weights}"] = parts["wrd"]
        columns[f"{levels}, {weights}"] = weighted_sum(parts, of_levels)
    return columns


def described(
    production: Production, preset: Finished, measures: Mapping[str, Finished]
) -> Finished:
    """The stage that writes the card, which states a licence of the weights where one is given, and
    draws what was measured."""
    licence = production.request.licence

    def describe(folder: Path) -> dict[str, Any]:
        found = {name: _read(stage.folder / _FILE) for name, stage in measures.items()}
        plots = _draw(folder, production.lang_pair, found)
        config = _read(preset.folder / "config.json")
        write_atomic(folder / "README.md", _card(config, found, plots, licence))
        return {}

    settings = {"licence": licence} if licence else {}
    return production.stages.run(
        "card", describe, settings=settings, after=[preset, *measures.values()]
    )


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _draw(folder: Path, lang_pair: str, found: Mapping[str, Any]) -> dict[str, str]:
    """File name -> what the plot shows. Without matplotlib, says how to get it and goes on."""
    try:
        require_extra("plot", "the plots of the rounds")
    except MTMetricsError as error:
        log.warning("%s", error)
        return {}
    shown: dict[str, tuple[str, Mapping[str, Mapping[str, float | None]]]] = {}
    if "precision" in found:
        shown["precision.png"] = "P@1 of matching held-back sentences", found["precision"]
    for file, values in found.get("agreement", {}).items():
        rounds: dict[str, dict[str, float | None]] = {level: {} for level in _LEVELS}
        for name, value in values["pearson"].items():
            level, _, turn = name.partition(", ")
            if level in rounds:
                rounds[level][turn] = value
        shown[f"agreement-{file}.png"] = f"Pearson's r with human judgements of {file}", rounds
    options = {"title": lang_pair, "x_label": "round (0: before the first)", "least_span": 0.2}
    for name, (label, levels) in shown.items():
        points = {
            level: np.array([*rounds.values()], dtype=float) for level, rounds in levels.items()
        }
        lines = {level: dict(enumerate(values)) for level, values in points.items() if len(values)}
        save_figure(draw_curves(lines, y_label=label, **options), folder / name)
    return {name: label for name, (label, _) in shown.items()}


def _card(
    config: Mapping[str, Any],
    found: Mapping[str, Any],
    plots: Mapping[str, str],
    licence: str | None,
) -> str:
    lang_pair = config["lang_pair"]
    source, target = split_pair(lang_pair)
    stages = [["stage", "counts"]]
    for name, values in config["counts"].items():
        stages.append([name, ", ".join(f"{key} {value}" for key, value in values.items() if value)])
    blocks = [
        _front_matter(config, found, licence),
        f"# UScore {lang_pair}",
        f"A preset of the metric `uscore` of `mtmetrics` for translations from {source} to "
        f"{target}, which needs neither references nor human judgements (Belouadi and Eger, "
        "2023). Made by `mtmetrics train uscore` from monolingual text of both languages.",
        "## Use",
        f"```bash\nmtmetrics score --metric uscore --preset DIR --lp {lang_pair} "
        f"-s source.{source} -t translation.{target}\n```",
        "`DIR` is this folder.",
        "## What it holds",
        *_held(config),
        "## How it was made",
        "Settings, models and versions are in `config.json`. What each stage read and kept:",
        markdown(stages, ()),
    ]
    if found:
        blocks += [
            "## Measured",
            *_measured(found),
            *(f"![{label}]({name})" for name, label in plots.items()),
        ]
    blocks += [
        "## Limits",
        "Mined pairs are often near-translations that differ in names and numbers, so "
        "differences of that kind hardly change the score. Scores compare translations of the "
        "same sources under the same signature. Whether the weights may be passed on depends on "
        "the terms of the text that they were trained on"
        + (
            f"; who made them states {licence}."
            if licence
            else (
                ". No licence was stated: `license: ID` in the metadata of this card does, "
                "which publishing needs."
            )
        ),
    ]
    return "\n\n".join(blocks) + "\n"


def _front_matter(config: Mapping[str, Any], found: Mapping[str, Any], licence: str | None) -> str:
    import yaml

    model = config["preset"]["encoder"]["model"]
    data: dict[str, Any] = {
        "library_name": "mtmetrics",
        "language": [*language_pair(config["lang_pair"])],
        **({"license": licence} if licence else {}),
        "tags": ["mtmetrics", "machine-translation", "evaluation", "quality-estimation", "uscore"],
        "base_model": [model] if REPOSITORY.fullmatch(model) else [],
        "datasets": [],
        "metrics": ["pearsonr"],
    }
    if "agreement" in found:
        data["model-index"] = [
            {"name": f"uscore {config['lang_pair']}", "results": _results(found["agreement"])}
        ]
    return f"---\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}---"


def _results(files: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One result of a model-index per file of judged segments: the metric with its usual
    weights."""
    results = []
    for file, values in files.items():
        # The levels with the tuned weights stand after the parts and after the word level alone.
        name, value = [
            (name, value) for name, value in values["pearson"].items() if name.endswith(", tuned")
        ][-1]
        if value is not None:
            metric = {"type": "pearsonr", "name": f"Pearson's r, {name}", "value": round(value, 3)}
            task, dataset = {"type": "machine-translation-evaluation"}, {"name": file, "type": file}
            results.append({"task": task, "dataset": dataset, "metrics": [metric]})
    return results


def _held(config: Mapping[str, Any]) -> list[str]:
    rows = [["part", "model"]]
    for name, table in config["preset"].items():
        if "model" in table:
            rows.append([_MODELS.get(name, "fluency"), f"`{table['model']}`"])
        elif name == "maps":
            rows.append(["map of the source side", table["kind"].upper()])
    left_out = ", ".join(config["preset"].get("score", {}).get("without", []))
    note = f"Left out by name: {left_out}; the weights of what remains are scaled up."
    return [markdown(rows, ()), *([note] if left_out else [])]


def _measured(found: Mapping[str, Any]) -> list[str]:
    tables = []
    if "precision" in found:
        levels = [found["precision"][level] for level in _LEVELS]
        rows = [["P@1 of held-back sentences", *_LEVELS]]
        rows += [
            [name, *(_number(level.get(name)) for level in levels)]
            for name in levels[0] | levels[1]
        ]
        tables.append(rows)
    if "agreement" in found:
        files = found["agreement"]
        head = [f"{file} ({values['segments']})" for file, values in files.items()]
        columns = [values["pearson"] for values in files.values()]
        rows = [["Pearson's r with human judgements", *head]]
        for name in dict.fromkeys(name for column in columns for name in column):
            rows.append([name, *(_number(column.get(name)) for column in columns)])
        tables.append(rows)
    return [markdown(rows, range(1, len(rows[0]))) for rows in tables]


def _number(value: float | None) -> str:
    return "" if value is None else decimals(value)
