"""Trains an ESIM whose composition is a transformer.

ESIM compares two texts word by word (local inference), and composes what it found into a score. Here
transformer layers compose, which begin as layers of an encoder. A trained regressor is one or several
such networks, its members; this module trains one. Its floor is the score of a text with nothing in it.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import huber_loss
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
from mtmetrics.training.regressor_loop import LayerStore, mixed_seed
from mtmetrics.training.run import Run, pinned
from mtmetrics.training.trainers import (
    Judging,
    PlannedBatches,
    decay_groups,
    planned_trainer,
    trainer_settings,
)

_EVALUATION_BATCH = 64
_LENGTH_NOISE = 0.1


def train_composed(
    run: Run,
    files: JudgedFiles,
    encoder: str,
    *,
    original: str | Path | None = None,
    vectors: str | Path | None = None,
    begin: str | Path | None = None,
    repeats: Mapping[str, float] | None = None,
    config: CompositionConfig,
) -> Path:
    """Trains a network with a transformer composition
    (`mtmetrics.models.composition.ComposedInference`).

    The encoder runs once over every distinct text. The vectors of the layer that the network reads
    are kept in a file that is mapped into memory, so that 200,000 rows need no more of it than
    10,000.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        files: to train on, and on which every evaluation measures Pearson's r.
        encoder: its name.
        original: the encoder of the BERT architecture whose layers the composition begins as; the
            `encoder` itself if not given.
        vectors: folder for the vectors, which several runs may share; the work folder if not given.
        begin: a regressor of the same form to begin with, instead of an encoder's layers.
        repeats: file name (or its beginning) -> how often its rows are read in an epoch; 1 for all
            others, 0.5 for half of the rows, another half in each epoch.
    """
    choice("architecture", config.architecture, ("esim",))
    choice("against", config.against, tuple(KNOWN_SIDES))
    dtype = "bfloat16" if config.bf16 else "float32"
    reader = TokenEncoder(
        encoder,
        layer=config.layer,
        max_pieces=config.max_pieces,
        dtype=dtype,
        cache_bytes=0,
    )
    models: dict[str, Any] = {"encoder": f"{reader.label}#{reader.fingerprint}", "begin": None}
    begun = None
    if begin:
        begun, fingerprint = ModelPool().regressor(str(begin))
        models["begin"] = f"{model_label(begin)}#{fingerprint}"
    if original:
        models["original"] = pinned(original, model_folder(original))
    files.open(run, config, repeats=dict(repeats or {}), **models)
    train, held = files.read(config)
    examples = Examples.of(train, config)
    validation = Examples.of([pair._replace(worse=None) for pair in held], config)
    texts = {
        text for each in (examples, validation) for pair in each.pairs for text in pair_texts(pair)
    }
    store = LayerStore(
        Path(vectors) if vectors else run.work / "vectors",
        reader,
        # In one order, so that runs on the same texts share the file, whatever they train on and
        # hold back.
        sorted(texts, key=lambda text: (text[0], text[1] or "")),
        special=True,
    )
    torch.manual_seed(run.seed)
    lowest_judgement = min(pair.human for pair in train)
    network = _network(
        original or encoder,
        reader,
        config,
        floor=max(config.lowest, lowest_judgement),
    )
    if begun is not None:
        if (
            begun.composition != network.composition
            or begun.members[0].inner.weight.shape[0] != config.hidden
        ):
            form = f"{network.composition} with {config.hidden} units"
            raise InputError(
                f"begin {begin}: a network of another form; the settings ask for {form}",
                option="begin",
            )
        network.load_state_dict(begun.state_dict())
    batches = JudgedBatches(
        plan_units(store, examples, repeats or {}, config, run.seed),
        store,
        examples,
    )
    by_length = np.argsort(_lengths(store, validation), kind="stable")
    plan_of_held = [
        by_length[first : first + _EVALUATION_BATCH]
        for first in range(0, len(by_length), _EVALUATION_BATCH)
    ]
    held_batches = JudgedBatches(plan_of_held, store, validation)
    trainer = _trainer(run, config, network.members[0], batches, held_batches)
    run.train(trainer)
    record = {"rows": counts(train, held), "result": trainer.judgement()}
    with run.artifact("regressor", "mtmetrics train regressor", **record) as folder:
        network.save(folder)
    return run.output


@dataclasses.dataclass(frozen=True)
class Examples:
    """Translations that a network scores, and what it learns of each.

    Attributes:
        pairs: n translations with what they are compared with; a worsened copy is a pair of its
            own.
        human: (n,) judgements, cut to the limits of the settings; NaN for a worsened copy.
        better: (n,) for a worsened copy the number of the pair that it was made from, else -1.
        units: numbers of pairs that have to meet in a batch.
    """

    pairs: list[JudgedPair]
    human: np.ndarray
    better: np.ndarray
    units: list[np.ndarray]

    @classmethod
    def of(cls, judged: Sequence[JudgedPair], config: CompositionConfig) -> "Examples":
        """Sets worsened copies behind their pairs, and groups what is compared within a source."""
        pairs: list[JudgedPair] = []
        human: list[float] = []
        better: list[int] = []
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        for pair in judged:
            is_compared = config.difference_weight > 0 or pair.worse is not None
            key = (
                (pair.group, pair.against, pair.other, pair.reference)
                if is_compared
                else len(pairs)
            )
            groups[key].append(len(pairs))
            pairs.append(pair)
            human.append(pair.human)
            better.append(-1)
            if pair.worse is not None:
                groups[key].append(len(pairs))
                better.append(len(pairs) - 1)
                pairs.append(pair._replace(translation=pair.worse, worse=None))
                human.append(np.nan)
        units = [np.array(rows) for rows in groups.values()]
        return cls(
            pairs,
            np.array(human).clip(config.lowest, config.highest),
            np.array(better),
            units,
        )


def _network(
    original: str | Path,
    reader: TokenEncoder,
    config: CompositionConfig,
    floor: float,
) -> Regressor:
    """A new network, whose layers are those of the original."""
    _, model = pretrained("AutoModel", model_folder(original), torch.float32)
    about = model.config
    names = config.begun_from.split("+")
    numbers = [int(name) for name in names if name.isdecimal()]
    has_layers = len(numbers) == len(names) and all(
        1 <= number <= about.num_hidden_layers for number in numbers
    )
    if about.model_type != "bert" or not has_layers or about.hidden_size != reader.dim:
        needed = f"a BERT encoder, {reader.dim} wide, with the layers {config.begun_from} is needed"
        kind = (
            f"{about.model_type}, {about.hidden_size} wide, with {about.num_hidden_layers} layers"
        )
        raise InputError(f"encoder {original}: {needed}, this is {kind}", option="encoder")
    composition = Composition(
        config.layer,
        numbers,
        about.num_attention_heads,
        about.intermediate_size,
    )
    shape = RegressorShape(
        architecture="esim",
        against=config.against,
        encoder=reader.label,
        encoder_fingerprint=reader.fingerprint,
        depth=reader.depth or 0,
        width=reader.dim,
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
    attention = bert.attention.self
    parts = (attention.query, attention.key, attention.value)
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
        for copied, original in pairs:
            copied.load_state_dict(original.state_dict())


def plan_units(
    store: LayerStore,
    examples: Examples,
    repeats: Mapping[str, float],
    config: CompositionConfig,
    seed: int,
) -> list[np.ndarray]:
    """The rows of every step of all epochs: whole units of about the same length, `config.batch`
    rows or a few more."""
    names = np.array([examples.pairs[unit[0]].group.rpartition("/")[2] for unit in examples.units])
    times = np.ones(len(names))
    for beginning, number in repeats.items():
        is_meant = np.char.startswith(names, beginning)
        if not is_meant.any():
            raise InputError(f"--repeat {beginning}: no file of --judged has a name that begins so")
        times[is_meant] = number
    row_lengths = _lengths(store, examples)
    lengths = np.array([row_lengths[unit].max() for unit in examples.units])
    steps: list[np.ndarray] = []
    # Where units are read less than once in an epoch, every epoch has others: those whose turn has
    # come.
    turn = np.random.default_rng(seed).random(len(names))
    for epoch in range(config.epochs):
        count = np.floor(turn + times * (epoch + 1)) - np.floor(turn + times * epoch)
        numbers = np.repeat(np.arange(len(names)), count.astype(int))
        generator = np.random.default_rng(mixed_seed(seed, epoch))
        noise = 1 + generator.uniform(-_LENGTH_NOISE, _LENGTH_NOISE, len(numbers))
        by_length = numbers[np.argsort(lengths[numbers] * noise, kind="stable")]
        batches = _batches_of_units([examples.units[number] for number in by_length], config.batch)
        steps += [batches[number] for number in generator.permutation(len(batches))]
    return steps


def _batches_of_units(units: Sequence[np.ndarray], size: int) -> list[np.ndarray]:
    """Units that follow each other, joined until there are so many rows."""
    batches: list[np.ndarray] = []
    waiting: list[np.ndarray] = []
    for unit in units:
        waiting.append(unit)
        if sum(map(len, waiting)) >= size:
            batches.append(np.concatenate(waiting))
            waiting = []
    return [*batches, np.concatenate(waiting)] if waiting else batches


def _lengths(store: LayerStore, examples: Examples) -> np.ndarray:
    """(n,) pieces of all texts of each pair."""
    return np.array(
        [
            sum(store.lengths[store.row[text]] for text in pair_texts(pair))
            for pair in examples.pairs
        ]
    )


@dataclasses.dataclass(eq=False, repr=False)
class JudgedBatches(PlannedBatches):
    """Batches of judged translations."""

    store: LayerStore
    examples: Examples

    def __post_init__(self) -> None:
        pairs = self.examples.pairs
        # Of each pair the texts: what is compared with, a source perhaps with its reference, and
        # the translation.
        self._store_rows = [[self.store.row[text] for text in pair_texts(pair)] for pair in pairs]
        self._sides = [
            [
                SIDES.index(side)
                for side in (("source", "reference") if pair.against == "both" else (pair.against,))
            ]
            for pair in pairs
        ]
        self._unit = np.empty(len(pairs), dtype=np.int64)
        for number, unit in enumerate(self.examples.units):
            self._unit[unit] = number

    def __getitem__(self, step: int) -> dict[str, Any]:
        """The arguments of the objective in a step."""
        rows = self.plan[step]
        batch: dict[str, Any] = {}
        for name, columns in (("other", slice(-1)), ("prediction", slice(-1, None))):
            texts = [self._store_rows[row][columns] for row in rows]
            lengths = np.array([self.store.lengths[each].sum() for each in texts])
            vectors = self.store.pieces(np.concatenate(texts))[:, 0].split(lengths.tolist())
            batch[name] = pad_sequence(list(vectors), batch_first=True)
            batch[f"{name}_lengths"] = torch.from_numpy(lengths)
        piece_sides = [
            np.repeat(self._sides[row], self.store.lengths[self._store_rows[row][:-1]])
            for row in rows
        ]
        batch["against"] = pad_sequence(
            [torch.from_numpy(each) for each in piece_sides], batch_first=True
        )
        batch["human"] = torch.from_numpy(self.examples.human[rows]).float()
        batch["unit"] = torch.from_numpy(self._unit[rows])
        place = {row: number for number, row in enumerate(rows.tolist())}
        batch["better"] = torch.tensor(
            [place.get(row, -1) for row in self.examples.better[rows].tolist()]
        )
        return batch


class Objective(torch.nn.Module):
    """Loss of a network over a batch of translations; the sum of three parts.

    - Huber loss of each score and its judgement.
    - Huber loss of the difference of two scores and that of their judgements, over all translations
      of one source that meet in the batch; times ``difference_weight``.
    - Hinge loss of a worsened copy and its original, whose scores should lie ``margin`` apart;
      times ``worse_weight``.
    """

    def __init__(self, member: ComposedMember, config: CompositionConfig) -> None:
        super().__init__()
        self.member = member
        self.difference_weight, self.worse_weight, self.margin = (
            config.difference_weight,
            config.worse_weight,
            config.margin,
        )

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        other_lengths: torch.Tensor,
        prediction_lengths: torch.Tensor,
        against: torch.Tensor,
        human: torch.Tensor,
        unit: torch.Tensor,
        better: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """The loss and the scores of B translations.

        Args:
            other: (B, n, d) vectors of sources or references.
            prediction: (B, m, d) vectors of translations.
            other_lengths: (B,) lengths of the first.
            prediction_lengths: (B,) lengths of the second.
            against: (B, n) places in `SIDES` of the first.
            human: (B,) judgements; NaN for worsened copies.
            unit: (B,) numbers of what is compared within a source.
            better: (B,) places in the batch of what worsened copies were made from, else -1.
        """
        # On CPUs, the gradient of the fused attention is slow for texts as short as these.
        with sdpa_kernel(SDPBackend.MATH):
            scores = self.member(
                other,
                prediction,
                (other_lengths, prediction_lengths),
                against,
            ).float()
        is_judged = ~human.isnan()
        loss = huber_loss(scores[is_judged], human[is_judged])
        if self.difference_weight:
            is_pair = (unit[:, None] == unit) & is_judged[:, None] & is_judged
            first, second = is_pair.triu(1).nonzero(as_tuple=True)
            if len(first):
                gaps = scores[first] - scores[second], human[first] - human[second]
                loss = loss + self.difference_weight * huber_loss(*gaps)
        is_copy = better >= 0
        if is_copy.any():
            gaps = scores[better[is_copy]] - scores[is_copy]
            loss = loss + self.worse_weight * (self.margin - gaps).relu().mean()
        return {"loss": loss, "scores": scores}


def _trainer(
    run: Run,
    config: CompositionConfig,
    member: ComposedMember,
    batches: JudgedBatches,
    held: JudgedBatches,
) -> Any:
    from transformers import set_seed

    class PairTrainer(Judging, planned_trainer()):
        """Evaluates on the held-back judgements."""

        def judge(self) -> dict[str, float]:
            model = self.model.eval()
            device = next(model.parameters()).device
            pairs = held.examples.pairs
            scores = np.empty(len(pairs))
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
                for number, rows in enumerate(held.plan):
                    batch = {name: values.to(device) for name, values in held[number].items()}
                    scores[rows] = model(**batch)["scores"].cpu().numpy()
            model.train()
            return agreement(scores, pairs, [f"{pair.group}_{pair.against}" for pair in pairs])

    set_seed(run.seed)
    layers = {id(values) for values in member.pairs.layers.parameters()}
    groups = []
    for is_layer, rate in ((True, config.layer_lr), (False, config.other_lr)):
        parameters = [
            values for values in member.parameters() if (id(values) in layers) is is_layer
        ]
        groups += decay_groups(parameters, config.weight_decay, lr=rate)
    return PairTrainer(
        model=Objective(member, config),
        args=trainer_settings(run, config, config.other_lr, steps=len(batches)),
        train_dataset=batches,
        eval_dataset=held,
        optimizers=(torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True), None),
    )
