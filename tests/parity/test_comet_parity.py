"""COMET: each family, pooling and mix of layers gives the published package's scores and errors."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import converting_here
from tally import TALLY

from mtmetrics.artifacts.convert import convert_model
from mtmetrics.scorers.comet import CometScore
from mtmetrics.scorers.registry import load_scorer

FOLDER = Path(__file__).parent / "comet"
GOLDENS: dict[str, Any] = json.loads((FOLDER / "goldens.json").read_text(encoding="utf-8"))
CASES = [(model, side) for model, sides in GOLDENS["models"].items() for side in sides]
_PARTS = {
    "src_scores": "src",
    "ref_scores": "ref",
    "unified_scores": "unified",
    "mqm_scores": "mqm",
}


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all checkpoints, as ours."""
    root = tmp_path_factory.mktemp("comet")
    # The checkpoints name encoders that lie there.
    with contextlib.chdir(FOLDER), converting_here():
        for model in GOLDENS["models"]:
            mini = {"encoder": "encoders/MiniLM"} if model == "regression-default" else {}
            convert_model(Path("models", model), root / model, local_files_only=True, **mini)
    return root


def columns() -> dict[str, list[str]]:
    names = {"predictions": "mt", "sources": "src", "references": "ref"}
    return {column: [row[key] for row in GOLDENS["data"]] for column, key in names.items()}


@pytest.mark.filterwarnings("ignore:of 30 segments")
@pytest.mark.parametrize(("model", "side"), CASES)
def test_scores_parts_and_errors(converted: Path, model: str, side: str) -> None:
    TALLY["comet", "ran"] += 1
    wanted = GOLDENS["models"][model][side]
    scorer = load_scorer("comet", str(converted / model), against=side)
    assert isinstance(scorer, CometScore)
    result = scorer.score(**columns())
    np.testing.assert_allclose(result.segments, wanted["scores"], rtol=0, atol=2e-5)
    # What the package says of an input with the reference alone is called the source's there, cut
    # at 1.
    told = {
        part: wanted[name] for name, part in _PARTS.items() if name in wanted and side == "both"
    }
    for part, values in told.items():
        np.testing.assert_allclose(result.parts[part], values, rtol=0, atol=2e-5)
    if "error_spans" in wanted:
        assert [[_plain(span) for span in spans] for spans in scorer.errors(**columns())] == [
            [_rounded(span) for span in spans] for spans in wanted["error_spans"]
        ]
    TALLY["comet", "passed"] += 1


def _plain(span: Any) -> tuple[Any, ...]:
    return span.start, span.end, span.severity, pytest.approx(span.confidence, abs=2e-5)


def _rounded(span: dict[str, Any]) -> tuple[Any, ...]:
    return span["start"], span["end"], span["severity"], span["confidence"]


def test_the_goldens_tell_families_apart() -> None:
    """Where a family gave the same number for everything, nothing would be shown."""
    for model, side in CASES:
        scores = np.array(GOLDENS["models"][model][side]["scores"])
        assert scores.std() > 1e-3, (model, side)
    found = GOLDENS["models"]["xcomet"]["both"]["error_spans"]
    assert len({span["severity"] for spans in found for span in spans}) > 1
