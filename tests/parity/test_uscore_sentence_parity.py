"""The sentence level of UScore's library: cosines, the contrastive loss, the mover distance on
XLM-R, and the combination."""

import string
from typing import Any

import numpy as np
import pytest
from goldens import Case, cases, encoder, first_number, language_model, run_named

from mtmetrics.artifacts.models import sentence_model
from mtmetrics.matching.pairs import cosines
from mtmetrics.matching.transport import RoundedPartialTransport, word_mover_distances
from mtmetrics.scorers.uscore import part_weights, weighted_sum

SCORE, LOSS, GRADIENT = 1e-5, 1e-4, 1e-3


@pytest.mark.parametrize("case", cases("uscore_snt"))
def test_uscore_sentence_as_published(case: Case) -> None:
    run_named(case, CHECKS)


def folder(case: Case) -> Any:
    """The model that the header names first, before what it says about the pooling."""
    return case.path(case.document["model"]["encoder"].split()[0])


def texts(case: Case) -> list[list[str]]:
    return case.texts("source", "hypothesis")


def check_cosine(case: Case) -> None:
    model = encoder(folder(case), None).means()
    source, prediction = (model.encode(side) for side in texts(case))
    x, y = source.vectors[source.index], prediction.vectors[prediction.index]
    assert cosines(x, y) == pytest.approx(case.array("score"), abs=SCORE)
    for side, vectors in (("source", x), ("hypothesis", y)):
        if (key := f"{side}_embedding_first") in case.outputs:
            assert vectors[0] == pytest.approx(case.array(key), abs=SCORE)


def loss_options(case: Case) -> dict[str, Any]:
    return {"temperature": 1 / case.params["scale"]} | {
        name: case.params[name] for name in ("margin", "symmetric")
    }


def check_loss(case: Case) -> None:
    from mtmetrics.training.sentence import contrastive_loss

    model = sentence_model(folder(case), "cpu").eval()
    batch = first_number(case.params["batch"])
    sides = [
        model.tokenizer(side[:batch], padding=True, return_tensors="pt") for side in texts(case)
    ]
    loss = contrastive_loss(
        *(model(dict(side))["sentence_embedding"] for side in sides), **loss_options(case)
    )
    loss.backward()
    gradient = model[0].auto_model.get_input_embeddings().weight.grad.norm().item()
    assert loss.item() == pytest.approx(case.outputs["loss"], rel=LOSS)
    assert gradient == pytest.approx(case.outputs["grad_norm_word_embeddings"], rel=GRADIENT)


def check_loss_of_vectors(case: Case) -> None:
    import torch

    from mtmetrics.training.sentence import contrastive_loss

    a, b = (torch.tensor(case.params[name]) for name in "ab")
    assert contrastive_loss(a, b, **loss_options(case)).item() == pytest.approx(
        case.outputs["loss"], rel=LOSS
    )


def check_mover(case: Case) -> None:
    params = case.params
    model = encoder(folder(case), None)
    tokens = [model.encode(side) for side in texts(case)]
    if params["suffix_filter"]:
        # The published rule knows no pieces of SentencePiece but punctuation marks, so it is not
        # our filter of words.
        left_out = {*string.punctuation}
        pieces = [model.tokenizer.convert_ids_to_tokens(side.token_ids.tolist()) for side in tokens]
        kept = [
            np.array([piece not in left_out and "##" not in piece for piece in side])
            for side in pieces
        ]
        tokens = [side.select(rows) for side, rows in zip(tokens, kept, strict=True)]
    source, prediction = (side.ngrams(params["n_gram"]).normalized() for side in tokens)
    score = -word_mover_distances(
        source, prediction, "cosine", transport=RoundedPartialTransport(0.0)
    )
    if params["lm_weights"]:
        weights = params["lm_weights"]
        score = (
            weights[0] * score
            + weights[1] * language_model(case.model("language_model")).score(texts(case)[1])[0]
        )
    assert score == pytest.approx(case.array("score"), abs=SCORE)


def check_arithmetic(case: Case) -> None:
    params = case.params
    parts = {
        "wmd": params["wmd"],
        "pseudo": params["wmd_translation"],
        "lm": params["lm"],
        "snt": params["snt"],
    }
    parts = {name: np.array(values) for name, values in parts.items()}
    words, levels = part_weights("tuned", "wrd+snt")
    parts["wrd"] = weighted_sum(parts, words)
    assert parts["wrd"] == pytest.approx(case.array("wrd"), abs=1e-9)
    assert weighted_sum(parts, levels) == pytest.approx(case.array("uscore"), abs=1e-9)


CHECKS = {
    "ContrastScore.score": check_cosine,
    "AdditiveMarginSoftmaxLoss on given embeddings": check_loss_of_vectors,
    "AdditiveMarginSoftmaxLoss": check_loss,
    "XLMoverScore.score": check_mover,
    "UScore arithmetic": check_arithmetic,
}
