"""Measures what XMoverScore promises in speed, memory and stability: ``xmoverscore_bench.py [--data
FILE] [--json OUT]``.

Contenders take turns, medians of several repeats are printed, and ratios with the value they should
keep. Models are small, untrained and built on the fly; without ``--data`` so are the sentences.
Exit code 0 whatever the numbers say: a busy machine is no failure."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from measure import Report, alternating, machine, options, probe
from workload import build_encoder, build_language_model, judged_or_made, made_pairs

from mtmetrics.layout import bundled_artifacts
from mtmetrics.matching.transport import word_mover_distances
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.xmoverscore import XMoverScore


def transport(
    report: Report, encoder: TokenEncoder, sources: Sequence[str], predictions: Sequence[str]
) -> None:
    """Transport against the naive design and against the bare solver; packing and n-grams apart."""
    from contenders import costs, naive, naive_vectorised, products_alone, solver_alone, unpack

    scorer = XMoverScore(encoder)
    start = time.perf_counter()
    encoder.encode([*sources, *predictions])
    report.add(
        f"encoding {2 * len(sources)} texts (4 layers, 256 wide)",
        1000 * (time.perf_counter() - start),
        "ms",
    )
    tokens = encoder.encode(sources), encoder.encode(predictions)
    kept = [side.select(encoder.word_table[side.token_ids]) for side in tokens]
    x, y = (side.ngrams(scorer.ngram).normalized() for side in kept)
    apart = alternating(
        {
            "packing of encoded texts": lambda: (
                encoder.encode(sources),
                encoder.encode(predictions),
            ),
            "filter, bigrams and normalisation": lambda: [
                side.select(encoder.word_table[side.token_ids]).ngrams(scorer.ngram).normalized()
                for side in tokens
            ],
        },
        repeats=7,
    )
    for name, seconds in apart.items():
        report.add(name, 1000 * seconds, "ms")
    pairs = unpack(x, y)
    prepared = costs(pairs)
    ours = "ours"
    fast = alternating(
        {
            ours: lambda: word_mover_distances(x, y),
            "bare solver": lambda: solver_alone(pairs, prepared),
            "one matrix product a pair": lambda: products_alone(pairs),
        },
        repeats=15,
    )
    loops, vectorised = "naive (n+m problem, Python loops)", "naive (n+m problem, vectorised costs)"
    contenders = {loops: lambda: naive(pairs), vectorised: lambda: naive_vectorised(pairs)}
    slow = alternating(contenders | {ours: lambda: word_mover_distances(x, y)}, repeats=3)
    for name, seconds in [
        *fast.items(),
        *((name, value) for name, value in slow.items() if name != ours),
    ]:
        report.add(f"transport of {len(pairs)} pairs: {name}", 1000 * seconds, "ms")
    report.add("naive, Python loops / ours", slow[loops] / slow[ours], "x", ">= 20")
    report.add("naive, vectorised costs / ours", slow[vectorised] / slow[ours], "x")
    bare = fast["bare solver"] + fast["one matrix product a pair"]
    report.add("ours / (bare solver + product)", fast[ours] / bare, "x", "<= 1.25")
    distances = word_mover_distances(x, y)
    distances = distances[~np.isnan(distances)]
    report.add(
        "largest difference between ours and naive",
        np.abs(distances - naive(pairs)).max(),
        "",
        "<= 1e-05",
    )


def padding(
    report: Report, folder: Path, sources: Sequence[str], predictions: Sequence[str]
) -> None:
    """Padded per real token, and texts computed per unique text of a chunk."""
    encoder = TokenEncoder(folder, cache_bytes=0)
    encoder.encode(sources)
    encoder.encode(predictions)
    report.add(
        "padded tokens / real tokens",
        encoder.counts.padded_tokens / encoder.counts.tokens,
        "x",
        "<= 1.05",
    )
    # Duplicates in each column, a second system that shares a third of its outputs, and some
    # untranslated segments; no cache helps.
    encoder = TokenEncoder(folder, cache_bytes=0)
    some = slice(0, 200)
    columns = [list(column[some]) * 2 for column in (sources, predictions)]
    other = [text if number % 3 else f"{text} {text}" for number, text in enumerate(columns[1])]
    other = [text if number % 40 else columns[0][number] for number, text in enumerate(other)]
    scorer = XMoverScore(encoder)
    sources, first = columns
    for what, systems in (("1 system", {"a": first}), ("2 systems", {"a": first, "b": other})):
        encoder.counts.computed = 0
        list(scorer.score_batches([Batch(systems, sources=sources)]))
        unique = len({text for column in (sources, *systems.values()) for text in column})
        report.add(
            f"texts encoded / unique texts in a chunk, {what}",
            encoder.counts.computed / unique,
            "x",
            "<= 1",
        )


def memory(report: Report, folder: Path) -> None:
    """Peak memory of one process per size."""
    peaks: dict[tuple[int, int], float] = {}
    for lines, workers in ((5_000, 1), (50_000, 1), (50_000, 2)):
        found = probe("memory_probe.py", folder, lines, workers)
        if found is None:
            raise SystemExit(1)
        peaks[lines, workers] = found["peak"] - found["result"]
        report.add(f"peak memory at {lines} lines, workers={workers}", found["peak"], "MiB")
        report.add("  of it before scoring (imports, model)", found["before"], "MiB")
    what = "peak memory apart from the result, 50000 / 5000 lines"
    report.add(f"{what}, in one thread", peaks[50_000, 1] / peaks[5_000, 1], "x", "<= 1.1")
    report.add(f"{what}, in two threads", peaks[50_000, 2] / peaks[5_000, 1], "x")


def stability(
    report: Report, encoder: Path, model: Path, sources: Sequence[str], predictions: Sequence[str]
) -> None:
    """Largest change of a score under what should not change it (fp32)."""
    count = min(len(sources), 280)
    sources, predictions = list(sources[:count]), list(predictions[:count])

    def score(x: Sequence[str], y: Sequence[str], batch_tokens: int = 4096) -> np.ndarray:
        scorer = XMoverScore(
            TokenEncoder(encoder, batch_tokens=batch_tokens, cache_bytes=0),
            language_model=LanguageModel(model, batch_tokens=batch_tokens // 2),
            lm_weight=1.0,
        )
        return scorer.score(list(y), sources=list(x)).segments

    usual = score(sources, predictions)
    order = np.random.default_rng(0).permutation(count)
    shuffled = score([sources[i] for i in order], [predictions[i] for i in order])
    long = " ".join(predictions[:40])
    crowded = score([*sources, long], [*predictions, long])[:-1]
    alone = np.array([score(sources[i : i + 1], predictions[i : i + 1])[0] for i in range(20)])
    changes = {
        "batch size (64 tokens)": score(sources, predictions, 64) - usual,
        "batch size (65536 tokens)": score(sources, predictions, 65536) - usual,
        "order": shuffled - usual[order],
        "duplicates": score(sources * 2, predictions * 2) - np.tile(usual, 2),
        "neighbours and padding (a text of 40 sentences beside)": crowded - usual,
        "no neighbours at all (each of 20 alone)": alone - usual[:20],
    }
    for name, change in changes.items():
        report.add(f"largest score change: {name}", np.abs(change).max(), "", "<= 1e-05")


def command_line(report: Report) -> None:
    """Wall time of fresh processes."""
    seconds = alternating({"help": lambda: _run("--help")}, repeats=5)
    report.add("mtmetrics --help", seconds["help"], "s", "<= 1")
    if not (bundled_artifacts() / "mini-encoder" / "config.json").is_file():
        print("one line scored with the preset mini: left out, the bundled artifacts are not there")
        return
    arguments = ["score", "--metric", "xmoverscore", "--preset", "mini", "--lp", "de-en", "-"]
    line = "Das Haus ist klein.\tThe house is small.\n"
    seconds = alternating({"mini": lambda: _run(*arguments, text=line)}, repeats=3)
    report.add("one line scored with the preset mini, new process", seconds["mini"], "s", "<= 15")


def _run(*arguments: str, text: str = "") -> None:
    command = [sys.executable, "-m", "mtmetrics.cli.main", *arguments]
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", check=False, env=offline
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    args = options(__doc__, data=", else made-up sentences").parse_args(argv)
    sources, predictions = judged_or_made(args.data)
    report = Report()
    print(f"{len(sources)} pairs from {args.data or 'a seeded generator'}; {machine()}")
    with tempfile.TemporaryDirectory() as temporary:
        encoder = build_encoder(Path(temporary, "encoder"), [*sources, *predictions])
        model = build_language_model(Path(temporary, "lm"), predictions)
        transport(report, TokenEncoder(encoder), sources, predictions)
        padding(report, encoder, sources, predictions)
        stability(report, encoder, model, sources, predictions)
        shallow = build_encoder(Path(temporary, "shallow"), made_pairs(2000)[0], layers=1)
        memory(report, shallow)
    command_line(report)
    report.finish(args.json, data=args.data, pairs=len(sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
