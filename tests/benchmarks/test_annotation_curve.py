"""What the script for Mathur's Figure 1 trains on; the training itself has tests of its own."""

import json
from pathlib import Path

import annotation_curve
import pytest
from helpers import write_jsonl

from mtmetrics.errors import InputError


def test_circles_and_crosses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"reference": "r", "translation": f"t{i}", "annotations": [i, i + 2.0, i + 4.0, i + 6.0]} for i in range(8)]
    rows.append({"reference": "r", "translation": "few", "annotations": [0.0]})
    trained = {}

    def train(run, judged, encoder, **options):
        lines = [json.loads(line) for line in Path(judged[0]).read_text().splitlines()]
        trained[Path(judged[0]).parent.name] = {line["translation"]: line["human"] for line in lines}
        run.history = [{"pearson": 0.1 * len(trained)}, {"pearson": 0.0}]

    monkeypatch.setattr(annotation_curve, "train_regressor", train)
    judged, out = write_jsonl(tmp_path / "judged.jsonl", rows), tmp_path / "out"
    argv = [
        "--judged",
        str(judged),
        "--encoder",
        "e",
        "--out",
        str(out),
        "--counts",
        "1",
        "2",
        "4",
        "--translations",
        "3",
    ]
    assert annotation_curve.main(argv) == 0
    lines = json.loads((out / "curve.json").read_text())
    assert list(lines["mean of N annotations"]) == ["3", "6", "12"]
    # There are no 12 translations for a circle.
    assert list(lines["one annotation of each"]) == ["3", "6"]
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    one, two, four, six = (
        trained[f"{n}-annotations-seed-1"]
        for n in ("3-translations-1", "3-translations-2", "3-translations-4", "6-translations-1")
    )
    assert set(one) == set(two) == set(four) < set(six)
    assert "few" not in six
    assert {name: human - int(name[1]) for name, human in four.items()} == dict.fromkeys(four, 3.0)
    assert all(human - int(name[1]) in {0.0, 2.0, 4.0, 6.0} and six[name] == human for name, human in one.items())
    # A second call trains nothing again.
    trained.clear()
    assert annotation_curve.main(argv) == 0
    assert not trained
    with pytest.raises(InputError, match="0 translations have 9 annotations"):
        annotation_curve.main([*argv, "--counts", "9"])
