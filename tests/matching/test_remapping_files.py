"""Where maps come from: folders, the cache, the authors' repository; and which are refused."""

import concurrent.futures
import logging
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import is_local, load_map, map_file_name, map_meta
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.xmoverscore import XMoverScore

NAME = "xmoverscore-published"
DE_EN = "/c0ffee/mapping/layer-3/europarl-v7.de-en.2k.3.BAM"
OF_LAYER_3 = "for layer 3 word maps were published: clp for de-en en-ru; umd for de-en en-ru"
SOURCES, PREDICTIONS = (
    ["das haus ist klein", "ich sehe die katze"],
    ["the house is small", "i see the cat"],
)


@pytest.fixture
def model(tiny_encoder, tmp_path):
    """The tiny encoder in a folder of the name that the published maps are for."""
    return shutil.copytree(tiny_encoder, tmp_path / "preset" / "bert-base-multilingual-cased")


@pytest.fixture
def encoder(model):
    return TokenEncoder(model)


@pytest.fixture
def offline(monkeypatch):
    return lambda value=True: monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", value)


def cached(tmp_path):
    assets = tmp_path / "assets"
    return sorted(
        path.relative_to(assets).as_posix() for path in assets.rglob("*") if path.is_file()
    )


def test_the_way_of_the_paper_preset(published, model, tmp_path, caplog, offline):
    (model.parent / "preset.toml").write_text(
        '[encoder]\nmodel = "bert-base-multilingual-cased"\nlayer = 3\n[maps]\nartifact = '
        f'"{NAME}"\nkind = "clp"\n'
    )
    result = XMoverScore.load(str(model.parent), lang_pair="de-en").score(
        PREDICTIONS, sources=SOURCES
    )
    matrix = np.frombuffer(published.files[DE_EN][-16 * 16 * 4 :], dtype=np.float32).reshape(16, 16)
    expected = XMoverScore(
        TokenEncoder(model), remapping=Remapping("clp", (matrix,)), lang_pair="de-en"
    ).score(PREDICTIONS, sources=SOURCES)
    assert result.segments.tolist() == expected.segments.tolist()
    assert published.requests == [DE_EN]
    [record] = caplog.records
    assert (record.name, record.levelno) == ("mtmetrics", logging.WARNING)
    target = (
        tmp_path / "assets" / "mtmetrics" / NAME / "c0ffee" / "layer-3" / "de-en.clp.safetensors"
    )
    assert record.getMessage() == (
        "fetched the published map europarl-v7.de-en.2k.3.BAM (1 kB) from "
        f"{published.url}{DE_EN}; kept as {target}"
    )
    assert cached(tmp_path) == [target.relative_to(tmp_path / "assets").as_posix()]
    meta = Remapping.load(target).meta
    assert meta.pop("git_blob") in (tmp_path / "catalog" / "catalog.toml").read_text()
    assert meta == {
        "encoder": "google-bert/bert-base-multilingual-cased",
        "layer": "3",
        "lp": "de-en",
        "corpus": "europarl-v7",
        "sentences": "2000",
        "origin": published.url,
        "commit": "c0ffee",
        "licence": "Apache-2.0",
    }
    offline()
    again = XMoverScore.load(str(model.parent), lang_pair="de-en").score(
        PREDICTIONS, sources=SOURCES
    )
    assert (again.signature, again.segments.tolist()) == (
        result.signature,
        result.segments.tolist(),
    )
    assert len(published.requests) == len(caplog.records) == 1


@pytest.mark.parametrize("by_argument", [True, False])
def test_offline_nothing_is_asked(published, encoder, tmp_path, offline, by_argument):
    offline(not by_argument)
    with pytest.raises(ArtifactError) as error:
        load_map(NAME, "de-en", "umd", encoder, local_files_only=by_argument)
    path = tmp_path / "assets" / "mtmetrics" / NAME / "c0ffee" / "layer-3" / "de-en.umd.safetensors"
    assert str(error.value) == (
        f"europarl-v7.de-en.2k.3.GBDD (umd map for de-en, layer 3) is not in the folder {NAME}, "
        f"not bundled, and not at {path}; the network was not asked (HF_HUB_OFFLINE or "
        f"local_files_only); where there is a network, 'mtmetrics artifacts pull {NAME} --lp "
        "de-en' fetches it"
    )
    assert published.requests == []


@pytest.mark.parametrize("place", ["numbers", "metadata", "end"])
def test_a_damaged_copy_is_never_used(published, encoder, tmp_path, caplog, offline, place):
    whole = load_map(NAME, "de-en", "clp", encoder)
    [file] = cached(tmp_path)
    path = tmp_path / "assets" / file
    data = path.read_bytes()
    changed = {
        "numbers": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        "metadata": data.replace(b"europarl", b"europark"),
        "end": data[:-5],
    }
    path.write_bytes(changed[place])
    offline()
    with pytest.raises(ArtifactError, match="not bundled, and damaged at "):
        load_map(NAME, "de-en", "clp", encoder)
    offline(False)
    again = load_map(NAME, "de-en", "clp", encoder)
    assert (again.fingerprint, again.meta) == (whole.fingerprint, whole.meta)
    assert len(published.requests) == len(caplog.records) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [("tampered", "damaged or not the file"), ("html", "a web page"), ("404", "404 Not Found")],
)
def test_a_failed_download_keeps_nothing(published, encoder, tmp_path, fault, message):
    published.faults = [fault]
    message = f"not at .*{message}.* 'mtmetrics artifacts pull {NAME} --lp de-en' fetches it"
    with pytest.raises(ArtifactError, match=message):
        load_map(NAME, "de-en", "clp", encoder)
    assert cached(tmp_path) == []
    assert load_map(NAME, "de-en", "clp", encoder).kind == "clp"


@pytest.mark.parametrize(
    ("pair", "kind", "layer", "offer"),
    [
        ("de-fr", "clp", 3, OF_LAYER_3),
        ("de-fr", "clp+umd", 3, OF_LAYER_3),
        ("en-ru", "clp", 2, "for layer 2 word maps were published: clp for de-en; umd for de-en"),
        ("de-en", "clp", 1, "word maps were published for the layers 2, 3"),
    ],
)
def test_what_was_never_published(published, model, pair, kind, layer, offer):
    with pytest.raises(ArtifactError) as error:
        load_map(NAME, pair, kind, TokenEncoder(model, layer=layer))
    assert str(error.value).startswith(
        f"no {kind} map for language pair {pair} in {NAME}; {offer}; looked as "
    )
    assert (
        f"mtmetrics train maps --encoder {model} --layer {layer} --lp {pair} --map {kind} --parallel"
        in str(error.value)
    )
    assert published.requests == []


def test_a_composition_is_made_of_its_published_steps(published, encoder):
    composed = load_map(NAME, "de-en", "clp+umd", encoder)
    vectors = np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32)
    expected = vectors
    for kind in ("clp", "umd"):
        expected = load_map(NAME, "de-en", kind, encoder).apply(expected)
    np.testing.assert_array_equal(composed.apply(vectors), expected)
    assert composed.kind == "clp+umd"
    assert len(published.requests) == 2


def test_other_models_and_copies(published, tiny_encoder, tmp_path):
    encoder = TokenEncoder(tiny_encoder)
    with pytest.raises(ArtifactError) as error:
        load_map(NAME, "de-en", "clp", encoder)
    [file] = cached(tmp_path)
    path = tmp_path / "assets" / file
    assert str(error.value) == (
        f"map {path}: fitted for google-bert/bert-base-multilingual-cased (fingerprint not "
        f"recorded) layer 3, but the encoder in use is tiny-encoder#{encoder.fingerprint} layer "
        "3; if that is a copy of google-bert/bert-base-multilingual-cased, 'mtmetrics artifacts "
        f"import {path} --encoder FOLDER --out DIR' binds the map to it"
    )


def test_many_at_once(published, encoder, tmp_path):
    found, start = [], threading.Barrier(8)

    def load():
        start.wait()
        found.append(load_map(NAME, "de-en", "clp", encoder).fingerprint)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        for future in [threads.submit(load) for _ in range(8)]:
            future.result()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(cached(tmp_path)) == 1


class Sentences:
    """Stands for a sentence encoder, which has no layer to choose."""

    name, label, fingerprint, layer = "models/labse", "labse", "01234567", None


def test_sentence_maps_are_kept_apart(tmp_path):
    assert map_file_name("de-en", "clp", "sentence") == "de-en.sentence-clp.safetensors"
    meta = {"encoder": "labse", "encoder_fingerprint": "01234567", "layer": "none", "lp": "de-en"}
    fitted = Remapping("clp", (np.eye(4),), meta=meta | {"level": "sentence"})
    fitted.save(tmp_path / map_file_name("de-en", "clp", "sentence"))
    assert load_map(tmp_path, "de-en", "clp", Sentences(), level="sentence").level == "sentence"
    with pytest.raises(
        ArtifactError, match="no clp map for language pair de-en in .*; looked as a folder"
    ):
        load_map(tmp_path, "de-en", "clp", Sentences())
    message = "fitted on sentence vectors, but word vectors are to be mapped; .*--level word"
    with pytest.raises(ArtifactError, match=message):
        load_map(tmp_path / "de-en.sentence-clp.safetensors", "de-en", "clp", Sentences())
    message = "no sentence-umd map .*: mtmetrics train maps --encoder models/labse --level sentence --lp de-en"
    with pytest.raises(ArtifactError, match=message):
        load_map(tmp_path, "de-en", "umd", Sentences(), level="sentence")
    message = "no sentence-clp map .* it has sentence-clp for: de-en; looked as a folder"
    with pytest.raises(ArtifactError, match=message):
        load_map(tmp_path, "fi-en", "clp", Sentences(), level="sentence")
    with pytest.raises(InputError, match="level 'token': must be one of word, sentence"):
        load_map(tmp_path, "de-en", "clp", Sentences(), level="token")


def test_published_maps_are_word_maps(published, encoder):
    message = (
        "no sentence-clp map for language pair de-en in .* for layer 3 word maps were published"
    )
    with pytest.raises(ArtifactError, match=message):
        load_map(NAME, "de-en", "clp", encoder, level="sentence")
    with pytest.raises(ArtifactError, match="word maps were published for the layers 2, 3"):
        load_map(NAME, "de-en", "clp", Sentences())
    assert published.requests == []


def test_a_folder_with_layers(tmp_path, model):
    for layer in (2, 3):
        meta = {"encoder": "x/bert-base-multilingual-cased", "layer": str(layer), "lp": "de-en"}
        folder = tmp_path / "maps" / f"layer-{layer}"
        folder.mkdir(parents=True)
        Remapping("umd", (np.eye(16)[layer],), meta=meta).save(folder / "de-en.umd.safetensors")
    for layer in (2, 3):
        assert (
            load_map(tmp_path / "maps", "de-en", "umd", TokenEncoder(model, layer=layer))
            .source[0]
            .argmax()
            == layer
        )


def test_a_folder_serves_both_directions_and_compositions(tmp_path, encoder):
    generator = np.random.default_rng(0)
    pairs = generator.normal(size=(2, 40, 16))
    meta = map_meta(encoder, "de-en")
    clp, umd = (Remapping.fit(kind, *pairs, meta) for kind in ("clp", "umd"))
    clp.save(tmp_path / "de-en.clp.safetensors")
    umd.save(tmp_path / "de-en.umd.safetensors")
    back = load_map(tmp_path, "en-de", "clp", encoder)
    assert back.meta["lp"] == "en-de"
    np.testing.assert_array_equal(back.source[0], clp.source[0].T)
    vectors = generator.normal(size=(5, 16)).astype(np.float32)
    composed = load_map(tmp_path, "en-de", "clp+umd", encoder)
    np.testing.assert_array_equal(composed.apply(vectors), umd.apply(back.apply(vectors)))
    fitted = Remapping.fit("clp+umd", *pairs, meta)
    fitted.save(tmp_path / "de-en.clp+umd.safetensors")
    loaded = load_map(tmp_path, "de-en", "clp+umd", encoder)
    assert loaded.fingerprint == fitted.fingerprint


def test_an_unknown_artifact_and_a_cache_that_cannot_be_made(published, encoder, tmp_path):
    message = (
        "no clp map for language pair de-en in nowhere; looked as a folder, as a bundled artifact; "
    )
    with pytest.raises(ArtifactError, match=message):
        load_map("nowhere", "de-en", "clp", encoder)
    (tmp_path / "assets").write_text("")
    with pytest.raises(ArtifactError, match=f"the cache for {NAME} cannot be made .*; set HF_HOME"):
        load_map(NAME, "de-en", "clp", encoder)


def test_maps_are_here_once_one_was_fetched(published, encoder, tmp_path, monkeypatch):
    assert not is_local(NAME)
    assert not is_local(NAME)  # asking makes the cache's folder, not a map
    load_map(NAME, "de-en", "clp", encoder)
    assert is_local(NAME)
    # Maps of a repository lie in the cache of the Hub.
    with open(tmp_path / "catalog" / "catalog.toml", "a") as stream:
        stream.write(
            '[maps]\nkind = "maps"\nrepository = "org/maps"\nrevision = "v1"\nbundled = false\n'
            '[maps.files]\n"de-en.clp.safetensors" = "00"\n'
        )
    hub_cache = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub_cache))
    assert not is_local("maps")
    snapshot = hub_cache / "models--org--maps" / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (snapshot / "de-en.clp.safetensors").write_bytes(b"")
    reference = hub_cache / "models--org--maps" / "refs" / "v1"
    reference.parent.mkdir()
    reference.write_text("c0ffee")
    assert is_local("maps")
    (tmp_path / "folder").mkdir()
    assert is_local(tmp_path / "folder")
    assert not is_local("nowhere")


def test_the_pool_passes_local_files_only(published, model):
    (model.parent / "preset.toml").write_text(
        f'[encoder]\nmodel = "{model}"\n[maps]\nartifact = "{NAME}"\nkind = "clp"\n'
    )
    with pytest.raises(ArtifactError, match="the network was not asked"):
        XMoverScore.load(
            str(model.parent), lang_pair="de-en", pool=ModelPool(local_files_only=True)
        )


def test_the_example_of_published_maps_that_ships_with_the_package(encoder):
    """Layer 8 of multilingual BERT, width 768, of which the tests have no model."""
    read = SimpleNamespace(label=encoder.label, name=encoder.label, fingerprint="00000000", layer=8)
    vectors = np.random.default_rng(0).normal(size=(5, 768)).astype(np.float32)
    for pair in ("de-en", "ru-en"):
        removed = load_map("xmoverscore-maps-example", pair, "umd", read, local_files_only=True)
        assert np.linalg.norm(removed.source[0]) == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(removed.apply(vectors) @ removed.source[0], 0, atol=1e-4)
        assert removed.meta["licence"] == "Apache-2.0"
    with pytest.raises(ArtifactError, match="layer"):
        load_map(
            "xmoverscore-maps-example",
            "de-en",
            "umd",
            SimpleNamespace(**{**vars(read), "layer": 12}),
        )
