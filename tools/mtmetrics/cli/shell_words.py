"""Messages of the package name keywords of Python; the command line names its options."""

import re
from collections.abc import Sequence

from mtmetrics.cli.options import FLAGS

_NAME = "|".join(sorted(FLAGS, key=len, reverse=True))
_VALUE = r"'[^']*'|[\w.+-]+"
# Not in NAME:PRESET:option=value, which is how the command line writes it too.
_KEYWORD = re.compile(rf"(?<![\w:,-])({_NAME})=({_VALUE})?")
_SUBJECT = re.compile(rf"(^|^--metric \S+: )({_NAME})(?= (?:{_VALUE}|is missing)(?:[:;]|$| ))")
_QUOTED = r"(?<![=\w])'[^']*'(?!\w)"
_COLUMNS = {"sources": "-s SOURCES", "references": "-r REFERENCES"}


def in_shell_words(message: str, given: Sequence[str] = ()) -> str:
    """The message with options in place of keywords; what stands in quotes, and what the user has `given`, stays.

    Example:
        >>> in_shell_words("layer 77: pass normalize='batch' too, or lang_pair=")
        '--layer 77: pass --normalize batch too, or --lp'
        >>> in_shell_words("seed=1/ref.en: no such file", ["seed=1/ref.en"])
        'seed=1/ref.en: no such file'
    """
    own = sorted({text for text in given if _KEYWORD.search(text) or _SUBJECT.search(text)}, key=len, reverse=True)
    kept = re.compile("|".join([*map(re.escape, own), _QUOTED]))
    parts, end = [], 0
    for found in kept.finditer(message):
        parts += [_translated(message[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _translated(message[end:])])


def _translated(message: str) -> str:
    message = _SUBJECT.sub(lambda found: f"{found[1]}--{FLAGS[found[2]]}", message)
    message = _KEYWORD.sub(lambda found: f"--{FLAGS[found[1]]} {(found[2] or '').strip(chr(39))}".rstrip(), message)
    return re.sub(
        "; pass (sources|references)( or references)?$",
        lambda found: f"; pass {_COLUMNS[found[1]]}{' or -r REFERENCES' if found[2] else ''}",
        message,
    )
