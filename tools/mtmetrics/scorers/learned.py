"""BiLSTM, BiLSTM with attention, and ESIM: networks trained on human judgements (Mathur et al.,
2019, Sec. 3.2).

A trained network is called a regressor, `mtmetrics.models.regressor.Regressor`. It may consist of
several members, networks whose scores are averaged. Each member reads its own mix, that is, a learnt
weighted sum of the layers of the encoder. Some ESIM networks read one layer instead of a mix. Such a
network has a composition: transformer layers that read both texts together, see
`mtmetrics.models.composition`.

A regressor compares a translation with the source, a reference, or both. `compared` stands for these
texts.

`LearnedScorer` is the main class. `_ReadTokens` and `_PaddedPairs`, above it, hold texts in the form that
a network reads."""

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
from mtmetrics.scorers.base import Scorer, encode_as_one_list
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import target_language
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.settings import loading_option, option, worker_count
from mtmetrics.scorers.side import Side, Table
from mtmetrics.scorers.signature import model_name
from mtmetrics.scorers.words import PIECES_HELP, WordScorer

if TYPE_CHECKING:
    import torch

    from mtmetrics.models.regressor import Regressor

# Segments that are encoded at a time: fewer than in a batch of other metrics, because the vectors of
# several mixes are wide.
_SLICE_SEGMENTS = 256
# Tokens of the longer side that a network reads at a time, padding included.
_BATCH_TOKENS_PER_SIDE = 4096


class _ReadTokens:
    """The tokens that a network reads from S packed texts: the word pieces and, for a network with a
    composition, the special tokens.

    Attributes:
        packed: all tokens of the texts.
        lengths: (S,) for each text the number of tokens that the network reads.
        piece_counts: (S,) for each text the number of word pieces.
    """

    def __init__(self, packed: PackedTokens, *, with_special_tokens: bool) -> None:
        self.packed = packed
        piece_rows = np.flatnonzero(packed.word_positions >= 0)
        self._rows = np.arange(len(packed.word_positions)) if with_special_tokens else piece_rows
        self._bounds = np.searchsorted(self._rows, packed.offsets)
        self.lengths = np.diff(self._bounds)
        self.piece_counts = np.diff(np.searchsorted(piece_rows, packed.offsets))

    def piece_positions(self, text_index: int) -> np.ndarray:
        """Returns the positions of the word pieces among the tokens that the network reads from a
        text."""
        return np.flatnonzero(self.packed.word_positions[self._rows_of(text_index)] >= 0)

    def _rows_of(self, text_index: int) -> np.ndarray:
        """Returns the rows of `packed` that the network reads for a text."""
        return self._rows[self._bounds[text_index] : self._bounds[text_index + 1]]

    def padded(self, text_indices: np.ndarray, width: int) -> "torch.Tensor":
        """Copies the vectors of texts into a padded batch.

        Args:
            text_indices: (m, B) indices of texts. Row i of the batch holds the m texts of column i,
                one after the other.
            width: number of entries of a vector that are copied.

        Returns:
            (B, longest, width), with zeros after the end of shorter rows.
        """
        import torch

        rows = []
        for texts_of_row in text_indices.T:
            token_rows = np.concatenate([self._rows_of(index) for index in texts_of_row])
            rows.append(torch.from_numpy(self.packed.vectors[token_rows, :width]))
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


class _PaddedPairs(NamedTuple):
    """A batch of B pairs, as the networks take them. If translations are compared with both source
    and reference, these two are concatenated.

    Attributes:
        pair_indices: indices of the pairs among all pairs that are scored.
        compared: (B, n, width) vectors of the texts that translations are compared with.
        predictions: (B, m, width) vectors of the translations.
        lengths: (B,) numbers of tokens in `compared`, and in `predictions`.
    """

    pair_indices: list[int]
    compared: "torch.Tensor"
    predictions: "torch.Tensor"
    lengths: "tuple[torch.Tensor, torch.Tensor]"


def pair_features(
    names: Sequence[str],
    layers: Sequence[PackedTokens],
    compared: np.ndarray,
    predictions: np.ndarray,
    threads: int = 1,
) -> np.ndarray:
    """Computes features of N pairs of texts.

    Args:
        names: some of ``precision``, ``recall`` and ``f1`` (greedy matching, as in BERTScore),
            ``cosine`` (of the mean vectors), and ``length``, the logarithm of the ratio of the
            numbers of tokens, translation over the other side. Special tokens count in the means and
            in these numbers.
        layers: packed tokens of the texts at each layer that is read, not normalised, special
            tokens included.
        compared: (N,) indices of the references or sources among the texts.
        predictions: (N,) indices of the translations among the texts.
        threads: threads that share the pairs.

    Returns:
        (N, f) float32: layer by layer all features except ``length``, which comes once, at the end.
        ``precision``, ``recall`` and ``f1`` are NaN where a side has only special tokens.
    """
    columns: list[np.ndarray] = []
    for tokens in layers:
        features: dict[str, np.ndarray] = {}
        if {"precision", "recall", "f1"} & set(names):
            normalized = tokens.normalized()
            scores = bertscore(
                dataclasses.replace(normalized, index=predictions),
                dataclasses.replace(normalized, index=compared),
                threads=threads,
            )
            features |= {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
        if "cosine" in names:
            means = tokens.means()
            features["cosine"] = cosines(means[compared], means[predictions])
        columns += [features[name] for name in names if name != "length"]
    if "length" in names:
        lengths = layers[0].lengths
        columns.append(np.log(lengths[predictions] / lengths[compared]))
    if not columns:
        return np.zeros((len(compared), 0), dtype=np.float32)
    return np.stack(columns, axis=1).astype(np.float32)


class LearnedScorer(Scorer):
    """The score that a trained network predicts for a translation, on the scale of the judgements
    that it was trained on.

    The network reads the vectors of the word pieces, without special tokens. A network with a
    composition also reads those of special tokens. If the translation is compared with both source
    and reference, these two are concatenated as if they were one text. A segment with a blank side
    gets the lowest judgement of the training data, which the network records.

    Args:
        encoder: the encoder, loaded with the layers or mixes that `Regressor.encoder_options` names.
        network: a trained regressor. Its attribute `against` records whether it compares with
            references, sources, or both. If it supports several of these sides (``"either"`` and
            ``"any"`` of `RegressorSettings`), the option `against` has to name one.
        fingerprint: 8 hexadecimal digits that pin the network in the signature.
        label: name of the network in the signature.
        device: where the network runs.
        settings: all options as one object, which replaces `options`.
        **options: `workers`; and `against`, the side to compare with. `from_preset` checks that the
            network supports this side; here it is not checked.

    Raises:
        ArtifactError: the network was trained on another encoder.
        InputError: the network supports several sides, and `against` is missing.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of a learned metric."""

        regressor: str | None = loading_option(
            "another trained network: a folder, the name of a bundled model, or a Hub repository",
            usage="MODEL",
        )
        encoder: str | None = loading_option(
            (
                "path of the encoder that the network was trained on, if it is no longer under the "
                "name that the network records; a different encoder is refused"
            ),
            usage="MODEL",
        )
        workers: int | None = option(
            None,
            "threads that compute the features of a network that reads features (default: one per "
            "core, at most 4)",
        )

    settings: Settings

    sides = tuple(Side)
    usual = Side.REFERENCE
    scale = "on the scale of the judgements that the network was trained on"
    usual_preset = "mini"
    # A preset has one table for each side that its networks compare with: [regressors.reference],
    # [regressors.source], [regressors.both]. Such a table may hold one table for each target
    # language: [regressors.reference.en].
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
            raise ArtifactError(
                f"regressor {label}: it was trained on the encoder "
                f"{network.encoder}#{network.encoder_fingerprint}, not on {model_name(encoder)}; "
                "pass that encoder",
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
        """Loads the network of the preset for the side to compare with, or the network of the user,
        and its encoder.

        Raises:
            InputError: the network cannot compare with the side that the user asks for.
            ArtifactError: the network was trained for another metric.
        """
        wanted_side = cls.choose_side(preset, settings.against)
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
                hint = "; if its encoder has moved, pass encoder=DIR"
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
        """Returns the fields of the signature: the network ``reg``, its encoder ``enc``, and plain
        options."""
        network = f"{self.label}#{self.fingerprint}" if self.fingerprint else self.label
        return {
            "reg": network,
            "enc": model_name(self.encoder),
            **self.settings.signature_fields(),
        }

    def compute(self, batch: Batch) -> list[PartScores]:
        """Scores each system slice by slice, so that the vectors of a batch fit into memory."""
        results_of_slices = [self._scores_of_slice(part) for part in batch.slices(_SLICE_SEGMENTS)]
        scores, is_truncated, is_empty = (
            np.concatenate(arrays, axis=1) for arrays in zip(*results_of_slices, strict=True)
        )
        return [
            PartScores(segments, {}, truncated, empty)
            for segments, truncated, empty in zip(scores, is_truncated, is_empty, strict=True)
        ]

    def _scores_of_slice(self, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores m systems on a slice of a batch of n segments.

        Returns:
            (m, n) scores, NaN where a text is empty; and (m, n) masks of the segments with a
            truncated text, and with an empty one.
        """
        tokens = self._read_tokens(batch)
        # (columns, segments) indices into the distinct texts: sources or references or both, then
        # the translations of each system.
        columns = tokens.packed.index.reshape(-1, len(batch))
        compared, translations = np.split(columns, [len(self.side.columns)])
        # All systems are joined, so that their scores are predicted together.
        text_indices = np.concatenate(
            [np.tile(compared, len(translations)), translations.reshape(1, -1)]
        )
        is_empty = (tokens.piece_counts[text_indices] == 0).any(0)
        is_truncated = tokens.packed.truncated[text_indices].any(0)
        scores = np.full(text_indices.shape[1], np.nan)
        scores[~is_empty] = self._predict(tokens, text_indices[:, ~is_empty])
        shape = translations.shape
        return scores.reshape(shape), is_truncated.reshape(shape), is_empty.reshape(shape)

    def _read_tokens(self, batch: Batch) -> _ReadTokens:
        """Encodes all columns of a batch."""
        tokens = encode_as_one_list(self.encoder, batch)
        return _ReadTokens(tokens, with_special_tokens=self.network.composition is not None)

    def _predict(self, tokens: _ReadTokens, text_indices: np.ndarray) -> np.ndarray:
        """Predicts the scores of n pairs.

        Args:
            tokens: the tokens of all texts.
            text_indices: (2, n) indices of the compared texts and of their translations; or (3, n) of
                sources, references and translations.

        Returns:
            (n,) scores.
        """
        import torch

        scores = np.empty(text_indices.shape[1])
        features = self._features(tokens.packed, text_indices)
        with torch.inference_mode():
            for batch in self._batches(tokens, text_indices):
                batch_features = None
                if features is not None:
                    batch_features = torch.from_numpy(features[batch.pair_indices]).to(self.device)
                text_lengths = tokens.lengths[text_indices[:-1, batch.pair_indices]]
                roles = self._roles(text_lengths, batch.compared.shape[1])
                predicted = self.network(
                    batch.compared,
                    batch.predictions,
                    batch.lengths,
                    batch_features,
                    roles,
                )
                scores[batch.pair_indices] = predicted.cpu().numpy()
        return scores

    def _roles(self, text_lengths: np.ndarray, longest: int) -> "torch.Tensor":
        """Marks each position of the compared texts as a part of a source or of a reference. Networks
        with a composition read these marks; other networks ignore them.

        Args:
            text_lengths: (1, B) lengths of the texts; or (2, B) lengths of sources and of references,
                which are concatenated.
            longest: number of positions.

        Returns:
            (B, longest) roles, as indices into `mtmetrics.models.composition.SIDES`.
        """
        import torch

        from mtmetrics.models.composition import SIDES

        # The fields are "source" and "reference", as in `SIDES`. A single text has one role. Padding
        # gets the last role.
        first_role, last_role = self.side.fields[0], self.side.fields[-1]
        is_behind_first = np.arange(longest) >= text_lengths[0][:, None]
        roles = np.where(is_behind_first, SIDES.index(last_role), SIDES.index(first_role))
        return torch.from_numpy(roles).to(self.device)

    def _batches(self, tokens: _ReadTokens, text_indices: np.ndarray) -> Iterator[_PaddedPairs]:
        """Yields batches of pairs of similar length. Takes the arguments of `_predict`."""
        import torch

        compared_indices, prediction_indices = text_indices[:-1], text_indices[-1:]
        # (2, n) lengths of the two sides. The compared side may consist of two texts.
        side_lengths = np.stack(
            [tokens.lengths[compared_indices].sum(0), tokens.lengths[prediction_indices[0]]]
        )
        mixes_width = self.network.width * len(self.network.members)
        longer_lengths = side_lengths.max(0).tolist()
        # The limit is a function, because elsewhere it falls when memory runs out.
        for pair_indices in length_batches(longer_lengths, lambda: _BATCH_TOKENS_PER_SIDE):
            compared = tokens.padded(compared_indices[:, pair_indices], mixes_width)
            predictions = tokens.padded(prediction_indices[:, pair_indices], mixes_width)
            compared_lengths, prediction_lengths = (
                torch.from_numpy(lengths[pair_indices]).to(self.device) for lengths in side_lengths
            )
            yield _PaddedPairs(
                pair_indices,
                compared.to(self.device),
                predictions.to(self.device),
                (compared_lengths, prediction_lengths),
            )

    def _features(self, packed: PackedTokens, text_indices: np.ndarray) -> np.ndarray | None:
        """Returns the (n, f) features of n pairs; None for a network without features.

        Args:
            packed: the tokens of all texts.
            text_indices: as for `_predict`. It is (2, n) for a network with features, because the
                training refuses features if both source and reference are compared.
        """
        network = self.network
        if not network.features:
            return None
        # A vector holds one mix for each member, then each layer that features are computed from.
        layers = []
        for position in range(len(network.feature_layers)):
            start = (len(network.members) + position) * network.width
            vectors = packed.vectors[:, start : start + network.width]
            layers.append(dataclasses.replace(packed, vectors=vectors))
        compared, predictions = text_indices
        return pair_features(network.features, layers, compared, predictions, threads=self.workers)


def _network_table(preset: Preset, side: Side, target: str | None) -> Table:
    """Returns the table of the network for a side and, if the side has several, a target language.

    Raises:
        InputError: the preset holds networks for other sides or languages only.
        ArtifactError: it holds none.
    """
    regressors = preset.settings.get("regressors", {})
    side_table = regressors.get(side, {})
    table = for_language(side_table, target) or side_table
    if "model" in table:
        return table
    problem = f"holds no network that compares with the {side.label}"
    if side_table:
        problem += f" in {target or 'an unknown language'}, only in {' '.join(side_table)}"
    error_class = InputError if regressors else ArtifactError
    raise error_class(
        f"preset {preset.name}: {problem}; train one with 'mtmetrics train regressor', and pass "
        "its folder as regressor=DIR",
        option="preset",
        mentions=["regressor=DIR"],
    )


def _side_of_network(
    name: str, network: "Regressor", against: str | None, wanted_side: Side
) -> str | None:
    """Returns the side that a network has to compare with; None for the only side that it was trained
    for. (A network of several sides is then refused: the user has to choose one.)

    Args:
        name: name of the network, for the error.
        network: the network.
        against: the side that the user asks for; None if the user asks for none.
        wanted_side: the side of the user's request, else of the preset, else of the metric.

    Raises:
        InputError: the network cannot compare with the side that the user asks for.
    """
    from mtmetrics.models.composition import KNOWN_SIDES

    # A network may be trained to compare with several sides.
    network_sides = KNOWN_SIDES[network.against]
    if len(network_sides) > 1 and wanted_side in network_sides:
        return wanted_side
    if against is None or against == network.against:
        return against
    columns = " or ".join(" and ".join(Side(side).columns) for side in network_sides)
    needed = "against='both' with them" if "both" in network_sides else columns
    raise InputError(
        f"against={str(against)!r}: regressor {name} compares with {columns}; pass {needed}, or "
        "another regressor",
        option="against",
        mentions=[f"against={str(against)!r}"],
    )


class BiLSTM(LearnedScorer):
    """Scores with a network that reads each side by itself, without attention between the sides."""

    metric = "bilstm"
    no_alignments_reason = "BiLSTM reads each side by itself; use bilstm_attention or esim"


class AttentiveScorer(LearnedScorer, WordScorer):
    """Scores with a network in which the pieces of each side attend to those of the other side."""

    alignments_help = (
        f"{PIECES_HELP}. `values[i][j]`: how much piece i of `source` and piece j of "
        "`prediction` attend to each other, the mean of both directions; `mass`: the same, divided "
        "by their sum"
    )

    @property
    def cells(self) -> Cells:
        """Meaning of the values in the cells of alignments: attention.

        Raises:
            InputError: translations are compared with both source and reference.
        """
        if self.side is Side.BOTH:
            raise InputError(
                "alignments: are of two texts; compare with the source or the reference"
            )
        return "attention"

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Yields the attention between the word pieces of the two texts of each segment.

        Args:
            batch: sources or references, and the translations of one system.
        """
        tokens = self._read_tokens(batch)
        attentions = self._attentions(tokens)
        packed_sides = tokens.packed.split(len(batch))
        # For each of the two sides, the vectors and the pieces of its texts.
        compared, predictions = (
            pieces(self.encoder, packed, texts, language)
            for packed, (texts, language) in zip(
                packed_sides, batch.texts_and_languages, strict=True
            )
        )
        for segment, sides in enumerate(zip(compared, predictions, strict=True)):
            (_, compared_pieces), (_, prediction_pieces) = sides
            if compared_pieces.words and prediction_pieces.words:
                yield attention_plan(compared_pieces, prediction_pieces, *attentions[segment])
            else:
                yield Alignment.nothing("attention")

    def _attentions(self, tokens: _ReadTokens) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Computes how much the word pieces of a segment's two texts attend to each other.

        Returns:
            Segment -> the (n, m) attention of n compared pieces to m pieces of the translation, and
            the (m, n) attention in the other direction. Segments with an empty side are left out.
        """
        import torch

        text_indices = tokens.packed.index.reshape(2, -1)
        filled_segments = np.flatnonzero((tokens.piece_counts[text_indices] > 0).all(0))
        attentions = {}
        with torch.inference_mode():
            for batch in self._batches(tokens, text_indices[:, filled_segments]):
                to_predictions, to_compared = (
                    attention.cpu().numpy()
                    # Attention comes before the roles of texts are read.
                    for attention in self.network.attentions(
                        batch.compared, batch.predictions, batch.lengths
                    )
                )
                for row, pair_index in enumerate(batch.pair_indices):
                    segment = int(filled_segments[pair_index])
                    compared, prediction = map(tokens.piece_positions, text_indices[:, segment])
                    attentions[segment] = (
                        to_predictions[row][np.ix_(compared, prediction)],
                        to_compared[row][np.ix_(prediction, compared)],
                    )
        return attentions


class BiLSTMAttention(AttentiveScorer):
    """Scores with a BiLSTM whose states attend to those of the other side."""

    metric = "bilstm_attention"


class ESIM(AttentiveScorer):
    """Scores with the Enhanced Sequential Inference Model."""

    metric = "esim"
