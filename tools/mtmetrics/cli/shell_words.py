"""Messages of the package name keywords of Python; the command line names its options."""

import functools
import re
from collections.abc import Sequence

from mtmetrics.cli.options import flag, keywords

_VALUE = r"'[^']*'|(?:[\w+-]|\.(?=\d))+(?!\.\w)"
_QUOTED = r"(?<![=\w])'[^']*'(?!\w)"
_COLUMNS = {"sources": "-s SOURCES", "references": "-r REFERENCES"}


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What names a keyword: ``NAME=VALUE``, but not in NAME:PRESET:option=value, which is how the
    command line writes it too, nor in a path; and the subject of a message."""
    name = "|".join(sorted(keywords(), key=len, reverse=True))
    assigned = rf"(?<![\w:,./-])({name})=({_VALUE})?+(?![\w/])"
    return re.compile(assigned), re.compile(
        rf"(^|^--metric \S+: )({name})(?= (?:{_VALUE}|is missing)(?:[:;]|$| ))"
    )


def in_shell_words(message: str, given: Sequence[str] = ()) -> str:
    """The message with options in place of keywords; what stands in quotes, and what the user has
    `given`, stays.

    Example:
        >>> in_shell_words("layer 77: pass normalize='batch' too, or lang_pair=")
        '--layer 77: pass --normalize batch too, or --lp'
        >>> in_shell_words("seed=1/ref.en: no such file", ["seed=1/ref.en"])
        'seed=1/ref.en: no such file'
        >>> in_shell_words("runs/seed=1/layer=4.en, line 3: empty")
        'runs/seed=1/layer=4.en, line 3: empty'
        >>> in_shell_words("dtype 'int3': must be one of float32, auto")
        "--dtype 'int3': must be one of float32, auto"
    """
    own = {text for text in given if any(pattern.search(text) for pattern in _patterns())}
    if not message.startswith(tuple(own)):
        _, subject = _patterns()
        message = subject.sub(lambda found: f"{found[1]}{flag(found[2])}", message)
    kept = re.compile("|".join([*map(re.escape, sorted(own, key=len, reverse=True)), _QUOTED]))
    parts, end = [], 0
    for found in kept.finditer(message):
        parts += [_translated(message[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _translated(message[end:])])


def _translated(message: str) -> str:
    assigned, _ = _patterns()
    message = assigned.sub(
        lambda found: f"{flag(found[1])} {(found[2] or '').strip(chr(39))}".rstrip(), message
    )
    return re.sub(
        "; pass (sources|references)( or references| and references)?$",
        lambda found: (
            "; pass "
            f"{_COLUMNS[found[1]]}{(found[2] or '').replace('references', _COLUMNS['references'])}"
        ),
        message,
    )
