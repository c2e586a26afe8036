"""One vector per text: a sentence-transformers model, or the mean of a token encoder's vectors."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label, sentence_model
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.packed import Language, PackedTokens, distinct
from mtmetrics.models.runner import Devices, TextCache, pick_devices, pick_dtype
from mtmetrics.models.token_encoder import TokenEncoder

_BATCH = 32
_CACHE_BYTES = 32 * 2**20


def is_mean_pooled(folder: Path) -> bool:
    """Whether sentence vectors are averages of token vectors (their length is no matter to a cosine): those of a plain
    encoder, and of some sentence-transformers pipelines."""
    if not (folder / "modules.json").is_file():  # no pipeline of sentence-transformers
        return True
    try:
        listed = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        modules = [module["type"].rpartition(".")[2] for module in listed]
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    # Folders that sentence-transformers 6 writes name the mode; older ones have a switch for each.
    switched = [name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True]
    mean = pooling.get("pooling_mode") == "mean" or switched == ["pooling_mode_mean_tokens"]
    return mean and modules in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])


class MeanPooledEncoder:
    """The mean over all token vectors of a text, special tokens included, from the passes of an encoder of tokens."""

    def __init__(self, tokens: TokenEncoder) -> None:
        self.name, self.label, self.fingerprint = tokens.name, tokens.label, tokens.fingerprint
        self.layer: int | None = tokens.layer
        self.depth: int | None = tokens.depth
        self.dim, self.dtype = tokens.dim, tokens.dtype
        self.encode = tokens.means().encode


class SentenceTransformerEncoder:
    """Any model of the library sentence-transformers, as its own pipeline of modules computes it.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        device: see `mtmetrics.models.runner.pick_devices`; of several, the first.
        dtype: number format of the computation.
        local_files_only: never ask the Hub.

    Raises:
        InputError: an unknown device or dtype.
        ArtifactError: the model cannot be found or loaded.
    """

    layer: int | None = None
    depth: int | None = None

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        device: Devices = "auto",
        dtype: str = "float32",
        local_files_only: bool = False,
    ) -> None:
        self.name, self.label = str(model), model_label(model)
        self.dtype = pick_dtype(dtype, device)  # refuses unknown names before anything is loaded
        folder = model_folder(model, revision=revision, local_files_only=local_files_only)
        self.fingerprint = model_fingerprint(folder)
        self._model = sentence_model(folder, str(pick_devices(device)[0]), self.dtype)
        self._model.eval()
        # The second name is that of sentence-transformers 5.
        known = getattr(self._model, "get_embedding_dimension", self._model.get_sentence_embedding_dimension)
        self.dim: int = known()
        self._recent = TextCache(_CACHE_BYTES, lambda encoded: encoded[0].nbytes)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """One vector per distinct text; `MTMetricsError` where the model computes values that are not finite."""
        unique, index = distinct(texts)
        encoded = self._recent.values(unique, self._compute)
        vectors = np.stack([vector for vector, _ in encoded]) if encoded else np.zeros((0, self.dim), dtype=np.float32)
        return PackedTokens.of_texts(vectors, index, np.array([cut for _, cut in encoded], dtype=bool))

    def _compute(self, texts: list[str]) -> list[tuple[np.ndarray, bool]]:
        """(d,) vector of each text, and whether it was cut."""
        computed = self._model.encode(texts, batch_size=_BATCH, show_progress_bar=False, convert_to_tensor=True)
        vectors = computed.float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise MTMetricsError(f"encoder {self.name}: overflows in {self.dtype}; use dtype='float32'")
        limit = self._model.max_seq_length
        encodings = self._model.tokenizer(texts, truncation=limit is not None, max_length=limit).encodings
        cut = (bool(encoding.overflowing) for encoding in encodings)
        return [(vector.copy(), was_cut) for vector, was_cut in zip(vectors, cut, strict=True)]
