"""A test set and language pair in the folder layout of Google's mt-metrics-eval, which calls it an EvalSet.

::

    sources/XX-YY.txt                 references/XX-YY.REF.txt            system-outputs/XX-YY/SYSTEM.txt
    human-scores/XX-YY.NAME.LEVEL.score                                   metric-scores/XX-YY/METRIC-REFS.LEVEL.score

Texts have a segment per line. Scores have a system and its score per line; at the level ``seg`` the segments of a system follow each other
in order, at the level ``sys`` there is one line per system; ``None`` is a missing judgement. REFS names the references that a metric
compares with, joined by dots, or is ``src`` or ``all``. A reference that was judged like a system has its name among the systems too.

Source: https://github.com/google-research/mt-metrics-eval, "File organization and naming convention".
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from mtmetrics.artifacts.files import make_folder, write_atomic
from mtmetrics.errors import InputError
from mtmetrics.textio import iter_lines

Level = Literal["seg", "sys"]
Scores = dict[str, list[float | None]]
SOURCES_ONLY, ALL_REFERENCES = "src", "all"
_USUAL_REFERENCES = ("refA", "ref")


def is_test_set(path: str | Path) -> bool:
    """Whether a folder has this layout."""
    return all((Path(path) / name).is_dir() for name in ("sources", "system-outputs"))


def lang_pairs(root: str | Path) -> list[str]:
    """The language pairs of a test set, sorted.

    Raises:
        InputError: there is none.
    """
    found = sorted(path.stem for path in (Path(root) / "sources").glob("*.txt"))
    if not found:
        raise InputError(f"{root}: no sources/XX-YY.txt; a test set of mt-metrics-eval is needed, such as mt-metrics-eval-v2/wmt22")
    return found


@dataclasses.dataclass(frozen=True)
class EvalSet:
    """The texts of a language pair; scores are read when they are asked for.

    Attributes:
        root: folder of the test set.
        lang_pair: such as ``"de-en"``.
        sources: n source segments.
        references: name -> n reference translations.
        outputs: system -> its n translations, with those of people.
    """

    root: Path
    lang_pair: str
    sources: list[str]
    references: dict[str, list[str]]
    outputs: dict[str, list[str]]

    @classmethod
    def read(cls, root: str | Path, lang_pair: str) -> "EvalSet":
        """Reads the texts.

        Raises:
            InputError: the test set has no such pair, a file cannot be read, or the files differ in their number of lines.
        """
        root = Path(root)
        if lang_pair not in lang_pairs(root):
            raise InputError(f"{root}: no language pair {lang_pair}; there are: {', '.join(lang_pairs(root))}")
        source_file = root / "sources" / f"{lang_pair}.txt"
        sources = list(iter_lines(source_file))
        if not sources:
            raise InputError(f"{source_file}: empty; there is nothing to score")
        read = functools.partial(_parallel, source_file, len(sources))
        references = {path.name.split(".")[-2]: read(path) for path in sorted((root / "references").glob(f"{lang_pair}.*.txt"))}
        outputs = {path.stem: read(path) for path in sorted((root / "system-outputs" / lang_pair).glob("*.txt"))}
        if not outputs:
            raise InputError(f"{root / 'system-outputs' / lang_pair}: no SYSTEM.txt in it; there is nothing to score")
        return cls(root, lang_pair, sources, references, outputs)

    def reference(self, name: str | None = None) -> str | None:
        """The name of the reference to compare with: the one asked for, else refA or ref, else the first; None where there is none.

        mt-metrics-eval keeps a list of the standard reference of each WMT set, which this rule meets for most, not for all of them.

        Raises:
            InputError: the one asked for does not exist.
        """
        if name is not None and name not in self.references:
            raise InputError(f"{self.root}: no reference {name!r} for {self.lang_pair}; there are: {', '.join(self.references) or 'none'}")
        return name or next((usual for usual in (*_USUAL_REFERENCES, *self.references) if usual in self.references), None)

    def human_names(self, level: Level) -> list[str]:
        """What the human scores of a level are called, such as ``mqm`` or ``wmt-z``; sorted."""
        end = f".{level}.score"
        files = (self.root / "human-scores").glob(f"{self.lang_pair}.*{end}")
        return sorted(path.name.removeprefix(f"{self.lang_pair}.").removesuffix(end) for path in files)

    def human_scores(self, name: str, level: Level) -> Scores:
        """Human scores: system -> one value per segment, or a single one at the level ``sys``; None where there is no judgement.

        Raises:
            InputError: the file cannot be read, names an unknown system, or has too few or too many values for one.
        """
        return self._scores(self.root / "human-scores" / f"{self.lang_pair}.{name}.{level}.score", level)

    def metric_scores(self, level: Level) -> dict[str, Scores]:
        """The scores of metrics that lie in the folder: ``METRIC-REFS`` -> system -> values; not every metric scores every system.

        Raises:
            InputError: as `human_scores`.
        """
        end = f".{level}.score"
        files = sorted((self.root / "metric-scores" / self.lang_pair).glob(f"*{end}"))
        return {path.name.removesuffix(end): self._scores(path, level) for path in files}

    def _scores(self, path: Path, level: Level) -> Scores:
        scores: Scores = {}
        for number, line in enumerate(iter_lines(path), 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            cells = line.split()
            if len(cells) != 2:
                raise InputError(f"{where}: a system and its score are needed, got {line!r:.60}")
            if cells[0] not in self.outputs:
                raise InputError(f"{where}: no system {cells[0]!r} in system-outputs/{self.lang_pair}")
            scores.setdefault(cells[0], []).append(_number(cells[1], where))
        expected = 1 if level == "sys" else len(self.sources)
        for system, values in scores.items():
            if len(values) != expected:
                raise InputError(f"{path}: {len(values)} scores of the system {system!r}, {expected} are needed")
        return scores

    def write_metric_scores(
        self, metric: str, references: str, scores: Mapping[str, Sequence[float]], *, overwrite: bool = False
    ) -> list[Path]:
        """Writes the scores of a metric, with which mt-metrics-eval can compare it; the system score is the mean over the segments.

        Args:
            metric: its name.
            references: names of the references that it compares with, joined by dots; ``"src"`` or ``"all"``.
            scores: system -> n finite scores, higher is better, for every system but the references that are compared with.
            overwrite: replace scores of that name.

        Returns:
            The two files, of segments and of systems.

        Raises:
            InputError: a name cannot be used, systems or scores are missing or too many, a score is not finite, or the files exist.
            MTMetricsError: the place cannot be written.
        """
        if not metric or "/" in metric or "\\" in metric or metric.startswith("."):
            raise InputError(
                f"metric name {metric!r}: it becomes part of the name of a file, so it cannot be empty, start with '.' or hold a slash"
            )
        self._check_scores(references, scores)
        folder = self.root / "metric-scores" / self.lang_pair
        rows: dict[Level, list[str]] = {
            "seg": [f"{system}\t{float(value)!r}\n" for system, values in scores.items() for value in values],
            "sys": [f"{system}\t{math.fsum(values) / len(values)!r}\n" for system, values in scores.items()],
        }
        files = {folder / f"{metric}-{references}.{level}.score": "".join(lines) for level, lines in rows.items()}
        for path in files:
            if path.exists() and not overwrite:
                raise InputError(f"{path} exists already; choose another name or pass --overwrite")
        make_folder(folder)
        for path, text in files.items():
            write_atomic(path, text)
        return list(files)

    def _check_scores(self, references: str, scores: Mapping[str, Sequence[float]]) -> None:
        compared = {SOURCES_ONLY: [], ALL_REFERENCES: list(self.references)}.get(references, references.split("."))
        for name in compared:
            self.reference(name)
        needed = [system for system in self.outputs if system not in compared]
        for system in needed:
            if system not in scores:
                raise InputError(f"{self.root}: no scores for the system {system!r}; mt-metrics-eval needs all of {', '.join(needed)}")
        for system, values in scores.items():
            if system not in needed:
                raise InputError(f"{self.root}: scores for {system!r}, which is no system of {self.lang_pair}, or compared with itself")
            if len(values) != len(self.sources):
                raise InputError(f"{self.root}: {len(values)} scores for the system {system!r}, but there are {len(self.sources)} segments")
            for number, value in enumerate(values, 1):
                if value is None or not math.isfinite(value):
                    raise InputError(f"{self.root}: score {number} of the system {system!r} is {value}; a finite number is needed")


def _parallel(source_file: Path, lines: int, path: Path) -> list[str]:
    texts = list(iter_lines(path))
    if len(texts) != lines:
        raise InputError(f"{path}: {len(texts)} lines, but {source_file} has {lines}; they must be parallel")
    return texts


def _number(cell: str, where: str) -> float | None:
    if cell == "None":
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: a finite number or None is needed, got {cell!r:.60}")
    return value
