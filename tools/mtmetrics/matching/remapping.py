"""Linear remapping of a multilingual space: CLP, UMD and their compositions (Sec. 3.3 of Zhao et
al., 2020)."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from mtmetrics.checks import choice, language_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.packed import Level

Sides = Literal["source", "both"]
KINDS = ("clp", "umd", "clp+umd", "umd+clp")
LEVELS = ("word", "sentence")
_FORMAT = "mtmetrics-remap-1"


def fit_clp(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Linear cross-lingual projection: the (d, d) orthogonal matrix W that brings ``source @ W``
    closest to `target`, vectors (n, d) of words and of their translations (Procrustes; what the
    paper and its published maps use).

    Raises:
        InputError: the two do not have the same shape, are empty or not finite.
    """
    source, target = _pairs(source, target)
    u, _, vt = np.linalg.svd(source.T @ target, full_matrices=False)
    return (u @ vt).astype(np.float32)


def fit_umd(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Universal language mismatch direction: the (d,) first right singular vector of ``source -
    target``, not centred; its sign, which has no effect, makes the largest component positive.
    Arguments and errors as `fit_clp`."""
    source, target = _pairs(source, target)
    direction = np.linalg.svd(source - target, full_matrices=False)[2][0]
    return (direction * np.sign(direction[np.abs(direction).argmax()])).astype(np.float32)


def apply_clp(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Rotates the (n, d) rows: ``x W``."""
    return vectors @ matrix


def apply_umd(vectors: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Removes from each of the (n, d) rows its part along a unit vector: ``x - (x v) v``."""
    return vectors - np.outer(vectors @ direction, direction)


@dataclasses.dataclass(frozen=True)
class Remapping:
    """One or two steps that are applied to the source side, or to both.

    Attributes:
        kind: ``"clp"``, ``"umd"``, ``"clp+umd"`` (CLP first, then UMD) or ``"umd+clp"``.
        source: one array a step: (d, d) matrices for CLP, (d,) unit vectors for UMD.
        target: the same for the target side where it has its own (a common "hub" space); else
            empty.
        meta: what the map was fitted on and for which encoder: ``encoder``, ``encoder_fingerprint``
            (absent where it is not known), ``layer`` (``"none"`` for an encoder without layers to
            choose from), ``level`` (``"word"`` where absent, or ``"sentence"``), ``lp``,
            ``corpus``, ``pairs`` (count of word pairs).
    """

    kind: str
    source: tuple[np.ndarray, ...]
    target: tuple[np.ndarray, ...] = ()
    meta: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        choice("map kind", self.kind, KINDS)
        steps = self.kind.split("+")
        for side in ("source", "target"):
            arrays = getattr(self, side)
            if len(arrays) != len(steps) and (arrays or side == "source"):
                raise InputError(
                    f"map {self.kind}: needs {len(steps)} arrays for the {side} side, got "
                    f"{len(arrays)}",
                    option="map",
                )
            checked = tuple(_step(name, array) for name, array in zip(steps, arrays, strict=False))
            object.__setattr__(self, side, checked)

    @property
    def fingerprint(self) -> str:
        """First 8 hexadecimal digits of a sha256 over kind and arrays."""
        digest = hashlib.sha256(self.kind.encode())
        for array in (*self.source, *self.target):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:8]

    @property
    def level(self) -> str:
        return self.meta.get("level", "word")

    def apply(
        self, vectors: np.ndarray, side: Literal["source", "target"] = "source"
    ) -> np.ndarray:
        """Maps (n, d) vectors of one side.

        The target side uses its own arrays, or, for UMD alone, the same direction (the paper's
        formula removes it from both languages).

        Raises:
            InputError: vectors of another width, or a CLP without arrays for the target side.
        """
        arrays = (
            self.source
            if side == "source" or (not self.target and self.kind == "umd")
            else self.target
        )
        if not arrays:
            why = "it was fitted for the source side alone, so sides='both' cannot be used with it"
            raise InputError(f"map {self.kind}: {why}", option="map", mentions=["sides='both'"])
        if vectors.shape[1] != arrays[0].shape[0]:
            raise InputError(
                f"map {self.kind}: made for vectors of {arrays[0].shape[0]} numbers, the encoder "
                f"gives {vectors.shape[1]}",
                option="map",
            )
        for array in arrays:
            vectors = apply_clp(vectors, array) if array.ndim == 2 else apply_umd(vectors, array)
        return vectors

    @classmethod
    def fit(
        cls, kind: str, source: np.ndarray, target: np.ndarray, meta: dict[str, str] | None = None
    ) -> "Remapping":
        """Fits a map on (n, d) vectors of word pairs; in a composition the second step sees the
        output of the first.

        Raises:
            InputError: an unknown kind, or as `fit_clp`.
        """
        arrays: list[np.ndarray] = []
        mapped, fixed = source, target
        for step in choice("map kind", kind, KINDS).split("+"):
            fit, apply = (fit_clp, apply_clp) if step == "clp" else (fit_umd, apply_umd)
            arrays.append(fit(mapped, fixed))
            mapped = apply(mapped, arrays[-1])
        return cls(kind, tuple(arrays), meta=dict(meta or {}, pairs=str(len(source))))

    def reverse(self) -> "Remapping":
        """Returns the map of the opposite direction, for pairs (y, x) instead of (x, y).

        It equals the map that is fitted on the swapped pairs: CLP's orthogonal matrix transposed,
        UMD's direction as it is. Where each side has its own arrays, they change places. A
        composition has no reverse, since its second step was fitted on mapped vectors.

        Raises:
            InputError: the map is a composition.
        """
        if "+" in self.kind:
            raise InputError(f"map {self.kind}: a composition cannot be reversed", option="map")
        meta = dict(self.meta)
        if "lp" in meta:
            source_language, target_language = language_pair(meta["lp"])
            meta |= {"lp": f"{target_language}-{source_language}", "reverse_of": meta["lp"]}
        if self.target:
            return Remapping(self.kind, self.target, self.source, meta)
        return Remapping(self.kind, tuple(array.T for array in self.source), meta=meta)

    def save(self, path: str | Path, dtype: Literal["float32", "float16"] = "float32") -> str:
        """Writes a safetensors file with the arrays and, as its metadata, kind, fingerprint and
        `meta`.

        Args:
            path: the file to write.
            dtype: number format of the arrays in the file. Half precision rounds them.

        Returns:
            The fingerprint of the numbers that the file holds.
        """
        from safetensors.numpy import save

        from mtmetrics.io.atomic import write_atomic
        from mtmetrics.io.checksums import with_sorted_metadata

        source, target = (
            tuple(array.astype(dtype) for array in arrays) for arrays in (self.source, self.target)
        )
        stored = dataclasses.replace(self, source=source, target=target)
        tensors = {
            f"{side}.{step}": array
            for side, arrays in (("source", source), ("target", target))
            for step, array in enumerate(arrays)
        }
        meta = {
            "format": _FORMAT,
            "kind": stored.kind,
            "fingerprint": stored.fingerprint,
            **stored.meta,
        }
        write_atomic(path, with_sorted_metadata(save(tensors, metadata=meta)))
        return stored.fingerprint

    @classmethod
    def load(cls, path: str | Path) -> "Remapping":
        """Reads what `save` wrote; where the file holds a fingerprint, the arrays are checked
        against it.

        Raises:
            ArtifactError: missing, damaged, or not such a file.
        """
        import safetensors

        try:
            with safetensors.safe_open(path, framework="numpy") as stream:
                meta = dict(stream.metadata() or {})
                tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (no mapping)
        except (OSError, safetensors.SafetensorError, ValueError) as error:
            raise ArtifactError(
                f"map {path}: cannot be read, missing or damaged ({error})", option="map"
            ) from error
        if meta.pop("format", None) != _FORMAT:
            raise ArtifactError(
                f"map {path}: not made by 'mtmetrics train maps' (its metadata lacks format={_FORMAT})",
                option="map",
            )
        sides = [
            [tensors[name] for name in sorted(tensors) if name.startswith(side)]
            for side in ("source", "target")
        ]
        recorded = meta.pop("fingerprint", None)
        try:
            remapping = cls(meta.pop("kind", ""), tuple(sides[0]), tuple(sides[1]), meta)
        except InputError as error:
            raise ArtifactError(f"map {path}: {error}", option="map") from error
        if recorded not in (None, remapping.fingerprint):
            raise ArtifactError(
                f"map {path}: damaged, its numbers have the fingerprint {remapping.fingerprint}, "
                f"not {recorded}",
                option="map",
            )
        return remapping

    def require_encoder(
        self,
        path: str | Path,
        name: str,
        fingerprint: str,
        layer: int | None,
        level: Level = "word",
    ) -> None:
        """Refuses a map, from the file `path`, that was fitted for another encoder, layer or level
        than the ones in use.

        A map without a fingerprint, as the authors of XMoverScore published theirs, is accepted for
        a model of the recorded name, of which the last part counts."""
        if self.level != level:
            raise ArtifactError(
                f"map {path}: fitted on {self.level} vectors, but {level} vectors are to be "
                f"mapped; fit one with 'mtmetrics train maps --level {level}'",
                option="map",
            )
        own_name, own_fingerprint = (
            self.meta.get("encoder", "?"),
            self.meta.get("encoder_fingerprint"),
        )
        if own_fingerprint is None:
            same_model, mark = (
                own_name.rpartition("/")[2] == name.rpartition("/")[2],
                " (fingerprint not recorded)",
            )
        else:
            same_model, mark = own_fingerprint == fingerprint, f"#{own_fingerprint}"
        layer_name = "none" if layer is None else str(layer)
        same_layer = self.meta.get("layer") == layer_name
        if same_model and same_layer:
            return
        advice = "fit one with 'mtmetrics train maps'"
        if own_fingerprint is None and same_layer:
            command = f"mtmetrics artifacts import {path} --encoder FOLDER --out DIR"
            advice = f"if that is a copy of {own_name}, '{command}' binds the map to it"
        raise ArtifactError(
            f"map {path}: fitted for {own_name}{mark} layer {self.meta.get('layer')}, but the "
            f"encoder in use is {name}#{fingerprint} layer {layer_name}; {advice}",
            option="map",
        )


def _pairs(source: np.ndarray, target: np.ndarray) -> Sequence[np.ndarray]:
    source, target = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if source.ndim != 2 or source.shape != target.shape or not source.size:
        shapes = f"{source.shape} and {target.shape}"
        raise InputError(f"word-pair matrices must have one shape (n, d) with n > 0, got {shapes}")
    if not (np.isfinite(source).all() and np.isfinite(target).all()):
        raise InputError("word-pair matrices hold values that are not finite")
    return source, target


def _step(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, dtype=np.float32)
    if name == "umd" and array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    fits = (
        array.ndim == 2 and array.shape[0] == array.shape[1]
        if name == "clp"
        else array.ndim == 1 and array.size > 1
    )
    if not fits or not np.isfinite(array).all():
        wanted = "a square matrix (d, d)" if name == "clp" else "a vector (d,) or (1, d)"
        raise InputError(
            f"map step {name}: {wanted} of finite numbers is needed, got shape {array.shape}"
        )
    return array
