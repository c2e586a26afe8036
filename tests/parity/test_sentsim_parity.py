"""SentSim: the parts that it combines, and its scores; the published code gives the plain sum of
the parts' exponentials, ours is their mean."""

from collections.abc import Callable

import numpy as np
import pytest
from goldens import Case, cases, encoder, run
from transformers import AutoModel

from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.pairs import cosines, sentence_mover_distances
from mtmetrics.matching.transport import euclidean_distances, word_mover_distances
from mtmetrics.models.packed import PackedTokens
from mtmetrics.scorers.sentsim import VARIANTS, SentSim

PART, SCORE = 1e-5, 1e-4
# Names of the published combinations.
COMBINATIONS = {
    "cos_bert": "sss+bertscore",
    "bert_wmd": "bertscore+wmd",
    "smd_wmd": "smd+wmd",
    "smd_bert": "smd+bertscore",
    "cos_bert_wmd": "sss+bertscore+wmd",
    "cos_bert_wmd_smd": "sss+bertscore+wmd+smd",
}


def check(case: Case) -> None:
    check_parts(case)
    check_scores(case)


@pytest.mark.parametrize("case", cases("sentsim"))
def test_sentsim_as_published(case: Case) -> None:
    run(case, check)


def check_parts(case: Case) -> None:
    if "raises" in case.outputs:
        # Published: the normalisation divides 0 by 0. The parts themselves are defined.
        for part in PARTS.values():
            assert np.isfinite(part(case)).all()
        return
    checked = [name for name in PARTS if name in case.outputs]
    assert checked
    for name in checked:
        assert PARTS[name](case) == pytest.approx(case.array(name), abs=PART)
    if "raw_wmd_exact_lp" in case.outputs:
        assert mover(case) == pytest.approx(case.array("raw_wmd_exact_lp"), abs=2e-6)


def texts(case: Case) -> list[list[str]]:
    return case.texts(case.params.get("first_argument", "source"), "hypothesis")


def sentence_similarity(case: Case) -> np.ndarray:
    tokens = [encoder(case.model("sentence"), None).encode(side) for side in texts(case)]
    return cosines(*(side.means()[side.index] for side in tokens))


def words(case: Case) -> list[PackedTokens]:
    """Tokens of the fourth hidden state from the end, or the static vectors of the tokens; no
    special ones."""
    depth = encoder(case.model("word"), None).layer
    tokens = [encoder(case.model("word"), depth - 3).encode(side) for side in texts(case)]
    if "static" in case.params.get("variant", ""):
        table = word_embeddings(case)
        tokens = [side.map_vectors(lambda _, ids=side.token_ids: table[ids]) for side in tokens]
    return [side.select(side.word_positions >= 0) for side in tokens]


def word_embeddings(case: Case) -> np.ndarray:
    network = AutoModel.from_pretrained(case.model("word"), local_files_only=True)
    return network.get_input_embeddings().weight.detach().numpy()


def mover(case: Case) -> np.ndarray:
    return word_mover_distances(*words(case), euclidean_distances)


def greedy(case: Case) -> np.ndarray:
    layer = case.params.get("bertscore_num_layers", 4)
    return bertscore(
        *(encoder(case.model("word"), layer).encode(side).normalized() for side in texts(case))
    ).f1


PARTS: dict[str, Callable[[Case], np.ndarray]] = {
    "raw_cosine": sentence_similarity,
    "raw_wmd": mover,
    "raw_bertscore_f1": greedy,
    "raw_smd": lambda case: sentence_mover_distances(*words(case)),
}


def scorer(case: Case, parts: str) -> SentSim:
    depth = encoder(case.model("word"), None).layer
    layer = case.params.get("bertscore_num_layers", 4) if "bertscore" in parts else depth - 3
    sentences = encoder(case.model("sentence"), None).means()
    against = "reference" if case.params.get("first_argument") == "reference" else "source"
    return SentSim(encoder(case.model("word"), layer), sentences, combine=parts, against=against)


def scores(case: Case, parts: str, inputs: slice = slice(None), times: int = 1) -> np.ndarray:
    others, predictions = (side[inputs] * times for side in texts(case))
    return scorer(case, parts).score(predictions, sources=others, references=others).segments


def check_scores(case: Case) -> None:
    variant = case.params["variant"]
    if "raises" in case.outputs:
        # Documented: equal values are in the middle, so that nothing is divided by zero. Which
        # inputs the case has only its note says.
        count = 2 if "two" in case.params["note"] else 1
        assert scores(case, "sss+bertscore", slice(1), count) == pytest.approx(
            np.exp(0.5), abs=1e-9
        )
        return
    if "score" in case.outputs:
        assert 2 * scores(case, VARIANTS[variant.lower()]) == pytest.approx(
            case.array("score"), abs=SCORE
        )
    for name in COMBINATIONS.keys() & case.outputs.keys():
        # One part alone scores its exponential; the published combinations take BERTScore and the
        # distances from different layers.
        ours = np.sum([scores(case, part) for part in COMBINATIONS[name].split("+")], axis=0)
        assert ours == pytest.approx(case.array(name), abs=SCORE), name
