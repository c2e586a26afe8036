"""Judged data: translations and the judgements of people.

`read_judged` reads judged segments and `read_judged_systems` judged systems, in each of the layouts
that are known, as one `Judged` per file and language pair.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from mtmetrics.checks import is_number, language_pair, names_of_pair
from mtmetrics.errors import InputError
from mtmetrics.io.columns import FIELDS
from mtmetrics.io.languages import detokeniser
from mtmetrics.io.tables import Row, jsonl_rows
from mtmetrics.judgements import Cell, eval_set, metrics_task
from mtmetrics.judgements.readers import Condition, files_of, read_rows

if TYPE_CHECKING:
    import pandas as pd

# Columns of numbers, in which NaN stands for no value.
_NUMBERS = ("human", "raw")
# Endings of files with judgements of whole systems.
_SYSTEM_ENDS = (".jsonl", ".jsonl.gz")
JudgedLevel = Literal["segment", "system"]
Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, eq=False)
class Judged:
    """Translations of one language pair and what people thought of them: of each segment, or of
    whole systems.

    Attributes:
        file: that they were read from, as the user wrote it.
        lang_pair: such as ``"de-en"``.
        rows: a row per translation with ``source`` and ``translation``; ``reference`` and
            ``system``, None where a row has none; ``item``, rows of one name translate the same
            source; ``human``, higher is better, NaN exactly where there is no judgement; perhaps
            ``raw``, the judgement on its original scale such as 0-100, NaN where there is none; and
            the other fields of the file that hold numbers only, None where a row has none.
        level: ``"segment"``; or ``"system"``, where `rows` hold the whole output of one system
            after the other, and ``human`` is the judgement of the row's system.
        pairs: (k, 2) numbers of rows, where people said only that the first translation is better
            than the second; ``human`` is NaN then. None where each translation was judged by
            itself.
        prepared: changes of the texts, for signatures, such as ``"detok:moses"``.
    """

    file: str
    lang_pair: str
    rows: "pd.DataFrame"
    level: JudgedLevel = "segment"
    pairs: np.ndarray | None = None
    prepared: str | None = None

    @classmethod
    def of(
        cls,
        file: str | Path,
        lang_pair: str,
        columns: Mapping[str, Sequence[Cell]],
        level: JudgedLevel = "segment",
        pairs: np.ndarray | None = None,
    ) -> "Judged":
        """Makes judged data of columns.

        Args:
            file: that they were read from.
            lang_pair: such as ``"de-en"``.
            columns: see `rows`. Columns without any value are left out. Without ``item``, the
                distinct sources are numbered.
            level: of the judgements.
            pairs: (k, 2) numbers of rows, where people compared translations.
        """
        import pandas as pd

        sources = columns["source"]
        filled_columns = {name: [None] * len(sources) for name in ("reference", "system")}
        for name, cells in columns.items():
            if any(cell is not None for cell in cells):
                filled_columns[name] = cells
        if None in filled_columns.get("item", [None]):
            distinct_sources = dict.fromkeys(sources)
            items = {text: str(number) for number, text in enumerate(distinct_sources, 1)}
            filled_columns["item"] = [items[text] for text in sources]
        rows = pd.DataFrame(filled_columns | {"human": columns["human"]}, dtype=object)
        rows = rows.astype({name: np.float64 for name in _NUMBERS if name in rows})
        return cls(str(file), lang_pair, rows, level, pairs)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sources(self) -> list[str]:
        """The source of each row."""
        return self.rows["source"].tolist()

    @property
    def predictions(self) -> list[str]:
        """The translation of each row."""
        return self.rows["translation"].tolist()

    @property
    def references(self) -> list[str | None]:
        """The reference of each row, None where there is none."""
        return self.rows["reference"].tolist()

    @property
    def human(self) -> np.ndarray:
        """(n,) the judgement of each row, NaN where there is none."""
        return self.rows["human"].to_numpy()

    @functools.cached_property
    def judgements(self) -> "pd.DataFrame":
        """A row per judgement: the rows that have one, all rows where people compared them in
        pairs, or the first row of each judged system; the index counts segments, or systems."""
        if self.pairs is not None:
            return self.rows
        rows = self.rows
        if self.level == "system":
            rows = rows.drop_duplicates("system", ignore_index=True)
        return rows.dropna(subset=["human"])

    def detokenised(self) -> "Judged":
        """A copy with running text in place of Moses' tokens, which spaces separate (extra
        ``mining``); lower case stays."""
        import pandas as pd

        rows = self.rows.copy()
        join_source, join_target = map(detokeniser, language_pair(self.lang_pair))
        join_tokens = {"source": join_source, "translation": join_target, "reference": join_target}
        for name, join in join_tokens.items():
            texts = [None if text is None else join(text) for text in rows[name]]
            rows[name] = pd.Series(texts, rows.index, dtype=object)  # else None would become NaN
        return dataclasses.replace(self, rows=rows, prepared="detok:moses")

    def having(self, condition: Condition) -> "Judged":
        """A copy with the rows for which a condition holds, and the pairs of which both rows are
        among them."""
        is_kept = np.array(
            [condition.holds(cell) for cell in self.rows[condition.field]], dtype=bool
        )
        new_row = np.cumsum(is_kept) - 1
        pairs = None
        if self.pairs is not None:
            kept_pairs = self.pairs[is_kept[self.pairs].all(1)]
            pairs = new_row[kept_pairs]
        rows = self.rows[is_kept].reset_index(drop=True)
        return dataclasses.replace(self, rows=rows, pairs=pairs)

    def take(self, values: Sequence[Value] | np.ndarray) -> list[Value]:
        """The values of the judgements; `values` has one value per segment, or per system."""
        return [values[row] for row in self.judgements.index]

    def outputs(self) -> "dict[str, pd.DataFrame]":
        """System -> its rows; the rows of all systems are of the same sources. Judged segments are
        one system, whose name is empty."""
        if self.level == "segment":
            return {"": self.rows}
        return {str(name): rows for name, rows in self.rows.groupby("system", sort=False)}

    def column(self, name: str) -> list[float | None]:
        """The n values of a further field that holds numbers, None where a row has none.

        Raises:
            InputError: there is no such field, or whole systems were judged.
        """
        if self.level == "system":
            raise InputError(
                f"{self.file}: column {name!r}: judgements of whole systems have no columns of "
                "scores"
            )
        columns = [column for column in self.rows if column not in FIELDS]
        if name not in columns:
            raise InputError(
                f"{self.file}: no column of numbers {name!r}; there are: "
                f"{', '.join(columns) or 'none'}"
            )
        return self.rows[name].tolist()


def read_judged(
    path: str | Path,
    *,
    prediction_field: str = "translation",
    lang_pair: str | None = None,
) -> list[Judged]:
    """Reads judged segments, in one result for each file and language pair in it.

    - JSON Lines, see `read_judged_segments`, with any number of language pairs.
    - ``.tsv`` and ``.csv`` with a header row of the same names, such as WMT17's
      ``testset_XX-YY.tsv`` and the collections of WMT judgements on the Hub. Fields are separated
      by tabs where the header holds one, else by commas with the quoting of CSV. A tab-separated
      field is quoted only where it holds doubled quotes between quotes, as pandas writes it. An
      empty field and ``None`` are no value, but for source and translation.
    - MLQE-PE (Fomicheva et al., 2020) as sheffieldnlp/mlqe-pe publishes it:
      ``SPLIT.XXYY.df.short.tsv``. The judgement is ``z_mean``, the mean of the annotators'
      z-scores.
    - Direct assessments of WMT15 and WMT16: ``DAseg.newstest2016.human.XX-YY`` beside ``source``,
      ``mt-system`` and ``reference``; Eval4NLP 2021: ``XX-YY-test21/test21.da`` beside ``.src`` and
      ``.mt``; captions of Multi30K: ``MMTtranslationdict_YY.json`` beside ``MMTsourcedict.json``
      and ``MMTgolddict_YY.json``.
    - A ``.tar.gz`` with files of the last two kinds; nothing is unpacked to disk.
    - WMT's metrics and news tasks: ``DA-seglevel.csv``, ``RR-seglevel.csv`` (pairs),
      ``ad-seg-scores-XX-YY.csv``, ``ad-XXYY-good-stnd-redup.csv`` (single judgements) and
      ``mqm_DATA_XXYY.avg_seg_scores.tsv``, beside the texts: see `metrics_task`; and a test set in
      the folder layout of mt-metrics-eval, whose ``metric-scores`` become columns: see `eval_set`.
    - Any other folder: all files of these names in it, sorted.

    All but archives may be compressed, ``.gz``.

    Args:
        path: a file, a folder, or ``-`` for JSON Lines from standard input.
        prediction_field: the field that holds the translation.
        lang_pair: read this pair only; it is also the pair of rows that do not name one.

    Raises:
        InputError: nothing to read, or something that cannot be used; names file, line and field.
    """
    if eval_set.is_test_set(path):
        return _of_test_set(path, "segment", lang_pair)
    judged = []
    for file in files_of(path):
        level = metrics_task.task_level(file)
        if level is None:
            judged += _collect(str(file), read_rows(file), prediction_field, lang_pair)
        elif file == path or (level == "segment" and not metrics_task.stands_elsewhere(file)):
            judged += _read_task(file, path, lang_pair, "segment")
    if not judged:
        of_pair = (
            f"row of the language pair {lang_pair}"
            if lang_pair
            else "judged segments; pass --level system"
        )
        raise InputError(f"{path}: holds no {of_pair}")
    return judged


def read_judged_segments(path: str | Path, *, prediction_field: str = "translation") -> Judged:
    """Reads a JSON Lines file with one judged segment per line, or another layout of `read_judged`,
    all of one language pair.

    A row has the fields ``lp``, ``source``, `prediction_field` and ``human`` (a finite number, or
    null where there is no judgement), perhaps ``reference``, ``system``, ``sid`` and ``da_mean``;
    `FIELDS` holds other names of them.

    Args:
        path: the file, plain or ``.gz``, or ``-`` for standard input.
        prediction_field: the field that holds the translation.

    Raises:
        InputError: as `read_judged`, or there are several language pairs.
    """
    [segments] = _collect(str(path), _of_one_pair(read_rows(path)), prediction_field, None)
    return segments


def read_judged_systems(path: str | Path, *, lang_pair: str | None = None) -> list[Judged]:
    """Reads whole outputs of systems and the judgement of each system, one result for each language
    pair.

    Args:
        path: ``XX-YY.jsonl`` with a judgement per row (``lp``, ``system``, ``human``), beside
            ``XX-YY.outputs.jsonl`` with a segment per row (``lp``, ``source``, perhaps a reference,
            and ``outputs``, an object with the translation of every judged system), plain or
            ``.gz``; a folder of them; a test set of mt-metrics-eval; or ``DA-syslevel.csv`` beside
            the texts of a metrics task of WMT, or a folder that holds one.
        lang_pair: read this pair only.

    Raises:
        InputError: nothing to read, or something that cannot be used; names file, line and field.
    """
    if eval_set.is_test_set(path):
        return _of_test_set(path, "system", lang_pair)
    tables = sorted(Path(path).rglob("DA-syslevel.csv")) if Path(path).is_dir() else [path]
    if tables and metrics_task.task_level(tables[0]) is not None:
        return [judged for file in tables for judged in _read_task(file, path, lang_pair, "system")]
    judged = [_read_systems(file) for file in _system_files(Path(path))]
    pairs = [systems.lang_pair for systems in judged]
    wanted = pairs if lang_pair is None else names_of_pair(lang_pair, pairs)
    kept = [systems for systems in judged if systems.lang_pair in wanted]
    if not kept:
        raise InputError(f"{path}: no language pair {lang_pair}; there are: {', '.join(pairs)}")
    return kept


def _collect(
    file: str,
    rows: Iterable[Row],
    prediction_field: str,
    lang_pair: str | None,
) -> list[Judged]:
    """Groups rows by language pair, in order of appearance.

    Args:
        file: for errors.
        rows: the rows.
        prediction_field: the field that holds the translation.
        lang_pair: keep only this pair; it is also the pair of rows that do not name one.
    """
    segments_of_pair: dict[str, list[dict[str, Cell]]] = {}
    for row in rows:
        name = row.column_of("lp") if lang_pair is not None else row.required_column("lp")
        pair = lang_pair if name is None else row.text(name)
        if pair not in segments_of_pair:
            segments_of_pair[row.checked_pair(pair)] = []
        if lang_pair is None or names_of_pair(lang_pair, [pair]):
            segments_of_pair[pair].append(_segment(row, prediction_field))
    if not segments_of_pair:
        raise InputError(f"{file}: holds no row, there is nothing to judge")
    pairs = list(segments_of_pair)
    if lang_pair is not None:
        pairs = names_of_pair(lang_pair, pairs)
    return [Judged.of(file, pair, _columns(segments_of_pair[pair])) for pair in pairs]


def _of_one_pair(rows: Iterator[Row]) -> Iterator[Row]:
    """Yields rows; an InputError where one has another language pair than the first."""
    first = None
    for row in rows:
        name = row.column_of("lp")
        pair = first if name is None else row.values[name]
        first = first or pair
        if pair != first:
            other = f"{pair!r}, but the lines before have {first!r}"
            raise InputError(
                f"{row.where}, field {name!r}: {other}; give each language pair its own file"
            )
        yield row


def _segment(row: Row, prediction_field: str) -> dict[str, Cell]:
    """The cells of a row: those of `FIELDS` under their usual names, and all others, of which only
    numbers keep their value."""
    variants = dict(FIELDS)
    # Another name is meant literally; the usual one has the variants of other layouts.
    if prediction_field != FIELDS["translation"][0]:
        variants["translation"] = (prediction_field,)
    # Usual name -> the name in this row; None where the row has no such field.
    name_in_row: dict[str, str | None] = {}
    for field, names in variants.items():
        name_in_row[field] = next((name for name in names if name in row.values), None)
    for field in ("source", "translation", "human"):
        if name_in_row[field] is None:
            raise row.missing_error(variants[field])
    segment: dict[str, Cell] = {}
    for name, value in row.values.items():
        if name not in name_in_row.values():
            # An empty text stands for any text: it shows that the field is no column of numbers.
            segment[name] = value if value is None or is_number(value) else ""
    readers = {"item": row.text_or_integer, "human": row.number, "raw": row.number}
    for field, name in name_in_row.items():
        is_optional = field not in ("source", "translation")
        if is_optional and (name is None or row.values[name] is None):
            segment[field] = None
        else:
            read = readers.get(field, row.text)
            segment[field] = read(name)
    return segment


def _columns(segments: Sequence[dict[str, Cell]]) -> dict[str, list[Cell]]:
    """The columns of segments: those of `FIELDS`, and further ones that hold numbers only."""
    names = dict.fromkeys(name for segment in segments for name in segment if name != "lp")
    columns = {}
    for name in names:
        cells = [segment.get(name) for segment in segments]
        if name in FIELDS or all(cell is None or is_number(cell) for cell in cells):
            columns[name] = cells
    return columns


def _read_task(
    file: str | Path,
    path: str | Path,
    lang_pair: str | None,
    level: JudgedLevel,
) -> list[Judged]:
    """Reads a file of a metrics task of WMT; refuses one whose judgements are of another level.

    Args:
        file: the file.
        path: the file, or the folder in which it was found; texts are looked for there.
        lang_pair: read this pair only.
        level: of the judgements.
    """
    file_level = metrics_task.task_level(file)
    if file_level != level:
        raise InputError(f"{file}: judges {file_level}s, not {level}s; pass --level {file_level}")
    root = Path(path) if Path(path).is_dir() else None
    tables = metrics_task.read_task(file, root, lang_pair=lang_pair)
    return [
        Judged.of(file, pair, table.columns, level, table.pairs) for pair, table in tables.items()
    ]


def _of_test_set(path: str | Path, level: JudgedLevel, lang_pair: str | None) -> list[Judged]:
    """Reads a test set in the layout of mt-metrics-eval."""
    file_level: eval_set.FileLevel = "seg" if level == "segment" else "sys"
    tables = eval_set.read_test_set(path, file_level, lang_pair=lang_pair)
    return [Judged.of(path, pair, columns, level) for pair, columns in tables.items()]


# Judgements of whole systems.


def _system_files(path: Path) -> list[Path]:
    """The files with judgements of systems in a folder; the path itself where it is a file."""
    if not path.is_dir():
        return [path]
    tables = [file for file in sorted(path.iterdir()) if file.name.endswith(_SYSTEM_ENDS)]
    judgements = [file for file in tables if ".outputs." not in file.name and _outputs_file(file)]
    if not judgements:
        raise InputError(
            f"{path}: holds no XX-YY.jsonl with XX-YY.outputs.jsonl beside it, plain or .gz"
        )
    return judgements


def _stem(path: Path) -> str:
    """The name of a file without ``.jsonl`` and ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _outputs_file(path: Path) -> Path | None:
    """The file with the outputs of the systems that a file judges; None where there is none."""
    names = (f"{_stem(path)}.outputs{end}" for end in _SYSTEM_ENDS)
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def _read_systems(path: Path) -> Judged:
    """Reads a file with judgements of systems, and the file with their outputs."""
    lang_pair = ""
    human: dict[str, float] = {}
    for row in _of_one_pair(jsonl_rows(path)):
        lang_pair = row.checked_pair(row.text(row.required_column("lp")))
        system = row.text(row.required_column("system"))
        if system in human:
            raise InputError(f"{row.where}, field 'system': {system!r} has a judgement already")
        human[system] = row.number(row.required_column("human"))
    outputs_file = _outputs_file(path)
    if human and outputs_file is None:
        raise InputError(
            f"{path}: no {_stem(path)}.outputs.jsonl or .gz beside it, which holds what the "
            "systems wrote"
        )
    sources: list[str] = []
    references: list[str | None] = []
    translations: dict[str, list[str]] = {system: [] for system in human}
    for row in jsonl_rows(outputs_file) if human else ():
        if row.text(row.required_column("lp")) != lang_pair:
            raise InputError(
                f"{row.where}, field 'lp': {row.values['lp']!r}, but {path} is of {lang_pair}"
            )
        references.append(None if row.values.get("reference") is None else row.text("reference"))
        sources.append(row.text(row.required_column("source")))
        outputs = row.outputs()
        for system, texts in translations.items():
            if system not in outputs.values:
                raise InputError(f"{outputs.where}: no translation of the judged system {system!r}")
            texts.append(outputs.text(system))
    if not sources:
        raise InputError(
            f"{outputs_file if human else path}: holds no row, there is nothing to judge"
        )
    # One system after the other, each with all sources.
    columns: dict[str, list[Cell]] = {
        "source": sources * len(human),
        "reference": references * len(human),
        "translation": [text for texts in translations.values() for text in texts],
        "system": [system for system in human for _ in sources],
        "human": [value for value in human.values() for _ in sources],
    }
    return Judged.of(path, lang_pair, columns, "system")
