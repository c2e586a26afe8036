"""The word level of UScore's library: distances, the XMoverScore class there, language model, word
alignment, remapping."""

from pathlib import Path

import numpy as np
import pytest
from goldens import Case, archives, cases, count, encoder, language_model, run_named, weighted

from mtmetrics.matching.align import align_words, word_pair_vectors
from mtmetrics.matching.remapping import Remapping, fit_clp, fit_umd
from mtmetrics.matching.transport import RoundedPartialTransport, optimal_flow, word_mover_distances
from mtmetrics.models.packed import PackedTokens
from mtmetrics.scorers.xmoverscore import XMoverScore

TOLERANCE, EXACT = 2e-5, 2e-6


@pytest.mark.parametrize("case", cases("uscore_wrd"))
def test_uscore_word_as_published(case: Case) -> None:
    run_named(case, CHECKS)


def texts(case: Case) -> list[list[str]]:
    return case.texts(
        "reference" if "reference, hypothesis" in case.params["function"] else "source",
        "hypothesis",
    )


def check_distances(case: Case) -> None:
    params = case.params
    sources, predictions = (packed_ngrams(case, side) for side in texts(case))
    distance = "cosine" if params["use_cosine"] else "sqeuclidean"
    for key, transport, tolerance in (
        ("scores", RoundedPartialTransport(0.0), TOLERANCE),
        ("scores_exact_lp", optimal_flow, EXACT),
    ):
        found = -word_mover_distances(sources, predictions, distance, transport=transport)
        assert found == pytest.approx(case.array(key), abs=tolerance)


def packed_ngrams(case: Case, side: list[str]) -> PackedTokens:
    model = encoder(case.model("encoder"), None)
    tokens = model.encode(side)
    if case.params["suffix_filter"]:
        tokens = tokens.select(model.word_table[tokens.token_ids])
    return tokens.ngrams(case.params["n_gram"]).normalized()


def check_class(case: Case) -> None:
    params = case.params
    kind = params["mapping"].lower() if params["mapping"] in ("CLP", "UMD") else None
    model = language_model(case.model("language_model")) if params.get("lm_weights") else None
    weights = params.get("lm_weights") or [1.0, 0.0]
    sources, predictions = texts(case)
    for key, drop_rate, tolerance in (("scores", 0.0, TOLERANCE), ("scores_exact_lp", None, EXACT)):
        if key not in case.outputs:
            continue
        scorer = XMoverScore(
            encoder(case.model("encoder"), None),
            variant="uscore",
            ngram=params["n_gram"],
            remapping=Remapping(kind, (np.load(case.path(params["projection"])),))
            if kind
            else None,
            language_model=model,
            drop_rate=drop_rate,
        )
        assert weighted(scorer, weights, sources, predictions) == pytest.approx(
            case.array(key), abs=tolerance
        )


def check_language_model(case: Case) -> None:
    if "model None" in case.params["function"]:
        scorer = XMoverScore(encoder(case.model("encoder"), None), variant="uscore")
        lm = scorer.lm_part(texts(case)[1])[0]
    else:
        lm = language_model(case.model("language_model")).score(texts(case)[1])[0]
    assert lm == pytest.approx(case.array("lm_scores"), rel=1e-5, abs=1e-9)


def words(case: Case) -> tuple[list[list[str]], list[list[str]]]:
    """The words of the alignment case, which the other two cases share."""
    outputs = (other["outputs"] for other in case.document["cases"])
    tokenized = next(output["tokenized"] for output in outputs if "tokenized" in output)
    number = len(case.extra.get("pairs", tokenized))
    return [pair[0] for pair in tokenized[:number]], [pair[1] for pair in tokenized[:number]]


def features(case: Case, layer: int) -> tuple[np.ndarray, np.ndarray]:
    sources, targets = words(case)
    aligner, model = (encoder(case.model("remap_encoder"), number) for number in (8, layer))
    alignments = align_words(aligner.encode_words(sources), aligner.encode_words(targets))
    return word_pair_vectors(model.encode_words(sources), model.encode_words(targets), alignments)


def check_alignment(case: Case) -> None:
    sources, targets = words(case)
    model = encoder(case.model("remap_encoder"), case.params["layer"])
    found = align_words(
        model.encode_words(sources), model.encode_words(targets), case.params["threshold"]
    )
    assert [set(pairs) for pairs in found] == [
        {tuple(pair) for pair in pairs} for pairs in case.outputs["alignments"]
    ]


def check_features(case: Case) -> None:
    source, target = features(case, case.params["layer"])
    outputs = case.outputs
    assert len(source) == outputs["n_word_pairs"]
    assert source[0] == pytest.approx(outputs["first_row_src"], abs=1e-5)
    assert target[0] == pytest.approx(outputs["first_row_tgt"], abs=1e-5)
    for name, vectors in (("src", source), ("tgt", target)):
        assert vectors.sum(0, dtype=np.float64) == pytest.approx(
            outputs[f"sum_{name}"], abs=1e-5 * len(vectors)
        )
    same_projection(source, target, np.array(outputs["clp"]))
    same_direction(fit_umd(source, target), np.array(outputs["umd"]))


def check_mapped_alignment(case: Case) -> None:
    outputs, layer = case.outputs, case.params["layer"]
    sources, targets = words(case)
    model = encoder(case.model("remap_encoder"), layer)
    for kind in ("clp", "umd"):
        remapping = Remapping(kind, (np.array(outputs[f"{kind}_layer{layer}"]),))
        mapped = model.encode_words(sources).map_vectors(remapping.apply)
        found = align_words(mapped, model.encode_words(targets))
        assert [set(pairs) for pairs in found] == [
            {tuple(pair) for pair in pairs} for pairs in outputs[f"alignments_{kind}"]
        ]


CHECKS = {
    "word_mover_score": check_distances,
    "XMoverScore.score": check_class,
    "XMoverAlign.score": check_class,
    "lm_perplexity": check_language_model,
    "awesome_align with projection": check_mapped_alignment,
    "awesome_align": check_alignment,
    "get_aligned_features": check_features,
}


def same_projection(
    source: np.ndarray, target: np.ndarray, expected: np.ndarray, tolerance: float = 1e-4
) -> None:
    """Compares a fitted CLP with a golden one where the word pairs determine it.

    Where the cross-covariance lacks rank, any rotation of the rest is as good (words of a sentence
    that are all aligned with each other leave it one dimension each), so the part inside its row
    space, and the fit as a whole, are what can be compared."""
    fitted = fit_clp(source, target)
    u, values, _ = np.linalg.svd(source.astype(np.float64).T @ target.astype(np.float64))
    # Below, the float32 arithmetic of the published code does not resolve 1e-4.
    inside = u[:, values > 2e-3 * values[0]]
    assert inside.T @ fitted == pytest.approx(inside.T @ expected, abs=tolerance)
    residuals = [np.linalg.norm(source @ matrix - target) for matrix in (fitted, expected)]
    assert residuals[0] == pytest.approx(residuals[1], rel=1e-5)


def same_direction(fitted: np.ndarray, expected: np.ndarray) -> None:
    assert fitted * np.sign(fitted @ expected) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("path", archives("remap"))
def test_maps(path: Path) -> None:
    with np.load(path, allow_pickle=False) as stored:
        pairs = {
            "sub": (stored["src_layer12"], stored["tgt_layer12"]),
            "rand": (stored["rand_src"], stored["rand_tgt"]),
        }
        expected = {
            "sub": (stored["clp_sub"], stored["umd_sub"]),
            "rand": (stored["rand_clp"], stored["rand_umd"]),
        }
        unconstrained = stored["rand_clp_unconstrained"]
    for name, (source, target) in pairs.items():
        for _ in ("clp", "umd"):
            count(path.name, "ran")
        same_projection(source, target, expected[name][0])
        count(path.name, "passed")
        same_direction(fit_umd(source, target), expected[name][1])
        count(path.name, "passed")
    count(path.name, "ran")
    assert np.linalg.lstsq(*pairs["rand"], rcond=None)[0] == pytest.approx(unconstrained, abs=1e-4)
    count(path.name, "passed")
