"""What a production measures of itself: matching of held-back sentences and agreement with human judgements, stage
after stage."""

import dataclasses
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import write_atomic
from mtmetrics.evaluation.correlation import Correlation, pearson
from mtmetrics.evaluation.data import Judged, read_judged_segments
from mtmetrics.mining.candidates import nearest
from mtmetrics.mining.remapping import precision_at_1
from mtmetrics.mining.token_store import encode_side
from mtmetrics.scorers.uscore import WEIGHTS, UScore, part_weights, weighted_sum
from mtmetrics.scorers.xmoverscore import XMoverScore
from mtmetrics.uscore.job import Job
from mtmetrics.uscore.sentences import sentence_encoder
from mtmetrics.uscore.stages import Finished
from mtmetrics.uscore.start import chosen, known_by
from mtmetrics.uscore.words import remapping, word_settings

_FILE = "measured.json"


@dataclasses.dataclass(frozen=True)
class Rounds:
    """The stages that can be compared.

    Attributes:
        maps: of the word level, one per round.
        sentences: models of the sentence level, one per round.
        kind: the map that is used.
    """

    maps: list[Finished]
    sentences: list[Finished]
    kind: str

    def word_levels(self) -> dict[str, tuple[Finished, str] | None]:
        """Name -> maps and kind, from no map at all to the last round."""
        named = {f"round {number}": (stage, self.kind) for number, stage in enumerate(self.maps, 1)}
        return {"start": None, **named}

    def sentence_levels(self) -> dict[str, list[Finished]]:
        """Name -> the models up to a round, from none at all."""
        return {
            "start": [],
            **{f"round {number}": self.sentences[:number] for number in range(1, len(self.sentences) + 1)},
        }


def precision(job: Job, rounds: Rounds, pairs: Sequence[tuple[str, str]]) -> Finished:
    """The stage that measures P@1 of matching held-back sentences with their translations, after each round."""
    return job.stages.run(
        "precision",
        functools.partial(_precision, job=job, rounds=rounds, pairs=pairs),
        settings={
            "pairs": [list(pair) for pair in pairs],
            "kind": rounds.kind,
            **chosen(job.config, "remap_candidates"),
            **_models(job),
        },
        after=[*rounds.maps, *rounds.sentences],
    )


def agreement(
    job: Job, rounds: Rounds, final: UScore, judged: Sequence[str | Path], after: Sequence[Finished]
) -> Finished:
    """The stage that measures Pearson's r with human judgements, of each round and of the metric that comes of them.

    Args:
        job: the production.
        rounds: its rounds.
        final: the metric.
        judged: segments with human judgements, see `mtmetrics.evaluation.data`.
        after: the stages that `final` comes of.
    """
    return job.stages.run(
        "agreement",
        functools.partial(_agreement, job=job, rounds=rounds, final=final, judged=judged),
        settings={"kind": rounds.kind, "names": list(_names(judged)), "signature": final.signature, **_models(job)},
        files=judged,
        after=[*rounds.maps, *rounds.sentences, *after],
    )


def measured(stage: Finished) -> dict[str, Any]:
    """What a stage measured."""
    return json.loads((stage.folder / _FILE).read_text(encoding="utf-8"))


def _models(job: Job) -> dict[str, Any]:
    return {**word_settings(job), "sentences": known_by(job.start.sentences)}


def _precision(folder: Path, *, job: Job, rounds: Rounds, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    sides = [encode_side([pair[number] for pair in pairs], job.encoder) for number in (0, 1)]
    found: dict[str, dict[str, float]] = {"words": {}, "sentences": {}}
    for name, level in rounds.word_levels().items():
        mapped = remapping(job, *level) if level else None
        found["words"][name] = precision_at_1(*sides, pairs, mapped, k=job.config.remap_candidates, threads=job.threads)
    if job.start.sentences is not None:
        for name, models in rounds.sentence_levels().items():
            found["sentences"][name] = _sentence_precision(job, sentence_encoder(job, models), pairs)
    write_atomic(folder / _FILE, json.dumps(found, indent=1) + "\n")
    return {"pairs": len(pairs)}


def _sentence_precision(job: Job, encoder: str, pairs: Sequence[tuple[str, str]]) -> float:
    model = job.pool.sentence_encoder(encoder)
    vectors = [(tokens := model.encode([pair[side] for pair in pairs])).vectors[tokens.index] for side in (0, 1)]
    found = nearest(*vectors, 1, measure="cosine").rows[:, 0]
    translations = set(pairs)
    return float(np.mean([(pairs[query][0], pairs[row][1]) in translations for query, row in enumerate(found)]))


def _agreement(
    folder: Path, *, job: Job, rounds: Rounds, final: UScore, judged: Sequence[str | Path]
) -> dict[str, Any]:
    found = {}
    for name, path in _names(judged).items():
        segments = read_judged_segments(path)
        known, human = segments.judged, segments.human[segments.judged]
        columns = _columns(job, rounds, final, segments)
        values = {column: _number(pearson(scores[known], human)) for column, scores in columns.items()}
        found[name] = {"lp": segments.lang_pair, "segments": len(human), "pearson": values}
    write_atomic(folder / _FILE, json.dumps(found, indent=1) + "\n")
    return {"files": len(found)}


def _columns(job: Job, rounds: Rounds, final: UScore, segments: Judged) -> dict[str, np.ndarray]:
    """The scores of each round, and of what the metric makes of the last ones."""
    columns: dict[str, np.ndarray] = {}
    for name, level in rounds.word_levels().items():
        words = XMoverScore(
            job.encoder, variant="uscore", remapping=remapping(job, *level) if level else None, threads=job.threads
        )
        columns[f"words, {name}"] = _scores(words, segments).parts["mover"]
    if job.start.sentences is not None:
        for name, models in rounds.sentence_levels().items():
            sentences = UScore(sentences=job.pool.sentence_encoder(sentence_encoder(job, models)), parts="snt")
            columns[f"sentences, {name}"] = _scores(sentences, segments).segments
    return columns | _combinations(final, _scores(final, segments).parts)


def _names(paths: Sequence[str | Path]) -> dict[str, str | Path]:
    """A name for each file: its own, or that of its folder too where several files have the same."""
    stems = {path: Path(path).name.removesuffix(".gz").removesuffix(".jsonl") for path in paths}
    twice = {stem for stem in stems.values() if list(stems.values()).count(stem) > 1}
    return {
        f"{Path(path).resolve().parent.name}-{stem}" if stem in twice else stem: path for path, stem in stems.items()
    }


def _number(correlation: Correlation) -> float | None:
    return None if correlation.reason is not None else correlation.value


def _scores(scorer: Any, segments: Judged) -> Any:
    return scorer.score(segments.sources, segments.predictions)


def _combinations(final: UScore, parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parts of the metric, and both levels with each set of weights."""
    columns = {f"part {name}": values for name, values in parts.items() if name != "wrd"}
    levels = "+".join(final.level_weights)
    for weights in WEIGHTS:
        words, both = part_weights(weights, levels, final.without)
        level = {**parts, "wrd": weighted_sum(parts, words)} if words else parts
        columns |= {f"wrd, {weights}": level["wrd"]} if words else {}
        columns[f"{levels}, {weights}"] = weighted_sum(level, both)
    return columns
