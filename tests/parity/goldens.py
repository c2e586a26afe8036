"""Finds golden files, decides which of their cases are listed as not reproduced, and counts what
ran."""

import dataclasses
import fnmatch
import functools
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tally import FULL, LISTED, PART, SKIPPED, TALLY

from mtmetrics.matching.transport import cost_matrix
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.xmoverscore import XMoverScore


@dataclasses.dataclass(frozen=True)
class Case:
    """One golden case: its folder, file, number, parameters, inputs and outputs."""

    folder: Path
    file: str
    number: int
    params: dict[str, Any]
    inputs: list[dict[str, str]]
    outputs: dict[str, Any]
    extra: dict[str, Any]
    document: dict[str, Any]

    @property
    def name(self) -> str:
        """File and number."""
        return f"{self.file}#{self.number}"

    def texts(self, *columns: str) -> list[list[str]]:
        """Columns of the inputs."""
        return [[row[column] for row in self.inputs] for column in columns]

    def array(self, key: str) -> np.ndarray:
        """A list of numbers of the outputs."""
        return np.array(self.outputs[key], dtype=np.float64)

    def path(self, name: str) -> Path:
        """A file that the case names."""
        return self.folder / name

    def model(self, key: str) -> Path:
        """A model of the file's header."""
        return self.path(self.document["model"][key])


def cases(kind: str) -> list[Any]:
    """The cases of all golden files of a kind, as pytest parameters: those of the part in this
    repository, and those of the full folder, or a skipped one where there is no such file."""
    part, full = (_cases(folder, f"{kind}.*.json") for folder in (PART, FULL))
    return [pytest.param(case, id=case.name) for case in part] + _parameters(full, f"{kind}.*.json")


def _cases(folder: Path, pattern: str) -> list[Case]:
    found = []
    for path in sorted(folder.glob(pattern)):
        document = json.loads(path.read_text(encoding="utf-8"))
        for number, case in enumerate(document["cases"]):
            rows = _inputs(document, case)
            found.append(
                Case(
                    folder, path.name, number, case["params"], rows, case["outputs"], case, document
                )
            )
    return found


def archives(kind: str) -> list[Any]:
    """The ``.npz`` golden files of a kind, as pytest parameters; a skipped one where there is
    none."""
    return _parameters(sorted(FULL.glob(f"{kind}.*.npz")), f"{kind}.*.npz")


def _parameters(found: Sequence[Any], pattern: str) -> list[Any]:
    if not found:
        SKIPPED.append(pattern)
    skip = pytest.mark.skip(
        reason=f"no {pattern} in {FULL}; MTMETRICS_GOLDENS names the folder of all golden files"
    )
    return [pytest.param(one, id=one.name) for one in found] or [pytest.param(None, marks=skip)]


@functools.cache
def encoder(model: Path, layer: int | None) -> TokenEncoder:
    """An encoder, loaded once."""
    return TokenEncoder(model, layer=layer)


@functools.cache
def language_model(model: Path) -> LanguageModel:
    """A language model without a start token, as the published code uses it, loaded once."""
    return LanguageModel(model, start_token="never")


def count(file: str, outcome: str) -> None:
    """Counts a case for the summary."""
    TALLY[file.split(".")[0], outcome] += 1


def run(case: Case, check: Callable[[Case], None]) -> None:
    """Runs the check of a case, which fails where the case is listed, and counts the outcome."""
    count(case.file, "ran")
    if reason := quirk(case):
        LISTED[case.name] = reason
        count(case.file, "listed")
        try:
            check(case)
        except AssertionError:
            return
        pytest.fail(
            f"{case.name} is listed as not reproduced ({reason}), but it is; quirks.toml is stale"
        )
    check(case)
    count(case.file, "passed")


def run_named(case: Case, checks: dict[str, Callable[[Case], None]]) -> None:
    """Runs the first check whose name begins the name of the function that the case is about."""
    run(
        case,
        next(check for start, check in checks.items() if case.params["function"].startswith(start)),
    )


def first_number(text: str) -> int:
    """The first number that stands in a description, such as "first 12 inputs"."""
    return int(re.findall(r"\d+", text)[0])


def quirk(case: Case) -> str | None:
    """The reason for which ``quirks.toml`` lists a case as not reproduced, or None."""
    given = {**case.params, "file": case.file}
    for entry in _document()["quirk"]:
        wanted = {**entry["params"], "file": entry["file"]}
        if all(
            key in given and fnmatch.fnmatch(str(given[key]), str(pattern))
            for key, pattern in wanted.items()
        ):
            return entry["reason"]
    return None


def listed_items(case: Case) -> dict[str, str]:
    """Ids of single inputs that ``quirks.toml`` excludes, with the reason."""
    items = {}
    for row in case.inputs:
        if row["source"] == row["hypothesis"] and row["source"] and "version" not in case.params:
            items[row["id"]] = _document()["identical"]["reason"]
    return items


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "quirks.toml").read_text(encoding="utf-8"))


def _inputs(document: dict[str, Any], case: dict[str, Any]) -> list[dict[str, str]]:
    if "single" in case:
        return [case["single"]]
    rows = document["inputs"]
    return [row for row in rows if row["id"] in set(case["subset"])] if "subset" in case else rows


def undecided(
    scorer: XMoverScore, source: str, prediction: str, tolerance: float, draws: int = 32
) -> bool:
    """Whether distances that differ by the noise of float32, in which the published code takes
    them, lead partial transport to another flow with another score: several flows are optimal then,
    or as good as that."""
    (x, _), (y, _) = (
        next(scorer._ngram_units([text], side))
        for text, side in ((source, "source"), (prediction, "target"))
    )
    masses = [side.weights / side.weights.sum() for side in (x, y)]
    cost, generator = cost_matrix(x.vectors, y.vectors, scorer.distance), np.random.default_rng(0)
    noise = (5e-7 * generator.uniform(-1, 1, cost.shape) for _ in range(draws))
    values = [scorer._transport(np.maximum(cost + noisy, 0), *masses)[1] for noisy in noise]
    return float(np.ptp(values)) > tolerance


def weighted(
    scorer: XMoverScore, weights: list[float], sources: list[str], predictions: list[str]
) -> np.ndarray:
    """Both parts of XMoverScore with the weights that the published code takes."""
    languages = scorer.iso_languages
    source_tokens = scorer.encoder.encode(sources, languages.source)
    target_tokens = scorer.target_encoder.encode(predictions, languages.target)
    mover = scorer.mover_part(
        scorer.build_ngrams(source_tokens, "source"), scorer.build_ngrams(target_tokens, "target")
    )
    return weights[0] * mover + weights[1] * scorer.lm_part(predictions)[0]
