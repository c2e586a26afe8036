"""CLP and UMD: known solutions, files, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import Remapping, apply_clp, apply_umd, fit_clp, fit_umd

META = {
    "encoder": "tiny",
    "encoder_fingerprint": "01234567",
    "layer": "2",
    "lp": "de-en",
    "corpus": "words.tsv",
}


def rotation(seed: int, dim: int = 6) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


@given(st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_clp_finds_a_rotation(seed: int) -> None:
    source = np.random.default_rng(seed + 1).normal(size=(40, 6))
    matrix = fit_clp(source, source @ rotation(seed))
    assert matrix == pytest.approx(rotation(seed), abs=1e-5)
    assert matrix @ matrix.T == pytest.approx(np.eye(6), abs=1e-5)


@given(st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_umd_finds_and_removes_the_direction(seed: int) -> None:
    generator = np.random.default_rng(seed)
    direction = rotation(seed)[0]
    target = generator.normal(size=(200, 6))
    source = (
        target
        + 5 * np.outer(1 + generator.random(200), direction)
        + 1e-3 * generator.normal(size=(200, 6))
    )
    fitted = fit_umd(source, target)
    assert abs(fitted @ direction) == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(fitted) == pytest.approx(1, abs=1e-5)
    cleaned = apply_umd(source.astype(np.float32), fitted)
    assert cleaned @ fitted == pytest.approx(np.zeros(200), abs=1e-4)
    assert apply_umd(cleaned, fitted) == pytest.approx(cleaned, abs=1e-4)
    assert apply_umd(source.astype(np.float32), -fitted) == pytest.approx(cleaned, abs=1e-5)


def test_composition_applies_the_first_name_first() -> None:
    generator = np.random.default_rng(0)
    matrix, direction = rotation(1).astype(np.float32), rotation(2)[0].astype(np.float32)
    vectors = generator.normal(size=(5, 6)).astype(np.float32)
    first = Remapping("clp+umd", (matrix, direction)).apply(vectors)
    second = Remapping("umd+clp", (direction, matrix)).apply(vectors)
    assert first == pytest.approx(apply_umd(apply_clp(vectors, matrix), direction), abs=1e-6)
    assert second == pytest.approx(apply_clp(apply_umd(vectors, direction), matrix), abs=1e-6)
    assert abs(first - second).max() > 0.01


def test_fitted_compositions_bring_pairs_closer_step_by_step() -> None:
    generator = np.random.default_rng(4)
    target = generator.normal(size=(100, 6))
    source = target @ rotation(3) + 2 * rotation(5)[0]
    gaps = []
    for kind in ("clp", "clp+umd"):
        fitted = Remapping.fit(kind, source, target)
        gaps.append(np.linalg.norm(fitted.apply(source.astype(np.float32)) - target))
    assert gaps[1] < gaps[0] < np.linalg.norm(source - target)


@pytest.mark.parametrize("kind", ["clp", "umd"])
def test_the_reverse_is_the_map_that_is_fitted_from_target_to_source(kind: str) -> None:
    generator = np.random.default_rng(0)
    source, target = generator.normal(size=(2, 40, 6))
    reverse = Remapping.fit(kind, source, target, META).reverse()
    fitted = Remapping.fit(kind, target, source)
    np.testing.assert_allclose(reverse.source[0], fitted.source[0], atol=1e-5)
    assert (reverse.meta["lp"], reverse.meta["reverse_of"]) == ("en-de", "de-en")
    with pytest.raises(InputError, match="a composition cannot be reversed"):
        Remapping.fit("clp+umd", source, target).reverse()


def test_sides() -> None:
    matrix, other, directions = (rotation(seed).astype(np.float32) for seed in (1, 2, 3))
    direction = directions[0]
    vectors = np.eye(6, dtype=np.float32)
    assert Remapping("clp", (matrix,), (other,)).apply(vectors, "target") == pytest.approx(other)
    assert Remapping("umd", (direction,)).apply(vectors, "target") == pytest.approx(
        apply_umd(vectors, direction)
    )
    with pytest.raises(InputError, match="sides='both' cannot be used"):
        Remapping("clp", (matrix,)).apply(vectors, "target")


def test_umd_vector_shapes() -> None:
    direction = rotation(3)[0]
    assert Remapping("umd", (direction,)).source[0].shape == (6,)
    assert Remapping("umd", (direction[None],)).source[0].shape == (6,)
    for wrong in (
        np.float32(0.5),
        np.array([0.5]),
        direction[:, None],
        np.eye(6),
        np.full(6, np.nan),
    ):
        with pytest.raises(InputError, match=r"umd: a vector \(d,\) or \(1, d\)"):
            Remapping("umd", (wrong,))
    for wrong in (direction, np.ones((6, 5)), np.full((6, 6), np.inf)):
        with pytest.raises(InputError, match="clp: a square matrix"):
            Remapping("clp", (wrong,))


def test_bad_pairs_and_kinds() -> None:
    with pytest.raises(InputError, match=r"one shape \(n, d\) with n > 0, got \(0, 6\)"):
        fit_clp(np.zeros((0, 6)), np.zeros((0, 6)))
    with pytest.raises(InputError, match="one shape"):
        fit_umd(np.zeros((2, 6)), np.zeros((3, 6)))
    with pytest.raises(InputError, match="not finite"):
        fit_umd(np.full((2, 6), np.nan), np.zeros((2, 6)))
    with pytest.raises(InputError, match="map kind 'bam'"):
        Remapping("bam", (np.eye(6),))
    with pytest.raises(InputError, match="needs 2 arrays for the source side, got 1"):
        Remapping("clp+umd", (np.eye(6),))
    with pytest.raises(InputError, match="made for vectors of 6 numbers, the encoder gives 4"):
        Remapping("clp", (np.eye(6),)).apply(np.zeros((1, 4), dtype=np.float32))


@pytest.mark.parametrize("kind", ["clp", "umd", "clp+umd"])
def test_files_round_trip(tmp_path: Path, kind: str) -> None:
    generator = np.random.default_rng(0)
    fitted = Remapping.fit(
        kind, generator.normal(size=(30, 6)), generator.normal(size=(30, 6)), META
    )
    path = tmp_path / "de-en.safetensors"
    fitted.save(path)
    loaded = Remapping.load(path)
    assert loaded.meta == META | {"pairs": "30"}
    assert (loaded.kind, loaded.fingerprint) == (kind, fitted.fingerprint)
    assert all(
        np.array_equal(one, two) for one, two in zip(loaded.source, fitted.source, strict=True)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["de-en.safetensors"]


def test_a_file_in_half_precision_is_half_as_large(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    fitted = Remapping.fit("clp", *generator.normal(size=(2, 300, 128)), META)
    fitted.save(tmp_path / "whole.safetensors")
    fingerprint = fitted.save(tmp_path / "half.safetensors", "float16")
    whole, half = (tmp_path / f"{name}.safetensors" for name in ("whole", "half"))
    assert whole.stat().st_size / half.stat().st_size == pytest.approx(2, abs=0.05)
    loaded = Remapping.load(half)
    assert loaded.fingerprint == fingerprint != fitted.fingerprint
    np.testing.assert_allclose(loaded.source[0], fitted.source[0], atol=1e-3)


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "map.safetensors"
    Remapping("clp", (np.eye(6),), meta=META).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(ArtifactError, match="missing or damaged"):
        Remapping.load(path)
    with pytest.raises(ArtifactError, match="missing or damaged"):
        Remapping.load(tmp_path / "none.safetensors")
    for position in (-1, -6 * 6 * 4):
        path.write_bytes(whole)
        with open(path, "r+b") as stream:
            stream.seek(position, 2)
            stream.write(b"\x01")
        with pytest.raises(
            ArtifactError, match="damaged, its numbers have the fingerprint .*, not "
        ):
            Remapping.load(path)
    save_file({"x": np.eye(2)}, path)
    with pytest.raises(ArtifactError, match="not made by 'mtmetrics train maps'"):
        Remapping.load(path)
    save_file(
        {"source.0": np.ones((2, 3), dtype=np.float32)},
        path,
        metadata={"format": "mtmetrics-remap-1", "kind": "clp"},
    )
    with pytest.raises(ArtifactError, match=r"map\.safetensors: map step clp: a square matrix"):
        Remapping.load(path)


def test_a_map_for_another_encoder_or_layer_is_refused() -> None:
    remapping = Remapping("clp", (np.eye(6),), meta=META)
    remapping.require_encoder("m", "tiny", "01234567", 2)
    message = "fitted for tiny#01234567 layer 2, but the encoder in use is tiny#01234567 layer 3"
    with pytest.raises(ArtifactError, match=message):
        remapping.require_encoder("m", "tiny", "01234567", 3)
    with pytest.raises(ArtifactError, match="encoder in use is other#deadbeef layer 2"):
        remapping.require_encoder("m", "other", "deadbeef", 2)


def test_a_map_without_fingerprint_is_known_by_the_name_of_its_encoder() -> None:
    meta = {"encoder": "google-bert/bert-base-multilingual-cased", "layer": "12", "lp": "de-en"}
    remapping = Remapping("clp", (np.eye(6),), meta=meta)
    for folder in ("google-bert/", "", "someone/"):
        name = f"{folder}bert-base-multilingual-cased"
        remapping.require_encoder("m", name, "01234567", 12)
    for name in (
        "bert-base-multilingual-uncased",
        "google-bert",
        "bert-base-multilingual-cased/other",
        "?",
    ):
        message = r"multilingual-cased \(fingerprint not recorded\) layer 12, .*artifacts import m "
        with pytest.raises(ArtifactError, match=message):
            remapping.require_encoder("m", name, "01234567", 12)
    message = "layer 12, but the encoder in use is .* layer 8; fit one with 'mtmetrics train maps'$"
    with pytest.raises(ArtifactError, match=message):
        remapping.require_encoder("m", "bert-base-multilingual-cased", "01234567", 8)
    # A recorded fingerprint decides, whatever the names say.
    bound = Remapping("clp", (np.eye(6),), meta=meta | {"encoder_fingerprint": "01234567"})
    bound.require_encoder("m", "copy", "01234567", 12)
    with pytest.raises(ArtifactError, match="fitted for .*-cased#01234567 layer 12"):
        bound.require_encoder("m", "google-bert/bert-base-multilingual-cased", "deadbeef", 12)
    with pytest.raises(ArtifactError, match=r"fitted for \? \(fingerprint not recorded\)"):
        Remapping("clp", (np.eye(6),), meta={"layer": "12"}).require_encoder(
            "m", "x", "01234567", 12
        )
