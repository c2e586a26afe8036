"""Chooses options of a metric on a small set of human judgements, and estimates the gain.

`tune` tries the values of one option after the other (`_Search.choose_options`), and keeps the value
whose scores agree best with people. The gain is measured by cross-validation: the judgements are split
into folds, and the segments of a fold are scored with options that were chosen on the other folds.
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

MIN_JUDGEMENTS = 50
# Value of the option `layer` that stands for all layers of the encoder.
ALL_LAYERS = "all"
# Number of bootstrap resamples behind the interval of the gain.
_RESAMPLES = 1000
# Highest number of values of one option in a report.
_MAX_SHOWN = 12
_LM_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)

# The value of an option; None stands for the value that the metric had before the tuning.
Value = bool | int | float | str | None


def _uscore_weights() -> list[str]:
    """Returns values of UScore's option ``weights``.

    The weights of the parts of the word level vary in steps of 0.2, the weights of the two levels in
    steps of 0.1. Values without pseudo-references come first.
    """
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
        "layer": (ALL_LAYERS,),
        "weights": ("uniform", "norm"),
        "pieces": ("words", "all"),
        "ngram": (1, 2),
        "lm_weight": _LM_WEIGHTS,
    },
    "sentsim": {
        "variant": ("bertscore", "wmd"),
        "w1": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 4.5),
    },
    "distilscore": {"layer": (ALL_LAYERS,)},
    "uscore": {"weights": _uscore_weights()},
    "bertr": {"layer": (ALL_LAYERS,), "special_tokens": (False, True)},
}


def default_values_to_try(metric: str) -> Mapping[str, Sequence[Value]]:
    """Returns option -> the values to try if the user names none.

    Args:
        metric: a name of the metric.

    Raises:
        InputError: there is no such metric, or it has no default values.
    """
    name = find_metric(metric).name
    if name not in _VALUES_TO_TRY:
        raise InputError(
            f"{metric}: has no values that are tried by default (only "
            f"{', '.join(_VALUES_TO_TRY)} have); name some: OPTION=A,B"
        )
    return _VALUES_TO_TRY[name]


@dataclasses.dataclass(frozen=True)
class OptionChoice:
    """The choice of the value of one option.

    Attributes:
        option: the name of the option.
        agreement: value -> the mean correlation over the files; NaN for a value that cannot be used,
            or whose scores have no correlation.
        chosen: the value that was chosen.
        layers: empty, except for the option ``encoder`` when layers are tried too. Then it maps
            each encoder to the layer at which it agrees best, or to None for the layer that the
            metric had before. `agreement` is that of the encoder at this layer.
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
        metric: the metric before the tuning.
        tuned: the metric with the chosen options.
        steps: the choices of the options, made on all judgements, in order.
        before: mean correlation over the files of the scores of `metric`.
        after: mean correlation over the files of held-out scores. The options that score a segment
            are chosen on the other folds, without that segment.
        gain: `after` minus `before`.
        judgement_count: number of judged segments.
        folds: number of folds.
        coefficient: name of the correlation.
        signatures: for each file, the line that says how the tuned metric was computed.
        unusable: ``OPTION=VALUE`` -> the reason why it cannot be used.
    """

    metric: MetricSpec
    tuned: MetricSpec
    steps: list[OptionChoice]
    before: float
    after: float
    gain: Gain
    judgement_count: int
    folds: int
    coefficient: str
    signatures: list[str]
    unusable: dict[str, str]

    @property
    def remarks(self) -> list[str]:
        """Lines on values that cannot be used, and on a gain that could be chance or a loss."""
        remarks = [
            f"cannot be used: {option_value}: {reason}"
            for option_value, reason in self.unusable.items()
        ]
        if self.tuned == self.metric:
            remarks.append("no option is better than what the metric had before")
        elif self.gain.high < 0:
            remarks.append(
                "the gain is a loss: its whole interval lies below 0; keep the options that the "
                "metric had before"
            )
        elif np.isnan([self.gain.low, self.gain.high]).any():
            remarks.append("the gain has no interval; use more judgements")
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
        metric: the metric to tune.
        files: at least 50 judged segments in all.
        pool: loads the models.
        values_to_try: option -> the values to try, such as `default_values_to_try` returns. For
            ``layer`` the single value `ALL_LAYERS` stands for all layers of the encoder. If both
            ``encoder`` and ``layer`` are named, each encoder is tried at every layer.
        coefficient: a key of `mtmetrics.statistics.correlation.COEFFICIENTS`. The value with the
            highest mean of this correlation over the files is chosen.
        folds: number of folds. For each fold, all options are chosen again on the other folds.
            Segments of one source are in one fold.

    Raises:
        InputError: too few judgements, an option that the metric does not have, judgements or scores
            without a correlation, or data that `run_metrics` refuses.
        ArtifactError: a model cannot be loaded.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    # For each file, the segments that have a judgement.
    masks = [np.isfinite(file.human) for file in files]
    judgement_count = int(sum(mask.sum() for mask in masks))
    if judgement_count < MIN_JUDGEMENTS:
        raise InputError(
            f"{judgement_count} judged segments; at least {MIN_JUDGEMENTS} are needed to tune a metric"
        )
    # Segments of one source are in one fold, so there cannot be more folds with judgements.
    judged_sources = {
        str(source)
        for file, mask in zip(files, masks, strict=True)
        for source in itertools.compress(file.sources, mask)
    }
    if not 2 <= folds <= len(judged_sources):
        raise InputError(
            f"folds {folds}: must be from 2 to the number of judged sources, {len(judged_sources)}",
            option="folds",
        )
    search = _Search(files, pool, coefficient)
    ordered_values = _in_step_order(metric, values_to_try)
    judgements = _masked([file.human for file in files], masks)
    old_scores = _masked(search.scores(metric), masks)
    for file, file_scores, file_judgements in zip(files, old_scores, judgements, strict=True):
        if reason := COEFFICIENTS[coefficient](file_scores, file_judgements).reason:
            raise InputError(f"{file.file}: no agreement to tune by: {reason}")
    tuned, steps = search.choose_options(metric, ordered_values, masks)
    held_out_scores = _masked(_held_out_scores(search, metric, ordered_values, masks, folds), masks)
    before = _mean_correlation(old_scores, judgements, coefficient)
    after = _mean_correlation(held_out_scores, judgements, coefficient)
    interval = _gain_interval(old_scores, held_out_scores, judgements, coefficient)
    # The search may have computed the tuned scores from the parts of another run, which has another
    # signature.
    tuned_runs = run_metrics([tuned], files, pool)
    return Tuning(
        metric=metric,
        tuned=tuned,
        steps=steps,
        before=before,
        after=after,
        gain=Gain(after - before, *interval),
        judgement_count=judgement_count,
        folds=folds,
        coefficient=coefficient,
        signatures=[result.signature for [result] in tuned_runs.results[tuned]],
        unusable=search.unusable,
    )


def _in_step_order(
    metric: MetricSpec, values_to_try: Mapping[str, Sequence[Value]]
) -> dict[str, list[Value]]:
    """Puts options in the order in which they are chosen: option -> the values to try.

    A layer belongs to an encoder, so the layer is chosen right after the encoder.

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
    encoder_first = {option: values[option] for option in ("encoder", "layer") if option in values}
    return encoder_first | values


class _Search:
    """Searches for the best options. The scores of a metric with some options are computed once.

    Attributes:
        files: the judged segments.
        unusable: ``OPTION=VALUE`` -> the reason why it cannot be used.
    """

    def __init__(self, files: Sequence[Judged], pool: ModelPool, coefficient: str) -> None:
        self.files = files
        self.unusable: dict[str, str] = {}
        self._pool = pool
        self._coefficient = coefficient
        # Metric -> its run. The key leaves out options that only weight the parts of a score, so
        # metrics that differ in these alone share a run.
        self._runs: dict[MetricSpec, MetricRuns] = {}
        # Metric -> its scores.
        self._scores: dict[MetricSpec, list[np.ndarray]] = {}
        # Metric that cannot be used -> the reason.
        self._problems: dict[MetricSpec, str] = {}
        # Metric without a layer -> number of layers of its encoder.
        self._depths: dict[MetricSpec, int] = {}

    def scores(self, metric: MetricSpec) -> list[np.ndarray]:
        """Returns for each file the (n,) scores of its segments.

        Raises:
            InputError: the options do not go together, or data that `run_metrics` refuses.
            ArtifactError: a model cannot be loaded.
        """
        if metric not in self._scores:
            self._scores[metric] = self._compute_scores(metric)
        return self._scores[metric]

    def choose_options(
        self,
        metric: MetricSpec,
        values: Mapping[str, Sequence[Value]],
        masks: Sequence[np.ndarray],
    ) -> tuple[MetricSpec, list[OptionChoice]]:
        """Chooses the options that agree best with people, one after the other.

        Args:
            metric: the metric before the tuning.
            values: option -> the values to try.
            masks: for each file, the segments that the choice is made on.

        Returns:
            The metric with the chosen options, and the choices.
        """
        steps = []
        for option, option_values in values.items():
            candidates = self._candidates(metric, option, option_values)
            tries_layers = option == "encoder" and "layer" in values
            agreement: dict[Value, float] = {}
            best_layers: dict[Value, Value] = {}
            for value, candidate in candidates.items():
                # Without layers to try, `at_layers` has the key None alone.
                layer_values = values["layer"] if tries_layers else []
                at_layers = self._candidates(candidate, "layer", layer_values)
                agreement_by_layer = {
                    layer: self._agreement(spec, masks) for layer, spec in at_layers.items()
                }
                best_layer = _best(agreement_by_layer)
                best_layers[value] = best_layer
                agreement[value] = agreement_by_layer[best_layer]
                self._note_problems(option, value, at_layers)
            chosen = _best(agreement)
            steps.append(
                OptionChoice(option, agreement, chosen, best_layers if tries_layers else {})
            )
            # Sets the encoder without its best layer: the next step tries the same layers, and
            # chooses the layer.
            metric = candidates[chosen]
        return metric, steps

    def _candidates(
        self, metric: MetricSpec, option: str, values: Sequence[Value]
    ) -> dict[Value, MetricSpec]:
        """Maps each value of an option to the metric with that value, and None to the unchanged
        metric."""
        if option == "layer" and list(values) == [ALL_LAYERS]:
            values = range(1, self._depth(metric) + 1)
        return {None: metric} | {value: metric.having(**{option: value}) for value in values}

    def _depth(self, metric: MetricSpec) -> int:
        """Returns the number of layers of a metric's encoder; 0 if a layer cannot be chosen, or the
        encoder cannot be loaded."""
        # Without the layer, and without the models of a language pair, such as a map that was fitted
        # for a layer: they may not suit the encoder.
        options = {name: value for name, value in metric.options if name != "layer"}
        options |= find_metric(metric.metric).scorer_class().options_without_pair(options)
        without_layer = dataclasses.replace(metric, options=tuple(options.items()))
        if without_layer not in self._depths:
            try:
                scorer = without_layer.load(self._pool, self.files[0].lang_pair)
                self._depths[without_layer] = scorer.encoder_depth or 0
            except (InputError, ArtifactError):
                # The error is reported when the metric itself is tried.
                self._depths[without_layer] = 0
        return self._depths[without_layer]

    def _note_problems(
        self, option: str, value: Value, at_layers: Mapping[Value, MetricSpec]
    ) -> None:
        """Records in `unusable` why a value cannot be used, or cannot be used at some layer.

        Args:
            option: the option.
            value: its value.
            at_layers: layer -> the metric with this value at the layer.
        """
        reasons = {
            layer: self._problems[spec]
            for layer, spec in at_layers.items()
            if spec in self._problems
        }
        if value is not None and len(reasons) == len(at_layers):
            self.unusable[f"{option}={value}"] = next(iter(reasons.values()))
            return
        for layer, reason in reasons.items():
            if layer is not None:
                name = f"layer={layer}" if value is None else f"{option}={value} layer={layer}"
                self.unusable[name] = reason

    def _agreement(self, metric: MetricSpec, masks: Sequence[np.ndarray]) -> float:
        """Returns the mean correlation over the files on the segments where the masks are true; NaN if
        the metric cannot be used."""
        if metric in self._problems:
            return np.nan
        try:
            scores = self.scores(metric)
        except (InputError, ArtifactError) as error:
            self._problems[metric] = str(error)
            return np.nan
        judgements = _masked([file.human for file in self.files], masks)
        return _mean_correlation(_masked(scores, masks), judgements, self._coefficient)

    def _compute_scores(self, metric: MetricSpec) -> list[np.ndarray]:
        """Computes for each file the (n,) scores of its segments. Metrics that only weight the parts
        of the score differently share one run."""
        options = find_metric(metric.metric).settings_class().options()
        # Options such as `lm_weight`: the score follows from its parts, no model has to run again.
        weight_options = {name for name, field in options.items() if field.metadata["weighs"]}
        other_options = tuple(
            (name, value) for name, value in metric.options if name not in weight_options
        )
        without_weights = dataclasses.replace(metric, options=other_options)
        if without_weights not in self._runs:
            self._runs[without_weights] = run_metrics([without_weights], self.files, self._pool)
        # Each judged file has one system.
        results = [result for [result] in self._runs[without_weights].results[without_weights]]
        if metric == without_weights:
            return [result.segments for result in results]
        scores = []
        for file, result in zip(self.files, results, strict=True):
            scorer = metric.load(self._pool, file.lang_pair)
            scores.append(scorer.combine_parts(result.parts))
        return scores


def _best(agreement: Mapping[Value, float]) -> Value:
    """Returns the value with the highest agreement; on ties (to 6 decimals) the first. That is None,
    the unchanged metric, if it is one of them."""

    def rank(value: Value) -> float:
        return -np.inf if np.isnan(agreement[value]) else round(agreement[value], 6)

    return max(agreement, key=rank)


def _masked(values: Sequence[np.ndarray], masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns, for each file, the values of the segments where its mask is true."""
    return [file_values[mask] for file_values, mask in zip(values, masks, strict=True)]


def _mean_correlation(
    scores: Sequence[np.ndarray],
    judgements: Sequence[np.ndarray],
    coefficient: str,
) -> float:
    """Returns the correlation of scores with judgements, averaged over the files."""
    correlate = COEFFICIENTS[coefficient]
    correlations = [
        correlate(file_scores, file_judgements).value
        for file_scores, file_judgements in zip(scores, judgements, strict=True)
    ]
    return float(np.mean(correlations))


def _held_out_scores(
    search: _Search,
    metric: MetricSpec,
    values: Mapping[str, Sequence[Value]],
    masks: Sequence[np.ndarray],
    folds: int,
) -> list[np.ndarray]:
    """Scores all segments with options that were chosen without them, on the other folds.

    Args:
        search: computes the scores.
        metric: the metric before the tuning.
        values: option -> the values to try.
        masks: for each file, the segments that have a judgement.
        folds: number of folds.

    Returns:
        For each file the (n,) scores of its segments. Those of a fold are standardised by mean and
        deviation of the scores that its options give to the whole file.
    """
    fold_numbers = _draw_folds(search.files, folds)
    held_out = [np.empty(len(file)) for file in search.files]
    for fold in range(folds):
        # The options are chosen on the judged segments of the other folds.
        training_masks = [
            mask & (numbers != fold) for mask, numbers in zip(masks, fold_numbers, strict=True)
        ]
        chosen, _ = search.choose_options(metric, values, training_masks)
        for file_number, scores in enumerate(search.scores(chosen)):
            # The folds may have different options, whose scores are on different scales.
            standardised = (scores - scores.mean()) / (scores.std() or 1.0)
            in_fold = fold_numbers[file_number] == fold
            held_out[file_number][in_fold] = standardised[in_fold]
    return held_out


def _draw_folds(files: Sequence[Judged], folds: int) -> list[np.ndarray]:
    """Draws a fold for each segment. Segments of one source share a fold.

    Returns:
        For each file the (n,) fold numbers of its segments.
    """
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
    judgements: Sequence[np.ndarray],
    coefficient: str,
) -> tuple[float, float]:
    """Returns the ends of the 95 % percentile bootstrap interval of the gain of the held-out scores
    over the old scores, averaged over the files."""
    gains = []
    for old, held_out, human in zip(old_scores, held_out_scores, judgements, strict=True):
        file_gains = [
            sample_correlations(coefficient, held_out, human, counts)
            - sample_correlations(coefficient, old, human, counts)
            for counts in resampled_counts(_RESAMPLES, len(human), SEED)
        ]
        gains.append(np.concatenate(file_gains))
    low, high = np.nanquantile(np.mean(gains, axis=0), (0.025, 0.975))
    return float(low), float(high)


def report_tuning(tuning: Tuning) -> Report:
    """Reports the values that were tried in a table, with the gain under it."""
    rows = [["option", "value", tuning.coefficient, ""]]
    for step in tuning.steps:
        for value in _shown_values(step):
            name = "(as before)" if value is None else str(value)
            if step.layers.get(value) is not None:
                name += f", layer {step.layers[value]}"
            mark = "chosen" if value == step.chosen else ""
            rows.append([step.option, name, decimals(step.agreement[value]), mark])
    return Report(_document(tuning), [Grid(rows, (2,)), gain_line(tuning)])


def _shown_values(step: OptionChoice) -> list[Value]:
    """Returns the values that a report shows: all usable values.

    If there are more than `_MAX_SHOWN`, these are the best values; of values that agree equally well,
    the first.
    """
    usable = {
        value: agreement for value, agreement in step.agreement.items() if not np.isnan(agreement)
    }
    if len(usable) <= _MAX_SHOWN:
        return list(usable)
    first_values: dict[float, Value] = {}
    for value, agreement in usable.items():
        first_values.setdefault(round(agreement, 6), value)
    highest = sorted(first_values, reverse=True)[:_MAX_SHOWN]
    return [first_values[agreement] for agreement in highest]


def gain_line(tuning: Tuning) -> str:
    """Returns one line about the gain on held-out segments."""
    gain, low, high = (f"{value:+.3f}" for value in tuning.gain)
    return (
        f"{tuning.metric} on {tuning.judgement_count} judgements, {tuning.folds}-fold "
        f"cross-validation: {tuning.coefficient} {decimals(tuning.before)} before, "
        f"{decimals(tuning.after)} tuned, gain {gain} [{low}, {high}]"
    )


def _document(tuning: Tuning) -> dict[str, object]:
    """Returns the tuning as plain data."""
    return {
        "metric": str(tuning.metric),
        "tuned": str(tuning.tuned),
        "coefficient": tuning.coefficient,
        "judgements": tuning.judgement_count,
        "folds": tuning.folds,
        "before": tuning.before,
        "after": tuning.after,
        "gain": tuning.gain._asdict(),
        "signatures": tuning.signatures,
        "steps": [_step_document(step, tuning.coefficient) for step in tuning.steps],
    }


def _step_document(step: OptionChoice, coefficient: str) -> dict[str, object]:
    """Returns the choice of an option as plain data."""
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
    """Writes the options of the tuned metric as a preset: the chosen ones, and those that it had
    before.

    The folder has ``preset.toml``, which extends the preset of the metric by these options, and
    ``tuning.json``, the tuning as plain data.

    Args:
        tuning: the chosen options.
        folder: the folder to make.
        overwrite: whether an existing folder is replaced.

    Raises:
        InputError: the folder exists already.
    """
    spec = tuning.metric
    preset_header = extending(spec.metric, spec.preset, gain_line(tuning))
    tables: dict[str, dict[str, object]] = {}
    entry = find_metric(spec.metric)
    if len(entry.sides) > 1:
        tables["score"] = {"against": entry.resolve_side(spec.preset, dict(spec.options))}
    # The side is in the table [score] already; SentSim's `setting` is another name for it.
    tables["options"] = {
        name: value for name, value in tuning.tuned.options if name not in ("against", "setting")
    }
    with atomic_folder(folder, overwrite) as new:
        write_atomic(new / "preset.toml", preset_toml(preset_header, tables))
        write_json(new / "tuning.json", _document(tuning))
