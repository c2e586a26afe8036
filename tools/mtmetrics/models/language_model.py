"""The language-model term: how likely a language model of the target language finds a
translation."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mtmetrics.artifacts.models import pretrained_tokenizer
from mtmetrics.checks import choice
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.models.devices import dtype_name, torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import spans_of

if TYPE_CHECKING:
    import torch

StartToken = Literal["short", "always", "never"]
START_TOKENS: tuple[StartToken, ...] = ("short", "always", "never")
# Texts whose likelihood is kept, for other metrics that ask for the same ones.
_REMEMBERED = 4096
# Tokens whose logits are computed at once: few megabytes, which stay in the processor's cache.
_TOKENS = 256


class LanguageModel(LoadedModel):
    """Scores texts with a causal language model, in batches whose padding changes no value.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        start_token: where a start-of-text token precedes the text, so that its first token is
            scored too: ``"short"`` for texts of fewer than two tokens, which have no likelihood
            otherwise (longer ones are scored from their second token on, as published);
            ``"always"``; or ``"never"``, where short texts get the published 0, which is the best
            score there is.
        end_token: also score that the text ends where it does, if an end-of-text token fits behind
            it. Only for models that were trained on texts one by one.
        length_power: the log-likelihood of the tokens is divided by their number to this power, 0
            to 1, as beam searches do: 1 is the mean, as published; below 1, of texts with the same
            mean the shorter one is better.
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
        self._only_projects = _only_projects(network.eval())
        # What pads a text stands behind it, where a causal model cannot see it; any token will do.
        self._runner = self.on_devices(network)
        self._start: Any = _inside(
            network.config, network.config.bos_token_id, self.tokenizer.cls_token_id
        )
        if self._start is None and start_token != "never":
            raise ArtifactError(
                f"{self.described}: its config names no bos_token_id; use start_token='never'"
            )
        self._end: Any = _inside(
            network.config, network.config.eos_token_id, self.tokenizer.sep_token_id
        )
        if self._end is None and end_token:
            raise ArtifactError(
                f"{self.described}: its config names no eos_token_id; leave end_token out"
            )
        limit = (
            getattr(network.config, "max_position_embeddings", None)
            or self.tokenizer.model_max_length
        )
        self.max_length = int(min(limit, self.tokenizer.model_max_length))
        # A blank text is scored as badly as a uniform guess over the vocabulary would do.
        self.floor = -float(np.log(network.config.vocab_size))
        self._recent: TextCache[str, tuple[float, int, bool]] = TextCache(_REMEMBERED)

    @property
    def signature_fields(self) -> dict[str, str | None]:
        """How texts are scored, where it is not as published, for the signature of a metric."""
        return {
            "lmstart": None if self.start_token == "short" else self.start_token,
            "lmend": "yes" if self.end_token else None,
            "lmlen": None if self.length_power == 1 else f"{self.length_power:g}",
            "lmdtype": None if self.dtype == "float32" else dtype_name(self.dtype),
        }

    def score(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean log-likelihood per token, or with another `length_power` what takes its place.

        Args:
            texts: N strings.

        Returns:
            (N,) float64 log-likelihoods in nats (at most 0; blank texts get `floor`, or 0 with
            ``start_token="never"``), (N,) token counts, and an (N,) mask of texts cut at the
            model's limit.
        """
        scored = self._recent.values(texts, self._score)
        means, lengths, cut = zip(*scored, strict=True) if scored else ((), (), ())
        return (
            np.array(means, dtype=np.float64),
            np.array(lengths, dtype=np.int64),
            np.array(cut, dtype=bool),
        )

    def token_losses(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each text the (k, 2) spans of its tokens, and their (k,) negative log-likelihoods in
        nats, 0 for a first token that is not scored; without the end of the text."""
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
            network: Any, batch: "torch.Tensor", mask: "torch.Tensor", numbers: list[int]
        ) -> None:
            for number, losses in zip(
                numbers, self._losses(network, batch, mask).double().cpu().numpy(), strict=True
            ):
                own = losses_of[number][0 if self._starts(ids[number]) else 1 :]
                scored = min(
                    len(own), len(rows[number]) - 1
                )  # at the limit a start token leaves no room for the last
                own[:scored] = losses[:scored]

        self._runner.run([row if len(row) > 1 else [] for row in rows], compute)
        return [
            (spans_of(spans), losses)
            for spans, losses in zip(encoded["offset_mapping"], losses_of, strict=True)
        ]

    def _score(self, texts: list[str]) -> list[tuple[float, int, bool]]:
        encoded = self.tokenizer(
            texts, add_special_tokens=False, truncation=True, max_length=self.max_length
        )
        ids = encoded["input_ids"]
        means = np.zeros(len(ids)) if self.start_token == "never" else np.full(len(ids), self.floor)
        rows = [self._framed(text) for text in ids]

        def compute(
            network: Any, batch: "torch.Tensor", mask: "torch.Tensor", numbers: list[int]
        ) -> None:
            divisors = mask[:, 1:].sum(1) ** self.length_power
            means[numbers] = (
                -(self._losses(network, batch, mask).sum(1) / divisors).double().cpu().numpy()
            )

        # A row of one token predicts nothing.
        self._runner.run([row if len(row) > 1 else [] for row in rows], compute)
        return [
            (float(means[number]), len(row), bool(encoded.encodings[number].overflowing))
            for number, row in enumerate(ids)
        ]

    def _losses(self, network: Any, batch: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        """(B, L - 1) float32 of all tokens but the first, 0 for padding."""
        import torch

        given = {"input_ids": batch, "attention_mask": mask, "use_cache": False}
        if self._only_projects:
            states, project = (
                network.base_model(**given).last_hidden_state,
                network.get_output_embeddings(),
            )
        else:
            states, project = network(**given).logits, torch.nn.Identity()
        scored = mask[:, 1:].bool()
        # In parts, so that logits of the whole vocabulary are never there for all tokens.
        parts = zip(
            states[:, :-1][scored].split(_TOKENS), batch[:, 1:][scored].split(_TOKENS), strict=True
        )
        entropy = torch.nn.functional.cross_entropy
        token_losses = torch.cat(
            [entropy(project(part).float(), tokens, reduction="none") for part, tokens in parts]
        )
        if not token_losses.isfinite().all():
            raise MTMetricsError(
                f"language model {self.name}: overflows in {self.dtype}; use dtype='float32'",
                mentions=["dtype='float32'"],
            )
        losses = torch.zeros(scored.shape, device=batch.device)
        losses[scored] = token_losses
        return losses

    def _starts(self, ids: list[int]) -> bool:
        return self.start_token == "always" or (self.start_token == "short" and len(ids) < 2)

    def _framed(self, ids: list[int]) -> list[int]:
        row = [self._start, *ids] if self._starts(ids) else ids
        return (
            [*row, self._end]
            if self.end_token and ids and len(row) < self.max_length
            else row[: self.max_length]
        )


def _inside(config: Any, number: int | None, other: int | None) -> int | None:
    """A special token, or the other one: Chinese models with BERT's vocabulary frame texts by its
    tokens, while their configurations keep numbers of GPT-2 that lie outside of it."""
    return number if number is None or number < config.vocab_size else other


def _only_projects(network: Any) -> bool:
    """Whether logits are what the output layer makes of the last states and no more: some models
    cap or scale them."""
    import torch

    output, ids = network.get_output_embeddings(), torch.zeros((1, 2), dtype=torch.long)
    if output is None or network.base_model is network:
        return False
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    with torch.inference_mode():
        projected = output(network.base_model(**given).last_hidden_state)
        return torch.equal(projected.float(), network(**given).logits.float())


def _fuse_activations(network: Any) -> None:
    """Replaces GPT-2's GELU, written out in six steps by `transformers`, by torch's own of the same
    formula."""
    import torch

    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child).__name__ == "NewGELUActivation":
                setattr(module, name, torch.nn.GELU(approximate="tanh"))


def length_normalised(means: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``exp(mean) ** (1 / length)`` of (N,) mean log-likelihoods: the later published form; 0 for
    fewer than two tokens.

    It divides by the length a second time, so it tends to 1 for long texts whatever their
    likelihood."""
    return np.where(lengths > 1, np.exp(means / np.maximum(lengths, 1)), 0.0)
