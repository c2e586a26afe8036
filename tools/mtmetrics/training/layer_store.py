"""The outputs of all layers of an encoder for many texts, computed once and kept in a file."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.artifacts.files import make_folder, write_atomic
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder

if TYPE_CHECKING:
    import torch

_TEXTS_PER_SAVE = 512


class LayerStore:
    """Word pieces of distinct texts with the outputs of all layers, in float16, memory-mapped.

    An interrupted computation goes on where it was; a later run with the same encoder, cut and texts finds the file.
    Two runs must not compute it at the same time.

    Args:
        folder: where the files lie.
        encoder: opened with an identity mix and the cut to use.
        texts: distinct texts.
    """

    def __init__(self, folder: Path, encoder: TokenEncoder, texts: Sequence[str]) -> None:
        depth = len(encoder.mix) if encoder.mix is not None else 1
        shape = (depth, encoder.dim // depth)
        described = json.dumps([encoder.fingerprint, encoder.dtype, encoder.max_length, list(texts)])
        name = hashlib.sha256(described.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        make_folder(folder)
        layers, tokens = folder / f"{name}.layers", folder / f"{name}.tokens"
        _fill(layers, tokens, folder / f"{name}.json", encoder, texts)
        owners, self.words, self.token_ids = np.fromfile(tokens, dtype=np.int32).reshape(-1, 3).T.astype(np.int64)
        self.vectors = np.memmap(layers, dtype=np.float16, mode="r", shape=(len(owners), *shape))
        self.offsets = np.searchsorted(owners, np.arange(len(texts) + 1))
        self.row = {text: number for number, text in enumerate(texts)}
        # Of each text, the rows of its pieces that are no special tokens.
        self._kept = np.flatnonzero(self.words >= 0)
        self._bounds = np.searchsorted(self._kept, self.offsets)
        self.lengths = np.diff(self._bounds)

    def pieces(self, texts: np.ndarray) -> "torch.Tensor":
        """(pieces, depth, width) float32 outputs of the layers for the pieces of some texts, one after the other."""
        import torch

        rows = np.concatenate([self._kept[self._bounds[text] : self._bounds[text + 1]] for text in texts])
        return torch.from_numpy(self.vectors[rows]).float()

    def layer(self, number: int, texts: np.ndarray) -> PackedTokens:
        """Packed vectors of (n,) texts at layer 1 or higher, special tokens included."""
        rows = np.concatenate([np.arange(self.offsets[text], self.offsets[text + 1]) for text in texts])
        return PackedTokens(
            vectors=self.vectors[rows, number - 1].astype(np.float32),
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[texts])]),
            weights=np.ones(len(rows)),
            token_ids=self.token_ids[rows],
            words=self.words[rows],
            index=np.arange(len(texts)),
            truncated=np.zeros(len(texts), dtype=bool),
        )


def _fill(layers: Path, tokens: Path, progress: Path, encoder: TokenEncoder, texts: Sequence[str]) -> None:
    """Appends what is missing to the two files; what an interrupted run wrote behind its last note is cut off."""
    from tqdm import tqdm

    done, rows = json.loads(progress.read_text(encoding="utf-8")) if progress.exists() else (0, 0)
    if done == len(texts):
        return
    row_bytes = encoder.dim * np.dtype(np.float16).itemsize
    for path in (layers, tokens):
        path.touch()
    with (
        open(layers, "r+b") as vectors_file,
        open(tokens, "r+b") as tokens_file,
        tqdm(total=len(texts), initial=done, desc="encoding", unit="text", disable=None) as bar,
    ):
        for stream, size in ((vectors_file, rows * row_bytes), (tokens_file, rows * 12)):
            stream.truncate(size)
            stream.seek(size)
        for first in range(done, len(texts), _TEXTS_PER_SAVE):
            part = encoder.encode(texts[first : first + _TEXTS_PER_SAVE])
            owners = np.repeat(np.arange(first, first + len(part.lengths)), part.lengths)
            vectors_file.write(part.vectors.astype(np.float16).tobytes())
            tokens_file.write(np.stack([owners, part.words, part.token_ids], 1).astype(np.int32).tobytes())
            for stream in (vectors_file, tokens_file):
                stream.flush()
                os.fsync(stream.fileno())
            rows += len(owners)
            write_atomic(progress, json.dumps([first + len(part.lengths), rows]))
            bar.update(len(part.lengths))
