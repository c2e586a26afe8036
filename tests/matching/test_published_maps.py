"""The authors' matrices: their names, the catalog, conversion; and the originals, where they lie on
this machine."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.checksums import git_blob_sha1_of_file
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import (
    ENCODER,
    convert,
    import_map,
    meta_of_name,
    published_maps,
)

GOLDENS = Path(
    os.environ.get("MTMETRICS_GOLDENS") or Path(__file__).parents[3] / "shared" / "goldens"
)
ORIGINALS = GOLDENS.parent / "data" / "remap_mbert" / "layer-8"
MATRIX = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0].astype(np.float32)
NAME = "europarl-v7.de-en.2k.8"

HERE = Path(__file__).parent / "originals"

needs_originals = pytest.mark.skipif(
    not ORIGINALS.is_dir(), reason=f"no folder {ORIGINALS} with the authors' matrices"
)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def archive():
    stream = io.BytesIO()
    np.savez(stream, a=MATRIX)
    return stream.getvalue()


def test_names():
    expected = {
        "encoder": ENCODER,
        "layer": "8",
        "lp": "zu-xh",
        "corpus": "multi-cc-aligned-v1.1",
        "sentences": "2000",
    }
    assert meta_of_name("mapping/layer-8/multi-cc-aligned-v1.1.zu-xh.2k.8.GBDD") == expected
    for name in (
        "matrix.BAM",
        "europarl-v7.de-en.2k.8",
        "europarl-v7.de-en.2k.8.npy",
        "europarl-v7.deen.2k.8.BAM",
        ".de-en.2k.8.BAM",
    ):
        assert meta_of_name(name) == {}


def test_the_catalog_lists_every_matrix_once():
    entry = catalog()["xmoverscore-published"]
    maps = published_maps(entry)
    assert len(maps) == len(entry.files) == len(set(entry.files.values())) == 96
    pairs = {layer: {pair for at, pair, _ in maps if at == layer} for layer in (8, 12)}
    assert {layer for layer, _, _ in maps} == {8, 12}
    assert maps.keys() == {
        (layer, pair, kind) for layer in (8, 12) for pair in pairs[layer] for kind in ("clp", "umd")
    }
    assert (len(pairs[8]), len(pairs[12])) == (25, 23)
    assert {"cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en"} <= pairs[12]
    assert {len(git_blob) for git_blob in entry.files.values()} == {40}
    assert maps[12, "de-en", "clp"].url == (
        "https://raw.githubusercontent.com/AIPHES/ACL20-Reference-Free-MT-Evaluation/2026e18c8874e5659ea6c03f82ec3e600d0feac1"
        "/mapping/layer-12/europarl-v7.de-en.2k.12.BAM"
    )
    assert all(
        published_maps(other) == {}
        for other in catalog().values()
        if other is not entry and other.bundled
    )


def test_conversion():
    vectors = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert convert(npy(MATRIX), "x", "clp", {}).apply(vectors) == pytest.approx(vectors @ MATRIX)
    direction = MATRIX[0]
    for array in (direction, direction[None], direction.astype(np.float64)):
        converted = convert(npy(array), "x", "umd", {"lp": "de-en"})
        assert converted.source[0].dtype == np.float32
        assert converted.apply(vectors) == pytest.approx(
            vectors - np.outer(vectors @ direction, direction), abs=1e-5
        )
        assert converted.meta == {"lp": "de-en"}


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("clp", npy(MATRIX)[:-1], "not a whole numpy file"),
        ("clp", npy(MATRIX)[:40], "not a whole numpy file"),
        ("clp", b"", "not a whole numpy file"),
        ("clp", b"<html>", "not a whole numpy file"),
        ("clp", npy(MATRIX).replace(b"}", b" "), "not a whole numpy file"),
        ("clp", archive(), "not a whole numpy file"),
        (
            "clp",
            npy(np.array([{"a": 1}], dtype=object)),
            "not a whole numpy file .*allow_pickle=False",
        ),
        ("clp", npy(np.eye(6, dtype=np.int64)), "floating-point numbers is needed, got int64"),
        (
            "clp",
            npy(MATRIX[:5]),
            r"clp: a square matrix \(d, d\) of finite numbers is needed, got shape \(5, 6\)",
        ),
        ("clp", npy(np.full((6, 6), np.nan)), "clp: a square matrix"),
        (
            "umd",
            npy(MATRIX),
            r"umd: a vector \(d,\) or \(1, d\) of finite numbers is needed, got shape \(6, 6\)",
        ),
        ("umd", npy(MATRIX[:, :1]), r"got shape \(6, 1\)"),
        ("umd", npy(np.float32(0.5)), r"got shape \(\)"),
    ],
)
def test_what_cannot_be_converted(kind, content, message):
    with pytest.raises(ArtifactError, match=f"^some/file: .*{message}"):
        convert(content, "some/file", kind, {})


def test_import_by_name_or_by_what_is_given(tmp_path):
    named, free = tmp_path / "corpus.fr-en.2k.5.BAM", tmp_path / "matrix.GBDD"
    named.write_bytes(npy(MATRIX))
    free.write_bytes(npy(MATRIX[0]))
    meta = {
        "encoder": ENCODER,
        "layer": "5",
        "lp": "fr-en",
        "corpus": "corpus",
        "sentences": "2000",
        "git_blob": git_blob_sha1_of_file(named),
    }
    assert import_map(named, {}).meta == meta
    assert import_map(named, {"layer": "3", "lp": "en-fr"}).meta == meta | {
        "layer": "3",
        "lp": "en-fr",
    }
    message = r"matrix\.GBDD: .* form CORPUS\.XX-YY\.2k\.LAYER\.GBDD, so --layer N and --encoder MODEL must be"
    with pytest.raises(InputError, match=message):
        import_map(free, {"lp": "de-en"})
    given = {"lp": "de-en", "layer": "2", "encoder": "my-model", "encoder_fingerprint": "01234567"}
    imported = import_map(free, given)
    assert (imported.kind, imported.meta) == (
        "umd",
        given | {"git_blob": git_blob_sha1_of_file(free)},
    )


def test_what_cannot_be_imported(tmp_path):
    (tmp_path / "a.npy").write_bytes(npy(MATRIX))
    with pytest.raises(InputError, match=r"a\.npy: a file named \*\.BAM .* is needed"):
        import_map(tmp_path / "a.npy", {})
    with pytest.raises(
        InputError, match=r"none\.BAM: cannot be read \(No such file or directory\)"
    ):
        import_map(tmp_path / "none.BAM", {})


def test_a_map_without_fingerprint_can_be_bound_once(tmp_path):
    path = tmp_path / "de-en.clp.safetensors"
    meta = {"encoder": ENCODER, "layer": "5", "lp": "de-en"}
    Remapping("clp", (MATRIX,), meta=meta).save(path)
    given = {"encoder": "my-copy", "encoder_fingerprint": "01234567"}
    bound = import_map(path, given)
    assert bound.meta == meta | given
    with pytest.raises(InputError, match="a map already; --encoder MODEL must be given"):
        import_map(path, {})
    bound.save(path)
    with pytest.raises(InputError, match="cannot be bound to a model"):
        import_map(path, given)


def test_a_changed_file_under_a_published_name_is_not_taken_for_the_original(tmp_path):
    path = tmp_path / f"{NAME}.BAM"
    path.write_bytes(npy(MATRIX))
    with pytest.warns(
        UserWarning,
        match="not the file that the authors published under this name; imported as it is",
    ):
        meta = import_map(path, {}).meta
    assert "origin" not in meta
    assert meta["git_blob"] == git_blob_sha1_of_file(path)


@pytest.mark.parametrize("pair", ["de-en", "ru-en"])
@pytest.mark.parametrize(
    ("folder", "suffix", "kind"),
    [(HERE, ".GBDD", "umd"), pytest.param(ORIGINALS, ".BAM", "clp", marks=needs_originals)],
)
def test_the_originals(pair, folder, suffix, kind, tmp_path):
    entry = catalog()["xmoverscore-published"]
    vectors = np.random.default_rng(0).normal(size=(3, 768)).astype(np.float32)
    name = f"europarl-v7.{pair}.2k.8{suffix}"
    assert git_blob_sha1_of_file(folder / name) == entry.files[f"mapping/layer-8/{name}"]
    # Known by its content, whatever its name.
    (tmp_path / f"renamed{suffix}").write_bytes((folder / name).read_bytes())
    remapping = import_map(tmp_path / f"renamed{suffix}", {})
    published = published_maps(entry)[8, pair, kind]
    assert remapping.meta == published.meta
    original = np.load(folder / name)
    array = remapping.source[0].astype(np.float64)
    assert np.array_equal(array, original)
    assert np.abs(array @ array.T - (np.eye(768) if kind == "clp" else 1.0)).max() < 1e-5
    expected = (
        vectors @ original if kind == "clp" else vectors - np.outer(vectors @ original, original)
    )
    assert np.abs(remapping.apply(vectors) - expected).max() < 1e-5
    # The numbers of the converted file are known by git's hash of the original.
    assert published.has_numbers_of(remapping)
    changed = remapping.source[0].copy()
    changed[0] = np.nextafter(changed[0], np.float32(1))
    assert not published.has_numbers_of(Remapping(kind, (changed,), meta=remapping.meta))
