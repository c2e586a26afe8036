"""Chooses options of a metric by a few judgements, and says what the choice gains on judgements
that had no part in it."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.presets import extending, preset_toml
from mtmetrics.checks import choice
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import new_folder, write_atomic, write_json
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import MetricRuns, MetricSpec, run_metrics
from mtmetrics.reports.styles import Grid, Report, decimals
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.uscore import LEVELS
from mtmetrics.statistics.correlation import COEFFICIENTS, SEED
from mtmetrics.statistics.significance import resampled_counts, sample_correlations

LEAST_JUDGEMENTS = 50
ALL = "all"
_RESAMPLES = 1000
_MOST_SHOWN = 12
_LM_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


def _uscore_weights() -> list[str]:
    """Weights of the word level's parts, and of both levels, in steps of a fifth and a tenth; those
    without pseudo-references first."""
    listed = []
    for pseudo, lm, level in itertools.product(range(0, 11, 2), range(0, 11, 2), range(11)):
        weights = dict(
            zip(
                ("wmd", "pseudo", "lm", *LEVELS),
                (10 - pseudo - lm, pseudo, lm, level, 10 - level),
                strict=True,
            )
        )
        if weights["wmd"] >= 0:
            listed.append(
                "+".join(f"{name}={weight / 10:g}" for name, weight in weights.items() if weight)
            )
    return listed


# Metric -> option -> the values that are tried, one option after the other.
_TRIED: dict[str, dict[str, Sequence[Any]]] = {
    "xmoverscore": {
        "layer": (ALL,),
        "weights": ("uniform", "norm"),
        "pieces": ("words", "all"),
        "ngram": (1, 2),
        "lm_weight": _LM_WEIGHTS,
    },
    "sentsim": {
        "variant": ("bertscore", "wmd"),
        "w1": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 4.5),
    },
    "distilscore": {"layer": (ALL,)},
    "uscore": {"weights": _uscore_weights()},
    "bertr": {"layer": (ALL,), "special_tokens": (False, True)},
}


@dataclasses.dataclass(frozen=True)
class Step:
    """One option: the mean correlation over the files with each value that was tried, NaN where it
    cannot be used, and the value that was chosen; None stands for what the metric had before.

    Attributes:
        layers: encoder -> the layer at which it agrees best, where layers are tried too; None for
            the layer that it is read at otherwise. `found` is the agreement there.
    """

    option: str
    found: dict[Any, float]
    chosen: Any
    layers: Mapping[Any, int | None] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What was chosen, and what it gains.

    Attributes:
        metric: as it was.
        tuned: with the chosen options.
        steps: what was tried, on all judgements.
        before, after: mean over the files of the correlation, of scores from before and of those of
            options that were chosen without the segment's fold.
        gain: the difference, with its 95 % bootstrap interval.
        judgements, folds: how many.
        coefficient: of agreement.
        sides: what the metric was compared with; None where it has no choice.
        signatures: of the tuned metric, one per file.
        unusable: option and value -> why it cannot be used here.
    """

    metric: MetricSpec
    tuned: MetricSpec
    steps: list[Step]
    before: float
    after: float
    gain: tuple[float, float, float]
    judgements: int
    folds: int
    coefficient: str
    side: str | None
    signatures: list[str]
    unusable: dict[str, str]

    @property
    def options(self) -> dict[str, Any]:
        """The options of the tuned metric, those that the user gave included."""
        return dict(self.tuned.options)

    @property
    def remarks(self) -> list[str]:
        """What could not be tried, and whether nothing is gained for sure."""
        remarks = [f"not tried: {value}: {reason}" for value, reason in self.unusable.items()]
        if self.tuned == self.metric:
            return [*remarks, "no option is better than what the metric had before"]
        chance = "the gain could be chance: its interval holds 0; more judgements would tell"
        return remarks if self.gain[1] > 0 else [*remarks, chance]


def tune(
    metric: MetricSpec,
    files: Sequence[Judged],
    pool: ModelPool,
    tried: Mapping[str, Sequence[Any]] | None = None,
    *,
    coefficient: str = "pearson",
    folds: int = 5,
) -> Tuning:
    """Chooses options on judged segments, one after the other, each with the best values of those
    before it.

    Args:
        metric: to be tuned.
        files: at least 50 judged segments in all.
        pool: loads the models.
        tried: option -> its values; of ``layer`` the one value `ALL` stands for all of the
            encoder's. Without it, what `tuned_options` says. Of several values of ``encoder`` each
            is tried at every ``layer`` that is tried.
        coefficient: a key of `mtmetrics.statistics.correlation.COEFFICIENTS`, whose mean over the
            files decides.
        folds: parts of the judgements; for each, all options are chosen again on the others.
            Segments of one source are in one part.

    Raises:
        InputError: too few judgements, or nothing can be tuned; or as `run_metrics`.
        ArtifactError: a model cannot be loaded.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    judged = [np.isfinite(file.human) for file in files]
    count = int(sum(mask.sum() for mask in judged))
    if count < LEAST_JUDGEMENTS:
        raise InputError(
            f"{count} judged segments; at least {LEAST_JUDGEMENTS} are needed to tune a metric"
        )
    if not 2 <= folds <= count:
        raise InputError(
            f"folds {folds}: must be from 2 to the number of judgements, {count}", option="folds"
        )
    search = _Search(files, pool, coefficient)
    values = search.values(metric, tuned_options(metric.metric) if tried is None else tried)
    for file, scores, mask in zip(files, search.scores(metric), judged, strict=True):
        if reason := COEFFICIENTS[coefficient](scores[mask], file.human[mask]).reason:
            raise InputError(f"{file.file}: no agreement to tune by: {reason}")
    tuned, steps = search.best(metric, values, judged)
    part = _parts(files, folds)
    held = [np.empty(len(file)) for file in files]
    for fold in range(folds):
        chosen, _ = search.best(
            metric, values, [mask & (own != fold) for mask, own in zip(judged, part, strict=True)]
        )
        for target, scores, own in zip(held, search.scores(chosen), part, strict=True):
            # Different options give scores on different scales, which say nothing of people.
            target[own == fold] = ((scores - scores.mean()) / (scores.std() or 1.0))[own == fold]
    runs = run_metrics([tuned], files, pool)
    columns = [
        (before[mask], after[mask], file.human[mask])
        for before, after, file, mask in zip(
            search.scores(metric), held, files, judged, strict=True
        )
    ]
    before, after = (
        float(
            np.mean(
                [COEFFICIENTS[coefficient](column[side], column[2]).value for column in columns]
            )
        )
        for side in (0, 1)
    )
    gain = (after - before, *_gain_interval(columns, coefficient))
    found = find_metric(metric.metric)
    side = (
        found.side_of_preset(metric.preset, dict(metric.options)) if len(found.sides) > 1 else None
    )
    signatures = [systems[0].signature for systems in runs.results[tuned]]
    about = (count, folds, coefficient, side, signatures, search.unusable)
    return Tuning(metric, tuned, steps, before, after, gain, *about)


def tuned_options(metric: str) -> Mapping[str, Sequence[Any]]:
    """What is tuned of a metric where the user does not say it: option -> values."""
    if find_metric(metric).name not in _TRIED:
        listed = ", ".join(_TRIED)
        raise InputError(
            f"{metric}: no options are tuned by themselves (they are of {listed}); say which: "
            "OPTION=A,B"
        )
    return _TRIED[metric]


class _Search:
    """The scores of a metric with different options, each computed once."""

    def __init__(self, files: Sequence[Judged], pool: ModelPool, coefficient: str) -> None:
        self._files, self._pool, self._coefficient = files, pool, coefficient
        self._runs: dict[MetricSpec, MetricRuns] = {}
        self._scores: dict[MetricSpec, list[np.ndarray] | None] = {}
        self._problems: dict[MetricSpec, str] = {}
        self._depths: dict[MetricSpec, int] = {}
        self.unusable: dict[str, str] = {}

    def values(
        self, metric: MetricSpec, tried: Mapping[str, Sequence[Any]]
    ) -> dict[str, list[Any]]:
        """The values to try, in the order of their steps: a layer is one of an encoder, so it is
        chosen after that."""
        options = find_metric(metric.metric).settings().options()
        values = {option: list(listed) for option, listed in tried.items()}
        for option in values:
            if option not in options:
                there = ", ".join(options) or "none"
                raise InputError(f"{metric.metric} has no option {option!r}; there are: {there}")
        first = {option: values[option] for option in ("encoder", "layer") if option in values}
        return first | values if "encoder" in first else values

    def scores(self, metric: MetricSpec) -> list[np.ndarray]:
        """Of each file the scores of its segments."""
        found = self._tried(metric)
        if found is None:
            raise InputError(f"{metric}: cannot be used on this data")
        return found

    def best(
        self, metric: MetricSpec, values: Mapping[str, Sequence[Any]], chosen: Sequence[np.ndarray]
    ) -> tuple[MetricSpec, list[Step]]:
        """The options that agree best with people on the `chosen` segments of each file, found one
        after the other."""
        self.scores(metric)
        steps = []
        for option, listed in values.items():
            is_encoder_at_layers = option == "encoder" and "layer" in values
            candidates = self._candidates(metric, option, listed)
            found: dict[Any, float] = {}
            layers: dict[Any, int | None] = {}
            for value, spec in candidates.items():
                at_layers = {None: self._agreement(spec, chosen)}
                if is_encoder_at_layers:
                    for layer, at_layer in self._candidates(spec, "layer", values["layer"]).items():
                        at_layers[layer] = self._agreement(at_layer, chosen)
                layers[value] = _best(at_layers)
                found[value] = at_layers[layers[value]]
                self._note_problems(option, value, spec, at_layers)
            best = _best(found)
            metric = candidates[best]
            steps.append(Step(option, found, best, layers if is_encoder_at_layers else {}))
        return metric, steps

    def _candidates(
        self, metric: MetricSpec, option: str, listed: Sequence[Any]
    ) -> dict[Any, MetricSpec]:
        """The metric with each value of an option; None is the value that it has."""
        if option == "layer" and listed == [ALL]:
            listed = range(1, self._depth(metric) + 1)
        return {None: metric} | {value: metric.having(**{option: value}) for value in listed}

    def _depth(self, metric: MetricSpec) -> int:
        """The number of layers of the encoder; 0 where these cannot be chosen, or there is no such
        encoder."""
        if metric not in self._depths:
            # Its layer, or a map for one, may not suit the encoder.
            options = {name: value for name, value in metric.options if name != "layer"}
            options |= find_metric(metric.metric).made_by().unpaired(options)
            plain = dataclasses.replace(metric, options=tuple(options.items()))
            try:
                self._depths[metric] = plain.load(self._pool, self._files[0].lang_pair).depth or 0
            except (InputError, ArtifactError):  # which scoring reports
                self._depths[metric] = 0
        return self._depths[metric]

    def _note_problems(
        self, option: str, value: Any, spec: MetricSpec, at_layers: Mapping[int | None, float]
    ) -> None:
        """Records why a value cannot be used, or an encoder at some layer."""
        specs = {layer: spec if layer is None else spec.having(layer=layer) for layer in at_layers}
        reasons = {
            layer: self._problems[one] for layer, one in specs.items() if one in self._problems
        }
        if value is not None and reasons and np.isnan([*at_layers.values()]).all():
            self.unusable[f"{option}={value}"] = next(iter(reasons.values()))
            return
        for layer, reason in reasons.items():
            if layer is not None:
                name = f"layer={layer}" if value is None else f"{option}={value} layer={layer}"
                self.unusable[name] = reason

    def _agreement(self, metric: MetricSpec, chosen: Sequence[np.ndarray]) -> float:
        found = self._tried(metric)
        if found is None:
            return np.nan
        correlate = COEFFICIENTS[self._coefficient]
        columns = zip(found, self._files, chosen, strict=True)
        return float(
            np.mean(
                [correlate(scores[mask], file.human[mask]).value for scores, file, mask in columns]
            )
        )

    def _tried(self, metric: MetricSpec) -> list[np.ndarray] | None:
        """As `scores`; None where the options do not go together, or cannot be had."""
        if metric not in self._scores:
            try:
                self._scores[metric] = self._computed(metric)
            except (InputError, ArtifactError) as error:
                if not self._scores:  # what the user named cannot be run at all
                    raise
                self._scores[metric] = None
                self._problems[metric] = str(error)
        return self._scores[metric]

    def _computed(self, metric: MetricSpec) -> list[np.ndarray]:
        options = find_metric(metric.metric).settings().options()
        weighing = {name for name, field in options.items() if field.metadata["weighs"]}
        plain = dataclasses.replace(
            metric, options=tuple(pair for pair in metric.options if pair[0] not in weighing)
        )
        if plain not in self._runs:
            self._runs[plain] = run_metrics([plain], self._files, self._pool)
        results = [systems[0] for systems in self._runs[plain].results[plain]]
        if metric == plain:
            return [result.segments for result in results]
        scorers = [metric.load(self._pool, file.lang_pair) for file in self._files]
        return [
            scorer.combined(result.parts) for scorer, result in zip(scorers, results, strict=True)
        ]


def _best(found: Mapping[Any, float]) -> Any:
    """The value of the highest agreement; of equal ones the first, which changes least."""
    return max(
        found, key=lambda value: -np.inf if np.isnan(found[value]) else round(found[value], 6)
    )


def _parts(files: Sequence[Judged], folds: int) -> list[np.ndarray]:
    """Of each file the fold of each segment; those of one source are in one."""
    texts = [[str(source) for source in file.sources] for file in files]
    distinct = list(dict.fromkeys(itertools.chain.from_iterable(texts)))
    order = np.random.default_rng(SEED).permutation(len(distinct))
    number = {text: int(place) % folds for text, place in zip(distinct, order, strict=True)}
    return [np.array([number[text] for text in column]) for column in texts]


def _gain_interval(
    columns: Sequence[tuple[np.ndarray, ...]], coefficient: str
) -> tuple[float, float]:
    """The ends of the 95 % percentile bootstrap interval of what (after) gains over (before), mean
    over the files."""
    gains = []
    for before, after, human in columns:
        drawn = resampled_counts(_RESAMPLES, len(human), SEED)
        gains.append(
            np.concatenate(
                [
                    sample_correlations(coefficient, after, human, counts)
                    - sample_correlations(coefficient, before, human, counts)
                    for counts in drawn
                ]
            )
        )
    low, high = np.nanquantile(np.mean(gains, axis=0), (0.025, 0.975))
    return float(low), float(high)


def report_tuning(tuning: Tuning) -> Report:
    """A table of what was tried, with the gain under it."""
    rows = [["option", "value", tuning.coefficient, ""]]
    for step in tuning.steps:
        listed = {value: found for value, found in step.found.items() if not np.isnan(found)}
        # Of many values the best ones; of those that do the same the first.
        if len(listed) > _MOST_SHOWN:
            distinct = {round(found, 6): value for value, found in reversed(listed.items())}
            shown = [distinct[found] for found in sorted(distinct, reverse=True)[:_MOST_SHOWN]]
        else:
            shown = list(listed)
        for value in shown:
            name = "(as before)" if value is None else str(value)
            if step.layers.get(value) is not None:
                name += f", layer {step.layers[value]}"
            rows.append(
                [
                    step.option,
                    name,
                    decimals(listed[value]),
                    "chosen" if value == step.chosen else "",
                ]
            )
    return Report(_document(tuning), [Grid(rows, (2,)), summary(tuning)])


def summary(tuning: Tuning) -> str:
    """One line: what is gained on segments that had no part in the choice."""
    gain, low, high = (f"{value:+.3f}" for value in tuning.gain)
    return (
        f"{tuning.metric} on {tuning.judgements} judgements, {tuning.folds}-fold "
        f"cross-validation: {tuning.coefficient} {decimals(tuning.before)} before, "
        f"{decimals(tuning.after)} tuned, gain {gain} [{low}, {high}]"
    )


def _document(tuning: Tuning) -> dict[str, Any]:
    steps = [
        {
            "option": step.option,
            "tried": [
                {
                    "value": value,
                    tuning.coefficient: None if np.isnan(found) else found,
                    **({"layer": step.layers[value]} if step.layers else {}),
                }
                for value, found in step.found.items()
            ],
            "chosen": step.chosen,
        }
        for step in tuning.steps
    ]
    gain = dict(zip(("value", "low", "high"), tuning.gain, strict=True))
    return {
        "metric": str(tuning.metric),
        "tuned": str(tuning.tuned),
        "coefficient": tuning.coefficient,
        "judgements": tuning.judgements,
        "folds": tuning.folds,
        "before": tuning.before,
        "after": tuning.after,
        "gain": gain,
        "signatures": tuning.signatures,
        "steps": steps,
    }


def write_preset(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> None:
    """Writes a preset that extends that of the metric, ``preset.toml``, and how it was made,
    ``tuning.json``.

    Raises:
        InputError: there is such a folder already.
    """
    spec = tuning.metric
    head = extending(spec.metric, spec.preset, summary(tuning))
    side = {} if tuning.side is None else {"score": {"against": tuning.side}}
    chosen = {
        name: value for name, value in tuning.options.items() if name not in ("against", "setting")
    }
    with new_folder(folder, overwrite) as new:
        write_atomic(new / "preset.toml", preset_toml(head, side | {"options": chosen}))
        write_json(new / "tuning.json", _document(tuning))
