"""Trains an ESIM that is composed by the upper layers of the encoder, on the vectors of one of its layers."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pad_sequence

from mtmetrics.artifacts.models import model_folder, model_label, pretrained
from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.models.composition import KNOWN_SIDES, SIDES, ComposedMember, Composition
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.regressor import Regressor, RegressorShape
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training.configs import CompositionConfig
from mtmetrics.training.judged_pairs import JudgedFiles, JudgedPair, agreement, counts, pair_texts
from mtmetrics.training.regressor_loop import LayerStore, mixed_seed, plan
from mtmetrics.training.run import Run
from mtmetrics.training.trainers import Judging, PlannedBatches, decay_groups, planned_trainer, trainer_settings

_EVALUATION_BATCH = 64


def train_composed(
    run: Run,
    files: JudgedFiles,
    encoder: str,
    *,
    vectors: str | Path | None = None,
    begin: str | Path | None = None,
    repeats: Mapping[str, float] | None = None,
    config: CompositionConfig,
) -> Path:
    """Trains a network with a transformer composition (`mtmetrics.models.composition.ComposedInference`).

    The encoder runs once over every distinct text; the vectors of the layer that the network reads are kept in a file
    that is mapped into memory, so that 200,000 rows need no more of it than 10,000.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        files: to train on, and on which every evaluation measures Pearson's r.
        encoder: its name; of the BERT architecture, whose upper layers the composition begins as.
        vectors: folder for the vectors, which several runs may share; the work folder if not given.
        begin: a regressor of the same form to begin with, instead of the encoder's layers.
        repeats: file name (or its beginning) -> how often its rows are read in an epoch; 1 for all others, 0.5 for half
            of the rows, another half in each epoch.
    """
    choice("architecture", config.architecture, ("esim",))
    choice("against", config.against, tuple(KNOWN_SIDES))
    dtype = "bfloat16" if config.bf16 else "float32"
    reader = TokenEncoder(encoder, layer=config.layer, max_pieces=config.max_pieces, dtype=dtype, cache_bytes=0)
    origin = f"{reader.label}#{reader.fingerprint}"
    begun, fingerprint = ModelPool().regressor(str(begin)) if begin else (None, None)
    from_other = f"{model_label(begin)}#{fingerprint}" if begin else None
    files.open(run, config, encoder=origin, begin=from_other, repeats=dict(repeats or {}))
    train, held = files.read(config)
    texts = [pair_texts(pair) for pair in (*train, *held)]
    store = LayerStore(
        Path(vectors) if vectors else run.work / "vectors",
        reader,
        # In one order, so that runs on the same texts share the file, whatever they train on and hold back.
        sorted(set(itertools.chain.from_iterable(texts)), key=lambda text: (text[0], text[1] or "")),
        special=True,
    )
    torch.manual_seed(run.seed)
    network = _network(encoder, reader, config, floor=max(config.lowest, min(pair.human for pair in train)))
    if begun is not None:
        if begun.composition != network.composition or begun.members[0].inner.weight.shape[0] != config.hidden:
            form = f"{network.composition} with {config.hidden} units"
            raise InputError(f"begin {begin}: a network of another form; the settings ask for {form}")
        network.load_state_dict(begun.state_dict())
    batches = JudgedBatches(_plan(store, train, repeats or {}, config, run.seed), store, train, config)
    order = np.argsort(_lengths(store, held), kind="stable")
    plan_of_held = [order[first : first + _EVALUATION_BATCH] for first in range(0, len(order), _EVALUATION_BATCH)]
    trainer = _trainer(run, config, network.members[0], batches, JudgedBatches(plan_of_held, store, held, config))
    run.train(trainer)
    record = {"rows": counts(train, held), "result": trainer.judgement()}
    with run.artifact("regressor", "mtmetrics train regressor", **record) as folder:
        network.save(folder)
    return run.output


def _network(encoder: str, reader: TokenEncoder, config: CompositionConfig, floor: float) -> Regressor:
    """A new network, whose layers are those of the encoder."""
    _, model = pretrained("AutoModel", model_folder(encoder), torch.float32)
    known = model.config
    named = config.begun_from.split("+")
    numbers = [int(number) for number in named if number.isdecimal()]
    possible = len(numbers) == len(named) and all(1 <= number <= known.num_hidden_layers for number in numbers)
    if known.model_type != "bert" or not possible:
        needed = f"an encoder of the BERT architecture with the layers {config.begun_from} is needed"
        raise InputError(f"encoder {encoder}: {needed}, this is {known.model_type} with {known.num_hidden_layers}")
    composition = Composition(config.layer, numbers, known.num_attention_heads, known.intermediate_size)
    shape = RegressorShape(
        architecture="esim",
        against=config.against,
        encoder=reader.label,
        encoder_fingerprint=reader.fingerprint,
        depth=known.num_hidden_layers,
        width=known.hidden_size,
        hidden=config.hidden,
        dropout=config.dropout,
        max_pieces=config.max_pieces,
        floor=floor,
        composition=composition,
    )
    network = Regressor(shape)
    for layer, number in zip(network.members[0].pairs.layers, numbers, strict=True):
        _begin_as(layer, model.encoder.layer[number - 1])
    return network


def _begin_as(layer: torch.nn.TransformerEncoderLayer, bert: Any) -> None:
    """Copies the weights of a layer of BERT, which computes the same in other names."""
    own = bert.attention.self
    parts = (own.query, own.key, own.value)
    pairs = [
        (layer.self_attn.out_proj, bert.attention.output.dense),
        (layer.norm1, bert.attention.output.LayerNorm),
        (layer.linear1, bert.intermediate.dense),
        (layer.linear2, bert.output.dense),
        (layer.norm2, bert.output.LayerNorm),
    ]
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        layer.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        for mine, theirs in pairs:
            mine.load_state_dict(theirs.state_dict())


def _plan(
    store: LayerStore,
    pairs: Sequence[JudgedPair],
    repeats: Mapping[str, float],
    config: CompositionConfig,
    seed: int,
) -> list[np.ndarray]:
    """The rows of every step of all epochs."""
    names = np.array([pair.group.rpartition("/")[2] for pair in pairs])
    often = np.ones(len(pairs))
    for beginning, number in repeats.items():
        chosen = np.char.startswith(names, beginning)
        if not chosen.any():
            raise InputError(f"--repeat {beginning}: no file of --judged has a name that begins so")
        often[chosen] = number
    lengths = _lengths(store, pairs)
    steps: list[np.ndarray] = []
    # Where rows are read less than once in an epoch, every epoch has others: those whose turn has come.
    turn = np.random.default_rng(seed).random(len(pairs))
    for epoch in range(config.epochs):
        read = np.floor(turn + often * (epoch + 1)) - np.floor(turn + often * epoch)
        rows = np.repeat(np.arange(len(pairs)), read.astype(int))
        steps += [rows[batch] for batch in plan(lengths[rows], config.batch, mixed_seed(seed, epoch))]
    return steps


def _lengths(store: LayerStore, pairs: Sequence[JudgedPair]) -> np.ndarray:
    """(n,) pieces of all texts of each pair."""
    return np.array([sum(store.lengths[store.row[text]] for text in pair_texts(pair)) for pair in pairs])


@dataclasses.dataclass(eq=False, repr=False)
class JudgedBatches(PlannedBatches):
    """Batches of judged translations."""

    store: LayerStore
    pairs: Sequence[JudgedPair]
    config: CompositionConfig

    def __post_init__(self) -> None:
        # Of each pair the texts: what is compared with, a source perhaps with its reference, and the translation.
        self._texts = [[self.store.row[text] for text in pair_texts(pair)] for pair in self.pairs]
        self._human = np.array([pair.human for pair in self.pairs]).clip(self.config.lowest, self.config.highest)
        self._sides = [
            [SIDES.index(side) for side in (("source", "reference") if pair.against == "both" else (pair.against,))]
            for pair in self.pairs
        ]

    def __getitem__(self, step: int) -> dict[str, Any]:
        """The padded vectors of both sides in a step, their lengths, what they are, and the judgements."""
        rows = self.plan[step]
        batch: dict[str, Any] = {}
        for name, own in (("other", slice(-1)), ("prediction", slice(-1, None))):
            texts = [self._texts[row][own] for row in rows]
            lengths = np.array([self.store.lengths[each].sum() for each in texts])
            vectors = self.store.pieces(np.concatenate(texts))[:, 0].split(lengths.tolist())
            batch[name] = pad_sequence(list(vectors), batch_first=True)
            batch[f"{name}_lengths"] = torch.from_numpy(lengths)
        positions = [np.repeat(self._sides[row], self.store.lengths[self._texts[row][:-1]]) for row in rows]
        against = pad_sequence([torch.from_numpy(each) for each in positions], batch_first=True)
        return batch | {"against": against, "human": torch.from_numpy(self._human[rows]).float()}


class _Objective(torch.nn.Module):
    """Huber loss of a network."""

    def __init__(self, member: ComposedMember) -> None:
        super().__init__()
        self.member = member

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        other_lengths: torch.Tensor,
        prediction_lengths: torch.Tensor,
        against: torch.Tensor,
        human: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        # On CPUs, the gradient of the fused attention is slow for texts as short as these.
        with sdpa_kernel(SDPBackend.MATH):
            scores = self.member(other, prediction, (other_lengths, prediction_lengths), against).float()
        return {"loss": torch.nn.functional.huber_loss(scores, human), "scores": scores}


def _trainer(
    run: Run, config: CompositionConfig, member: ComposedMember, batches: JudgedBatches, held: JudgedBatches
) -> Any:
    from transformers import set_seed

    class PairTrainer(Judging, planned_trainer()):
        """Evaluates on the held-back judgements."""

        def judge(self) -> dict[str, float]:
            model = self.model.eval()
            device = next(model.parameters()).device
            scores = np.empty(len(held.pairs))
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
                for number, rows in enumerate(held.plan):
                    batch = {name: values.to(device) for name, values in held[number].items()}
                    scores[rows] = model(**batch)["scores"].cpu().numpy()
            model.train()
            return agreement(scores, held.pairs, [f"{pair.group}_{pair.against}" for pair in held.pairs])

    set_seed(run.seed)
    layers = {id(values) for values in member.pairs.layers.parameters()}
    groups = []
    for inside, rate in ((True, config.layer_lr), (False, config.other_lr)):
        own = [values for values in member.parameters() if (id(values) in layers) is inside]
        groups += decay_groups(own, config.weight_decay, lr=rate)
    return PairTrainer(
        model=_Objective(member),
        args=trainer_settings(run, config, config.other_lr, steps=len(batches)),
        train_dataset=batches,
        eval_dataset=held,
        optimizers=(torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True), None),
    )
