"""Rows of judged data, in whichever of the known layouts a file holds them."""

import contextlib
import functools
import json
import math
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mtmetrics.checks import PAIR_IN_NAMES, is_number
from mtmetrics.errors import InputError
from mtmetrics.io.cells import open_cells
from mtmetrics.io.columns import FIELDS
from mtmetrics.io.file_kinds import unpacked_name
from mtmetrics.io.lines import decoded_lines, iter_lines
from mtmetrics.io.tables import Row, header_names, jsonl_rows, named_rows
from mtmetrics.judgements import Cell
from mtmetrics.judgements.metrics_task import read_task, task_level

_TEXTS = {
    name for field, names in FIELDS.items() if field not in ("human", "raw") for name in names
}
_REQUIRED_TEXTS = {*FIELDS["source"], *FIELDS["translation"]}
_ABSENT = {"", "None"}
_MLQE = ".df.short.tsv"
_MLQE_NAME = re.compile(rf".*\.(?P<source>[a-z]{{2}})(?P<target>[a-z]{{2}}){re.escape(_MLQE)}")


class Condition(NamedTuple):
    """A condition on a field: it has a value, or a number that is not below it.

    Attributes:
        number: the value as a number, NaN where it is none.
    """

    field: str
    value: str
    number: float
    at_least: bool

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Reads ``FIELD=VALUE`` or ``FIELD>=NUMBER``."""
        match = re.fullmatch(r"([^=>]+)(>?=)(.+)", text)
        if match is not None:
            field, order, value = match.groups()
            with contextlib.suppress(ValueError):
                return cls(field, value, float(value), order == ">=")
            if order == "=":
                return cls(field, value, math.nan, False)
        needed = "FIELD=VALUE or FIELD>=NUMBER is needed, such as year=2020 or 'judgements>=2'"
        raise InputError(f"--where {text}: {needed}")

    def __str__(self) -> str:
        return f"{self.field}{'>=' if self.at_least else '='}{self.value}"

    def holds(self, cell: Cell) -> bool:
        """Whether a value of the field is so."""
        if self.at_least:
            return is_number(cell) and cell >= self.number
        return cell in (self.value, self.number)


def _headed(path: str | Path, lines: Iterable[str] | None = None) -> Iterator[Row]:
    """The rows of a table with a header, of commas or tabs; rows of nothing but empty cells are
    left out."""
    _, cells = open_cells(path, iter_lines(path) if lines is None else lines)
    first = next((values for _, values in cells if values), None)
    if first is None:
        return
    header = header_names(path, first)
    if _REQUIRED_TEXTS.isdisjoint(header):
        raise InputError(
            f"{path}, line 1: a header with the columns source, translation and human (or src, "
            f"mt and score) is needed, got {', '.join(header)!r:.80}; tables of WMT's metrics "
            "tasks are known by their names, such as DA-seglevel.csv, and lie beside the texts"
        )
    for row in named_rows(path, header, cells):
        if any(map(str.strip, row.values.values())):
            yield Row(row.where, {name: _value(name, cell) for name, cell in row.values.items()})


def _value(name: str, cell: str) -> Cell:
    """The value of a cell of a table: a number where it looks like one and its field is no text;
    None for an empty cell, but for a source or translation."""
    if name in _REQUIRED_TEXTS:
        return cell
    if cell in _ABSENT:
        return None
    try:
        return cell if name in _TEXTS else float(cell)
    except ValueError:
        return cell


# Layouts whose language pair is that of the file's name; their files may lie in a tar archive,
# which is not unpacked.


class _Member(NamedTuple):
    """A file of a folder or an archive.

    Attributes:
        name: its name there.
        shown: its name in messages.
        lines: name of any file there -> its lines; None where there is no such file.
    """

    name: str
    shown: str
    lines: Callable[[str], Iterable[str] | None]


def _mlqe_rows(member: _Member) -> Iterator[Row]:
    """The rows of a table of MLQE-PE, whose name has the language pair."""
    match = _MLQE_NAME.fullmatch(member.name)
    if match is None:
        raise InputError(
            f"{member.shown}: a name such as dev.ende{_MLQE} is needed, which says the language "
            "pair"
        )
    pair = f"{match['source']}-{match['target']}"
    table = _headed(member.shown, member.lines(member.name))
    return (Row(row.where, {**row.values, "lp": pair}) for row in table)


def _parallel_rows(
    names: Mapping[str, str],
    pattern: re.Pattern[str],
    member: _Member,
) -> Iterator[Row]:
    """The rows of files with a line per segment.

    Args:
        names: field -> the name of the file with its texts; parts of `pattern` stand in braces.
        pattern: of the name of the file with the judgements.
        member: the file with the judgements.
    """
    match = pattern.fullmatch(member.name)
    if match is None:
        raise InputError(
            f"{member.shown}: the folder must be called XX-YY-..., which says the language pair"
        )
    files = {"human": member.name} | {
        field: name.format(**match.groupdict()) for field, name in names.items()
    }
    columns = {}
    for field, name in files.items():
        lines = member.lines(name)
        if lines is not None:
            columns[field] = list(lines)
    for field in ("source", "translation"):
        if field not in columns:
            raise InputError(f"{member.shown}: no {files[field]} beside it")
    if len({len(cells) for cells in columns.values()}) > 1:
        counts = ", ".join(f"{field} {len(cells)}" for field, cells in columns.items())
        raise InputError(
            f"{member.shown}: the files beside each other differ in their number of lines: {counts}"
        )
    for number, cells in enumerate(zip(*columns.values(), strict=True), 1):
        row: dict[str, Cell] = dict(zip(columns, cells, strict=True))
        row |= {"human": _value("human", row["human"]), "lp": match["lp"]}
        yield Row(f"{member.shown}, line {number}", row)


def _captions(member: _Member) -> Iterator[Row]:
    """Judged captions of Multi30K as Song et al. (2021) published them: image -> pairs of a
    translation and a score."""
    target = _CAPTIONS.fullmatch(member.name)["target"]
    head = member.name.removesuffix(Path(member.name).name)
    tables = [member.name, f"{head}MMTsourcedict.json", f"{head}MMTgolddict_{target}.json"]
    try:
        judged, sources, references = (
            json.loads("\n".join(member.lines(name) or ())) for name in tables
        )
        for image in (image for image in judged if image in sources):
            for text, human in judged[image]:
                row = {
                    "lp": f"en-{target}",
                    "item": image,
                    "source": sources[image],
                    "reference": references[image],
                }
                yield Row(f"{member.shown}, {image}", row | {"translation": text, "human": human})
    except (ValueError, KeyError, TypeError) as error:
        needed = (
            "image -> [[translation, score], ...], beside "
            f"{' and '.join(Path(name).name for name in tables[1:])}"
        )
        raise InputError(
            f"{member.shown}: not the published layout ({error!r}); {needed}"
        ) from None


_DA = {
    "source": "{head}source.{lp}",
    "translation": "{head}mt-system.{lp}",
    "reference": "{head}reference.{lp}",
}
_DA_NAME = re.compile(rf"(?P<head>.*newstest20\d\d\.)human\.(?P<lp>{PAIR_IN_NAMES})")
_EVAL4NLP = {"source": "{head}.src", "translation": "{head}.mt"}
_EVAL4NLP_NAME = re.compile(rf"(?P<head>(?:.*/)?(?P<lp>{PAIR_IN_NAMES})-[^/]*/[^/]*)\.da")
_CAPTIONS = re.compile(r"(?:.*/)?MMTtranslationdict_(?P<target>[a-z]{2})\.json")
# Pattern of the name of a file of judgements -> its reader.
_MEMBERS: dict[re.Pattern[str], Callable[[_Member], Iterator[Row]]] = {
    re.compile(rf".*{re.escape(_MLQE)}"): _mlqe_rows,
    _DA_NAME: functools.partial(_parallel_rows, _DA, _DA_NAME),
    re.compile(r".*\.da"): functools.partial(_parallel_rows, _EVAL4NLP, _EVAL4NLP_NAME),
    _CAPTIONS: _captions,
}


def _member_reader(name: str) -> Callable[[_Member], Iterator[Row]] | None:
    return next((read for pattern, read in _MEMBERS.items() if pattern.fullmatch(name)), None)


def _file_rows(path: str | Path) -> Iterator[Row]:
    zipped = ".gz" if str(path).endswith(".gz") else ""
    name = Path(path).absolute().as_posix().removesuffix(zipped)

    def lines(other: str) -> Iterable[str] | None:
        return (
            iter_lines(other + zipped) if other == name or Path(other + zipped).is_file() else None
        )

    return _member_reader(name)(_Member(name, str(path), lines))


def _archive_rows(path: str | Path) -> Iterator[Row]:
    try:
        with tarfile.open(path) as archive:
            files = {member.name: member for member in archive if member.isfile()}
            judged = {name: read for name in files if (read := _member_reader(name))}
            if not judged:
                raise InputError(
                    f"{path}: holds no judged data; in archives there may be: tables of MLQE-PE, "
                    "direct assessments of WMT15 and WMT16, Eval4NLP 2021"
                )
            for name, read in judged.items():

                def lines(other: str) -> Iterable[str] | None:
                    if other not in files:
                        return None
                    return decoded_lines(archive.extractfile(files[other]), f"{path}:{other}")

                yield from read(_Member(name, f"{path}:{name}", lines))
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{path}: cannot be read as a tar archive ({error})") from None


def _task_rows(path: str | Path) -> Iterator[Row]:
    for pair, (columns, _) in read_task(path, None).items():
        for number, cells in enumerate(zip(*columns.values(), strict=True), 1):
            yield Row(
                f"{path}, {pair}, judgement {number}",
                {"lp": pair, **dict(zip(columns, cells, strict=True))},
            )


# The first end of a file's name that fits says how it is read; a file of any other name is JSON
# Lines.
_LAYOUTS: dict[str, Callable[[str | Path], Iterator[Row]]] = {
    ".tar": _archive_rows,
    ".tgz": _archive_rows,
    ".tsv": _headed,
    ".csv": _headed,
    ".jsonl": jsonl_rows,
}


def files_of(path: str | Path) -> list[str | Path]:
    """The file itself, or the files of a folder that can be read, sorted; a folder without any is
    refused."""
    if not Path(path).is_dir():
        return [path]
    files = sorted(file for file in Path(path).rglob("*") if file.is_file() and _reader(file))
    if not files:
        raise InputError(
            f"{path}: holds no judged data; files *{', *'.join(_LAYOUTS)}, those of shared tasks, "
            "or a test set of mt-metrics-eval are read"
        )
    return [*files]


def read_rows(file: str | Path) -> Iterator[Row]:
    """Yields every row of a file, read as its name says (see
    `mtmetrics.judgements.judged.read_judged`)."""
    return (_reader(file) or jsonl_rows)(file)


def _reader(path: str | Path) -> Callable[[str | Path], Iterator[Row]] | None:
    if task_level(path) == "segment":
        return _task_rows
    name = unpacked_name(path)
    if _member_reader(Path(name).as_posix()):
        return _file_rows
    return next((read for end, read in _LAYOUTS.items() if name.endswith(end)), None)
