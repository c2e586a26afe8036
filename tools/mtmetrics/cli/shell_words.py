"""Messages of the package name keywords of Python; the command line names its options."""

import re

from mtmetrics.cli.options import FLAGS

_NAME = "|".join(sorted(FLAGS, key=len, reverse=True))
_VALUE = r"'[^']*'|[\w.+-]+"
# Not in NAME:PRESET:option=value, which is how the command line writes it too.
_KEYWORD = re.compile(rf"(?<![\w:,-])({_NAME})=({_VALUE})?")
_SUBJECT = re.compile(rf"(^|^--metric \S+: )({_NAME})(?= (?:{_VALUE}|is missing)(?:[:;]|$| ))")
_COLUMNS = {"sources": "-s SOURCES", "references": "-r REFERENCES"}


def in_shell_words(message: str) -> str:
    """The message with options in place of keywords.

    Example:
        >>> in_shell_words("layer 77: pass normalize='batch' too, or lang_pair=")
        '--layer 77: pass --normalize batch too, or --lp'
    """
    message = _SUBJECT.sub(lambda found: f"{found[1]}--{FLAGS[found[2]]}", message)
    message = _KEYWORD.sub(lambda found: f"--{FLAGS[found[1]]} {(found[2] or '').strip(chr(39))}".rstrip(), message)
    return re.sub(
        "; pass (sources|references)( or references)?$",
        lambda found: f"; pass {_COLUMNS[found[1]]}{' or -r REFERENCES' if found[2] else ''}",
        message,
    )
