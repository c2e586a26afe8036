"""The language-model term: the likelihood of a translation by a model of the target language.

A text becomes a row of token ids, with a start and an end token where these are wanted. The network
gives the loss of every token but the first of a row; the score is minus their mean.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from mtmetrics.artifacts.models import Network, NetworkConfig, pretrained_tokenizer
from mtmetrics.checks import choice
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.models.devices import dtype_name, torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import spans_of

if TYPE_CHECKING:
    import torch

    from mtmetrics.models.batches import Compute

StartToken = Literal["short", "always", "never"]
START_TOKENS: tuple[StartToken, ...] = ("short", "always", "never")
# Texts whose likelihood is kept, for other metrics that ask for the same ones.
_CACHED_TEXTS = 4096
# Tokens whose logits are computed at once. They take few megabytes, which fit into the cache of a
# processor.
_TOKENS_AT_ONCE = 256


class _Likelihood(NamedTuple):
    """The score of a text, the number of its tokens, and whether the text was cut."""

    score: float
    tokens: int
    is_truncated: bool


class LanguageModel(LoadedModel):
    """Scores texts with a causal language model, in batches whose padding changes no value.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        start_token: which texts get a start-of-text token, so that their first token is scored too:
            ``"short"``, texts of fewer than two tokens, which have no likelihood otherwise (longer
            ones are scored from their second token on, as published); ``"always"``; or ``"never"``,
            where short texts get the published 0, which is the best score there is.
        end_token: also score that the text ends where it does, if an end-of-text token fits behind
            it. Only for models that were trained on texts one by one.
        length_power: from 0 to 1. The log-likelihood of a text is divided by the number of its
            tokens to this power, as in beam searches. With 1, the score is the mean, as published.
            With less, the shorter of two texts with the same mean has the better score.
        revision: Hub revision.
        **running: keywords of `mtmetrics.models.running.Running`; by default 2,048 padded tokens per
            batch. Likelihoods come in float32, whatever the number format of the network.

    Raises:
        InputError: an unknown option, or a power outside of [0, 1].
        ArtifactError: the model cannot be found or loaded, or has no start or end token where one
            is asked for.
        MTMetricsError: the model does not fit into memory, or overflows in its number format.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        start_token: StartToken = "short",
        end_token: bool = False,
        length_power: float = 1.0,
        revision: str | None = None,
        **running: Any,
    ) -> None:
        self.start_token = choice("start_token", start_token, START_TOKENS)
        self.end_token = end_token
        if not isinstance(length_power, int | float) or not 0 <= length_power <= 1:
            raise InputError(f"length_power {length_power!r}: a number from 0 to 1 is needed")
        self.length_power = length_power
        super().__init__("language model", model, revision, {"batch_tokens": 2048} | running)
        from mtmetrics.models.plain_networks import network as load

        self.tokenizer = pretrained_tokenizer(self.folder)
        network = load("AutoModelForCausalLM", self.folder, torch_dtype(self.dtype))
        _fuse_activations(network)
        self._logits_are_projected = _logits_are_projected(network.eval())
        # Padding stands behind a text, where a causal model cannot see it; any token will do.
        self._runner = self.on_devices(network)
        config = network.config
        self._start = _special_token(config, config.bos_token_id, self.tokenizer.cls_token_id)
        if self._start is None and start_token != "never":
            raise ArtifactError(
                f"{self.described}: its config names no bos_token_id; use start_token='never'"
            )
        self._end = _special_token(config, config.eos_token_id, self.tokenizer.sep_token_id)
        if self._end is None and end_token:
            raise ArtifactError(
                f"{self.described}: its config names no eos_token_id; leave end_token out"
            )
        self.max_length = int(self.tokenizer.model_max_length)
        positions = getattr(config, "max_position_embeddings", None)
        if positions:
            self.max_length = int(min(positions, self.max_length))
        # A blank text gets the score of a uniform guess over the vocabulary.
        self.floor = -float(np.log(config.vocab_size))
        self._scored: TextCache[str, _Likelihood] = TextCache(_CACHED_TEXTS)

    @property
    def signature_fields(self) -> dict[str, str | None]:
        """Options for the signature of a metric; None where one is as published."""
        return {
            "lmstart": None if self.start_token == "short" else self.start_token,
            "lmend": "yes" if self.end_token else None,
            "lmlen": None if self.length_power == 1 else f"{self.length_power:g}",
            "lmdtype": None if self.dtype == "float32" else dtype_name(self.dtype),
        }

    def score(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the mean log-likelihood per token of N texts; `length_power` changes the mean.

        Returns:
            (N,) float64 log-likelihoods in nats (at most 0; blank texts get `floor`, or 0 with
            ``start_token="never"``), (N,) token counts, and an (N,) mask of texts cut at the
            model's limit.
        """
        likelihoods = self._scored.values(texts, self._score)
        return (
            np.array([each.score for each in likelihoods], dtype=np.float64),
            np.array([each.tokens for each in likelihoods], dtype=np.int64),
            np.array([each.is_truncated for each in likelihoods], dtype=bool),
        )

    def token_losses(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns the spans of the tokens of each text, and their losses.

        Returns:
            For each text the (k, 2) spans of its tokens, and their (k,) negative log-likelihoods in
            nats, 0 for a first token that is not scored. The end token is left out.
        """
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            truncation=True,
            max_length=self.max_length,
            return_offsets_mapping=True,
        )
        ids = encoded["input_ids"]
        rows = [self._framed(text) for text in ids]
        losses_of = [np.zeros(len(text)) for text in ids]

        def compute(
            network: Network, batch: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            batch_losses = self._losses(network, batch, mask).double().cpu().numpy()
            for index, row_losses in zip(indices, batch_losses, strict=True):
                first_scored = 0 if self._gets_start(ids[index]) else 1
                text_losses = losses_of[index][first_scored:]
                # At the limit a start token leaves no room for the last token.
                scored = min(len(text_losses), len(rows[index]) - 1)
                text_losses[:scored] = row_losses[:scored]

        self._run(rows, compute)
        return [
            (spans_of(spans), losses)
            for spans, losses in zip(encoded["offset_mapping"], losses_of, strict=True)
        ]

    def _score(self, texts: list[str]) -> list[_Likelihood]:
        encoded = self.tokenizer(
            texts, add_special_tokens=False, truncation=True, max_length=self.max_length
        )
        ids = encoded["input_ids"]
        scores = np.full(len(ids), 0.0 if self.start_token == "never" else self.floor)

        def compute(
            network: Network, batch: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            losses = self._losses(network, batch, mask).sum(1)
            divisors = mask[:, 1:].sum(1) ** self.length_power
            scores[indices] = -(losses / divisors).double().cpu().numpy()

        self._run([self._framed(text) for text in ids], compute)
        return [
            _Likelihood(float(score), len(text), bool(encoding.overflowing))
            for score, text, encoding in zip(scores, ids, encoded.encodings, strict=True)
        ]

    def _run(self, rows: list[list[int]], compute: "Compute") -> None:
        """Computes rows of ids, but those of a single token, which predict nothing."""
        self._runner.run([row if len(row) > 1 else [] for row in rows], compute)

    def _losses(
        self, network: Network, batch: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        """Returns (B, T - 1) float32 losses of all tokens of (B, T) ids but the first of each row;
        0 for padding."""
        import torch

        inputs = {"input_ids": batch, "attention_mask": mask, "use_cache": False}
        if self._logits_are_projected:
            states = network.base_model(**inputs).last_hidden_state
            project = network.get_output_embeddings()
        else:
            states = network(**inputs).logits
            project = torch.nn.Identity()
        is_scored = mask[:, 1:].bool()
        # In parts, so that the logits of the whole vocabulary are never in memory for all tokens.
        state_parts = states[:, :-1][is_scored].split(_TOKENS_AT_ONCE)
        token_parts = batch[:, 1:][is_scored].split(_TOKENS_AT_ONCE)
        entropy = torch.nn.functional.cross_entropy
        token_losses = torch.cat(
            [
                entropy(project(part).float(), tokens, reduction="none")
                for part, tokens in zip(state_parts, token_parts, strict=True)
            ]
        )
        if not token_losses.isfinite().all():
            raise MTMetricsError(
                f"language model {self.name}: overflows in {self.dtype}; use dtype='float32'",
                mentions=["dtype='float32'"],
            )
        losses = torch.zeros(is_scored.shape, device=batch.device)
        losses[is_scored] = token_losses
        return losses

    def _gets_start(self, ids: list[int]) -> bool:
        """Whether a start token precedes a text of these ids."""
        return self.start_token == "always" or (self.start_token == "short" and len(ids) < 2)

    def _framed(self, ids: list[int]) -> list[int]:
        """Returns the ids of a text with its start and end token, up to the model's limit."""
        row = ids
        if self._gets_start(ids) and self._start is not None:
            row = [self._start, *ids]
        if self.end_token and self._end is not None and ids and len(row) < self.max_length:
            return [*row, self._end]
        return row[: self.max_length]


def _special_token(
    config: NetworkConfig, model_id: int | None, tokenizer_id: int | None
) -> int | None:
    """Returns the id of a special token by a model's configuration, or by its tokenizer where the
    first lies outside of the vocabulary.

    Chinese models with BERT's vocabulary frame texts by its tokens, while their configurations keep
    the ids of GPT-2.
    """
    if model_id is None or model_id < config.vocab_size:
        return model_id
    return tokenizer_id


def _logits_are_projected(network: Network) -> bool:
    """Whether the logits are what the output layer makes of the last states and no more: some
    models cap or scale them."""
    import torch

    output = network.get_output_embeddings()
    if output is None or network.base_model is network:
        return False
    ids = torch.zeros((1, 2), dtype=torch.long)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    with torch.inference_mode():
        projected = output(network.base_model(**inputs).last_hidden_state)
        return torch.equal(projected.float(), network(**inputs).logits.float())


def _fuse_activations(network: Network) -> None:
    """Replaces GPT-2's GELU, which `transformers` computes in six steps, by torch's own GELU of the
    same formula."""
    import torch

    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child).__name__ == "NewGELUActivation":
                setattr(module, name, torch.nn.GELU(approximate="tanh"))


def length_normalised(means: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns ``exp(mean) ** (1 / length)`` of (N,) mean log-likelihoods, the later published form;
    0 for fewer than two tokens.

    The form divides by the length a second time, so that it tends to 1 for long texts whatever
    their likelihood.
    """
    return np.where(lengths > 1, np.exp(means / np.maximum(lengths, 1)), 0.0)
