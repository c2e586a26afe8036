"""Learned metrics: batching changes nothing, blank sides, several references, and what does not fit
together is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import both

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.networks import FEATURES, feature_count
from mtmetrics.models.regressor import Regressor, RegressorSettings
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.learned import LearnedScorer, pair_features
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.words import require_word_scorer

REFERENCES = ["the house is small", "i see a dog", "the cat sleeps", "a tree stands there"]
PREDICTIONS = [
    "a house is small .",
    "not",
    "the cat sleeps",
    "there is the large tree and a dog i see",
]


def artifact(folder: Path, encoder: Path, **options: object) -> Path:
    """A regressor with random weights."""
    torch.manual_seed(3)
    settings = {
        "architecture": "esim",
        "against": "reference",
        "encoder": str(encoder),
        "depth": 3,
        "width": 16,
    }
    settings |= {
        "encoder_fingerprint": TokenEncoder(encoder).fingerprint,
        "hidden": 5,
        "members": 2,
        "floor": -2.0,
    }
    network = Regressor(RegressorSettings(**{**settings, "features": ["f1"], **options}))
    with torch.no_grad():
        for member in network.members:
            member.mix.scores.normal_()
            member.mix.gamma.fill_(3.0)
    network.save(folder)
    return folder


@pytest.fixture
def scorer(tmp_path: Path, tiny_encoder: Path) -> LearnedScorer:
    return load_scorer("esim", regressor=str(artifact(tmp_path / "esim", tiny_encoder)))


def test_each_segment_scores_as_if_alone(
    scorer: LearnedScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scorer.signature.startswith("esim|against:reference|reg:esim#")
    assert (
        f"|enc:{scorer.encoder.label}#{scorer.encoder.fingerprint}|dtype:fp32|" in scorer.signature
    )
    together = scorer.score(PREDICTIONS, references=REFERENCES).segments
    alone = [
        scorer.score([second], references=[first]).system
        for first, second in zip(REFERENCES, PREDICTIONS, strict=True)
    ]
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.ptp(together) > 0.01
    # More segments than are computed at a time.
    times = 300 // len(REFERENCES)
    systems = {"a": PREDICTIONS * times, "b": REFERENCES * times}
    results = scorer.score_systems(systems, references=REFERENCES * times)
    assert results["a"].segments == pytest.approx(np.tile(together, times), abs=1e-5)
    assert results["b"].segments[2] == pytest.approx(together[2], abs=1e-5)


def test_the_members_read_their_own_mix(scorer: LearnedScorer, tiny_encoder: Path) -> None:
    """Computes the score by hand: every layer, mixed and read member by member."""
    layers = TokenEncoder(tiny_encoder, mix=np.eye(3)).encode([REFERENCES[0], PREDICTIONS[0]])
    network, last = (
        scorer.network,
        TokenEncoder(tiny_encoder).encode([REFERENCES[0], PREDICTIONS[0]]),
    )
    sides = []
    for text in (0, 1):
        states = layers.vectors[layers.rows(text)][1:-1].reshape(-1, 3, 16)
        mixed = [
            np.einsum("nld,l->nd", states, row).astype(np.float32) for row in network.mixes()[:2]
        ]
        sides.append([torch.from_numpy(values)[None] for values in mixed])
    features = torch.from_numpy(pair_features(["f1"], [last], np.array([0]), np.array([1])))
    lengths = tuple(torch.tensor([side[0].shape[1]]) for side in sides)
    with torch.no_grad():
        members = zip(network.members, *sides, strict=True)
        scores = [
            member(first, second, lengths, features).item() for member, first, second in members
        ]
    assert scorer.score(PREDICTIONS[:1], references=REFERENCES[:1]).system == pytest.approx(
        np.mean(scores), abs=1e-5
    )


def test_blank_sides_get_the_floor(scorer: LearnedScorer) -> None:
    with pytest.warns(UserWarning, match="blank|empty"):
        result = scorer.score(["", "the house", "a dog"], references=["the house", " ", "a dog"])
    assert result.segments[:2].tolist() == [-2.0, -2.0]
    assert result.empty.tolist() == [True, True, False]
    with pytest.warns(UserWarning, match="blank|empty"):
        assert scorer.score(["the house"], references=[""]).segments.tolist() == [-2.0]


def test_long_texts_are_cut_and_counted(tmp_path: Path, tiny_encoder: Path) -> None:
    short = load_scorer(
        "esim", regressor=str(artifact(tmp_path / "short", tiny_encoder, max_pieces=4))
    )
    with pytest.warns(UserWarning, match="cut"):
        result = short.score([REFERENCES[0]], references=[REFERENCES[0] + " . . . not"])
    assert result.report.truncated == 1
    assert result.system == pytest.approx(
        short.score(REFERENCES[:1], references=REFERENCES[:1]).system, abs=1e-6
    )


def test_another_encoder_is_refused(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = artifact(tmp_path / "other", tiny_encoder, encoder_fingerprint="00000000")
    with pytest.raises(ArtifactError, match="trained on the encoder .*#00000000, not on"):
        load_scorer("esim", regressor=str(folder))


def test_an_encoder_that_is_not_found_may_lie_elsewhere(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = artifact(tmp_path / "moved", tiny_encoder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"encoder": "gone"}))
    with pytest.raises(ArtifactError, match="pass encoder=DIR"):
        load_scorer("esim", regressor=str(folder))
    load_scorer("esim", regressor=str(folder), encoder=str(tiny_encoder))


def test_what_the_regressor_is_not_for_is_refused(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = str(artifact(tmp_path / "source", tiny_encoder, against="source"))
    assert load_scorer("esim", regressor=folder).side == "source"
    with pytest.raises(InputError, match="compares with sources; pass sources"):
        load_scorer("esim", regressor=folder, against="reference")
    with pytest.raises(ArtifactError, match="of the metric esim, not bilstm"):
        load_scorer("bilstm", regressor=folder)
    with pytest.raises(
        ArtifactError, match=r"preset paper: holds no network .*'mtmetrics train regressor"
    ):
        load_scorer("esim", preset="paper")
    with pytest.raises(
        InputError, match="preset mini: holds no network that compares with the source"
    ):
        load_scorer("bilstm", preset="mini", against="source")


def test_a_preset_may_hold_a_network_for_each_target_language(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    artifact(tmp_path / "any", tiny_encoder)
    artifact(tmp_path / "german", tiny_encoder, hidden=4)
    tables = '[regressors.reference]\nmodel = "any"\n[regressors.reference.de]\nmodel = "german"\n'
    (tmp_path / "preset.toml").write_text(tables)
    german = load_scorer("esim", str(tmp_path), lang_pair="en-de")
    assert german.label == "german"
    assert (
        load_scorer("esim", str(tmp_path), lang_pair="de-en").label
        == load_scorer("esim", str(tmp_path)).label
        == "any"
    )
    (tmp_path / "preset.toml").write_text('[regressors.reference.de]\nmodel = "german"\n')
    assert load_scorer("esim", str(tmp_path), lang_pair="en-de").fingerprint == german.fingerprint
    with pytest.raises(
        InputError, match="compares with the reference in en, only in de; train one with"
    ):
        load_scorer("esim", str(tmp_path), lang_pair="de-en")
    (tmp_path / "preset.toml").write_text('[regressors.reference.de]\nmodle = "german"\n')
    with pytest.raises(ArtifactError, match=r"unknown key 'modle' in \[regressors.reference.de\]"):
        load_scorer("esim", str(tmp_path), lang_pair="en-de")


def test_a_damaged_artifact_is_one_message(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = artifact(tmp_path / "damaged", tiny_encoder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="cannot be loaded as regressor"):
        load_scorer("esim", regressor=str(folder))
    folder = artifact(tmp_path / "other-config", tiny_encoder)
    (folder / "config.json").write_text('{"architecture": "esim"}')
    with pytest.raises(ArtifactError, match=r"config\.json is not that of a regressor"):
        load_scorer("esim", regressor=str(folder))


@pytest.mark.parametrize("architecture", ["esim", "bilstm_attention"])
def test_attention_does_not_depend_on_the_batch(
    tmp_path: Path, tiny_encoder: Path, architecture: str
) -> None:
    folder = artifact(tmp_path / "made", tiny_encoder, architecture=architecture)
    scorer = load_scorer(architecture, regressor=str(folder))
    together = scorer.align([*PREDICTIONS, "the house"], references=[*REFERENCES, " "])
    assert (together[4].cells, together[4].source) == ("attention", [])
    for reference, prediction, found in zip(REFERENCES, PREDICTIONS, together, strict=False):
        [alone] = scorer.align([prediction], references=[reference])
        assert found.values == pytest.approx(alone.values, abs=1e-6)
        # Each piece shares 1 out in each direction, and the two are averaged.
        assert found.values.sum() == pytest.approx(sum(found.values.shape) / 2, abs=1e-5)
        assert found.mass == pytest.approx(found.values / found.values.sum())
    assert together[0].source == ["the", "house", "is", "small"]
    with pytest.raises(InputError, match="attention says where a network looks"):
        scorer.faults(PREDICTIONS, together[:4])


def test_a_network_without_attention_aligns_nothing(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = artifact(tmp_path / "made", tiny_encoder, architecture="bilstm")
    with pytest.raises(
        InputError, match="BiLSTM reads each side by itself; use bilstm_attention or esim"
    ):
        require_word_scorer(load_scorer("bilstm", regressor=str(folder)))


def test_features_by_hand(tiny_encoder: Path) -> None:
    encoder = TokenEncoder(tiny_encoder)
    tokens = encoder.encode(["the house", "a dog sleeps there"])
    others, predictions = np.array([0, 0]), np.array([0, 1])
    found = pair_features(FEATURES, [tokens], others, predictions)
    assert found[0] == pytest.approx([1, 1, 1, 1, 0], abs=1e-5)
    # With [CLS] and [SEP], four tokens and six.
    assert found[1, 4] == pytest.approx(np.log(6 / 4), abs=1e-5)
    assert (found[1, :4] < 0.99).all()
    assert pair_features(["length", "f1"], [tokens], others, predictions) == pytest.approx(
        found[:, [2, 4]]
    )
    negative = tokens.map_vectors(lambda vectors: vectors - 1)
    twice = pair_features(FEATURES, [tokens, negative], others, predictions)
    assert twice.shape == (2, feature_count(FEATURES, 2))
    assert twice[:, :4] == pytest.approx(found[:, :4])
    assert twice[1, 4:8] != pytest.approx(found[1, :4], abs=1e-3)
    assert pair_features([], [], others, predictions).shape == (2, 0)


SOURCES = ["not a house", "there is the dog", "the cat", "i stands there"]
BOTH = list(zip(SOURCES, REFERENCES, strict=True))


@pytest.mark.parametrize("architecture", ["bilstm", "bilstm_attention", "esim"])
def test_source_and_reference_are_read_as_one_sequence(
    tmp_path: Path, tiny_encoder: Path, architecture: str
) -> None:
    settings = {"architecture": architecture, "against": "both", "features": None, "members": 1}
    folder = artifact(tmp_path / "both", tiny_encoder, **settings)
    scorer = load_scorer(architecture, regressor=str(folder))
    assert scorer.side == "both"
    result = scorer.score(PREDICTIONS, **both(BOTH))
    assert f"{architecture}|against:both|reg:both#" in result.signature
    expected = []
    for source, reference, prediction in zip(SOURCES, REFERENCES, PREDICTIONS, strict=True):
        tokens = scorer.encoder.encode([source, reference, prediction])
        first, second, last = (
            torch.from_numpy(tokens.vectors[tokens.rows(text)][1:-1]) for text in tokens.index
        )
        sides = torch.cat([first, second])[None], last[None]
        with torch.no_grad():
            lengths = tuple(torch.tensor([side.shape[1]]) for side in sides)
            expected.append(scorer.network.members[0](*sides, lengths).item())
    assert result.segments == pytest.approx(expected, abs=1e-5)
    # One by one, and in another order, as together.
    assert scorer.score(PREDICTIONS[::-1], **both(BOTH[::-1])).segments[::-1] == pytest.approx(
        result.segments, abs=1e-5
    )
    assert scorer.score(PREDICTIONS[3:], **both(BOTH[3:])).segments == pytest.approx(
        result.segments[3:], abs=1e-5
    )
    with pytest.warns(UserWarning, match="blank|empty"):
        blank = scorer.score(
            ["a dog", "a dog", ""], **both([("", "the dog"), ("the dog", " "), BOTH[0]])
        )
    assert blank.segments.tolist() == [-2.0] * 3
    with pytest.raises(InputError, match="^alignments: "):
        require_word_scorer(scorer).align(PREDICTIONS, **both(BOTH))
    with pytest.raises(
        InputError, match=r"^against='reference': .*pass against='both' with them, or another"
    ) as error:
        load_scorer(architecture, regressor=str(folder), against="reference")
    assert "\n" not in str(error.value)


def test_a_preset_for_both_decides(tmp_path: Path, tiny_encoder: Path) -> None:
    artifact(tmp_path / "both", tiny_encoder, architecture="bilstm", against="both", features=None)
    (tmp_path / "preset.toml").write_text('[regressors.both]\nmodel = "both"\n')
    assert load_scorer("bilstm", str(tmp_path)).side_in_signature == "both"
    with pytest.raises(
        InputError, match="holds no network that compares with the reference; train one"
    ):
        load_scorer("bilstm", str(tmp_path), against="reference")
    with pytest.raises(
        InputError, match="preset mini: holds no network that compares with the source and the ref"
    ):
        load_scorer("bilstm", "mini", against="both")
