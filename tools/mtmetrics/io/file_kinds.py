"""Recognises the format of a file by its name and its first bytes, and refuses files that are not
plain text with the lines that a command needs."""

import csv
import json
import re
from pathlib import Path
from typing import Literal

from mtmetrics.checks import warn
from mtmetrics.errors import InputError
from mtmetrics.io.columns import USUAL_NAMES

# Content that a command needs in the lines of a file: one segment per line, tab-separated cells, or
# anything.
LineContent = Literal["segments", "cells", "any"]

# Number of first bytes that are looked at.
HEAD_SIZE = 2**16
# `mtmetrics.io.lines` unpacks all but ``.zst``, which it refuses.
_PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


# Name of a format, and advice how to convert or pass a file of it.
_Format = tuple[str, str]
_ONE_PER_LINE = "write its segments one per line"


def unpacked_name(path: str | Path) -> str:
    """Returns a path without the suffix of a compressed file: ``Rows.JSONL`` for
    ``Rows.JSONL.GZ``."""
    name = str(path)
    for suffix in _PACKED_SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def lowercase_unpacked_name(path: str | Path) -> str:
    """Returns `unpacked_name` in lower case: ``rows.jsonl`` for ``Rows.JSONL.GZ``."""
    return unpacked_name(path).lower()


def check_head(path: str | Path, head: bytes, content: LineContent) -> None:
    """Checks the first bytes of an unpacked file; warns if its lines end in carriage returns alone.

    Args:
        path: name of the file. Its suffix is taken into account, and messages name it.
        head: its first bytes, up to `HEAD_SIZE`.
        content: the content that is needed. With ``any`` only the first case of the errors is
            checked.

    Raises:
        InputError: in one of these cases; the message tells how to convert the file, or how to
            score it as a table:

            - The file has one of the binary formats of `_binary_problem`, or is in UTF-16 or UTF-32.
            - It has one of the formats of `_text_format`, and other content is needed.
    """
    problem = _binary_problem(path, head)
    if problem is not None:
        raise InputError(f"{path}: is {problem}")
    if b"\r" in head.rstrip(b"\r\n") and b"\n" not in head:
        command = "tr '\\r' '\\n'"
        advice = f"convert it: {command}"
        if not _is_stream(path):
            advice = _advice_to_run("convert it", f"{command} <", path)
        warn(
            f"{path}: its lines end with carriage returns alone, so the whole file is read as one "
            f"line; {advice}"
        )
    if content == "any":
        return
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="ignore")
    text_format = _text_format(path, text)
    if text_format is None or (content == "cells" and text_format[0] == _TSV):
        return
    name, advice = text_format
    needed = "a segment per line" if content == "segments" else "tab-separated cells"
    raise InputError(f"{path}: is {name}, where {needed} is needed; {advice}")


def _binary_problem(path: str | Path, head: bytes) -> str | None:
    """Recognises some binary formats, UTF-16 and UTF-32.

    Returns:
        The name of the format, and how to convert the file; None for any other file.
    """
    if head.startswith(b"PAR1"):
        unpacked = unpacked_name(path)
        first = "" if unpacked == str(path) else "unpack it, and "
        advice = _advice_to_pass_as_table(unpacked, ".parquet")
        return f"Parquet, not lines of text; {first}{advice}"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"\xd0\xcf\x11\xe0")):
        sheet = _renamed(path, ".csv")
        return (
            "a ZIP archive, or a workbook or document of an office program, not lines of text; "
            f"unpack it, or save its sheet as {sheet.name} and {_pass_alone(sheet)}"
        )
    not_lines = f"not lines of text; {_ONE_PER_LINE}"
    if head.startswith(b"%PDF"):
        return f"PDF, {not_lines}"
    if head.startswith(b"7z\xbc\xaf"):
        return f"a 7z archive, {not_lines}"
    if head.startswith(b"Rar!"):
        return f"a RAR archive, {not_lines}"
    if head.startswith(b"ARROW1"):
        return "an Arrow file, not lines of text; write it as Parquet and pass that alone"
    # The mark of UTF-32 begins with that of UTF-16.
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return f"text in UTF-32; {_advice_to_recode(path, 'UTF-32')}"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"text in UTF-16; {_advice_to_recode(path, 'UTF-16')}"
    if head[257:262] == b"ustar":
        return f"a tar archive; unpack it: tar -xf {path}"
    byte_order = _byte_order(head)
    if byte_order:
        how_to_recode = _advice_to_recode(path, "UTF-16" + byte_order)
        return f"text in UTF-16 without a byte order mark; {how_to_recode}"
    return None


def _byte_order(head: bytes) -> str:
    """Returns ``LE`` or ``BE`` if bytes look like text in UTF-16, else an empty string.

    Text in UTF-16 has spaces and line ends of two bytes, one of which is zero. UTF-8 has no such
    byte, but for a stray one.
    """
    even_head = head[: len(head) // 2 * 2]
    for order in ("LE", "BE"):
        text = even_head.decode(f"utf-16-{order.lower()}", errors="replace")
        if text.count(" ") + text.count("\n") > len(text) / 100:
            return order
    return ""


_SUBTITLE = re.compile(r"\d+\r?\n\d\d:\d\d:\d\d[,.]\d+ --> ")
_PO_SOURCE = re.compile(r"^msgid \"", re.MULTILINE)
_PO_TRANSLATION = re.compile(r"^msgstr(\[0\])? \"", re.MULTILINE)


def _text_format(path: str | Path, text: str) -> _Format | None:
    """Recognises the format of the beginning of a text; None if it may be one segment per line."""
    name = lowercase_unpacked_name(path)
    start = text.lstrip()
    lines = _complete_lines(text)
    if _looks_like_json(name, start, lines):
        suffix = ".json" if name.endswith(".json") else ".jsonl"
        return "JSON Lines or JSON", _advice_to_pass_as_table(path, suffix)
    if _is_markup(name, start):
        return _markup_format(path, name, start)
    if start.startswith("WEBVTT") or _SUBTITLE.match(start):
        return "subtitles", _ONE_PER_LINE
    if _PO_SOURCE.search(text) and _PO_TRANSLATION.search(text):
        return "a gettext catalogue (PO)", _ONE_PER_LINE
    return _table_format(path, name, lines)


def _complete_lines(text: str) -> list[str]:
    """Returns the lines at the beginning of a text that are not blank. The last line may be cut
    off: it is left out, unless it is the only one."""
    *complete, last = text.split("\n")
    lines = [line for line in complete if line.strip()]
    return lines or ([last] if last.strip() else [])


# Usual names of columns, and two that only a header of texts has.
_HEADER_WORDS = USUAL_NAMES | {"text", "sentence"}
_MAX_LINES_PARSED = 20
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".jsonlines")
# An object whose first key is quoted, at the beginning of a file or of an array.
_JSON_OBJECT_START = re.compile(r'\[?\s*\{\s*"[^"\n]*"\s*:')


def _looks_like_json(name: str, start: str, lines: list[str]) -> bool:
    if name.endswith(_JSON_SUFFIXES):
        return start.startswith(("{", "["))
    if not _JSON_OBJECT_START.match(start):
        return False
    # A single object may be a segment that shows JSON. It is a file of JSON if the object names a
    # column, goes on in the next line, or is followed by other objects.
    is_array = start.startswith("[")
    keys = re.findall(r'"([^"\n]*)"\s*:', start[:10_000])
    has_column_as_key = not _HEADER_WORDS.isdisjoint(keys)
    spans_lines = not lines[0].strip().endswith("}")
    is_first_of_many = len(lines) > 1 and all(map(_is_object, lines[:_MAX_LINES_PARSED]))
    return is_array or has_column_as_key or spans_lines or is_first_of_many


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


_SGM_TAGS = "mteval|refset|srcset|tstset"
_MARKUP = re.compile(rf"<(\?xml|!doctype|html|tmx|xliff|{_SGM_TAGS})\b", re.IGNORECASE)
# A first line that is a single tag with which files of segments begin.
_OPENING_TAG_LINE = re.compile(
    r"<(dataset|collection|document|doc|text|body|seg)\b[^<>]*>\s*\n", re.IGNORECASE
)
_MARKUP_SUFFIXES = (
    ".xml",
    ".sgm",
    ".sgml",
    ".tmx",
    ".xlf",
    ".xliff",
    ".sdlxliff",
    ".mqxliff",
    ".html",
    ".htm",
)


def _is_markup(name: str, start: str) -> bool:
    if _MARKUP.match(start) or _OPENING_TAG_LINE.match(start):
        return True
    return name.endswith(_MARKUP_SUFFIXES) and start.startswith("<")


def _markup_format(path: str | Path, name: str, start: str) -> _Format:
    text = start[:5000].lower()
    if "<tmx" in text:
        purpose = "write the segments of each language, such as de, one per line"
        command = _xmlstarlet_command("//*[@*='de']/*[local-name()='seg']")
        return "TMX", _advice_to_run(purpose, command, path)
    if "<xliff" in text:
        purpose = "write its sources and its targets one per line"
        command = _xmlstarlet_command("//*[local-name()='source']")
        return "XLIFF", _advice_to_run(purpose, command, path)
    if re.search(f"<({_SGM_TAGS})", text) or name.endswith((".sgm", ".sgml")):
        command = "sed -n 's/.*<seg[^>]*>\\(.*\\)<\\/seg>.*/\\1/p'"
        return "SGM", _advice_to_run(_ONE_PER_LINE, command, path)
    if "<html" in text or "doctype html" in text:
        return "HTML", _ONE_PER_LINE
    command = _xmlstarlet_command("//*[local-name()='seg']")
    return "XML", _advice_to_run(_ONE_PER_LINE, command, path)


_TSV = "a table with tabs (TSV)"
_CSV = "a table with commas or semicolons (CSV)"


def _table_format(path: str | Path, name: str, lines: list[str]) -> _Format | None:
    """Recognises a table: its first line holds two usual names of columns; or the suffix says so,
    and the first line holds one such name or all lines have the same number of cells."""
    if not lines:
        return None
    formats = (
        ("\t", _TSV, (".tsv", ".tab")),
        (",", _CSV, (".csv",)),
        (";", _CSV, (".csv",)),
    )
    for separator, table_format, suffixes in formats:
        rows = [_split(line, separator) for line in lines[:_MAX_LINES_PARSED]]
        usual_names = sum(cell.strip().lower() in _HEADER_WORDS for cell in rows[0])
        is_rectangular = len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)
        has_suffix = name.endswith(suffixes)
        if usual_names > 1 or (has_suffix and (usual_names or is_rectangular)):
            if table_format == _CSV:
                return _CSV, _advice_to_pass_as_table(path, ".csv")
            advice = _advice_to_pass_as_table(path, ".tsv")
            return _TSV, f"{advice}; or {_advice_to_run('cut a column out', 'cut -f 1', path)}"
    return None


def _split(line: str, separator: str) -> list[str]:
    # A carriage return inside the line would be an error for `csv`.
    return next(csv.reader([line.replace("\r", " ")], delimiter=separator), [])


def _advice_to_recode(path: str | Path, encoding: str) -> str:
    return _advice_to_run("convert it to UTF-8", f"iconv -f {encoding} -t UTF-8", path)


def _xmlstarlet_command(nodes: str) -> str:
    return f'xmlstarlet sel -t -m "{nodes}" -v "normalize-space(.)" -n'


def _advice_to_run(purpose: str, command: str, path: str | Path) -> str:
    """Returns advice to run a command on a file, unpacked if it is compressed.

    Args:
        purpose: says what the command does.
        command: all of it but the file, which stands at its end.
        path: the file.
    """
    unpacked = unpacked_name(path)
    first = "" if unpacked == str(path) else "unpack it, and "
    return f"{first}{purpose}: {command} {unpacked}"


def _advice_to_pass_as_table(path: str | Path, suffix: str) -> str:
    """Returns advice to pass a table by itself, under a name with the right suffix."""
    renamed = _renamed(path, suffix)
    if _is_stream(path):
        return f"write it to a file, and pass that alone: mtmetrics score {renamed}"
    if lowercase_unpacked_name(path).endswith(suffix):
        return (
            "pass it alone, without -s, -t and -r, as FILE with named columns: mtmetrics score "
            f"{path}"
        )
    return f"name it {renamed.name} and {_pass_alone(renamed)}"


def _pass_alone(path: Path) -> str:
    return f"pass it alone, as FILE with named columns: mtmetrics score {path}"


def _renamed(path: str | Path, suffix: str) -> Path:
    """Returns a path with another suffix, or an example of a name for a stream.

    Only the last suffix is replaced. For a compressed file this is that of the compression: readers
    of text recognise by the content that the renamed file is compressed.
    """
    return Path(f"rows{suffix}") if _is_stream(path) else Path(path).with_suffix(suffix)


def _is_stream(path: str | Path) -> bool:
    return str(path) == "-" or str(path).startswith("/dev/")
