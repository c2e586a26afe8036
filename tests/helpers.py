"""Makers of inputs for the tests of several rooms."""

import contextlib
import gzip
import importlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtmetrics.models.pool
from mtmetrics.artifacts import comet_checkpoints, convert
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.packed import PackedTokens

# What encoders read: two texts that are equal, an empty one, one that is too long, unknown
# characters.
TEXTS = [
    "Das Haus ist klein.",
    "the dog",
    "",
    "I see the cat and the tree!",
    "the dog",
    "a " * 200,
    "unknown 字 words",
]
# Five segments of de-en, and what people think of them.
SOURCES = [
    "Das Haus ist klein.",
    "Der Hund schläft.",
    "Ich sehe zwei rote Autos.",
    "Wer hat das gesagt?",
    "Nein.",
]
PREDICTIONS = [
    "the house is small.",
    "the dog sleeps.",
    "i see red cars.",
    "who said that?",
    "the house is red.",
]
HUMAN = [1.0, 0.7, 0.1, 0.9, -1.5]
# References, and translations of which the third is one, and the last is blank.
REFERENCES = ["the house is small.", "i see the cat", "the dog sleeps not!", "a tree stands there"]
TRANSLATIONS = ["the small house", "i see a tree", "the dog sleeps not!", " "]


def write(path: Path, content: str | bytes) -> Path:
    """Writes a file, and the folders above it; text is compressed if the file is called ``.gz``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode("utf-8")
        content = gzip.compress(content) if path.suffix == ".gz" else content
    path.write_bytes(content)
    return path


def write_jsonl(path: Path, rows: Iterable[dict]) -> Path:
    """Writes a JSON object per line."""
    return write_rows(path, *rows)


def write_rows(path: Path, *rows: str | dict) -> Path:
    """Writes a line per row: a text as it is, anything else as JSON."""
    return write(
        path,
        "".join(
            (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n"
            for row in rows
        ),
    )


def lay(folder: Path, files: dict[str, str], archive: str | None = None) -> Path:
    """Writes files into a folder, or an archive in it."""
    if archive is None:
        for name, text in files.items():
            write(folder / name, text)
        return folder
    with tarfile.open(folder / archive, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return folder / archive


def columns(judged: Judged, *names: str) -> list[list]:
    """Some columns of judgements, row by row."""
    return judged.rows[list(names)].to_numpy().tolist()


def write_preset(folder: Path, text: str) -> str:
    """Writes a preset; returns its folder as metrics take it."""
    return str(write(folder / "preset.toml", text).parent)


def judged(
    human: Sequence[float | None],
    file: str = "f",
    lang_pair: str = "de-en",
    level: str = "segment",
    **columns: list,
) -> Judged:
    """Judgements, of texts that do not matter."""
    texts = {"source": ["x"] * len(human), "translation": ["y"] * len(human)}
    return Judged.of(file, lang_pair, texts | {"human": human} | columns, level)


def refused(result: tuple[int, str, str], message: str, code: int = 2) -> None:
    """Asserts that a call of the command line ended in one line on standard error, and no other
    output."""
    assert result[:2] == (code, ""), result
    assert message in result[2]
    assert result[2].startswith("mtmetrics: ")
    assert result[2].count("\n") == 1


@contextlib.contextmanager
def converting_here() -> Iterator[None]:
    """Pickles are converted in this process, and not in another one."""

    def convert_here(module: str, path: Path, target: Path) -> dict[str, Any]:
        return importlib.import_module(module).convert_file(path, target)

    with pytest.MonkeyPatch.context() as patch:
        for module in (convert, comet_checkpoints):
            patch.setattr(module, "converted_apart", convert_here)
        yield


def note_loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the classes of encoders and language models that a pool loads from now on, in
    order."""
    loaded: list[str] = []
    for name in ("EncoderNetwork", "LanguageModel"):
        real = getattr(mtmetrics.models.pool, name)
        noted = lambda *a, real=real, **k: loaded.append(real.__name__) or real(*a, **k)  # noqa: E731
        monkeypatch.setattr(mtmetrics.models.pool, name, noted)
    return loaded


def packed(
    texts: Sequence[np.ndarray],
    *,
    weights: Sequence[float] | np.ndarray | None = None,
    words: Sequence[int] | np.ndarray | None = None,
    index: Sequence[int] | np.ndarray | None = None,
) -> PackedTokens:
    """Packs a matrix of vectors per text; ids count the rows, and so do words where none are
    given."""
    vectors = np.concatenate(texts).astype(np.float32)
    lengths = [len(text) for text in texts]
    rows = np.arange(len(vectors))
    return PackedTokens(
        vectors=vectors,
        offsets=np.cumsum([0, *lengths]),
        weights=np.ones(len(rows)) if weights is None else np.array(weights, dtype=np.float64),
        token_ids=rows,
        word_positions=rows if words is None else np.array(words),
        index=np.arange(len(texts)) if index is None else np.array(index),
        truncated=np.zeros(len(texts), dtype=bool),
    )


def both(pairs: Sequence[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Pairs of source and reference as the columns that scorers take."""
    sources, references = map(list, zip(*pairs, strict=True))
    return {"sources": sources, "references": references}
