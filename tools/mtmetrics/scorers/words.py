"""Metrics that match words: what was matched with what, and which words are at fault."""

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


class WordScorer(Scorer):
    """A metric that matches words, though perhaps not in every set-up."""

    @property
    @abc.abstractmethod
    def cells(self) -> Cells:
        """The meaning of the values of alignments; an `InputError` where the metric, as it is set
        up, has none."""

    @abc.abstractmethod
    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """The alignments of a batch of one system, as `compute` gets it; called only where there
        are `cells`."""

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        """The evidence against the words of each translation."""
        return [[match_evidence(alignment)] for alignment in alignments]

    @property
    def can_align(self) -> bool:
        """Whether it matches words, as it is set up."""
        try:
            return bool(self.cells)
        except InputError:
            return False

    @property
    def can_blame(self) -> bool:
        """Whether it says which words of a translation are at fault."""
        return self.can_align and self.cells != "attention"

    def align(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[Alignment]:
        """Matches the words of translations with those of the texts that they are compared with.

        Args:
            predictions: n translations.
            *others: refused; texts are passed by name.
            sources: n texts, needed where the metric compares with them.
            references: n texts, needed where the metric compares with them.

        Returns:
            One plan per segment, an empty one where a side holds nothing to compare.

        Raises:
            InputError: as `score`; several references per segment; or the metric, as it is set up,
                matches no words.
        """
        refuse_positional("align", "predictions", others)
        _ = self.cells
        batch = self.checked_batch({"": predictions}, sources=sources, references=references)
        if batch.references is not None:
            as_texts("references", batch.references)
        if self.keeps_invisible:
            return list(self.align_batch(batch))
        alignments = self.align_batch(batch.without_invisible())
        texts = zip(alignments, batch.sources_or_references, batch.systems[""], strict=True)
        return [alignment.as_written(text, prediction) for alignment, text, prediction in texts]

    def faults(
        self, predictions: Sequence[str], alignments: Sequence[Alignment]
    ) -> list[list[Fault]]:
        """Finds the words of the translations that the scores suffer from.

        Args:
            predictions: n translations.
            alignments: of these, from `align`.

        Returns:
            For each translation all its words in reading order, with their severity (0 to 1) and
            their share (sum 1) of what its words take away from the score: the cost of what each
            was matched with and, where the metric has a language model, the loss of that, weighted
            as in the score. The part of sentence vectors is no word's.

        Raises:
            InputError: the columns are of unequal length; or the metric, as it is set up, matches
                no words, or gives attention, which says where a network looks, not what it finds
                wrong.
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
        seen = [visible(prediction) for prediction in predictions]
        seen_alignments = list(map(Alignment.as_seen, alignments, predictions))
        faults = map(word_faults, seen, self.evidence(seen, seen_alignments))
        return list(map(faults_as_written, predictions, faults))

    def blame(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[list[Fault]]:
        """Finds the words of n translations that the scores suffer from, see `faults`; takes the
        arguments of `align`.

        Raises:
            InputError: as `align` and `faults`.
        """
        refuse_positional("blame", "predictions", others)
        alignments = self.align(predictions, sources=sources, references=references)
        return self.faults(predictions, alignments)


def require_word_scorer(scorer: Scorer) -> WordScorer:
    """Returns a scorer as one that matches words; an `InputError` where it is none."""
    if not isinstance(scorer, WordScorer):
        raise InputError(f"alignments: {scorer.no_alignments_reason}")
    return scorer


def can_align_words(scorer: Scorer) -> bool:
    """Whether a scorer matches words, as it is set up."""
    return isinstance(scorer, WordScorer) and scorer.can_align


def can_blame_words(scorer: Scorer) -> bool:
    """Whether a scorer says which words of a translation are at fault."""
    return isinstance(scorer, WordScorer) and scorer.can_blame
