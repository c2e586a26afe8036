"""How often people agree with a difference: what is fitted, what a preset says of it, and when it
says nothing."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write, write_jsonl

from mtmetrics.artifacts.presets import preset_toml
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.reports.human_agreement import (
    AgreementCurve,
    SystemMeans,
    bare_signature,
    fit_agreement,
    known_agreement,
)
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.spec import MetricSpec

SOURCES = ["Das Haus ist klein.", "Der Hund schläft.", "Nein.", "ich sehe die Katze"]
OUTPUTS = {
    "good": ["the house is small.", "the dog sleeps.", "no.", "i see the cat"],
    "bad": ["a tree stands there", "the house", "yes yes yes", "dog sleeps not"],
}


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtmetrics.reports.human_agreement._RESAMPLES", 60)


def made(noise: float, sets: int = 6, systems: int = 12) -> list[SystemMeans]:
    """Systems whose metric follows people with some noise."""
    rng = np.random.default_rng(3)
    found = []
    for number in range(sets):
        human = rng.normal(size=systems)
        found.append(SystemMeans(f"x{number}-en", human + noise * rng.normal(size=systems), human))
    return found


def test_people_agree_more_the_larger_the_difference_and_the_smaller_the_noise() -> None:
    loud, quiet = fit_agreement(made(2.0)), fit_agreement(made(0.3))
    for curve in (loud, quiet):
        assert curve.agreement[0] == 0.5
        assert (np.diff(curve.agreement) >= 0).all()
        assert (curve.low <= curve.agreement + 1e-9).all()
        assert (curve.agreement <= curve.high + 1e-9).all()
        assert curve.comparisons == 6 * 66
        assert curve.isotonic < 0.1
    assert quiet.at(0.5).value > 0.75 > loud.at(0.5).value
    assert quiet.at(-0.5) == quiet.at(0.5)


def test_the_fit_is_near_the_share_that_agrees() -> None:
    sets = made(0.8, sets=40)
    curve = fit_agreement(sets)
    near = []
    for _, metric, human in sets:
        i, j = np.triu_indices(len(metric), 1)
        difference = metric[i] - metric[j]
        chosen = np.abs(np.abs(difference) - 1.0) < 0.1
        near.append(((difference > 0) == (human[i] > human[j]))[chosen])
    share = np.concatenate(near).mean()
    assert curve.at(1.0).value == pytest.approx(share, abs=0.04)


def test_it_says_nothing_of_differences_that_were_not_seen() -> None:
    curve = fit_agreement(made(0.3))
    assert curve.at(curve.difference[-1]) is not None
    assert curve.at(curve.difference[-1] * 1.01) is None


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(InputError, match="28 pairs of systems; at least 30 are needed"):
        fit_agreement(made(0.3, sets=1, systems=8))
    constant = [SystemMeans("de-en", np.zeros(9), np.arange(9.0))]
    with pytest.raises(InputError, match="the systems' scores do not differ"):
        fit_agreement(constant)


@pytest.fixture
def curve() -> AgreementCurve:
    grid = np.linspace(0.0, 0.5, 3)
    lines = (np.array([0.5, 0.7, 0.8]), np.array([0.5, 0.6, 0.7]), np.array([0.5, 0.8, 0.9]))
    return AgreementCurve(("de-en",), 99, grid, *lines, 0.02, "some systems", "")


@pytest.fixture
def preset(curve, tiny_encoder, tmp_path):
    """Writes a preset of BERTR with a curve of its scores, and returns the folder."""

    def written(**changes) -> Path:
        folder = tmp_path / "preset"
        write(
            folder / "preset.toml",
            preset_toml({"metric": "bertr"}, {"encoder": {"model": str(tiny_encoder)}}),
        )
        signature = bare_signature(
            load_scorer("bertr", str(folder), lang_pair="de-en", against="source").signature
        )
        table = dataclasses.replace(curve, signature=signature).as_table() | changes
        with open(folder / "preset.toml", "a") as stream:
            stream.write("\n" + preset_toml({}, {"agreement.source": table}))
        return folder

    return written


def asked(folder: Path, lang_pair: str = "de-en", **options: object) -> object:
    spec = MetricSpec("bertr", str(folder), tuple({"against": "source", **options}.items()))
    scorer = load_scorer("bertr", str(folder), lang_pair=lang_pair, **dict(spec.options))
    return known_agreement(spec, scorer)


def test_a_preset_says_it_of_its_own_scores_and_languages_only(preset) -> None:
    folder = preset()
    found = asked(folder)
    assert isinstance(found, AgreementCurve)
    assert found.at(0.25) == pytest.approx((0.7, 0.6, 0.8))
    assert asked(folder, "fr-en") == "not calibrated for this pair of languages (de-en)"
    assert asked(folder, layer=1) == "not calibrated for these options"
    assert asked(folder, against="reference") is None


def test_a_damaged_table_is_named(preset) -> None:
    with pytest.raises(ArtifactError, match=r"the table \[agreement\] cannot be read"):
        asked(preset(low=["x", "y", "z"]))


def test_compare_says_how_often_people_agree(preset, mtmetrics, tmp_path) -> None:
    rows = [
        {"source": source, "outputs": {name: texts[number] for name, texts in OUTPUTS.items()}}
        for number, source in enumerate(SOURCES)
    ]
    data = write_jsonl(tmp_path / "systems.jsonl", rows * 25)
    call = (
        "compare",
        "--metric",
        f"bertr:{preset()}:against=source",
        "--metric",
        "source_length",
        data,
    )
    code, out, _ = mtmetrics(*call, "--lp", "de-en", "--format", "json")
    bertr, length = json.loads(out)["metrics"]
    [pair] = bertr["pairs"]
    size = pair["difference"]
    assert code == 0
    assert pair["people_agree"]["value"] == pytest.approx(
        np.interp(size, [0, 0.25, 0.5], [0.5, 0.7, 0.8]), rel=1e-4
    )
    assert bertr["agreement"].startswith(
        "fitted on 99 pairs of systems, some systems, for differences up to 0.5"
    )
    assert (length["pairs"][0]["people_agree"], "agreement" in length) == (None, False)
    code, out, _ = mtmetrics(*call, "--lp", "de-en", "--format", "markdown")
    share = f"{100 * pair['people_agree']['value']:.0f} ["
    assert share in out.split("How often people agree")[1]
    code, out, _ = mtmetrics(*call, "--lp", "fr-en", "--format", "markdown")
    assert "people's agreement: not calibrated for this pair of languages (de-en)" in out
    write_jsonl(data, rows * 24)
    code, out, _ = mtmetrics(*call, "--lp", "de-en", "--format", "markdown")
    assert "people's agreement: not said of fewer than 100 segments" in out
    assert "How often people agree" not in out


def test_evaluate_fits_it_and_writes_a_preset(mtmetrics, tiny_preset, tmp_path) -> None:
    systems = {f"s{number}": number for number in range(9)}
    outputs = {
        name: [*OUTPUTS["good"][: number % 5], *OUTPUTS["bad"]][:4]
        for name, number in systems.items()
    }
    for pair in ("de-en", "fi-en"):
        judged = [
            {"lp": pair, "system": name, "human": float(number % 5) + number / 10}
            for name, number in systems.items()
        ]
        write_jsonl(tmp_path / f"{pair}.jsonl", judged)
        rows = [
            {
                "lp": pair,
                "sid": i,
                "source": source,
                "reference": OUTPUTS["good"][i],
                "outputs": {n: t[i] for n, t in outputs.items()},
            }
            for i, source in enumerate(SOURCES)
        ]
        write_jsonl(tmp_path / f"{pair}.outputs.jsonl", rows)
    data = [tmp_path / f"{pair}.jsonl" for pair in ("de-en", "fi-en")]
    metric = f"xmoverscore:{tiny_preset}:map=none"
    call = ("evaluate", "--metric", metric, "--level", "system", "--device", "cpu", "--data", *data)
    code, _, err = mtmetrics(*call, "--agreement", tmp_path / "known")
    assert code == 0
    assert "people's agreement: fitted on 72 pairs of systems, de-en.jsonl fi-en.jsonl" in err
    spec = MetricSpec.parse(f"xmoverscore:{tmp_path / 'known'}")
    found = known_agreement(spec, load_scorer("xmoverscore", spec.preset, lang_pair="de-en"))
    assert isinstance(found, AgreementCurve)
    assert mtmetrics(*call, "--parts", "--agreement", tmp_path / "same")[0] == 0
    curves = [(tmp_path / name / "preset.toml").read_text() for name in ("known", "same")]
    assert curves[0] == curves[1]
    refused(
        mtmetrics(*call, "--agreement", tmp_path / "known"),
        "known: exists already; choose another name",
    )
    chrf = (
        "evaluate",
        "--metric",
        "chrf",
        "--level",
        "system",
        "--data",
        *data,
        "--agreement",
        tmp_path / "no",
    )
    refused(mtmetrics(*chrf), "--agreement: chrf has no presets")
    segments = ("evaluate", "--metric", metric, "--data", *data, "--agreement", tmp_path / "no")
    refused(mtmetrics(*segments), "--agreement is fitted for one metric and --level system")
