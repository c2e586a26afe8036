"""Chooses options of a metric by a few judgements, and estimates the gain of the choice.

`tune` tries the values of one option after the other (`_Search.best`), and keeps the value whose
scores agree best with people. The gain is measured by cross-validation: the judgements are cut into
folds, and the segments of a fold are scored by options that were chosen on the others.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mtmetrics.artifacts.presets import extending, preset_toml
from mtmetrics.checks import choice
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import atomic_folder, write_atomic, write_json
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import MetricRuns, run_metrics
from mtmetrics.reports.styles import Grid, Report, decimals
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.scorers.uscore import LEVELS
from mtmetrics.statistics.correlation import COEFFICIENTS, SEED
from mtmetrics.statistics.significance import resampled_counts, sample_correlations

LEAST_JUDGEMENTS = 50
# Stands for all layers of the encoder.
ALL = "all"
# Number of bootstrap resamples behind the interval of the gain.
_RESAMPLES = 1000
# A report shows at most so many values of one option.
_MOST_SHOWN = 12
_LM_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)

# The value of an option; None stands for the value that the metric had before.
Value = bool | int | float | str | None


def _uscore_weights() -> list[str]:
    """Values of UScore's option ``weights``: the parts of the word level in steps of a fifth, both
    levels in steps of a tenth. Values without pseudo-references come first."""
    texts = []
    for pseudo, lm, words in itertools.product(range(0, 11, 2), range(0, 11, 2), range(11)):
        wmd = 10 - pseudo - lm
        if wmd < 0:
            continue
        word_level, sentence_level = LEVELS
        tenths = {
            "wmd": wmd,
            "pseudo": pseudo,
            "lm": lm,
            word_level: words,
            sentence_level: 10 - words,
        }
        texts.append("+".join(f"{name}={tenth / 10:g}" for name, tenth in tenths.items() if tenth))
    return texts


# Metric -> option -> the values that are tried, one option after the other.
_VALUES_TO_TRY: dict[str, dict[str, Sequence[Value]]] = {
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
    """The choice of one option.

    Attributes:
        option: its name.
        agreement: value -> the mean correlation over the files; NaN where it cannot be used.
        chosen: the value that was chosen.
        layers: empty, except for the option ``encoder`` when layers are tried too. Then it maps
            each encoder to the layer at which it agrees best, or to None if that is the layer that
            the metric has without a choice. `agreement` holds at this layer.
    """

    option: str
    agreement: dict[Value, float]
    chosen: Value
    layers: Mapping[Value, Value] = dataclasses.field(default_factory=dict)


class Gain(NamedTuple):
    """A difference of mean correlations, with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The chosen options, and their gain.

    Attributes:
        metric: the metric as it was before.
        tuned: the metric with the chosen options.
        steps: the choices, on all judgements.
        before: mean correlation over the files, of the scores of `metric`.
        after: mean correlation over the files, of held-out scores. The options that score a
            segment are chosen on the other folds, without that segment.
        gain: the difference of `after` and `before`.
        judgements: number of judged segments.
        folds: number of folds.
        coefficient: name of the correlation.
        side: the texts that the metric compares translations with, a value of the option
            ``against`` such as ``source``; None if the metric can compare with one side only.
        signatures: of the tuned metric, one per file.
        unusable: ``OPTION=VALUE`` -> the reason why it cannot be used.
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
        """Lines on values that cannot be used, and on a gain that could be chance or a loss."""
        remarks = [f"cannot be used: {value}: {reason}" for value, reason in self.unusable.items()]
        if self.tuned == self.metric:
            remarks.append("no option is better than what the metric had before")
        elif self.gain.high < 0:
            remarks.append(
                "the gain is a loss: its whole interval lies below 0; keep the options that the "
                "metric had before"
            )
        elif np.isnan([self.gain.low, self.gain.high]).any():
            remarks.append("the gain has no interval; more judgements would tell")
        elif self.gain.low <= 0:
            remarks.append(
                "the gain could be chance: its interval holds 0; more judgements would tell"
            )
        return remarks


def tune(
    metric: MetricSpec,
    files: Sequence[Judged],
    pool: ModelPool,
    values_to_try: Mapping[str, Sequence[Value]],
    *,
    coefficient: str = "pearson",
    folds: int = 5,
) -> Tuning:
    """Chooses options on judged segments, one after the other.

    Once an option is chosen, it keeps its best value while the next options are tried.

    Args:
        metric: to be tuned.
        files: at least 50 judged segments in all.
        pool: loads the models.
        values_to_try: option -> the values to try, such as `default_values_to_try` returns. For
            ``layer`` the one value `ALL` stands for all layers of the encoder. If both ``encoder``
            and ``layer`` are named, each encoder is tried at every layer.
        coefficient: a key of `mtmetrics.statistics.correlation.COEFFICIENTS`. The value with the
            highest mean of this correlation over the files is chosen.
        folds: number of parts of the judgements. For each part all options are chosen again on the
            other parts. Segments of one source are in one part.

    Raises:
        InputError: too few judgements, or nothing can be tuned; or as `run_metrics`.
        ArtifactError: a model cannot be loaded.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    # One mask per file: which of its segments have a judgement.
    masks = [np.isfinite(file.human) for file in files]
    count = int(sum(mask.sum() for mask in masks))
    if count < LEAST_JUDGEMENTS:
        raise InputError(
            f"{count} judged segments; at least {LEAST_JUDGEMENTS} are needed to tune a metric"
        )
    if not 2 <= folds <= count:
        raise InputError(
            f"folds {folds}: must be from 2 to the number of judgements, {count}", option="folds"
        )
    search = _Search(files, pool, coefficient)
    values = search.values(metric, values_to_try)
    human = [file.human[mask] for file, mask in zip(files, masks, strict=True)]
    old_scores = _masked(search.scores(metric), masks)
    for file, scores, judgements in zip(files, old_scores, human, strict=True):
        if reason := COEFFICIENTS[coefficient](scores, judgements).reason:
            raise InputError(f"{file.file}: no agreement to tune by: {reason}")
    tuned, steps = search.best(metric, values, masks)
    held_out_scores = _masked(_held_out_scores(search, metric, values, masks, folds), masks)
    before = _mean_correlation(old_scores, human, coefficient)
    after = _mean_correlation(held_out_scores, human, coefficient)
    interval = _gain_interval(old_scores, held_out_scores, human, coefficient)
    tuned_runs = run_metrics([tuned], files, pool)
    return Tuning(
        metric=metric,
        tuned=tuned,
        steps=steps,
        before=before,
        after=after,
        gain=Gain(after - before, *interval),
        judgements=count,
        folds=folds,
        coefficient=coefficient,
        side=_side(metric),
        signatures=[systems[0].signature for systems in tuned_runs.results[tuned]],
        unusable=search.unusable,
    )


def _side(metric: MetricSpec) -> str | None:
    """The side that a metric compares with, see `Tuning.side`."""
    known_metric = find_metric(metric.metric)
    if len(known_metric.sides) == 1:
        return None
    return known_metric.resolve_side(metric.preset, dict(metric.options))


def _masked(values: Sequence[np.ndarray], masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Takes from each file the values of the segments of its mask."""
    return [file_values[mask] for file_values, mask in zip(values, masks, strict=True)]


def _held_out_scores(
    search: "_Search",
    metric: MetricSpec,
    values: Mapping[str, Sequence[Value]],
    masks: Sequence[np.ndarray],
    folds: int,
) -> list[np.ndarray]:
    """Scores all segments with options that were chosen without them: those of a fold by options
    that were chosen on the other folds.

    Args:
        search: has the scores.
        metric: the metric as it was before.
        values: option -> the values to try.
        masks: one mask per file: which of its segments have a judgement.
        folds: number of folds.

    Returns:
        For each file the (n,) scores of its segments, standardised per fold.
    """
    folds_of_files = _folds(search.files, folds)
    held_out = [np.empty(len(file)) for file in search.files]
    for fold in range(folds):
        # The judged segments of the other folds decide.
        training_masks = [
            mask & (file_folds != fold)
            for mask, file_folds in zip(masks, folds_of_files, strict=True)
        ]
        chosen, _ = search.best(metric, values, training_masks)
        for file_number, scores in enumerate(search.scores(chosen)):
            # The folds may have different options, whose scores are on different scales.
            standardised = (scores - scores.mean()) / (scores.std() or 1.0)
            in_fold = folds_of_files[file_number] == fold
            held_out[file_number][in_fold] = standardised[in_fold]
    return held_out


def _mean_correlation(
    scores: Sequence[np.ndarray],
    human: Sequence[np.ndarray],
    coefficient: str,
) -> float:
    """The mean over files of the correlation of scores with judgements."""
    correlate = COEFFICIENTS[coefficient]
    correlations = [
        correlate(file_scores, judgements).value
        for file_scores, judgements in zip(scores, human, strict=True)
    ]
    return float(np.mean(correlations))


def default_values_to_try(metric: str) -> Mapping[str, Sequence[Value]]:
    """The values that are tried where the user names none: option -> values.

    Args:
        metric: a name of the metric.

    Raises:
        InputError: there is no such metric, or the user must name the values.
    """
    name = find_metric(metric).name
    if name not in _VALUES_TO_TRY:
        raise InputError(
            f"{metric}: has no values that are tried by default (only "
            f"{', '.join(_VALUES_TO_TRY)} have); name some: OPTION=A,B"
        )
    return _VALUES_TO_TRY[name]


class _Search:
    """The search for the best options; the scores of a metric with some options are computed once.

    Attributes:
        files: the judged segments.
        unusable: ``OPTION=VALUE`` -> the reason why it cannot be used.
    """

    def __init__(self, files: Sequence[Judged], pool: ModelPool, coefficient: str) -> None:
        self.files = files
        self.unusable: dict[str, str] = {}
        self._pool = pool
        self._coefficient = coefficient
        # The runs by metric. The metric stands without the options that only weigh the parts of a
        # score, so metrics that differ in these alone share a run.
        self._runs: dict[MetricSpec, MetricRuns] = {}
        # The scores by metric; None if it cannot be used.
        self._scores: dict[MetricSpec, list[np.ndarray] | None] = {}
        # The reason by metric, for each metric that cannot be used.
        self._problems: dict[MetricSpec, str] = {}
        # Number of the encoder's layers by metric.
        self._depths: dict[MetricSpec, int] = {}

    def values(
        self, metric: MetricSpec, values_to_try: Mapping[str, Sequence[Value]]
    ) -> dict[str, list[Value]]:
        """Puts the values to try in the order of the steps: option -> values. A layer belongs to an
        encoder, so it is chosen after that.

        Raises:
            InputError: the metric has no such option.
        """
        options = find_metric(metric.metric).settings_class().options()
        for option in values_to_try:
            if option not in options:
                names = ", ".join(options) or "none"
                raise InputError(f"{metric.metric} has no option {option!r}; there are: {names}")
        values = {option: list(option_values) for option, option_values in values_to_try.items()}
        if "encoder" not in values:
            return values
        first = {option: values[option] for option in ("encoder", "layer") if option in values}
        return first | values

    def scores(self, metric: MetricSpec) -> list[np.ndarray]:
        """Returns for each file the (n,) scores of its segments; an InputError if the metric cannot
        be used."""
        scores = self._scores_if_usable(metric)
        if scores is None:
            raise InputError(f"{metric}: cannot be used on this data")
        return scores

    def best(
        self,
        metric: MetricSpec,
        values: Mapping[str, Sequence[Value]],
        masks: Sequence[np.ndarray],
    ) -> tuple[MetricSpec, list[Step]]:
        """Chooses the options that agree best with people, one after the other.

        Args:
            metric: the metric as it was before.
            values: option -> the values to try.
            masks: one mask per file: the segments that the choice is made on.

        Returns:
            The metric with the chosen options, and the choices.
        """
        # Raises if the metric cannot be run even without a choice: then no value could be.
        self.scores(metric)
        steps = []
        for option, option_values in values.items():
            tries_layers = option == "encoder" and "layer" in values
            candidates = self._candidates(metric, option, option_values)
            agreement: dict[Value, float] = {}
            layers: dict[Value, Value] = {}
            for value, candidate in candidates.items():
                # Layer -> the agreement there; None is the layer that the candidate has already.
                at_layers: dict[Value, float] = {None: self._agreement(candidate, masks)}
                if tries_layers:
                    specs = self._candidates(candidate, "layer", values["layer"])
                    at_layers = {
                        layer: self._agreement(spec, masks) for layer, spec in specs.items()
                    }
                layers[value] = _best(at_layers)
                agreement[value] = at_layers[layers[value]]
                self._note_problems(option, value, candidate, at_layers)
            chosen = _best(agreement)
            # Sets the encoder without its best layer: the next step tries the same layers, and
            # chooses that one as a step of its own.
            metric = candidates[chosen]
            steps.append(Step(option, agreement, chosen, layers if tries_layers else {}))
        return metric, steps

    def _candidates(
        self, metric: MetricSpec, option: str, values: Sequence[Value]
    ) -> dict[Value, MetricSpec]:
        """Returns the metric with each value of an option, by value; by None, the metric as it is."""
        if option == "layer" and values == [ALL]:
            values = range(1, self._depth(metric) + 1)
        return {None: metric} | {value: metric.having(**{option: value}) for value in values}

    def _depth(self, metric: MetricSpec) -> int:
        """The number of layers of a metric's encoder; 0 where these cannot be chosen, or the
        encoder cannot be loaded."""
        if metric not in self._depths:
            # The layer, or a map for it, may not suit the encoder.
            options = {name: value for name, value in metric.options if name != "layer"}
            options |= find_metric(metric.metric).scorer_class().options_without_pair(options)
            without_layer = dataclasses.replace(metric, options=tuple(options.items()))
            try:
                scorer = without_layer.load(self._pool, self.files[0].lang_pair)
                self._depths[metric] = scorer.encoder_depth or 0
            except (InputError, ArtifactError):
                # The user reads this error when the metric itself is tried.
                self._depths[metric] = 0
        return self._depths[metric]

    def _note_problems(
        self,
        option: str,
        value: Value,
        candidate: MetricSpec,
        at_layers: Mapping[Value, float],
    ) -> None:
        """Records in `unusable` why a value cannot be used, or an encoder at some layer.

        Args:
            option: the option.
            value: its value.
            candidate: the metric with this value.
            at_layers: the layers at which it was tried -> its agreement.
        """
        reasons: dict[Value, str] = {}
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
        human = _masked([file.human for file in self.files], masks)
        return _mean_correlation(_masked(scores, masks), human, self._coefficient)

    def _scores_if_usable(self, metric: MetricSpec) -> list[np.ndarray] | None:
        """Returns for each file the (n,) scores of its segments; None if the options do not go
        together, or a model cannot be loaded."""
        if metric not in self._scores:
            try:
                self._scores[metric] = self._compute_scores(metric)
            except (InputError, ArtifactError) as error:
                # The first metric is that of the user, without a choice.
                if not self._scores:
                    raise
                self._scores[metric] = None
                self._problems[metric] = str(error)
        return self._scores[metric]

    def _compute_scores(self, metric: MetricSpec) -> list[np.ndarray]:
        """Computes for each file the (n,) scores of its segments. Metrics that only weigh parts
        differently share one run."""
        options = find_metric(metric.metric).settings_class().options()
        # Options such as `lm_weight`, from which a score follows without running a model again.
        weighing = {name for name, field in options.items() if field.metadata["weighs"]}
        other_options = tuple(pair for pair in metric.options if pair[0] not in weighing)
        without_weights = dataclasses.replace(metric, options=other_options)
        if without_weights not in self._runs:
            self._runs[without_weights] = run_metrics([without_weights], self.files, self._pool)
        results = [systems[0] for systems in self._runs[without_weights].results[without_weights]]
        if metric == without_weights:
            return [result.segments for result in results]
        scores = []
        for file, result in zip(self.files, results, strict=True):
            scorer = metric.load(self._pool, file.lang_pair)
            scores.append(scorer.combine_parts(result.parts))
        return scores


def _best(agreement: Mapping[Value, float]) -> Value:
    """The value of the highest agreement; of equal ones the first, which changes least."""

    def rank(value: Value) -> float:
        return -np.inf if np.isnan(agreement[value]) else round(agreement[value], 6)

    return max(agreement, key=rank)


def _folds(files: Sequence[Judged], folds: int) -> list[np.ndarray]:
    """Draws the folds: for each file the (n,) numbers of its segments' folds. Segments of one source
    share a fold."""
    sources = [[str(source) for source in file.sources] for file in files]
    distinct = list(dict.fromkeys(itertools.chain.from_iterable(sources)))
    order = np.random.default_rng(SEED).permutation(len(distinct))
    fold_of_source = {
        source: int(place) % folds for source, place in zip(distinct, order, strict=True)
    }
    return [np.array([fold_of_source[source] for source in column]) for column in sources]


def _gain_interval(
    old_scores: Sequence[np.ndarray],
    held_out_scores: Sequence[np.ndarray],
    human: Sequence[np.ndarray],
    coefficient: str,
) -> tuple[float, float]:
    """The ends of the 95 % percentile bootstrap interval of the gain of the held-out scores over the
    old ones, mean over the files."""
    gains = []
    for old, held_out, judgements in zip(old_scores, held_out_scores, human, strict=True):
        file_gains = [
            sample_correlations(coefficient, held_out, judgements, counts)
            - sample_correlations(coefficient, old, judgements, counts)
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
    return Report(_document(tuning), [Grid(rows, (2,)), gain_line(tuning)])


def _shown_values(step: Step) -> list[Value]:
    """The values that a report shows: all that can be used.

    If there are too many, only the best ones are shown; of values that agree equally well, the
    first.
    """
    usable = {
        value: agreement for value, agreement in step.agreement.items() if not np.isnan(agreement)
    }
    if len(usable) <= _MOST_SHOWN:
        return list(usable)
    # Reversed, so that the first of equal values is the last to be written.
    value_of_agreement = {
        round(agreement, 6): value for value, agreement in reversed(usable.items())
    }
    highest = sorted(value_of_agreement, reverse=True)[:_MOST_SHOWN]
    return [value_of_agreement[agreement] for agreement in highest]


def gain_line(tuning: Tuning) -> str:
    """One line on the gain on segments that had no part in the choice."""
    gain, low, high = (f"{value:+.3f}" for value in tuning.gain)
    return (
        f"{tuning.metric} on {tuning.judgements} judgements, {tuning.folds}-fold "
        f"cross-validation: {tuning.coefficient} {decimals(tuning.before)} before, "
        f"{decimals(tuning.after)} tuned, gain {gain} [{low}, {high}]"
    )


def _document(tuning: Tuning) -> dict[str, object]:
    """The tuning as plain data."""
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


def _step_document(step: Step, coefficient: str) -> dict[str, object]:
    """The choice of an option as plain data."""
    tried = []
    for value, agreement in step.agreement.items():
        entry: dict[str, Value] = {
            "value": value,
            coefficient: None if np.isnan(agreement) else agreement,
        }
        if step.layers:
            entry["layer"] = step.layers[value]
        tried.append(entry)
    return {"option": step.option, "tried": tried, "chosen": step.chosen}


def write_preset(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> None:
    """Writes ``preset.toml``, a preset that extends the preset of the metric by the chosen options,
    and ``tuning.json``, the tuning as plain data.

    Args:
        tuning: the chosen options.
        folder: the folder to make.
        overwrite: whether a folder that exists is replaced.

    Raises:
        InputError: there is such a folder already.
    """
    spec = tuning.metric
    preset_header = extending(spec.metric, spec.preset, gain_line(tuning))
    tables: dict[str, dict[str, object]] = {}
    if tuning.side is not None:
        tables["score"] = {"against": tuning.side}
    # The side stands in the table before; SentSim's `setting` is another name of it.
    tables["options"] = {
        name: value for name, value in tuning.tuned.options if name not in ("against", "setting")
    }
    with atomic_folder(folder, overwrite) as new:
        write_atomic(new / "preset.toml", preset_toml(preset_header, tables))
        write_json(new / "tuning.json", _document(tuning))
