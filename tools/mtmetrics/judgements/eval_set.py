"""Test sets in the folder layout of Google's mt-metrics-eval, which calls a test set and language
pair an `EvalSet`.

A folder holds these files:

- ``sources/XX-YY.txt``
- ``references/XX-YY.REF.txt``
- ``system-outputs/XX-YY/SYSTEM.txt``
- ``human-scores/XX-YY.NAME.LEVEL.score``
- ``metric-scores/XX-YY/METRIC-REFS.LEVEL.score``

Texts have a segment per line. Scores have a system and its score per line: at the level ``seg`` the
segments of a system follow each other in order, at the level ``sys`` there is one line per system.
``None`` is a missing judgement. REFS names the references that a metric compares with, joined by
dots, or is ``src`` or ``all``. A reference that was judged like a system has its name among the
systems too. Source: https://github.com/google-research/mt-metrics-eval, "File organization and
naming convention".
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from mtmetrics.checks import names_of_pair
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.io.lines import iter_lines
from mtmetrics.judgements import Cell

FileLevel = Literal["seg", "sys"]
# Names of the judgements of WMT's metrics tasks since 2019, best first. Raw values go before
# z-scores for segments, and behind them for systems.
_STANDARD: dict[FileLevel, tuple[str, ...]] = {
    "seg": ("mqm", "esa", "da-sqm", "wmt", "wmt-appraise", "wmt-raw", "wmt-z"),
    "sys": ("mqm", "esa", "da-sqm", "wmt", "wmt-appraise", "wmt-z", "wmt-raw"),
}
_RAW = "wmt-raw"
# System -> its scores: n for segments, one for a system; None where one is missing.
Scores = dict[str, list[float | None]]
SOURCES_ONLY, ALL_REFERENCES = "src", "all"
_USUAL_REFERENCES = ("refA", "ref")


def is_test_set(path: str | Path) -> bool:
    """Whether a folder has the layout of mt-metrics-eval."""
    return all((Path(path) / name).is_dir() for name in ("sources", "system-outputs"))


def lang_pairs(root: str | Path) -> list[str]:
    """The language pairs of a test set of mt-metrics-eval, sorted; a folder without any is
    refused."""
    pairs = sorted(path.stem for path in (Path(root) / "sources").glob("*.txt"))
    if not pairs:
        needed = "a test set of mt-metrics-eval is needed, such as mt-metrics-eval-v2/wmt22"
        raise InputError(f"{root}: no sources/XX-YY.txt; {needed}")
    return pairs


def read_test_set(
    root: str | Path,
    level: FileLevel,
    *,
    lang_pair: str | None = None,
) -> dict[str, dict[str, Sequence[Cell]]]:
    """Language pair -> the columns of `mtmetrics.judgements.judged.Judged`, of all systems with
    human scores, one after the other.

    Translations by people are left out, as in the metrics tasks. The reference is the one of
    `EvalSet.reference`, the item is the number of the segment, and at the level ``seg`` the scores
    of metrics are columns. Pairs without human scores are left out.

    Args:
        root: the folder of the test set.
        level: of the judgements.
        lang_pair: read this pair only.

    Raises:
        InputError: there is no such pair, or no pair has human scores.
    """
    pairs = lang_pairs(root)
    if lang_pair is not None:
        # Without a name of these languages, `EvalSet.read` says which there are.
        pairs = names_of_pair(lang_pair, pairs) or [lang_pair]
    judged_pairs = {}
    for pair in pairs:
        columns = EvalSet.read(root, pair).judged(level)
        if columns is not None:
            judged_pairs[pair] = columns
    if not judged_pairs:
        name = f"{lang_pair or 'XX-YY'}.NAME.{level}.score"
        raise InputError(f"{root}: no human-scores/{name}; there is nothing to judge")
    return judged_pairs


@dataclasses.dataclass(frozen=True)
class EvalSet:
    """A language pair: n sources, name -> n references, system -> n translations (people's too);
    scores on demand."""

    root: Path
    lang_pair: str
    sources: list[str]
    references: dict[str, list[str]]
    outputs: dict[str, list[str]]

    @classmethod
    def read(cls, root: str | Path, lang_pair: str) -> "EvalSet":
        """Reads the texts; refuses files that differ in their number of lines."""
        root = Path(root)
        if lang_pair not in lang_pairs(root):
            raise InputError(
                f"{root}: no language pair {lang_pair}; there are: {', '.join(lang_pairs(root))}"
            )
        source_file = root / "sources" / f"{lang_pair}.txt"
        sources = list(iter_lines(source_file))
        if not sources:
            raise InputError(f"{source_file}: empty; there is nothing to score")

        def read(path: Path) -> list[str]:
            texts = list(iter_lines(path))
            if len(texts) != len(sources):
                parallel = f"but {source_file} has {len(sources)}; they must be parallel"
                raise InputError(f"{path}: {len(texts)} lines, {parallel}")
            return texts

        references = {
            path.name.split(".")[-2]: read(path)
            for path in sorted((root / "references").glob(f"{lang_pair}.*.txt"))
        }
        outputs = {
            path.stem: read(path)
            for path in sorted((root / "system-outputs" / lang_pair).glob("*.txt"))
        }
        if not outputs:
            raise InputError(
                f"{root / 'system-outputs' / lang_pair}: no SYSTEM.txt in it; there is nothing "
                "to score"
            )
        return cls(root, lang_pair, sources, references, outputs)

    def reference(self, name: str | None = None) -> str | None:
        """The reference to compare with: the one asked for, else refA or ref, else the first; None
        where there is none.

        mt-metrics-eval keeps a list of the standard reference of each WMT set, which this rule
        meets for most."""
        if name is not None and name not in self.references:
            names = ", ".join(self.references) or "none"
            raise InputError(
                f"{self.root}: no reference {name!r} for {self.lang_pair}; there are: {names}"
            )
        wanted = (*_USUAL_REFERENCES, *self.references)
        return name or next((usual for usual in wanted if usual in self.references), None)

    def human_scores(self, name: str, level: FileLevel) -> Scores:
        """System -> one human score per segment, or a single one at the level ``sys``; None where
        there is none."""
        return self._scores(
            self.root / "human-scores" / f"{self.lang_pair}.{name}.{level}.score", level
        )

    def metric_scores(self) -> dict[str, Scores]:
        """``METRIC-REFS`` -> system -> n scores of segments as they stand in the folder, perhaps
        not finite."""
        end = ".seg.score"
        files = sorted((self.root / "metric-scores" / self.lang_pair).glob(f"*{end}"))
        return {
            path.name.removesuffix(end): self._scores(path, "seg", finite=False) for path in files
        }

    def judged(self, level: FileLevel) -> dict[str, Sequence[Cell]] | None:
        """The columns of `mtmetrics.judgements.judged.Judged`; None where there are no human
        scores."""
        end = f".{level}.score"
        files = (self.root / "human-scores").glob(f"{self.lang_pair}.*{end}")
        names = sorted(
            path.name.removeprefix(f"{self.lang_pair}.").removesuffix(end) for path in files
        )
        if not names:
            return None
        standard_names = [name for name in _STANDARD[level] if name in names]
        if not standard_names and len(names) > 1:
            raise InputError(
                f"{self.root / 'human-scores'}: {self.lang_pair} has the scores "
                f"{', '.join(names)}; one of them must be called {', '.join(_STANDARD[level])}"
            )
        human = self.human_scores((standard_names or names)[0], level)
        if level == "sys":
            human = {
                system: values * len(self.sources)
                for system, values in human.items()
                if values != [None]
            }
        systems = [system for system in human if system not in self.references]
        reference = self.reference()

        def column(cells: Mapping[str, Sequence[Cell]]) -> list[Cell]:
            """The cells of all systems one after the other; None for a system without any."""
            empty = [None] * len(self.sources)
            return [cell for system in systems for cell in cells.get(system, empty)]

        reference_of_system = {}
        if reference is not None:
            reference_of_system = dict.fromkeys(systems, self.references[reference])
        columns: dict[str, Sequence[Cell]] = {
            "source": self.sources * len(systems),
            "translation": [text for system in systems for text in self.outputs[system]],
            "reference": column(reference_of_system),
            "system": [system for system in systems for _ in self.sources],
            "item": [str(number) for number in range(1, len(self.sources) + 1)] * len(systems),
            "human": column(human),
        }
        if level == "seg":
            raw = {"raw": column(self.human_scores(_RAW, "seg"))} if _RAW in names else {}
            columns |= raw | {
                metric: column(scores) for metric, scores in self.metric_scores().items()
            }
        return columns

    def _scores(self, path: Path, level: FileLevel, *, finite: bool = True) -> Scores:
        scores: Scores = {}
        for number, line in enumerate(iter_lines(path), 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            cells = line.split()
            if len(cells) != 2:
                raise InputError(f"{where}: a system and its score are needed, got {line!r:.60}")
            system, score = cells
            if system not in self.outputs:
                raise InputError(
                    f"{where}: no system {system!r} in system-outputs/{self.lang_pair}"
                )
            try:
                value = None if score == "None" else float(score)
            except ValueError:
                raise InputError(
                    f"{where}: a number or None is needed, got {score!r:.60}"
                ) from None
            if finite and value is not None and not math.isfinite(value):
                raise InputError(f"{where}: a finite number or None is needed, got {score!r}")
            scores.setdefault(system, []).append(value)
        expected = 1 if level == "sys" else len(self.sources)
        for system, values in scores.items():
            if len(values) != expected:
                raise InputError(
                    f"{path}: {len(values)} scores of the system {system!r}, {expected} are needed"
                )
        return scores

    def scored_systems(self, references: str) -> dict[str, list[str]]:
        """System -> n translations that a metric has to score: all but the references that it
        compares with, names joined by dots, ``"src"`` for none or ``"all"``; others are refused."""
        compared = {SOURCES_ONLY: [], ALL_REFERENCES: list(self.references)}.get(
            references, references.split(".")
        )
        for name in compared:
            self.reference(name)
        return {system: texts for system, texts in self.outputs.items() if system not in compared}

    def metric_files(
        self,
        metric: str,
        references: str,
        *,
        overwrite: bool = False,
    ) -> dict[FileLevel, Path]:
        """The files to which scores of a metric are written, by level; impossible names and
        existing files are refused."""
        if not metric or metric.startswith(".") or not set(metric).isdisjoint("/\\ \t\n"):
            refused = "no blank, no slash and no '.' at the start are allowed"
            raise InputError(f"metric name {metric!r}: it becomes the name of a file; {refused}")
        folder = self.root / "metric-scores" / self.lang_pair
        files: dict[FileLevel, Path] = {
            level: folder / f"{metric}-{references}.{level}.score" for level in ("seg", "sys")
        }
        for path in files.values():
            if path.exists() and not overwrite:
                raise InputError(f"{path} exists already; choose another name or pass --overwrite")
        return files

    def write_metric_scores(
        self,
        metric: str,
        references: str,
        scores: Mapping[str, Sequence[float]],
        *,
        overwrite: bool = False,
    ) -> dict[FileLevel, Path]:
        """Writes system -> n finite scores, higher is better, of exactly the `scored_systems`, for
        mt-metrics-eval to compare, and returns the files by level. A system's score is the mean
        over its segments."""
        systems = self.scored_systems(references)
        files = self.metric_files(metric, references, overwrite=overwrite)
        fits = all(
            len(values) == len(self.sources) and np.isfinite(values).all()
            for values in scores.values()
        )
        if scores.keys() != systems.keys() or not fits:
            needed = (
                f"mt-metrics-eval needs {len(self.sources)} finite scores of each of "
                f"{', '.join(systems)}"
            )
            raise InputError(
                f"{self.root}: scores of {', '.join(scores) or 'no system'}, but {needed}"
            )
        lines: dict[FileLevel, list[str]] = {
            "seg": [
                f"{system}\t{float(value)!r}\n"
                for system, values in scores.items()
                for value in values
            ],
            "sys": [f"{system}\t{float(np.mean(values))!r}\n" for system, values in scores.items()],
        }
        for level, path in files.items():
            make_folder(path.parent)
            write_atomic(path, "".join(lines[level]))
        return files
