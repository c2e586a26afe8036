"""Chooses options of a metric by a few judgements, and estimates the gain of the choice on
judgements that had no part in it."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
    texts = []
    for pseudo, lm, level in itertools.product(range(0, 11, 2), range(0, 11, 2), range(11)):
        wmd = 10 - pseudo - lm
        if wmd < 0:
            continue
        tenths = dict(
            zip(("wmd", "pseudo", "lm", *LEVELS), (wmd, pseudo, lm, level, 10 - level), strict=True)
        )
        texts.append("+".join(f"{name}={tenth / 10:g}" for name, tenth in tenths.items() if tenth))
    return texts


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
    """The choice of one option; the value None stands for the one that the metric had before.

    Attributes:
        agreement: value -> the mean correlation over the files, NaN where it cannot be used.
        chosen: the value that was chosen.
        layers: encoder -> the layer at which it agrees best, where layers are tried too; None for
            the layer that it is read at otherwise. `agreement` is the one there.
    """

    option: str
    agreement: dict[Any, float]
    chosen: Any
    layers: Mapping[Any, int | None] = dataclasses.field(default_factory=dict)


class Gain(NamedTuple):
    """A difference of mean correlations, with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The chosen options, and their gain.

    Attributes:
        metric: as it was.
        tuned: the metric with the chosen options.
        steps: the choices, on all judgements.
        before, after: mean over the files of the correlation, of scores from before and of those of
            options that were chosen without the segment's fold.
        gain: the difference of the two.
        judgements, folds: their numbers.
        coefficient: of agreement.
        side: the side that the metric was compared with; None where it has no choice.
        signatures: of the tuned metric, one per file.
        unusable: option and value -> why it cannot be used here.
    """

    metric: MetricSpec
    tuned: MetricSpec
    steps: list[Step]
    before: float
    after: float
    gain: Gain
    judgements: int
    folds: int
    coefficient: str
    side: str | None
    signatures: list[str]
    unusable: dict[str, str]

    @property
    def remarks(self) -> list[str]:
        """Lines on values that could not be tried, and on a gain that is none for sure."""
        remarks = [f"not tried: {value}: {reason}" for value, reason in self.unusable.items()]
        if self.tuned == self.metric:
            remarks.append("no option is better than what the metric had before")
        elif not self.gain.low > 0:
            remarks.append(
                "the gain could be chance: its interval holds 0; more judgements would tell"
            )
        return remarks


def tune(
    metric: MetricSpec,
    files: Sequence[Judged],
    pool: ModelPool,
    tried: Mapping[str, Sequence[Any]],
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
        tried: option -> its values, such as `tuned_options` has; of ``layer`` the one value `ALL`
            stands for all of the encoder's. Of several values of ``encoder`` each is tried at every
            ``layer`` that is tried.
        coefficient: a key of `mtmetrics.statistics.correlation.COEFFICIENTS`, whose mean over the
            files decides.
        folds: parts of the judgements; for each, all options are chosen again on the others.
            Segments of one source are in one part.

    Raises:
        InputError: too few judgements, or nothing can be tuned; or as `run_metrics`.
        ArtifactError: a model cannot be loaded.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    is_judged = [np.isfinite(file.human) for file in files]
    count = int(sum(mask.sum() for mask in is_judged))
    if count < LEAST_JUDGEMENTS:
        raise InputError(
            f"{count} judged segments; at least {LEAST_JUDGEMENTS} are needed to tune a metric"
        )
    if not 2 <= folds <= count:
        raise InputError(
            f"folds {folds}: must be from 2 to the number of judgements, {count}", option="folds"
        )
    search = _Search(files, pool, coefficient)
    values = search.values(metric, tried)
    correlate = COEFFICIENTS[coefficient]
    for file, scores, mask in zip(files, search.scores(metric), is_judged, strict=True):
        if reason := correlate(scores[mask], file.human[mask]).reason:
            raise InputError(f"{file.file}: no agreement to tune by: {reason}")
    tuned, steps = search.best(metric, values, is_judged)
    held_out = _held_out_scores(search, metric, values, is_judged, folds)
    human = [file.human[mask] for file, mask in zip(files, is_judged, strict=True)]
    old = [scores[mask] for scores, mask in zip(search.scores(metric), is_judged, strict=True)]
    new = [scores[mask] for scores, mask in zip(held_out, is_judged, strict=True)]
    before = _mean_correlation(old, human, coefficient)
    after = _mean_correlation(new, human, coefficient)
    runs = run_metrics([tuned], files, pool)
    named_metric = find_metric(metric.metric)
    side = None
    if len(named_metric.sides) > 1:
        side = named_metric.side_of_preset(metric.preset, dict(metric.options))
    return Tuning(
        metric=metric,
        tuned=tuned,
        steps=steps,
        before=before,
        after=after,
        gain=Gain(after - before, *_gain_interval(old, new, human, coefficient)),
        judgements=count,
        folds=folds,
        coefficient=coefficient,
        side=side,
        signatures=[systems[0].signature for systems in runs.results[tuned]],
        unusable=search.unusable,
    )


def _held_out_scores(
    search: "_Search",
    metric: MetricSpec,
    values: Mapping[str, Sequence[Any]],
    is_judged: Sequence[np.ndarray],
    folds: int,
) -> list[np.ndarray]:
    """Of each file the scores of its segments, each by options that were chosen without its
    fold."""
    fold_of_segments = _folds(search.files, folds)
    held_out = [np.empty(len(file)) for file in search.files]
    for fold in range(folds):
        is_training = [
            mask & (segment_folds != fold)
            for mask, segment_folds in zip(is_judged, fold_of_segments, strict=True)
        ]
        chosen, _ = search.best(metric, values, is_training)
        for target, scores, segment_folds in zip(
            held_out,
            search.scores(chosen),
            fold_of_segments,
            strict=True,
        ):
            # Different options give scores on different scales, which say nothing of people.
            standardised = (scores - scores.mean()) / (scores.std() or 1.0)
            target[segment_folds == fold] = standardised[segment_folds == fold]
    return held_out


def _mean_correlation(
    scores: Sequence[np.ndarray],
    human: Sequence[np.ndarray],
    coefficient: str,
) -> float:
    """The mean over files of the correlation of scores with judgements."""
    correlate = COEFFICIENTS[coefficient]
    return float(
        np.mean([correlate(*columns).value for columns in zip(scores, human, strict=True)])
    )


def tuned_options(metric: str) -> Mapping[str, Sequence[Any]]:
    """The options that are tried where the user names none: option -> values."""
    if find_metric(metric).name not in _TRIED:
        raise InputError(
            f"{metric}: no options are tuned by themselves (they are of {', '.join(_TRIED)}); say "
            "which: OPTION=A,B"
        )
    return _TRIED[metric]


class _Search:
    """The scores of a metric with different options, each computed once."""

    def __init__(self, files: Sequence[Judged], pool: ModelPool, coefficient: str) -> None:
        self.files = files
        self.unusable: dict[str, str] = {}
        self._pool = pool
        self._coefficient = coefficient
        self._runs: dict[MetricSpec, MetricRuns] = {}
        self._scores: dict[MetricSpec, list[np.ndarray] | None] = {}
        self._problems: dict[MetricSpec, str] = {}
        self._depths: dict[MetricSpec, int] = {}

    def values(
        self,
        metric: MetricSpec,
        tried: Mapping[str, Sequence[Any]],
    ) -> dict[str, list[Any]]:
        """The values to try, in the order of their steps: a layer is one of an encoder, so it is
        chosen after that."""
        options = find_metric(metric.metric).settings().options()
        for option in tried:
            if option not in options:
                names = ", ".join(options) or "none"
                raise InputError(f"{metric.metric} has no option {option!r}; there are: {names}")
        values = {option: list(option_values) for option, option_values in tried.items()}
        if "encoder" not in values:
            return values
        first = {option: values[option] for option in ("encoder", "layer") if option in values}
        return first | values

    def scores(self, metric: MetricSpec) -> list[np.ndarray]:
        """Of each file the scores of its segments."""
        scores = self._scores_if_usable(metric)
        if scores is None:
            raise InputError(f"{metric}: cannot be used on this data")
        return scores

    def best(
        self,
        metric: MetricSpec,
        values: Mapping[str, Sequence[Any]],
        masks: Sequence[np.ndarray],
    ) -> tuple[MetricSpec, list[Step]]:
        """Chooses the options that agree best with people, one after the other.

        Args:
            metric: as it is before.
            values: option -> the values to try.
            masks: of each file, which of its segments decide.
        """
        self.scores(metric)
        steps = []
        for option, option_values in values.items():
            tries_layers = option == "encoder" and "layer" in values
            candidates = self._candidates(metric, option, option_values)
            agreement: dict[Any, float] = {}
            layers: dict[Any, int | None] = {}
            for value, candidate in candidates.items():
                at_layers = {None: self._agreement(candidate, masks)}
                if tries_layers:
                    for layer, spec in self._candidates(
                        candidate,
                        "layer",
                        values["layer"],
                    ).items():
                        at_layers[layer] = self._agreement(spec, masks)
                layers[value] = _best(at_layers)
                agreement[value] = at_layers[layers[value]]
                self._note_problems(option, value, candidate, at_layers)
            chosen = _best(agreement)
            metric = candidates[chosen]
            steps.append(Step(option, agreement, chosen, layers if tries_layers else {}))
        return metric, steps

    def _candidates(
        self,
        metric: MetricSpec,
        option: str,
        values: Sequence[Any],
    ) -> dict[Any, MetricSpec]:
        """The metric with each value of an option; None is the value that it has."""
        if option == "layer" and values == [ALL]:
            values = range(1, self._depth(metric) + 1)
        return {None: metric} | {value: metric.having(**{option: value}) for value in values}

    def _depth(self, metric: MetricSpec) -> int:
        """The number of layers of the encoder; 0 where these cannot be chosen, or there is no such
        encoder."""
        if metric not in self._depths:
            # Its layer, or a map for one, may not suit the encoder.
            options = {name: value for name, value in metric.options if name != "layer"}
            options |= find_metric(metric.metric).made_by().unpaired(options)
            plain = dataclasses.replace(metric, options=tuple(options.items()))
            try:
                self._depths[metric] = plain.load(self._pool, self.files[0].lang_pair).depth or 0
            except (InputError, ArtifactError):  # which scoring reports
                self._depths[metric] = 0
        return self._depths[metric]

    def _note_problems(
        self,
        option: str,
        value: Any,
        candidate: MetricSpec,
        at_layers: Mapping[int | None, float],
    ) -> None:
        """Records why a value cannot be used, or an encoder at some layer."""
        reasons: dict[int | None, str] = {}
        for layer in at_layers:
            spec = candidate if layer is None else candidate.having(layer=layer)
            if spec in self._problems:
                reasons[layer] = self._problems[spec]
        if value is not None and reasons and np.isnan([*at_layers.values()]).all():
            self.unusable[f"{option}={value}"] = next(iter(reasons.values()))
            return
        for layer, reason in reasons.items():
            if layer is not None:
                name = f"layer={layer}" if value is None else f"{option}={value} layer={layer}"
                self.unusable[name] = reason

    def _agreement(self, metric: MetricSpec, masks: Sequence[np.ndarray]) -> float:
        """The mean correlation over the files, of the segments of the masks; NaN where the metric
        cannot be used."""
        scores = self._scores_if_usable(metric)
        if scores is None:
            return np.nan
        masked_scores = [column[mask] for column, mask in zip(scores, masks, strict=True)]
        human = [file.human[mask] for file, mask in zip(self.files, masks, strict=True)]
        return _mean_correlation(masked_scores, human, self._coefficient)

    def _scores_if_usable(self, metric: MetricSpec) -> list[np.ndarray] | None:
        """Of each file the scores of its segments; None where the options do not go together, or
        cannot be had."""
        if metric not in self._scores:
            try:
                self._scores[metric] = self._computed(metric)
            except (InputError, ArtifactError) as error:
                if not self._scores:  # the metric of the user cannot be run at all
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
            self._runs[plain] = run_metrics([plain], self.files, self._pool)
        results = [systems[0] for systems in self._runs[plain].results[plain]]
        if metric == plain:
            return [result.segments for result in results]
        scorers = [metric.load(self._pool, file.lang_pair) for file in self.files]
        return [
            scorer.combined(result.parts) for scorer, result in zip(scorers, results, strict=True)
        ]


def _best(agreement: Mapping[Any, float]) -> Any:
    """The value of the highest agreement; of equal ones the first, which changes least."""

    def rank(value: Any) -> float:
        return -np.inf if np.isnan(agreement[value]) else round(agreement[value], 6)

    return max(agreement, key=rank)


def _folds(files: Sequence[Judged], folds: int) -> list[np.ndarray]:
    """Of each file the fold of each segment; those of one source are in one."""
    texts = [[str(source) for source in file.sources] for file in files]
    distinct = list(dict.fromkeys(itertools.chain.from_iterable(texts)))
    order = np.random.default_rng(SEED).permutation(len(distinct))
    fold_of_text = {text: int(place) % folds for text, place in zip(distinct, order, strict=True)}
    return [np.array([fold_of_text[text] for text in column]) for column in texts]


def _gain_interval(
    old: Sequence[np.ndarray],
    new: Sequence[np.ndarray],
    human: Sequence[np.ndarray],
    coefficient: str,
) -> tuple[float, float]:
    """The ends of the 95 % percentile bootstrap interval of the gain of new scores over old ones,
    mean over the files."""
    gains = []
    for old_scores, new_scores, judgements in zip(old, new, human, strict=True):
        file_gains = [
            sample_correlations(coefficient, new_scores, judgements, counts)
            - sample_correlations(coefficient, old_scores, judgements, counts)
            for counts in resampled_counts(_RESAMPLES, len(judgements), SEED)
        ]
        gains.append(np.concatenate(file_gains))
    low, high = np.nanquantile(np.mean(gains, axis=0), (0.025, 0.975))
    return float(low), float(high)


def report_tuning(tuning: Tuning) -> Report:
    """A table of the values that were tried, with the gain under it."""
    rows = [["option", "value", tuning.coefficient, ""]]
    for step in tuning.steps:
        for value in _shown_values(step):
            name = "(as before)" if value is None else str(value)
            if step.layers.get(value) is not None:
                name += f", layer {step.layers[value]}"
            mark = "chosen" if value == step.chosen else ""
            rows.append([step.option, name, decimals(step.agreement[value]), mark])
    return Report(_document(tuning), [Grid(rows, (2,)), summary(tuning)])


def _shown_values(step: Step) -> list[Any]:
    """The values that could be used; of many the best ones, and of those that do the same the
    first."""
    usable = {value: number for value, number in step.agreement.items() if not np.isnan(number)}
    if len(usable) <= _MOST_SHOWN:
        return list(usable)
    distinct = {round(number, 6): value for value, number in reversed(usable.items())}
    return [distinct[number] for number in sorted(distinct, reverse=True)[:_MOST_SHOWN]]


def summary(tuning: Tuning) -> str:
    """One line on the gain on segments that had no part in the choice."""
    gain, low, high = (f"{value:+.3f}" for value in tuning.gain)
    return (
        f"{tuning.metric} on {tuning.judgements} judgements, {tuning.folds}-fold "
        f"cross-validation: {tuning.coefficient} {decimals(tuning.before)} before, "
        f"{decimals(tuning.after)} tuned, gain {gain} [{low}, {high}]"
    )


def _document(tuning: Tuning) -> dict[str, Any]:
    return {
        "metric": str(tuning.metric),
        "tuned": str(tuning.tuned),
        "coefficient": tuning.coefficient,
        "judgements": tuning.judgements,
        "folds": tuning.folds,
        "before": tuning.before,
        "after": tuning.after,
        "gain": tuning.gain._asdict(),
        "signatures": tuning.signatures,
        "steps": [_step_document(step, tuning.coefficient) for step in tuning.steps],
    }


def _step_document(step: Step, coefficient: str) -> dict[str, Any]:
    tried = []
    for value, number in step.agreement.items():
        entry = {"value": value, coefficient: None if np.isnan(number) else number}
        if step.layers:
            entry["layer"] = step.layers[value]
        tried.append(entry)
    return {"option": step.option, "tried": tried, "chosen": step.chosen}


def write_preset(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> None:
    """Writes a preset that extends that of the metric, ``preset.toml``, and how it was made,
    ``tuning.json``.

    Raises:
        InputError: there is such a folder already.
    """
    spec = tuning.metric
    head = extending(spec.metric, spec.preset, summary(tuning))
    tables = {} if tuning.side is None else {"score": {"against": tuning.side}}
    tables["options"] = {
        name: value for name, value in tuning.tuned.options if name not in ("against", "setting")
    }
    with new_folder(folder, overwrite) as new:
        write_atomic(new / "preset.toml", preset_toml(head, tables))
        write_json(new / "tuning.json", _document(tuning))
