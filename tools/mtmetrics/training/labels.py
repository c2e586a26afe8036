"""Labels for translations that nobody judged: scores of metrics that saw a reference, for networks
that will not."""

import html
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError
from mtmetrics.io.tables import Row, jsonl_rows
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import MetricSpec
from mtmetrics.training.worsening import Worsening

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MARKS = (".", ",", "?!", "...", "-", '" "')
# Output that is no translation -> its label, in deviations from the mean of real outputs.
FAILURES = {
    "copy": -3.0,
    "unrelated": -3.0,
    "gibberish": -3.0,
    "punctuation": -3.0,
    "loop": -3.0,
    "cut": -2.5,
    "missing words": -2.5,
    "shuffled": -2.0,
}


class Output(NamedTuple):
    """A translation to label, and the system that made it, where the row says so."""

    pair: str
    source: str
    reference: str
    translation: str
    system: str | None
    human: float | None


def read_outputs(
    paths: Sequence[str | Path],
    most: int | None = None,
    seed: int = 1,
    escaped: Sequence[str] = (),
) -> list[Output]:
    """Reads the distinct translations of JSON Lines, each with its language pair, source and
    reference.

    A row holds one ``translation`` (the names are in `mtmetrics.io.columns.FIELDS`) or several
    systems' ``outputs``. Rows with a blank text, or without a reference, are left out. Of the
    translations of a source at most `most` are drawn. Outputs of the `escaped` systems hold HTML
    entities, which are undone."""
    by_source: dict[tuple[str, str], dict[str, Output]] = {}
    for row in itertools.chain.from_iterable(map(jsonl_rows, paths)):
        pair = row.checked_pair(row.text(row.required("lp")))
        if row.null("reference"):
            continue
        source, reference = (row.text(row.required(field)) for field in ("source", "reference"))
        for system, translation in _translations(row):
            if system in escaped:
                translation = html.unescape(translation)
            if source.strip() and reference.strip() and translation.strip():
                human = (
                    row.number(row.required("human"))
                    if row.name("human") and not row.null("human")
                    else None
                )
                output = Output(pair, source, reference, translation, system, human)
                by_source.setdefault((output.pair, source), {}).setdefault(translation, output)
    if not by_source:
        raise InputError(
            f"{', '.join(map(str, paths))}: holds no translation with source and reference"
        )
    generator = np.random.default_rng(seed)
    found = []
    for outputs in by_source.values():
        there = list(outputs.values())
        kept = (
            range(len(there)) if most is None else sorted(generator.permutation(len(there))[:most])
        )
        found += [there[number] for number in kept]
    return found


def _translations(row: Row) -> Iterator[tuple[str | None, str]]:
    if "outputs" in row.fields:
        outputs = row.outputs()
        yield from ((name, outputs.text(name)) for name in outputs.fields)
    else:
        system = row.name("system")
        named = None if system is None or row.null("system") else row.label(system)
        yield named, row.text(row.required("translation"))


def labelled(
    outputs: Sequence[Output],
    metrics: Sequence[MetricSpec],
    pool: ModelPool,
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """(n,) mean of the scores of the metrics against references, standardised within each language
    pair; and the signatures of each metric. Without a metric, the judgements of the rows are
    standardised.

    Raises:
        InputError: a row lacks its judgement, all scores of a language pair are equal, or a metric
            cannot compare with references.
    """
    labels = np.zeros(len(outputs))
    signatures: dict[str, list[str]] = {str(spec): [] for spec in metrics}
    pairs = np.array([output.pair for output in outputs])
    for pair in dict.fromkeys(pairs.tolist()):
        rows = np.flatnonzero(pairs == pair)
        if not metrics:
            missing = next((outputs[row] for row in rows if outputs[row].human is None), None)
            if missing is not None:
                text = (
                    "where no --metric is named, every row needs its judgement, and it is "
                    "missing of"
                )
                raise InputError(f"{text} {missing.translation!r:.60}")
            labels[rows] = standardised(
                np.array([outputs[row].human for row in rows]), f"{pair}: judgements"
            )
            continue
        found = []
        references, translations = (
            [getattr(outputs[row], name) for row in rows] for name in ("reference", "translation")
        )
        for spec in metrics:
            result = spec.load_for(["references"], pool, pair).score(
                translations, references=references
            )
            signatures[str(spec)].append(result.signature)
            found.append(standardised(result.segments, f"{pair}: scores of {spec}"))
        labels[rows] = standardised(np.mean(found, axis=0), f"{pair}: means of the scores")
    return labels, signatures


def standardised(values: np.ndarray, what: str) -> np.ndarray:
    """The values with mean 0 and deviation 1; refused, by what they are called, where all are
    equal."""
    if not values.std() > 0:
        raise InputError(f"{what}: all are equal, so they tell nothing apart")
    return (values - values.mean()) / values.std()


def failures(outputs: Sequence[Output], count: int, seed: int = 1) -> list[tuple[Output, float]]:
    """Translations that have failed, as the ones that MetricX is taught with (Juraska et al.,
    2023), and their labels: copies of the source, translations of something else, gibberish,
    punctuation, loops, and such that are cut, lack words or have them in any order."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        output = outputs[int(generator.integers(len(outputs)))]
        other = outputs[int(generator.integers(len(outputs)))]
        kind = list(FAILURES)[number % len(FAILURES)]
        text = _failed(kind, output, other, generator)
        if text.strip() and text != output.translation:
            found.append((output._replace(translation=text, system=kind), FAILURES[kind]))
    return found


def worsened_copies(
    outputs: Sequence[Output],
    labels: np.ndarray,
    count: int,
    seed: int = 1,
) -> list[tuple[Output, float, str]]:
    """Outputs whose label is above the mean, with their labels and copies of them that have one
    error each.

    Fewer than `count` where there are not so many outputs, or where an error has no place in a
    text."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(np.flatnonzero(labels > 0))[:count]
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        texts[_target(outputs[row])].append(outputs[row].translation)
    worsenings = {
        language: Worsening(translations, seed) for language, translations in texts.items()
    }
    copies = []
    for row in rows:
        output = outputs[row]
        copy = worsenings[_target(output)].any_copy(output.translation, output.source)
        if copy is not None:
            copies.append((output, float(labels[row]), copy[0]))
    return copies


def _target(output: Output) -> str:
    return language_pair(output.pair)[1]


def _failed(kind: str, output: Output, other: Output, generator: np.random.Generator) -> str:
    words = output.translation.split()
    if kind == "copy":
        return output.source
    if kind == "unrelated":
        return other.translation if other.source != output.source else ""
    if kind == "gibberish":
        return " ".join(
            "".join(generator.choice(list(_LETTERS), generator.integers(2, 10))) for _ in words
        )
    if kind == "punctuation":
        return str(generator.choice(_MARKS)) * int(generator.integers(1, 6))
    if kind == "loop":
        first, length = int(generator.integers(len(words))), int(generator.integers(1, 4))
        return " ".join(
            words[:first] + words[first : first + length] * int(generator.integers(6, 16))
        )
    if kind == "cut":
        return " ".join(words[: max(1, int(len(words) * generator.uniform(0.1, 0.5)))])
    if kind == "missing words":
        return " ".join(word for word in words if generator.random() < 0.5)
    return " ".join(generator.permutation(words)) if len(words) > 3 else ""
