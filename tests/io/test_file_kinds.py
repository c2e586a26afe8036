"""Files as people bring them, behind the options and as FILE: read, or refused with the call that
works."""

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from helpers import refused, write
from pyarrow import parquet

from mtmetrics.errors import InputError
from mtmetrics.page import texts
from mtmetrics.scorers.side import Column

Command = Callable[..., tuple[int, str, str]]
LENGTH = ["--metric", "prediction_length"]
LINES = "Das Haus ist klein.\nDer Hund schläft nicht.\n"
ROWS = [
    {"source": "Das Haus.", "translation": "The house."},
    {"source": "Der Hund.", "translation": "The dog!"},
]
JSON_LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
SGM = (
    '<srcset setid="n" srclang="any"><doc docid="d">\n<seg id="1">Das '
    "Haus.</seg>\n</doc></srcset>\n"
)
TMX = (
    '<?xml version="1.0"?>\n<tmx version="1.4"><body><tu><tuv '
    'xml:lang="de"><seg>Haus</seg></tuv></tu></body></tmx>\n'
)
XLIFF = '<?xml version="1.0"?>\n<xliff version="1.2"><file><source>Haus</source></file></xliff>\n'
WMT = (
    '<?xml version="1.0"?>\n<dataset id="wmt"><doc><src lang="de"><seg '
    'id="1">Haus</seg></src></doc></dataset>\n'
)


def parquet_bytes() -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), stream)
    return stream.getvalue()


# Name of a file -> its content, and the advice that the error must hold.
NO_PLAIN_TEXT = {
    "rows.jsonl": (JSON_LINES, "mtmetrics score {folder}/rows.jsonl"),
    "rows.txt": (JSON_LINES, "mtmetrics score {folder}/rows.jsonl"),
    "rows.jsonl.gz": (gzip.compress(JSON_LINES.encode()), "mtmetrics score {folder}/rows.jsonl.gz"),
    "array.json": (json.dumps(ROWS, indent=2), "mtmetrics score {folder}/array.json"),
    "array.txt": (json.dumps(ROWS), "mtmetrics score {folder}/array.jsonl"),
    "news.sgm": (SGM, "sed -n"),
    "news.de": (SGM, "sed -n"),
    "memory.tmx": (TMX, "xmlstarlet sel"),
    "file.xlf": (XLIFF, "xmlstarlet sel"),
    "wmt.xml": (WMT, "xmlstarlet sel"),
    "rows.csv": ("source,translation\nDas Haus.,The house.\n", "mtmetrics score {folder}/rows.csv"),
    "semicolons.csv": ("id;source;translation\n1;Das Haus.;The house.\n", "mtmetrics score"),
    "one.csv": ('translation\n"The house, small."\n', "mtmetrics score"),
    "bare.csv": ("Das Haus.,The house.\nDer Hund.,The dog.\n", "mtmetrics score"),
    "table.en": ("src,mt,ref\na,b,c\n", "mtmetrics score {folder}/table.csv"),
    "rows.tsv": (
        "source\ttranslation\nDas Haus.\tThe house.\n",
        "mtmetrics score {folder}/rows.tsv",
    ),
    "rows.parquet": (parquet_bytes(), "mtmetrics score {folder}/rows.parquet"),
    "rows.en": (parquet_bytes(), "mtmetrics score {folder}/rows.parquet"),
    "sheet.xlsx": (b"PK\x03\x04" + bytes(100), "mtmetrics score {folder}/sheet.csv"),
    "book.csv": (b"PK\x03\x04" + bytes(100), "save its sheet as book.csv"),
    "captions.vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n", "one per line"),
    "utf16.en": (LINES.encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
    "bare-utf16.en": (LINES.encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8"),
    "utf16.ru": ("Дом стоит.\nСобака спит\n".encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8"),
    "utf16.ne": ("किताब यहाँ छ।\nकिताब\n".encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8"),
    "utf16.ja": ("これは本です 。\nはい\n".encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8"),
    # Readers of text unpack by themselves, programs and readers of Parquet do not.
    "rows.parquet.gz": (
        gzip.compress(parquet_bytes()),
        "unpack it, and pass it alone, without -s, -t and -r, as FILE with named columns: mtmetrics "
        "score {folder}/rows.parquet",
    ),
    "utf16.en.gz": (
        gzip.compress(LINES.encode("utf-16")),
        "unpack it, and convert it to UTF-8: iconv -f UTF-16 -t UTF-8 {folder}/utf16.en",
    ),
    "news.sgm.xz": (lzma.compress(SGM.encode()), "/p' {folder}/news.sgm"),
    "zipped.zst": (b"\x28\xb5\x2f\xfd" + bytes(9), "zstd -d"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, (content, _) in NO_PLAIN_TEXT.items():
        write(tmp_path / name, content.encode() if isinstance(content, str) else content)
    for name in ("lines", "source.de"):
        write(tmp_path / name, LINES)
    return tmp_path


@pytest.mark.parametrize("name", NO_PLAIN_TEXT)
def test_no_plain_text_is_refused_behind_every_option(
    mtmetrics: Command, folder: Path, name: str
) -> None:
    advice, path, lines = (
        NO_PLAIN_TEXT[name][1].format(folder=folder),
        folder / name,
        folder / "lines",
    )
    for files in (["-s", path, "-t", lines], ["-s", lines, "-t", path], ["-r", path, "-t", lines]):
        result = mtmetrics("score", *files, *LENGTH)
        refused(result, advice)
        assert result[2].startswith(f"mtmetrics: {path}: is ")
    others: dict[Column, texts.TextInput] = {"sources": texts.TextInput("source", str(path))}
    with pytest.raises(InputError, match=f"^{name}: is ") as raised:
        texts.read_texts("de-en", others, [texts.TextInput("system", None, "a\nb")])
    assert str(folder) not in str(raised.value)


@pytest.mark.parametrize("name", ["rows.jsonl", "news.sgm", "rows.csv", "utf16.en", "rows.parquet"])
def test_other_commands_refuse_them_too(mtmetrics: Command, folder: Path, name: str) -> None:
    path, lines = folder / name, folder / "lines"
    for argv in (
        ["compare", "-s", lines, "-t", lines, path, *LENGTH],
        ["explain", "--metric", "bertr:mini", "-r", lines, "-t", path],
        ["filter", "-s", lines, "-t", path, *LENGTH, "--top", 1, "--skip", "language"],
        ["rerank", "-s", path, "-t", lines, lines, "--metric", "prediction_length"],
        ["rerank", "-t", path, lines, "--metric", "prediction_length"],
        ["probe", "matching", "-s", lines, "-r", path, *LENGTH],
        [
            "idf",
            "--encoder",
            "mini-encoder",
            "--text",
            path,
            "--languages",
            "en",
            "--out",
            folder / "idf.safetensors",
        ],
    ):
        code, out, err = mtmetrics(*argv)
        assert (code, out) == (2, ""), argv
        assert f"{path}: is " in err, argv


@pytest.mark.parametrize(
    "name", ["rows.txt", "array.txt", "table.en", "news.de", "rows.en", "sheet.xlsx", "utf16.en"]
)
def test_a_table_that_its_name_does_not_tell_is_refused_as_file(
    mtmetrics: Command, folder: Path, name: str
) -> None:
    for command in (["score"], ["filter", "--top", 1, "--skip", "language"]):
        refused(
            mtmetrics(*command, folder / name, *LENGTH),
            NO_PLAIN_TEXT[name][1].format(folder=folder),
        )


def test_json_lines_on_standard_input_are_refused(
    mtmetrics: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JSON_LINES.encode())))
    refused(mtmetrics("score", "-", *LENGTH), "mtmetrics score rows.jsonl")


@pytest.mark.parametrize(
    "text",
    [
        '{"key": "value"}\nNo object.\n',
        '{"greeting": "Hello {name}"}\n',
        "[1] See the note.\n",
        "<b>Bold</b> words\n<p>and</p>\n",
        "<seg>kept</seg>\n",
        "source, target and reference\nsecond\n",
        "Source\nTarget\n",
        "1\n2\n",
        "a\tb\n",
    ],
)
def test_plain_text_that_only_looks_strange_is_scored(
    mtmetrics: Command, tmp_path: Path, text: str
) -> None:
    path = write(tmp_path / "a.txt", text.encode())
    code, out, _ = mtmetrics("score", "-s", path, "-t", path, *LENGTH)
    assert (code, len(json.loads(out)["scores"])) == (0, text.count("\n"))


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("lines.xz", lzma.compress),
        ("lines.bz2", bz2.compress),
        ("lines.GZ", gzip.compress),
        ("lines", gzip.compress),
        ("lines.en", lzma.compress),
    ],
)
def test_compressed_files_are_read(
    mtmetrics: Command,
    tmp_path: Path,
    name: str,
    pack: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, packed = write(tmp_path / "plain", LINES), write(tmp_path / name, pack(LINES.encode()))
    expected = json.loads(mtmetrics("score", "-s", plain, "-t", plain, *LENGTH)[1])["scores"]
    assert (
        json.loads(mtmetrics("score", "-s", packed, "-t", packed, *LENGTH)[1])["scores"] == expected
    )
    tsv = pack(b"Das Haus.\tThe house.\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(tsv)))
    assert json.loads(mtmetrics("score", "-", *LENGTH, "--against", "source")[1])["scores"] == [
        -10.0
    ]
    damaged = write(tmp_path / f"damaged-{name}", pack(LINES.encode() * 99)[:-9])
    refused(mtmetrics("score", "-s", damaged, "-t", damaged, *LENGTH), "cannot be read")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.json", json.dumps(ROWS)),
        ("rows.json", json.dumps(ROWS, indent=1)),
        ("rows.json", JSON_LINES),
        ("rows.JSONL", JSON_LINES),
        ("rows.json.xz", lzma.compress(json.dumps(ROWS).encode())),
        ("rows.jsonl.bz2", bz2.compress(JSON_LINES.encode())),
        (
            "rows.csv.xz",
            lzma.compress(b"source,translation\nDas Haus.,The house.\nDer Hund.,The dog!\n"),
        ),
        ("rows.tsv.GZ", gzip.compress(b"Das Haus.\tThe house.\nDer Hund.\tThe dog!\n", mtime=0)),
    ],
)
def test_tables_by_their_names(
    mtmetrics: Command, tmp_path: Path, name: str, content: str | bytes
) -> None:
    path = write(tmp_path / name, content)
    code, out, err = mtmetrics("score", path, *LENGTH, "--against", "source")
    assert (code, err) == (0, "")
    assert json.loads(out)["scores"] == [-10.0, -8.0]


def test_damaged_arrays(mtmetrics: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '[{"source": "a", "translation": "b"},\n 7]')
    refused(mtmetrics("score", path, *LENGTH), "a.json, item 2: a JSON object is needed, got int")
    write(path, '[{"source": "a", "translation": "b"},\n {"sou')
    refused(mtmetrics("score", path, *LENGTH), "a.json, line 2: not valid JSON")
    write(path, '[{"source": "a", "translation": "b"}, {"source": "a"}]')
    refused(mtmetrics("score", path, *LENGTH), "a.json, item 2: no field 'translation'")


def test_carriage_returns_alone_are_noted_once(mtmetrics: Command, tmp_path: Path) -> None:
    path, plain = (
        write(tmp_path / "mac.txt", b"one\rtwo\rthree\r"),
        write(tmp_path / "plain", b"one\ntwo\nthree\n"),
    )
    code, _, err = mtmetrics("score", "-s", path, "-t", path, *LENGTH)
    assert code == 0
    assert err.count("carriage returns alone") == 1
    assert f"tr '\\r' '\\n' < {path}" in err
    code, _, err = mtmetrics("score", "-s", path, "-t", plain, *LENGTH)
    assert code == 2
    assert "carriage returns alone" in err
    windows = write(tmp_path / "windows.txt", b"one\r\ntwo\r\n")
    assert "carriage" not in mtmetrics("score", "-s", windows, "-t", windows, *LENGTH)[2]


def test_pipes_are_looked_at_while_they_are_read(mtmetrics: Command, tmp_path: Path) -> None:
    lines = write(tmp_path / "lines", LINES)
    for content, code in ((gzip.compress(LINES.encode()), 0), (JSON_LINES.encode(), 2)):
        pipe = tmp_path / f"pipe{code}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=[content])
        writer.start()
        got, out, err = mtmetrics("score", "-s", pipe, "-t", lines, *LENGTH)
        writer.join()
        assert got == code, err
        assert bool(out) == (code == 0)
