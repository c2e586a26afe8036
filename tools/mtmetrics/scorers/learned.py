"""BiLSTM, BiLSTM with attention, and ESIM: networks trained on human judgements (Mathur et al.,
2019, Sec. 3.2)."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from mtmetrics.artifacts.models import model_label
from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import for_language
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.pairs import cosines
from mtmetrics.matching.plan import Alignment, Cells, attention_plan, pieces
from mtmetrics.models.batches import length_batches
from mtmetrics.models.devices import pick_devices
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer, encoded_rows
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import target_language
from mtmetrics.scorers.results import PartScores, joined_scores
from mtmetrics.scorers.settings import loading_option, option, worker_count
from mtmetrics.scorers.side import Side, Table
from mtmetrics.scorers.signature import model_name
from mtmetrics.scorers.words import WordScorer

if TYPE_CHECKING:
    import torch

    from mtmetrics.models.regressor import Regressor

# The vectors of several layers are wide, so that fewer lines than a chunk has are encoded at a
# time.
_LINES = 256
_BATCH_PIECES = 4096


class _PaddedPairs(NamedTuple):
    """A batch of B pairs of texts, as the networks take them.

    Attributes:
        pairs: numbers of the pairs.
        compared: (B, n, width) vectors of the texts that translations are compared with.
        predictions: (B, m, width) vectors of the translations.
        lengths: (B,) lengths of both.
    """

    pairs: list[int]
    compared: "torch.Tensor"
    predictions: "torch.Tensor"
    lengths: "tuple[torch.Tensor, torch.Tensor]"


def pair_features(
    names: Sequence[str],
    layers: Sequence[PackedTokens],
    others: np.ndarray,
    predictions: np.ndarray,
    threads: int = 1,
) -> np.ndarray:
    """Features of N pairs of texts.

    Args:
        names: some of `FEATURES`: greedy-match precision, recall and F1 (as BERTScore), cosine of
            the mean vectors, and ``length``, the logarithm of the ratio of the lengths, translation
            over the other side.
        layers: packed tokens of the texts at each layer that is read, not normalised, special
            tokens included.
        others: (N,) numbers of the references or sources among the texts.
        predictions: (N,) numbers of the translations.
        threads: threads that share the pairs.

    Returns:
        (N, `feature_count`) float32, layer by layer; NaN where a side has no tokens but special
        ones.
    """
    columns: list[np.ndarray] = []
    for tokens in layers:
        features: dict[str, np.ndarray] = {}
        if {"precision", "recall", "f1"} & set(names):
            units = tokens.normalized()
            sides = (dataclasses.replace(units, index=index) for index in (predictions, others))
            scores = bertscore(*sides, threads=threads)
            features |= {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
        if "cosine" in names:
            means = tokens.means()
            features["cosine"] = cosines(means[others], means[predictions])
        columns += [features[name] for name in names if name != "length"]
    if "length" in names:
        lengths = layers[0].lengths
        columns.append(np.log(lengths[predictions] / lengths[others]))
    if not columns:
        return np.zeros((len(others), 0), dtype=np.float32)
    return np.stack(columns, axis=1).astype(np.float32)


class LearnedScore(Scorer):
    """The score that a trained network predicts for a translation, on the scale of the judgements
    that it was trained on.

    The network reads the word pieces of both sides, without special tokens, as a learnt mix of the
    encoder's layers; where transformer layers compose it, all tokens as one layer gives them. Of a
    source and its reference the pieces follow each other as if they were one text. A segment with a
    blank side gets the lowest judgement of the training data, which the checkpoint records.

    Args:
        encoder: opened as the network reads it (`Regressor.encoder_options`).
        network: a trained regressor; it says whether translations are compared with references,
            sources, or both.
        fingerprint: 8 hexadecimal digits that pin the network in the signature.
        label: how the signature calls it.
        device: where the network runs.
        **options: of `LearnedScore.Settings`; and `against`, the side to compare with, where the
            network can do several.

    Raises:
        ArtifactError: the network was trained on another encoder.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of a learned metric."""

        regressor: str | None = loading_option(
            "another trained network: folder, bundled artifact or Hub repository",
            usage="MODEL",
        )
        encoder: str | None = loading_option(
            (
                "where the network's encoder lies, if not under the name that the network records; "
                "it must be the same one"
            ),
            usage="MODEL",
        )
        workers: int | None = option(None, settings.WORKERS)

    settings: Settings

    sides = tuple(Side)
    usual = Side.REFERENCE
    scale = "on the scale of the judgements that the network was trained on"
    usual_preset = "mini"
    # A preset has one table for each of what its networks compare with: [regressors.reference],
    # [regressors.source], [regressors.both]; in them there may be tables of target languages:
    # [regressors.reference.en].
    preset_keys: ClassVar = {
        name: {"model", "revision"} for name in ("regressors.*", "regressors.*.*")
    }

    def __init__(
        self,
        encoder: TokenEncoder,
        network: "Regressor",
        fingerprint: str | None = None,
        label: str = "unnamed",
        device: Any = "cpu",
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        if network.encoder_fingerprint != encoder.fingerprint:
            needed = f"{network.encoder}#{network.encoder_fingerprint}"
            raise ArtifactError(
                f"regressor {label}: it was trained on the encoder {needed}, not on "
                f"{model_name(encoder)}; pass that encoder",
                option="regressor",
            )
        super().__init__(settings=settings, **options)
        self.encoder, self.dtype = encoder, encoder.dtype
        self.network = network.to(device).eval()
        self.set_side(self.settings.against or network.against)
        self.floor = network.floor
        self.fingerprint, self.label = fingerprint, label
        self.device = device
        self.workers = worker_count(self.settings.workers)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """`against` chooses among the networks of a preset, of which one may do one side only.

        Raises:
            InputError: the network compares with something else than asked.
            ArtifactError: the network is of another kind.
        """
        wanted_side = cls.resolved_side(preset, settings.against)
        table: Table = {"model": settings.regressor}
        if not settings.regressor:
            table = _network_table(preset, wanted_side, target_language(settings.lang_pair))
        name = preset.path(table["model"])
        network, fingerprint = models.regressor(name, revision=table.get("revision"))
        if network.architecture != cls.metric:
            raise ArtifactError(
                f"regressor {name}: it is of the metric {network.architecture}, not {cls.metric}",
                option="regressor",
            )
        against = _side_of_network(name, network, settings.against, wanted_side)
        try:
            encoder = models.encoder(
                settings.encoder or network.encoder, **network.encoder_options()
            )
        except ArtifactError as error:
            hint = ""
            if not settings.encoder:
                hint = "; where its encoder lies elsewhere, pass encoder=DIR"
            raise ArtifactError(
                f"regressor {name}: {error}{hint}", option="regressor", mentions=["encoder=DIR"]
            ) from error
        return cls(
            encoder,
            network,
            fingerprint,
            model_label(name),
            pick_devices(models.device)[0],
            settings=dataclasses.replace(settings, against=against),
        )

    def signature_fields(self) -> dict[str, object]:
        network = f"{self.label}#{self.fingerprint}" if self.fingerprint else self.label
        return {
            "reg": network,
            "enc": model_name(self.encoder),
            **self.settings.signature_fields(),
        }

    def compute(self, batch: Batch) -> list[PartScores]:
        results_of_slices = [self._scores_of_slice(part) for part in batch.slices(_LINES)]
        return [joined_scores(results) for results in zip(*results_of_slices, strict=True)]

    def _scores_of_slice(self, batch: Batch) -> list[PartScores]:
        """The scores of each system on a few segments."""
        tokens = encoded_rows(self.encoder, batch)
        pieces = Pieces(tokens, special=self.network.composition is not None)
        # (columns, segments) numbers of the texts among those that are encoded: sources or
        # references or both, then the translations of each system.
        texts = tokens.index.reshape(-1, len(batch))
        compared, systems = np.split(texts, [len(self.side.columns)])
        # The systems follow each other, so that they are predicted together.
        pairs = np.concatenate([np.tile(compared, len(systems)), systems.reshape(1, -1)])
        is_empty = (pieces.words[pairs] == 0).any(0)
        is_truncated = tokens.truncated[pairs].any(0)
        scores = np.full(pairs.shape[1], np.nan)
        scores[~is_empty] = self._predict(pieces, pairs[:, ~is_empty])
        by_system = [
            column.reshape(len(systems), len(batch)) for column in (scores, is_truncated, is_empty)
        ]
        return [
            PartScores(segments, {}, truncated, empty)
            for segments, truncated, empty in zip(*by_system, strict=True)
        ]

    def _predict(self, pieces: "Pieces", pairs: np.ndarray) -> np.ndarray:
        """(n,) scores of (2, n) pairs of texts, or (3, n) of a source, its reference and the
        translation."""
        import torch

        scores = np.empty(pairs.shape[1])
        features = self._features(pieces.tokens, pairs)
        with torch.inference_mode():
            for batch in self._batches(pieces, pairs):
                batch_features = None
                if self.network.features:
                    batch_features = torch.from_numpy(features[batch.pairs]).to(self.device)
                lengths = pieces.lengths[pairs[:-1, batch.pairs]]
                roles = self._roles(lengths, batch.compared.shape[1])
                predicted = self.network(
                    batch.compared, batch.predictions, batch.lengths, batch_features, roles
                )
                scores[batch.pairs] = predicted.cpu().numpy()
        return scores

    def _roles(self, lengths: np.ndarray, longest: int) -> "torch.Tensor":
        """Says of each position of the texts that translations are compared with whether it belongs
        to a source or a reference, for networks with a composition.

        Args:
            lengths: (1, B) lengths of the texts, or (2, B) of sources and references, which follow
                each other.
            longest: number of positions.

        Returns:
            (B, longest) numbers of sides in `mtmetrics.models.composition.SIDES`.
        """
        import torch

        from mtmetrics.models.composition import SIDES

        if self.side is not Side.BOTH:
            shape = lengths.shape[1], longest
            return torch.full(shape, SIDES.index(self.side), device=self.device)
        is_reference = np.arange(longest) >= lengths[0][:, None]
        roles = np.where(is_reference, SIDES.index("reference"), SIDES.index("source"))
        return torch.from_numpy(roles).to(self.device)

    def _batches(self, pieces: "Pieces", pairs: np.ndarray) -> Iterator["_PaddedPairs"]:
        """Yields batches of pairs of like length."""
        import torch

        lengths = np.stack([pieces.lengths[pairs[:-1]].sum(0), pieces.lengths[pairs[-1]]])
        width = self.network.width * len(self.network.members)
        for batch in length_batches(lengths.max(0).tolist(), lambda: _BATCH_PIECES):
            compared, predictions = (
                pieces.padded(texts[:, batch], width).to(self.device)
                for texts in (pairs[:-1], pairs[-1:])
            )
            compared_lengths, prediction_lengths = (
                torch.from_numpy(row[batch]).to(self.device) for row in lengths
            )
            yield _PaddedPairs(batch, compared, predictions, (compared_lengths, prediction_lengths))

    def _features(self, tokens: PackedTokens, pairs: np.ndarray) -> np.ndarray:
        """(n, f) features of (2, n) pairs of texts."""
        network = self.network
        if not network.features:
            return np.zeros((pairs.shape[1], 0), dtype=np.float32)
        # Behind the mixes of the networks stand the layers that features are computed from.
        firsts = [
            (len(network.members) + number) * network.width
            for number in range(len(network.feature_layers))
        ]
        columns = [slice(first, first + network.width) for first in firsts]
        layers = [
            dataclasses.replace(tokens, vectors=tokens.vectors[:, column]) for column in columns
        ]
        return pair_features(network.features, layers, pairs[0], pairs[1], threads=self.workers)


def _network_table(preset: Preset, side: Side, target: str | None) -> Table:
    """The table of the network for a side and, where there are several, a target language.

    Raises:
        InputError: the preset holds networks for other sides or languages only.
        ArtifactError: it holds none.
    """
    regressors = preset.settings.get("regressors", {})
    of_side = regressors.get(side, {})
    table = for_language(of_side, target) or of_side
    if "model" in table:
        return table
    problem = f"holds no network that compares with the {side.label}"
    if of_side:
        problem += f" in {target or 'an unknown language'}, only in {' '.join(of_side)}"
    error = InputError if regressors else ArtifactError
    raise error(
        f"preset {preset.name}: {problem}; train one with 'mtmetrics train regressor', and pass "
        "its folder as regressor=DIR",
        option="preset",
        mentions=["regressor=DIR"],
    )


def _side_of_network(
    name: str, network: "Regressor", against: str | None, wanted_side: Side
) -> str | None:
    """The side that a network is to compare with; None for the one that it was trained for.

    Raises:
        InputError: it cannot compare with the side that the user asks for, `against`.
    """
    from mtmetrics.models.composition import KNOWN_SIDES

    network_sides = KNOWN_SIDES[network.against]
    side = against or wanted_side
    if len(network_sides) > 1 and side in network_sides:
        return side
    if against in (None, network.against):
        return against
    columns = " or ".join(" and ".join(Side(side).columns) for side in network_sides)
    needed = "against='both' with them" if "both" in network_sides else columns
    raise InputError(
        f"against={str(against)!r}: regressor {name} compares with {columns}; pass {needed}, or "
        "another regressor",
        option="against",
        mentions=[f"against={str(against)!r}"],
    )


class BiLSTM(LearnedScore):
    """Each side is read by itself."""

    metric = "bilstm"
    why_no_words = "BiLSTM reads each side by itself; use bilstm_attention or esim"


class AttentiveScore(LearnedScore, WordScorer):
    """A network in which the pieces of each side attend to those of the other."""

    alignments_help = (
        "per segment the pieces of `source` (the reference, or the source) and `prediction`, "
        "their attention (`values`), and `mass`, which is the same scaled to the sum 1"
    )

    @property
    def cells(self) -> Cells:
        """Attention; an `InputError` where two texts are compared with."""
        if self.side is Side.BOTH:
            raise InputError(
                "alignments: are of two texts; compare with the source or the reference"
            )
        return "attention"

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        import torch

        tokens = encoded_rows(self.encoder, batch)
        read = Pieces(tokens, special=self.network.composition is not None)
        pairs = tokens.index.reshape(2, -1)
        filled = np.flatnonzero((read.words[pairs] > 0).all(0))
        attentions: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        with torch.inference_mode():
            for batch_of_pairs in self._batches(read, pairs[:, filled]):
                attention = self.network.attentions(
                    batch_of_pairs.compared, batch_of_pairs.predictions, batch_of_pairs.lengths
                )
                forth, back = (weights.cpu().numpy() for weights in attention)
                for place, pair in enumerate(batch_of_pairs.pairs):
                    segment = int(filled[pair])
                    x, y = (read.places(text) for text in pairs[:, segment])
                    attentions[segment] = forth[place][np.ix_(x, y)], back[place][np.ix_(y, x)]
        columns = zip(tokens.split(len(batch)), batch.columns, strict=True)
        units = [pieces(self.encoder, packed, *column) for packed, column in columns]
        for segment, ((_, x), (_, y)) in enumerate(zip(*units, strict=True)):
            if x.words and y.words:
                yield attention_plan(x, y, *attentions[segment])
            else:
                yield Alignment.nothing("attention")


class BiLSTMAttention(AttentiveScore):
    """The words of each side attend to those of the other."""

    metric = "bilstm_attention"


class ESIM(AttentiveScore):
    """The Enhanced Sequential Inference Model."""

    metric = "esim"


class Pieces:
    """The word pieces of packed texts; nothing is copied until a batch is made.

    Attributes:
        lengths: (S,) tokens of each text that a network reads, `special` ones among them or not.
        words: (S,) those that are not special.
    """

    def __init__(self, tokens: PackedTokens, *, special: bool = False) -> None:
        self.tokens = tokens
        kept = np.flatnonzero(tokens.words >= 0)
        self._rows = np.arange(len(tokens.words)) if special else kept
        self._bounds = np.searchsorted(self._rows, tokens.offsets)
        self.lengths = np.diff(self._bounds)
        self.words = np.diff(np.searchsorted(kept, tokens.offsets))

    def places(self, text: int) -> np.ndarray:
        """The pieces of a text that are not special, counted among those that are read."""
        return np.flatnonzero(self.tokens.words[self._rows_of(text)] >= 0)

    def _rows_of(self, text: int) -> np.ndarray:
        """The tokens of a text that are read, by their places in `tokens`."""
        return self._rows[self._bounds[text] : self._bounds[text + 1]]

    def padded(self, texts: np.ndarray, width: int) -> "torch.Tensor":
        """(B, longest, width) first entries of the vectors of some (m, B) texts, m of which follow
        each other, zeros behind their ends."""
        import torch

        batch = np.zeros(
            (texts.shape[1], int(self.lengths[texts].sum(0).max()), width), dtype=np.float32
        )
        for number, texts_in_a_row in enumerate(texts.T):
            rows = np.concatenate([self._rows_of(text) for text in texts_in_a_row])
            batch[number, : len(rows)] = self.tokens.vectors[rows, :width]
        return torch.from_numpy(batch)
