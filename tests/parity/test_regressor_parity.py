"""ESIM and BiLSTM with attention of Mathur et al. (2019): predictions, loss, training steps, and
the whole path from text."""

import pytest
import torch
from goldens import Case, cases, first_number, run
from safetensors.torch import load_file

from mtmetrics.models.networks import masked_max, masked_mean, xavier_linear
from mtmetrics.models.regressor import Regressor, RegressorSettings
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.learned import ESIM, BiLSTMAttention

# Names of the published classes, and ours.
NAMES = {
    "_encoder._module.": "pairs.encoder.",
    "_inference_encoder._module.": "pairs.composer.",
    "_projection_feedforward._linear_layers.0.": "pairs.projection.",
    "_output_feedforward._linear_layers.0.": "inner.",
    "_output_feedforward._linear_layers.1.": "outer.",
    "_text_field_embedder.mix.gamma": "mix.gamma",
}
UNUSED = "_output_logit."
REVERSE = "_reverse"
LAYER = "_text_field_embedder.mix.scalar_parameters."
PREDICTION, LOSS = 1e-5, 1e-4


def regressor(case: Case, **options: object) -> Regressor:
    """The network of a case with the published weights."""
    prefix = case.params["weights_prefix"]
    stored = {
        name.removeprefix(prefix): values
        for name, values in tensors(case).items()
        if name.startswith(prefix)
    }
    state = {}
    for name, values in stored.items():
        start = next((start for start in NAMES if name.startswith(start)), None)
        if start is not None:
            rest = name.removeprefix(start)
            if "_module." in start:
                rest = (
                    f"backwards.{rest.removesuffix(REVERSE)}"
                    if rest.endswith(REVERSE)
                    else f"forwards.{rest}"
                )
            state[NAMES[start] + rest] = values
        else:
            assert name.startswith((UNUSED, LAYER)), name
    scores = [stored[name] for name in sorted(stored) if name.startswith(LAYER)]
    if scores:
        state["mix.scores"] = torch.cat(scores)
    else:
        state |= {"mix.scores": torch.zeros(1), "mix.gamma": torch.ones(1)}
    shape = RegressorSettings(
        architecture=case.file.split(".")[0],
        **{
            "against": "reference",
            "encoder": "none",
            "encoder_fingerprint": "00000000",
            "depth": len(state["mix.scores"]),
            "width": state["pairs.encoder.forwards.weight_ih_l0"].shape[1],
            "hidden": state["pairs.encoder.forwards.weight_hh_l0"].shape[1],
            "dropout": 0.0,
            **options,
        },
    )
    network = Regressor(shape)
    member = network.members[0]
    if poolings := {"avg": [masked_mean], "max": [masked_max]}.get(case.params.get("aggr_type")):
        member.pairs.poolings = poolings
        member.inner = xavier_linear(8 * shape.hidden, shape.hidden)
    member.load_state_dict(state)
    return network.eval()


def tensors(case: Case) -> dict[str, torch.Tensor]:
    return load_file(case.model("weights"))


@pytest.mark.parametrize("case", [*cases("esim"), *cases("bilstm_attention")])
def test_regressor_as_published(case: Case) -> None:
    if "training" in case.params:
        run(case, check_training)
    elif "encoder" in case.params:
        run(case, check_texts)
    else:
        run(case, check_vectors)


def inputs(case: Case) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    stored = tensors(case)
    return (
        stored["ref_vectors"],
        stored["mt_vectors"],
        (stored["ref_mask"].sum(1), stored["mt_mask"].sum(1)),
    )


def check_vectors(case: Case) -> None:
    with torch.no_grad():
        found = regressor(case)(*inputs(case))
    assert found.numpy() == pytest.approx(case.array("pred").ravel(), abs=PREDICTION)
    if "mse_loss" in case.outputs:
        loss = torch.nn.functional.mse_loss(found, torch.tensor(case.extra["targets"]))
        assert loss.item() == pytest.approx(case.outputs["mse_loss"], rel=LOSS)


def check_training(case: Case) -> None:
    network = regressor(case).train()
    optimizer = torch.optim.Adam(network.members.parameters(), lr=4e-4)
    targets = torch.tensor(case.extra["targets"]).ravel()
    losses, norms = [], []
    for _ in case.outputs["losses"]:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(network(*inputs(case)), targets)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0).item())
        optimizer.step()
        losses.append(loss.item())
    assert losses == pytest.approx(case.outputs["losses"], rel=LOSS)
    assert norms == pytest.approx(case.outputs["grad_norms_before_clip"], rel=LOSS)


def check_texts(case: Case) -> None:
    folder = case.path(case.params["encoder"])
    plain = TokenEncoder(folder)
    maxlen = case.params["maxlen"]
    network = regressor(
        case, encoder=str(folder), encoder_fingerprint=plain.fingerprint, max_pieces=maxlen
    )
    made_by = {"esim": ESIM, "bilstm_attention": BiLSTMAttention}[network.architecture]
    scorer = made_by(TokenEncoder(folder, mix=network.mixes(), max_pieces=maxlen), network)
    sources, predictions, references = case.texts("source", "hypothesis", "reference")
    assert scorer.score(predictions, references=references).segments == pytest.approx(
        case.array("pred"), abs=PREDICTION
    )
    for key in case.outputs.keys() - {"pred"}:
        count = first_number(key)
        if "one_by_one" in key:
            found = [
                scorer.score([predictions[row]], references=[references[row]]).system
                for row in range(count)
            ]
        else:
            found = scorer.score(predictions[:count], references=sources[:count]).segments
        assert found == pytest.approx(case.array(key), abs=PREDICTION), key
