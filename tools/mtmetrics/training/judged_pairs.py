"""Judged translations as regressors learn from them: `read_judged_pairs` reads them, and `split`
holds some back for validation, so that no text to compare with is on both sides."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError
from mtmetrics.io.lines import short_name
from mtmetrics.io.tables import Row
from mtmetrics.judgements.readers import Condition, read_rows
from mtmetrics.models.composition import KNOWN_SIDES
from mtmetrics.training.configs import CompositionConfig, RegressorConfig
from mtmetrics.training.corpus import held_back, mean_correlation, text_key
from mtmetrics.training.run import Run

log = logging.getLogger(__name__)


class JudgedPair(NamedTuple):
    """A judged translation and what it is compared with.

    Attributes:
        other: the reference, or the source.
        translation: the text that was judged.
        human: its judgement.
        group: name of its file.
        languages: of `other` and of the translation; None where the row has no language pair.
        against: ``reference`` or ``source``, which of them `other` is; ``both`` for a source with
            its reference.
        reference: the reference, where the translation is compared with both.
        worse: a worsened copy of the translation, where the row has one.
    """

    other: str
    translation: str
    human: float
    group: str
    languages: tuple[str | None, str | None] = (None, None)
    against: str = "reference"
    reference: str | None = None
    worse: str | None = None


@dataclass(frozen=True)
class JudgedFiles:
    """Judged translations; see `read_judged_pairs`.

    Attributes:
        judged: files to train on. Rows that compare with a text of the validation are left out.
        valid: files for validation; without any, a share of `judged` is held back.
        where: a condition for the rows to train on.
    """

    judged: Sequence[str | Path]
    valid: Sequence[str | Path] = ()
    where: Condition | None = None

    def open(
        self,
        run: Run,
        config: RegressorConfig | CompositionConfig,
        **settings: object,
    ) -> None:
        """Opens a run on these files, with further settings that shape the result.

        Raises:
            InputError: several processes share the run, or as `Run.open`.
        """
        if run.processes > 1:
            raise InputError(
                "several processes cannot share the training of a regressor; call it without "
                "torchrun"
            )
        if self.where is not None:
            settings["where"] = self.where
        run.open(config, {"judged": self.judged, "valid": self.valid}, **settings)

    def read(
        self,
        config: RegressorConfig | CompositionConfig,
    ) -> tuple[list[JudgedPair], list[JudgedPair]]:
        """Reads the pairs to train on, and the pairs for validation."""
        pairs = read_judged_pairs(
            self.judged,
            config.against,
            standardise=config.standardise,
            where=self.where,
        )
        if self.valid:
            held = read_judged_pairs(self.valid, config.against, standardise=config.standardise)
            train = without(pairs, held)
        else:
            train, held = split(pairs, config.held_back_per_mille)
        log.info("%d judged translations for training, %d for validation", len(train), len(held))
        return train, held


def pair_texts(pair: JudgedPair) -> list[tuple[str, str | None]]:
    """The texts of a pair with their languages: one or two that the translation is compared with,
    and last the translation."""
    language, target_language = pair.languages
    texts = [(pair.other, language)]
    if pair.reference is not None:
        texts.append((pair.reference, target_language))
    return [*texts, (pair.translation, target_language)]


def agreement(
    scores: np.ndarray,
    pairs: Sequence[JudgedPair],
    groups: Sequence[str],
) -> dict[str, float]:
    """Pearson's r of scores with judgements, within groups.

    Args:
        scores: (n,) scores.
        pairs: the n judged pairs.
        groups: the group of each pair.

    Returns:
        ``pearson_GROUP`` -> r, where it is defined; and ``pearson`` -> their mean, where there is
        one.
    """
    human = np.array([pair.human for pair in pairs])
    group_of_row = np.array(groups)
    parts = {}
    for group in dict.fromkeys(groups):
        is_in_group = group_of_row == group
        parts[group] = (scores[is_in_group], human[is_in_group])
    correlations = mean_correlation("pearson", parts)
    return {name: round(value, 6) for name, value in correlations.items()}


def counts(train: Sequence[JudgedPair], valid: Sequence[JudgedPair]) -> dict[str, dict[str, int]]:
    """Numbers of rows: ``train`` and ``validation`` -> file -> its number of rows."""
    return {
        "train": dict(Counter(pair.group for pair in train)),
        "validation": dict(Counter(pair.group for pair in valid)),
    }


def read_judged_pairs(
    paths: Sequence[str | Path],
    against: str,
    *,
    standardise: bool = False,
    where: Condition | None = None,
) -> list[JudgedPair]:
    """Reads judged translations. Rows with a blank text or without a judgement are left out.

    Args:
        paths: JSON Lines, plain or ``.gz``, with a judged translation per line, or another layout
            of segments that `mtmetrics.judgements.readers` knows. The names of the fields are in
            `mtmetrics.io.columns.FIELDS`. A row may hold a worsened copy of its translation as
            ``worse``, which a composed network learns to score below it.
        against: the text to compare with: ``"reference"``, ``"source"``, or ``"both"`` together.
            With ``"either"`` a row is read once for each of the two that it has, with ``"any"``
            once more for both together.
        standardise: whether the judgements of each file get mean 0 and deviation 1.
        where: rows that have its field are left out if it does not hold.

    Raises:
        InputError: there is no file, a file has no row to read, or no row has the field of `where`.
    """
    if not paths:
        raise InputError("no judged translations were given; pass at least one file with --judged")
    all_pairs: list[JudgedPair] = []
    has_field = False
    for path in paths:
        pairs: list[JudgedPair] = []
        for row in read_rows(path):
            if where is not None and where.field in row.values:
                has_field = True
                if not where.holds(row.values[where.field]):
                    continue
            if not row.is_null("human"):
                pairs += _pairs_of(row, against, short_name(path))
        if not pairs:
            condition = "" if where is None else f" with {where}"
            raise InputError(f"{path}: holds no judged translation{condition}")
        all_pairs += _standardised(pairs, path) if standardise else pairs
    if where is not None and not has_field:
        raise InputError(f"--where {where}: no row has a field {where.field!r}")
    return all_pairs


def _pairs_of(row: Row, against: str, group: str) -> list[JudgedPair]:
    """The pairs of a row: one for each side that it has; none where a text is blank."""
    translation = row.text(row.required_column("translation"))
    human = row.number(row.required_column("human"))
    sides = KNOWN_SIDES[against]
    source_language, target_language = None, None
    if row.column_of("lp") is not None:
        lang_pair = row.checked_pair(row.text(row.required_column("lp")))
        source_language, target_language = language_pair(lang_pair)
    pairs = []
    for side in sides:
        names = ("source", "reference") if side == "both" else (side,)
        is_missing = any(row.is_null(name) or row.column_of(name) is None for name in names)
        if len(sides) > 1 and is_missing:
            continue
        texts = [row.text(row.required_column(name)) for name in names]
        if not all(text.strip() for text in (translation, *texts)):
            continue
        language = target_language if side == "reference" else source_language
        pair = JudgedPair(
            other=texts[0],
            translation=translation,
            human=human,
            group=group,
            languages=(language, target_language),
            against=side,
            reference=texts[1] if side == "both" else None,
            worse=_worse(row),
        )
        pairs.append(pair)
    return pairs


def _standardised(pairs: Sequence[JudgedPair], path: str | Path) -> list[JudgedPair]:
    """The pairs of a file with judgements of mean 0 and deviation 1."""
    values = np.array([pair.human for pair in pairs])
    if not values.std() > 0:
        raise InputError(f"{path}: all judgements are equal; leave out standardise, or the file")
    values = (values - values.mean()) / values.std()
    return [pair._replace(human=float(value)) for pair, value in zip(pairs, values, strict=True)]


def _worse(row: Row) -> str | None:
    """The worsened copy of a row's translation; None where there is none."""
    worse = row.values.get("worse")
    if worse is not None and not (isinstance(worse, str) and worse.strip()):
        raise InputError(f"{row.where}: `worse` must be a text, got {worse!r}")
    return worse


def split(pairs: Sequence[JudgedPair], per_mille: int) -> tuple[list[JudgedPair], list[JudgedPair]]:
    """Splits rows into those to train on and those for validation, which share no text (`text_key`)
    to compare translations with.

    Args:
        pairs: all rows.
        per_mille: of thousand texts to compare with, so many are held back.

    Raises:
        InputError: too few rows.
    """
    train: list[JudgedPair] = []
    valid: list[JudgedPair] = []
    for pair in pairs:
        part = valid if held_back(text_key(pair.other), per_mille) else train
        part.append(pair)
    # A row that compares with both was sorted by its source; its reference may be on both sides.
    train = _apart(train, valid)
    if not train or len(valid) < 2:
        raise InputError(
            f"{len(pairs)} judged translations are too few to train on and to hold some back; pass "
            "more, or a file with --valid"
        )
    return train, valid


def without(pairs: Iterable[JudgedPair], valid: Iterable[JudgedPair]) -> list[JudgedPair]:
    """The rows whose texts to compare with do not occur in the validation; InputError if none is
    left."""
    kept = _apart(pairs, valid)
    if not kept:
        raise InputError(
            "--judged: all rows compare with a text of --valid; nothing is left to train on"
        )
    return kept


def _apart(pairs: Iterable[JudgedPair], valid: Iterable[JudgedPair]) -> list[JudgedPair]:
    """The rows that compare with no text of the validation."""
    keys = {key for pair in valid for key in _keys(pair)}
    return [pair for pair in pairs if keys.isdisjoint(_keys(pair))]


def _keys(pair: JudgedPair) -> list[str]:
    """The keys of the texts that a translation is compared with."""
    return [text_key(text) for text, _ in pair_texts(pair)[:-1]]
