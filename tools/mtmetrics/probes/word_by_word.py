"""A paper's table of word-by-word translations: how often metrics prefer them to human translations
(W2W, Eq. 2 of Zhao et al., 2020)."""

from collections.abc import Sequence
from typing import NamedTuple

from mtmetrics.errors import MTMetricsError
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.probes.probing import Dictionary, coverage, preferences
from mtmetrics.reports.agreement_report import grid_beside_paper, not_run
from mtmetrics.reports.metric_runs import SCORE, Entry, RowScores
from mtmetrics.reports.recipes import Recipe
from mtmetrics.reports.styles import Report

_MODIFICATION = "word by word"


class LiteralPairs(NamedTuple):
    """Sentences of a language pair with two translations each.

    Attributes:
        lang_pair: such as ``"de-en"``.
        sources: n different sentences.
        references: their n human translations.
        literal: their n word-by-word translations.
        coverage: share of the words of the sources that have a translation.
    """

    lang_pair: str
    sources: list[str]
    references: list[str]
    literal: list[str]
    coverage: float


def literal_pairs(file: Judged, word_pairs: Sequence[tuple[str, str]]) -> LiteralPairs:
    """Translates the sources of judged segments word by word.

    Args:
        file: the segments; each source counts once, with its first reference, and one without a
            reference not at all.
        word_pairs: words and their translations.
    """
    reference_of_source: dict[str, str] = {}
    for rows in file.outputs().values():
        for source, reference in zip(rows["source"], rows["reference"], strict=True):
            if reference is not None:
                reference_of_source.setdefault(source, reference)
    sources, references = list(reference_of_source), list(reference_of_source.values())
    dictionary = Dictionary(word_pairs, references)
    literals = [dictionary.translate(source) for source in sources]
    texts = [literal.text for literal in literals]
    return LiteralPairs(file.lang_pair, sources, references, texts, coverage(literals))


def judge_words(
    recipe: Recipe, entries: Sequence[Entry], pairs: Sequence[LiteralPairs], pool: ModelPool
) -> list[RowScores]:
    """The share of word-by-word translations that each row of a table prefers: of each language
    pair a list of one number.

    A row that is not run as published has a mark in its title.

    Args:
        recipe: the paper's table.
        entries: its rows as they are run, see `Recipe.entries`.
        pairs: the sentences of each language pair.
        pool: loads the models.
    """
    lang_pairs = [texts.lang_pair for texts in pairs]
    return [
        row.marked(_row(entry, pairs, pool), lang_pairs)
        for row, entry in zip(recipe.rows, entries, strict=True)
    ]


def _row(entry: Entry, pairs: Sequence[LiteralPairs], pool: ModelPool) -> RowScores:
    """The shares of a row, and the reasons why it lacks some."""
    if entry.metric is None:
        return RowScores(entry, [], problem=entry.why_not)
    shares: list[list[float | None]] = []
    signatures: list[str] = []
    missing: dict[int, str] = {}
    for number, texts in enumerate(pairs):
        share: list[float | None] = []
        signature = ""
        try:
            scorer = entry.metric.load(pool, texts.lang_pair)
            modified = {_MODIFICATION: texts.literal}
            found, result = preferences(scorer, texts.sources, texts.references, modified)
            share = [item.preferred for item in found if item.measure == SCORE]
            signature = result.signature
        except MTMetricsError as error:
            missing[number] = str(error)
        shares.append(share)
        signatures.append(signature)
    if len(missing) == len(pairs):
        return RowScores(entry, [], problem=missing[0])
    return RowScores(entry, shares, signatures, missing=missing)


def report_words(
    recipe: Recipe, rows: Sequence[RowScores], pairs: Sequence[LiteralPairs]
) -> Report:
    """A row per metric; for each language pair our share, then the paper's.

    Args:
        recipe: the paper's table.
        rows: of `judge_words`.
        pairs: the sentences of each language pair.
    """
    lang_pairs = [texts.lang_pair for texts in pairs]
    lines = []
    documents: list[dict[str, object]] = []
    notes = [
        "Share of the word-by-word translations that a metric prefers to the human ones (W2W); low "
        "is good.",
        *(
            f"{texts.lang_pair}: {len(texts.sources)} sentences; {texts.coverage:.1%} of their words "
            "have a translation, the others stay as they are."
            for texts in pairs
        ),
        f"Published: {recipe.title}. {recipe.citation}",
        recipe.note,
    ]
    for paper, row in zip(recipe.rows, rows, strict=True):
        # A row with a problem has no lists, and a pair without a share has an empty one.
        shares = {
            pair: share[0] for pair, share in zip(lang_pairs, row.scores, strict=False) if share
        }
        lines.append((row.entry.title, shares, paper.published))
        notes += not_run(row, lang_pairs)
        document: dict[str, object] = {"title": row.entry.title, "published": paper.published}
        document |= {"measured": shares, "signatures": row.known_signatures}
        if row.problem is not None:
            document["problem"] = row.problem
        documents.append(document)
    about = {"recipe": recipe.name, "coverage": {item.lang_pair: item.coverage for item in pairs}}
    grid = grid_beside_paper(lang_pairs, lines)
    return Report(about | {"rows": documents}, [grid, *filter(None, notes)])
