"""Fixtures of the tests of commands."""

import hashlib
import shutil

import numpy as np
import pytest
from helpers import HUMAN, PREDICTIONS, SOURCES, write, write_jsonl

from mtmetrics import layout
from mtmetrics.artifacts import presets
from mtmetrics.artifacts.catalog import CatalogEntry, entry_toml
from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.token_encoder import TokenEncoder


@pytest.fixture
def bundle(tmp_path, monkeypatch, tiny_encoder, tiny_lm):
    """A package folder with bundled artifacts, a catalog, and `mini` as the only preset."""
    package = tmp_path / "package"
    artifacts = package / "hub_artifacts"
    shutil.copytree(tiny_encoder, artifacts / "tiny-encoder")
    shutil.copytree(tiny_lm, artifacts / "tiny-lm")
    (artifacts / "tiny-maps").mkdir()
    encoder = TokenEncoder(artifacts / "tiny-encoder")
    meta = {"encoder_fingerprint": encoder.fingerprint, "layer": str(encoder.layer), "lp": "de-en"}
    vectors = np.random.default_rng(0).normal(size=(2, 40, encoder.dim))
    Remapping.fit("clp", *vectors, meta=meta).save(
        artifacts / "tiny-maps" / "de-en.clp.safetensors"
    )
    entries = [CatalogEntry("big-maps", "maps", "org/big-maps", "v1.0.0", False, {"a": "00"})]
    for name, kind in {
        "tiny-maps": "maps",
        "tiny-lm": "language-model",
        "tiny-encoder": "encoder",
    }.items():
        files = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (artifacts / name).iterdir()
        }
        entries.insert(0, CatalogEntry(name, kind, f"org/{name}", "v1.0.0", True, files))
    (artifacts / "catalog.toml").write_text("\n".join(map(entry_toml, entries)))
    shutil.copytree(layout.metric_scripts(), package / "metric_scripts")
    settings = '[encoder]\nmodel = "tiny-encoder"\n[maps]\nartifact = "tiny-maps"\nkind = "clp"\n'
    settings += '[language_models.en]\nmodel = "tiny-lm"\n'
    write(tmp_path / "presets" / "xmoverscore" / "mini.toml", settings)
    monkeypatch.setattr(layout, "_PACKAGE", package)
    monkeypatch.setattr(presets, "_FOLDER", tmp_path / "presets")
    return artifacts


@pytest.fixture
def preset(tmp_path, tiny_encoder, tiny_lm):
    models = (
        f'[encoder]\nmodel = "{tiny_encoder}"\n[language_models.en]\nmodel = "{tiny_lm}"\nweight '
        "= 0.5\n"
    )
    return write(tmp_path / "preset" / "preset.toml", f'metric = "xmoverscore"\n{models}').parent


@pytest.fixture
def data(tmp_path):
    """Writes judged segments with a reference, a column of scores, and sources that two segments
    share."""

    def judged(name="set.jsonl", lang_pair="de-en", **changes):
        rows = [
            {
                "lp": lang_pair,
                "source": source,
                "translation": text,
                "translation_tok": text.upper(),
                "human": human,
            }
            | {"reference": text[:9], "sid": i // 2, "sentbleu": human / 2}
            for i, (source, text, human) in enumerate(zip(SOURCES, PREDICTIONS, HUMAN, strict=True))
        ]
        rows[-1] |= changes
        return str(write_jsonl(tmp_path / name, rows))

    return judged


@pytest.fixture
def table(mtmetrics, data):
    """Runs the command on two language pairs, without a metric."""
    paths = [data(f"{pair}.jsonl", pair) for pair in ("de-en", "fi-en")]
    return lambda *arguments: mtmetrics("evaluate", *arguments, "--data", *paths)
