"""Draws Figure 1 of Mathur et al. (2019): ``annotation_curve.py --judged FILE --encoder MODEL --out DIR``.

Agreement of a learned metric with people against the number of annotations that it was trained on: the circles have one
annotation of more and more translations, the crosses the mean of more and more annotations of the same translations.
FILE is JSON Lines with `reference`, `translation` and `annotations`, a list of standardised judgements; translations
that lack one of the annotations asked for are left out. The crosses have `--translations` of them, drawn with the seed,
the circles as many as the crosses have annotations, as far as there are so many.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_jsonl
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.plots import draw_curves
from mtmetrics.training.regressor import train_regressor
from mtmetrics.training.run import Run
from mtmetrics.training.settings import RegressorConfig


def main(argv: Sequence[str] | None = None) -> int:
    """Trains a network per point and seed; what is there already is not trained again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judged", required=True, help="several annotations of each translation")
    parser.add_argument("--valid", nargs="+", default=[], help="judgements to stop by and to agree with")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--architecture", default="esim")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 7, 10, 14], help="annotations per cross")
    parser.add_argument("--translations", type=int, help="of the crosses (default: a fourteenth of all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", required=True, help="folder for the figure, its numbers and the networks")
    args = parser.parse_args(argv)
    rows = [row for _, row in iter_jsonl(args.judged) if len(row["annotations"]) >= max(args.counts)]
    few = args.translations or len(rows) // max(args.counts)
    if not 2 <= few <= len(rows):
        raise InputError(f"{args.judged}: {len(rows)} translations have {max(args.counts)} annotations, too few")
    lines: dict[str, dict[float, float]] = {"one annotation of each": {}, "mean of N annotations": {}}
    for count in args.counts:
        lines["mean of N annotations"][few * count] = _agreement(args, rows, few, count)
        if few * count <= len(rows):
            lines["one annotation of each"][few * count] = _agreement(args, rows, few * count, 1)
    out = Path(args.out)
    (out / "curve.json").write_text(json.dumps(lines, indent=1))
    labels = {"x_label": "annotations in all", "y_label": "Pearson's r on the validation"}
    save_figure(draw_curves(lines, title=f"{args.architecture} on {args.encoder}", **labels), out / "curve.png")
    return 0


def _agreement(args: argparse.Namespace, rows: list[dict], translations: int, count: int) -> float:
    """The mean over the seeds of the best validation, trained on the mean of `count` annotations of each translation;
    larger draws hold the smaller ones."""
    found = []
    for seed in args.seeds:
        draw = random.Random(seed)
        folder = Path(args.out) / f"{translations}-translations-{count}-annotations-seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for row in draw.sample(rows, len(rows))[:translations]:
            drawn = random.Random(f"{seed} {row['translation']}").sample(row["annotations"], len(row["annotations"]))
            lines.append({name: row[name] for name in row if name != "annotations"} | {"human": fmean(drawn[:count])})
        judged = folder / "judged.jsonl"
        judged.write_text("".join(json.dumps(line) + "\n" for line in lines))
        best = folder / "best.json"
        if not best.exists():
            run = Run(folder / "network", seed=seed, overwrite=True)
            config = RegressorConfig(architecture=args.architecture)
            vectors = Path(args.out) / "vectors"
            train_regressor(run, [judged], args.encoder, valid=args.valid, seeds=[seed], vectors=vectors, config=config)
            best.write_text(json.dumps(max(row["pearson"] for row in run.history)))
        found.append(json.loads(best.read_text()))
    return fmean(found)


if __name__ == "__main__":
    sys.exit(main())
