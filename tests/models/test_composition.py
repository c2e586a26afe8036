"""ESIM with a composition by transformer layers: the network by itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mtmetrics.models.composition import SIDES, ComposedInference, Composition
from mtmetrics.models.regressor import Regressor, RegressorSettings
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.learned import ESIM

SIZES = Composition(layer=2, begun_from=[3, 3], heads=2, inner=32)


@pytest.fixture
def network(tiny_encoder: Path) -> Regressor:
    torch.manual_seed(3)
    encoder = TokenEncoder(tiny_encoder)
    settings = {
        "encoder": encoder.label,
        "encoder_fingerprint": encoder.fingerprint,
        "depth": 3,
        "width": 16,
    }
    settings |= {"hidden": 8, "floor": -4.0, "composition": SIZES}
    found = Regressor(RegressorSettings(architecture="esim", against="either", **settings))
    with torch.no_grad():
        for values in found.parameters():
            values.add_(torch.randn_like(values) * 0.1)
    return found.eval()


def scorer(network: Regressor, tiny_encoder: Path, against: str) -> ESIM:
    encoder = TokenEncoder(tiny_encoder, **network.encoder_options())
    return ESIM(encoder, network, against=against)


TEXTS = ["das haus ist klein .", "ich sehe die katze und ein baum steht dort", "der hund"]
TRANSLATIONS = ["the house is small .", "i see a tree", "the dog sleeps not not not not"]


def test_batch_and_padding_change_nothing(network: Regressor, tiny_encoder: Path) -> None:
    metric = scorer(network, tiny_encoder, "source")
    together = metric.score(TRANSLATIONS, sources=TEXTS).segments
    alone = [
        metric.score([other], sources=[text]).segments[0]
        for text, other in zip(TEXTS, TRANSLATIONS, strict=True)
    ]
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.ptp(together) > 1e-3


def test_what_is_compared_with_matters(network: Regressor, tiny_encoder: Path) -> None:
    found = [
        scorer(network, tiny_encoder, side).score(TRANSLATIONS, sources=TEXTS, references=TEXTS)
        for side in ("source", "reference")
    ]
    assert abs(found[0].segments - found[1].segments).min() > 1e-4
    assert ["against:source" in result.signature for result in found] == [True, False]


def test_a_source_and_its_reference_are_one_side_whose_positions_say_what_they_are(
    network: Regressor, tiny_encoder: Path
) -> None:
    network.against = "any"
    metric = scorer(network, tiny_encoder, "both")
    references = ["the house is little .", "i see the cat and a tree", "a dog"]
    found = metric.score(TRANSLATIONS, sources=TEXTS, references=references).segments
    tokens = metric.encoder.encode([*TEXTS, *references, *TRANSLATIONS], ["de"] * 3 + ["en"] * 6)

    def vectors(number: int) -> torch.Tensor:
        own = tokens.index[number]
        return torch.from_numpy(
            tokens.vectors[tokens.offsets[own] : tokens.offsets[own + 1]].astype(np.float32)
        )

    for row in range(3):
        source, reference, translation = (vectors(row + side * 3) for side in range(3))
        sides = torch.tensor(
            [[SIDES.index("source")] * len(source) + [SIDES.index("reference")] * len(reference)]
        )
        other = torch.cat([source, reference])[None]
        lengths = torch.tensor([other.shape[1]]), torch.tensor([len(translation)])
        with torch.no_grad():
            by_hand = float(network(other, translation[None], lengths, None, sides))
        assert found[row] == pytest.approx(by_hand, abs=1e-5)
    assert (
        abs(
            found
            - scorer(network, tiny_encoder, "reference")
            .score(TRANSLATIONS, references=references)
            .segments
        ).min()
        > 1e-4
    )


def test_a_blank_side_has_the_floor(network: Regressor, tiny_encoder: Path) -> None:
    result = scorer(network, tiny_encoder, "source").score(
        ["", "the house"], sources=["das haus", " "]
    )
    assert result.segments.tolist() == [-4.0, -4.0]


def test_attention_of_words_sums_to_one(network: Regressor, tiny_encoder: Path) -> None:
    [alignment] = scorer(network, tiny_encoder, "source").align(TRANSLATIONS[:1], sources=TEXTS[:1])
    assert (alignment.source, alignment.prediction) == (TEXTS[0].split(), TRANSLATIONS[0].split())
    assert alignment.mass.sum() == pytest.approx(1.0)
    assert alignment.values.min() > 0


def test_attention_by_hand() -> None:
    inference = ComposedInference(2, Composition(1, [], 1, 4), 0.0)
    first, second = (
        torch.tensor([[[1.0, 0.0]]]),
        torch.tensor([[[2.0, 0.0], [0.0, 3.0], [5.0, 5.0]]]),
    )
    near = inference.cosines(first, second, torch.tensor([[True, True, False]]))
    assert near[0, 0, :2].tolist() == pytest.approx([1.0, 0.0])
    weights = inference.attention(near)[0, 0]
    assert weights.tolist() == pytest.approx(
        [1 / (1 + np.exp(-10.0)), 1 / (1 + np.exp(10.0)), 0.0], abs=1e-6
    )


def test_every_weight_learns_although_texts_are_padded(network: Regressor) -> None:
    sides = torch.randn(2, 3, 16), torch.randn(2, 4, 16)
    lengths = torch.tensor([3, 1]), torch.tensor([2, 4])
    against = torch.tensor([SIDES.index("source"), SIDES.index("reference")])
    network(*sides, lengths, None, against).sum().backward()
    for name, values in network.named_parameters():
        assert values.grad is not None, name
        assert values.grad.isfinite().all(), name
    assert network.members[0].pairs.temperature.grad != 0


def test_reading_gives_what_was_saved(network: Regressor, tmp_path: Path) -> None:
    network.save(tmp_path)
    read = Regressor.read(tmp_path)
    assert read.composition == SIZES
    assert read.encoder_options() == {"max_pieces": 100, "layer": 2}
