"""Measurements of a production of UScore, stage after stage, and the model card that reports them."""

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
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.uscore import WEIGHTS, UScore, part_weights, weighted_sum
from mtmetrics.scorers.xmoverscore import XMoverScore
from mtmetrics.statistics.correlation import pearson
from mtmetrics.uscore.common import Production, fingerprint
from mtmetrics.uscore.stages import Finished

_FILE = "measured.json"
_LEVELS = ("words", "sentences")
_MODELS = {"encoder": "words", "sentences": "sentence encoder", "translation": "pseudo-references"}
log = logging.getLogger("mtmetrics")


def precision(production: Production, pairs: Sequence[tuple[str, str]]) -> Finished:
    """The stage that measures P@1 of matching held-back sentences with their translations, after
    each round."""

    def measure(folder: Path) -> dict[str, Any]:
        precisions = {
            "words": _precision_of_words(production, pairs),
            "sentences": _precision_of_sentences(production, pairs),
        }
        write_json(folder / _FILE, precisions)
        return {"pairs": len(pairs)}

    settings = {
        "pairs": pairs,
        **production.settings("map", "remap_candidates"),
        **_models(production),
    }
    return production.stages.run(
        "precision",
        measure,
        settings=settings,
        after=[*production.maps, *production.models],
    )


def _precision_of_words(
    production: Production,
    pairs: Sequence[tuple[str, str]],
) -> dict[str, float]:
    """P@1 of the word level after each round."""
    source_language, target_language = production.request.languages
    encoder = production.encoder
    sources = encode_side([pair[0] for pair in pairs], encoder, language=source_language)
    targets = encode_side([pair[1] for pair in pairs], encoder, language=target_language)
    # The last one is for sources without a match, whose number is -1.
    target_texts = [*targets.texts, ""]
    precisions = {}
    for name, maps in _until(production.maps).items():
        closest = find_closest(
            sources,
            targets,
            production.remapping(maps),
            k=production.config.remap_candidates,
            threads=production.threads,
        )
        matches = [target_texts[number] for number in closest.targets]
        matched = list(zip(sources.texts, matches, strict=True))
        precisions[name] = precision_at_1(matched, pairs)
    return precisions


def _precision_of_sentences(
    production: Production,
    pairs: Sequence[tuple[str, str]],
) -> dict[str, float]:
    """P@1 of the sentence level after each round; none where there is no such level."""
    if not production.start.sentences:
        return {}
    source_language, target_language = production.request.languages
    precisions = {}
    for name, models in _until(production.models).items():
        model = production.pool.sentence_encoder(production.sentence_encoder(models))
        sources = model.encode([pair[0] for pair in pairs], source_language)
        targets = model.encode([pair[1] for pair in pairs], target_language)
        index = Index(targets.vectors[targets.index], measure="cosine")
        numbers = index.nearest(sources.vectors[sources.index], 1).rows[:, 0]
        matched = [(pair[0], pairs[number][1]) for pair, number in zip(pairs, numbers, strict=True)]
        precisions[name] = precision_at_1(matched, pairs)
    return precisions


def precision_at_1(matched: Sequence[tuple[str, str]], pairs: Iterable[tuple[str, str]]) -> float:
    """Share of (sentence, closest target) that are among the translations (parallel sentence
    matching)."""
    translations = set(pairs)
    return sum(pair in translations for pair in matched) / len(matched)


def agreement(production: Production, final: UScore, preset: Finished) -> Finished:
    """The stage that measures Pearson's r with human judgements, of each round and of the metric
    that comes of them."""

    def measure(folder: Path) -> dict[str, Any]:
        files = {}
        for name, path in names.items():
            segments = read_judged_segments(path)
            human = segments.judgements["human"]
            correlations = {}
            for column, scores in _columns(production, final, segments).items():
                correlations[column] = pearson(segments.take(scores), human).known
            files[name] = {
                "lp": segments.lang_pair,
                "segments": len(human),
                "pearson": correlations,
            }
        write_json(folder / _FILE, files)
        return {"files": len(files)}

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
        "agreement",
        measure,
        settings=settings,
        files=judged,
        after=stages,
    )


def _until(stages: Sequence[Finished]) -> dict[str, Sequence[Finished]]:
    """Name -> the stages up to a round, from none at all to the last."""
    return {f"round {turn}" if turn else "start": stages[:turn] for turn in range(len(stages) + 1)}


def _models(production: Production) -> dict[str, Any]:
    """The models that are measured, as the key of a stage holds them."""
    return {**production.word_settings(), "sentences": fingerprint(production.start.sentences)}


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
    """The scores of both levels after each round, and those of the final metric: its parts, and
    their sums by all weights."""

    def scores(scorer: Scorer) -> MetricResult:
        return scorer.score(segments.predictions, sources=segments.sources)

    columns: dict[str, np.ndarray] = {}
    for name, maps in _until(production.maps).items():
        words = XMoverScore(
            production.encoder,
            lang_pair=production.lang_pair,
            variant="uscore",
            remapping=production.remapping(maps),
            workers=production.threads,
        )
        columns[f"words, {name}"] = scores(words).parts["mover"]
    if production.start.sentences:
        for name, models in _until(production.models).items():
            encoder = production.pool.sentence_encoder(production.sentence_encoder(models))
            sentences = UScore(sentences=encoder, combine="snt", lang_pair=production.lang_pair)
            columns[f"sentences, {name}"] = scores(sentences).segments
    parts = scores(final).parts
    for name, values in parts.items():
        if name != "wrd":
            columns[f"part {name}"] = values
    levels = "+".join(final.level_weights)
    for weights in WEIGHTS:
        of_words, of_levels = part_weights(weights, levels, final.without)
        if of_words:
            parts = {**parts, "wrd": weighted_sum(parts, of_words)}
            columns[f"wrd, {weights}"] = parts["wrd"]
        columns[f"{levels}, {weights}"] = weighted_sum(parts, of_levels)
    return columns


def described(
    production: Production,
    preset: Finished,
    measures: Mapping[str, Finished],
) -> Finished:
    """The stage that writes the card, which states a licence of the weights where one is given, and
    draws what was measured."""
    licence = production.request.licence

    def describe(folder: Path) -> dict[str, Any]:
        results = {name: _read(stage.folder / _FILE) for name, stage in measures.items()}
        plots = _draw(folder, production.lang_pair, results)
        config = _read(preset.folder / "config.json")
        write_atomic(folder / "README.md", _card(config, results, plots, licence))
        return {}

    settings = {"licence": licence} if licence else {}
    return production.stages.run(
        "card",
        describe,
        settings=settings,
        after=[preset, *measures.values()],
    )


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _draw(folder: Path, lang_pair: str, results: Mapping[str, Any]) -> dict[str, str]:
    """Draws the results; returns file name -> label of each plot. Without matplotlib, says how to
    get it and goes on."""
    try:
        require_extra("plot", "the plots of the rounds")
    except MTMetricsError as error:
        log.warning("%s", error)
        return {}
    labels: dict[str, str] = {}

    def draw(name: str, label: str, levels: Mapping[str, Mapping[str, float | None]]) -> None:
        """Draws a line per level, over its rounds."""
        lines = {}
        for level, rounds in levels.items():
            values = np.array([*rounds.values()], dtype=float)
            if len(values):
                lines[level] = dict(enumerate(values))
        figure = draw_curves(
            lines,
            title=lang_pair,
            x_label="round (0: before the first)",
            y_label=label,
            least_span=0.2,
        )
        save_figure(figure, folder / name)
        labels[name] = label

    if "precision" in results:
        draw("precision.png", "P@1 of matching held-back sentences", results["precision"])
    for file, values in results.get("agreement", {}).items():
        levels: dict[str, dict[str, float | None]] = {level: {} for level in _LEVELS}
        for name, value in values["pearson"].items():
            level, _, turn = name.partition(", ")
            if level in levels:
                levels[level][turn] = value
        label = f"Pearson's r with human judgements of {file}"
        draw(f"agreement-{file}.png", label, levels)
    return labels


def _card(
    config: Mapping[str, Any],
    results: Mapping[str, Any],
    plots: Mapping[str, str],
    licence: str | None,
) -> str:
    lang_pair = config["lang_pair"]
    source, target = split_pair(lang_pair)
    stages = [["stage", "counts"]]
    for name, values in config["counts"].items():
        stages.append([name, ", ".join(f"{key} {value}" for key, value in values.items() if value)])
    blocks = [
        _front_matter(config, results, licence),
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
    if results:
        images = [f"![{label}]({name})" for name, label in plots.items()]
        blocks += ["## Measured", *_measured(results), *images]
    terms = (
        ". No licence was stated: `license: ID` in the metadata of this card does, which "
        "publishing needs."
    )
    if licence:
        terms = f"; who made them states {licence}."
    blocks += [
        "## Limits",
        "Mined pairs are often near-translations that differ in names and numbers, so "
        "differences of that kind hardly change the score. Scores compare translations of the "
        "same sources under the same signature. Whether the weights may be passed on depends on "
        f"the terms of the text that they were trained on{terms}",
    ]
    return "\n\n".join(blocks) + "\n"


def _front_matter(
    config: Mapping[str, Any],
    results: Mapping[str, Any],
    licence: str | None,
) -> str:
    import yaml

    model = config["preset"]["encoder"]["model"]
    data: dict[str, Any] = {
        "library_name": "mtmetrics",
        "language": [*language_pair(config["lang_pair"])],
        "license": licence,
        "tags": ["mtmetrics", "machine-translation", "evaluation", "quality-estimation", "uscore"],
        "base_model": [model] if REPOSITORY.fullmatch(model) else [],
        "datasets": [],
        "metrics": ["pearsonr"],
    }
    if not licence:
        del data["license"]
    if "agreement" in results:
        data["model-index"] = [
            {"name": f"uscore {config['lang_pair']}", "results": _index(results["agreement"])}
        ]
    return f"---\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}---"


def _index(files: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One result of a model-index per file of judged segments: the metric with its usual
    weights."""
    results = []
    for file, values in files.items():
        correlations = values["pearson"]
        # The levels with the tuned weights stand after the parts and after the word level alone.
        name = [name for name in correlations if name.endswith(", tuned")][-1]
        if correlations[name] is None:
            continue
        metric = {
            "type": "pearsonr",
            "name": f"Pearson's r, {name}",
            "value": round(correlations[name], 3),
        }
        result = {
            "task": {"type": "machine-translation-evaluation"},
            "dataset": {"name": file, "type": file},
            "metrics": [metric],
        }
        results.append(result)
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


def _measured(results: Mapping[str, Any]) -> list[str]:
    """A table per kind of result."""
    tables = []
    if "precision" in results:
        words, sentences = (results["precision"][level] for level in _LEVELS)
        rows = [["P@1 of held-back sentences", *_LEVELS]]
        for name in words | sentences:
            rows.append([name, _number(words.get(name)), _number(sentences.get(name))])
        tables.append(rows)
    if "agreement" in results:
        files = results["agreement"]
        head = [f"{file} ({values['segments']})" for file, values in files.items()]
        columns = [values["pearson"] for values in files.values()]
        rows = [["Pearson's r with human judgements", *head]]
        for name in dict.fromkeys(name for column in columns for name in column):
            rows.append([name, *(_number(column.get(name)) for column in columns)])
        tables.append(rows)
    return [markdown(rows, range(1, len(rows[0]))) for rows in tables]


def _number(value: float | None) -> str:
    return "" if value is None else decimals(value)
