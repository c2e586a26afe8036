"""Judgements of WMT's metrics and news tasks, in the tables that were published, with the texts of
their test sets. `read_task` reads them.

**Metrics tasks** have tables of systems and lines:

- ``DA-seglevel.csv``: means of direct assessments; columns LP DATA SYSTEM SID HUMAN.
- ``RR-seglevel.csv``: pairs of translations, the better one first; LP DATA SID BETTER WORSE.
- ``DA-syslevel.csv``: judgements of whole systems; LP HUMAN SYSTEM.
- ``mqm_DATA_XXYY.avg_seg_scores.tsv``: MQM of Freitag et al. (2021); system mqm_avg_score seg_id.

**News tasks** have the direct assessments by which systems were ranked, from annotators who passed
quality control:

- ``ad-seg-scores-XX-YY.csv``: means of N judgements; SYS SID RAW.SCR Z.SCR N.
- ``ad-XXYY-good-stnd-redup.csv``: single judgements; Input.src Input.trg sys_id type sid score.
- ``ad-XXYY-good-stnd.csv``: the same, but equal outputs of several systems are one row.

Of single judgements the rows of the type SYSTEM and REPEAT are read; the texts of other types were
damaged on purpose. All judgements of a translation become their mean, and the column ``judgements``
has their number.

Cells are separated by white space, and lines are counted from 1. The texts lie, at any depth, beside
a table, or beside its folder ``manual-evaluation`` or ``analysis``: the source
``DATA-XXYY-src.XX``, the reference ``DATA-XXYY-ref.YY``, and folders ``XX-YY`` with an output
``DATA.SYSTEM.XX-YY`` for each system. Since 2020 the names end in ``.txt``, and an output is called
``DATA.XX-YY.SYSTEM.txt``.
"""

import functools
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from mtmetrics.checks import names_of_pair, split_pair
from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines
from mtmetrics.judgements import Cell

# Files with pairs of translations, and with judgements of whole systems.
_RANKED, _SYSTEMS = "RR-seglevel.csv", "DA-syslevel.csv"
# Names of files with MQM, with single judgements, and with means of judgements.
_MQM = re.compile(
    r"mqm_(?P<DATA>[A-Za-z0-9]+)_(?P<source>[a-z]{2})(?P<target>[a-z]{2})\.avg_seg_scores\.tsv"
)
_SINGLE = re.compile(
    r"ad-(?P<source>[a-z]{2})(?P<target>[a-z]{2})-good-stnd(?:-redup)?\.csv(?:\.gz)?"
)
_MEANS = re.compile(r"ad-seg-scores-(?P<source>[a-z]{2})-(?P<target>[a-z]{2})\.csv(?:\.gz)?")
# The test set of tables that do not name theirs.
_ANY = "newstest*"
_RANKED_NAMES = ("LP", "DATA", "SID", "BETTER", "WORSE")
# Other names that some tables have for a column.
_OTHER_NAMES = {
    **dict.fromkeys(("system", "SYS", "sys_id"), "SYSTEM"),
    **dict.fromkeys(("seg_id", "sid"), "SID"),
    **dict.fromkeys(("mqm_avg_score", "Z.SCR", "score"), "HUMAN"),
}
_JUDGED = ("SYSTEM", "REPEAT")  # the rows of single judgements that judge a system


class TaskTable(NamedTuple):
    """The judgements of a language pair.

    Attributes:
        columns: of `mtmetrics.judgements.judged.Judged.rows`.
        pairs: (k, 2) numbers of rows where people said which of two translations is better, the
            better one first; None where each translation was judged by itself.
    """

    columns: dict[str, Sequence[Cell]]
    pairs: np.ndarray | None = None


class _Judgement(NamedTuple):
    """A line of a table.

    Attributes:
        where: the file and the line, for errors.
        lang_pair: such as ``"de-en"``.
        data: name of the test set.
        line: number of the segment, from 1; None for whole systems.
        systems: the judged system; or the better and the worse one.
        human: the judgement; None where there is none, and for two systems.
        count: number of judgements whose mean `human` is, where the table has it.
    """

    where: str
    lang_pair: str
    data: str
    line: int | None
    systems: tuple[str, ...]
    human: float | None
    count: int | None = None


def task_level(file: str | Path) -> Literal["segment", "system"] | None:
    """The level of the judgements in a file of a task; None for other files."""
    name = Path(file).name
    if name == _SYSTEMS:
        return "system"
    return "segment" if name in ("DA-seglevel.csv", _RANKED) or _match_of_pair(name) else None


def stands_elsewhere(file: str | Path) -> bool:
    """Whether a file ``-redup.csv`` beside this one has the same judgements, but one for each
    system."""
    path = Path(file)
    other = path.with_name(path.name.replace("-good-stnd.csv", "-good-stnd-redup.csv"))
    return other.name != path.name and bool(_SINGLE.fullmatch(path.name)) and other.is_file()


def read_task(
    file: str | Path,
    root: Path | None,
    *,
    lang_pair: str | None = None,
) -> dict[str, TaskTable]:
    """Reads a table of a task, with the texts that were judged.

    Args:
        file: one of the tables.
        root: the folder with the texts, or ``manual-evaluation`` or ``analysis`` beside them; the
            folder of the file, if not given.
        lang_pair: read this pair only.

    Returns:
        Language pair -> its judgements. Pairs without texts are left out, with a warning.

    Raises:
        InputError: a line cannot be used, a text is missing, or no language pair is left.
    """
    file = Path(file)
    root = root or file.parent
    root = root.parent if root.name in ("manual-evaluation", "analysis") else root
    judgements_of_pair: dict[str, list[_Judgement]] = {}
    for judgement in _judgements(file):
        judgements_of_pair.setdefault(judgement.lang_pair, []).append(judgement)
    if not judgements_of_pair and lang_pair is None:
        raise InputError(f"{file}: holds no row, there is nothing to judge")
    pairs = list(judgements_of_pair)
    if lang_pair is not None:
        pairs = names_of_pair(lang_pair, pairs)
    tables: dict[str, TaskTable] = {}
    missing: list[str] = []
    for pair in pairs:
        judgements = judgements_of_pair[pair]
        test_sets = dict.fromkeys(judgement.data for judgement in judgements)
        texts = {data: _Texts(root, pair, data) for data in test_sets}
        if all(test_set.source and test_set.systems for test_set in texts.values()):
            tables[pair] = _joined(judgements, texts)
        else:
            missing.append(pair)
    if missing and not tables:
        raise InputError(
            f"{file}: no texts of {', '.join(missing)} in {root}; put there the sources "
            "(DATA-XXYY-src.XX) and outputs (XX-YY/DATA.SYSTEM.XX-YY) of the task"
        )
    if missing:
        warnings.warn(
            f"{file}: left out {', '.join(missing)}: no texts in {root}",
            UserWarning,
            stacklevel=2,
        )
    return tables


def _match_of_pair(name: str) -> re.Match[str] | None:
    """The match of the name of a file that holds one language pair; None for other files."""
    return _MQM.fullmatch(name) or _MEANS.fullmatch(name) or _SINGLE.fullmatch(name)


def _judgements(file: Path) -> Iterator[_Judgement]:
    """The judgements of a table; single judgements of a translation become their mean."""
    judgements = _rows(file)
    if not _SINGLE.fullmatch(file.name):
        yield from judgements
        return
    # (line, systems) -> all judgements of this translation.
    by_translation: dict[tuple[int | None, tuple[str, ...]], list[_Judgement]] = {}
    for judgement in judgements:
        translation = (judgement.line, judgement.systems)
        by_translation.setdefault(translation, []).append(judgement)
    for same_translation in by_translation.values():
        values = [judgement.human for judgement in same_translation if judgement.human is not None]
        mean = sum(values) / len(values) if values else None
        yield same_translation[0]._replace(human=mean, count=len(values))


def _rows(file: Path) -> Iterator[_Judgement]:
    """The lines of a table, those of quality control left out."""
    name_match = _match_of_pair(file.name)
    is_ranking = file.name == _RANKED
    # Fields that the name of the file has.
    fields_of_name = {"DATA": _ANY} | (name_match.groupdict() if name_match else {})
    names: Sequence[str] = ()
    for number, cells in enumerate(map(str.split, iter_lines(file)), 1):
        if not cells:
            continue
        if not names:
            # The header of 2018 lacks a name.
            names = [_OTHER_NAMES.get(cell, cell) for cell in cells]
            if is_ranking:
                names = _RANKED_NAMES
            continue
        where = f"{file}, line {number}"
        row = fields_of_name | dict(zip(names, cells, strict=False))
        if row.get("type", _JUDGED[0]).upper() not in _JUDGED:
            continue
        try:
            named_pair = row["LP"] if name_match is None else f"{row['source']}-{row['target']}"
            pair = "-".join(split_pair(named_pair))
            systems = (row["BETTER"], row["WORSE"]) if is_ranking else (row["SYSTEM"],)
            value = "None" if is_ranking else row["HUMAN"]
            human = None if value == "None" else float(value)
            line = None if file.name == _SYSTEMS else int(row["SID"])
            count = int(row["N"]) if "N" in row else None
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{where}: {' '.join(names)} are needed, got {' '.join(cells)!r:.80} ({error})"
            ) from None
        if human is not None and not math.isfinite(human):
            raise InputError(f"{where}: a finite judgement is needed, got {value}")
        # Some tables write `newstest2015.de-en.NAME` or `NAME.de-en` for a system.
        prefixes = rf"(?:newstest\d+\.)?(?:{pair}\.)?"
        system_names = tuple(
            re.sub(prefixes, "", system.strip('"'), count=1).removesuffix(f".{pair}")
            for system in systems
        )
        yield _Judgement(where, pair, row["DATA"], line, system_names, human, count)


class _Texts:
    """The texts of a test set and language pair below a folder; every file is read once.

    Attributes:
        source: the lines of the source; empty where there is none.
        reference: the lines of the reference; None where there is none.
        systems: name of a system, as `_plain` writes it -> the file of its output.
    """

    def __init__(self, root: Path, lang_pair: str, data: str) -> None:
        source, target = split_pair(lang_pair)
        self._root = root
        self._read = functools.cache(lambda path: list(iter_lines(path)))
        self.source = self._only(f"{data}-{source}{target}-src.{source}") or []
        self.reference = self._only(f"{data}-{source}{target}-ref.{target}")
        self.systems: dict[str, Path] = {}
        for folder in sorted(root.rglob(lang_pair)):
            for path in sorted(folder.glob(f"{data}.*")):
                name = path.name.partition(".")[2].removeprefix(f"{lang_pair}.")
                name = name.removesuffix(".txt").removesuffix(f".{lang_pair}")
                self.systems.setdefault(_plain(name), path)

    def _only(self, name: str) -> list[str] | None:
        """The lines of the one file of a name, perhaps with ``.txt``; None where there is none."""
        files = [path for end in ("", ".txt") for path in sorted(self._root.rglob(name + end))]
        if len({path.name for path in files}) > 1:
            names = ", ".join(path.name for path in files)
            raise InputError(f"{self._root}: holds {names}; a folder with one test set is needed")
        return self._read(files[0]) if files else None

    def row(self, judgement: _Judgement, line: int, system: str) -> dict[str, Cell]:
        """The cells of a line of a system.

        Args:
            judgement: of the line.
            line: its number, from 1.
            system: the system; or several with equal outputs, whose names are joined by ``+``.

        Raises:
            InputError: there is no output of the system, or a text is shorter.
        """
        names = map(_plain, system.split("+"))
        paths = [self.systems[name] for name in names if name in self.systems]
        if not paths:
            raise InputError(
                f"{judgement.where}: no output of {system!r}; there are: {', '.join(self.systems)}"
            )
        texts = {
            "source": self.source,
            "translation": self._read(paths[0]),
            "reference": self.reference,
        }
        row: dict[str, Cell] = {}
        for name, lines in texts.items():
            if lines is not None and not 0 < line <= len(lines):
                raise InputError(
                    f"{judgement.where}: line {line}, but the {name} has {len(lines)} lines"
                )
            row[name] = None if lines is None else lines[line - 1]
        row |= {"system": system, "item": str(line)}
        return row | {"human": judgement.human, "judgements": judgement.count}


def _plain(system: str) -> str:
    """The name of a system with hyphens: some tables of 2019 write ``_`` for ``-``."""
    return system.replace("_", "-")


def _joined(judgements: Sequence[_Judgement], texts: Mapping[str, _Texts]) -> TaskTable:
    """Joins judgements with their texts: a row for each translation that was judged or compared, or
    for each line of each system that was judged as a whole.

    Args:
        judgements: of one language pair.
        texts: name of a test set -> its texts.
    """
    rows: list[dict[str, Cell]] = []
    # (test set, line, system) of a translation that was compared -> its row.
    row_of_translation: dict[tuple[str, int, str], int] = {}
    pairs: list[list[int]] = []
    for judgement in judgements:
        test_set = texts[judgement.data]
        is_ranking = len(judgement.systems) == 2
        lines = [judgement.line]
        if judgement.line is None:
            lines = range(1, len(test_set.source) + 1)
        translations = [
            (judgement.data, line, system) for system in judgement.systems for line in lines
        ]
        for translation in translations:
            # A translation is compared with several others, and has one row for all of them.
            if not is_ranking or translation not in row_of_translation:
                row_of_translation[translation] = len(rows)
                _, line, system = translation
                rows.append(test_set.row(judgement, line, system))
        if is_ranking:
            pairs.append([row_of_translation[translation] for translation in translations])
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return TaskTable(columns, np.array(pairs, dtype=np.intp) if pairs else None)
