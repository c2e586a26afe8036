"""Metrics that align words, and can say which words lower the score."""

import abc
from collections.abc import Iterator, Sequence

from mtmetrics.checks import as_texts
from mtmetrics.errors import InputError
from mtmetrics.io.visible_text import visible
from mtmetrics.matching.plan import Alignment, Cells
from mtmetrics.matching.word_errors import (
    Evidence,
    Fault,
    faults_as_written,
    match_evidence,
    word_faults,
)
from mtmetrics.scorers.base import Scorer, refuse_positional
from mtmetrics.scorers.batch import Batch

# How alignments of word pieces look, for the help texts of metrics.
PIECES_HELP = (
    "one dictionary per segment. `source`: the pieces of the source, or of the reference if that was "
    "passed; `prediction`: those of the translation. `values` and `mass` are matrices, with a row "
    "per piece of `source` and a column per piece of `prediction`"
)


class WordScorer(Scorer):
    """A metric that aligns words, at least with some of its settings.

    A cell of an alignment belongs to a word of one text and a word of the other. `cells` says whether
    the values in the cells are costs, cosines or attention. A metric that finds words at fault without
    an alignment overrides `can_blame` and `blame`; its `faults` raises an InputError.
    """

    @property
    @abc.abstractmethod
    def cells(self) -> Cells:
        """The meaning of the values of alignments, such as ``"cost"``.

        Raises:
            InputError: the metric aligns no words with its current settings.
        """

    @abc.abstractmethod
    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Yields the alignments of a batch of one system, prepared as for `compute`. Called only if
        the metric aligns words with its current settings."""

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        """Returns for each translation the evidence against its words, one item per part of the score.
        Without an override the only item is the alignment."""
        return [[match_evidence(alignment)] for alignment in alignments]

    @property
    def can_align(self) -> bool:
        """Whether the metric aligns words with its current settings."""
        try:
            _ = self.cells  # raises if the metric aligns no words
        except InputError:
            return False
        return True

    @property
    def can_blame(self) -> bool:
        """Whether the metric says which words lower the score. Attention cannot: it says where a
        network looks."""
        return self.can_align and self.cells != "attention"

    def align(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[Alignment]:
        """Aligns the words of translations with the words of the texts that they are compared with.

        Args:
            predictions: n translations.
            *others: refused; texts are passed by name.
            sources: n texts, needed if the metric compares with them.
            references: n texts, needed if the metric compares with them.

        Returns:
            One alignment per segment; an empty one if one of its texts has nothing to compare.

        Raises:
            InputError: the errors of `score`; a segment has several references; or the metric aligns
                no words with its current settings.
        """
        refuse_positional("align", "predictions", others)
        _ = self.cells  # raises if the metric aligns no words
        batch = self.checked_batch({"": predictions}, sources=sources, references=references)
        if batch.references is not None:
            as_texts("references", batch.references)  # raises at a list of references
        if self.keeps_invisible:
            return list(self.align_batch(batch))
        alignments = self.align_batch(batch.without_invisible())
        rows = zip(alignments, batch.sources_or_references, batch.systems[""], strict=True)
        return [alignment.as_written(text, prediction) for alignment, text, prediction in rows]

    def faults(
        self, predictions: Sequence[str], alignments: Sequence[Alignment]
    ) -> list[list[Fault]]:
        """Finds the words that lower the scores of aligned translations. `blame` takes the texts
        alone.

        Args:
            predictions: n translations.
            alignments: their alignments, from `align`.

        Returns:
            For each translation all its words in reading order, each with a severity (0 to 1) and a
            share of the loss in score that is due to words (the shares sum to 1, or all are 0). The
            loss of a word is the cost of its matches, or what its nearest cosine lacks to 1, plus,
            with a language model, its negative log-likelihood, weighted as in the score. A loss in
            the similarity of sentence vectors belongs to no word.

        Raises:
            InputError: the columns differ in length; the metric aligns no words with its current
                settings; or its alignments are attention.
        """
        if self.cells == "attention":
            raise InputError(
                "faults: attention says where a network looks, not which words it finds wrong"
            )
        if len(alignments) != len(predictions):
            raise InputError(
                f"faults: {len(predictions)} predictions, but {len(alignments)} alignments"
            )
        if self.keeps_invisible:
            evidence = self.evidence(list(predictions), alignments)
            return list(map(word_faults, predictions, evidence))
        visible_predictions = [visible(prediction) for prediction in predictions]
        visible_alignments = [
            alignment.as_seen(prediction)
            for alignment, prediction in zip(alignments, predictions, strict=True)
        ]
        evidence = self.evidence(visible_predictions, visible_alignments)
        visible_faults = map(word_faults, visible_predictions, evidence)
        return list(map(faults_as_written, predictions, visible_faults))

    def blame(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[list[Fault]]:
        """Aligns texts and finds the words that lower the scores, see `align` for the arguments and
        `faults` for the result.

        Raises:
            InputError: the errors of `align` and of `faults`.
        """
        refuse_positional("blame", "predictions", others)
        alignments = self.align(predictions, sources=sources, references=references)
        return self.faults(predictions, alignments)

    def explain(
        self,
        predictions: Sequence[str],
        *,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> tuple[Sequence[Alignment | None], Sequence[list[Fault] | None]]:
        """Aligns texts and finds the words that lower the scores, as far as the metric does either;
        see `align` for the arguments.

        Returns:
            For each segment its alignment, and the faults of its translation; None where the metric
            gives none.

        Raises:
            InputError: the errors of `align`.
        """
        nothing = [None] * len(predictions)
        if not self.can_align:
            if not self.can_blame:
                return nothing, nothing
            # A subclass may find faults without an alignment.
            return nothing, self.blame(predictions, sources=sources, references=references)
        alignments = self.align(predictions, sources=sources, references=references)
        return alignments, self.faults(predictions, alignments) if self.can_blame else nothing


def require_word_scorer(scorer: Scorer) -> WordScorer:
    """Returns the scorer, if it is a `WordScorer`. Raises an `InputError` otherwise."""
    if not isinstance(scorer, WordScorer):
        raise InputError(f"alignments: {scorer.no_alignments_reason}")
    return scorer
