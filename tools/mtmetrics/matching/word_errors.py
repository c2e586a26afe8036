"""Words at fault: what each word of a translation takes away from its score."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import regex

from mtmetrics.io.languages import is_unspaced
from mtmetrics.io.visible_text import spans_as_written
from mtmetrics.matching.plan import Alignment
from mtmetrics.models.text_units import spans_of

# A word is made of letters, numbers and the marks on them, of what joins these without being seen
# (joiners, soft hyphens, marks of direction), and of signs that may stand inside of words. Anything
# else that is no space makes words of its own, emoji with what modifies them.
_LETTERS = r"[\p{L}\p{N}\p{M}_]"
_UNSEEN = r"[\p{Cf}\p{Default_Ignorable_Code_Point}]*+"
_INSIDE = r"['’‘＇ʹ՚׳״·.,\-‐\u2011]"
_WORD = regex.compile(
    rf"{_LETTERS}(?:{_LETTERS}|[\u200c\u200d]++|{_UNSEEN}(?:{_INSIDE}{_UNSEEN})?{_LETTERS})*"
    rf"|(?:[^\p{{L}}\p{{N}}\p{{M}}_\s\p{{Cf}}][\p{{M}}\p{{Cf}}]*)+"
)
_CHARACTER = regex.compile(r"\X\p{M}*")
# Severities from which on a word is doubtful, and wrong.
LEVELS = (0.5, 0.7)


class Fault(NamedTuple):
    """A word of a translation and how much it is to blame.

    Attributes:
        start: its first character.
        end: the character behind its last.
        severity: 0 (nothing is wrong) to 1 (nothing on the other side is like it, or the language
            model is as surprised as by a random word); of one segment and metric as of another with
            the same signature.
        share: of all that the words take away from the score; these sum to 1, or are all 0.
    """

    start: int
    end: int
    severity: float
    share: float


def level(severity: float) -> int:
    """0, 1 or 2 for a word that seems right, doubtful or wrong: what colours show."""
    return sum(severity >= bound for bound in LEVELS)


class Evidence(NamedTuple):
    """Evidence against k tokens of a text.

    Attributes:
        spans: (k, 2) where they stand; of no length where they belong to no word.
        lack: (k,) what the score lacks because of them, at least 0.
        severity: (k,) from 0 to 1.
    """

    spans: np.ndarray
    lack: np.ndarray
    severity: np.ndarray


def word_spans(text: str) -> np.ndarray:
    """(k, 2) where the words of a text stand: what is between spaces, without the punctuation
    around it, which makes words of its own; in scripts that know no spaces, each character with its
    marks."""
    return spans_of(
        [span for word in _WORD.finditer(text) for span in _split_characters(text, *word.span())]
    )


def _split_characters(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields where a word stands, or its parts: each character of a script without spaces is
    one."""
    if text[begin:end].isascii():
        yield begin, end
        return
    for character in _CHARACTER.finditer(text, begin, end):
        if is_unspaced(character[0][0]):
            if begin < character.start():
                yield begin, character.start()
            yield character.span()
            begin = character.end()
    if begin < end:
        yield begin, end


def match_evidence(alignment: Alignment, lack: float = 1.0) -> Evidence:
    """The evidence of an alignment against the words of the translation.

    Of transport it is the cost of the mass that a word receives. Of greedy matching it is what the
    cosine of a piece with its nearest one lacks to 1, whichever piece of the other side was matched
    with it: recall asks little of the words of the translation.

    Args:
        alignment: of costs or cosines.
        lack: what the score lacks because of the alignment; shared out by the cost.
    """
    values = alignment.values
    if not values.size:
        return Evidence(spans_of([]), np.zeros(0), np.zeros(0))
    if alignment.cells == "cosine":
        cost = severity = np.clip(1.0 - values.max(0), 0.0, 1.0)
    else:
        cost, mass = (alignment.mass * values).sum(0), alignment.mass.sum(0)
        mean = np.divide(cost, mass, out=np.zeros_like(cost), where=mass > 0)
        severity = np.clip(mean / alignment.unrelated, 0.0, 1.0)
    total = cost.sum()
    return Evidence(alignment.spans, cost * (lack / total if total > 0 else 0.0), severity)


def loss_evidence(spans: np.ndarray, losses: np.ndarray, uniform: float, lack: float) -> Evidence:
    """The evidence of a language model against a text.

    Args:
        spans: (k, 2) of its tokens.
        losses: (k,) their negative log-likelihoods.
        uniform: that of a guess at random.
        lack: what the score lacks because of the language model; shared out by the losses.
    """
    total = losses.sum()
    return Evidence(
        spans, losses * (lack / total if total > 0 else 0.0), np.clip(losses / uniform, 0.0, 1.0)
    )


def word_faults(text: str, evidence: Sequence[Evidence]) -> list[Fault]:
    """Brings evidence down to words, all of them, in reading order; the severities of several kinds
    are averaged."""
    words = word_spans(text)
    lack, severity = np.zeros(len(words)), np.zeros(len(words))
    for spans, lacks, severities in evidence:
        inside = _overlaps(spans, words)
        lack += lacks @ inside
        received = inside.sum(0)
        severity += np.divide(
            severities @ inside, received, out=np.zeros(len(words)), where=received > 0
        )
    share = lack / lack.sum() if lack.sum() > 0 else lack
    columns = words.tolist(), (severity / max(len(evidence), 1)).tolist(), share.tolist()
    return [Fault(*span, *numbers) for span, *numbers in zip(*columns, strict=True)]


def faults_as_written(text: str, faults: Sequence[Fault]) -> list[Fault]:
    """Faults of what is visible of a text, where their words stand in the text itself."""
    spans = spans_as_written(
        text, spans_of([(fault.start, fault.end) for fault in faults])
    ).tolist()
    return [
        fault._replace(start=start, end=end)
        for fault, (start, end) in zip(faults, spans, strict=True)
    ]


def faults_as_dicts(text: str, faults: Sequence[Fault]) -> list[dict[str, Any]]:
    """Plain data, with the words: ``start``, ``end``, ``text``, ``severity``, ``share``."""
    return [
        {
            "start": fault.start,
            "end": fault.end,
            "text": text[fault.start : fault.end],
            "severity": fault.severity,
            "share": fault.share,
        }
        for fault in faults
    ]


def _overlaps(spans: np.ndarray, words: np.ndarray) -> np.ndarray:
    """(k, w) share of each of k spans that lies in each word; rows sum to 1, or to 0."""
    begin = np.maximum(spans[:, :1], words[:, 0])
    end = np.minimum(spans[:, 1:], words[:, 1])
    common = np.maximum(end - begin, 0).astype(np.float64)
    total = common.sum(1, keepdims=True)
    return np.divide(common, total, out=np.zeros_like(common), where=total > 0)
