"""COMET: encoders that were trained to judge a translation by its source, its reference, or both.

`Comet` opens a folder that ``mtmetrics artifacts convert`` made, and scores texts. `CometNetwork` is
its network: an encoder, and the layers that read the encoder's hidden states. There are four
families of checkpoints. Those of regression, with and without references (Rei et al., 2020 and
2021), encode each text alone and compare the vectors. Unified ones (Wan et al., 2022; Rei et al.,
2022) encode the texts as one sequence. XCOMET (Guerreiro et al., 2024) does the same, and finds the
errors in the translation.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from mtmetrics.artifacts.comet_checkpoints import HEADS_FILE, SEPARATORS, CometSettings
from mtmetrics.artifacts.models import (
    Network,
    loading,
    pretrained_tokenizer,
    transformers_network,
)
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import TextUnits, text_words

# XCOMET reads a translation with its source, with its reference, and with both. These are the
# shares of the three readings in the score, and in the labels of words. The rest of the score is
# that of the errors.
_SCORE_SHARES = (0.12, 0.33, 0.33)
_WORD_SHARES = (0.1667, 0.3333, 0.5)
_ERROR_SHARE = 0.22
PENALTIES = {"minor": 1, "major": 5, "critical": 10}
_HIGHEST_PENALTY = 25
# Family -> number of vectors that `CometNetwork.compare` joins; joint families read a single one.
_JOINED_VECTORS = {"regression_metric": 6, "referenceless_regression_metric": 4}
_CACHED_BYTES = 2**26  # of sentence vectors
_CACHED_SEQUENCES = 4096


class LayerwiseMix(nn.Module):
    """``gamma * sum of weight * state``, over all hidden states (Rei et al., 2020, Eq. 1 and 2)."""

    def __init__(self, states: int, *, sparse: bool, norm: bool) -> None:
        super().__init__()
        self.scalar_parameters = nn.ParameterList(
            [nn.Parameter(torch.zeros(1)) for _ in range(states)]
        )
        self.gamma = nn.Parameter(torch.ones(1))
        self.sparse, self.norm = sparse, norm

    def forward(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Mixes hidden states.

        Args:
            states: (B, T, d) each.
            mask: (B, T), 1 at real tokens.

        Returns:
            (B, T, d) float32.
        """
        scores = torch.cat(list(self.scalar_parameters))
        weights = sparsemax(scores) if self.sparse else scores.softmax(0)
        real = mask.float()[:, :, None]
        mixed = torch.zeros_like(states[0], dtype=torch.float32)
        for weight, state in zip(weights, states, strict=True):
            values = state.float()
            mixed += weight * (_normalised(values, real) if self.norm else values)
        return self.gamma * mixed


def _normalised(values: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Centres and scales the (B, T, d) state of each text, over all its tokens together.

    `real` is (B, T, 1), 1 at real tokens.
    """
    count = real.sum((1, 2), keepdim=True) * values.shape[2]
    centred = values - (values * real).sum((1, 2), keepdim=True) / count
    variance = ((centred * real) ** 2).sum((1, 2), keepdim=True) / count
    return centred / (variance + 1e-12).sqrt()


def sparsemax(scores: torch.Tensor) -> torch.Tensor:
    """Projects n scores to the nearest point of the probability simplex, (n,): a softmax with zeros
    (Martins and Astudillo, 2016, Eq. 2).

    Example:
        >>> sparsemax(torch.tensor([1.0, 0.8, -1.0])).tolist()
        [0.6000000238418579, 0.40000003576278687, 0.0]
    """
    ordered = scores.sort(descending=True).values
    excess = ordered.cumsum(0) - 1
    counts = torch.arange(1, len(scores) + 1, device=scores.device)
    support = int((ordered * counts > excess).sum())
    return (scores - excess[support - 1] / support).clamp(min=0)


class Estimator(nn.Module):
    """Feed-forward layers from a vector to a score."""

    def __init__(self, width: int, settings: CometSettings) -> None:
        super().__init__()
        activation = getattr(nn, settings.activations.title())
        layers: list[nn.Module] = []
        for size in settings.hidden_sizes:
            # Layers are stored by number. The third is the dropout of the training.
            layers += [nn.Linear(width, size), activation(), nn.Identity()]
            width = size
        layers.append(nn.Linear(width, 1))
        if settings.final_activation is not None:
            layers.append(getattr(nn, settings.final_activation.title())())
        self.ff = nn.Sequential(*layers)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Returns (B,) scores of (B, width) vectors."""
        return self.ff(vectors)[:, 0]


class CometNetwork(nn.Module):
    """The encoder of a checkpoint, and the layers that read its hidden states.

    All but the encoder computes in float32. The names of the layers are those of the checkpoint.
    """

    def __init__(self, encoder: Network, settings: CometSettings) -> None:
        super().__init__()
        self.encoder: Network = encoder
        self.settings = settings
        width = encoder.config.hidden_size
        joined_vectors = _JOINED_VECTORS.get(settings.class_identifier, 1)
        self.estimator = Estimator(joined_vectors * width, settings)
        if settings.layer == "mix":
            self.layerwise_attention = LayerwiseMix(
                encoder.config.num_hidden_layers + 1,
                sparse=settings.layer_transformation == "sparsemax",
                norm=settings.layer_norm,
            )
        if settings.error_labels:
            self.hidden2tag = nn.Linear(width, len(settings.error_labels) + 1)

    def states(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor | None = None
    ) -> Sequence[torch.Tensor]:
        """Runs the encoder.

        Args:
            ids: (B, T) token ids.
            mask: (B, T), 1 at real tokens.
            types: (B, T) token types, for an encoder that tells two texts apart by them.

        Returns:
            All hidden states, (B, T, d) each, embeddings first.
        """
        options = {} if types is None else {"token_type_ids": types}
        output = self.encoder(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, **options
        )
        return output.hidden_states

    def token_vectors(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Returns the (B, T, d) state, or mix of states, from which scores are made."""
        if isinstance(self.settings.layer, int):
            return states[self.settings.layer].float()
        return self.layerwise_attention(states, mask)

    def vectors(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Returns (B, d) vectors of texts, one for each text."""
        states = self.states(ids, mask)
        if self.settings.pool == "default":
            return states[-1][:, 0].float()
        tokens = self.token_vectors(states, mask)
        if self.settings.pool == "cls":
            return tokens[:, 0]
        real = mask[:, :, None].bool()
        if self.settings.pool == "max":
            return tokens.masked_fill(~real, -torch.inf).amax(1)
        return tokens.masked_fill(~real, 0.0).sum(1) / mask.sum(1, keepdim=True)

    def compare(
        self, translations: torch.Tensor, compared: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """Scores translations by their vectors (Rei et al., 2020, Sec. 2.3).

        Args:
            translations: (n, d).
            compared: ``src``, ``ref`` or both -> (n, d).

        Returns:
            (n,) scores.
        """
        parts = [translations, compared["ref"] if "ref" in compared else compared["src"]]
        for name in ("ref", "src"):
            if name in compared:
                vectors = compared[name]
                parts += [translations * vectors, (translations - vectors).abs()]
        return self.estimator(torch.cat(parts, 1))

    def judge(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Scores sequences that hold a translation and the texts beside it.

        Takes the arguments of `states`.

        Returns:
            (B,) scores; and (B, T, 1 + labels) probabilities that a token is no error, or an error
            of each severity, None of a network that finds no errors.
        """
        states = self.states(ids, mask, types)
        scores = self.estimator(self.token_vectors(states, mask)[:, 0])
        if not self.settings.error_labels:
            return scores, None
        labels = self.hidden2tag(states[self.settings.word_layer].float())
        return scores, labels.softmax(-1)


class ErrorSpan(NamedTuple):
    """An error in a translation.

    Attributes:
        start: position of its first character in the translation.
        end: position behind its last character.
        severity: ``minor``, ``major`` or ``critical``.
        confidence: how sure the network is of the severity, 0 to 1.
    """

    start: int
    end: int
    severity: str
    confidence: float


class CometScores(NamedTuple):
    """Scores of n translations.

    Attributes:
        scores: (n,).
        parts: of checkpoints that read joint sequences, ``src``, ``ref`` and ``unified`` -> (n,)
            scores of the readings with the source, the reference, and both; for XCOMET also
            ``mqm``, (n,) scores by the errors.
        errors: the errors in each translation; empty lists of a network that finds none.
        truncated: (n,) bool, whether a text was cut.
    """

    scores: np.ndarray
    parts: dict[str, np.ndarray]
    errors: list[list[ErrorSpan]]
    truncated: np.ndarray


class _Tokens(NamedTuple):
    """A text alone: token ids with special tokens, the characters of each token, and whether the
    text was cut."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    is_truncated: bool


class _EncodedText(NamedTuple):
    """The (d,) vector of a text, and whether the text was cut."""

    vector: np.ndarray
    is_truncated: bool


class _Judgement(NamedTuple):
    """Judgement of a translation that was read in one sequence with the texts beside it.

    Attributes:
        score: of the translation.
        labels: (t, 1 + labels) probabilities of its t tokens, see `CometNetwork.judge`; (0, 0) of a
            network that finds no errors.
        is_truncated: whether a text, or the sequence, was cut.
    """

    score: float
    labels: np.ndarray
    is_truncated: bool


class Comet(LoadedModel):
    """A converted checkpoint. No text is encoded twice, and neither order nor neighbours change a
    score.

    Args:
        folder: made by `mtmetrics.artifacts.comet_checkpoints`.
        **running: keywords of `mtmetrics.models.running.Running`; the encoder computes in float32,
            whatever the checkpoint was published for, unless another dtype is asked for.

    Raises:
        ArtifactError: it is no such folder, or damaged.
        MTMetricsError: the model does not fit into memory.
    """

    def __init__(self, folder: Path, **running: Any) -> None:
        self.settings = CometSettings.read(folder)
        super().__init__("COMET", folder, None, running)
        self.label, self.described = self.settings.model, f"COMET {self.settings.model}"
        self.tokenizer = pretrained_tokenizer(folder, as_stored=True)
        encoder = transformers_network("AutoModel", folder, torch_dtype(self.dtype))
        with loading(folder, "COMET"):
            network = CometNetwork(encoder, self.settings)
            keys = network.load_state_dict(load_file(folder / HEADS_FILE), strict=False)
            missing = [name for name in keys.missing_keys if not name.startswith("encoder.")]
            wrong = missing or keys.unexpected_keys
            if wrong:
                raise ValueError(f"{HEADS_FILE} does not fit: {wrong[0]}")
        # Two less, as in the published package: RoBERTa uses two of its positions for padding.
        self.limit = encoder.config.max_position_embeddings - 2
        self._runner = self.on_devices(network, self.tokenizer.pad_token_id or 0)
        self._network: CometNetwork = self._runner.replicas[0][0]
        self._encoded: TextCache[str, _EncodedText]
        self._encoded = TextCache(_CACHED_BYTES, lambda encoded: encoded.vector.nbytes)
        self._judged: TextCache[tuple[str, ...], _Judgement] = TextCache(_CACHED_SEQUENCES)

    def score(
        self, translations: Sequence[str], compared: Mapping[str, Sequence[str]]
    ) -> CometScores:
        """Scores n translations.

        Args:
            translations: n texts.
            compared: ``src``, ``ref`` or both -> n sources and references.
        """
        columns = {"mt": translations, **compared}
        return self._score_joint(columns) if self.settings.joint else self._score_apart(columns)

    def _score_apart(self, columns: Mapping[str, Sequence[str]]) -> CometScores:
        """Scores texts that are encoded one by one.

        `columns` holds the translations as ``mt``, and the sources and references as in `score`.
        """
        texts = [text for column in columns.values() for text in column]
        encoded = dict(zip(texts, self._encoded.values(texts, self._encode), strict=True))
        device = next(self._network.parameters()).device
        vectors = {
            name: torch.from_numpy(np.stack([encoded[text].vector for text in column])).to(device)
            for name, column in columns.items()
        }
        with torch.inference_mode():
            scores = self._network.compare(vectors.pop("mt"), vectors).double().cpu().numpy()
        truncated = [
            any(encoded[text].is_truncated for text in row)
            for row in zip(*columns.values(), strict=True)
        ]
        return CometScores(scores, {}, [[] for _ in truncated], np.array(truncated, dtype=bool))

    def _encode(self, texts: list[str]) -> list[_EncodedText]:
        tokens = self._tokenise(texts)
        vectors: dict[int, np.ndarray] = {}

        def compute(
            network: CometNetwork, ids: torch.Tensor, mask: torch.Tensor, indices: list[int]
        ) -> None:
            vectors.update(zip(indices, network.vectors(ids, mask).cpu().numpy(), strict=True))

        self._runner.run([text.ids for text in tokens], compute)
        return [
            _EncodedText(vectors[index], text.is_truncated) for index, text in enumerate(tokens)
        ]

    def pieces(self, texts: Sequence[str]) -> list[tuple[np.ndarray, TextUnits]]:
        """Reads each text alone, and returns its t pieces without special tokens, and their (t, d)
        vectors, of length 1, from which scores are made."""
        tokens = self._tokenise(list(texts))
        pieces: dict[int, tuple[np.ndarray, TextUnits]] = {}

        def compute(
            network: CometNetwork, ids: torch.Tensor, mask: torch.Tensor, indices: list[int]
        ) -> None:
            batch = network.token_vectors(network.states(ids, mask), mask)
            batch = nn.functional.normalize(batch, dim=2)
            for index, vectors in zip(indices, batch.cpu().numpy(), strict=True):
                units = text_words(self.tokenizer, texts[index], self.limit - 2, pieces=True)
                is_special = units.spans[:, 1] == 0
                kept = np.flatnonzero(~is_special)
                pieces[index] = vectors[kept], units.take(kept)

        self._runner.run([text.ids for text in tokens], compute)
        return [pieces[index] for index in range(len(texts))]

    def _score_joint(self, columns: Mapping[str, Sequence[str]]) -> CometScores:
        """Scores translations that are read in one sequence with their sources or references, or
        with both; see `_score_apart`."""
        translations = columns["mt"]
        available: list[str] = [
            name
            for name in ("src", "ref")
            if name in columns and name in self.settings.input_segments
        ]
        # Name of a part of the score -> the columns that follow the translation in a sequence.
        inputs: dict[str, list[str]] = {name: [name] for name in available}
        if len(available) == 2:
            inputs["unified"] = available
        texts = dict.fromkeys(text for name in ("mt", *available) for text in columns[name])
        tokens = dict(zip(texts, self._tokenise(list(texts)), strict=True))
        sequences = [
            row
            for names in inputs.values()
            for row in zip(translations, *(columns[name] for name in names), strict=True)
        ]
        judged = self._judged.values(sequences, lambda missing: self._judge(missing, tokens))
        # The sequences of the first input come first, one for each translation.
        count = len(translations)
        scores = np.array([judgement.score for judgement in judged]).reshape(len(inputs), count)
        cut = np.array([judgement.is_truncated for judgement in judged]).reshape(len(inputs), count)
        truncated = np.any(cut, axis=0)
        parts = dict(zip(inputs, scores, strict=True))

        errors: list[list[ErrorSpan]] = [[] for _ in translations]
        if self.settings.error_labels:
            shares = _WORD_SHARES if len(inputs) > 1 else (1.0,)
            for number, text in enumerate(translations):
                # Those of this translation, one for each input.
                judgements = judged[number::count]
                labels = [
                    share * judgement.labels
                    for share, judgement in zip(shares, judgements, strict=True)
                ]
                offsets = tokens[text].offsets
                errors[number] = error_spans(
                    np.sum(labels, axis=0), offsets, self.settings.error_labels
                )
        if self.settings.class_identifier != "xcomet_metric":
            return CometScores(scores.mean(0), parts, errors, truncated)

        parts["mqm"] = np.array([_mqm_score(spans) for spans in errors])
        shares = _SCORE_SHARES if len(inputs) > 1 else (sum(_SCORE_SHARES),)
        total = np.array(shares) @ np.minimum(scores, 1.0) + _ERROR_SHARE * parts["mqm"]
        return CometScores(total, parts, errors, truncated)

    def _judge(
        self, sequences: list[tuple[str, ...]], tokens: Mapping[str, _Tokens]
    ) -> list[_Judgement]:
        """Has the network read sequences of texts, the translation first."""
        rows = [self._joined_ids([tokens[text].ids for text in texts]) for texts in sequences]
        translation_lengths = [len(tokens[texts[0]].ids) for texts in sequences]
        scores = np.zeros(len(sequences))
        labels: list[np.ndarray] = [np.zeros((0, 0))] * len(sequences)

        def compute(
            network: CometNetwork, ids: torch.Tensor, mask: torch.Tensor, indices: list[int]
        ) -> None:
            lengths = [translation_lengths[index] for index in indices]
            types = None
            if self.settings.encoder_model == "BERT":
                positions = torch.arange(ids.shape[1], device=ids.device)
                ends = torch.tensor(lengths, device=ids.device)
                types = (positions >= ends[:, None]).long()
            batch_scores, batch_labels = network.judge(ids, mask, types)
            scores[indices] = batch_scores.double().cpu().numpy()
            if batch_labels is not None:
                label_rows = batch_labels.cpu().numpy()
                for index, length, row in zip(indices, lengths, label_rows, strict=True):
                    labels[index] = row[:length]

        self._runner.run([row[: self.limit] for row in rows], compute)
        return [
            _Judgement(
                float(score),
                label,
                len(row) > self.limit or any(tokens[text].is_truncated for text in texts),
            )
            for score, label, row, texts in zip(scores, labels, rows, sequences, strict=True)
        ]

    def _joined_ids(self, texts: Sequence[list[int]]) -> list[int]:
        """Returns the ids of texts, each between its special tokens, as one sequence."""
        row, separator = texts[0][:-1], texts[0][-1]
        for ids in texts[1:]:
            row = row + [separator] * SEPARATORS[self.settings.encoder_model] + ids[1:-1]
        return [*row, separator]

    def _tokenise(self, texts: list[str]) -> list[_Tokens]:
        encoded = self.tokenizer(
            texts, truncation=True, max_length=self.limit - 2, return_offsets_mapping=True
        )
        return [
            _Tokens(ids, offsets, bool(encoding.overflowing))
            for ids, offsets, encoding in zip(
                encoded["input_ids"], encoded["offset_mapping"], encoded.encodings, strict=True
            )
        ]


def error_spans(
    probabilities: np.ndarray, offsets: Sequence[tuple[int, int]], labels: Sequence[str]
) -> list[ErrorSpan]:
    """Finds errors: runs of tokens that are more likely an error than none.

    An error has the severity of its first token. An error that reaches the last token does not
    count; the published code does the same.

    Args:
        probabilities: (n, 1 + labels) of no error and of each label, for n tokens.
        offsets: first character of each token, and the one behind its last.
        labels: severities.
    """
    errors: list[ErrorSpan] = []
    run: list[int] = []  # tokens, one after the other, that are an error
    likeliest = probabilities.argmax(1)
    for token, label in enumerate(likeliest):
        if label:
            run.append(token)
            continue
        if run:
            first, last = run[0], run[-1]
            severity = labels[likeliest[first] - 1]
            confidence = float(probabilities[run, likeliest[run]].mean())
            errors.append(ErrorSpan(offsets[first][0], offsets[last][1], severity, confidence))
        run = []
    return errors


def _mqm_score(errors: Sequence[ErrorSpan]) -> float:
    """Scores a translation by its errors, as people do in MQM: 1 without errors, 0 at worst."""
    penalty = sum(PENALTIES[error.severity] for error in errors)
    return 1 - min(penalty, _HIGHEST_PENALTY) / _HIGHEST_PENALTY
