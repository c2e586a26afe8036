"""Finds golden files, decides which of their cases are listed as not reproduced, and counts what ran."""

import dataclasses
import fnmatch
import functools
import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.xmoverscore import XMoverScore

FOLDER = Path(os.environ.get("MTMETRICS_GOLDENS") or Path(__file__).parents[3] / "shared" / "goldens")
TALLY: Counter[tuple[str, str]] = Counter()
LISTED: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Case:
    """One golden case: its file, number, parameters, inputs and outputs."""

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

    def array(self, key: str) -> np.ndarray:
        """A list of numbers of the outputs."""
        return np.array(self.outputs[key], dtype=np.float64)

    def path(self, name: str) -> Path:
        """A file that the case names."""
        return FOLDER / name

    def model(self, key: str) -> Path:
        """A model of the file's header."""
        return FOLDER / self.document["model"][key]


def cases(kind: str) -> list[Any]:
    """The cases of all golden files of a kind, as pytest parameters; one skipped parameter where there is no such
    file."""
    found = []
    for path in sorted(FOLDER.glob(f"{kind}.*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for number, case in enumerate(document["cases"]):
            found.append(
                Case(path.name, number, case["params"], _inputs(document, case), case["outputs"], case, document)
            )
    if not found:
        return [
            pytest.param(None, marks=pytest.mark.skip(reason=f"no {kind}.*.json in {FOLDER} (set MTMETRICS_GOLDENS)"))
        ]
    return [pytest.param(case, id=case.name) for case in found]


def archives(kind: str) -> list[Any]:
    """The ``.npz`` golden files of a kind, as pytest parameters; skipped where there is none."""
    found = sorted(FOLDER.glob(f"{kind}.*.npz"))
    if not found:
        return [
            pytest.param(None, marks=pytest.mark.skip(reason=f"no {kind}.*.npz in {FOLDER} (set MTMETRICS_GOLDENS)"))
        ]
    return [pytest.param(path, id=path.name) for path in found]


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
    """Runs the check of a case, unless the case is listed, and counts the outcome."""
    count(case.file, "ran")
    if reason := quirk(case):
        LISTED[case.name] = reason
        count(case.file, "listed")
        return
    check(case)
    count(case.file, "passed")


def quirk(case: Case) -> str | None:
    """The reason for which ``quirks.toml`` lists a case as not reproduced, or None."""
    for entry in _quirks():
        wanted = entry["params"]
        if fnmatch.fnmatch(case.file, entry["file"]) and all(
            key in case.params and fnmatch.fnmatch(str(case.params[key]), str(pattern))
            for key, pattern in wanted.items()
        ):
            return entry["reason"]
    return None


def listed_items(case: Case) -> dict[str, str]:
    """Ids of single inputs that ``quirks.toml`` or the golden file itself excludes, with the reason."""
    items = dict.fromkeys(case.extra.get("unstable_ids", []), "the file marks it as unstable")
    for row in case.inputs:
        if row["source"] == row["hypothesis"] and row["source"] and "version" not in case.params:
            items[row["id"]] = _document()["identical"]["reason"]
    return items


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "quirks.toml").read_text(encoding="utf-8"))


def _quirks() -> list[dict[str, Any]]:
    return _document()["quirk"]


def _inputs(document: dict[str, Any], case: dict[str, Any]) -> list[dict[str, str]]:
    if "single" in case:
        return [case["single"]]
    rows = document["inputs"]
    return [row for row in rows if row["id"] in set(case["subset"])] if "subset" in case else rows


def weighted(scorer: XMoverScore, weights: list[float], sources: list[str], predictions: list[str]) -> np.ndarray:
    """Both parts of XMoverScore with the weights that the published code takes."""
    mover = scorer.mover(scorer.ngrams(sources, "source"), scorer.ngrams(predictions, "target"))
    return weights[0] * mover + weights[1] * scorer.fluency(predictions)[0]
