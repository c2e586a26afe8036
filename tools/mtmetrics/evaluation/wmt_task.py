"""Judgements of the WMT metrics tasks as they were published: tables of systems and lines, beside the texts.

::

    DA-seglevel.csv                         LP DATA SYSTEM SID HUMAN        means of direct assessments
    RR-seglevel.csv                         LP DATA SID BETTER WORSE        pairs of translations, the better one first
    DA-syslevel.csv                         LP HUMAN SYSTEM                 judgements of whole systems
    mqm_DATA_XXYY.avg_seg_scores.tsv        system mqm_avg_score seg_id     MQM of Freitag et al. (2021)

Cells are separated by blanks, lines are counted from 1. Beside such a file, or beside its folder ``manual-evaluation``,
lie, at any depth, ``DATA-XXYY-src.XX``, ``DATA-XXYY-ref.YY`` and folders ``XX-YY`` of ``DATA.SYSTEM.XX-YY``; or, since
2020, all with the end ``.txt`` and ``DATA.XX-YY.SYSTEM.txt``.
"""

import functools
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import language_pair
from mtmetrics.textio import iter_lines

_RANKED = "RR-seglevel.csv"
_MQM = re.compile(r"mqm_(?P<data>[A-Za-z0-9]+)_(?P<source>[a-z]{2})(?P<target>[a-z]{2})\.avg_seg_scores\.tsv")
_PAIRS = ("LP", "DATA", "SID", "BETTER", "WORSE")
_SYSTEMS = "DA-syslevel.csv"
_ANY = "newstest*"


class Found(NamedTuple):
    """The columns of `mtmetrics.evaluation.data.Judged` of a language pair, and where people said only which of two
    translations is better, the (k, 2) numbers of their rows, the better one first."""

    columns: dict[str, Sequence[Any]]
    pairs: np.ndarray | None = None


class _Judgement(NamedTuple):
    where: str
    lang_pair: str
    data: str
    line: int | None  # None for whole systems
    systems: tuple[str, ...]
    human: float | None


def level(file: str | Path) -> str | None:
    """``"segment"`` or ``"system"``, what a file of judgements in one of these layouts is about; None for others."""
    name = Path(file).name
    if name == _SYSTEMS:
        return "system"
    return "segment" if name in ("DA-seglevel.csv", _RANKED) or _MQM.fullmatch(name) else None


def judged_columns(
    file: str | Path, root: str | Path | None = None, *, lang_pair: str | None = None
) -> dict[str, Found]:
    """Language pair -> its judgements with their texts; pairs without texts are left out, with a warning.

    Args:
        file: one of the layouts above.
        root: the folder with the texts; that of the file, or the one above ``manual-evaluation``, if not given.
        lang_pair: read this pair only.

    Raises:
        InputError: a line cannot be used, a text is missing, or no language pair is left.
    """
    file = Path(file)
    folder = file.parent.parent if file.parent.name == "manual-evaluation" else file.parent
    root = folder if root is None else Path(root)
    by_pair: dict[str, list[_Judgement]] = {}
    for judgement in _judgements(file):
        if lang_pair in (None, judgement.lang_pair):
            by_pair.setdefault(judgement.lang_pair, []).append(judgement)
    if not by_pair and lang_pair is None:
        raise InputError(f"{file}: holds no row, there is nothing to judge")
    found, missing = {}, []
    for pair, judgements in by_pair.items():
        texts = {data: _Texts(root, pair, data) for data in dict.fromkeys(judged.data for judged in judgements)}
        if all(of_test_set.source and of_test_set.systems for of_test_set in texts.values()):
            found[pair] = _joined(judgements, texts)
        else:
            missing.append(pair)
    if missing and not found:
        needed = "sources (DATA-XXYY-src.XX) and outputs (XX-YY/DATA.SYSTEM.XX-YY) of the task"
        raise InputError(f"{file}: no texts of {', '.join(missing)} in {root}; put there the {needed}")
    if missing:
        warnings.warn(f"{file}: left out {', '.join(missing)}: no texts in {root}", UserWarning, stacklevel=2)
    return found


def _judgements(file: Path) -> Iterator[_Judgement]:
    ranked, mqm = file.name == _RANKED, _MQM.fullmatch(file.name)
    # The header of 2018 lacks a name.
    fixed = _PAIRS if ranked else ("SYSTEM", "HUMAN", "SID") if mqm else None
    given = {"DATA": mqm["data"], "LP": f"{mqm['source']}-{mqm['target']}"} if mqm else {"DATA": _ANY}
    names: Sequence[str] = ()
    for number, cells in enumerate(map(str.split, iter_lines(file)), 1):
        if not cells:
            continue
        if not names:
            names = fixed or cells
            continue
        where = f"{file}, line {number}"
        row = given | dict(zip(names, cells, strict=False))
        try:
            pair = "-".join(language_pair(row["LP"]))
            systems = (row["BETTER"], row["WORSE"]) if ranked else (row["SYSTEM"],)
            value = "None" if ranked else row["HUMAN"]
            human = None if value == "None" else float(value)
            line = None if file.name == _SYSTEMS else int(row["SID"])
        except (KeyError, ValueError) as error:
            raise InputError(f"{where}: {' '.join(names)} are needed, got {' '.join(cells)!r:.80} ({error})") from None
        if human is not None and not math.isfinite(human):
            raise InputError(f"{where}: a finite judgement is needed, got {value}")
        names_of = tuple(system.removesuffix(f".{pair}") for system in systems)
        yield _Judgement(where, pair, row["DATA"], line, names_of, human)


class _Texts:
    """The texts of a test set and language pair below a folder; every file is read once."""

    def __init__(self, root: Path, lang_pair: str, data: str) -> None:
        source, target = lang_pair.split("-")
        self._root, self._read = root, functools.cache(lambda path: list(iter_lines(path)))
        self.source = self._only(f"{data}-{source}{target}-src.{source}") or []
        self.reference = self._only(f"{data}-{source}{target}-ref.{target}")
        self.systems: dict[str, Path] = {}
        for path in (path for folder in sorted(root.rglob(lang_pair)) for path in sorted(folder.glob(f"{data}.*"))):
            name = path.name.partition(".")[2].removeprefix(f"{lang_pair}.")
            self.systems.setdefault(_plain(name.removesuffix(".txt").removesuffix(f".{lang_pair}")), path)

    def _only(self, name: str) -> list[str] | None:
        files = [path for end in ("", ".txt") for path in sorted(self._root.rglob(name + end))]
        if len({path.name for path in files}) > 1:
            found = ", ".join(path.name for path in files)
            raise InputError(f"{self._root}: holds {found}; a folder with one test set is needed")
        return self._read(files[0]) if files else None

    def row(self, judgement: "_Judgement", line: int, system: str) -> dict[str, Any]:
        """The fields of `mtmetrics.evaluation.data.Judged` of a line of a system; of names joined by ``+``, whose lines
        are equal, the first that there is counts."""
        path = next((self.systems[name] for name in map(_plain, system.split("+")) if name in self.systems), None)
        if path is None:
            raise InputError(f"{judgement.where}: no output of {system!r}; there are: {', '.join(self.systems)}")
        sides = {"source": self.source, "translation": self._read(path), "reference": self.reference}
        for name, lines in sides.items():
            if lines is not None and not 0 < line <= len(lines):
                raise InputError(f"{judgement.where}: line {line}, but the {name} has {len(lines)} lines")
        row: dict[str, Any] = {name: lines and lines[line - 1] for name, lines in sides.items()}
        return row | {"system": system, "item": str(line), "human": judgement.human}


def _plain(system: str) -> str:
    # Some tables of 2019 write one for the other.
    return system.replace("_", "-")


def _joined(judgements: Sequence[_Judgement], texts: Mapping[str, _Texts]) -> Found:
    """A row for each translation that was judged or compared, or for each line of each system that was judged."""
    rows: list[dict[str, Any]] = []
    compared: dict[tuple[str, int, str], int] = {}
    pairs = []
    for judgement in judgements:
        of_test_set = texts[judgement.data]
        if judgement.line is None:
            [system] = judgement.systems
            rows += [of_test_set.row(judgement, line, system) for line in range(1, len(of_test_set.source) + 1)]
        elif len(judgement.systems) == 1:
            rows.append(of_test_set.row(judgement, judgement.line, judgement.systems[0]))
        else:
            for system in judgement.systems:
                key = (judgement.data, judgement.line, system)
                if key not in compared:
                    compared[key] = len(rows)
                    rows.append(of_test_set.row(judgement, judgement.line, system))
            pairs.append([compared[judgement.data, judgement.line, system] for system in judgement.systems])
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Found(columns, np.array(pairs, dtype=np.intp) if pairs else None)
