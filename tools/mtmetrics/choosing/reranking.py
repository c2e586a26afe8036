"""Chooses between several translations of a source: by metrics, by their sum with scores of the
translation model, or by minimum Bayes risk.

`NBest` is the list of candidates of a source, and `Reranker` chooses from it. `Reranker.tune` finds
the weights of the sum on a development set. `rerank` loads metrics and chooses with given weights, in
one call.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.checks import as_texts, number
from mtmetrics.choosing.mixture import Mixture, load_scorers
from mtmetrics.errors import InputError
from mtmetrics.models.packed import distinct
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import BATCH_SEGMENTS, best_rows
from mtmetrics.scorers.spec import MetricSpec

# Weights that are tried, in units of the spread of a score within the lists of candidates.
_STEPS = np.concatenate([[0.0], np.geomspace(0.02, 50.0, 35)])


@dataclasses.dataclass
class NBest:
    """The n candidate translations of one source.

    Attributes:
        candidates: n texts, the translation model's favourite first.
        source: the source; None where no metric compares with it.
        references: translations by people; None where no metric compares with them.
        scores: name -> n scores by the translation model, higher is better.
        human: n human judgements, higher is better; None where there are none.

    Raises:
        InputError: there is no candidate, a value is no text or no number, or there are not n
            scores or judgements.
    """

    candidates: list[str]
    source: str | None = None
    references: list[str] | None = None
    scores: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    human: list[float] | None = None

    def __post_init__(self) -> None:
        self.candidates = as_texts("candidates", self.candidates)
        if not self.candidates:
            raise InputError("candidates: empty; a source needs at least one")
        if self.source is not None:
            [self.source] = as_texts("source", [self.source])
        if self.references is not None:
            self.references = as_texts("references", self.references)
            if not self.references:
                raise InputError("references: empty; leave the key out where there are none")
        numbers = {f"scores {name}": values for name, values in self.scores.items()}
        if self.human is not None:
            numbers["human"] = self.human
        for name, values in numbers.items():
            if not isinstance(values, Sequence) or len(values) != len(self.candidates):
                raise InputError(
                    f"{name}: a list of {len(self.candidates)} numbers is needed, one for each "
                    "candidate"
                )
            for index, value in enumerate(values):
                number(f"{name}[{index}]", value)


class Choice(NamedTuple):
    """The chosen candidate.

    Attributes:
        index: its place in the list, from 0.
        text: the candidate.
        score: its weighted sum; NaN if all candidates are blank.
        scores: the weighted sums of all n candidates; NaN for blank ones.
    """

    index: int
    text: str
    score: float
    scores: list[float]


class Reranker:
    """Chooses the candidate with the highest weighted sum of metrics and model scores.

    With `mbr` a metric's score of a candidate is its expected utility (minimum Bayes risk
    decoding): the mean of the metric over all candidates of the list as references, itself among
    them. A candidate that stands in the list k times counts k times as a reference. All n x n
    comparisons of a list are made from one encoding of each text.

    A blank candidate is chosen only where all are blank, and is no reference. Of equal scores the
    first candidate wins, so a text that stands there several times is chosen at its first place.

    Args:
        scorers: by the names that weights are given to; they compare with sources, references or
            both. With `mbr` each compares with references, which are the candidates of the list.
        weights: name of a metric (1 by default) or of a model score (0 by default) -> weight.
        mbr: see above.
        model_scores: names of the model scores that the lists hold.

    Attributes:
        mixture: the weighted sum.
        mbr: see above.
        counts: numbers of sources, candidates and special cases, for reports.

    Raises:
        InputError: a weight of an unknown name; or all weights are 0.
    """

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        weights: Mapping[str, float] | None = None,
        *,
        mbr: bool = False,
        model_scores: Iterable[str] = (),
    ) -> None:
        self.mixture = Mixture(scorers, weights, model_scores)
        if not any(self.mixture.weights.values()):
            raise InputError("all weights are 0; there is nothing to choose by")
        self.mbr = mbr
        self.counts = Counter[str]()
        self._model_scores = [
            name for name in self.mixture.weights if name not in self.mixture.scorers
        ]

    def __call__(
        self,
        candidates: Sequence[Sequence[str]],
        sources: Sequence[str] | None = None,
        *,
        references: Sequence[Sequence[str]] | None = None,
        scores: Mapping[str, Sequence[Sequence[float]]] | None = None,
    ) -> list[Choice]:
        """Chooses for m sources at once; the arguments are those of `rerank`.

        Raises:
            InputError: the columns are of unequal length, or as `NBest` and `choose`.
        """
        columns = {"source": sources, "references": references}
        columns |= {f"scores {name}": values for name, values in (scores or {}).items()}
        for name, values in columns.items():
            if values is not None and len(values) != len(candidates):
                raise InputError(
                    f"{name}: {len(values)} rows, but there are {len(candidates)} lists of "
                    "candidates"
                )
        lists = []
        for row, texts in enumerate(candidates):
            model_scores = {name: _as_list(values[row]) for name, values in (scores or {}).items()}
            source = None if sources is None else sources[row]
            row_references = None if references is None else _as_list(references[row])
            try:
                lists.append(NBest(_as_list(texts), source, row_references, model_scores))
            except InputError as error:
                raise error.within(f"list {row + 1}") from None  # counts as `choose` does
        return list(self.choose(lists))

    def choose(self, lists: Iterable[NBest]) -> Iterator[Choice]:
        """Chooses for lists that arrive one by one; memory holds the texts of about a thousand
        comparisons.

        Raises:
            InputError: a list lacks texts that a metric compares with, or a model score that has a
                weight; names the number of the list.
        """
        for block, features in self._features(lists):
            ends = np.cumsum([len(item.candidates) for item in block])
            sums = np.split(self.mixture.sum(features), ends[:-1])
            for item, values in zip(block, sums, strict=True):
                yield self._choice(item.candidates, values)

    def _choice(self, texts: Sequence[str], values: np.ndarray) -> Choice:
        """The best of the candidates by their (n,) values; counts it."""
        is_blank = np.array([not text.strip() for text in texts])
        values = np.where(is_blank, np.nan, values)
        index = 0 if is_blank.all() else int(np.nanargmax(values))
        is_best = values == values[index]
        best_texts = {text for text, best in zip(texts, is_best, strict=True) if best}
        self.counts.update(
            sources=1,
            candidates=len(texts),
            blank=int(is_blank.sum()),
            repeated=len(texts) - len(set(texts)),
            # A Counter keeps its first values as they are, and a report would show True or False.
            tied=int(len(best_texts) > 1),
            changed=int(index > 0),
        )
        return Choice(index, texts[index], float(values[index]), values.tolist())

    def _features(self, lists: Iterable[NBest]) -> Iterator[tuple[list[NBest], np.ndarray]]:
        """Blocks of lists, and the (k, candidates) scores of each in the order of the weights."""
        block: list[NBest] = []
        pairs = 0
        for row, item in enumerate(lists, 1):
            self._check(item, row)
            block.append(item)
            pairs += len(item.candidates) ** 2 if self.mbr else len(item.candidates)
            if pairs >= BATCH_SEGMENTS:
                yield block, self._block_features(block)
                block, pairs = [], 0
        if block:
            yield block, self._block_features(block)

    def _check(self, item: NBest, row: int) -> None:
        """Refuses a list of candidates that lacks a model score with a weight, or texts that a
        metric compares with; `row` is its number, from 1."""
        for name in self._model_scores:
            if self.mixture.weights[name] and name not in item.scores:
                raise InputError(
                    f"list {row}: no model score {name!r}, which has a weight; it has: "
                    f"{[*item.scores]}"
                )
        texts_by_column = {
            "sources": item.source,
            "references": item.candidates if self.mbr else item.references,
        }
        for name, scorer in self.mixture.scorers.items():
            for column in scorer.side.columns:
                if texts_by_column[column] is None:
                    key = "source" if column == "sources" else column
                    raise InputError(f"list {row}: no {key}, which {name} compares with")

    def _block_features(self, block: list[NBest]) -> np.ndarray:
        """(k, candidates) scores by metrics, then those of the translation model."""
        if self.mbr:
            metric_scores = self._utilities(block)
        else:
            columns = {
                "sources": [item.source for item in block for _ in item.candidates],
                "references": [item.references for item in block for _ in item.candidates],
            }
            texts = [text for item in block for text in item.candidates]
            metric_scores = self.mixture.score(columns, texts)
        rows = list(metric_scores)
        for name in self._model_scores:
            scores = [item.scores.get(name, [0.0] * len(item.candidates)) for item in block]
            rows.append(np.concatenate(scores))
        return np.array(rows, dtype=np.float64)

    def _utilities(self, block: list[NBest]) -> np.ndarray:
        """(k, candidates) expected utilities: for each metric the mean score of a candidate against
        all candidates of its list; NaN for a blank one.

        Equal texts are compared once, and all lists are scored in one call of each metric.
        """
        # For each list its distinct texts, and for each candidate that is not blank the place of
        # its text there.
        distinct_texts = [
            distinct([text for text in item.candidates if text.strip()]) for item in block
        ]
        sources: list[str | None] = []
        predictions: list[str] = []
        references: list[str] = []
        for item, (texts, _) in zip(block, distinct_texts, strict=True):
            for prediction, reference in itertools.product(texts, repeat=2):
                sources.append(item.source)
                predictions.append(prediction)
                references.append(reference)
        scores = np.zeros((0, 0))
        if predictions:
            columns = {"sources": sources, "references": references}
            scores = self.mixture.score(columns, predictions)
        utilities = []
        first = 0
        for item, (texts, places) in zip(block, distinct_texts, strict=True):
            values = np.full((len(self.mixture.scorers), len(item.candidates)), np.nan)
            if texts:
                size = len(texts)
                # (k, predictions, references)
                matrix = scores[:, first : first + size**2].reshape(-1, size, size)
                first += size**2
                counts = np.bincount(places)
                means = matrix @ counts / len(places)
                is_blank = np.array([not text.strip() for text in item.candidates])
                values[:, ~is_blank] = means[:, places]
            utilities.append(values)
        return np.concatenate(utilities, axis=1)

    def tune(self, lists: Sequence[NBest], objective: Scorer | None = None) -> dict[str, float]:
        """Sets the weights that choose the best candidates on a development set, and returns them.

        The mean quality of what is chosen is climbed along one weight after the other, from each
        score alone and from all together: minimum error rate training (Och, 2003) in steps. Weights
        are not negative.

        Args:
            lists: all with human judgements, which are the quality then; or all with references.
            objective: a metric that compares with references. Its scores are the quality if a list
                has no judgements.

        Raises:
            InputError: there is no list; not all have judgements, and one has no references or
                there is no objective; no list has candidates that differ in any score; or as
                `choose`.
        """
        if not lists:
            raise InputError("the development set is empty; there is nothing to tune on")
        for row, item in enumerate(lists, 1):
            for name in self._model_scores:
                if name not in item.scores:
                    raise InputError(
                        f"list {row}: no model score {name!r}, which is to be weighed; it has: "
                        f"{[*item.scores]}"
                    )
        quality = _quality(lists, objective)
        blocks = [features for _, features in self._features(lists)]
        sizes = [len(item.candidates) for item in lists]
        # The candidates of all lists stand one behind the other.
        list_of_candidate = np.repeat(np.arange(len(lists)), sizes)
        is_usable = np.array([bool(text.strip()) for item in lists for text in item.candidates])
        features = np.where(is_usable, np.concatenate(blocks, axis=1), 0.0)
        spread = _spread(features, is_usable, list_of_candidate)
        differs = spread > 0
        if not differs.any():
            raise InputError("the development set has no list whose candidates differ in any score")
        scaled = features[differs] / spread[differs, None]

        def mean_quality(weights: np.ndarray) -> float:
            """The mean quality of the candidates that weights of the scaled scores choose, one of
            each list; a blank one only where all are blank."""
            scores = np.where(is_usable, weights @ scaled, -np.inf)
            return float(quality[best_rows(scores, list_of_candidate)].mean())

        weights = np.zeros(len(features))
        weights[differs] = _best_weights(len(scaled), mean_quality) / spread[differs]
        self.mixture.weights = {
            name: float(f"{weight:.6g}")
            for name, weight in zip(self.mixture.weights, weights, strict=True)
        }
        return self.mixture.weights


def _as_list(values: Any) -> Any:
    """Makes a list of a row of any type, but leaves a string or a single value, which `NBest`
    refuses, as it is."""
    is_row = isinstance(values, Iterable) and not isinstance(values, str)
    return list(values) if is_row else values


def _spread(
    features: np.ndarray, is_usable: np.ndarray, list_of_candidate: np.ndarray
) -> np.ndarray:
    """(k,) standard deviations of k scores of usable candidates within their lists."""
    sums = np.array([np.bincount(list_of_candidate, row) for row in features])
    means = sums / np.maximum(np.bincount(list_of_candidate, is_usable), 1)
    deviations = (features - means[:, list_of_candidate])[:, is_usable]
    return np.sqrt(np.mean(np.square(deviations), axis=1))


def _quality(lists: Sequence[NBest], objective: Scorer | None) -> np.ndarray:
    """(candidates,) qualities, which tuning makes high: judgements, or scores of the objective."""
    without_human = [row for row, item in enumerate(lists, 1) if item.human is None]
    if not without_human:
        return np.array([value for item in lists for value in item.human or ()], dtype=np.float64)
    without_references = [row for row, item in enumerate(lists, 1) if item.references is None]
    without_both = sorted({*without_human} & {*without_references})
    if without_both:
        raise InputError(
            f"list {without_both[0]}: neither judgements of all candidates (human) nor references; "
            "tuning needs either"
        )
    if without_references:
        raise InputError(
            f"list {without_human[0]} has no judgements (human), and list {without_references[0]} "
            "no references; tuning needs either of all lists"
        )
    if objective is None:
        raise InputError(
            f"list {without_human[0]}: no judgements (human); tuning on references needs an objective"
        )
    references = [item.references for item in lists for _ in item.candidates]
    candidates = [text for item in lists for text in item.candidates]
    [[result]] = objective.score_batches([Batch({"": candidates}, references=references)])
    return result.segments


def _best_weights(count: int, mean_quality: Callable[[np.ndarray], float]) -> np.ndarray:
    """(count,) weights of the highest quality, which sum up to 1; of equally good ones those that
    were met first."""
    starts = np.unique(np.concatenate([np.eye(count), np.ones((1, count))]), axis=0)[::-1]
    best_weights, best_quality = starts[0], -np.inf
    for start in starts:
        weights, quality = _climbed(start, mean_quality)
        if quality > best_quality + 1e-12:
            best_weights, best_quality = weights, quality
    return best_weights / best_weights.sum()


def _climbed(
    start: np.ndarray, mean_quality: Callable[[np.ndarray], float]
) -> tuple[np.ndarray, float]:
    """Changes one weight after the other as long as the quality rises; returns the (k,) weights and
    the quality."""
    weights, quality = start, mean_quality(start)
    improved = True
    while improved:
        improved = False
        for place in range(len(start)):
            is_changed = np.arange(len(start)) == place
            # Alone, a score chooses the same candidates whatever its weight.
            steps = _STEPS if weights[~is_changed].any() else [1.0]
            variants = [np.where(is_changed, step, weights) for step in steps]
            qualities = [mean_quality(variant) for variant in variants]
            top = int(np.argmax(qualities))
            if qualities[top] > quality + 1e-12:
                weights, quality = variants[top], qualities[top]
                improved = True
    return weights, quality


def rerank(
    candidates: Sequence[Sequence[str]],
    sources: Sequence[str] | None = None,
    *,
    metric: str | Sequence[str] = "xmoverscore",
    preset: str | None = None,
    mbr: bool = False,
    references: Sequence[Sequence[str]] | None = None,
    scores: Mapping[str, Sequence[Sequence[float]]] | None = None,
    weights: Mapping[str, float] | None = None,
    lang_pair: str | None = None,
    **options: object,
) -> list[Choice]:
    """The best of the candidate translations of each source.

    Args:
        candidates: for each of m sources its candidates, the translation model's favourite first.
        sources: m texts, where a metric compares with them.
        metric: ``NAME[:PRESET[:option=value,...]]``, or several.
        preset: of metrics that name none; the default of each if None.
        mbr: choose by expected utility, see `Reranker`; metrics then compare with the candidates
            of the list as references.
        references: for each source a list of references, where a metric compares with them.
        scores: name -> for each source the scores of its candidates by the translation model,
            higher is better.
        weights: name of a metric, as it is written in `metric` (1 by default), or of a model score
            (0 by default) -> weight in the sum that decides.
        lang_pair: such as ``"de-en"``.
        **options: how models are run, see `mtmetrics.models.pool.ModelPool`; `dtype` is ``"auto"``
            here.

    Returns:
        m `Choice`, with index, text and score of the chosen candidate. Blank candidates, ties and
        repeated ones are treated as `Reranker` says.

    Raises:
        InputError: as `Reranker`, or a metric that compares with something that is not given.
        ArtifactError: a model cannot be loaded.

    Example:
        >>> import mtmetrics
        >>> lists = [["The house is small.", "The weather was good yesterday.", ""]]
        >>> [choice] = mtmetrics.rerank(lists, ["Das Haus ist klein."], metric="xmoverscore:mini", lang_pair="de-en")
        >>> choice.index, choice.text
        (0, 'The house is small.')
    """
    names = [metric] if isinstance(metric, str) else list(metric)
    specs = {name: MetricSpec.parse(name).filled(preset, {}) for name in names}
    columns = {"sources": sources, "references": references}
    available_columns = [name for name, values in columns.items() if values is not None]
    pool = ModelPool(**{"dtype": "auto"} | options)
    scorers = load_scorers(specs, available_columns, pool, lang_pair, mbr)
    reranker = Reranker(scorers, weights, mbr=mbr, model_scores=scores or ())
    return reranker(candidates, sources, references=references, scores=scores)
