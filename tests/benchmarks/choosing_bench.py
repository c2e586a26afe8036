"""Measures what filtering and reranking bring, and what expected utility costs: ``choosing_bench.py
--data-root DIR [filter] [rerank] [mbr] [tune] [--pairs N] [--json OUT]``.

``filter`` spoils half of the pairs of the packs ``parallel/XX-en.jsonl.gz``, and asks how well each
way to choose finds the other half. ``rerank`` lets each way choose among the outputs of the systems
of WMT17 (``wmt17_sys``), and looks up the human judgements of those chosen outputs that were judged
(``wmt17_seg``). ``mbr`` counts encodings and seconds. ``tune`` chooses among the beams of the
bundled translation model (``wmt16_seg``), with weights tuned on others (``wmt15_seg``)."""

import gzip
import itertools
import json
import random
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Report, alternating, machine, options

from mtmetrics.artifacts.models import model_folder
from mtmetrics.checks import language_pair
from mtmetrics.choosing.mixture import Mixture, load_scorers
from mtmetrics.choosing.parallel_text import CHECKS, Checks, scan
from mtmetrics.choosing.reranking import NBest, Reranker
from mtmetrics.integrations.generation import generate
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.translator import open_mbart
from mtmetrics.reports.styles import STYLES
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.spec import MetricSpec

_FILTERED = ("de-en", "ne-en", "si-en")
_RERANKED = ("de-en", "fi-en", "ru-en", "tr-en")
_METRICS = ("xmoverscore:mini", "sentsim:mini", "uscore:mini")
_UTILITIES = ("chrf", "sentsim:mini", "bertr:mini")
_KINDS = ("shuffled", "truncated", "corrupted", "untranslated")
_MEASUREMENTS = ("filter", "rerank", "mbr", "tune")
_TRANSLATOR, _BEAMS = "mini-mbart-de-en", 8

Table = list[list[Any]]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def spoiled(path: Path, count: int, seed: int) -> list[tuple[str, str, str]]:
    """So many pairs and what is wrong with them: nothing with half of them, an eighth is of each of
    `_KINDS`."""
    generator = random.Random(seed)
    pairs = generator.sample([(row["source"], row["target"]) for row in rows(path)], count)
    words = [word for _, target in pairs for word in target.split()]
    others = [target for _, target in pairs]
    generator.shuffle(others)
    found = []
    for number, (source, target) in enumerate(pairs):
        kind = "clean" if number % 2 else _KINDS[number // 2 % len(_KINDS)]
        tokens = target.split()
        if kind == "shuffled":
            target = others[number]
        elif kind == "truncated":
            target = " ".join(tokens[: max(1, int(len(tokens) * generator.uniform(0.3, 0.7)))])
        elif kind == "corrupted":
            for place in generator.sample(range(len(tokens)), max(1, len(tokens) // 3)):
                tokens[place] = generator.choice(words)
            target = " ".join(tokens)
        elif kind == "untranslated":
            target = source
        found.append((source, target, kind))
    return found


def measure_filter(root: Path, count: int, seed: int) -> Iterator[Table]:
    """For each language pair precision and recall of what is kept, where at most half as many pairs
    are kept as there are clean ones, and where as many are; and which share of each kind is then
    kept."""
    pool = ModelPool(device="cpu")
    for lang_pair in _FILTERED:
        triples = spoiled(root / "parallel" / f"{lang_pair}.jsonl.gz", count, seed)
        pairs, kinds = (
            [triple[:2] for triple in triples],
            np.array([triple[2] for triple in triples]),
        )
        clean = kinds == "clean"
        checks = Checks(language_pair(lang_pair))
        passed = np.array([checks.flaw(*pair) is None for pair in pairs])
        ratio = np.log([len(target) / len(source) for source, target in pairs])
        ways = {"length ratio": -np.abs(ratio - np.median(ratio))}
        nothing = Checks(None, skip=CHECKS)
        for name in ("fluency:mini", *_METRICS):
            mixture = Mixture(
                load_scorers({name: MetricSpec.parse(name)}, ["sources"], pool, lang_pair)
            )
            ways[name] = scan(pairs, nothing, mixture).scores
        ways |= {
            f"checks, {name}": np.where(passed, ways[name], -np.inf)
            for name in ("length ratio", "fluency:mini", *_METRICS)
        }
        table: Table = [
            [lang_pair, "precision, half", "recall, half", "precision, all", "recall, all", *_KINDS]
        ]
        for name, scores in {"checks": np.where(passed, 0.0, -np.inf), **ways}.items():
            best = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()]
            row = [name]
            for most in (clean.sum() // 2, clean.sum()) if name != "checks" else (0, len(best)):
                kept = best[:most]
                row += (
                    ["", ""] if not most else [clean[kept].mean(), clean[kept].sum() / clean.sum()]
                )
            table.append(
                [*row, *((kinds[kept] == kind).sum() / (kinds == kind).sum() for kind in _KINDS)]
            )
        yield table


def measure_rerank(root: Path, count: int) -> Iterator[Table]:
    """The mean human score of the chosen outputs: of those that were judged, with its standard
    error, and with each output standing for the mean of its system.

    Which output of a sentence was judged was drawn by the organisers, so the judged ones among the
    chosen ones are a sample of these."""
    pool = ModelPool(device="cpu")
    direct: dict[str, list[float]] = {}
    systems: dict[str, dict[str, float]] = {}
    for lang_pair in _RERANKED:
        judged: dict[tuple[int, str], float] = {}
        for row in rows(root / "wmt17_seg" / f"{lang_pair}.jsonl.gz"):
            judged[row["sid"], row["translation_tok"]] = row["human"]
        of_system = {
            row["system"]: row["human"]
            for row in rows(root / "wmt17_sys" / f"{lang_pair}.jsonl.gz")
        }
        sids = {sid for sid, _ in judged}
        wanted = (
            row
            for row in rows(root / "wmt17_sys" / f"{lang_pair}.outputs.jsonl.gz")
            if row["sid"] in sids
        )
        sentences = list(itertools.islice(wanted, count))
        names = [list(row["outputs"]) for row in sentences]
        lists = [NBest(list(row["outputs"].values()), row["source"]) for row in sentences]
        best = max(of_system, key=lambda name: of_system[name])
        chosen = {"best single system": [row.index(best) for row in names]}
        for name in _METRICS:
            chosen[name] = _choices(name, lists, pool, lang_pair)
        for name in _UTILITIES:
            chosen[f"mbr {name}"] = _choices(name, lists, pool, lang_pair, mbr=True)
        texts = {(row["sid"], text) for row in sentences for text in row["outputs"].values()}
        direct.setdefault("random", []).extend(
            judged[key] for key in sorted(texts) if key in judged
        )
        systems.setdefault("random", {})[lang_pair] = float(np.mean([*of_system.values()]))
        for name, places in chosen.items():
            means = [of_system[row[place]] for row, place in zip(names, places, strict=True)]
            systems.setdefault(name, {})[lang_pair] = float(np.mean(means))
            keys = [
                (row["sid"], item.candidates[place])
                for row, item, place in zip(sentences, lists, places, strict=True)
            ]
            direct.setdefault(name, []).extend(judged[key] for key in keys if key in judged)
    table: Table = [
        [
            "chosen by",
            "human score",
            "standard error",
            "judged",
            *(f"systems, {pair}" for pair in _RERANKED),
        ]
    ]
    for name, values in direct.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        table.append([name, np.mean(values), error, str(len(values)), *systems[name].values()])
    yield table


def _choices(
    name: str, lists: list[NBest], pool: ModelPool, lang_pair: str, *, mbr: bool = False
) -> list[int]:
    reranker = Reranker(
        load_scorers({name: MetricSpec.parse(name)}, ["sources"], pool, lang_pair, mbr), mbr=mbr
    )
    return [choice.index for choice in reranker.choose(lists)]


def measure_mbr(root: Path, report: Report, lists: int = 10) -> None:
    """All comparisons of a list in one call, against one call of the metric per reference."""
    read = itertools.islice(rows(root / "wmt17_sys" / "de-en.outputs.jsonl.gz"), lists)
    candidates = [list(dict.fromkeys(row["outputs"].values())) for row in read]
    scorers: list[Any] = []

    def fresh() -> Any:
        scorer = load_scorer("sentsim", "mini", setting="mt-ref", pool=ModelPool(device="cpu"))
        scorer.word_encoder._cache.limit = 0  # texts of an earlier call are not remembered
        scorers.append(scorer)
        return scorer

    together, apart = fresh(), fresh()

    def once() -> list[int]:
        return [choice.index for choice in Reranker({"sentsim": together}, mbr=True)(candidates)]

    def per_reference() -> list[int]:
        sums = [
            sum(apart.score(texts, sources=[text] * len(texts)).segments for text in texts)
            for texts in candidates
        ]
        return [int(np.argmax(values)) for values in sums]

    assert once() == per_reference()
    before = [scorer.word_encoder.counts.computed for scorer in scorers]
    once()
    per_reference()
    done = [
        scorer.word_encoder.counts.computed - count
        for scorer, count in zip(scorers, before, strict=True)
    ]
    distinct = sum(map(len, candidates))
    report.add("candidates per list, mean", distinct / len(candidates))
    report.add(
        "texts encoded per candidate, all comparisons together", done[0] / distinct, target="<= 1"
    )
    report.add("texts encoded per candidate, one call per reference", done[1] / distinct)
    seconds = alternating({"once": once, "per reference": per_reference}, 3)
    report.add(
        "seconds, one call per reference / all comparisons together",
        seconds["per reference"] / seconds["once"],
    )


def measure_tuning(root: Path) -> Iterator[Table]:
    """Mean chrF against the reference of what is chosen among the beams, each way, and its
    changes."""
    pool = ModelPool(device="cpu")
    development, lists = (
        beams(root / f"{year}_seg" / "de-en.jsonl.gz") for year in ("wmt15", "wmt16")
    )
    chrf = load_scorer("chrf", None)
    references = [item.references for item in lists for _ in item.candidates]
    candidates = [text for item in lists for text in item.candidates]
    result = chrf.score(candidates, references=references)
    quality = result.segments.reshape(len(lists), _BEAMS)
    scorers = load_scorers(
        {name: MetricSpec.parse(name) for name in _METRICS}, ["sources"], pool, "de-en"
    )
    tuned = Reranker(scorers, model_scores=["model"])
    weights = tuned.tune(development, chrf)
    ways = {name: _choices(name, lists, pool, "de-en") for name in _METRICS}
    ways |= {f"mbr {name}": _choices(name, lists, pool, "de-en", mbr=True) for name in _UTILITIES}
    shown = ", ".join(f"{name}={weight:.3g}" for name, weight in weights.items())
    ways[shown] = [choice.index for choice in tuned.choose(lists)]
    table: Table = [
        ["chosen by", "chrF", "standard error of the change", "other than the model's first"]
    ]
    table.append(["the model", quality[:, 0].mean(), "", ""])
    for name, places in ways.items():
        change = quality[np.arange(len(lists)), places] - quality[:, 0]
        error = change.std(ddof=1) / np.sqrt(len(lists))
        table.append(
            [name, quality[:, 0].mean() + change.mean(), error, (np.array(places) > 0).mean()]
        )
    yield [
        *table,
        ["chance", quality.mean(), "", ""],
        ["the references", quality.max(axis=1).mean(), "", ""],
    ]


def beams(path: Path) -> list[NBest]:
    """The beam search of the bundled translation model for the sources of a file, with their
    references."""
    references = {row["source"]: [row["reference"]] for row in rows(path)}
    tokenizer, model = open_mbart(model_folder(_TRANSLATOR), "de-en")
    found: list[NBest] = []

    def keep(
        candidates: list[list[str]], sources: list[str], scores: dict[str, list[list[float]]]
    ) -> list[Any]:
        for source, texts, own in zip(sources, candidates, scores["model"], strict=True):
            found.append(NBest(texts, source, references[source], {"model": own}))
        return [types.SimpleNamespace(text=texts[0]) for texts in candidates]

    shortest_first = sorted(references, key=len)
    generate(
        model.eval(),
        tokenizer,
        shortest_first,
        rerank=keep,
        batch=16,
        num_beams=_BEAMS,
        max_length=64,
    )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the measurements that are named, or all."""
    parser = options(__doc__)
    parser.add_argument("what", nargs="*", choices=_MEASUREMENTS, help="default: all")
    parser.add_argument(
        "--data-root", required=True, type=Path, metavar="DIR", help="folder of the data sets"
    )
    parser.add_argument(
        "--pairs", type=int, default=1000, help="pairs, or sentences, of each language pair"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of what is spoiled (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    print(machine())
    report, tables = Report(), []
    wanted = args.what or _MEASUREMENTS
    filtered = measure_filter(args.data_root, args.pairs, args.seed) if "filter" in wanted else ()
    reranked = measure_rerank(args.data_root, args.pairs) if "rerank" in wanted else ()
    tuned = measure_tuning(args.data_root) if "tune" in wanted else ()
    for table in itertools.chain(filtered, reranked, tuned):
        tables.append(
            [
                [cell if isinstance(cell, str) else round(float(cell), 4) for cell in row]
                for row in table
            ]
        )
        shown = [
            [cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row] for row in table
        ]
        print(STYLES["markdown"](shown, range(1, len(table[0]))), flush=True)
    if "mbr" in wanted:
        measure_mbr(args.data_root, report)
    report.finish(args.json, pairs=args.pairs, seed=args.seed, tables=tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
