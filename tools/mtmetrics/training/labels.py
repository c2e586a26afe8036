"""Makes labels for translations that nobody judged.

A label is the mean score of metrics that compare with a reference. Networks learn from it to judge
translations without one. `read_outputs` reads the translations, `labelled` gives each its label;
`failures` and `worsened_copies` add bad translations, whose labels are fixed or lower.
"""

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
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.training.worsening import Worsening

# Gibberish is made of these letters, and an output without words of these marks.
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
    """A translation to label.

    Attributes:
        pair: its language pair.
        source: the text that was translated.
        reference: a human translation of the source.
        translation: the text to label.
        system: name of the system that made it; None where the row has none.
        human: the judgement of people; None where the row has none.
    """

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

    A row holds one ``translation`` (the names are in `mtmetrics.io.columns.FIELDS`), or the
    ``outputs`` of several systems. Rows with a blank text, or without a reference, are left out.

    Args:
        paths: the files.
        most: the largest number of translations of one source, drawn at random; None for all.
        seed: of the draw.
        escaped: systems whose outputs hold HTML entities, which are undone.

    Raises:
        InputError: no row has a translation with source and reference.
    """
    # (language pair, source) -> translation -> the first output with this translation.
    by_source: dict[tuple[str, str], dict[str, Output]] = {}
    for row in itertools.chain.from_iterable(map(jsonl_rows, paths)):
        pair = row.checked_pair(row.text(row.required_column("lp")))
        if row.is_null("reference"):
            continue
        source, reference = (
            row.text(row.required_column(field)) for field in ("source", "reference")
        )
        for system, translation in _translations(row):
            if system in escaped:
                translation = html.unescape(translation)
            if not (source.strip() and reference.strip() and translation.strip()):
                continue
            human = None
            if row.column_of("human") and not row.is_null("human"):
                human = row.number(row.required_column("human"))
            output = Output(pair, source, reference, translation, system, human)
            by_source.setdefault((pair, source), {}).setdefault(translation, output)
    if not by_source:
        raise InputError(
            f"{', '.join(map(str, paths))}: holds no translation with source and reference"
        )
    generator = np.random.default_rng(seed)
    chosen_outputs: list[Output] = []
    for by_translation in by_source.values():
        outputs = list(by_translation.values())
        if most is not None:
            kept = sorted(generator.permutation(len(outputs))[:most])
            outputs = [outputs[number] for number in kept]
        chosen_outputs += outputs
    return chosen_outputs


def _translations(row: Row) -> Iterator[tuple[str | None, str]]:
    """Yields the name of a system, or None, and its translation, for each translation of a row."""
    if "outputs" in row.values:
        outputs = row.outputs()
        yield from ((name, outputs.text(name)) for name in outputs.values)
    else:
        field = row.column_of("system")
        system = None if field is None or row.is_null("system") else row.text_or_integer(field)
        yield system, row.text(row.required_column("translation"))


def labelled(
    outputs: Sequence[Output],
    metrics: Sequence[MetricSpec],
    pool: ModelPool,
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Labels n translations: with the mean of the scores of the metrics against references, or,
    without a metric, with the judgements of people. Both are standardised within each language pair.

    Returns:
        (n,) labels; and metric -> its signature for each language pair.

    Raises:
        InputError: a row lacks its judgement, all scores of a language pair are equal, or a metric
            cannot compare with references.
    """
    labels = np.zeros(len(outputs))
    signatures: dict[str, list[str]] = {str(spec): [] for spec in metrics}
    pairs = np.array([output.pair for output in outputs])
    for pair in dict.fromkeys(pairs.tolist()):
        rows = np.flatnonzero(pairs == pair)
        pair_outputs = [outputs[row] for row in rows]
        if not metrics:
            labels[rows] = standardised(_judgements(pair_outputs), f"{pair}: judgements")
            continue
        references = [output.reference for output in pair_outputs]
        translations = [output.translation for output in pair_outputs]
        scores = []
        for spec in metrics:
            scorer = spec.load_for(["references"], pool, pair)
            result = scorer.score(translations, references=references)
            signatures[str(spec)].append(result.signature)
            scores.append(standardised(result.segments, f"{pair}: scores of {spec}"))
        labels[rows] = standardised(np.mean(scores, axis=0), f"{pair}: means of the scores")
    return labels, signatures


def _judgements(outputs: Sequence[Output]) -> np.ndarray:
    """(n,) judgements of people; InputError where an output has none."""
    for output in outputs:
        if output.human is None:
            raise InputError(
                "where no --metric is named, every row needs its judgement, and it is missing of "
                f"{output.translation!r:.60}"
            )
    return np.array([output.human for output in outputs])


def standardised(values: np.ndarray, name: str) -> np.ndarray:
    """Values with mean 0 and deviation 1; an InputError, which calls them `name`, where all are
    equal."""
    if not values.std() > 0:
        raise InputError(f"{name}: all are equal, so they tell nothing apart")
    return (values - values.mean()) / values.std()


def failures(outputs: Sequence[Output], count: int, seed: int = 1) -> list[tuple[Output, float]]:
    """Makes translations that have failed, as the ones that MetricX is taught with (Juraska et al.,
    2023), and their labels.

    The kinds of `FAILURES` take turns. An output for which a kind makes nothing is left out, so
    there may be fewer than `count`."""
    generator = np.random.default_rng(seed)
    failed_outputs = []
    for number in range(count):
        output = outputs[int(generator.integers(len(outputs)))]
        other = outputs[int(generator.integers(len(outputs)))]
        kind = list(FAILURES)[number % len(FAILURES)]
        text = _failed(kind, output, other, generator)
        if text.strip() and text != output.translation:
            failed = output._replace(translation=text, system=kind)
            failed_outputs.append((failed, FAILURES[kind]))
    return failed_outputs


def worsened_copies(
    outputs: Sequence[Output],
    labels: np.ndarray,
    count: int,
    seed: int = 1,
) -> list[tuple[Output, float, str]]:
    """Makes copies with one error each of outputs whose label is above the mean, 0.

    Args:
        outputs: n outputs.
        labels: (n,) their labels.
        count: at most so many outputs are drawn; an output in which no error has a place is left
            out.
        seed: of the draw and of the errors.

    Returns:
        The output, its label and the copy, for each copy.
    """
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
        worsening = worsenings[_target(output)]
        copy = worsening.any_copy(output.translation, output.source)
        if copy is not None:
            copies.append((output, float(labels[row]), copy))
    return copies


def _target(output: Output) -> str:
    """The language of the translation."""
    return language_pair(output.pair)[1]


def _failed(kind: str, output: Output, other: Output, generator: np.random.Generator) -> str:
    """The translation with a failure of a kind; empty where it leaves no place for one.

    Args:
        kind: a key of `FAILURES`.
        output: the translation.
        other: another output, whose translation takes its place where it is to be unrelated.
        generator: of the draws.
    """
    words = output.translation.split()
    if kind == "copy":
        return output.source
    if kind == "unrelated":
        return other.translation if other.source != output.source else ""
    if kind == "gibberish":
        letters = list(_LETTERS)
        return " ".join(
            "".join(generator.choice(letters, generator.integers(2, 10))) for _ in words
        )
    if kind == "punctuation":
        return str(generator.choice(_MARKS)) * int(generator.integers(1, 6))
    if kind == "loop":
        first = int(generator.integers(len(words)))
        length = int(generator.integers(1, 4))
        times = int(generator.integers(6, 16))
        return " ".join(words[:first] + words[first : first + length] * times)
    if kind == "cut":
        share = generator.uniform(0.1, 0.5)
        return " ".join(words[: max(1, int(len(words) * share))])
    if kind == "missing words":
        return " ".join(word for word in words if generator.random() < 0.5)
    # The last kind: shuffled.
    return " ".join(generator.permutation(words)) if len(words) > 3 else ""
