"""Measures a production of UScore after each round, and writes the model card that reports the
measurements.

`precision` and `agreement` are stages that measure; each writes a JSON file. `described` is the last
stage: it reads these files, draws plots and writes the card.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from mtmetrics.artifacts.catalog import REPOSITORY_NAME_PATTERN
from mtmetrics.artifacts.places import hub_source
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
from mtmetrics.uscore.stages import Counts, Finished

# The file in which a stage keeps its measurements.
_FILE = "measured.json"
_LEVELS = ("words", "sentences")
# Table of a preset -> the part of the metric that its model is for; all others are for fluency.
_MODELS = {"encoder": "words", "sentences": "sentence encoder", "translation": "pseudo-references"}
log = logging.getLogger("mtmetrics")

# Name of a round, such as ``round 1`` -> a measurement after it.
Rounds = dict[str, float]


class MeasuredFile(TypedDict):
    """A file of judged segments: its language pair, its number of segments, and Pearson's r of each
    column of scores, None where it is not defined."""

    lp: str
    segments: int
    pearson: dict[str, float | None]


class Measured(TypedDict, total=False):
    """All measurements of a production.

    Attributes:
        precision: level -> its P@1 after each round.
        agreement: name of a file -> its measurements.
    """

    precision: dict[str, Rounds]
    agreement: dict[str, MeasuredFile]


# The ``config.json`` of a preset.
Config = Mapping[str, Any]


def precision(production: Production, pairs: Sequence[tuple[str, str]]) -> Finished:
    """Runs the stage that measures P@1 of matching held-back sentences with their translations,
    after each round.

    Args:
        production: the production.
        pairs: held-back sentences and their translations.
    """

    def measure(folder: Path) -> Counts:
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
) -> Rounds:
    """P@1 of the word level after each round."""
    source_language, target_language = production.request.languages
    encoder = production.encoder
    sources = encode_side([pair[0] for pair in pairs], encoder, language=source_language)
    targets = encode_side([pair[1] for pair in pairs], encoder, language=target_language)
    # A source without a match has the number -1, which finds the empty text at the end.
    target_texts = [*targets.texts, ""]
    precisions: Rounds = {}
    for name, maps in _rounds(production.maps).items():
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
) -> Rounds:
    """P@1 of the sentence level after each round; none where no sentence encoder is trained."""
    if not production.start.sentences:
        return {}
    source_language, target_language = production.request.languages
    precisions: Rounds = {}
    for name, models in _rounds(production.models).items():
        model = production.pool.sentence_encoder(production.sentence_encoder(models))
        sources = model.encode([pair[0] for pair in pairs], source_language)
        targets = model.encode([pair[1] for pair in pairs], target_language)
        index = Index(targets.vectors[targets.index], measure="cosine")
        numbers = index.nearest(sources.vectors[sources.index], 1).rows[:, 0]
        matched = [(pair[0], pairs[number][1]) for pair, number in zip(pairs, numbers, strict=True)]
        precisions[name] = precision_at_1(matched, pairs)
    return precisions


def precision_at_1(matched: Sequence[tuple[str, str]], pairs: Iterable[tuple[str, str]]) -> float:
    """P@1 of parallel sentence matching: the share of the pairs of a sentence and its closest target
    that are among the pairs of a sentence and its translation."""
    translations = set(pairs)
    return sum(pair in translations for pair in matched) / len(matched)


def agreement(production: Production, final: UScore, preset: Finished) -> Finished:
    """Runs the stage that measures Pearson's r with the human judgements of the request, after each
    round and of the final metric.

    Args:
        production: the production.
        final: the final metric.
        preset: the stage that put together its preset.
    """
    judged = production.request.judged
    path_of_name = _names(judged)

    def measure(folder: Path) -> Counts:
        files: dict[str, MeasuredFile] = {}
        for name, path in path_of_name.items():
            segments = read_judged_segments(path)
            human = segments.judgements["human"]
            correlations = {
                column: pearson(segments.take(scores), human).known
                for column, scores in _columns(production, final, segments).items()
            }
            files[name] = {
                "lp": segments.lang_pair,
                "segments": len(human),
                "pearson": correlations,
            }
        write_json(folder / _FILE, files)
        return {"files": len(files)}

    settings = {
        **production.settings("map"),
        "names": list(path_of_name),
        "signature": final.signature,
        **_models(production),
    }
    return production.stages.run(
        "agreement",
        measure,
        settings=settings,
        files=judged,
        after=[*production.maps, *production.models, preset],
    )


def _rounds(stages: Sequence[Finished]) -> dict[str, Sequence[Finished]]:
    """Name of a round -> the stages up to it; ``start`` comes first, with no stage."""
    rounds = {"start": stages[:0]}
    for turn in range(1, len(stages) + 1):
        rounds[f"round {turn}"] = stages[:turn]
    return rounds


def _models(production: Production) -> dict[str, object]:
    """The models that are measured, as the key of a stage holds them."""
    return {**production.word_settings(), "sentences": fingerprint(production.start.sentences)}


def _names(paths: Sequence[str | Path]) -> dict[str, str | Path]:
    """Name -> file. A name is that of the file; where several files share it, ``FOLDER-FILE``."""
    stems = {path: Path(path).name.removesuffix(".gz").removesuffix(".jsonl") for path in paths}
    uses = Counter(stems.values())
    names: dict[str, str | Path] = {}
    for path, stem in stems.items():
        folder = Path(path).resolve().parent.name
        names[stem if uses[stem] == 1 else f"{folder}-{stem}"] = path
    return names


def _columns(production: Production, final: UScore, segments: Judged) -> dict[str, np.ndarray]:
    """Name of a column -> (n,) scores of the segments: by both levels after each round; then by the
    final metric, its parts and their sums with each of the `WEIGHTS`."""

    def scores(scorer: Scorer) -> MetricResult:
        """The scores of the segments by a metric."""
        return scorer.score(segments.predictions, sources=segments.sources)

    columns: dict[str, np.ndarray] = {}
    for name, maps in _rounds(production.maps).items():
        words = XMoverScore(
            production.encoder,
            lang_pair=production.lang_pair,
            variant="uscore",
            remapping=production.remapping(maps),
            workers=production.threads,
        )
        columns[f"words, {name}"] = scores(words).parts["mover"]
    if production.start.sentences:
        for name, models in _rounds(production.models).items():
            encoder = production.pool.sentence_encoder(production.sentence_encoder(models))
            sentences = UScore(
                sentence_encoder=encoder, combine="snt", lang_pair=production.lang_pair
            )
            columns[f"sentences, {name}"] = scores(sentences).segments
    parts = scores(final).parts
    for name, values in parts.items():
        if name != "wrd":
            columns[f"part {name}"] = values
    levels = "+".join(final.level_weights)
    for weights in WEIGHTS:
        word_weights, level_weights = part_weights(weights, levels, final.left_out)
        if word_weights:
            parts = {**parts, "wrd": weighted_sum(parts, word_weights)}
            columns[f"wrd, {weights}"] = parts["wrd"]
        columns[f"{levels}, {weights}"] = weighted_sum(parts, level_weights)
    return columns


def described(
    production: Production,
    preset: Finished,
    measures: Mapping[str, Finished],
) -> Finished:
    """Runs the stage that writes the card, and draws the measurements.

    Args:
        production: the production; the card states its licence of the weights, if it has one.
        preset: the stage that put together the preset.
        measures: ``precision`` and ``agreement``, as far as they were measured -> their stages.
    """
    licence = production.request.licence

    def describe(folder: Path) -> Counts:
        measured: Measured = {name: _read(stage.folder / _FILE) for name, stage in measures.items()}
        label_of_plot = _draw(folder, production.lang_pair, measured)
        config = _read(preset.folder / "config.json")
        write_atomic(folder / "README.md", _card(config, measured, label_of_plot, licence))
        return {}

    settings = {"licence": licence} if licence else {}
    return production.stages.run(
        "card",
        describe,
        settings=settings,
        after=[preset, *measures.values()],
    )


def _read(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def _draw(folder: Path, lang_pair: str, measured: Measured) -> dict[str, str]:
    """Draws the measurements; returns file name -> label of each plot. Without matplotlib, logs how
    to get it and draws nothing."""
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

    if "precision" in measured:
        draw("precision.png", "P@1 of matching held-back sentences", measured["precision"])
    for file, values in measured.get("agreement", {}).items():
        levels: dict[str, dict[str, float | None]] = {level: {} for level in _LEVELS}
        for column, value in values["pearson"].items():
            # Columns of levels are called ``words, round 1``; those of the final metric otherwise.
            level, _, round_name = column.partition(", ")
            if level in levels:
                levels[level][round_name] = value
        label = f"Pearson's r with human judgements of {file}"
        draw(f"agreement-{file}.png", label, levels)
    return labels


def _card(
    config: Config,
    measured: Measured,
    label_of_plot: Mapping[str, str],
    licence: str | None,
) -> str:
    """The model card of a preset."""
    lang_pair = config["lang_pair"]
    source, target = split_pair(lang_pair)
    stages = [["stage", "counts"]]
    for name, values in config["counts"].items():
        stages.append([name, ", ".join(f"{key} {value}" for key, value in values.items() if value)])
    blocks = [
        _front_matter(config, measured, licence),
        f"# UScore {lang_pair}",
        f"A preset of the metric `uscore` of `mtmetrics` for translations from {source} to "
        f"{target}, which needs neither references nor human judgements (Belouadi and Eger, "
        "2023). Made by `mtmetrics train uscore` from monolingual text of both languages.",
        "## Use",
        f"```bash\nmtmetrics score --metric uscore --preset DIR --lp {lang_pair} "
        f"-s source.{source} -t translation.{target}\n```",
        "`DIR` is this folder.",
        "## What it holds",
        *_content(config),
        "## How it was made",
        "Settings, models and versions are in `config.json`. What each stage read and kept:",
        markdown(stages, ()),
    ]
    if measured:
        images = [f"![{label}]({name})" for name, label in label_of_plot.items()]
        blocks += ["## Measured", *_result_tables(measured), *images]
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


def _front_matter(config: Config, measured: Measured, licence: str | None) -> str:
    """The metadata of the card, between lines of dashes."""
    import yaml

    repository = hub_source(config["preset"]["encoder"]["model"]).repository
    data: dict[str, object] = {
        "library_name": "mtmetrics",
        "language": [*language_pair(config["lang_pair"])],
    }
    if licence:
        data["license"] = licence
    data |= {
        "tags": ["mtmetrics", "machine-translation", "evaluation", "quality-estimation", "uscore"],
        "base_model": [repository] if REPOSITORY_NAME_PATTERN.fullmatch(repository) else [],
        "datasets": [],
        "metrics": [],
    }
    results = _index(measured["agreement"]) if "agreement" in measured else []
    if results:
        data["metrics"] = ["pearsonr"]
        data["model-index"] = [{"name": f"uscore {config['lang_pair']}", "results": results}]
    return f"---\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}---"


def _index(files: Mapping[str, MeasuredFile]) -> list[dict[str, object]]:
    """A result of a model-index for each file of judged segments: Pearson's r of the metric with
    its tuned weights."""
    results = []
    for file, values in files.items():
        correlations = values["pearson"]
        # The metric with its tuned weights stands after its word level with them.
        column = [name for name in correlations if name.endswith(", tuned")][-1]
        correlation = correlations[column]
        if correlation is None:
            continue
        metric = {
            "type": "pearsonr",
            "name": f"Pearson's r, {column}",
            "value": round(correlation, 3),
        }
        result = {
            "task": {"type": "machine-translation-evaluation"},
            "dataset": {"name": file, "type": file},
            "metrics": [metric],
        }
        results.append(result)
    return results


def _content(config: Config) -> list[str]:
    """A table of the models of a preset, and a note on parts that it leaves out."""
    rows = [["part", "model"]]
    for name, table in config["preset"].items():
        if "model" in table:
            rows.append([_MODELS.get(name, "fluency"), f"`{table['model']}`"])
        elif name == "maps":
            rows.append(["map of the source side", table["kind"].upper()])
    blocks = [markdown(rows, ())]
    left_out = ", ".join(config["preset"].get("score", {}).get("without", []))
    if left_out:
        blocks.append(f"Left out by name: {left_out}; the weights of what remains are scaled up.")
    return blocks


def _result_tables(measured: Measured) -> list[str]:
    """A table for each kind of measurement."""
    tables = []
    if "precision" in measured:
        words, sentences = (measured["precision"][level] for level in _LEVELS)
        rows = [["P@1 of held-back sentences", *_LEVELS]]
        for name in words | sentences:
            rows.append([name, _number(words.get(name)), _number(sentences.get(name))])
        tables.append(rows)
    if "agreement" in measured:
        files = measured["agreement"]
        head = [f"{file} ({values['segments']})" for file, values in files.items()]
        columns = [values["pearson"] for values in files.values()]
        rows = [["Pearson's r with human judgements", *head]]
        for name in dict.fromkeys(name for column in columns for name in column):
            rows.append([name, *(_number(column.get(name)) for column in columns)])
        tables.append(rows)
    return [markdown(rows, range(1, len(rows[0]))) for rows in tables]


def _number(value: float | None) -> str:
    """The text of a cell; empty where there is no number."""
    return "" if value is None else decimals(value)
