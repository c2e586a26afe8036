"""Fits how often people agree with differences of the bundled metrics, for the tables
``[agreement.SIDE]`` of their presets: ``fit_agreement.py --data-root DIR --out scores.jsonl [METRIC
...]``.

Of each language pair of WMT17, a number of source segments is drawn, and the outputs of all systems
for them are scored. They exist in lower case only, as Moses' tokens, which are joined first. What
was scored is kept in a file, from which a later call goes on. Later years are no test: the bundled
models learned from outputs of their sources. Prints the tables, to be put into the presets."""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.presets import preset_toml
from mtmetrics.io.languages import detokeniser
from mtmetrics.io.tables import jsonl_rows
from mtmetrics.judgements.judged import read_judged_systems
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.human_agreement import (
    TABLE,
    SystemMeans,
    bare_signature,
    fit_agreement,
)
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.registry import find_metric, load_scorer
from mtmetrics.scorers.results import join_turns, segments_per_batch
from mtmetrics.scorers.side import FIELD_OF_COLUMN

METRICS = (
    "xmoverscore",
    "uscore",
    "sentsim",
    "distilscore",
    "bertr",
    "bilstm",
    "bilstm_attention",
    "esim",
)
SYSTEMS = "wmt17_sys"
PAIRS = ("de-en", "fi-en", "ru-en", "tr-en")
DATA = "WMT17 de fi ru tr into English, lower-cased outputs"


# A metric, and the side that it compares translations with.
Measure = tuple[str, str]


def main() -> None:
    """Scores what is missing, fits, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("metrics", nargs="*", default=METRICS, metavar="METRIC")
    parser.add_argument("--data-root", type=Path, required=True, help=f"folder of {SYSTEMS}")
    parser.add_argument("--out", type=Path, required=True, help="keeps the mean scores")
    parser.add_argument("--segments", type=int, default=1000, help="of each language pair")
    parser.add_argument("--dtype", default="float32", help="of the encoder (default: %(default)s)")
    args = parser.parse_args()
    measures = [
        (metric, side)
        for metric in args.metrics
        for side in find_metric(metric).sides
        # No bundled network reads both, and the BiLSTMs read references alone.
        if side != "both" and not (metric.startswith("bilstm") and side == "source")
    ]
    pool = ModelPool(dtype=args.dtype)
    for pair in PAIRS:
        score_missing(args, measures, pair, pool)
    rows = scored(args)
    for metric, side in measures:
        sets = []
        signatures = set()
        for pair in PAIRS:
            row = rows[pair, metric, side]
            [judged] = read_judged_systems(args.data_root / SYSTEMS / f"{pair}.jsonl.gz")
            people = judged.judgements.set_index("system")["human"]
            names = [name for name in row["means"] if name in people]
            means = np.array([row["means"][name] for name in names])
            sets.append(SystemMeans(pair, means, people[names].to_numpy(dtype=np.float64)))
            signatures.add(bare_signature(row["signature"]))
        [signature] = signatures
        curve = fit_agreement(sets, data=DATA, signature=signature)
        table = preset_toml({}, {f"{TABLE}.{side}": curve.as_table()})
        print(f"# {metric}\n{table}".replace("\n\n", "\n"))


def draw(args: argparse.Namespace, pair: str) -> list[dict[str, Any]]:
    """Some of the segments with outputs as running text, the same ones at every call."""
    path = args.data_root / SYSTEMS / f"{pair}.outputs.jsonl.gz"
    rows = [row for _, row in jsonl_rows(path)]
    join = detokeniser("en")
    return [
        row | {"outputs": {name: join(text or "") for name, text in row["outputs"].items()}}
        for row in random.Random(5).sample(rows, min(args.segments, len(rows)))
    ]


def scored(args: argparse.Namespace) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The rows of the file of mean scores with as many segments, by pair, metric and side."""
    if not args.out.exists():
        return {}
    return {
        (row["pair"], row["metric"], row["side"]): row
        for _, row in jsonl_rows(args.out)
        if row["segments"] == args.segments
    }


def score_missing(
    args: argparse.Namespace, measures: list[Measure], pair: str, pool: ModelPool
) -> None:
    """Adds to the file the mean scores of the systems of a language pair by those metrics that it
    lacks; a text that several of them encode alike is encoded once."""
    there = scored(args)
    missing = [(metric, side) for metric, side in measures if (pair, metric, side) not in there]
    if not missing:
        return
    drawn = draw(args, pair)
    systems = {
        name: [row["outputs"].get(name, "") for row in drawn] for name in drawn[0]["outputs"]
    }
    scorers = [scorer_of(measure, pair, pool) for measure in missing]
    size = segments_per_batch([scorer.batch_segments for scorer in scorers], 1 + len(systems))
    streams = []
    for scorer in scorers:
        columns = {
            column: [row[FIELD_OF_COLUMN[column]] for row in drawn]
            for column in scorer.side.columns
        }
        batch = scorer.checked_batch(systems, **columns)
        streams.append(scorer.score_batches(batch.slices(size)))
    with open(args.out, "a", encoding="utf-8") as stream:
        for (metric, side), scorer, results in zip(
            missing, scorers, join_turns(streams), strict=True
        ):
            means = {
                name: float(result.segments.mean())
                for name, result in zip(systems, results, strict=True)
            }
            row = {"pair": pair, "metric": metric, "side": side}
            row |= {"segments": args.segments, "signature": scorer.signature, "means": means}
            stream.write(json.dumps(row) + "\n")
    print(pair, flush=True)


def scorer_of(measure: Measure, pair: str, pool: ModelPool) -> Scorer:
    """The scorer of the preset `mini`."""
    metric, side = measure
    options = {"against": side} if len(find_metric(metric).sides) > 1 else {}
    return load_scorer(metric, "mini", lang_pair=pair, pool=pool, **options)


if __name__ == "__main__":
    main()
