"""Tables of static word vectors: reading, looking words up, refusing what is damaged."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import write
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.static_vectors import StaticVectors, read_table

TEXT = "3 2\nhouse 1 0\nNew_York 0 1e0\n的 0.5 0.5\n"


def safetensors(path: Path, words: Sequence[str], vectors: np.ndarray) -> Path:
    joined = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    save_file({"vectors": vectors.astype(np.float32), "words": joined}, path)
    return path


@pytest.mark.parametrize("name", ["t.vec", "t.txt", "t.vec.gz"])
@pytest.mark.parametrize("text", [TEXT, TEXT.partition("\n")[2], TEXT.replace("\n", " \r\n")])
def test_word2vec_text(tmp_path: Path, name: str, text: str) -> None:
    words, vectors = read_table(write(tmp_path / name, text))
    assert words == ["house", "New_York", "的"]
    assert vectors.tolist() == [[1, 0], [0, 1], [0.5, 0.5]]


def test_lookup(tmp_path: Path) -> None:
    words = ["house", "l'eau", "eau", "我", "我们", "去", "हिन्दी", "Berlin", "."]
    table = StaticVectors(safetensors(tmp_path / "t.safetensors", words, np.eye(9)))
    found = {
        "The House.": ["House", "."],
        "(house) l'eau d'eau": ["house", "l'eau", "eau"],
        "我们去Berlin!": ["我们", "去", "Berlin"],
        "我们去": ["我们", "去"],
        "我你去。": ["我", "去"],
        "हिन्दी, BERLIN": ["हिन्दी"],
        " ": [],
    }
    for text, expected in found.items():
        names, spans, positions = table.text_words(text)
        assert names == expected, text
        assert [text[slice(*span)] for span in spans] == expected
        packed = table.encode([text])
        assert packed.offsets.tolist() == [0, len(expected)]
        assert len(positions) == len(expected)
    packed = table.encode(["house eau", "", "house eau"])
    assert packed.index.tolist() == [0, 1, 0]
    assert packed.token_ids.tolist() == [0, 2]
    assert packed.vectors.tolist() == np.eye(9)[[0, 2]].tolist()
    assert table.word_table.tolist() == [True] * 8 + [False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no word2vec text"),
        ("house\n", "no word2vec text"),
        ("house 1 0\ncat 1\n", "line 2: a word and 2 numbers"),
        ("house 1 0\ncat 1 x\n", "line 2: a word and 2 numbers"),
        ("5 2\nhouse 1 0\n", "promises 5 words, there are 1"),
        ("house 1 nan\n", "not finite"),
        ("0 2\n", "holds no word"),
    ],
)
def test_damaged_text(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_table(write(tmp_path / "t.vec", text))


def test_damaged_safetensors_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="damaged, or not a table"):
        read_table(write(tmp_path / "t.safetensors", "no"))
    with pytest.raises(ArtifactError, match="2 words, but vectors of shape"):
        read_table(safetensors(tmp_path / "t.safetensors", ["a", "b"], np.zeros((1, 2))))
    path = tmp_path / "half.safetensors"
    vectors = torch.ones((2, 2), dtype=torch.bfloat16)
    save_torch({"vectors": vectors, "words": torch.tensor(list(b"a\nb"))}, path)
    with pytest.raises(
        ArtifactError, match=r"half\.safetensors: damaged, or not a table .*bfloat16"
    ):
        read_table(path)
    with pytest.raises(InputError, match="no such file"):
        StaticVectors(tmp_path / "none.vec")
