"""Recognises the kind of a file by its name and its first bytes, and refuses files that are not the
text that is needed."""

import csv
import enum
import json
import re
from pathlib import Path
from typing import Literal

from mtmetrics.checks import warn
from mtmetrics.errors import InputError
from mtmetrics.io.columns import USUAL_NAMES

# Content of lines: a segment each, cells between tabs, or any text.
Layout = Literal["segments", "cells", "any"]

HEAD_SIZE = 2**16
_PACKED_ENDS = (".gz", ".bz2", ".xz", ".zst")
_JSON_ENDS = (".json", ".jsonl", ".ndjson", ".jsonlines")
# An object whose first key is quoted, at the beginning of a file or of an array.
_OBJECT = re.compile(r'\[?\s*\{\s*"[^"\n]*"\s*:')
_MARKUP = re.compile(
    r"<(\?xml|!doctype|html|tmx|xliff|mteval|refset|srcset|tstset)\b", re.IGNORECASE
)
# A first line that holds nothing but a tag which files of segments begin with.
_TAG_ALONE = re.compile(
    r"<(dataset|collection|document|doc|text|body|seg)\b[^<>]*>\s*\n", re.IGNORECASE
)
_MARKUP_ENDS = (
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
_SUBTITLE = re.compile(r"\d+\r?\n\d\d:\d\d:\d\d[,.]\d+ --> ")
_PO_SOURCE = re.compile(r"^msgid \"", re.MULTILINE)
_PO_TRANSLATION = re.compile(r"^msgstr(\[0\])? \"", re.MULTILINE)
# Names of columns in tables; a header holds such names and no text.
_COLUMN_NAMES = USUAL_NAMES | {"text", "sentence"}
_LINES_PARSED = 20


class _Kind(enum.Enum):
    """Layouts of files that people take for a segment per line."""

    JSON = "JSON Lines or JSON"
    CSV = "a table with commas or semicolons (CSV)"
    TSV = "a table with tabs (TSV)"
    XML = "XML"
    SGM = "SGM"
    TMX = "TMX"
    XLIFF = "XLIFF"
    HTML = "HTML"
    SUBTITLES = "subtitles"
    PO = "a catalogue of messages (PO)"


def unpacked_name(path: str | Path) -> str:
    """Returns a path without the ending of a compression, in upper or lower case."""
    name = str(path)
    for end in _PACKED_ENDS:
        if name.lower().endswith(end):
            return name[: -len(end)]
    return name


def bare_name(path: str | Path) -> str:
    """Returns `unpacked_name` in lower case: ``rows.jsonl`` for ``Rows.JSONL.GZ``."""
    return unpacked_name(path).lower()


def check_head(path: str | Path, head: bytes, layout: Layout) -> None:
    """Checks the first bytes of an unpacked file; notes where line ends are carriage returns alone.

    Args:
        path: name of the file, which also counts, and stands in messages.
        head: its first bytes, up to `HEAD_SIZE`.
        layout: the content that is needed.

    Raises:
        InputError: the file is no text in UTF-8, or another layout; the message names a call that
            works.
    """
    _refuse_binary(path, head)
    if b"\r" in head.rstrip(b"\r\n") and b"\n" not in head:
        warn(
            f"{path}: its lines end with carriage returns alone, which end no line here, so that "
            f"all is one line; convert it: tr '\\r' '\\n' < {path}"
        )
    if layout == "any":
        return
    kind = _kind(path, head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="ignore"))
    if kind is None or (layout == "cells" and kind is _Kind.TSV):
        return
    wanted = "a segment per line" if layout == "segments" else "tab-separated cells"
    raise InputError(
        f"{path}: is {kind.value}, where {wanted} is needed; {_mend(path, kind, layout)}"
    )


def _refuse_binary(path: str | Path, head: bytes) -> None:
    recode = f"convert it to UTF-8: iconv -f {{}} -t UTF-8 {path}"
    if head.startswith(b"PAR1"):
        raise InputError(f"{path}: is Parquet, not lines of text; {_as_rows(path, '.parquet')}")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"\xd0\xcf\x11\xe0")):
        table = _as_rows(path, ".csv").replace("name it", "save its sheet as")
        what = "is a ZIP archive, or a workbook or document of an office program, not lines of text"
        raise InputError(f"{path}: {what}; unpack it, or {table}")
    for start, kind in (
        (b"%PDF", "PDF"),
        (b"7z\xbc\xaf", "a 7z archive"),
        (b"Rar!", "a RAR archive"),
    ):
        if head.startswith(start):
            raise InputError(
                f"{path}: is {kind}, not lines of text; write its segments one per line"
            )
    if head.startswith(b"ARROW1"):
        raise InputError(
            f"{path}: is an Arrow file, not lines of text; write it as Parquet and pass that alone"
        )
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise InputError(f"{path}: is text in UTF-32; {recode.format('UTF-32')}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path}: is text in UTF-16; {recode.format('UTF-16')}")
    if head[257:262] == b"ustar":
        raise InputError(f"{path}: is a tar archive; unpack it: tar -xf {path}")
    order = _byte_order(head)
    if order:
        raise InputError(
            f"{path}: is text in UTF-16 without a byte order mark; "
            f"{recode.format('UTF-16' + order)}"
        )


def _byte_order(head: bytes) -> str:
    """Returns ``LE`` or ``BE`` where bytes look like text in UTF-16, else an empty string.

    Spaces and line ends of UTF-16 hold zeros on one side. Letters of many scripts share their other
    byte, which is no character of its own."""
    head = head[: len(head) // 2 * 2]
    zeros = {"BE": head[0::2].count(0), "LE": head[1::2].count(0)}
    order = max(zeros, key=lambda name: zeros[name])
    if zeros[order] <= 4 * min(zeros.values()):
        return ""
    if _share_of_controls(head) < 0.2 and _is_utf8(head):
        return ""
    text = head.decode(f"utf-16-{order.lower()}", errors="replace")
    controls = sum(letter < " " and letter not in "\t\r\n" for letter in text)
    failures = text.count("\ufffd")
    return order if (controls + failures) * 20 <= len(text) else ""


def _share_of_controls(data: bytes) -> float:
    """Returns the share of bytes that stand for no character."""
    beginning = data[:4096]
    controls = sum(byte < 0x20 and byte not in b"\t\r\n" for byte in beginning)
    tabs = beginning.count(b"\t")
    if tabs > 0.3 * len(beginning):
        controls += tabs  # so many are no tabs: they begin letters of Devanagari
    return controls / max(len(beginning), 1)


def _is_utf8(data: bytes) -> bool:
    try:
        data[:-4].decode("utf-8")  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return True


def _kind(path: str | Path, text: str) -> _Kind | None:
    """Recognises the kind of the beginning of a text; None where it may be a segment per line."""
    name = bare_name(path)
    start = text.lstrip()
    lines = [line for line in _complete_lines(text) if line.strip()]
    if _is_json(name, start, lines):
        return _Kind.JSON
    if _is_markup(name, start):
        return _markup_kind(name, start)
    if start.startswith("WEBVTT") or _SUBTITLE.match(start):
        return _Kind.SUBTITLES
    if _PO_SOURCE.search(text) and _PO_TRANSLATION.search(text):
        return _Kind.PO
    return _table_kind(name, lines)


def _complete_lines(text: str) -> list[str]:
    """Splits the beginning of a text into lines, without the last one, which may be cut."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 else lines


def _is_markup(name: str, start: str) -> bool:
    if _MARKUP.match(start) or _TAG_ALONE.match(start):
        return True
    return name.endswith(_MARKUP_ENDS) and start.startswith("<")


def _is_json(name: str, start: str, lines: list[str]) -> bool:
    if name.endswith(_JSON_ENDS):
        return start.startswith(("{", "["))
    if not _OBJECT.match(start):
        return False
    # A single object may be a segment about JSON, but not where it names a column, goes on in the
    # next line, or is followed by other objects.
    keys = re.findall(r'"([^"\n]*)"\s*:', start[:10_000])
    names_column = not _COLUMN_NAMES.isdisjoint(keys)
    goes_on = not lines[0].strip().endswith("}")
    is_first_of_many = len(lines) > 1 and all(map(_is_object, lines[:_LINES_PARSED]))
    return start.startswith("[") or names_column or goes_on or is_first_of_many


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _markup_kind(name: str, start: str) -> _Kind:
    text = start[:5000].lower()
    if "<tmx" in text:
        return _Kind.TMX
    if "<xliff" in text:
        return _Kind.XLIFF
    if re.search("<(refset|srcset|tstset|mteval)", text) or name.endswith((".sgm", ".sgml")):
        return _Kind.SGM
    return _Kind.HTML if "<html" in text or "doctype html" in text else _Kind.XML


def _table_kind(name: str, lines: list[str]) -> _Kind | None:
    """Recognises a table: its first line names columns, or its file is called so and all lines have
    equally many cells."""
    if not lines:
        return None
    for separator, kind in (("\t", _Kind.TSV), (",", _Kind.CSV), (";", _Kind.CSV)):
        rows = [_cells(line, separator) for line in lines[:_LINES_PARSED]]
        columns_named = sum(cell.strip().lower() in _COLUMN_NAMES for cell in rows[0])
        is_even = len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)
        is_called_so = name.endswith((".tsv", ".tab") if kind is _Kind.TSV else ".csv")
        if columns_named > 1 or (is_called_so and (columns_named or is_even)):
            return kind
    return None


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line.replace("\r", " ")], delimiter=separator), [])


def _mend(path: str | Path, kind: _Kind, layout: Layout) -> str:
    """Advises a call that works for a file of a kind."""
    match kind:
        case _Kind.JSON:
            return _as_rows(path, ".json" if bare_name(path).endswith(".json") else ".jsonl")
        case _Kind.CSV:
            return _as_rows(path, ".csv")
        case _Kind.TSV:
            return f"{_as_rows(path, '.tsv')}; or cut a column out: cut -f 1 {path}"
        case _Kind.SGM:
            return (
                "write its segments one per line: sed -n "
                f"'s/.*<seg[^>]*>\\(.*\\)<\\/seg>.*/\\1/p' {path}"
            )
        case _Kind.TMX:
            nodes = "//*[@*='de']/*[local-name()='seg']"
            return f"write the segments of each language one per line: {_selected(nodes, path)}"
        case _Kind.XLIFF:
            nodes = "//*[local-name()='source']"
            return f"write its sources and its targets one per line: {_selected(nodes, path)}"
        case _Kind.XML:
            nodes = "//*[local-name()='seg']"
            return f"write its segments one per line: {_selected(nodes, path)}"
        case _:
            rows = "segments" if layout == "segments" else "rows"
            return f"write its {rows} one per line"


def _selected(nodes: str, path: str | Path) -> str:
    return f'xmlstarlet sel -t -m "{nodes}" -v "normalize-space(.)" -n {path}'


def _as_rows(path: str | Path, end: str) -> str:
    """Advises to pass a table by itself, under a name with the right ending."""
    if str(path) == "-" or str(path).startswith("/dev/"):
        return f"write it to a file, and pass that alone: mtmetrics score rows{end}"
    if bare_name(path).endswith(end):
        return (
            "pass it alone, without -s, -t and -r, as FILE with named columns: mtmetrics score "
            f"{path}"
        )
    renamed = Path(path).with_suffix(end)
    return (
        f"name it {renamed.name} and pass it alone, as FILE with named columns: mtmetrics score "
        f"{renamed}"
    )
