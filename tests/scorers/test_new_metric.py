"""A new metric is four places: a folder of ``metrics``, a module of ``scorers``, a line in the table
of metrics, and a test file. The command line, the list, the page and `evaluate` follow from these."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = '''"""Word share: the share of the words of a reference that a translation holds."""

import dataclasses

from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import option
from mtmetrics.scorers.side import Side


class WordShare(Scorer):
    """The share of the words of a reference that a translation holds."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of word share."""

        lowercase: bool = option(False, "compare words in lower case", signed="lower")

    settings: Settings

    metric = "wordshare"
    sides = (Side.REFERENCE,)
    floor = 0.0
    scale = "from 0 to 1"

    def compute(self, batch: Batch) -> list[PartScores]:
        scores = []
        for predictions in batch.predictions:
            pairs = zip(batch.sources_or_references, predictions, strict=True)
            scores.append(PartScores.plain([self._share(*pair) for pair in pairs]))
        return scores

    def _share(self, reference: str, prediction: str) -> float:
        if self.settings.lowercase:
            reference, prediction = reference.lower(), prediction.lower()
        words = set(reference.split())
        return len(words & set(prediction.split())) / max(1, len(words))
'''
FOLDER = {
    "wordshare.py": '''"""Word share as an `evaluate` module."""

import mtmetrics


class WordShare(mtmetrics.MetricModule):
    """Word share is the share of the words of a reference that a translation holds."""

    metric_name = "wordshare"
    paper = "nobody-2026-words"
    examples = ">>> 1\\n1"
''',
    "paper.bib": """@inproceedings{nobody-2026-words,
    title = "Words in Common",
    url = "https://example.org/words",
    code = "https://example.org/code",
}
""",
}
# The user's side: what follows from the four places. The last line that it prints is JSON.
PROGRAM = """
import json, sys
import evaluate
import mtmetrics
from mtmetrics.cli.main import main
from mtmetrics.layout import metric_names
from mtmetrics.page.offers import descriptions, offers

assert main(["score", "--metric", "wordshare", "--lowercase", sys.argv[1], "--format", "json"]) == 0
assert main(["list", "wordshare"]) == 0
module = evaluate.load(mtmetrics.metric_path("wordshare"))
texts = {"references": ["A small house"], "predictions": ["a house"]}
result = module.compute(**texts, lowercase=True)
facts = {
    "names": metric_names(),
    "offered": [offer.title for offer in offers() if offer.spec.metric == "wordshare"],
    "about": descriptions()["wordshare"]["about"],
    "citation": module.citation.splitlines()[0],
    "documented": "lowercase (`bool`): compare words in lower case." in module.inputs_description,
    "signature": result["signature"],
    "score": round(result["mean_score"], 4),
}
print("\\n" + json.dumps(facts))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package with the four places filled; weights are links."""
    package, scripts = tmp_path / "tools" / "mtmetrics", tmp_path / "metrics"
    no_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tools" / "mtmetrics", package, ignore=no_caches)
    scripts.mkdir()
    for folder in (ROOT / "metrics").iterdir():
        (scripts / folder.name).symlink_to(folder)
    (tmp_path / "hub_artifacts").symlink_to(ROOT / "hub_artifacts")
    (scripts / "wordshare").mkdir()
    for name, text in FOLDER.items():
        (scripts / "wordshare" / name).write_text(text, encoding="utf-8")
    (package / "scorers" / "wordshare.py").write_text(MODULE, encoding="utf-8")
    registry = package / "scorers" / "metric.py"
    text = registry.read_text(encoding="utf-8")
    last_line = '        "cmd": "commands.CommandMetric",\n'
    assert text.count(last_line) == 1
    line = '        "wordshare": "wordshare.WordShare",\n'
    registry.write_text(text.replace(last_line, last_line + line), encoding="utf-8")
    return tmp_path


def test_a_new_metric_is_four_places(tree: Path) -> None:
    rows = tree / "rows.tsv"
    rows.write_text("A small house\ta house\n", encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": str(tree / "tools"),
        "HF_HOME": str(tree / "cache"),
        "HF_EVALUATE_OFFLINE": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(rows)],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout.splitlines()[-1])
    assert "wordshare" in facts["names"]
    assert facts["offered"] == ["wordshare"]
    assert facts["about"] == "The share of the words of a reference that a translation holds."
    assert facts["citation"] == "@inproceedings{nobody-2026-words,"
    assert facts["documented"]
    assert "wordshare|lower:yes|" in facts["signature"]
    assert facts["score"] == 0.6667
