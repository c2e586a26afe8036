"""Mines by Word Mover's Distance and prints what it took as JSON: ``mining_probe.py SOURCES TARGETS
COUNT ENCODER LAYER LP [--map FILE] [--unpruned] [--inverted] [--files]``.

Seconds are those of the processor, all threads together, since other programs may run beside this
one."""

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from memory_probe import peak_mib

from mtmetrics.checks import language_pair
from mtmetrics.cli.process import return_large_blocks
from mtmetrics.io.lines import iter_lines
from mtmetrics.matching.remapping import Remapping
from mtmetrics.mining import neighbours
from mtmetrics.mining import word_level as words
from mtmetrics.mining.neighbours import Index
from mtmetrics.mining.sides import encode_side
from mtmetrics.mining.word_level import closest, mine_words
from mtmetrics.models.token_encoder import TokenEncoder


@dataclasses.dataclass
class Clock:
    """Processor seconds by stage."""

    seconds: dict[str, float] = dataclasses.field(default_factory=dict)

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, whose time is added up."""

        def run(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            result = call(*args, **options)
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.process_time() - start
            return result

        return run


def first_lines(path: str, count: int) -> list[str]:
    """The first sentences of a file."""
    return [line for _, line in zip(range(count), iter_lines(path), strict=False)]


def main() -> None:
    """Prints seconds by stage, memory, and counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources")
    parser.add_argument("targets")
    parser.add_argument("count", type=int)
    parser.add_argument("encoder")
    parser.add_argument("layer", type=int)
    parser.add_argument("lp")
    parser.add_argument("--map")
    parser.add_argument(
        "--unpruned", action="store_true", help="solve all candidates too, and compare the pairs"
    )
    parser.add_argument(
        "--inverted", action="store_true", help="look for neighbours by an inverted file too"
    )
    parser.add_argument("--files", action="store_true", help="keep all vectors in files")
    args = parser.parse_args()
    return_large_blocks()
    encoder = TokenEncoder(args.encoder, layer=args.layer, cache_bytes=0)
    remapping = Remapping.load(args.map) if args.map else None
    texts = [first_lines(path, args.count) for path in (args.sources, args.targets)]
    given = list(zip(texts, language_pair(args.lp), strict=True))
    few = [encode_side(side[-50:], encoder, language=language) for side, language in given]
    mine_words(*few, remapping)  # loads the libraries
    encoded, before, clock = encoder.counts.computed, peak_mib(), Clock()
    bound = 0 if args.files else 2**40
    encode = clock.timed("encoding", encode_side)
    sides = [
        encode(side, encoder, language=language, memory_bytes=bound) for side, language in given
    ]
    with (
        mock.patch.object(Index, "nearest", clock.timed("candidates", Index.nearest)),
        mock.patch.object(words, "closest", clock.timed("transport", closest)),
    ):
        start = time.process_time()
        mined = mine_words(*sides, remapping)
        clock.seconds["mining"] = time.process_time() - start
    found = {
        "seconds": clock.seconds,
        "before": before,
        "peak": peak_mib(),
        "tokens": sum(len(side.words) for side in sides),
        "dim": encoder.dim,
        "encoded": encoder.counts.computed - encoded,
        "counts": mined.counts,
        "pairs": mined.pairs(),
    }
    if args.unpruned:
        with (
            mock.patch.object(words, "closest", clock.timed("transport, all", closest)),
            mock.patch.object(
                words,
                "relaxed_distances",
                lambda cost, source, target, starts: np.zeros(len(starts)),
            ),
        ):
            found["same_pairs"] = mine_words(*sides, remapping).pairs() == mined.pairs()
    if args.inverted:
        queries = sides[0].centroids[:]
        flat = Index(sides[1].centroids).nearest(queries, 20).rows
        with (
            mock.patch.object(Index, "_make", clock.timed("inverted file, building", Index._make)),
            mock.patch.object(
                neighbours, "_propose", clock.timed("inverted file, search", neighbours._propose)
            ),
        ):
            inverted = Index(sides[1].centroids, flat_limit=0).nearest(queries, 20).rows
        found["recall"] = float(
            np.mean([np.isin(one, two).mean() for one, two in zip(flat, inverted, strict=True)])
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
