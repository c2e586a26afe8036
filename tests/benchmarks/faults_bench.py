"""Measures whether words at fault are wrong words: ``faults_bench.py --data FILE ... [--metric
NAME:PRESET ...]``.

In data with post-edits (MLQE-PE: the field ``post_edit_tok``) a word is wrong where it was edited;
elsewhere one word of each reference, which takes the place of the translation, is replaced by a
word of another one. Severities of all evidence are printed beside those of the match and of the
language model alone: the area under the ROC curve (0.5 is chance), how often the most severe word
is a wrong one, how often a random word is, and which share of the words from each level on is
wrong. Use development data."""

import random
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.io.tables import jsonl_rows
from mtmetrics.matching.word_errors import LEVELS, word_faults, word_spans
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.styles import STYLES
from mtmetrics.scorers.spec import MetricSpec

METRICS = ("xmoverscore:mini", "sentsim:mini:setting=src-mt", "bertr:mini:against=source")
_SHORTEST = 4  # letters of a word that is replaced


class Labelled(NamedTuple):
    """A source, its translation, and (k,) bool, which of the translation's words are wrong."""

    source: str
    translation: str
    wrong: np.ndarray


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each file, metric and kind of evidence."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="judged segments (JSON Lines)"
    )
    parser.add_argument("--metric", nargs="+", default=METRICS, help="default: %(default)s")
    parser.add_argument(
        "--segments", type=int, default=300, help="of each file, the first (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    at = [f">= {bound}" for bound in LEVELS]
    table = [["data", "wrong words", "metric", "evidence", "AUC", "worst is wrong", "chance", *at]]
    pool = ModelPool(device="cpu")
    for path in args.data:
        rows = list(jsonl_rows(path))[: args.segments]
        edited = "post_edit_tok" in rows[0].values
        labelled = by_post_edits(rows) if edited else by_replacement(rows)
        labelled = [row for row in labelled if row.wrong.any() and not row.wrong.all()]
        pair = rows[0].text("lp")
        for metric in args.metric:
            for evidence, severities in severities_of(
                MetricSpec.parse(metric).load(pool, pair), labelled
            ).items():
                found = judge(severities, [row.wrong for row in labelled])
                head = [
                    Path(path).name.removesuffix(".jsonl.gz"),
                    "post-edits" if edited else "replaced",
                ]
                table.append([*head, metric, evidence, *(f"{value:.3f}" for value in found)])
                print(*table[-1], file=sys.stderr)
    print(STYLES["markdown"](table, range(4, len(table[0]))))
    return 0


def by_post_edits(rows: Sequence[Any]) -> list[Labelled]:
    found = []
    for row in rows:
        text = row.text("translation")
        found.append(
            Labelled(
                row.text("source"), text, edited(words(text), words(row.text("post_edit_tok")))
            )
        )
    return found


def by_replacement(rows: Sequence[Any], seed: int = 1) -> list[Labelled]:
    """One word in small letters of each reference is replaced by one of another reference;
    languages without such words are left out."""
    generator = random.Random(seed)
    references = [row.text("reference") for row in rows]
    common = [word for text in references for word in words(text) if _may_be_replaced(word)]
    found = []
    for row, text in zip(rows, references, strict=True):
        places = [place for place, word in enumerate(words(text)) if _may_be_replaced(word)]
        if not places:
            continue
        place = generator.choice(places)
        begin, end = word_spans(text)[place]
        other = generator.choice([word for word in common if word != text[begin:end]])
        wrong = np.arange(len(word_spans(text))) == place
        found.append(Labelled(row.text("source"), text[:begin] + other + text[end:], wrong))
    return found


def words(text: str) -> list[str]:
    return [text[begin:end] for begin, end in word_spans(text)]


def _may_be_replaced(word: str) -> bool:
    return word.isalpha() and word.islower() and len(word) >= _SHORTEST


def edited(translation: Sequence[str], post_edit: Sequence[str]) -> np.ndarray:
    """(k,) bool, words of the translation that fewest insertions, deletions and replacements do not
    keep, as the labels of the shared tasks are made (of which it repeats 99.8 %)."""
    n, m = len(translation), len(post_edit)
    distance = np.zeros((n + 1, m + 1), dtype=np.int64)
    distance[:, 0], distance[0] = range(n + 1), range(m + 1)
    for i, word in enumerate(translation, 1):
        for j, other in enumerate(post_edit, 1):
            replaced = distance[i - 1, j - 1] + (word != other)
            distance[i, j] = min(distance[i - 1, j] + 1, distance[i, j - 1] + 1, replaced)
    wrong = np.ones(n, dtype=bool)
    i, j = n, m
    while i and j:
        same = translation[i - 1] == post_edit[j - 1]
        if distance[i, j] == distance[i - 1, j - 1] + (not same):
            i, j = i - 1, j - 1
            wrong[i] = not same
        elif distance[i, j] == distance[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return wrong


def severities_of(scorer: Any, labelled: Sequence[Labelled]) -> dict[str, list[np.ndarray]]:
    """Evidence -> for each translation the severities of its words."""
    sources, texts = (
        [getattr(row, name) for row in labelled] for name in ("source", "translation")
    )
    evidence = scorer.evidence(texts, scorer.align(texts, sources=sources))
    kinds = {"match": slice(0, 1), "language model": slice(1, 2), "both": slice(0, 2)}
    if len(evidence[0]) == 1:
        kinds = {"match": slice(0, 1)}
    return {
        name: [
            np.array([fault.severity for fault in word_faults(text, found[chosen])])
            for text, found in zip(texts, evidence, strict=True)
        ]
        for name, chosen in kinds.items()
    }


def judge(severities: Sequence[np.ndarray], wrong: Sequence[np.ndarray]) -> list[float]:
    """Area under the curve, how often the worst word is wrong, how often a random one is, and the
    share of wrong words from each level on."""
    from scipy.stats import rankdata

    every, labels = np.concatenate(severities), np.concatenate(wrong)
    positive, negative = labels.sum(), (~labels).sum()
    area = (rankdata(every)[labels].sum() - positive * (positive + 1) / 2) / (positive * negative)
    worst = np.mean(
        [label[values.argmax()] for values, label in zip(severities, wrong, strict=True)]
    )
    chance = np.mean([label.mean() for label in wrong])
    return [
        float(area),
        float(worst),
        float(chance),
        *(float(labels[every >= bound].mean()) for bound in LEVELS),
    ]


if __name__ == "__main__":
    sys.exit(main())
