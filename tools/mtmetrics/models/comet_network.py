"""COMET: metrics whose networks are trained to score a translation, given its source, its reference,
or both.

`Comet` opens a folder that ``mtmetrics artifacts convert`` made, and scores texts. `CometNetwork` is
its network: an encoder, and the layers that read the encoder's hidden states. Checkpoints belong to
one of four families:

- regression (Rei et al., 2020), and referenceless regression (Rei et al., 2021): the texts are
  encoded separately, and the score is computed from their vectors;
- unified (Wan et al., 2022; Rei et al., 2022): a translation is encoded in one sequence with its
  source, its reference, or both;
- XCOMET (Guerreiro et al., 2024): like unified, and it also marks error spans in the translation.

In all mappings of texts, ``mt`` is the translation, ``src`` the source and ``ref`` the reference.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Encoding
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

# XCOMET reads a translation in three sequences: with its source, with its reference, and with both.
# These are the weights of the three sequences in the score, in this order.
_SCORE_WEIGHTS = (0.12, 0.33, 0.33)
# Weight of the MQM score, which is computed from the error spans, in the score of XCOMET. The four
# weights sum to 1.
_MQM_WEIGHT = 0.22
# Weights of the three sequences in the averaged class probabilities of a token.
_TOKEN_WEIGHTS = (0.1667, 0.3333, 0.5)
# MQM (Multidimensional Quality Metrics) is a scheme in which people mark errors. Severity of an error
# -> its penalty.
MQM_PENALTIES = {"minor": 1, "major": 5, "critical": 10}
# Penalties are capped at this value, where the MQM score reaches 0.
_HIGHEST_PENALTY = 25
# Family -> number of vectors that `CometNetwork.score_from_vectors` concatenates. The other families
# read one vector.
_VECTOR_COUNTS = {"regression_metric": 6, "referenceless_regression_metric": 4}
# Size of the cache of text vectors, in bytes.
_CACHED_BYTES = 2**26
# Number of sequences whose results are cached.
_CACHED_SEQUENCES = 4096


# The layers of all classes here have the names that they have in the published checkpoints.


class LayerwiseMix(nn.Module):
    """``gamma * sum of weight * state``, over all hidden states (Rei et al., 2020, Eq. 1 and 2).

    Args:
        state_count: number of hidden states.
        sparse: whether the weights are a sparsemax of the learned parameters; else a softmax.
        norm: whether each state is normalised before it is weighted.
    """

    def __init__(self, state_count: int, *, sparse: bool, norm: bool) -> None:
        super().__init__()
        self.scalar_parameters = nn.ParameterList(
            [nn.Parameter(torch.zeros(1)) for _ in range(state_count)]
        )
        self.gamma = nn.Parameter(torch.ones(1))
        self.sparse, self.norm = sparse, norm

    def forward(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Mixes hidden states.

        Args:
            states: hidden states, (B, T, d) each.
            mask: (B, T), 1 at real tokens.

        Returns:
            (B, T, d) float32.
        """
        scores = torch.cat(list(self.scalar_parameters))
        weights = sparsemax(scores) if self.sparse else scores.softmax(0)
        token_mask = mask.float()[:, :, None]
        mixed = torch.zeros_like(states[0], dtype=torch.float32)
        for weight, state in zip(weights, states, strict=True):
            values = state.float()
            if self.norm:
                values = _normalise(values, token_mask)
            mixed += weight * values
        return self.gamma * mixed


def _normalise(values: torch.Tensor, token_mask: torch.Tensor) -> torch.Tensor:
    """Normalises the (B, T, d) values of each text to mean 0 and variance 1, over all its tokens and
    dimensions at once. `token_mask` is (B, T, 1), 1 at real tokens."""
    count = token_mask.sum((1, 2), keepdim=True) * values.shape[2]
    centred = values - (values * token_mask).sum((1, 2), keepdim=True) / count
    variance = ((centred * token_mask) ** 2).sum((1, 2), keepdim=True) / count
    return centred / (variance + 1e-12).sqrt()


def sparsemax(scores: torch.Tensor) -> torch.Tensor:
    """Projects (n,) scores to the nearest point of the probability simplex: like softmax, but some
    probabilities are exactly 0 (Martins and Astudillo, 2016, Eq. 2).

    Example:
        >>> sparsemax(torch.tensor([1.0, 0.8, -1.0])).tolist()
        [0.6000000238418579, 0.40000003576278687, 0.0]
    """
    ordered = scores.sort(descending=True).values
    excess = ordered.cumsum(0) - 1
    ranks = torch.arange(1, len(scores) + 1, device=scores.device)
    nonzero_count = int((ordered * ranks > excess).sum())
    threshold = excess[nonzero_count - 1] / nonzero_count
    return (scores - threshold).clamp(min=0)


class Estimator(nn.Module):
    """Feed-forward layers from a vector to a score."""

    def __init__(self, input_size: int, settings: CometSettings) -> None:
        super().__init__()
        activation = getattr(nn, settings.activations.title())
        layers: list[nn.Module] = []
        sizes = [input_size, *settings.hidden_sizes]
        for inputs, outputs in itertools.pairwise(sizes):
            # Checkpoints store layers by number. The third layer of each group was dropout in
            # training; an identity takes its place.
            layers += [nn.Linear(inputs, outputs), activation(), nn.Identity()]
        layers.append(nn.Linear(sizes[-1], 1))
        if settings.final_activation is not None:
            layers.append(getattr(nn, settings.final_activation.title())())
        self.ff = nn.Sequential(*layers)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Returns the (B,) scores of (B, `input_size`) vectors."""
        return self.ff(vectors)[:, 0]


class CometNetwork(nn.Module):
    """The encoder of a checkpoint, and the layers that read its hidden states.

    The encoder computes in the dtype that it was loaded in, all other layers in float32.
    """

    def __init__(self, encoder: Network, settings: CometSettings) -> None:
        super().__init__()
        self.encoder: Network = encoder
        self.settings = settings
        hidden_size = encoder.config.hidden_size
        vector_count = _VECTOR_COUNTS.get(settings.class_identifier, 1)
        self.estimator = Estimator(vector_count * hidden_size, settings)
        if settings.layer == "mix":
            self.layerwise_attention = LayerwiseMix(
                encoder.config.num_hidden_layers + 1,
                sparse=settings.layer_transformation == "sparsemax",
                norm=settings.layer_norm,
            )
        if settings.error_labels:
            self.hidden2tag = nn.Linear(hidden_size, len(settings.error_labels) + 1)

    def hidden_states(
        self, ids: torch.Tensor, mask: torch.Tensor, token_types: torch.Tensor | None = None
    ) -> Sequence[torch.Tensor]:
        """Runs the encoder.

        Args:
            ids: (B, T) token ids.
            mask: (B, T), 1 at real tokens.
            token_types: (B, T) token type ids, only for encoders with such embeddings, as BERT has.

        Returns:
            All hidden states, (B, T, d) each, embeddings first.
        """
        options = {} if token_types is None else {"token_type_ids": token_types}
        output = self.encoder(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, **options
        )
        return output.hidden_states

    def token_vectors(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Returns the (B, T, d) hidden state, or mix of hidden states, that scores are computed from."""
        if isinstance(self.settings.layer, int):
            return states[self.settings.layer].float()
        return self.layerwise_attention(states, mask)

    def text_vectors(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Returns (B, d) vectors of texts that are encoded separately.

        The setting `pool` says how token vectors become the vector of a text: ``cls`` takes the
        first token, ``max`` and ``avg`` the maximum and the mean over all tokens. ``default`` takes
        the first token of the last hidden state, whatever the setting `layer` is.
        """
        states = self.hidden_states(ids, mask)
        if self.settings.pool == "default":
            return states[-1][:, 0].float()
        tokens = self.token_vectors(states, mask)
        if self.settings.pool == "cls":
            return tokens[:, 0]
        token_mask = mask[:, :, None].bool()
        if self.settings.pool == "max":
            return tokens.masked_fill(~token_mask, -torch.inf).amax(1)
        return tokens.masked_fill(~token_mask, 0.0).sum(1) / mask.sum(1, keepdim=True)

    def score_from_vectors(self, vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Scores translations from the vectors of the texts (Rei et al., 2020, Sec. 2.3).

        Args:
            vectors: ``mt``, and ``src``, ``ref`` or both -> (n, d).

        Returns:
            (n,) scores.
        """
        translations = vectors["mt"]
        parts = [translations, vectors["ref"] if "ref" in vectors else vectors["src"]]
        for name in ("ref", "src"):
            if name in vectors:
                parts += [translations * vectors[name], (translations - vectors[name]).abs()]
        return self.estimator(torch.cat(parts, 1))

    def score_sequences(
        self, ids: torch.Tensor, mask: torch.Tensor, token_types: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Scores sequences of a translation with its source, its reference, or both.

        The arguments are those of `hidden_states`.

        Returns:
            (B,) scores; and (B, T, 1 + S) class probabilities of the tokens, first for no error, then
            for S severities of errors, or None if the network does not find errors.
        """
        states = self.hidden_states(ids, mask, token_types)
        scores = self.estimator(self.token_vectors(states, mask)[:, 0])
        if not self.settings.error_labels:
            return scores, None
        logits = self.hidden2tag(states[self.settings.word_layer].float())
        return scores, logits.softmax(-1)


class ErrorSpan(NamedTuple):
    """An error in a translation.

    Attributes:
        start: position of its first character in the translation.
        end: position after its last character.
        severity: ``minor``, ``major`` or ``critical``.
        confidence: highest class probability of a token, averaged over the tokens of the error.
    """

    start: int
    end: int
    severity: str
    confidence: float


class CometScores(NamedTuple):
    """Scores of n translations.

    Attributes:
        scores: (n,) scores.
        parts: empty for checkpoints that encode texts separately. For the others, ``src``, ``ref``
            and ``unified`` -> (n,) scores of the sequences with the source, the reference, and
            both; for XCOMET also ``mqm``, (n,) scores computed from the errors.
        errors: errors in each translation; empty lists if the network does not find errors.
        truncated: (n,) bool, whether a text of the segment, or a sequence of its texts, was
            truncated.
    """

    scores: np.ndarray
    parts: dict[str, np.ndarray]
    errors: list[list[ErrorSpan]]
    truncated: np.ndarray


class _EncodedText(NamedTuple):
    """The (d,) vector of a text, and whether the text was truncated."""

    vector: np.ndarray
    is_truncated: bool


class _SequenceResult(NamedTuple):
    """Result for a sequence of a translation with its source, its reference, or both.

    Attributes:
        score: score of the translation.
        probabilities: (t, 1 + S) class probabilities of the t tokens of the translation, special
            tokens included, see `CometNetwork.score_sequences`; (0, 0) if the network does not find
            errors.
        is_truncated: whether a text, or the sequence, was truncated.
    """

    score: float
    probabilities: np.ndarray
    is_truncated: bool


class Comet(LoadedModel):
    """A converted checkpoint.

    Results are cached by text. A score does not depend on the order of the texts, nor on the other
    texts of a call.

    Args:
        folder: folder that `mtmetrics.artifacts.comet_checkpoints` made.
        **run_options: keywords of `mtmetrics.models.running.Running`. The encoder computes in
            float32 by default, even if the checkpoint was published in another dtype.

    Attributes:
        settings: settings of the checkpoint.
        max_tokens: highest number of tokens of a sequence.
        max_text_tokens: highest number of tokens of a text.

    Raises:
        ArtifactError: the folder is not a converted checkpoint, or is damaged.
        MTMetricsError: the model does not fit into memory.
    """

    def __init__(self, folder: Path, **run_options: Any) -> None:
        self.settings = CometSettings.read(folder)
        super().__init__("COMET", folder, None, run_options)
        # The folder may have any name; signatures and messages name the published checkpoint.
        self.label = self.settings.model
        self.description = f"COMET {self.settings.model}"
        self.tokenizer = pretrained_tokenizer(folder, as_stored=True)
        encoder = transformers_network("AutoModel", folder, torch_dtype(self.dtype))
        with loading(folder, "COMET"):
            network = CometNetwork(encoder, self.settings)
            keys = network.load_state_dict(load_file(folder / HEADS_FILE), strict=False)
            missing = [name for name in keys.missing_keys if not name.startswith("encoder.")]
            mismatched_names = missing or keys.unexpected_keys
            if mismatched_names:
                raise ValueError(f"{HEADS_FILE} does not fit: {mismatched_names[0]}")
        # RoBERTa leaves two of its positions unused. The published package subtracts two for every
        # encoder, and two more wherever it tokenises a single text. Scores of long texts depend on
        # both.
        self.max_tokens = encoder.config.max_position_embeddings - 2
        self.max_text_tokens = self.max_tokens - 2
        self._network = network
        self._runner = self.on_devices(network, self.tokenizer.pad_token_id or 0)
        self._text_cache: TextCache[str, _EncodedText] = TextCache(
            _CACHED_BYTES, lambda encoded: encoded.vector.nbytes
        )
        self._sequence_cache: TextCache[tuple[str, ...], _SequenceResult] = TextCache(
            _CACHED_SEQUENCES
        )

    def score(
        self, translations: Sequence[str], compared_texts: Mapping[str, Sequence[str]]
    ) -> CometScores:
        """Scores n translations.

        Args:
            translations: n texts.
            compared_texts: ``src``, ``ref`` or both -> n sources and references: those of one of
                the `settings.sides`.
        """
        texts_by_role = {"mt": translations, **compared_texts}
        if self.settings.joint:
            return self._score_joint(texts_by_role)
        return self._score_separate(texts_by_role)

    def piece_vectors(self, texts: Sequence[str]) -> list[tuple[np.ndarray, TextUnits]]:
        """Returns the vectors of the word pieces of each text. Scores are computed from these vectors.

        Returns:
            For each text the vectors of its t pieces, (t, d) with L2 length 1; and the pieces
            themselves. Special tokens are left out.
        """

        def normalised_vectors(
            network: CometNetwork, ids: torch.Tensor, mask: torch.Tensor
        ) -> torch.Tensor:
            vectors = network.token_vectors(network.hidden_states(ids, mask), mask)
            return nn.functional.normalize(vectors, dim=2)

        vectors_by_text = self._run(self._tokenise(list(texts)), normalised_vectors)
        pieces = []
        for text, vectors in zip(texts, vectors_by_text, strict=True):
            units = text_words(self.tokenizer, text, self.max_text_tokens, pieces=True)
            # The span of a special token ends at 0.
            kept = np.flatnonzero(units.spans[:, 1] > 0)
            pieces.append((vectors[kept], units.take(kept)))
        return pieces

    def _score_separate(self, texts_by_role: Mapping[str, Sequence[str]]) -> CometScores:
        """Scores translations whose texts are encoded separately.

        `texts_by_role` has n texts for ``mt``, and for ``src``, ``ref`` or both.
        """
        texts = [text for column in texts_by_role.values() for text in column]
        encoded_texts = self._text_cache.values(texts, self._encode)
        encoded = dict(zip(texts, encoded_texts, strict=True))
        device = next(self._network.parameters()).device
        vectors = {
            role: torch.from_numpy(np.stack([encoded[text].vector for text in column])).to(device)
            for role, column in texts_by_role.items()
        }
        with torch.inference_mode():
            scores = self._network.score_from_vectors(vectors).double().cpu().numpy()
        truncated = [
            any(encoded[text].is_truncated for text in segment)
            for segment in zip(*texts_by_role.values(), strict=True)
        ]
        return CometScores(scores, {}, [[] for _ in truncated], np.array(truncated, dtype=bool))

    def _encode(self, texts: list[str]) -> list[_EncodedText]:
        """Encodes texts separately."""
        tokens = self._tokenise(texts)
        vectors = self._run(tokens, CometNetwork.text_vectors)
        return [
            _EncodedText(vector, bool(text.overflowing))
            for vector, text in zip(vectors, tokens, strict=True)
        ]

    def _run(
        self,
        tokens: Sequence[Encoding],
        compute: Callable[[CometNetwork, torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> list[np.ndarray]:
        """Runs the network on tokenised texts, in batches.

        Args:
            tokens: the texts.
            compute: function (network, ids, mask) that turns a batch of B texts into B results.

        Returns:
            The result for each text.
        """
        results: dict[int, np.ndarray] = {}

        def run_batch(
            network: CometNetwork, ids: torch.Tensor, mask: torch.Tensor, indices: list[int]
        ) -> None:
            batch = compute(network, ids, mask).cpu().numpy()
            results.update(zip(indices, batch, strict=True))

        self._runner.run([text.ids for text in tokens], run_batch)
        return [results[index] for index in range(len(tokens))]

    def _score_joint(self, texts_by_role: Mapping[str, Sequence[str]]) -> CometScores:
        """Scores translations that are encoded in one sequence with their sources, references, or
        both; see `_score_separate`."""
        translations = texts_by_role["mt"]
        compared_roles: list[str] = [
            role
            for role in ("src", "ref")
            if role in texts_by_role and role in self.settings.input_segments
        ]
        # Name of a part of the score -> roles of the texts that follow the translation in the
        # sequence. With source and reference, each translation is in three sequences.
        roles_by_part: dict[str, list[str]] = {role: [role] for role in compared_roles}
        if len(compared_roles) == 2:
            roles_by_part["unified"] = compared_roles
        texts = dict.fromkeys(
            text for role in ("mt", *compared_roles) for text in texts_by_role[role]
        )
        tokens = dict(zip(texts, self._tokenise(list(texts)), strict=True))
        results_by_part = self._results_by_part(texts_by_role, roles_by_part, tokens)
        scores = np.array([[result.score for result in results] for results in results_by_part])
        is_truncated = [[result.is_truncated for result in results] for results in results_by_part]
        truncated = np.any(np.array(is_truncated, dtype=bool), axis=0)
        scores_by_part = dict(zip(roles_by_part, scores, strict=True))
        errors: list[list[ErrorSpan]] = [[] for _ in translations]
        if self.settings.error_labels:
            results_by_translation = zip(*results_by_part, strict=True)
            errors = [
                self._find_errors(results, tokens[text].offsets)
                for results, text in zip(results_by_translation, translations, strict=True)
            ]
        if self.settings.class_identifier != "xcomet_metric":
            # The score of the unified family is the mean over the sequences.
            return CometScores(scores.mean(0), scores_by_part, errors, truncated)

        mqm_scores = np.array([_mqm_score(spans) for spans in errors])
        scores_by_part["mqm"] = mqm_scores
        # A single sequence has the weight of all three.
        weights = np.array(_SCORE_WEIGHTS if len(scores) > 1 else (sum(_SCORE_WEIGHTS),))
        # A score above 1 counts as 1, as in the published code.
        total = weights @ np.minimum(scores, 1.0) + _MQM_WEIGHT * mqm_scores
        return CometScores(total, scores_by_part, errors, truncated)

    def _results_by_part(
        self,
        texts_by_role: Mapping[str, Sequence[str]],
        roles_by_part: Mapping[str, Sequence[str]],
        tokens: Mapping[str, Encoding],
    ) -> list[list[_SequenceResult]]:
        """Runs all sequences through the network, or takes their results from the cache.

        Args:
            texts_by_role: n texts for ``mt``, and for ``src``, ``ref`` or both.
            roles_by_part: part of the score -> roles of the texts that follow the translation.
            tokens: text -> its tokens.

        Returns:
            For each part the n results.
        """
        # All parts are run together: longer lists make batches with less padding.
        sequences = [
            sequence
            for roles in roles_by_part.values()
            for sequence in zip(
                texts_by_role["mt"], *(texts_by_role[role] for role in roles), strict=True
            )
        ]
        results = self._sequence_cache.values(
            sequences, lambda uncached: self._read_sequences(uncached, tokens)
        )
        count = len(texts_by_role["mt"])
        return [results[part * count : (part + 1) * count] for part in range(len(roles_by_part))]

    def _find_errors(
        self, results: Sequence[_SequenceResult], offsets: Sequence[tuple[int, int]]
    ) -> list[ErrorSpan]:
        """Finds the errors in a translation from the results of its one or three sequences."""
        weights = _TOKEN_WEIGHTS if len(results) > 1 else (1.0,)
        weighted_probabilities = [
            weight * result.probabilities for weight, result in zip(weights, results, strict=True)
        ]
        probabilities = np.sum(weighted_probabilities, axis=0)
        return error_spans(probabilities, offsets, self.settings.error_labels)

    def _read_sequences(
        self, sequences: list[tuple[str, ...]], tokens: Mapping[str, Encoding]
    ) -> list[_SequenceResult]:
        """Runs the network on sequences of texts; each starts with a translation."""
        joined_ids = [
            self._join_ids([tokens[text].ids for text in sequence]) for sequence in sequences
        ]
        translation_lengths = [len(tokens[translation].ids) for translation, *_ in sequences]
        scores = np.zeros(len(sequences))
        probabilities: list[np.ndarray] = [np.zeros((0, 0))] * len(sequences)

        def score_batch(
            network: CometNetwork, ids: torch.Tensor, mask: torch.Tensor, indices: list[int]
        ) -> None:
            lengths = [translation_lengths[index] for index in indices]
            token_types = None
            if self.settings.encoder_model == "BERT":
                # Type 0 for the translation, 1 for the texts after it.
                positions = torch.arange(ids.shape[1], device=ids.device)
                ends = torch.tensor(lengths, device=ids.device)
                token_types = (positions >= ends[:, None]).long()
            batch_scores, batch_probabilities = network.score_sequences(ids, mask, token_types)
            scores[indices] = batch_scores.double().cpu().numpy()
            if batch_probabilities is not None:
                for index, length, token_probabilities in zip(
                    indices, lengths, batch_probabilities.cpu().numpy(), strict=True
                ):
                    probabilities[index] = token_probabilities[:length]

        self._runner.run([ids[: self.max_tokens] for ids in joined_ids], score_batch)
        results = []
        for index, sequence in enumerate(sequences):
            is_truncated = len(joined_ids[index]) > self.max_tokens or any(
                tokens[text].overflowing for text in sequence
            )
            result = _SequenceResult(float(scores[index]), probabilities[index], is_truncated)
            results.append(result)
        return results

    def _join_ids(self, texts: Sequence[list[int]]) -> list[int]:
        """Joins the ids of texts into one sequence.

        Each text comes with a start and an end token. The sequence keeps the first start token and
        the last end token; one or two end tokens, as the encoder needs, separate two texts.
        """
        end_token = texts[0][-1]
        separators = [end_token] * SEPARATORS[self.settings.encoder_model]
        joined = texts[0][:-1]
        for ids in texts[1:]:
            joined = joined + separators + ids[1:-1]
        return [*joined, end_token]

    def _tokenise(self, texts: list[str]) -> list[Encoding]:
        """Tokenises texts, at most `max_text_tokens` each, special tokens included."""
        encoded = self.tokenizer(texts, truncation=True, max_length=self.max_text_tokens)
        encodings: list[Encoding] = encoded.encodings
        return encodings


def error_spans(
    probabilities: np.ndarray, offsets: Sequence[tuple[int, int]], severities: Sequence[str]
) -> list[ErrorSpan]:
    """Finds errors: runs of tokens whose likeliest class is an error.

    An error has the severity of its first token. The special tokens of the text are among the tokens.
    As in the published code, an error that reaches the last token, which is the end token, is ignored.

    Args:
        probabilities: (n, 1 + S) class probabilities of n tokens: no error, then the S severities.
        offsets: first character of each token, and the position after its last character.
        severities: names of the S severities.
    """
    errors: list[ErrorSpan] = []
    # Positions of consecutive tokens of one error.
    run: list[int] = []
    likeliest_classes = probabilities.argmax(1)
    for position, likeliest_class in enumerate(likeliest_classes):
        if likeliest_class:
            run.append(position)
            continue
        if run:
            first, last = run[0], run[-1]
            severity = severities[likeliest_classes[first] - 1]
            confidence = float(probabilities[run, likeliest_classes[run]].mean())
            errors.append(ErrorSpan(offsets[first][0], offsets[last][1], severity, confidence))
        run = []
    return errors


def _mqm_score(errors: Sequence[ErrorSpan]) -> float:
    """Computes the MQM score of a translation from its errors: 1 without errors, 0 at worst."""
    penalty = sum(MQM_PENALTIES[error.severity] for error in errors)
    return 1 - min(penalty, _HIGHEST_PENALTY) / _HIGHEST_PENALTY
