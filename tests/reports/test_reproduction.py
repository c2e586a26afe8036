"""``mtmetrics doctor --scores``: the bundled metrics give the scores here that are stored of
them."""

import tomllib

import pytest

from mtmetrics.artifacts.presets import preset_toml
from mtmetrics.models.devices import NumberFormat
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports import reproduction


def test_this_machine_gives_the_stored_scores(mtmetrics, no_sockets) -> None:
    code, out, err = mtmetrics("doctor", "--scores", "--device", "cpu")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 12)
    assert all(
        line.startswith("ok    ") and line.endswith("of the stored scores") for line in lines
    )


def test_what_differs_is_named(monkeypatch, mtmetrics, tmp_path) -> None:
    stored = tomllib.loads(reproduction._STORED.read_text(encoding="utf-8"))
    [kept, changed, other] = (
        "bertr/mini against source",
        "bertr/mini against reference",
        "distilscore/mini against source",
    )
    stored[changed]["scores"][3] += 0.01
    stored[other]["signature"] += "|layer:9"
    path = tmp_path / "stored.toml"
    path.write_text(preset_toml({}, {f'"{name}"': stored[name] for name in (kept, changed, other)}))
    monkeypatch.setattr(reproduction, "_STORED", path)
    real = reproduction.measured
    monkeypatch.setattr(
        reproduction,
        "METRICS",
        {name: reproduction.METRICS[name] for name in ("bertr", "distilscore")},
    )
    assert [name for name, _ in real(ModelPool(device="cpu"))][:2] == [kept, changed]
    code, out, _ = mtmetrics("doctor", "--scores", "--device", "cpu")
    found = {line[6:].split(":")[0]: line for line in out.splitlines()}
    assert code == 1
    assert found[kept].startswith("ok")
    assert found[changed].startswith("FAIL")
    assert "within 1.0e-02 of the stored scores" in found[changed]
    assert found[other] == f"FAIL  {other}: is not the metric that scores are stored of"
    # Float32 has no more tolerance if `auto` chose it.
    float32 = NumberFormat("float32", "")
    monkeypatch.setattr("mtmetrics.models.pool.number_format", lambda *_: float32)
    automatic = mtmetrics("doctor", "--scores", "--device", "cpu", "--dtype", "auto")[1]
    assert found[changed] in automatic.splitlines()


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
