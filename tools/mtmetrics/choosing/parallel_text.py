"""Chooses the sentence pairs of parallel text that are worth keeping: by cheap checks (`Checks`), and
then by a weighted sum of metrics (`scan`), whose best pairs a `Selection` keeps."""

import dataclasses
import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import regex

from mtmetrics.checks import choice, language_pair, number, positive, share
from mtmetrics.choosing.mixture import Mixture, load_scorers
from mtmetrics.errors import InputError, require_extra
from mtmetrics.io.languages import is_unspaced, words_and_symbols
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.results import column_batches
from mtmetrics.scorers.spec import MetricSpec

# Names of the checks, in their order.
CHECKS = ("blank", "length", "copy", "language", "numbers", "repeated")
# Pairs of a report for each check.
EXAMPLES = 3
_DIGITS = re.compile(r"\d+")
_NO_LETTERS_OR_DIGITS = re.compile(r"[\W_]+")
# All but letters and their vowel signs, as of Devanagari; and marks that a text may lack or have:
# accents, points of Hebrew and Arabic, and selectors of variants.
_IGNORED_BY_NEAR_KEYS = regex.compile(
    r"[^\p{L}\p{M}]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\ufe00-\ufe0f]"
)
# Numbers up to this are often written as words.
_SPELT_OUT = 12
# A language is wrong where another one is e^10 times as likely; a lower bound costs short
# sentences.
_CERTAIN = 10.0


class Checks:
    """Cheap reasons to drop a pair, tried in the order of `CHECKS`; it remembers the pairs that
    passed.

    * ``blank``: a side holds nothing but white space.
    * ``length``: a side is more than `length_ratio` times as long as the other, in characters, of
      which those of scripts without spaces between words count three times.
    * ``copy``: the sides are equal but for case and what is neither letter nor digit.
    * ``language``: py3langid finds another language far likelier for a side.
    * ``numbers``: a number above 12 stands on one side only. Digits of all scripts count, and how
      they are grouped does not: a number may be part of the other side's digits, read as one row.
    * ``repeated``: a near duplicate of a pair that passed: equal but for case, accents, digits and
      what is no letter. Vowel signs, as of Devanagari, count as letters.

    Args:
        languages: source and target language; None only without the check of languages.
        skip: checks to leave out.
        length_ratio: see above.

    Raises:
        InputError: an unknown check, a ratio below 1, no languages, or one that py3langid does not
            know.
        MissingExtraError: py3langid is not installed.
    """

    def __init__(
        self,
        languages: tuple[str, str] | None,
        *,
        skip: Collection[str] = (),
        length_ratio: float = 3.0,
    ) -> None:
        for name in skip:
            choice("check to skip", name, CHECKS)
        if number("length ratio", length_ratio) < 1:
            raise InputError(f"length ratio {length_ratio}: must be at least 1")
        self.length_ratio = length_ratio
        self._languages = languages
        self._seen: set[bytes] = set()
        flaws: dict[str, Callable[[str, str], bool]] = {
            "blank": lambda source, target: not source.strip() or not target.strip(),
            "length": self._unequal,
            "copy": lambda source, target: _bare(source) == _bare(target),
            "language": self._foreign,
            "numbers": _numbers_differ,
            "repeated": self._repeated,
        }
        self._checks = {name: has_flaw for name, has_flaw in flaws.items() if name not in skip}
        if "language" in self._checks:
            self._rank = _language_ranks(languages)

    def flaw(self, source: str, target: str) -> str | None:
        """The first check that a pair does not pass, or None."""
        for name, has_flaw in self._checks.items():
            if has_flaw(source, target):
                return name
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the checks that are made."""
        return tuple(self._checks)

    def _unequal(self, source: str, target: str) -> bool:
        """Whether one side is too much longer than the other."""
        shorter, longer = sorted((_length(source), _length(target)))
        return longer > self.length_ratio * shorter

    def _foreign(self, *texts: str) -> bool:
        """Whether another language is far likelier for one of the two texts."""
        for text, language in zip(texts, self._languages or (), strict=True):
            ranks = self._rank(text)
            if ranks[0][1] - dict(ranks)[language] > _CERTAIN:
                return True
        return False

    def _repeated(self, *texts: str) -> bool:
        """Whether a near duplicate has passed; remembers the pair."""
        key = self.near_key(*texts)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    @staticmethod
    def near_key(source: str, target: str) -> bytes:
        """Eight bytes that near duplicates share."""
        letters = []
        for text in (source, target):
            folded = unicodedata.normalize("NFKD", text).casefold()
            letters.append(_IGNORED_BY_NEAR_KEYS.sub("", folded))
        key = "\0".join(letters).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(key, digest_size=8).digest()


def _language_ranks(languages: tuple[str, str] | None) -> Callable[[str], list[tuple[str, float]]]:
    """The function of py3langid that ranks all languages of a text, as pairs of language and
    log-probability.

    Raises:
        InputError: there are no languages to check, or py3langid does not know one.
    """
    skip = "(--skip language)"
    if languages is None:
        raise InputError(
            f"language pair None: the check of languages needs one (--lp), or leave it out {skip}"
        )
    require_extra("filter", "the check of languages (--skip language does without)")
    import py3langid

    for language in languages:
        if language not in {code for code, _ in py3langid.rank("")}:
            raise InputError(
                f"language {language!r}: py3langid does not know it; leave the check out {skip}"
            )
    return py3langid.rank


def _length(text: str) -> int:
    """The length of a text in characters; those of scripts without spaces count three times."""
    return len(text) if text.isascii() else len(text) + 2 * sum(map(is_unspaced, text))


def _bare(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return _NO_LETTERS_OR_DIGITS.sub("", text.casefold())


def _numbers_differ(source: str, target: str) -> bool:
    """Whether a number above 12 stands on one side only."""
    in_source, in_target = _numbers(source), _numbers(target)
    return _has_further(in_source, in_target) or _has_further(in_target, in_source)


def _has_further(numbers: list[str], other_numbers: list[str]) -> bool:
    """Whether a number above 12 is not part of the digits of the others."""
    # "16.50" is found in "1650", and "2010" in "21052010".
    digits = "".join(other_numbers)
    return any(int(number[:20]) > _SPELT_OUT and number not in digits for number in numbers)


def _numbers(text: str) -> list[str]:
    """The runs of digits of a text, in ASCII."""
    return [
        "".join(str(unicodedata.decimal(digit)) for digit in run) for run in _DIGITS.findall(text)
    ]


@dataclasses.dataclass(frozen=True)
class Selection:
    """The rule by which pairs that passed the checks are kept.

    Attributes:
        threshold: keep the pairs with at least this score.
        top: keep this share of the pairs, the best ones; above 0 and at most 1, rounded to a whole
            number of pairs.
        tokens: keep the best pairs until the next one would raise the number of tokens of their
            target sides above this one. A token is a word or a mark, or a character of a script
            without spaces.

    Raises:
        InputError: not exactly one of the three is set, or its value is impossible.
    """

    threshold: float | None = None
    top: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        rules = [name for name, value in vars(self).items() if value is not None]
        if len(rules) != 1:
            wrong = f"{' and '.join(rules)} say" if rules else "nothing says"
            ways = "--threshold SCORE, --top SHARE or --tokens NUMBER"
            raise InputError(f"{wrong} which pairs to keep: pass one of {ways}")
        if self.threshold is not None:
            number("threshold", self.threshold)
        if self.top is not None:
            share("top", self.top)
        if self.tokens is not None:
            positive("tokens", self.tokens)

    def mask(self, scores: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """(n,) bool, the pairs to keep; of equal scores the earlier pair comes first.

        Args:
            scores: (n,) scores.
            tokens: (n,) numbers of tokens of their target sides.
        """
        if self.threshold is not None:
            return scores >= self.threshold
        best = np.argsort(-scores, kind="stable")
        if self.top is not None:
            count = int(self.top * len(scores) + 0.5)
        else:
            count = int(np.searchsorted(np.cumsum(tokens[best]), self.tokens, side="right"))
        mask = np.zeros(len(scores), dtype=bool)
        mask[best[:count]] = True
        return mask


@dataclasses.dataclass(frozen=True)
class Filtering:
    """The settings by which parallel text is filtered.

    Attributes:
        selection: of the pairs that pass the checks.
        lang_pair: such as ``de-en``, for the checks and the metrics.
        skip: checks to leave out.
        length_ratio: see `Checks`.
        specs: the metrics by name.
        weights: of the metrics, see `Mixture`.
        column: name of the column of their sums.
    """

    selection: Selection
    lang_pair: str | None
    skip: Collection[str]
    length_ratio: float
    specs: Mapping[str, MetricSpec]
    weights: Mapping[str, float]
    column: str

    @property
    def added_columns(self) -> list[str]:
        """Names of the columns that are added: of the sums, and of the scores by each metric where
        there are several."""
        return [self.column, *(self.specs if len(self.specs) > 1 else ())]

    def checks(self, *without: str) -> Checks:
        """New checks; those of `without` are left out, too."""
        languages = language_pair(self.lang_pair) if self.lang_pair else None
        return Checks(languages, skip={*self.skip, *without}, length_ratio=self.length_ratio)

    def mixture(self, pool: ModelPool) -> Mixture:
        """The metrics, loaded."""
        return Mixture(load_scorers(self.specs, ["sources"], pool, self.lang_pair), self.weights)


class Scan(NamedTuple):
    """A file of pairs after one pass.

    Attributes:
        rows: (n,) numbers, from 0, of the pairs that passed the checks.
        scores: (n,) their weighted sums.
        values: (k, n) their scores by each metric.
        tokens: (n,) numbers of tokens of their target sides, zeros where these were not counted.
        report: number of ``pairs`` read; ``removed``, for each check how many it removed, with the
            first ones; and number of pairs ``scored``.
    """

    rows: np.ndarray
    scores: np.ndarray
    values: np.ndarray
    tokens: np.ndarray
    report: dict[str, object]


def scan(
    pairs: Iterable[tuple[str, str]],
    checks: Checks,
    mixture: Mixture,
    *,
    count_tokens: bool = False,
) -> Scan:
    """Checks and scores pairs that arrive one by one; of what passes, numbers alone are kept."""
    removed: dict[str, dict[str, object]] = {
        name: {"pairs": 0, "examples": []} for name in checks.names
    }
    read = 0

    def passing() -> Iterator[tuple[int, str, str]]:
        nonlocal read
        for read, (source, target) in enumerate(pairs, 1):
            flaw = checks.flaw(source, target)
            if flaw is None:
                yield read - 1, source, target
                continue
            removed[flaw]["pairs"] += 1
            add_example(removed[flaw], read, source, target)

    rows = [np.zeros(0, dtype=np.int64)]
    values = [np.zeros((len(mixture.scorers), 0))]
    tokens = [np.zeros(0, dtype=np.int64)]
    for numbers, sources, targets in column_batches(passing()):
        counts = [len(words_and_symbols(text)) if count_tokens else 0 for text in targets]
        rows.append(np.array(numbers))
        values.append(mixture.score({"sources": sources}, targets))
        tokens.append(np.array(counts))
    metric_scores = np.concatenate(values, axis=1)
    report = {"pairs": read, "removed": removed, "scored": metric_scores.shape[1]}
    return Scan(
        rows=np.concatenate(rows),
        scores=mixture.sum(metric_scores),
        values=metric_scores,
        tokens=np.concatenate(tokens),
        report=report,
    )


def add_example(
    entry: dict[str, object], row: int, source: str, target: str, **details: object
) -> None:
    """Keeps the first pairs of an entry of the report; rows count from 1."""
    if len(entry["examples"]) < EXAMPLES:
        entry["examples"].append({"row": row, "source": source, "target": target, **details})
