"""Values of texts in memory, and encoded texts on disk."""

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mtmetrics.errors import MTMetricsError
from mtmetrics.models import cache as module
from mtmetrics.models.cache import EmbeddingCache, EncodedText
from mtmetrics.models.runner import TextCache
from mtmetrics.models.token_encoder import TokenEncoder

TEXTS = [
    "Das Haus ist klein.",
    "the dog",
    "",
    "I see the cat",
    "the dog",
    "a " * 200,
    "unknown 字 words",
]


def encoded(number: int, tokens: int = 3, dim: int = 4) -> EncodedText:
    vectors = np.random.default_rng(number).normal(size=(tokens, dim)).astype(np.float32)
    return EncodedText(vectors, np.arange(tokens) + number, np.arange(tokens) - 1, number % 2 == 1)


def opened(folder: Path) -> EmbeddingCache:
    return EmbeddingCache(folder, "some/model", {"layer": 1}, 4)


def stored(cache: EmbeddingCache, keys: list[Any]) -> dict[Any, np.ndarray]:
    return {key: vectors.copy() for key, vectors in cache.vectors(cache.find(keys))}


def file_of(folder: Path) -> Path:
    (path,) = folder.glob("*.sqlite")
    return path


def test_the_least_recently_used_texts_are_forgotten() -> None:
    cache, computed = TextCache(10, len), []

    def values(*texts: str) -> list[str]:
        computed.clear()
        return cache.values(
            texts, lambda missing: computed.extend(missing) or [text * 2 for text in missing]
        )

    assert values("aa", "b", "aa") == ["aaaa", "bb", "aaaa"]
    assert computed == ["aa", "b"]
    assert values("aa", "ccc") == ["aaaa", "cccccc"]
    assert cache.size == 10
    values("aa", "ccc", "b")
    assert computed == ["b"]
    values("x" * 6)
    values("ccc", "b", "x" * 6)
    assert computed == ["x" * 6]  # too large to be kept; the others stayed


def test_what_was_written_comes_back_exactly(tmp_path: Path) -> None:
    texts = {
        "a": encoded(0),
        "b": encoded(1, tokens=0),
        ("a",): encoded(2),
        ("a", "b"): encoded(3, tokens=500),
    }
    opened(tmp_path).write(texts.items())
    cache = opened(tmp_path)
    found = cache.find([*texts, "c", ("b",), "A"])
    assert list(found) == list(texts)
    assert stored(cache, ["c", ("a b",)]) == {}
    for key, vectors in cache.vectors(found):
        assert np.array_equal(vectors, texts[key].vectors)
        assert vectors.dtype == np.float32
        assert np.array_equal(found[key].token_ids, texts[key].token_ids)
        assert np.array_equal(found[key].words, texts[key].words)
        assert found[key].truncated == texts[key].truncated


def test_a_second_run_reads_everything(tiny_encoder: Path, tmp_path: Path) -> None:
    plain = TokenEncoder(tiny_encoder).encode(TEXTS)
    first, second = (
        TokenEncoder(tiny_encoder, embedding_cache=tmp_path / "new" / "folder") for _ in range(2)
    )
    for encoder in (first, second):
        packed = encoder.encode(TEXTS)
        for name in ("vectors", "offsets", "weights", "token_ids", "words", "index", "truncated"):
            assert np.array_equal(getattr(packed, name), getattr(plain, name)), name
    assert (first.counts.loaded, first.counts.computed) == (0, 6)
    assert (
        second.counts.requested,
        second.counts.loaded,
        second.counts.computed,
        second.counts.tokens,
    ) == (7, 6, 0, 0)
    second.encode(TEXTS)
    assert second.counts.loaded == 6  # from memory now


def test_another_model_layer_or_format_reads_nothing_old(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "models" / "tiny-encoder"
    shutil.copytree(tiny_encoder, copy)

    def computed(**options: Any) -> int:
        encoder = TokenEncoder(copy, embedding_cache=tmp_path / "cache", **options)
        encoder.encode(TEXTS)
        return encoder.counts.computed

    assert [computed(), computed()] == [6, 0]
    assert [computed(layer=1), computed(layer=2), computed(dtype="bfloat16")] == [6, 6, 6]
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    assert [computed(), computed()] == [6, 0]
    monkeypatch.setattr("mtmetrics.models.token_encoder.__version__", "99.0")
    assert computed() == 6
    assert len(list((tmp_path / "cache").iterdir())) == 6


def test_a_file_of_other_vectors_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    path = file_of(tmp_path)
    EmbeddingCache(tmp_path / "other", "some/model", {"layer": 2}, 4).path.replace(path)
    with pytest.raises(
        MTMetricsError,
        match=rf"{path}: damaged \(it was made for other vectors\); delete this file",
    ):
        opened(tmp_path)


WRITER = """
import os, sys
import numpy as np
from mtmetrics.models.cache import EmbeddingCache, EncodedText

def text(number, tokens=3):
    ids = np.arange(tokens)
    return f"{number}/{tokens}", EncodedText(np.full((tokens, 4), number, dtype=np.float32), ids, ids, False)

def endless():
    # Far more than SQLite keeps in memory, so that a part of it is in the file already.
    yield from (text(number, 20000) for number in range(60))
    print(os.path.getsize(cache.path))
    sys.stdout.flush()
    os.kill(os.getpid(), 9)

cache = EmbeddingCache(sys.argv[1], "some/model", {"layer": 1}, 4)
for first in range(0, 200, 10):
    known = cache.find(f"{number}/3" for number in range(first, first + 10))
    for key, vectors in cache.vectors(known):
        assert (vectors == int(key.split("/")[0])).all()
    cache.write(map(text, range(first, first + 10)))
    if sys.argv[2] == "killed" and first == 100:
        cache.write(endless())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_several_processes_write_at_once_and_one_is_killed(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), end], stdout=-1, stderr=-1, text=True
        )
        for end in ("killed", "whole", "whole")
    ]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [-signal.SIGKILL, 0, 0], outputs
    assert int(outputs[0][0]) > 5_000_000
    found = stored(opened(tmp_path), [f"{number}/3" for number in range(200)])
    assert all((found[f"{number}/3"] == number).all() for number in range(200))
    assert stored(opened(tmp_path), [f"{number}/20000" for number in range(60)]) == {}


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_an_interrupted_write_leaves_nothing_of_it(
    tmp_path: Path, stop: type[BaseException]
) -> None:
    def texts() -> Iterator[tuple[str, EncodedText]]:
        for number in range(5):
            yield str(number), encoded(number)
        raise stop

    cache = opened(tmp_path)
    cache.write([("before", encoded(9))])
    with pytest.raises(stop):
        cache.write(texts())
    keys = ["before", *map(str, range(5))]
    assert list(stored(cache, keys)) == ["before"]
    cache.write((key, encoded(1)) for key in keys)
    assert list(stored(opened(tmp_path), keys)) == keys


def test_an_interrupted_encoding_leaves_a_usable_file(tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = TokenEncoder(tiny_encoder, embedding_cache=tmp_path, batch_tokens=8)
    encoder.encode(TEXTS[:2])
    (tap, device), calls = encoder._network._runner.replicas[0], []

    def interrupted(layers: list[int], **inputs: torch.Tensor) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return tap(layers, **inputs)

    encoder._network._runner.replicas = [(interrupted, device)]
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(TEXTS)
    again = TokenEncoder(tiny_encoder, embedding_cache=tmp_path)
    assert again.encode(TEXTS).vectors == pytest.approx(
        TokenEncoder(tiny_encoder).encode(TEXTS).vectors, abs=5e-6
    )
    assert (again.counts.loaded, again.counts.computed) == (2, 4)


def changed(find: bytes, place: int) -> Callable[[bytes], bytes]:
    """Changes one bit of the first byte sequence of that kind."""

    def damage(content: bytes) -> bytes:
        at = content.index(find) + place
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:1000] + bytes(len(content) - 1000),
        lambda content: b"vectors " * 1000,
        changed(encoded(7).vectors.tobytes(), 5),
        changed(np.arange(7, 10, dtype="<i4").tobytes(), 0),
    ],
    ids=["cut", "overwritten", "no database", "one vector", "one token"],
)
def test_a_damaged_file_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    opened(tmp_path).write((str(number), encoded(number)) for number in range(300))
    path = file_of(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    message = rf"^embedding cache {path}: damaged \(.+\); delete this file and run again$"
    with pytest.raises(MTMetricsError, match=message):
        stored(opened(tmp_path), [str(number) for number in range(300)])
    path.unlink()
    assert stored(opened(tmp_path), ["1"]) == {}


@pytest.mark.parametrize("column", ["tokens", "vectors", "checksum", "truncated"])
@pytest.mark.parametrize("value", ["'text'", "7", "x'00'"])
def test_values_of_another_kind_are_damage(tmp_path: Path, column: str, value: str) -> None:
    opened(tmp_path).write([("a", encoded(0))])
    with sqlite3.connect(file_of(tmp_path)) as connection:
        connection.execute(f"UPDATE texts SET {column} = {value}")
    with pytest.raises(MTMetricsError, match=r"damaged \("):
        stored(opened(tmp_path), ["a"])


def test_a_file_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = opened(tmp_path)
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(module, "_NAP_SECONDS", 0.05)
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for call in (lambda: cache.write([("a", encoded(0))]), lambda: cache.find(["a"])):
        started = time.monotonic()
        with pytest.raises(
            MTMetricsError, match=r"another process has had it locked for .* seconds; try again"
        ):
            call()
        assert time.monotonic() - started < 5
    other.execute("ROLLBACK")
    cache.write([("a", encoded(0))])
    # A reader waits for a writer, and does not fail at once.
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 20)
    other.execute("BEGIN EXCLUSIVE")
    naps: list[int] = []
    real = module._kind

    def kind(error: sqlite3.Error) -> str:
        naps.append(1)
        if len(naps) == 2:
            other.execute("ROLLBACK")
        return real(error)

    monkeypatch.setattr(module, "_kind", kind)
    assert list(cache.find(["a"])) == ["a"]


@pytest.mark.parametrize("limit", ["PRAGMA max_page_count = 4", "PRAGMA query_only = 1"])
def test_no_room_or_no_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    cache, connect = opened(tmp_path), sqlite3.connect
    cache.write([("a", encoded(0))])

    def limited(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute(limit)
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    what = rf"^embedding cache {cache.path}: cannot be read or written \(.+\)"
    message = f"{what}; make room or give permission there, or use another folder$"
    with pytest.raises(MTMetricsError, match=message):
        cache.write((str(number), encoded(number)) for number in range(1000))
    monkeypatch.undo()
    assert list(stored(cache, ["a", "1"])) == ["a"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MTMetricsError, match="embedding cache .*file: the folder cannot be made"):
        opened(tmp_path / "file")
    with pytest.raises(MTMetricsError, match="the folder cannot be made"):
        opened(tmp_path / "file" / "below")
    opened(tmp_path / "folder").path.unlink()
    opened(tmp_path / "elsewhere")
    file_of(tmp_path / "elsewhere").unlink()
    (tmp_path / "elsewhere" / opened(tmp_path / "folder").path.name).mkdir()
    with pytest.raises(MTMetricsError, match="cannot be read or written"):
        opened(tmp_path / "elsewhere")
