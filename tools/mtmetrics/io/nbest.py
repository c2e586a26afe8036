"""Lists of candidate translations as Moses and Marian write them, a candidate per line.

A line has the number of the source, the text, features, and the model's score, with bars between
them. Features may be missing, but then in all lines. Moses may put alignments behind the score;
Marian puts them, and scores of words, before the features. A text may hold bars itself, so fields
are counted from the right."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines

_BARS = re.compile(r" \|\|\|(?: |$)")
_NEEDED = "NUMBER ||| TEXT ||| FEATURES ||| SCORE is needed; for plain lines pass --nbest N"
# Places of words that belong together, such as 0-0 1-2; blank where there are none.
_ALIGNMENTS = re.compile(r"(\d+-\d+( \d+-\d+)*)?")
# Numbers, and names before them, such as LM0= -1.5 or lm:-1.5.
_NAME = r"[A-Za-z_][\w.-]*[=:]"
_NUMBER = r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|nan)"
_FEATURES = re.compile(rf"(({_NAME})?({_NUMBER})|{_NAME})( (({_NAME})?({_NUMBER})|{_NAME}))*|")
_NAMED_FEATURES = re.compile(rf"{_NAME}.*")


class Candidate(NamedTuple):
    """A candidate: the number of its source from 0, its text, and the model's score."""

    source: int
    text: str
    score: float


class _Layout(NamedTuple):
    """Whether lines have alignments and features between text and score."""

    has_alignments: bool
    has_features: bool


def read_candidates(path: str | Path) -> Iterator[list[Candidate]]:
    """Yields the candidates of source after source.

    Raises:
        InputError: a line has not the fields that are needed, or it cannot be told where its text
            ends (with its number); or the sources are not numbered from 0 up, one after the other.
    """
    by_source = itertools.groupby(_candidates(path), key=lambda candidate: candidate.source)
    for expected, (source, group) in enumerate(by_source):
        if source != expected:
            raise InputError(
                f"{path}: candidates of source {source} stand where those of {expected} should "
                "(from 0 up)"
            )
        yield list(group)


def _candidates(path: str | Path) -> Iterator[Candidate]:
    first: _Layout | None = None
    for number, line in enumerate(iter_lines(path, "segments"), 1):
        where = f"{path}, line {number}"
        fields = _BARS.split(line)
        score = _pop_score(fields)
        if score is None or len(fields) < 2 or not fields[0].strip().isdecimal():
            raise InputError(f"{where}: {_NEEDED}")
        source, *parts = fields
        layout = _pop_details(parts, first, where)
        first = first or layout
        if layout != first:
            raise InputError(f"{where}: has not the same fields as line 1; {_NEEDED}")
        yield Candidate(int(source), " ||| ".join(parts), score)


def _pop_score(fields: list[str]) -> float | None:
    """Takes the score, and alignments behind it, off the end of the fields; None where there is no
    score."""
    last = fields[-1]
    has_alignments = _score(last) is None and _ALIGNMENTS.fullmatch(last.strip())
    if len(fields) > 2 and has_alignments:
        fields.pop()
    return _score(fields.pop())


def _score(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


def _pop_details(parts: list[str], first: _Layout | None, where: str) -> _Layout:
    """Takes features, scores of words and alignments off the end of the fields between number and
    score, so that the parts of the text are left.

    Args:
        parts: the fields.
        first: the layout of line 1; None for line 1 itself.
        where: the place of the line.

    Returns:
        The layout of the line.

    Raises:
        InputError: it cannot be told which fields are the text.
    """
    if len(parts) == 1 or (first is not None and not first.has_features):
        _refuse_features(parts[1:], where)
        return _Layout(has_alignments=False, has_features=False)
    features = parts.pop().strip()
    # In a line with four fields (number, text, features, score) any single word counts as features.
    if not _FEATURES.fullmatch(features) and (len(parts) > 1 or " " in features):
        raise InputError(
            f"{where}: {features[:40]!r} may be a part of the text or features; {_NEEDED}"
        )
    if len(parts) > 1 and parts[-1].lstrip().startswith("WordScores="):
        parts.pop()
    has_alignments = False
    last = parts[-1].strip()
    if len(parts) > 1 and _ALIGNMENTS.fullmatch(last):
        first_has_alignments = first is not None and first.has_alignments
        if first is None or first_has_alignments or not last:
            parts.pop()
            has_alignments = bool(last) or first_has_alignments
    _refuse_features(parts[1:], where)
    return _Layout(has_alignments, has_features=True)


def _refuse_features(parts: list[str], where: str) -> None:
    """Refuses parts of a text behind the first one that look like features."""
    for part in parts:
        if _NAMED_FEATURES.match(part.strip()) and _FEATURES.fullmatch(part.strip()):
            raise InputError(
                f"{where}: {part[:40]!r} may be a part of the text or features; {_NEEDED}"
            )
