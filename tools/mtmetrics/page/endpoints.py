"""The endpoints that programs call on the page: ``/score``, ``/compare`` and ``/explain``."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from mtmetrics.checks import check
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.matching.word_errors import faults_as_dicts
from mtmetrics.page.comparing import Comparer
from mtmetrics.page.downloads import comparison_document
from mtmetrics.page.offers import MetricChoice, ticked_offers
from mtmetrics.page.texts import Texts, from_lists
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.side import Column
from mtmetrics.scorers.words import WordScorer, require_word_scorer

# An explanation holds a matrix per segment.
MOST_EXPLAINED = 100
_SYSTEM = "system"


class Endpoints:
    """The functions behind the endpoints of a page.

    Their docstrings and types are what gradio shows to callers. All take lists of texts, a segment
    each, and the language pair. A metric is named as on the command line, such as
    ``xmoverscore:mini``. Preset and side may be left out.

    Args:
        offers: the metrics of the page.
        comparer: keeps their models.
    """

    def __init__(self, offers: Sequence[MetricChoice], comparer: Comparer) -> None:
        self._offers, self._comparer = offers, comparer

    def publish(self, **options: Any) -> None:
        """Adds the endpoints to the page that is being built; `options` are those of
        `gradio.api`."""
        import gradio

        for function in (self.score, self.compare, self.explain):
            gradio.api(function, api_name=function.__name__, **options)

    def score(
        self,
        predictions: list[str],
        sources: list[str] | None = None,
        references: list[str] | None = None,
        metric: str | None = None,
        lang_pair: str = "de-en",
    ) -> dict[str, Any]:
        """Scores translations of one system.

        Args:
            predictions: n translations.
            sources: n source texts, if the metric compares with them.
            references: n human translations, if the metric compares with them.
            metric: such as xmoverscore:mini; None for the first that the page ticks.
            lang_pair: such as de-en.

        Returns:
            ``metric``, ``mean_score``, ``scores`` and ``parts`` (n numbers each), ``signature`` and
            ``report``.
        """
        with _shown_errors():
            texts = _texts_of_one(lang_pair, predictions, sources, references)
            offer = self._choose(metric, texts)
            result = self._comparer.score(offer, texts)[_SYSTEM]
            return {"metric": offer.key, **result.as_dict(parts=True)}

    def compare(
        self,
        systems: dict[str, list[str]],
        sources: list[str] | None = None,
        references: list[str] | None = None,
        metrics: list[str] | None = None,
        lang_pair: str = "de-en",
    ) -> dict[str, Any]:
        """Compares translations of two or more systems.

        Args:
            systems: name of a system -> its n translations.
            sources: n source texts, if a metric compares with them.
            references: n human translations, if a metric compares with them.
            metrics: such as xmoverscore:mini and chrf; None for those that the page ticks.
            lang_pair: such as de-en.

        Returns:
            For each of ``metrics`` the systems with means, 95 % intervals and clusters, the p-values
            of their differences, and all scores: the file comparison.json of the page.
        """
        with _shown_errors():
            texts = _texts(lang_pair, systems, sources, references)
            if len(texts.systems) < 2 or texts.segments < 2:
                counts = f"got {len(texts.systems)} and {texts.segments}"
                raise InputError(f"at least two systems and two segments are needed, {counts}")
            if metrics is not None and not metrics:
                raise InputError("metrics: empty; name at least one, or leave it out")
            if metrics is None:
                offers = self._usual(self._fitting(texts))
            else:
                offers = [self._choose(metric, texts) for metric in metrics]
            # The states before the last one tell the progress.
            *_, comparison = self._comparer.compare(texts, list(dict.fromkeys(offers)))
            return comparison_document(comparison)

    def explain(
        self,
        predictions: list[str],
        sources: list[str] | None = None,
        references: list[str] | None = None,
        metric: str | None = None,
        lang_pair: str = "de-en",
    ) -> dict[str, Any]:
        """Explains the scores of at most 100 translations by their words.

        Args:
            predictions: n translations.
            sources: n source texts, if the metric compares with them.
            references: n human translations, if the metric compares with them.
            metric: such as xmoverscore:mini; it must match words. None for the first that does.
            lang_pair: such as de-en.

        Returns:
            ``metric``, ``signature``, ``report``, and ``segments``: for each its ``score`` and
            ``parts``, the ``alignment`` (what was matched with what), and ``faults``, the words with
            their severity from 0 to 1; null where the metric matches or blames no words.
        """
        with _shown_errors():
            texts = _texts_of_one(lang_pair, predictions, sources, references)
            if texts.segments > MOST_EXPLAINED:
                raise InputError(
                    f"{texts.segments} segments: at most {MOST_EXPLAINED} are explained at once"
                )
            offer = self._choose(metric, texts, matches_words=True)
            words = require_word_scorer(self._comparer.scorer(offer, texts.lang_pair))
            result = self._comparer.score(offer, texts)[_SYSTEM]
            segments = []
            for number, explanation in enumerate(_explanations(words, texts)):
                score = float(result.segments[number])
                parts = {name: float(values[number]) for name, values in result.parts.items()}
                segments.append({"score": score, "parts": parts, **explanation})
            about = {"signature": result.signature, "report": result.report.as_dict()}
            return {"metric": offer.key, **about, "segments": segments}

    def _fitting(self, texts: Texts) -> list[MetricChoice]:
        """The metrics that can score the texts; an `InputError` where there is none."""
        fitting = [offer for offer in self._offers if offer.fits(texts.columns, texts.lang_pair)]
        if not fitting:
            columns = " and ".join(texts.columns)
            raise InputError(
                f"no metric of this page scores {texts.lang_pair} with {columns} alone"
            )
        return fitting

    def _usual(self, fitting: list[MetricChoice]) -> list[MetricChoice]:
        """The metrics that the page ticks at first, or the first one."""
        return [offer for offer in fitting if offer.default] or fitting[:1]

    def _choose(
        self, metric: str | None, texts: Texts, *, matches_words: bool = False
    ) -> MetricChoice:
        """The metric of a name, which may lack preset and side; without a name the first that the
        page ticks, or with `matches_words` the first that matches words.

        Raises:
            InputError: the page does not have it, or it cannot score the texts.
        """
        if metric is None:
            fitting = self._fitting(texts)
            ordered = self._usual(fitting) + fitting
            suitable = [offer for offer in ordered if not matches_words or _matches_words(offer)]
            return (suitable or ordered)[0]
        namesakes = [offer for offer in self._offers if f"{offer.key}:".startswith(f"{metric}:")]
        if not namesakes:
            keys = ", ".join(offer.key for offer in self._offers)
            raise InputError(f"metric {metric!r}: this page does not have it; it has: {keys}")
        fitting = [offer for offer in namesakes if offer.fits(texts.columns, texts.lang_pair)]
        [offer] = ticked_offers(
            namesakes, [(fitting or namesakes)[0].key], texts.columns, texts.lang_pair
        )
        return offer


def _matches_words(offer: MetricChoice) -> bool:
    return issubclass(find_metric(offer.spec.metric).scorer_class(), WordScorer)


def _texts(
    lang_pair: str,
    systems: dict[str, list[str]],
    sources: list[str] | None,
    references: list[str] | None,
) -> Texts:
    columns: dict[Column, list[str]] = {}
    if sources is not None:
        columns["sources"] = sources
    if references is not None:
        columns["references"] = references
    return from_lists(lang_pair, columns, systems)


def _texts_of_one(
    lang_pair: str,
    predictions: list[str],
    sources: list[str] | None,
    references: list[str] | None,
) -> Texts:
    """The texts of a call with one system, whose column is called predictions in messages."""
    columns = {"sources": sources, "references": references, "predictions": predictions}
    check(**{name: texts for name, texts in columns.items() if texts is not None})
    return _texts(lang_pair, {_SYSTEM: predictions}, sources, references)


def _explanations(words: WordScorer, texts: Texts) -> Iterator[dict[str, Any]]:
    """Yields alignment and faults of each segment as plain data; None where there are none."""
    predictions = texts.systems[_SYSTEM]
    columns = {name: texts.columns[name] for name in words.side.columns}
    rows = zip(predictions, *words.explain(predictions, **columns), strict=True)
    for prediction, alignment, faults in rows:
        yield {
            "alignment": None if alignment is None else alignment.as_dict(),
            "faults": None if faults is None else faults_as_dicts(prediction, faults),
        }


@contextlib.contextmanager
def _shown_errors() -> Iterator[None]:
    """Errors reach the caller with their text; of others gradio tells nothing but that there was
    one."""
    import gradio

    try:
        yield
    except MTMetricsError as error:
        raise gradio.Error(str(error), print_exception=False) from error
