"""BERTR: maps and alignments."""

import numpy as np
import pytest
from helpers import REFERENCES, TRANSLATIONS

from mtmetrics.errors import InputError
from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.bertr import BERTR


def test_bertr_against_the_source_uses_the_map(encoder: TokenEncoder) -> None:
    remapping = Remapping.fit("clp", *np.random.default_rng(0).normal(size=(2, 50, 16)))
    plain, mapped = (
        BERTR(encoder, against="source", remapping=chosen) for chosen in (None, remapping)
    )
    first, second = (
        scorer.score(TRANSLATIONS, sources=REFERENCES).segments for scorer in (plain, mapped)
    )
    assert not np.allclose(first, second)
    assert f"map:clp#{remapping.fingerprint}" in mapped.signature
    with pytest.raises(InputError, match="needs? against='source'|need against='source'"):
        BERTR(encoder, remapping=remapping)


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ([["a"], []], r"references\[1\]: empty; a segment needs at least one reference"),
        ([["a"], "b"], r"references\[1\]: a string, but other segments have lists"),
        ([["a"], [1]], r"references\[1\]\[0\]: a string is needed, got 1"),
        (["a"], "predictions has 2 segments but references has 1"),
        ("a b", "references: a list of strings is needed"),
    ],
)
def test_bad_references(encoder: TokenEncoder, references: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BERTR(encoder).score(["a", "b"], references=references)


@pytest.mark.parametrize("special_tokens", [False, True])
def test_the_matches_of_bertr_add_up_to_its_score(
    encoder: TokenEncoder, special_tokens: bool
) -> None:
    scorer = BERTR(encoder, special_tokens=special_tokens)
    alignments = scorer.align(TRANSLATIONS, references=REFERENCES)
    assert [alignment.total for alignment in alignments] == pytest.approx(
        scorer.score(TRANSLATIONS, references=REFERENCES).segments.tolist(), abs=1e-6
    )
    first = alignments[0]
    assert (first.cells, first.source[-1]) == ("cosine", "[SEP]" if special_tokens else ".")
    assert [TRANSLATIONS[0][slice(*span)] or "[]" for span in first.spans] == (
        ["[]", "the", "small", "house", "[]"] if special_tokens else ["the", "small", "house"]
    )
    assert alignments[3].source == []
    assert [len(words) for words in scorer.faults(TRANSLATIONS, alignments)] == [3, 4, 5, 0]
