"""Probes by hand: sentences that no translator writes, what a metric prefers, and what it finds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.probes.probing import (
    Dictionary,
    Literal,
    Preference,
    bare_words,
    coverage,
    distinct_pairs,
    draw_preferences,
    match,
    matching_table,
    nearest_candidates,
    precision_at,
    preference_table,
    preferences,
    random_candidates,
    random_order,
    words,
)
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.sentsim import SentSim

PAIRS = [
    ("der", "of"),
    ("der", "the"),
    ("Hund", "dog"),
    ("Hund", "hound"),
    ("schläft", "sleeps"),
    ("nicht", "not"),
    ("ja", "yes"),
    ("3", "4"),
    ("-", "x"),
]


def test_words_keep_their_punctuation_and_characters_stand_alone_where_there_are_no_spaces() -> (
    None
):
    assert words("  Well, (yes)!\tGo ") == ["Well,", "(yes)!", "Go"]
    assert words("我用iPhone，好。") == ["我", "用", "iPhone", "，", "好", "。"]
    assert words(" ") == []
    assert bare_words('To be, "or" - «not»。') == ["To", "be", "or", "not"]


def test_random_order_keeps_the_words_and_depends_on_text_and_seed_alone() -> None:
    text = "one two three four five six seven, eight."
    shuffled = random_order(text, 1)
    assert sorted(shuffled.split()) == sorted(text.split())
    assert shuffled != text
    random_order("another text in between", 1)
    assert random_order(text, 1) == shuffled != random_order(text, 2)
    assert random_order("alone", 1) == "alone"
    assert random_order("", 1) == ""
    # Where there are no spaces, none come in.
    shuffled = random_order("我看见一只猫。", 3)
    assert sorted(shuffled) == sorted("我看见一只猫。")
    assert shuffled != "我看见一只猫。"


def test_word_by_word() -> None:
    dictionary = Dictionary(PAIRS, ["The dog barks.", "the cat, the end", "a hound"])
    assert dictionary.translate('Der "Hund" schläft 3 mal nicht.') == Literal(
        'The "dog" sleeps 3 mal not.', 4, 5
    )
    assert dictionary.translate("ja!") == Literal("yes!", 1, 1)
    assert dictionary.translate("- 3 -") == Literal("- 3 -", 0, 0)
    assert dictionary.translate("") == Literal("", 0, 0)
    assert coverage([Literal("a", 1, 4), Literal("b", 2, 2)]) == 0.5
    assert coverage([Literal("", 0, 0)]) == 0.0


def test_which_entry_of_a_dictionary_counts() -> None:
    # Of several translations the one listed most often, then the frequent one, then the first.
    assert Dictionary(PAIRS).translate("der").text == "of"
    assert Dictionary(PAIRS, ["The of THE"]).translate("der").text == "the"
    assert Dictionary([*PAIRS, ("der", "of")], ["The of the"]).translate("der").text == "of"
    # Of a phrase the rarest word decides.
    assert (
        Dictionary([("ja", "yes indeed"), ("ja", "oh")], ["yes yes oh"]).translate("ja").text
        == "oh"
    )
    # A word is looked up as it is written first.
    dictionary = Dictionary([("essen", "eat"), ("Essen", "food")])
    assert [dictionary.translate(text).text for text in ("essen", "Essen", "ESSEN")] == [
        "eat",
        "Food",
        "Eat",
    ]
    # Entries of several words are for scripts without spaces.
    assert Dictionary([("im Haus", "indoors"), ("im", "in")]).translate("im Haus").text == "in Haus"
    chinese = Dictionary([("我", "I"), ("看", "look"), ("看见", "see"), ("猫", "cat")])
    assert chinese.translate("我看见黑猫。") == Literal("I see 黑 cat。", 4, 5)


SOURCES = ["x", "yy", "z"]
REFERENCES = ["aaaa", "bbbb", "cccc"]


class Lengths(Scorer):
    """10 per character of the source less the length of the prediction; the part is the length."""

    signature = "lengths"

    def compute(self, batch: Batch) -> list[PartScores]:
        results = []
        for texts in batch.predictions:
            lengths = np.array([len(text) for text in texts], dtype=float)
            segments = (
                10 * np.array([len(source) for source in batch.sources_or_references]) - lengths
            )
            results.append(
                PartScores(segments, {"length": lengths}, *np.zeros((2, len(texts)), dtype=bool))
            )
        return results

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        return -100.0, {"length": 0.0}


class Noisy(Lengths):
    """Scores that differ by noise alone."""

    def compute(self, batch: Batch) -> list[PartScores]:
        [scores] = super().compute(batch)
        scores.segments[:] = 1.0 + 1e-8 * np.arange(len(batch))
        return [scores]


def test_differences_are_modified_minus_reference() -> None:
    modified = {"short": ["a", "bb", "cccc"], "long": ["a" * 5, "b" * 6, "c" * 7]}
    found, result = preferences(Lengths(), SOURCES, REFERENCES, modified)
    names = [(each.modification, each.measure) for each in found]
    assert names == [
        (modification, measure) for modification in modified for measure in ("score", "length")
    ]
    assert [each.differences.tolist() for each in found] == [
        [3, 2, 0],
        [-3, -2, 0],
        [-1, -2, -3],
        [1, 2, 3],
    ]
    assert [each.preferred for each in found] == [2 / 3, 0.0, 0.0, 1.0]
    assert [each.equal for each in found] == [1 / 3, 1 / 3, 0.0, 0.0]
    assert result.signature == "lengths"
    assert len(result.segments) == 9


@pytest.mark.parametrize("scorer", [Noisy(), load_scorer("source_length")])
def test_neither_noise_nor_a_metric_that_sees_the_source_alone_prefers_anything(
    scorer: Scorer,
) -> None:
    found, _ = preferences(scorer, SOURCES, REFERENCES, {"other": ["q", "qq", "qqq"]})
    assert found[0].differences.tolist() == [0.0, 0.0, 0.0]
    assert (found[0].preferred, found[0].equal) == (0.0, 1.0)


def test_all_is_on_one_scale(tiny_encoder: Path) -> None:
    """SentSim by the extremes of the call: a sentence that was not modified differs by 0 although
    another one moves the extremes."""
    words = TokenEncoder(tiny_encoder)
    scorer = SentSim(words, words.means(), against="source", normalize="batch")
    references = ["the house", "a cat", "i see"]
    modified = {"last": [*references[:2], "and a tree 1 2"]}
    found, _ = preferences(scorer, ["das haus", "katze", "ich"], references, modified)
    assert found[0].differences[:2].tolist() == [0.0, 0.0]
    assert found[0].differences[2] != 0.0


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="use a reference-free one"):
        preferences(load_scorer("chrf"), SOURCES, REFERENCES, {"other": REFERENCES})
    with pytest.raises(InputError, match="other has 1 segments but sources has 3"):
        preferences(Lengths(), SOURCES, REFERENCES, {"other": ["a"]})


def test_a_modification_may_be_called_like_a_column() -> None:
    modified = {"references": REFERENCES, "sources": REFERENCES}
    found, _ = preferences(Lengths(), SOURCES, REFERENCES, modified)
    assert {each.modification for each in found} == {"references", "sources"}


def test_preference_numbers_and_table() -> None:
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
    _, row = preference_table([preference]).rows
    assert row == ["random order", "score", "4", "0.250", "0.250", "-0.125", "0.000"]


def test_histograms_count_every_difference_but_0_on_its_side() -> None:
    found = [
        Preference(modification, measure, np.array(differences))
        for modification, differences in {
            "a": [-0.5, -0.1, 0.0, 0.3],
            "b": [0.0, 0.0, 0.0, 0.3],
        }.items()
        for measure in ("score", "lm")
    ]
    figure = draw_preferences(found, title="t")
    assert len(figure.axes) == 4
    first = figure.axes[0]
    assert first.get_title() == "a\n25.0% preferred, 25.0% equal"
    bars = [
        (bar.get_x(), bar.get_width(), bar.get_height())
        for bar in first.patches
        if bar.get_height()
    ]
    assert sorted((x < 0, height) for x, _, height in bars) == [(False, 1), (True, 1), (True, 1)]
    # No bin holds both sides of 0.
    assert all(x >= -1e-12 or x + width <= 1e-12 for x, width, _ in bars)
    assert first.get_xlabel() == "d (score)"
    assert figure.axes[2].get_xlabel() == "d (lm)"
    assert all(float(tick).is_integer() for tick in first.get_yticks())
    # Without any preference there is still a panel.
    figure = draw_preferences([Preference("a", "score", np.zeros(3))], title="t")
    assert figure.axes[0].get_title() == "a\n0.0% preferred, 100.0% equal"


NAMES = ["Anna 1", "Bernd 2", "Clara 3", "Dora 4"]
NAMED = ["Anna one 1", "Bernd two 2", "Clara three 3", "Dora four 4"]


def test_precision_and_ties() -> None:
    scores = np.array(
        [
            [5.0, 1.0, 2.0, 3.0],  # first
            [2.0, 1.0, 3.0, 0.0],  # second
            [0.0, 1.0, 2.0, 3.0],  # last
            [2.0, 2.0, 2.0, 0.0],  # one of three on the ranks 1 to 3
            [1.0, 3.0, 1.0, 0.0],  # one of two on the ranks 2 and 3
        ]
    )
    assert precision_at(scores, 1) == pytest.approx((1 + 0 + 0 + 1 / 3 + 0) / 5)
    assert precision_at(scores, 2) == pytest.approx((1 + 1 + 0 + 2 / 3 + 1 / 2) / 5)
    assert precision_at(scores, 3) == pytest.approx((1 + 1 + 0 + 1 + 1) / 5)
    assert precision_at(np.zeros((7, 4)), 1) == 0.25
    # The translation may stand in any column.
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 0.0], [0.0, 4.0, 4.0]])
    assert precision_at(scores, 1, np.array([1, 1, 2])) == pytest.approx((1 + 0 + 1 / 2) / 3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_the_share_of_ties_is_the_mean_over_random_orders(seed: int, cutoff: int) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 3, size=(1, 6)).astype(float)
    broken = scores + 0.5 * np.array([generator.permutation(6) / 6 for _ in range(1500)])
    assert precision_at(scores, cutoff) == pytest.approx(precision_at(broken, cutoff), abs=0.06)


def test_random_candidates() -> None:
    chosen = random_candidates(50, 10, seed=1)
    assert (chosen.shape, chosen.min(), chosen.max()) == ((50, 10), 0, 49)
    np.testing.assert_array_equal(chosen[:, 0], np.arange(50))
    assert all(len(set(row)) == 10 for row in chosen)
    np.testing.assert_array_equal(chosen, random_candidates(50, 10, seed=1))
    assert not np.array_equal(chosen, random_candidates(50, 10, seed=2))
    # Wrong ones are equally likely.
    drawn = np.concatenate([random_candidates(6, 3, seed)[2, 1:] for seed in range(600)])
    counts = np.bincount(drawn, minlength=6)
    assert counts[2] == 0
    assert abs(counts[[0, 1, 3, 4, 5]] - 240).max() < 60
    # All are candidates where there are few.
    for chosen in (random_candidates(4, 9, seed=1), nearest_candidates(np.eye(4), np.eye(4), 9)):
        assert [sorted(row) for row in chosen.tolist()] == [[0, 1, 2, 3]] * 4
        assert chosen[:, 0].tolist() == [0, 1, 2, 3]


def test_nearest_candidates_are_nearest_by_cosine_and_the_right_one_is_first_wherever_it_lies() -> (
    None
):
    sources = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    targets = np.array([[-1.0, 0.1], [9.0, 9.0], [0.0, 0.2], [0.3, -0.1]])
    # Cosines of source 0: -1, 0.7, 0, 0.95; of source 1: 0.1, 0.7, 1, -0.3; of source 2: -0.6, 1,
    # 0.7, 0.4.
    assert nearest_candidates(sources, targets, 3).tolist() == [
        [0, 3, 1],
        [1, 2, 0],
        [2, 1, 3],
        [3, 0, 1],
    ]


def test_nearest_candidates_of_random_vectors() -> None:
    sources, targets = np.random.default_rng(1).normal(size=(2, 600, 8))
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (sources, targets))
    cosines = x @ y.T
    np.fill_diagonal(cosines, 2.0)  # the right one is first
    expected = np.argsort(-cosines, axis=1)[:, :4]
    assert nearest_candidates(sources, targets, 4).tolist() == expected.tolist()


def test_a_second_right_answer_is_left_out() -> None:
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("c", "y")]
    assert distinct_pairs(pairs) == [("a", "x"), ("b", "z"), ("c", "y")]
    with pytest.raises(InputError, match="at least 2 .* got 1"):
        distinct_pairs(pairs[:3])


def test_overlap_finds_names() -> None:
    candidates = random_candidates(4, 4, seed=1)
    precision, result = match(load_scorer("chrf"), NAMES, NAMED, candidates, cutoffs=(1, 2))
    assert precision == {"score": {1: 1.0, 2: 1.0}}
    assert len(result.segments) == 16
    assert result.signature == load_scorer("chrf").signature
    # Shifted by one, no translation is right.
    assert (
        match(load_scorer("chrf"), NAMES, NAMED[1:] + NAMED[:1], candidates, (1,))[0]["score"][1]
        == 0.0
    )


def test_a_metric_that_does_not_see_the_candidate_guesses_and_is_asked_every_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, scorer = [], load_scorer("source_length")
    score = scorer.score_batches

    def spy(batches):
        for batch in batches:
            seen.extend(zip(batch.sources, batch.systems[""], strict=True))
            yield from score([batch])

    monkeypatch.setattr(scorer, "score_batches", spy)
    precision, _ = match(scorer, NAMES, NAMED, random_candidates(4, 4, 1), (1, 3))
    assert precision["score"] == {1: 0.25, 3: 0.75}
    assert len(seen) == 16
    assert seen[0] == (NAMES[0], NAMED[0])
    assert {source for source, _ in seen[4:8]} == {NAMES[1]}


def test_impossible_cutoffs_are_refused_before_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates, scorer = random_candidates(4, 3, seed=1), load_scorer("random")
    monkeypatch.setattr(scorer, "score_batches", lambda _: pytest.fail("scored"))
    for cutoff, message in ((0, "must be a whole number"), (3, "among 3 candidates .* at most 2")):
        with pytest.raises(InputError, match=f"cutoff {cutoff}: {message}"):
            match(scorer, NAMES, NAMED, candidates, (cutoff,))


def test_matching_table() -> None:
    assert matching_table({"score": {1: 0.5, 5: 1.0}, "lm": {1: 0.25, 5: 0.0}}) == (
        [["measure", "P@1", "P@5"], ["score", "0.500", "1.000"], ["lm", "0.250", "0.000"]],
        range(1, 3),
    )
