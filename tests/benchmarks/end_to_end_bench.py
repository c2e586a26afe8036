"""Measures XMoverScore from text to score against other designs: ``end_to_end_bench.py [--data
FILE] [--systems FILE] [--json OUT]``.

The contenders use one encoder at one layer: `bert-score` (``pip install bert-score``; left out
where it is absent), which matches tokens greedily, the published design of XMoverScore, and this
package: with transport, in float32 and bfloat16, and with greedy matching. The encoder has the
shape of a multilingual MiniLM and untrained weights; without files the sentences are made up. Exit
code 0 whatever the numbers say: a busy machine is no failure."""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from contenders import PublishedDesign
from measure import Report, alternating, machine, options
from workload import build_encoder, judged_or_made, made_pairs

from mtmetrics.io.tables import jsonl_rows
from mtmetrics.matching.greedy import bertscore
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.xmoverscore import XMoverScore

_LAYERS, _WIDTH, _HEADS, _LAYER = 12, 384, 12, 9
_SHARED_SOURCES = 150


def ours(folder: Path, dtype: str = "float32") -> XMoverScore:
    """This package, set up as the other contenders are, with nothing cached."""
    return XMoverScore(
        TokenEncoder(folder, layer=_LAYER, dtype=dtype, cache_bytes=0),
        variant="release",
        drop_rate=0.0,
    )


def ours_greedy(
    folder: Path, sources: Sequence[str], predictions: Sequence[str]
) -> Callable[[], object]:
    """BERTScore by this package, with nothing cached."""
    encoder = TokenEncoder(folder, layer=_LAYER, cache_bytes=0)

    def score() -> object:
        tokens = encoder.encode([*predictions, *sources]).normalized()
        sides = (tokens.take(slice(len(predictions))), tokens.take(slice(len(predictions), None)))
        return bertscore(*sides, threads=os.cpu_count() or 1)

    return score


def one_system(
    report: Report, folder: Path, sources: Sequence[str], predictions: Sequence[str], repeats: int
) -> None:
    """One system: bert-score, the published design, and this package in two number formats."""
    scorer, half, published = (
        ours(folder),
        ours(folder, "bfloat16"),
        PublishedDesign(folder, _LAYER),
    )
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: scorer.score(predictions, sources=sources),
        "ours, bfloat16": lambda: half.score(predictions, sources=sources),
        "ours, BERTScore": ours_greedy(folder, sources, predictions),
        "published design": lambda: published.score(predictions, sources=sources),
    }
    if importlib.util.find_spec("bert_score"):
        from bert_score import BERTScorer

        setting = {
            "num_layers": _LAYER,
            "batch_size": 64,
            "device": "cpu",
            "use_fast_tokenizer": True,
        }
        other = BERTScorer(model_type=str(folder), **setting)
        contenders["bert-score"] = lambda: other.score(list(sources), sources=list(predictions))
    else:
        print("bert-score is not installed, it is left out")
    seconds = alternating(contenders, repeats)
    for name, value in seconds.items():
        report.add(f"{len(sources)} pairs end to end: {name}", value, "s")
    if "bert-score" in seconds:
        for name in ("ours", "ours, BERTScore"):
            report.add(f"bert-score / {name}", seconds["bert-score"] / seconds[name], "x", ">= 1")
    report.add(
        "published design / ours", seconds["published design"] / seconds["ours"], "x", ">= 2.5"
    )
    target = ">= 1.6" if torch_has_bfloat16() else ""
    report.add("ours / ours in bfloat16", seconds["ours"] / seconds["ours, bfloat16"], "x", target)


def many_systems(
    report: Report, folder: Path, sources: list[str], systems: dict[str, list[str]]
) -> None:
    """All systems of a test set over the same sources, in one call."""
    scorer, published = ours(folder), PublishedDesign(folder, _LAYER)
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: scorer.score_systems(systems, sources=sources),
        "published design": lambda: [
            published.score(predictions, sources=sources) for predictions in systems.values()
        ],
    }
    seconds = alternating(contenders, repeats=1, warm_up=False)
    count = f"{len(systems)} systems x {len(sources)} sources"
    for name, value in seconds.items():
        report.add(f"{count}: {name}", value, "s")
    report.add(
        f"{count}: published design / ours",
        seconds["published design"] / seconds["ours"],
        "x",
        ">= 4",
    )
    apart = 2 * len(sources) * len(systems)
    report.add(f"{count}: share of encodings saved", 1 - scorer.encoder.counts.computed / apart)


def torch_has_bfloat16() -> bool:
    """Whether the processor computes in bfloat16 itself."""
    import torch

    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def read_systems(path: str, count: int) -> tuple[list[str], dict[str, list[str]]]:
    """The first rows of a file with the fields ``source`` and ``outputs`` (system -> text)."""
    rows = [row for _, row in zip(range(count), (row for _, row in jsonl_rows(path)), strict=False)]
    names = sorted(rows[0]["outputs"])
    return [row["source"] for row in rows], {
        name: [row["outputs"][name] for row in rows] for name in names
    }


def made_systems(
    sources: list[str], predictions: list[str], count: int = 11
) -> dict[str, list[str]]:
    """Systems that agree with the first on every third segment, as real ones sometimes do."""
    others = (made_pairs(len(sources), seed=100 * number)[1] for number in range(1, count))
    agreeing = (
        [
            text if row % 3 else first
            for row, (text, first) in enumerate(zip(other, predictions, strict=True))
        ]
        for other in others
    )
    return {f"system-{number}": texts for number, texts in enumerate([predictions, *agreeing])}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__, data=", else made-up sentences")
    text = "JSON Lines with source and outputs of several systems, else made-up ones"
    parser.add_argument("--systems", metavar="FILE", help=text)
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="of one system, 0 leaves it out (default: %(default)s)",
    )
    args = parser.parse_args(argv)
    sources, predictions = judged_or_made(args.data)
    first = slice(_SHARED_SOURCES)
    made = (sources[first], made_systems(sources[first], predictions[first]))
    shared, systems = read_systems(args.systems, _SHARED_SOURCES) if args.systems else made
    report = Report()
    print(f"encoder of {_LAYERS} layers, {_WIDTH} wide, layer {_LAYER}; {machine()}")
    with tempfile.TemporaryDirectory() as temporary:
        texts = [
            *sources,
            *predictions,
            *shared,
            *(text for column in systems.values() for text in column),
        ]
        folder = build_encoder(
            Path(temporary, "encoder"), texts, hidden=_WIDTH, layers=_LAYERS, heads=_HEADS
        )
        if args.repeats:
            one_system(report, folder, sources, predictions, args.repeats)
        many_systems(report, folder, shared, systems)
    report.finish(args.json, data=args.data, systems=args.systems, pairs=len(sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
