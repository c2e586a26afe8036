"""A production of UScore on the Hub: a repository for each model, and a preset that names them at
their versions."""

import hashlib
import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from hub_client import Client
from loopback import Content, LoopbackHub, Repository
from safetensors.numpy import save_file

from mtmetrics.artifacts.adapters import bind, write_settings
from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.models import model_fingerprint
from mtmetrics.layout import bundled_artifacts
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name, map_meta
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import load_scorer

PUBLISH = """
import json, sys
from pathlib import Path
from mtmetrics.uscore.publication import publish_production

print(json.dumps([[done.publication.repository, done.tag] for done in publish_production(Path(sys.argv[1]), "org")]))
"""
SCORE = """
import json
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer

scorer = load_scorer("uscore", preset="org/my-uscore", lang_pair="de-en", pool=ModelPool(device="cpu"))
print(json.dumps(scorer.score(["the house", "a dog"], sources=["das haus", "der hund"]).segments.tolist()))
"""
RESULT = {
    "task": {"type": "t"},
    "dataset": {"type": "d", "name": "D"},
    "metrics": [{"type": "pearsonr", "value": 0.5}],
}
HEAD = {
    "license": "cc-by-4.0",
    "language": ["de", "en"],
    "library_name": "mtmetrics",
    "tags": ["uscore"],
}
HEAD |= {
    "base_model": [],
    "datasets": [],
    "metrics": ["pearsonr"],
    "model-index": [{"name": "u", "results": [RESULT]}],
}


def front_matter(hub: LoopbackHub, name: str) -> dict:
    """The metadata of a card on the Hub."""
    return yaml.safe_load(hub[name].files()["README.md"].decode().split("---\n")[1])


def listed_models(card: str) -> list[tuple[str, ...]]:
    """Repository, revision, hash and licence of each row of the table of models in a card; the
    links are checked."""
    rows = []
    for line in card.partition("## Models\n")[2].splitlines():
        if line.startswith("| ") and not line.startswith("| part"):
            _, link, revision, fingerprint, licence = (
                cell.strip(" `") for cell in line.strip("|").split("|")
            )
            name = link.partition("]")[0].lstrip("[")
            assert link == f"[{name}](https://huggingface.co/{name}/tree/{revision})"
            rows.append((name, revision, fingerprint, licence))
    return rows


@pytest.fixture
def production(tiny_encoder, tiny_lm, tmp_path: Path) -> Path:
    """A folder as `produce_uscore` makes it."""
    folder = tmp_path / "my-uscore"
    for part, model in {
        "encoder": tiny_encoder,
        "sentences": tiny_encoder,
        "language_model": tiny_lm,
    }.items():
        shutil.copytree(model, folder / part)
    (folder / "language_model" / "README.md").write_text(
        "---\nlicense: mit\n---\n\n# Of somebody else\n"
    )
    encoder = TokenEncoder(folder / "encoder", layer=2)
    (folder / "maps").mkdir()
    matrix, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))
    Remapping("clp", (matrix,), meta=map_meta(encoder, "de-en")).save(
        folder / "maps" / map_file_name("de-en", "clp")
    )
    (folder / "preset.toml").write_text(
        'metric = "uscore"\nlang_pair = "de-en"\n\n'
        '[encoder]\nmodel = "encoder"\nlayer = 2\n\n[maps]\nartifact = "maps"\nkind = "clp"\n\n'
        '[sentences]\nmodel = "sentences"\n\n[language_models.en]\nmodel = "language_model"\n\n'
        '[score]\nwithout = ["translation"]\n'
    )
    text = (
        "## Use\n\n```bash\nmtmetrics score --preset DIR\n```\n\n`DIR` is this folder.\n\n## "
        "Limits\n"
    )
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(HEAD)}---\n\n{text}")
    start = {"encoder": encoder.fingerprint, "sentences": "org/begun#12345678", "translation": None}
    (folder / "config.json").write_text(json.dumps({"start": start}))
    (folder / "work").mkdir()
    (folder / "work" / "mined.jsonl").write_text("private")
    return folder


def test_models_and_preset_are_repositories_that_name_each_other(
    hub: LoopbackHub, production, tmp_path
) -> None:
    client = Client(hub, tmp_path / "first")
    parts = [
        "org/my-uscore-encoder",
        "org/my-uscore-maps",
        "org/my-uscore-sentences",
        "org/my-uscore-language-model",
    ]
    made = json.loads(client.run(PUBLISH, str(production)))
    assert made == [[name, "v2.0.0"] for name in (*parts, "org/my-uscore")]
    assert set(hub["org/my-uscore"].files()) == {
        ".gitattributes",
        "README.md",
        "config.json",
        "preset.toml",
    }
    preset = tomllib.loads(hub["org/my-uscore"].files()["preset.toml"].decode())
    assert preset["sentences"] == {"model": "org/my-uscore-sentences", "revision": "v2.0.0"}
    own_map = Remapping.load(production / "maps" / map_file_name("de-en", "clp"))
    pinned = {"revision": "v2.0.0", "fingerprint": own_map.fingerprint}
    assert preset["maps"] == {"artifact": "org/my-uscore-maps", "kind": "clp", **pinned}
    heads = {name: front_matter(hub, name) for name in parts}
    assert [heads[name]["license"] for name in parts] == [
        "unknown",
        "cc-by-4.0",
        "cc-by-4.0",
        "mit",
    ]
    # The agreement is that of the metric, not of its parts.
    assert [(heads[name]["metrics"], "model-index" in heads[name]) for name in parts] == [
        ([], False)
    ] * 4
    assert front_matter(hub, "org/my-uscore")["model-index"] == HEAD["model-index"]
    assert heads["org/my-uscore-sentences"]["base_model"] == ["org/begun"]
    assert heads["org/my-uscore-maps"]["base_model"] == ["org/my-uscore-encoder"]
    assert preset["language_models"]["en"]["model"] == "org/my-uscore-language-model"
    card = hub["org/my-uscore"].files()["README.md"].decode()
    assert "--preset org/my-uscore\n" in card
    assert "`DIR`" not in card
    folders = [production / part for part in ("encoder", "sentences", "language_model")]
    encoder, sentences, language_model = map(model_fingerprint, folders)
    rows = [
        ("org/my-uscore-encoder", "v2.0.0", encoder, "unknown"),
        ("org/my-uscore-maps", "v2.0.0", own_map.fingerprint, "cc-by-4.0"),
        ("org/my-uscore-sentences", "v2.0.0", sentences, "cc-by-4.0"),
        ("org/my-uscore-language-model", "v2.0.0", language_model, "mit"),
    ]
    assert listed_models(card) == rows
    copied = hub["org/my-uscore-language-model"].files()["README.md"].decode()
    assert "unchanged copy" in copied
    assert "# Of somebody else" in copied
    for name in parts:
        assert (
            "[org/my-uscore](https://huggingface.co/org/my-uscore)"
            in hub[name].files()["README.md"].decode()
        )
    sources, texts = ["das haus", "der hund"], ["the house", "a dog"]
    own = (
        load_scorer("uscore", preset=str(production), lang_pair="de-en")
        .score(texts, sources=sources)
        .segments.tolist()
    )
    assert json.loads(Client(hub, tmp_path / "second").run(SCORE, HF_TOKEN="")) == pytest.approx(
        own, abs=1e-6
    )
    # Published again, nothing is new, and no version is counted up.
    commits = {name: len(hub[name].commits) for name in (*parts, "org/my-uscore")}
    assert json.loads(client.run(PUBLISH, str(production))) == made
    assert {name: len(hub[name].commits) for name in commits} == commits


def test_adapters_name_the_repository_of_their_encoder(
    hub: LoopbackHub, production, tmp_path
) -> None:
    encoder, adapters = production / "encoder", production / "sentences"
    shutil.rmtree(adapters)
    adapters.mkdir()
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 4}
    write_settings(adapters, settings, encoder, model_fingerprint(encoder))
    bind(adapters, "../encoder")
    module = "base_model.model.encoder.layer.2.output.dense"
    matrices = {"A": (2, 32), "B": (16, 2)}
    generator = np.random.default_rng(0)
    tensors = {
        f"{module}.lora_{name}.weight": generator.normal(size=shape).astype(np.float32)
        for name, shape in matrices.items()
    }
    save_file(tensors, adapters / "adapter_model.safetensors")
    own = load_scorer("uscore", preset=str(production), lang_pair="de-en")
    Client(hub, tmp_path / "first").run(PUBLISH, str(production))
    files = hub["org/my-uscore-sentences"].files()
    pushed = json.loads(files["adapter_config.json"].decode())
    assert pushed["base_model_name_or_path"] == "org/my-uscore-encoder"
    assert pushed["revision"] == "v2.0.0"
    sources, texts = ["das haus", "der hund"], ["the house", "a dog"]
    scores = own.score(texts, sources=sources).segments.tolist()
    elsewhere = Client(hub, tmp_path / "second").run(SCORE, HF_TOKEN="")
    assert json.loads(elsewhere) == pytest.approx(scores, abs=1e-6)


def added(hub: LoopbackHub, name: str, files: dict[str, bytes]) -> str:
    """Commits files to a repository of somebody else, and returns the commit."""
    repository = hub.repositories.setdefault(("models", name), Repository("models", name))
    contents = {
        path: Content(data, hashlib.sha256(data).hexdigest() if "safetensors" in path else None)
        for path, data in files.items()
    }
    return repository.commit("main", contents)


def named_models(production: Path, encoder: str, language_model: str) -> None:
    """Has the preset of a production name models that lie elsewhere, instead of copies."""
    (production / "preset.toml").write_text(
        'metric = "uscore"\nlang_pair = "de-en"\n\n'
        f'[encoder]\nmodel = "{encoder}"\nlayer = 2\n\n'
        f"[language_models.en]\n{language_model}\n\n"
        '[score]\nwithout = ["sentences", "translation"]\n'
    )
    for part in ("encoder", "maps", "sentences", "language_model"):
        shutil.rmtree(production / part)


def test_models_that_lie_elsewhere_are_listed_and_pinned(
    hub: LoopbackHub, production, tiny_lm, tmp_path
) -> None:
    """A bundled encoder by the catalog, a language model of the Hub by its commit."""
    files = {path.name: path.read_bytes() for path in tiny_lm.iterdir()}
    files["README.md"] = b"---\nlicense: other\nlicense_name: lm-terms\n---\n"
    commit = added(hub, "other/lm", files)
    named_models(production, "mini-encoder", 'model = "other/lm"\nlength_power = 0.5')
    client = Client(hub, tmp_path / "first")
    assert json.loads(client.run(PUBLISH, str(production))) == [["org/my-uscore", "v2.0.0"]]
    pinned = catalog()["mini-encoder"]
    encoder = model_fingerprint(bundled_artifacts() / "mini-encoder")
    assert listed_models(hub["org/my-uscore"].files()["README.md"].decode()) == [
        (pinned.repository, pinned.revision, encoder, "mixed-training-data"),
        ("other/lm", commit, model_fingerprint(tiny_lm), "lm-terms"),
    ]
    preset = tomllib.loads(hub["org/my-uscore"].files()["preset.toml"].decode())
    assert preset["encoder"] == {"model": "mini-encoder", "layer": 2}
    table = {"model": "other/lm", "length_power": 0.5, "revision": commit}
    assert preset["language_models"]["en"] == table
    # Whoever loads the preset gets this commit, whatever comes after it.
    added(hub, "other/lm", {**files, "config.json": b"{}"})
    assert len(json.loads(Client(hub, tmp_path / "second").run(SCORE, HF_TOKEN=""))) == 2


@pytest.mark.parametrize("change", ["another name", "another file"])
def test_models_that_nobody_else_can_load_are_refused(
    hub: LoopbackHub, production, tmp_path, change
) -> None:
    artifacts = tmp_path / "artifacts"
    name = "my-encoder" if change == "another name" else "mini-encoder"
    shutil.copytree(bundled_artifacts() / "mini-encoder", artifacts / name)
    (artifacts / name / "training.json").write_text("{}")
    named_models(production, name, 'model = "mini-lm-en"')
    environment = {"MTMETRICS_ARTIFACTS": str(artifacts)}
    process = Client(hub, tmp_path / "home").start(PUBLISH, str(production), **environment)
    assert process.wait() == 1
    _, err = process.outputs()
    wrong = {
        "another name": f"[encoder]: my-encoder is in {artifacts / name} alone",
        "another file": "[encoder]: mini-encoder is not the catalog's (mini-encoder/training.json",
    }
    assert f"ArtifactError: {wrong[change]}" in err
    assert not hub.repositories


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--publish", "org"],
            "--publish: --license is missing: under which licence others may use the weights",
        ),
        (
            ["--publish", "org", "--license", "mit"],
            "--publish: --judged is missing: the card states how far",
        ),
        (
            ["--publish", "no such org"],
            "--publish no such org: with --out, no such org/made is no repository",
        ),
    ],
)
def test_what_cannot_be_published_is_refused_before_the_work(
    mtmetrics, tmp_path, options, message
) -> None:
    given = [
        "train",
        "uscore",
        "--lp",
        "de-en",
        "--source-text",
        "de.txt",
        "--target-text",
        "en.txt",
    ]
    code, _, err = mtmetrics(*given, "--out", tmp_path / "made", *options)
    assert code == 2
    assert err.startswith(f"mtmetrics: {message}")
    assert not (tmp_path / "made").exists()
