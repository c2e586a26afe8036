"""Fits how often people agree with differences of the bundled metrics, for the tables
``[agreement.SIDE]`` of their presets: ``fit_agreement.py --data-root DIR --out scores.jsonl [METRIC
...]``.

Of each language pair, a number of source segments is drawn, and the outputs of all systems for them
are scored. What was scored is kept in a file, from which a later call goes on. A metric that was
trained on the outputs of a year is not fitted on that year. Prints the tables, to be put into the
presets."""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mtmetrics.artifacts.presets import preset_toml
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
from mtmetrics.scorers.side import FIELD_OF_COLUMN, Side

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
YEARS = {"wmt17_sys": "de fi ru tr", "wmt18_sys": "cs de et fi ru tr zh"}
# What esim-mini learned from.
TRAINED_ON = {"esim": "wmt18_sys"}


def main() -> None:
    """Scores what is missing, fits, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("metrics", nargs="*", default=METRICS, metavar="METRIC")
    parser.add_argument(
        "--data-root", type=Path, required=True, help="folder of wmt17_sys and wmt18_sys"
    )
    parser.add_argument("--out", type=Path, required=True, help="keeps the mean scores")
    parser.add_argument("--segments", type=int, default=1000, help="of each language pair")
    parser.add_argument("--dtype", default="bfloat16", help="of the encoder (default: %(default)s)")
    args = parser.parse_args()
    pool = ModelPool(dtype=args.dtype)
    for metric in args.metrics:
        for side in find_metric(metric).sides:
            if metric.startswith("bilstm") and side == "source":
                continue  # the bundled networks read references
            sets, signatures = [], set()
            for year, pair in language_pairs(metric):
                row = known(args, metric, side, year, pair, pool)
                [judged] = read_judged_systems(args.data_root / year / f"{pair}.jsonl.gz")
                people = judged.judgements.set_index("system")["human"]
                named = [name for name in row["means"] if name in people]
                means = np.array([row["means"][name] for name in named])
                sets.append(SystemMeans(pair, means, people[named].to_numpy(dtype=np.float64)))
                signatures.add(bare_signature(row["signature"]))
            [signature] = signatures
            years = [year for year in YEARS if TRAINED_ON.get(metric) != year]
            data = " and ".join(f"{year[:5].upper()} {YEARS[year]} into English" for year in years)
            curve = fit_agreement(sets, data=data, signature=signature)
            print(
                f"# {metric}\n{preset_toml({}, {f'{TABLE}.{side}': curve.as_table()})}".replace(
                    "\n\n", "\n"
                )
            )


def language_pairs(metric: str) -> Iterator[tuple[str, str]]:
    """Years and language pairs that a metric did not learn from."""
    for year, sources in YEARS.items():
        if TRAINED_ON.get(metric) != year:
            yield from ((year, f"{source}-en") for source in sources.split())


def scorer_of(metric: str, side: str, pair: str, pool: ModelPool) -> Scorer:
    options = {"against": side} if len(find_metric(metric).sides) > 1 else {}
    return load_scorer(metric, "mini", lang_pair=pair, pool=pool, **options)


def draw(args: argparse.Namespace, year: str, pair: str) -> list[dict[str, object]]:
    """Some of the segments, the same ones at every call."""
    rows = [row for _, row in jsonl_rows(args.data_root / year / f"{pair}.outputs.jsonl.gz")]
    return random.Random(5).sample(rows, min(args.segments, len(rows)))


def known(
    args: argparse.Namespace, metric: str, side: str, year: str, pair: str, pool: ModelPool
) -> dict[str, object]:
    """The mean scores of the systems of a language pair, from the file or scored and added to
    it."""
    key = {"year": year, "pair": pair, "metric": metric, "side": side, "segments": args.segments}
    if args.out.exists():
        for _, row in jsonl_rows(args.out):
            if {name: row[name] for name in key} == key:
                return row
    scorer, drawn = scorer_of(metric, side, pair, pool), draw(args, year, pair)
    columns = {
        column: [row[FIELD_OF_COLUMN[column]] for row in drawn] for column in Side(side).columns
    }
    systems = {
        name: [row["outputs"].get(name) or "" for row in drawn] for name in drawn[0]["outputs"]
    }
    results = scorer.score_systems(systems, **columns)
    means = {name: float(result.segments.mean()) for name, result in results.items()}
    row = key | {"signature": scorer.signature, "means": means}
    with open(args.out, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")
    print(metric, side, year, pair, flush=True)
    return row


if __name__ == "__main__":
    main()
