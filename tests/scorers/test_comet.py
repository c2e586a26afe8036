"""COMET as a metric: what it compares with, what changes no score, and what is said where it cannot
score."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import both, write_jsonl, write_preset

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import source_tree
from mtmetrics.models.comet_network import CometNetwork
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer

GOLDENS = source_tree() / "tests" / "parity" / "comet"
DATA = json.loads((GOLDENS / "goldens.json").read_text(encoding="utf-8"))["data"]
SOURCES, TEXTS, REFERENCES = ([row[key] for row in DATA] for key in ("src", "mt", "ref"))
BOTH = list(zip(SOURCES, REFERENCES, strict=True))
pytestmark = pytest.mark.filterwarnings("ignore:of .* segments")


@pytest.fixture(scope="module")
def checkpoints(comet_checkpoints: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTMETRICS_ARTIFACTS", str(comet_checkpoints))
        yield comet_checkpoints


@pytest.mark.parametrize(
    ("model", "side"), [("regression", "both"), ("xcomet", "both"), ("unified-bert", "source")]
)
def test_neither_order_nor_neighbours_nor_batches_change_a_score(
    checkpoints: Path, model: str, side: str
) -> None:
    columns = {"sources": SOURCES, "references": REFERENCES}
    backwards = {name: texts[::-1] for name, texts in columns.items()}
    whole = load_scorer("comet", model, against=side).score(TEXTS, **columns)
    turned = load_scorer("comet", model, against=side).score(TEXTS[::-1], **backwards)
    np.testing.assert_allclose(turned.segments[::-1], whole.segments, atol=2e-6)
    small = load_scorer("comet", model, against=side, pool=ModelPool(batch_tokens=64))
    alone = [
        small.score([text], sources=[source], references=[reference]).system
        for source, reference, text in zip(SOURCES, REFERENCES, TEXTS, strict=True)
    ]
    np.testing.assert_allclose(alone, whole.segments, atol=2e-6)


def test_no_text_is_encoded_twice(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    vectors = CometNetwork.text_vectors

    def counted(self: CometNetwork, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        read.append(len(ids))
        return vectors(self, ids, mask)

    monkeypatch.setattr(CometNetwork, "text_vectors", counted)
    scorer = load_scorer("comet", "regression")
    scorer.score_systems({"a": TEXTS, "b": TEXTS[::-1], "c": REFERENCES}, **both(BOTH))
    assert sum(read) == len({*SOURCES, *REFERENCES, *TEXTS})


def test_a_preset_of_a_usual_name(checkpoints: Path) -> None:
    scorer = load_scorer("comet", "wmt22-comet-da", lang_pair="de-en")
    assert scorer.side == "both"
    assert scorer.signature.startswith("comet|lp:de-en|model:regression#")
    assert (
        load_scorer("comet").signature
        == load_scorer("comet", model=str(checkpoints / "regression")).signature
    )
    with pytest.raises(
        InputError, match="preset wmt22-comet-da compares with the source and the reference only"
    ):
        load_scorer("comet", "wmt22-comet-da", against="source")
    with pytest.raises(InputError, match="COMET unified-source compares with the source$"):
        load_scorer("comet", model=str(checkpoints / "unified-source"), against="both")


def test_blank_sides_get_the_floor_and_cut_texts_are_counted(checkpoints: Path) -> None:
    result = load_scorer("comet", "xcomet").score(
        ["x", "y", ""], **both([("a", ""), (" ", "b"), BOTH[0]])
    )
    assert (result.segments.tolist(), result.report.blank) == ([0.0] * 3, 3)
    assert all(values.tolist() == [0.0] * 3 for values in result.parts.values())
    assert set(result.parts) == {"src", "ref", "unified", "mqm"}
    long = " ".join(["haus"] * 60)
    report = (
        load_scorer("comet", "regression")
        .score([*TEXTS[:2], "b"], **both([*BOTH[:2], ("a", long)]))
        .report
    )
    assert (report.truncated, report.places["truncated"]) == (1, [3])
    # Each is short enough, but not all of them together.
    third = " ".join(["der"] * 5)
    joint = load_scorer("comet", "xcomet", against="both").score([third], **both([(third, third)]))
    assert (
        joint.report.truncated,
        load_scorer("comet", "xcomet").score(["c"], **both([("a", "b")])).report.truncated,
    ) == (
        1,
        0,
    )


def test_several_references_and_number_formats(checkpoints: Path) -> None:
    scorer = load_scorer("comet", "regression")
    one, other = (
        scorer.score(TEXTS[:1], **both(BOTH[:1])).system,
        scorer.score(TEXTS[:1], **both([(SOURCES[0], REFERENCES[1])])).system,
    )
    several = scorer.score(TEXTS[:1], **both([(SOURCES[0], [REFERENCES[0], REFERENCES[1]])]))
    assert several.system == pytest.approx(max(one, other), abs=1e-6)
    half = load_scorer("comet", "regression", pool=ModelPool(dtype="bfloat16"))
    assert "|dtype:bf16|" in half.signature
    assert half.score(TEXTS[:1], **both(BOTH[:1])).system == pytest.approx(one, abs=0.1)


def test_errors_are_those_of_networks_that_look_for_them(checkpoints: Path) -> None:
    scorer = load_scorer("comet", "xcomet", against="source")
    found = scorer.errors(TEXTS, sources=SOURCES)
    assert any(found)
    assert all(
        0 <= span.start <= span.end <= len(text)
        for text, spans in zip(TEXTS, found, strict=True)
        for span in spans
    )
    with pytest.raises(
        InputError, match="errors: COMET regression gives scores alone; XCOMET finds errors"
    ):
        load_scorer("comet", "regression").errors(TEXTS, **both(BOTH))
    with pytest.raises(InputError, match="alignments: this metric compares whole texts"):
        scorer.align(TEXTS, sources=SOURCES)


def test_errors_refuse_several_references(checkpoints: Path) -> None:
    scorer = load_scorer("comet", "xcomet")
    columns = {"sources": SOURCES[:1], "references": [[REFERENCES[0], "x"]]}
    for find in (scorer.errors, scorer.blame):
        with pytest.raises(InputError, match=r"references\[0\]"):
            find(TEXTS[:1], **columns)


def test_a_preset_says_which_side_its_checkpoint_compares_with(
    checkpoints: Path, tmp_path: Path
) -> None:
    model = f'[comet]\nmodel = "{checkpoints / "xcomet"}"\n'
    preset = write_preset(tmp_path, f'{model}[score]\nagainst = "source"\n')
    scorer = load_scorer("comet", preset)
    assert (scorer.side, "|against:source|" in scorer.signature) == ("source", True)
    result = scorer.score(TEXTS, sources=SOURCES)
    wanted = load_scorer("comet", "xcomet", against="source").score(TEXTS, sources=SOURCES)
    np.testing.assert_array_equal(result.segments, wanted.segments)
    with pytest.raises(InputError, match="compares with the source only"):
        load_scorer("comet", preset, against="both")


def test_words_of_errors_are_at_fault(checkpoints: Path, mtmetrics, tmp_path: Path) -> None:
    scorer = load_scorer("comet", "xcomet")
    assert (scorer.can_align, scorer.can_blame) == (False, True)
    row = next(
        row
        for row, spans in enumerate(scorer.errors(TEXTS, **both(BOTH)))
        if spans and not TEXTS[row].isspace()
    )
    [faults] = scorer.blame(TEXTS[row : row + 1], **both(BOTH[row : row + 1]))
    assert sum(fault.share for fault in faults) == pytest.approx(1.0)
    assert {fault.severity for fault in faults} <= {0.0, 0.6, 0.85, 1.0}
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        json.dumps(
            {"source": SOURCES[row], "reference": REFERENCES[row], "translation": TEXTS[row]}
        )
    )
    code, out, _ = mtmetrics(
        "explain", "--metric", "comet:xcomet", "--format", "json", "--full-precision", rows
    )
    [segment] = json.loads(out)["segments"]
    assert (code, segment["source"], segment["reference"]) == (0, SOURCES[row], REFERENCES[row])
    assert [fault["share"] for fault in segment["faults"]] == [fault.share for fault in faults]
    assert "alignment" not in segment
    code, out, _ = mtmetrics("explain", "--metric", "comet:xcomet", "--format", "text", rows)
    assert (code, f"reference      {REFERENCES[row]}" in out, "most at fault" in out) == (
        0,
        True,
        True,
    )
    code, _, err = mtmetrics(
        "explain", "--metric", "comet:xcomet", "--plot", tmp_path / "plots", rows
    )
    assert (code, "alignments: this metric compares whole texts" in err) == (2, True)


@pytest.mark.parametrize(("model", "side"), [("regression", "both"), ("unified-source", "source")])
def test_where_no_errors_are_found_words_are_at_fault_that_have_nothing_like_them(
    checkpoints: Path, mtmetrics, tmp_path: Path, model: str, side: str
) -> None:
    scorer = load_scorer("comet", model)
    same, other = "das haus ist klein", "das haus ist bunt"
    row = {"source": "irgend etwas", "reference": same} if side == "both" else {"source": same}
    columns = {f"{name}s": [text] for name, text in row.items()}
    thrice = {name: texts * 3 for name, texts in columns.items()}
    kept, changed, blank = scorer.blame([same, other, " "], **thrice)
    assert max(fault.severity for fault in kept) == pytest.approx(0, abs=1e-5)
    worst = max(changed, key=lambda fault: fault.severity)
    assert other[worst.start : worst.end] == "bunt"
    assert blank == []
    [alignment] = scorer.align([same], **columns)
    assert alignment.source == alignment.prediction
    assert np.diag(alignment.values) == pytest.approx(1, abs=1e-5)
    rows = write_jsonl(tmp_path / "rows.jsonl", [row | {"translation": other}])
    plot = tmp_path / "plot.png"
    code, out, _ = mtmetrics(
        "explain", "--metric", f"comet:{model}", "--format", "json", "--plot", plot, rows
    )
    [segment] = json.loads(out)["segments"]
    assert (code, segment["alignment"]["cells"], plot.is_file()) == (0, "cosine", True)
    assert [fault["severity"] for fault in segment["faults"]] == pytest.approx(
        [fault.severity for fault in changed], abs=1e-4
    )


def test_on_the_command_line(
    checkpoints: Path, mtmetrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = {"src": "source", "mt": "translation", "ref": "reference"}
    rows = [{keys[key]: text for key, text in row.items()} for row in DATA[:4]]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = [
        f"comet:{checkpoints / 'xcomet'}",
        "comet:unified-source",
        "comet:wmt22-comet-da",
        "chrf",
    ]
    argv = [part for metric in metrics for part in ("--metric", metric)]
    code, out, err = mtmetrics("score", *argv, "--format", "jsonl", "rows.jsonl")
    assert (code, out.count('"kind": "system"')) == (0, 4), err
    code, out, _ = mtmetrics(
        "score", "--metric", "comet:xcomet", "--parts", "--format", "json", "rows.jsonl"
    )
    assert (code, [*json.loads(out)["parts"]]) == (0, ["src", "ref", "unified", "mqm"])
    Path("sources.tsv").write_text("source\ttranslation\na\tb\n")
    code, _, err = mtmetrics("score", "--metric", "comet:wmt22-comet-da", "sources.tsv")
    needed = (
        "mtmetrics: --against 'source': preset wmt22-comet-da compares with the source and the "
        "reference only"
    )
    assert (code, err.startswith(needed)) == (2, True), err
    code, _, err = mtmetrics(
        "score", "--metric", "comet:xcomet-xl", "--local-files-only", "rows.jsonl"
    )
    assert code == 1
    assert (
        "make one by 'mtmetrics artifacts convert Unbabel/XCOMET-XL --out DIR', and score with "
        "--metric"
    ) in err


def test_reranks_by_expected_utility(checkpoints: Path, mtmetrics, tmp_path: Path) -> None:
    """Each candidate is scored with the source and with each of them as its reference."""
    source, candidates = SOURCES[0], list(dict.fromkeys(TEXTS))[:3]
    rows = write_jsonl(tmp_path / "nbest.jsonl", [{"source": source, "candidates": candidates}])
    code, out, err = mtmetrics(
        "rerank", "--metric", "comet:regression", "--mbr", "--dtype", "float32", rows
    )
    assert code == 0, err
    found = json.loads(out)
    scorer = load_scorer("comet", "regression")
    utility = [
        scorer.score([text] * 3, **both([(source, other) for other in candidates])).system
        for text in candidates
    ]
    assert found["scores"] == pytest.approx(utility, abs=1e-5)
    assert found["translation"] == candidates[int(np.argmax(utility))]


def test_what_is_no_converted_checkpoint(checkpoints: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ArtifactError,
        match=r"no comet.json, so it is no converted checkpoint of COMET; make one by",
    ):
        load_scorer("comet", model=str(GOLDENS))
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in (checkpoints / "regression").iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "comet.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"broken: comet.json cannot be read"):
        load_scorer("comet", str(broken))
    (broken / "comet.json").write_text((checkpoints / "xcomet" / "comet.json").read_text())
    with pytest.raises(ArtifactError, match=r"cannot be loaded as COMET"):
        load_scorer("comet", str(broken))
