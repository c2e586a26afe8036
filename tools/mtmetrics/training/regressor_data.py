"""Judged translations to train a regressor on: reading, standardising, holding back."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.readers import jsonl_rows
from mtmetrics.training.corpus import held_back, short_name, text_key


@dataclasses.dataclass(frozen=True)
class JudgedPairs:
    """Translations with what they are compared with and how people judged them.

    Attributes:
        others: n references or sources.
        translations: n translations.
        human: (n,) float64 judgements.
        groups: n names of the files.
    """

    others: list[str]
    translations: list[str]
    human: np.ndarray
    groups: list[str]

    def __len__(self) -> int:
        return len(self.others)

    def take(self, numbers: Sequence[int] | np.ndarray) -> "JudgedPairs":
        """Only some of the rows."""
        columns = ([column[number] for number in numbers] for column in (self.others, self.translations))
        return JudgedPairs(
            *columns, self.human[np.asarray(numbers, dtype=np.int64)], [self.groups[number] for number in numbers]
        )


def read_judged_pairs(paths: Sequence[str | Path], against: str, *, standardise: bool = False) -> JudgedPairs:
    """Reads JSON Lines, plain or ``.gz``, with one judged translation per line.

    Args:
        paths: the files; a row has ``reference`` or ``ref`` (``source`` or ``src``), ``translation`` or ``mt``, and
            ``human`` or ``score``; all names are in `mtmetrics.evaluation.readers.NAMES`.
        against: ``"reference"`` or ``"source"``: which of the two is read.
        standardise: give the judgements of each file mean 0 and deviation 1.

    Returns:
        All rows whose texts are not blank.

    Raises:
        InputError: a file is missing or empty, a row lacks a field, or a judgement is no finite number, or does not
            vary.
    """
    others: list[str] = []
    translations: list[str] = []
    groups: list[str] = []
    human: list[np.ndarray] = []
    for path in paths:
        values = []
        for row in jsonl_rows(path):
            other, translation = (row.text(row.required(field)) for field in (against, "translation"))
            value = row.number(row.required("human"))
            if other.strip() and translation.strip():
                others.append(other)
                translations.append(translation)
                values.append(value)
        if not values:
            raise InputError(f"{path}: holds no judged translation")
        groups += [short_name(path)] * len(values)
        human.append(np.array(values))
        if standardise:
            if not human[-1].std() > 0:
                raise InputError(f"{path}: all judgements are equal; leave out standardise, or the file")
            human[-1] = (human[-1] - human[-1].mean()) / human[-1].std()
    if not groups:
        raise InputError("no judged translations were given; pass at least one file with --judged")
    return JudgedPairs(others, translations, np.concatenate(human), groups)


def split(pairs: JudgedPairs, per_mille: int) -> tuple[JudgedPairs, JudgedPairs]:
    """Rows to train on and rows for validation, which share no text that translations are compared with (see
    `corpus.text_key`).

    Raises:
        InputError: too few rows for both.
    """
    chosen = np.array([held_back(text_key(other), per_mille) for other in pairs.others], dtype=bool)
    if chosen.sum() < 2 or not (~chosen).any():
        raise InputError(
            f"{len(pairs)} judged translations are too few to train on and to hold some back; pass more, or a file with --valid"
        )
    return pairs.take(np.flatnonzero(~chosen)), pairs.take(np.flatnonzero(chosen))


def without(pairs: JudgedPairs, tests: Iterable[JudgedPairs]) -> JudgedPairs:
    """The rows whose text to compare with does not occur in `tests`.

    Raises:
        InputError: none is left.
    """
    keys = {text_key(other) for test in tests for other in test.others}
    kept = [number for number, other in enumerate(pairs.others) if text_key(other) not in keys]
    if not kept:
        raise InputError("--judged: all rows compare with a text of --valid; nothing is left to train on")
    return pairs.take(kept)
