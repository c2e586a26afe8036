"""Tests of a metric without human judgements.

`preferences` tests whether it prefers human translations to worse ones, which `random_order` and
`Dictionary` make (Sec. 5.1 of Zhao et al., 2020). `match` tests whether it finds translations among
candidates (Sec. 4.1 of Belouadi and Eger, 2023).
"""

import dataclasses
import itertools
import random
import string
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtmetrics.checks import check, positive
from mtmetrics.errors import InputError
from mtmetrics.io.languages import is_unspaced
from mtmetrics.reports.figures import COLOURS, INK, finished, new_figure, plain_axes
from mtmetrics.reports.metric_runs import measures
from mtmetrics.reports.styles import Grid, decimals
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.side import Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PUNCTUATION = string.punctuation + "¡¿«»„“”‚‘’–—…。，、！？；：（）《》"
# Batching changes a float32 score by less than this, which is no preference.
_NOISE = 1e-6
# Of a histogram.
_BINS = 30
# Sources whose cosines with all targets are computed together.
_ROWS_AT_ONCE = 512


def words(text: str) -> list[str]:
    """Splits a text at white space, and leaves punctuation at its word; in scripts without spaces
    each character is a word.

    Example:
        >>> words("To be, or 是不是")
        ['To', 'be,', 'or', '是', '不', '是']
    """
    spaced = [f" {character} " if _stands_alone(character) else character for character in text]
    return "".join(spaced).split()


def bare_words(text: str) -> list[str]:
    """The words of a text without the punctuation around them."""
    return [bare for word in words(text) if (bare := word.strip(_PUNCTUATION))]


def random_order(text: str, seed: int) -> str:
    """The words of a text in an order that depends on the text and the seed alone."""
    shuffled = words(text)
    random.Random(f"{seed} {text}").shuffle(shuffled)
    return _joined(shuffled)


class Literal(NamedTuple):
    """A word-by-word translation.

    Attributes:
        text: the translation.
        translated: number of the source's words with letters that the dictionary holds.
        words: number of the source's words with letters.
    """

    text: str
    translated: int
    words: int


class Dictionary:
    """Translates word by word, left to right, without regard to the context.

    A word is looked up as it is written, then in lower case; one that is not found, or is a number,
    stays as it is. The paper takes the first translation that a web service offers. Word lists are
    in no such order: of several translations the one counts whose pair is listed most often (word
    pairs mined from text repeat themselves), then the one whose words are the most frequent in
    `texts`, then the first.

    Args:
        pairs: words and their translations; sources of several words are for scripts without spaces
            alone.
        texts: text in the target language.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], texts: Iterable[str] = ()) -> None:
        frequency = Counter(word.lower() for text in texts for word in bare_words(text))
        listed: dict[str, Counter[str]] = defaultdict(Counter)
        for source, target in pairs:
            listed[source][target] += 1

        def rank(entry: tuple[str, int]) -> tuple[int, int]:
            """How often a translation is listed, then how frequent its rarest word is."""
            target, count = entry
            return count, min(frequency[word.lower()] for word in words(target))

        # `max` keeps the first of equals, and a Counter the order of the file.
        self._best = {
            source: max(targets.items(), key=rank)[0] for source, targets in listed.items()
        }
        # Characters of the longest entry in a script without spaces.
        unspaced_lengths = [len(source) for source in self._best if is_unspaced(source[0])]
        self._longest = max(unspaced_lengths, default=1)

    def translate(self, text: str) -> Literal:
        """The word-by-word translation of a text; it begins with a capital letter where the text
        does."""
        rest = words(text)
        pieces: list[str] = []
        translated_words = total_words = 0
        while rest:
            size, target = self._look_up(rest)
            words_with_letters = sum(any(map(str.isalpha, word)) for word in rest[:size])
            total_words += words_with_letters
            if target is not None:
                translated_words += words_with_letters
            pieces.append(rest[0] if target is None else target)
            rest = rest[size:]
        translation = _joined(pieces)
        if text.strip()[:1].isupper():
            translation = translation[:1].upper() + translation[1:]
        return Literal(translation, translated_words, total_words)

    def _look_up(self, rest: list[str]) -> tuple[int, str | None]:
        """Looks up the longest entry at the beginning of the words.

        Returns:
            The number of words that it covers, and its translation in the punctuation of the
            source; 1 and None where there is no entry.
        """
        longest = min(self._longest, len(rest)) if is_unspaced(rest[0][0]) else 1
        for size in range(longest, 0, -1):
            piece = "".join(rest[:size])
            bare = piece.strip(_PUNCTUATION)
            target = self._best.get(bare, self._best.get(bare.lower()))
            if target is not None and any(map(str.isalpha, bare)):
                before, _, after = piece.partition(bare)
                return size, before + target + after
        return 1, None


def coverage(literals: Sequence[Literal]) -> float:
    """The share of the source's words that a dictionary knew; 0 where there is no word."""
    total = sum(literal.words for literal in literals)
    translated = sum(literal.translated for literal in literals)
    return translated / total if total else 0.0


def _joined(pieces: list[str]) -> str:
    """Words as a text: with spaces between them, but for two of a script without spaces."""
    text = "".join(pieces[:1])
    for left, right in itertools.pairwise(pieces):
        is_glued = _stands_alone(left[-1]) and _stands_alone(right[0])
        text += right if is_glued else f" {right}"
    return text


def _stands_alone(character: str) -> bool:
    """Whether it is of a script without spaces, or full-width punctuation."""
    return is_unspaced(character) or unicodedata.east_asian_width(character) in "WF"


@dataclasses.dataclass(frozen=True)
class Preference:
    """The preference of a score, or a part of it, between modified sentences y~ and references y* of
    the same n sources x.

    Attributes:
        modification: name of the modification.
        measure: ``score``, or the part.
        differences: (n,) ``d(y~, y*; x) = m(x, y~) - m(x, y*)`` (Eq. 1); 0 where they differ by
            rounding only.
    """

    modification: str
    measure: str
    differences: np.ndarray

    @property
    def preferred(self) -> float:
        """The share of modified sentences that are preferred; word by word, the W2W statistic (Eq.
        2)."""
        return float((self.differences > 0).mean())

    @property
    def equal(self) -> float:
        """The share of sentences whose two scores are equal."""
        return float((self.differences == 0).mean())

    def as_dict(self) -> dict[str, object]:
        """The statistics and the differences, as plain numbers."""
        return {
            "modification": self.modification,
            "measure": self.measure,
            "preferred": self.preferred,
            "equal": self.equal,
            "mean": float(self.differences.mean()),
            "median": float(np.median(self.differences)),
            "differences": self.differences.tolist(),
        }


def preferences(
    scorer: Scorer,
    sources: Sequence[str],
    references: Sequence[str],
    modified: Mapping[str, Sequence[str]],
) -> tuple[list[Preference], MetricResult]:
    """Compares n modified sentences of each modification with the n references, by a metric that
    compares with sources.

    All texts are scored in one call, so that metrics that scale by the extremes of a call put them
    on one scale.

    Args:
        scorer: the metric.
        sources: n sentences.
        references: their n human translations.
        modified: modification -> n modified references.

    Returns:
        One preference per modification and measure (the score, then its parts), and the scores of
        all texts.
    """
    if "references" in scorer.side.columns:
        themselves = "the metric compares with references, which would be compared with themselves"
        raise InputError(f"preferences: {themselves}; use a reference-free one")
    # A modification may be a file called "sources" or "references".
    modified_columns = {f"modified {name}": texts for name, texts in modified.items()}
    source_column, *columns = check(sources=sources, references=references, **modified_columns)
    # A source and all its translations stand together, so that it is encoded once.
    translations = [text for row in zip(*columns, strict=True) for text in row]
    repeated_sources = [source for source in source_column for _ in columns]
    result = scorer.score(translations, sources=repeated_sources)
    compared = []
    for number, modification in enumerate(modified, 1):
        for measure, values in measures(result).items():
            by_source = values.reshape(-1, len(columns))
            differences = by_source[:, number] - by_source[:, 0]
            differences = np.where(abs(differences) <= _NOISE, 0.0, differences)
            compared.append(Preference(modification, measure, differences))
    return compared, result


def preference_table(preferences: Sequence[Preference]) -> Grid:
    """A table of the statistics, with three decimals."""
    rows = [["modification", "measure", "n", "preferred", "equal", "mean d", "median d"]]
    for preference in preferences:
        statistics = preference.as_dict()
        values = [decimals(statistics[name]) for name in ("preferred", "equal", "mean", "median")]
        count = str(len(preference.differences))
        rows.append([preference.modification, preference.measure, count, *values])
    return Grid(rows, range(2, 7))


def draw_preferences(preferences: Sequence[Preference], *, title: str) -> "Figure":
    """A histogram of score differences ``d`` for each modification, a row of panels for each
    measure (Fig. 3 of Zhao et al., 2020).

    Right of 0, in another colour, stand the sentences whose modified version is preferred. Sentences
    with a difference of 0 are not drawn; their share stands above the panel.
    """
    from matplotlib.ticker import MaxNLocator

    measure_names = list(dict.fromkeys(preference.measure for preference in preferences))
    modifications = list(dict.fromkeys(preference.modification for preference in preferences))
    figure = new_figure(1.0 + 3.2 * len(modifications), 0.8 + 2.7 * len(measure_names))
    panels = figure.subplots(
        len(measure_names),
        len(modifications),
        sharex="row",
        sharey="row",
        squeeze=False,
    )
    for measure, row in zip(measure_names, panels, strict=True):
        row_preferences = [each for each in preferences if each.measure == measure]
        edges = _edges(np.concatenate([each.differences for each in row_preferences]))
        for preference, axes in zip(row_preferences, row, strict=True):
            d = preference.differences
            axes.hist([d[d < 0], d[d > 0]], bins=edges, stacked=True, color=COLOURS[:2])
            axes.axvline(0.0, color=INK, linewidth=1.0)
            equal = f", {preference.equal:.1%} equal" if preference.equal else ""
            heading = f"{preference.modification}\n{preference.preferred:.1%} preferred{equal}"
            axes.set_xlabel(f"d ({measure})")
            plain_axes(axes, heading, loc="center", fontsize=10)
        row[0].set_ylabel("sentences")
        row[0].yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    return finished(figure)


def _edges(d: np.ndarray) -> np.ndarray:
    """Edges of the bins of a histogram of (n,) differences; 0 is one of them."""
    low, high = min(d.min(), 0.0), max(d.max(), 0.0)
    if low == high:
        return np.array([-1.0, 0.0, 1.0])
    width = (high - low) / _BINS
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
    # Rounding must not leave the extremes outside.
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
    return edges


def distinct_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first pair of each source and of each target, since a second right answer would count as
    a wrong one; refused where fewer than two are left."""
    kept: dict[str, str] = {}
    targets: set[str] = set()
    for source, target in pairs:
        if source not in kept and target not in targets:
            kept[source] = target
            targets.add(target)
    if len(kept) < 2:
        raise InputError(
            "sentence pairs: at least 2 with different sources and targets are needed, got "
            f"{len(kept)}"
        )
    return list(kept.items())


def random_candidates(pairs: int, candidates: int, seed: int) -> np.ndarray:
    """Draws candidates at random.

    Args:
        pairs: n, the number of sources and of targets.
        candidates: k, the number of candidates of a source.
        seed: of the draw.

    Returns:
        (n, min(k, n)) numbers of targets: the right one, then others, none twice.
    """
    wrong_candidates = min(positive("candidates", candidates), pairs) - 1
    choice = np.random.default_rng(seed).choice
    drawn = np.array(
        [choice(pairs - 1, size=wrong_candidates, replace=False) for _ in range(pairs)],
        dtype=np.int64,
    )
    right = np.arange(pairs)[:, None]
    # The numbers from the right one up are moved by one, which leaves it out.
    return np.hstack([right, drawn + (drawn >= right)])


def nearest_candidates(sources: np.ndarray, targets: np.ndarray, candidates: int) -> np.ndarray:
    """Takes the targets that are nearest to a source as its candidates, by the cosine of sentence
    vectors.

    The right target always is one, so that the metric is judged and not the vectors.

    Args:
        sources: (n, d) vectors.
        targets: (n, d) vectors.
        candidates: k, the number of candidates of a source.

    Returns:
        (n, min(k, n)) numbers of targets: the right one, then the others, nearest first.
    """
    count = min(positive("candidates", candidates), len(sources))
    unit_sources = _unit_length(sources)
    unit_targets = _unit_length(targets)
    nearest = []
    for first in range(0, len(sources), _ROWS_AT_ONCE):
        cosines = unit_sources[first : first + _ROWS_AT_ONCE] @ unit_targets.T
        rows = np.arange(len(cosines))
        cosines[rows, first + rows] = np.inf
        nearest.append(np.argsort(-cosines, axis=1, kind="stable")[:, :count])
    return np.concatenate(nearest)


def _unit_length(vectors: np.ndarray) -> np.ndarray:
    """(n, d) vectors divided by their lengths."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def match(
    scorer: Scorer,
    sources: Sequence[str],
    targets: Sequence[str],
    candidates: np.ndarray,
    cutoffs: Sequence[int] = (1, 5, 10),
) -> tuple[dict[str, dict[int, float]], MetricResult]:
    """Ranks for every source the candidates by the metric's score.

    Args:
        scorer: any metric but one that reads source and reference; one that compares with
            references is given the source in their place.
        sources: n sentences.
        targets: their n translations.
        candidates: (n, k) numbers of targets, the right one first.
        cutoffs: each N of Precision@N; others than 1 to k - 1 are refused.

    Returns:
        The score and its parts -> N -> Precision@N; and the scores of all candidates, source by
        source.
    """
    most = candidates.shape[1] - 1
    for cutoff in cutoffs:
        if positive("cutoff", cutoff) > most:
            raise InputError(
                f"cutoff {cutoff}: among {most + 1} candidates all translations are found by then; "
                f"at most {most}"
            )
    if scorer.side is Side.BOTH:
        raise InputError(
            f"{scorer.metric} compares with source and reference, of which there is one only here"
        )
    [column] = scorer.side.columns
    compared = [source for source in sources for _ in range(candidates.shape[1])]
    translations = [targets[target] for target in candidates.ravel()]
    result = scorer.score(translations, **{column: compared})
    precision: dict[str, dict[int, float]] = {}
    for name, values in measures(result).items():
        scores = values.reshape(candidates.shape)
        precision[name] = {cutoff: precision_at(scores, cutoff) for cutoff in cutoffs}
    return precision, result


def precision_at(scores: np.ndarray, cutoff: int, right: np.ndarray | int = 0) -> float:
    """Precision@N: the share of sources whose translation is among the N candidates with the
    highest scores (Guo et al., 2018).

    Equal scores are ranked in every order at once: a translation that shares the ranks 1 and 2
    counts 1/2 for N = 1.

    Args:
        scores: (n, k) scores of the candidates.
        cutoff: N, at least 1.
        right: the column, or (n,) the columns, of the translations.

    Example:
        >>> precision_at(np.array([[0.9, 0.1, 0.2], [0.5, 0.7, 0.5]]), 1), precision_at(np.array([[0.5, 0.7, 0.5]]), 2)
        (0.5, 0.5)
    """
    right_scores = scores[np.arange(len(scores)), right][:, None]
    better = (scores > right_scores).sum(1)
    sharing = (scores == right_scores).sum(1)
    return float(np.clip((cutoff - better) / sharing, 0.0, 1.0).mean())


def matching_table(precision: Mapping[str, Mapping[int, float]]) -> Grid:
    """A table of Precision@N, with three decimals; `precision` as `match` returns it."""
    cutoffs = list(next(iter(precision.values())))
    rows = [["measure", *(f"P@{cutoff}" for cutoff in cutoffs)]]
    rows += [[name, *map(decimals, values.values())] for name, values in precision.items()]
    return Grid(rows, range(1, len(rows[0])))
