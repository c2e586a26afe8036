"""COMET: encoders that were trained to judge a translation by its source, its reference, or both.

Four families of checkpoints are read, as ``mtmetrics artifacts convert`` makes folders of them.
Those of regression, with and without references (Rei et al., 2020 and 2021), encode each text alone
and compare the vectors. Unified ones (Wan et al., 2022; Rei et al., 2022) encode the texts as one
sequence, and XCOMET (Guerreiro et al., 2024) finds the errors in it besides."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from mtmetrics.artifacts.comet_checkpoints import HEADS_FILE, SEPARATORS, CometSettings
from mtmetrics.artifacts.models import loading, pretrained_tokenizer, transformers_network
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import TextUnits, text_words

# Of an input with the source, with the reference, and with both: shares in the score and in the
# labels of words; the rest of the score is that of the errors found.
_SCORE_SHARES, _WORD_SHARES, _ERROR_SHARE = (0.12, 0.33, 0.33), (0.1667, 0.3333, 0.5), 0.22
PENALTIES, _WORST = {"minor": 1, "major": 5, "critical": 10}, 25
_INPUTS = {"source": ("src",), "reference": ("ref",), "both": ("src", "ref", "unified")}
_REMEMBERED = 2**26  # bytes of sentence vectors


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
        """(B, T, d) mix of (B, T, d) states, of texts whose (B, T) mask is 1 at real tokens."""
        scores = torch.cat(list(self.scalar_parameters))
        weights = sparsemax(scores) if self.sparse else scores.softmax(0)
        real = mask.float()[:, :, None]
        mixed = torch.zeros_like(states[0], dtype=torch.float32)
        for weight, state in zip(weights, states, strict=True):
            values = state.float()
            if self.norm:
                numbers = real.sum((1, 2), keepdim=True) * values.shape[2]
                centred = values - (values * real).sum((1, 2), keepdim=True) / numbers
                values = (
                    centred
                    / (((centred * real) ** 2).sum((1, 2), keepdim=True) / numbers + 1e-12).sqrt()
                )
            mixed += weight * values
        return self.gamma * mixed


def sparsemax(scores: torch.Tensor) -> torch.Tensor:
    """(n,) the nearest point of the probability simplex to n scores (Martins and Astudillo, 2016,
    Eq. 2): as a softmax, but with zeros.

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
        between = getattr(nn, settings.activations.title())
        layers: list[nn.Module] = []
        for inputs, outputs in zip(
            [width, *settings.hidden_sizes], settings.hidden_sizes, strict=False
        ):
            layers += [
                nn.Linear(inputs, outputs),
                between(),
                nn.Identity(),
            ]  # where the checkpoint has its dropout
        layers.append(nn.Linear(settings.hidden_sizes[-1], 1))
        if settings.final_activation is not None:
            layers.append(getattr(nn, settings.final_activation.title())())
        self.ff = nn.Sequential(*layers)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """(B,) scores of (B, width) vectors."""
        return self.ff(vectors)[:, 0]


class CometNetwork(nn.Module):
    """The encoder of a checkpoint, and what reads its hidden states; all but the encoder computes
    in float32."""

    def __init__(self, encoder: nn.Module, settings: CometSettings) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.settings = settings
        size: Any = encoder.config
        times = {"regression_metric": 6, "referenceless_regression_metric": 4}.get(
            settings.class_identifier, 1
        )
        self.estimator = Estimator(times * size.hidden_size, settings)
        if settings.layer == "mix":
            sparse = settings.layer_transformation == "sparsemax"
            self.layerwise_attention = LayerwiseMix(
                size.num_hidden_layers + 1, sparse=sparse, norm=settings.layer_norm
            )
        if settings.error_labels:
            self.hidden2tag = nn.Linear(size.hidden_size, len(settings.error_labels) + 1)

    def states(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor | None
    ) -> Sequence[torch.Tensor]:
        """All hidden states, (B, T, d) each, embeddings first."""
        options = {} if types is None else {"token_type_ids": types}
        found = self.encoder(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, **options
        )
        return found.hidden_states

    def read(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """(B, T, d) the state, or the mix of states, that scores are made of."""
        if isinstance(self.settings.layer, int):
            return states[self.settings.layer].float()
        return self.layerwise_attention(states, mask)

    def vectors(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(B, d) one vector for each text."""
        states = self.states(ids, mask, None)
        if self.settings.pool == "default":
            return states[-1][:, 0].float()
        tokens = self.read(states, mask)
        if self.settings.pool == "cls":
            return tokens[:, 0]
        real = mask[:, :, None].bool()
        if self.settings.pool == "max":
            return tokens.masked_fill(~real, -torch.inf).amax(1)
        return tokens.masked_fill(~real, 0.0).sum(1) / mask.sum(1, keepdim=True)

    def compare(
        self, translations: torch.Tensor, others: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """(n,) scores of (n, d) vectors of translations, sources and references (Rei et al., 2020,
        Sec. 2.3)."""
        parts = [translations, *([others["ref"]] if "ref" in others else [others["src"]])]
        for name in ("ref", "src"):
            if name in others:
                parts += [translations * others[name], (translations - others[name]).abs()]
        return self.estimator(torch.cat(parts, 1))

    def judge(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(B,) scores of joint sequences, and (B, T, labels) probabilities of the labels of their
        tokens."""
        states = self.states(ids, mask, types)
        scores = self.estimator(self.read(states, mask)[:, 0])
        if not self.settings.error_labels:
            return scores, None
        return scores, self.hidden2tag(states[self.settings.word_layer].float()).softmax(-1)


class ErrorSpan(NamedTuple):
    """An error in a translation: where it stands, how severe it is, and how sure the network is of
    that, 0 to 1."""

    start: int
    end: int
    severity: str
    confidence: float


class CometScores(NamedTuple):
    """(n,) scores, named (n,) parts, the errors found in each translation, and (n,) bool, whether a
    text was cut."""

    scores: np.ndarray
    parts: dict[str, np.ndarray]
    errors: list[list[ErrorSpan]]
    truncated: np.ndarray


class _Judged(NamedTuple):
    score: float
    words: Any  # (n, 1 + labels) array; None where a checkpoint labels no words


class Comet(LoadedModel):
    """A converted checkpoint. No text is encoded twice, and neither order nor neighbours change a
    score.

    Args:
        folder: as `mtmetrics.artifacts.comet_checkpoints` makes it.
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
            heads = load_file(folder / HEADS_FILE)
            found = network.load_state_dict(heads, strict=False)
            lacking = [name for name in found.missing_keys if not name.startswith("encoder.")]
            if lacking or found.unexpected_keys:
                raise ValueError(
                    f"{HEADS_FILE} does not fit: {(lacking or found.unexpected_keys)[0]}"
                )
        # As the published package counts: two positions of RoBERTa's table are none.
        self.limit = encoder.config.max_position_embeddings - 2
        self._runner = self.on_devices(network, self.tokenizer.pad_token_id or 0)
        self._network: Any = self._runner.replicas[0][0]
        # The vector of a text, and whether the text was cut.
        self._vectors: TextCache[str, tuple[np.ndarray, bool]]
        self._vectors = TextCache(_REMEMBERED, lambda encoded: encoded[0].nbytes)
        self._judged: TextCache[tuple[str, ...], _Judged] = TextCache(4096)

    def score(
        self, translations: Sequence[str], others: Mapping[str, Sequence[str]]
    ) -> CometScores:
        """Scores n translations.

        Args:
            translations: n texts.
            others: ``src``, ``ref`` or both -> n sources and references.
        """
        columns = {
            "mt": list(translations),
            **{name: list(texts) for name, texts in others.items()},
        }
        return self._score_joint(columns) if self.settings.joint else self._score_apart(columns)

    def _score_apart(self, columns: Mapping[str, list[str]]) -> CometScores:
        """Of texts that are encoded one by one."""
        texts = [text for column in columns.values() for text in column]
        encoded = self._vectors.values(texts, self._encode)
        count = len(columns["mt"])
        device = next(self._network.parameters()).device
        sides = {}
        for place, name in enumerate(columns):
            own = encoded[place * count : (place + 1) * count]
            sides[name] = torch.from_numpy(np.stack([vector for vector, _ in own])).to(device)
        with torch.inference_mode():
            scores = self._network.compare(sides.pop("mt"), sides).double().cpu().numpy()
        cut = np.array([was_cut for _, was_cut in encoded], dtype=bool).reshape(-1, count)
        return CometScores(scores, {}, [[] for _ in range(count)], np.any(cut, axis=0))

    def _encode(self, texts: list[str]) -> list[tuple[np.ndarray, bool]]:
        rows, cut, _ = self._tokenised(texts)
        vectors_of: list[Any] = [None] * len(texts)

        def compute(
            network: Any, ids: torch.Tensor, mask: torch.Tensor, numbers: list[int]
        ) -> None:
            for number, vector in zip(
                numbers, network.vectors(ids, mask).cpu().numpy(), strict=True
            ):
                vectors_of[number] = vector

        self._runner.run(rows, compute)
        return list(zip(vectors_of, cut, strict=True))

    def pieces(self, texts: Sequence[str]) -> list[tuple[np.ndarray, TextUnits]]:
        """Of each text, read alone, the (t, d) vectors of its pieces, of length 1, as scores are
        made of them, and the pieces; special tokens are left out."""
        rows, _, _ = self._tokenised(list(texts))
        pieces_of: list[Any] = [None] * len(rows)

        def compute(
            network: Any, ids: torch.Tensor, mask: torch.Tensor, numbers: list[int]
        ) -> None:
            vectors = nn.functional.normalize(
                network.read(network.states(ids, mask, None), mask), dim=2
            )
            for number, own in zip(numbers, vectors.cpu().numpy(), strict=True):
                units = text_words(self.tokenizer, texts[number], self.limit - 2, pieces=True)
                kept = np.flatnonzero(units.spans[:, 1])
                pieces_of[number] = own[kept], units.take(kept)

        self._runner.run(rows, compute)
        return pieces_of

    def _score_joint(self, columns: Mapping[str, list[str]]) -> CometScores:
        """Of texts that are encoded as one sequence."""
        given = [
            name
            for name in ("src", "ref")
            if name in columns and name in self.settings.input_segments
        ]
        inputs = [(name,) for name in given] + ([tuple(given)] if len(given) > 1 else [])
        names = ["unified" if len(kind) > 1 else kind[0] for kind in inputs]
        count = len(columns["mt"])
        texts = list(dict.fromkeys(text for name in ("mt", *given) for text in columns[name]))
        known = dict(zip(texts, zip(*self._tokenised(texts), strict=True), strict=True))
        keys = [
            tuple(columns[name][row] for name in ("mt", *kind))
            for kind in inputs
            for row in range(count)
        ]
        judged = self._judged.values(keys, lambda missing: self._judge(missing, known))
        scores = np.array([found.score for found in judged]).reshape(len(inputs), count)
        cut = [any(known[text][1] for text in key) or self._too_long(key, known) for key in keys]
        truncated = np.any(np.array(cut).reshape(-1, count), axis=0)
        parts = dict(zip(names, scores, strict=True))
        errors: list[list[ErrorSpan]] = [[] for _ in range(count)]
        if self.settings.error_labels:
            shares = _WORD_SHARES if len(inputs) > 1 else (1.0,)
            for row, text in enumerate(columns["mt"]):
                weighted = [
                    share * judged[place * count + row].words for place, share in enumerate(shares)
                ]
                probabilities = np.sum(weighted, axis=0)
                errors[row] = error_spans(probabilities, known[text][2], self.settings.error_labels)
        if self.settings.class_identifier != "xcomet_metric":
            return CometScores(scores.mean(0), parts, errors, truncated)
        parts["mqm"] = np.array([_of_errors(spans) for spans in errors])
        shares = _SCORE_SHARES if len(inputs) > 1 else (sum(_SCORE_SHARES),)
        whole = np.array(shares) @ np.minimum(scores, 1.0) + _ERROR_SHARE * parts["mqm"]
        return CometScores(whole, parts, errors, truncated)

    def _judge(self, keys: list[tuple[str, ...]], known: Mapping[str, Any]) -> list[_Judged]:
        rows = [self._joined([known[text][0] for text in key])[: self.limit] for key in keys]
        first = [len(known[key[0]][0]) for key in keys]
        judged: list[Any] = [None] * len(keys)

        def compute(
            network: Any, ids: torch.Tensor, mask: torch.Tensor, numbers: list[int]
        ) -> None:
            types = None
            if self.settings.encoder_model == "BERT":
                ends = torch.tensor([first[number] for number in numbers], device=ids.device)
                types = (torch.arange(ids.shape[1], device=ids.device) >= ends[:, None]).long()
            scores, words = network.judge(ids, mask, types)
            labels = [None] * len(numbers) if words is None else words.cpu().numpy()
            for number, score, own in zip(numbers, scores.double().tolist(), labels, strict=True):
                judged[number] = _Judged(score, None if own is None else own[: first[number]])

        self._runner.run(rows, compute)
        return judged

    def _joined(self, texts: Sequence[list[int]]) -> list[int]:
        """Texts, each between its special tokens, as one sequence."""
        row, separator = list(texts[0][:-1]), texts[0][-1]
        for ids in texts[1:]:
            row += [separator] * SEPARATORS[self.settings.encoder_model] + ids[1:-1]
        return [*row, separator]

    def _too_long(self, key: Sequence[str], known: Mapping[str, Any]) -> bool:
        return len(self._joined([known[text][0] for text in key])) > self.limit

    def _tokenised(self, texts: list[str]) -> tuple[list[list[int]], list[bool], list[Any]]:
        """Of each text the ids, special tokens included, whether it was cut, and where its tokens
        stand."""
        options = {"truncation": True, "max_length": self.limit - 2, "return_offsets_mapping": True}
        encoded = self.tokenizer(texts, **options)
        cut = [bool(encoding.overflowing) for encoding in encoded.encodings]
        return encoded["input_ids"], cut, encoded["offset_mapping"]


def error_spans(
    probabilities: np.ndarray, offsets: Sequence[tuple[int, int]], labels: Sequence[str]
) -> list[ErrorSpan]:
    """The errors that labels of tokens tell of; one that reaches the end of the tokens does not
    count, as published.

    Args:
        probabilities: (n, 1 + labels) of no error and of each label, for n tokens.
        offsets: where each token stands in the text.
        labels: severities.
    """
    errors: list[ErrorSpan] = []
    span: list[int] = []
    chosen = probabilities.argmax(1)
    for place, label in enumerate(chosen):
        if label:
            span.append(place)
        elif span:
            sure = float(probabilities[span, chosen[span]].mean())
            errors.append(
                ErrorSpan(
                    offsets[span[0]][0], offsets[span[-1]][1], labels[chosen[span[0]] - 1], sure
                )
            )
            span = []
    return errors


def _of_errors(spans: Sequence[ErrorSpan]) -> float:
    """Score of a translation by its errors, as in MQM, from 0 (as bad as can be told) to 1
    (none)."""
    return 1 - min(sum(PENALTIES[span.severity] for span in spans), _WORST) / _WORST
