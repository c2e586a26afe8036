"""Trains an ESIM whose composition is a transformer.

ESIM (Chen et al., 2017) compares two texts word by word, and composes the comparisons into a score.
Here transformer layers compose. They begin as layers of an encoder, whose vectors the network reads.

`train_composed` goes through these steps: judged translations become `Examples`; the encoder reads
their texts once into a `LayerStore`; `plan_units` decides which examples meet in a batch;
`JudgedBatches` makes the batches; `Objective` is the loss.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
from mtmetrics.models.regressor import Regressor, RegressorSettings
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

if TYPE_CHECKING:
    from transformers.models.bert.modeling_bert import BertLayer

# Translations of a batch in an evaluation.
_EVALUATION_BATCH = 64
# Lengths are disturbed by up to this share, so that every epoch has other batches.
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
    # The vectors are float32 with `bf16` too: scoring reads them so, unless it is told otherwise.
    reader = TokenEncoder(
        encoder,
        layer=config.layer,
        max_pieces=config.max_pieces,
        dtype="float32",
        cache_bytes=0,
    )
    models: dict[str, str | None] = {
        "encoder": f"{reader.label}#{reader.fingerprint}",
        "begin": None,
    }
    begun: Regressor | None = None
    if begin:
        begun, fingerprint = ModelPool().regressor(str(begin))
        models["begin"] = f"{model_label(begin)}#{fingerprint}"
    if original:
        models["original"] = pinned(original, model_folder(original))
    repeats = dict(repeats or {})
    files.open(run, config, repeats=repeats, **models)
    train, held = files.read(config)
    _check_scale([*train, *held], config)
    examples = Examples.of(train, config)
    # A worsened copy has no judgement to correlate with.
    validation = Examples.of([pair._replace(worse=None) for pair in held], config)
    vector_folder = Path(vectors) if vectors else run.work / "vectors"
    store = _store(vector_folder, reader, [*examples.pairs, *validation.pairs])
    torch.manual_seed(run.seed)
    lowest_judgement = min(pair.human for pair in train)
    # The floor is the score of a text without words.
    floor = max(config.lowest, lowest_judgement)
    network = _network(original or encoder, reader, config, floor)
    if begun is not None:
        _require_form(begun, network.composition, config.hidden, begin)
        network.load_state_dict(begun.state_dict())
    plan = plan_units(store, examples, repeats, config, run.seed)
    trainer = _trainer(
        run,
        config,
        network.members[0],
        JudgedBatches(plan, store, examples),
        JudgedBatches(_evaluation_plan(store, validation), store, validation),
    )
    run.train(trainer)
    record = {"rows": counts(train, held), "result": trainer.judgement()}
    with run.artifact("regressor", "mtmetrics train regressor", **record) as folder:
        network.save(folder)
    return run.output


def _check_scale(pairs: Sequence[JudgedPair], config: CompositionConfig) -> None:
    """Raises InputError for a file on another scale, such as 0 to 100: cut to the limits, at least
    half of its judgements would be equal."""
    judgements_of_file: defaultdict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        judgements_of_file[pair.group].append(pair.human)
    for file, judgements in judgements_of_file.items():
        median = float(np.median(judgements))
        if not config.lowest <= median <= config.highest:
            raise InputError(
                f"{file}: half of the judgements or more lie beyond the limits {config.lowest:g} and "
                f"{config.highest:g}, and would count as equal (their median is {median:g}); choose "
                "standardise, or set lowest and highest"
            )


def _store(folder: Path, reader: TokenEncoder, pairs: Sequence[JudgedPair]) -> LayerStore:
    """The encoder's vectors of all texts of the pairs, in a file of the folder."""
    texts = {text for pair in pairs for text in pair_texts(pair)}
    # In one order, so that runs on the same texts share the file, whatever they train on and hold
    # back.
    ordered = sorted(texts, key=lambda text: (text[0], text[1] or ""))
    return LayerStore(folder, reader, ordered, special=True)


def _require_form(
    begun: Regressor,
    composition: Composition | None,
    hidden: int,
    begin: str | Path | None,
) -> None:
    """Refuses to begin with a network that is not of the form that the settings ask for."""
    begun_hidden = begun.members[0].inner.weight.shape[0]
    if begun.composition != composition or begun_hidden != hidden:
        raise InputError(
            f"begin {begin}: a network of another form; the settings ask for {composition} with "
            f"{hidden} units",
            option="begin",
        )


def _evaluation_plan(store: LayerStore, examples: "Examples") -> list[np.ndarray]:
    """The rows of every batch of an evaluation: all examples, the shortest first."""
    by_length = np.argsort(_lengths(store, examples), kind="stable")
    starts = range(0, len(by_length), _EVALUATION_BATCH)
    return [by_length[start : start + _EVALUATION_BATCH] for start in starts]


@dataclasses.dataclass(frozen=True)
class Examples:
    """Translations that a network scores, and the judgement that it learns for each.

    Attributes:
        pairs: n translations, each with the text that it is compared with; a worsened copy is a
            pair of its own, right behind its original.
        human: (n,) judgements, cut to the limits of the settings; NaN for a worsened copy.
        better: (n,) for a worsened copy the row of its original, else -1.
        units: each holds the rows that have to meet in one batch, because the loss compares them.
    """

    pairs: list[JudgedPair]
    human: np.ndarray
    better: np.ndarray
    units: list[np.ndarray]

    @classmethod
    def of(cls, judged: Sequence[JudgedPair], config: CompositionConfig) -> "Examples":
        """Sets worsened copies behind their originals, and groups the translations that the loss
        compares: those of one source, where differences have a weight, and copies."""
        pairs: list[JudgedPair] = []
        human: list[float] = []
        better: list[int] = []
        # A group is a unit; a translation that is not compared is a group of its own.
        groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for pair in judged:
            row = len(pairs)
            is_compared = config.difference_weight > 0 or pair.worse is not None
            compared_texts = (pair.group, pair.against, pair.other, pair.reference)
            group = groups[compared_texts if is_compared else (row,)]
            group.append(row)
            pairs.append(pair)
            human.append(pair.human)
            better.append(-1)
            if pair.worse is not None:
                group.append(row + 1)
                pairs.append(pair._replace(translation=pair.worse, worse=None))
                human.append(np.nan)
                better.append(row)
        units = [np.array(rows) for rows in groups.values()]
        cut_human = np.array(human).clip(config.lowest, config.highest)
        return cls(pairs, cut_human, np.array(better), units)


def _network(
    original: str | Path,
    reader: TokenEncoder,
    config: CompositionConfig,
    floor: float,
) -> Regressor:
    """A new network of one member, whose layers begin as layers of the original.

    Args:
        original: an encoder of the BERT architecture.
        reader: the encoder whose vectors the network reads.
        config: of the network; ``begun_from`` names the layers of the original.
        floor: the score of a text without words.
    """
    _, model = pretrained("AutoModel", model_folder(original), torch.float32)
    about = model.config
    depth = about.num_hidden_layers
    names = config.begun_from.split("+")
    has_layers = all(name.isdecimal() and 1 <= int(name) <= depth for name in names)
    if about.model_type != "bert" or not has_layers or about.hidden_size != reader.dim:
        raise InputError(
            f"encoder {original}: a BERT encoder, {reader.dim} wide, with the layers "
            f"{config.begun_from} is needed, this is {about.model_type}, {about.hidden_size} wide, "
            f"with {depth} layers",
            option="encoder",
        )
    layer_numbers = [int(name) for name in names]
    composition = Composition(
        config.layer,
        layer_numbers,
        about.num_attention_heads,
        about.intermediate_size,
    )
    shape = RegressorSettings(
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
    for layer, number in zip(network.members[0].pairs.layers, layer_numbers, strict=True):
        _begin_as(layer, model.encoder.layer[number - 1])
    return network


def _begin_as(layer: torch.nn.TransformerEncoderLayer, bert: "BertLayer") -> None:
    """Copies the weights of a layer of BERT, which computes the same function; its parts have other
    names."""
    attention = bert.attention.self
    parts = (attention.query, attention.key, attention.value)
    modules = [
        (layer.self_attn.out_proj, bert.attention.output.dense),
        (layer.norm1, bert.attention.output.LayerNorm),
        (layer.linear1, bert.intermediate.dense),
        (layer.linear2, bert.output.dense),
        (layer.norm2, bert.output.LayerNorm),
    ]
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        layer.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        for module, bert_module in modules:
            module.load_state_dict(bert_module.state_dict())


def plan_units(
    store: LayerStore,
    examples: Examples,
    repeats: Mapping[str, float],
    config: CompositionConfig,
    seed: int,
) -> list[np.ndarray]:
    """Plans the rows of every step of all epochs. A step has whole units of about the same length,
    `config.batch` rows or a few more.

    Args:
        store: knows the lengths of the texts.
        examples: the rows, and their units.
        repeats: beginning of a file name -> how often its units are read in an epoch.
        config: number of epochs, and rows of a batch.
        seed: of the order.
    """
    times = _times_per_epoch(examples, repeats)
    row_lengths = _lengths(store, examples)
    lengths = np.array([row_lengths[unit].max() for unit in examples.units])
    steps: list[np.ndarray] = []
    # A unit that is read 0.5 times in an epoch has its turn in every second one; where in this
    # cycle it begins is drawn, so that each epoch has half of the units.
    start = np.random.default_rng(seed).random(len(times))
    for epoch in range(config.epochs):
        count = np.floor(start + times * (epoch + 1)) - np.floor(start + times * epoch)
        numbers = np.repeat(np.arange(len(times)), count.astype(int))
        generator = np.random.default_rng(mixed_seed(seed, epoch))
        noise = 1 + generator.uniform(-_LENGTH_NOISE, _LENGTH_NOISE, len(numbers))
        by_length = numbers[np.argsort(lengths[numbers] * noise, kind="stable")]
        batches = _batches_of_units([examples.units[number] for number in by_length], config.batch)
        steps += [batches[number] for number in generator.permutation(len(batches))]
    return steps


def _times_per_epoch(examples: Examples, repeats: Mapping[str, float]) -> np.ndarray:
    """(units,) how often each unit is read in an epoch, 1 unless the name of its file begins as a
    key of `repeats`."""
    first_rows = [unit[0] for unit in examples.units]
    names = np.array([examples.pairs[row].group.rpartition("/")[2] for row in first_rows])
    times = np.ones(len(names))
    for beginning, number in repeats.items():
        begins_so = np.char.startswith(names, beginning)
        if not begins_so.any():
            raise InputError(f"--repeat {beginning}: no file of --judged has a name that begins so")
        times[begins_so] = number
    return times


def _batches_of_units(units: Sequence[np.ndarray], size: int) -> list[np.ndarray]:
    """Joins units that follow each other until they have `size` rows."""
    batches: list[np.ndarray] = []
    waiting: list[np.ndarray] = []
    for unit in units:
        waiting.append(unit)
        if sum(map(len, waiting)) >= size:
            batches.append(np.concatenate(waiting))
            waiting = []
    return [*batches, np.concatenate(waiting)] if waiting else batches


def _lengths(store: LayerStore, examples: Examples) -> np.ndarray:
    """(n,) number of pieces of all texts of each pair."""
    totals = []
    for pair in examples.pairs:
        rows = [store.row[text] for text in pair_texts(pair)]
        totals.append(store.lengths[rows].sum())
    return np.array(totals)


@dataclasses.dataclass(eq=False, repr=False)
class JudgedBatches(PlannedBatches):
    """Batches of judged translations, as `Objective.forward` takes them.

    Attributes:
        plan: the rows of `examples` in every step.
        store: the vectors of their texts.
        examples: the translations.
    """

    store: LayerStore
    examples: Examples

    def __post_init__(self) -> None:
        pairs = self.examples.pairs
        # For each pair the rows of its texts in the store: one or two texts to compare with, then
        # the translation.
        self._text_rows = [[self.store.row[text] for text in pair_texts(pair)] for pair in pairs]
        # For each pair the places in SIDES of the texts to compare with.
        self._sides = []
        for pair in pairs:
            sides = ("source", "reference") if pair.against == "both" else (pair.against,)
            self._sides.append([SIDES.index(side) for side in sides])
        # For each pair the number of its unit.
        self._unit = np.empty(len(pairs), dtype=np.int64)
        for number, unit in enumerate(self.examples.units):
            self._unit[unit] = number

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        """The arguments of the objective in a step."""
        rows = self.plan[step]
        compared = [self._text_rows[row][:-1] for row in rows]
        translations = [self._text_rows[row][-1:] for row in rows]
        other, other_lengths = self._padded(compared)
        prediction, prediction_lengths = self._padded(translations)
        piece_sides = []
        for row, texts in zip(rows, compared, strict=True):
            sides = np.repeat(self._sides[row], self.store.lengths[texts])
            piece_sides.append(torch.from_numpy(sides))
        place_in_batch = {row: place for place, row in enumerate(rows.tolist())}
        originals = self.examples.better[rows].tolist()
        return {
            "other": other,
            "other_lengths": other_lengths,
            "prediction": prediction,
            "prediction_lengths": prediction_lengths,
            "against": pad_sequence(piece_sides, batch_first=True),
            "human": torch.from_numpy(self.examples.human[rows]).float(),
            "unit": torch.from_numpy(self._unit[rows]),
            "better": torch.tensor([place_in_batch.get(row, -1) for row in originals]),
        }

    def _padded(self, texts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, n, d) vectors of texts, padded, and their (B,) lengths; item b holds the rows in the
        store of texts that stand one behind the other."""
        lengths = np.array([self.store.lengths[text_rows].sum() for text_rows in texts])
        vectors = self.store.pieces(np.concatenate(texts))[:, 0].split(lengths.tolist())
        return pad_sequence(list(vectors), batch_first=True), torch.from_numpy(lengths)


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
        # Not `config`, by which a trainer looks for the configuration of a `transformers` model.
        self.settings = config

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
            other_lengths: (B,) lengths of the sources or references.
            prediction_lengths: (B,) lengths of the translations.
            against: (B, n) place in `SIDES` of the text that each vector of `other` belongs to.
            human: (B,) judgements; NaN for worsened copies.
            unit: (B,) number of the unit of each translation, see `Examples`.
            better: (B,) for a worsened copy the place of its original in the batch, else -1.
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
        if self.settings.difference_weight:
            is_pair = (unit[:, None] == unit) & is_judged[:, None] & is_judged
            first, second = is_pair.triu(1).nonzero(as_tuple=True)
            if len(first):
                score_gaps = scores[first] - scores[second]
                human_gaps = human[first] - human[second]
                loss = loss + self.settings.difference_weight * huber_loss(score_gaps, human_gaps)
        is_copy = better >= 0
        if is_copy.any():
            copy_gaps = scores[better[is_copy]] - scores[is_copy]
            loss = (
                loss + self.settings.worse_weight * (self.settings.margin - copy_gaps).relu().mean()
            )
        return {"loss": loss, "scores": scores}


def _trainer(
    run: Run,
    config: CompositionConfig,
    member: ComposedMember,
    batches: JudgedBatches,
    held: JudgedBatches,
) -> Judging:
    """The trainer of a network on `batches`, which evaluates on held-back ones. The layers that
    began as the encoder's have a learning rate of their own."""
    from transformers import set_seed

    def judge(model: Objective) -> dict[str, float]:
        device = next(model.parameters()).device
        pairs = held.examples.pairs
        scores = np.empty(len(pairs))
        with torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
            for number, rows in enumerate(held.plan):
                batch = {name: values.to(device) for name, values in held[number].items()}
                scores[rows] = model(**batch)["scores"].cpu().numpy()
        return agreement(scores, pairs, [f"{pair.group}_{pair.against}" for pair in pairs])

    set_seed(run.seed)
    others = [
        values for name, values in member.named_parameters() if not name.startswith("pairs.layers.")
    ]
    groups = [
        *decay_groups(member.pairs.layers.parameters(), config.weight_decay, lr=config.layer_lr),
        *decay_groups(others, config.weight_decay, lr=config.other_lr),
    ]
    return planned_trainer(
        judge,
        model=Objective(member, config),
        args=trainer_settings(run, config, config.other_lr, steps=len(batches)),
        train_dataset=batches,
        eval_dataset=held,
        optimizers=(torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True), None),
    )
