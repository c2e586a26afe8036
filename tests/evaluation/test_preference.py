"""Preferences by hand: differences, W2W, ties, parts, and what cannot be compared."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.histograms import draw_preferences
from mtmetrics.evaluation.preference import Preference, preference_table, preferences
from mtmetrics.models.sentence_encoder import MeanPooledEncoder
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.sentsim import SentSim

SOURCES = ["x", "yy", "z"]
REFERENCES = ["aaaa", "bbbb", "cccc"]


class Lengths(Scorer):
    """10 per character of the source less the length of the prediction; the part is the length."""

    signature = "lengths"

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        results = []
        for texts in systems:
            lengths = np.array([len(text) for text in texts], dtype=float)
            segments = 10 * np.array([len(other) for other in others]) - lengths
            results.append(ChunkScores(segments, {"length": lengths}, *np.zeros((2, len(texts)), dtype=bool)))
        return results

    def _floor(self) -> tuple[float, dict[str, float]]:
        return -100.0, {"length": 0.0}


def test_differences_are_modified_minus_reference() -> None:
    found, result = preferences(
        Lengths(), SOURCES, REFERENCES, {"short": ["a", "bb", "cccc"], "long": ["a" * 5, "b" * 6, "c" * 7]}
    )
    assert [(each.modification, each.measure) for each in found] == [
        ("short", "score"),
        ("short", "length"),
        ("long", "score"),
        ("long", "length"),
    ]
    assert [each.differences.tolist() for each in found] == [[3, 2, 0], [-3, -2, 0], [-1, -2, -3], [1, 2, 3]]
    assert [each.preferred for each in found] == [2 / 3, 0.0, 0.0, 1.0]
    assert [each.equal for each in found] == [1 / 3, 1 / 3, 0.0, 0.0]
    assert result.signature == "lengths"
    assert len(result.segments) == 9


def test_rounding_noise_is_no_preference() -> None:
    class Noisy(Lengths):
        def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
            [scores] = super()._score_chunk(others, systems)
            scores.segments[:] = 1.0 + 1e-8 * np.arange(len(others))
            return [scores]

    found, _ = preferences(Noisy(), SOURCES, REFERENCES, {"same": REFERENCES})
    assert found[0].differences.tolist() == [0.0, 0.0, 0.0]


def test_all_is_on_one_scale(tiny_encoder: Path) -> None:
    """SentSim by the extremes of the call: a sentence that was not modified differs by 0 although another one moves the
    extremes."""
    words = TokenEncoder(tiny_encoder)
    scorer = SentSim(words, MeanPooledEncoder(words), setting="src-mt", normalize="batch")
    references = ["the house", "a cat", "i see"]
    found, _ = preferences(
        scorer, ["das haus", "katze", "ich"], references, {"last": [*references[:2], "and a tree 1 2"]}
    )
    assert found[0].differences[:2].tolist() == [0.0, 0.0]
    assert found[0].differences[2] != 0.0


def test_a_metric_that_sees_the_source_alone_prefers_nothing() -> None:
    found, _ = preferences(load_scorer("source_length"), SOURCES, REFERENCES, {"other": ["q", "qq", "qqq"]})
    assert (found[0].preferred, found[0].equal) == (0.0, 1.0)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="use a reference-free one"):
        preferences(load_scorer("chrf"), SOURCES, REFERENCES, {"other": REFERENCES})
    with pytest.raises(InputError, match="modified: empty"):
        preferences(Lengths(), SOURCES, REFERENCES, {})
    with pytest.raises(InputError, match="other has 1 segments but sources has 3"):
        preferences(Lengths(), SOURCES, REFERENCES, {"other": ["a"]})


def test_numbers_and_table() -> None:
    preference = Preference("random order", "score", np.array([0.5, -1.0, 0.0, -0.0004]))
    assert preference.as_dict() == {
        "modification": "random order",
        "measure": "score",
        "preferred": 0.25,
        "equal": 0.25,
        "mean": pytest.approx(-0.1251),
        "median": pytest.approx(-0.0002),
        "differences": [0.5, -1.0, 0.0, -0.0004],
    }
    assert (
        preference_table([preference]).splitlines()[2]
        == "| random order | score | 4 | 0.250 | 0.250 | -0.125 | 0.000 |"
    )


def test_histograms_count_every_difference_but_0_on_its_side() -> None:
    found = [
        Preference(modification, measure, np.array(differences))
        for modification, differences in {"a": [-0.5, -0.1, 0.0, 0.3], "b": [0.0, 0.0, 0.0, 0.3]}.items()
        for measure in ("score", "lm")
    ]
    figure = draw_preferences(found, title="t")
    assert len(figure.axes) == 4
    first = figure.axes[0]
    assert first.get_title() == "a\n25.0% preferred, 25.0% equal"
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in first.patches if bar.get_height()]
    assert sorted((x < 0, height) for x, _, height in bars) == [(False, 1), (True, 1), (True, 1)]
    # No bin holds both sides of 0.
    assert all(x >= -1e-12 or x + width <= 1e-12 for x, width, _ in bars)
    assert first.get_xlabel() == "d (score)"
    assert figure.axes[2].get_xlabel() == "d (lm)"


def test_histogram_of_a_metric_without_preferences() -> None:
    figure = draw_preferences([Preference("a", "score", np.zeros(3))], title="t")
    assert figure.axes[0].get_title() == "a\n0.0% preferred, 100.0% equal"
