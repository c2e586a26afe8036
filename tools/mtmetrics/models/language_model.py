"""Scores translations by their log-likelihood under a language model of the target language.

The score is a term of XMoverScore, and a metric by itself. A text becomes a row of token ids, maybe
with a start and an end token. The network computes the loss of every token of a row except the first;
the score is by default the negative mean of these losses.

"As published" means: as in the language-model term of XMoverScore (Zhao et al., 2020).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from mtmetrics.artifacts.models import Network, NetworkConfig, pretrained_tokenizer
from mtmetrics.checks import choice
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.devices import dtype_name, overflow_error, torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import require_fast_tokenizer, spans_of, tokenizer_limit

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding

    from mtmetrics.models.batches import Compute

StartToken = Literal["short", "always", "never"]
_START_TOKENS: tuple[StartToken, ...] = get_args(StartToken)
# Number of texts in the cache; other metrics may score the same texts.
_CACHED_TEXTS = 4096
# Tokens whose logits are computed at once. This bounds the memory: a token has a logit for each entry
# of the vocabulary.
_TOKENS_AT_ONCE = 256


class _Likelihood(NamedTuple):
    """The score of a text, the number of its tokens, and whether the text was truncated."""

    score: float
    tokens: int
    is_truncated: bool


class LanguageModel(LoadedModel):
    """Scores texts with a causal language model. Padding does not change a score.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        start_token: texts that get a start-of-text token. With it, their first token is scored too;
            without it, a text is scored from its second token on, as published.

            - ``"short"``: texts of fewer than two tokens, which have no likelihood without it.
            - ``"always"``: all texts.
            - ``"never"``: no text. Texts of fewer than two tokens score 0, as published, which is
              the best possible score; with `end_token`, only texts without tokens do.
        end_token: add an end-of-text token to each text with tokens that has room for it, and score
            it. Only for models that were trained on single texts.
        length_power: the log-likelihood of a text is divided by ``token count ** length_power``, as
            in beam search. 1 makes the score the mean, as published. With less than 1, the shorter
            of two texts with equal means has the better score. From 0 to 1.
        revision: Hub revision.
        **run_options: keywords of `mtmetrics.models.running.Running`; the default of `batch_tokens`
            is 2,048 here. Losses are computed in float32, even if the network has another dtype.

    Attributes:
        floor: log-likelihood of a uniform guess over the vocabulary. It is the score of a text without
            tokens, unless `start_token` is ``"never"``.

    Raises:
        InputError: an unknown option, or a power outside of [0, 1].
        ArtifactError: the model cannot be found or loaded, or lacks the start or end token that an
            option needs.
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
        **run_options: Any,
    ) -> None:
        self.start_token = choice("start_token", start_token, _START_TOKENS)
        self.end_token = end_token
        if not isinstance(length_power, int | float) or not 0 <= length_power <= 1:
            raise InputError(f"length_power {length_power!r}: a number from 0 to 1 is needed")
        self.length_power = length_power
        super().__init__("language model", model, revision, {"batch_tokens": 2048} | run_options)
        from mtmetrics.models.plain_networks import load_network

        self.tokenizer = pretrained_tokenizer(self.folder)
        require_fast_tokenizer(self.tokenizer, self.description)
        network = load_network("AutoModelForCausalLM", self.folder, torch_dtype(self.dtype))
        _fuse_activations(network)
        self._has_plain_head = _has_plain_head(network.eval())
        # Padding follows a text, where a causal model cannot see it; any token will do.
        self._runner = self.on_devices(network)
        config = network.config
        self._start = _special_token(config, config.bos_token_id, self.tokenizer.cls_token_id)
        if self._start is None and self.start_token != "never":
            raise ArtifactError(
                f"{self.description}: its config names no bos_token_id; use start_token='never'"
            )
        self._end = _special_token(config, config.eos_token_id, self.tokenizer.sep_token_id)
        if self._end is None and end_token:
            raise ArtifactError(
                f"{self.description}: its config names no eos_token_id; leave end_token out"
            )
        self.max_length = tokenizer_limit(self.tokenizer)
        positions = getattr(config, "max_position_embeddings", None)
        if positions:
            self.max_length = int(min(positions, self.max_length))
        self.floor = -float(np.log(config.vocab_size))
        self._cache: TextCache[str, _Likelihood] = TextCache(_CACHED_TEXTS)

    @property
    def signature_fields(self) -> dict[str, str | None]:
        """Options for the signature of a metric, the line that says how a score was made; None for
        options as published."""
        return {
            "lmstart": None if self.start_token == "short" else self.start_token,
            "lmend": "yes" if self.end_token else None,
            "lmlen": None if self.length_power == 1 else f"{self.length_power:g}",
            "lmdtype": None if self.dtype == "float32" else dtype_name(self.dtype),
        }

    def score(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores N texts: log-likelihoods, divided as `length_power` says.

        Returns:
            (N,) float64 scores in nats, at most 0 (texts without tokens get `floor`, or 0 with
            ``start_token="never"``); (N,) token counts without start and end tokens; and an (N,)
            mask of texts that were truncated at the model's limit.
        """
        likelihoods = self._cache.values(texts, self._score)
        return (
            np.array([likelihood.score for likelihood in likelihoods], dtype=np.float64),
            np.array([likelihood.tokens for likelihood in likelihoods], dtype=np.int64),
            np.array([likelihood.is_truncated for likelihood in likelihoods], dtype=bool),
        )

    def token_losses(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Computes the loss of each token of some texts.

        Returns:
            For each text, the (k, 2) positions of its k tokens, in characters; and their (k,)
            negative log-likelihoods in nats, 0 for a token that is not scored: a first token
            without a start token, or a last one that a start token leaves no room for. The start
            and end tokens are left out.
        """
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            truncation=True,
            max_length=self.max_length,
            return_offsets_mapping=True,
        )
        ids = encoded["input_ids"]
        rows = [self._with_special_tokens(text_ids) for text_ids in ids]
        losses_by_text = [np.zeros(len(text_ids)) for text_ids in ids]

        def compute(
            network: Network, batch: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            batch_losses = self._losses(network, batch, mask).double().cpu().numpy()
            for index, row_losses in zip(indices, batch_losses, strict=True):
                first_scored = 0 if self._gets_start(ids[index]) else 1
                text_losses = losses_by_text[index][first_scored:]  # a view
                # At the limit a start token leaves no room for the last token.
                scored_count = min(len(text_losses), len(rows[index]) - 1)
                text_losses[:scored_count] = row_losses[:scored_count]

        self._run(rows, compute)
        return [
            (spans_of(spans), losses)
            for spans, losses in zip(encoded["offset_mapping"], losses_by_text, strict=True)
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

        self._run([self._with_special_tokens(text_ids) for text_ids in ids], compute)
        return [
            _Likelihood(float(score), len(text_ids), self._is_truncated(encoding))
            for score, text_ids, encoding in zip(scores, ids, encoded.encodings, strict=True)
        ]

    def _run(self, rows: list[list[int]], compute: "Compute") -> None:
        """Runs all rows of ids except rows of a single token, which have no token to score."""
        self._runner.run([row if len(row) > 1 else [] for row in rows], compute)

    def _losses(
        self, network: Network, batch: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        """Returns the (B, T - 1) float32 losses of (B, T) ids: one for each token except the first
        of each row, 0 at padding."""
        import torch

        inputs = {"input_ids": batch, "attention_mask": mask, "use_cache": False}
        head: torch.nn.Module
        if self._has_plain_head:
            # The logits of all tokens are never in memory at once, since the head runs on parts.
            head_inputs = network.base_model(**inputs).last_hidden_state
            head = network.get_output_embeddings()
        else:
            head_inputs = network(**inputs).logits
            head = torch.nn.Identity()
        is_scored = mask[:, 1:].bool()
        input_parts = head_inputs[:, :-1][is_scored].split(_TOKENS_AT_ONCE)
        token_parts = batch[:, 1:][is_scored].split(_TOKENS_AT_ONCE)
        losses_by_part = []
        for inputs_of_part, tokens in zip(input_parts, token_parts, strict=True):
            logits = head(inputs_of_part).float()
            losses_by_part.append(
                torch.nn.functional.cross_entropy(logits, tokens, reduction="none")
            )
        token_losses = torch.cat(losses_by_part)
        if not token_losses.isfinite().all():
            raise overflow_error(f"{self.description}:", self.dtype)
        losses = torch.zeros(is_scored.shape, device=batch.device)
        losses[is_scored] = token_losses
        return losses

    def _gets_start(self, ids: list[int]) -> bool:
        """Whether a text with these ids gets a start token."""
        return self.start_token == "always" or (self.start_token == "short" and len(ids) < 2)

    def _is_truncated(self, encoding: "Encoding") -> bool:
        """Whether a text was truncated, by the tokenizer or to make room for a start token."""
        room = self.max_length - self._gets_start(encoding.ids)
        return bool(encoding.overflowing) or len(encoding.ids) > room

    def _with_special_tokens(self, ids: list[int]) -> list[int]:
        """Adds the start and the end token to the ids of a text, up to the model's limit."""
        row = ids
        if self._gets_start(ids) and self._start is not None:
            row = [self._start, *ids]
        if self.end_token and self._end is not None and ids and len(row) < self.max_length:
            return [*row, self._end]
        return row[: self.max_length]


def _special_token(
    config: NetworkConfig, model_id: int | list[int] | None, tokenizer_id: int | None
) -> int | None:
    """Returns the id of a special token: the model's, or the tokenizer's if the model's id is outside
    of the vocabulary.

    Chinese models with BERT's vocabulary wrap a text in ``[CLS]`` and ``[SEP]``, while their
    config.json keeps the ids of GPT-2. Models of chats list several end tokens; the first one ends a
    text, the others end a turn.
    """
    if isinstance(model_id, list):
        model_id = model_id[0] if model_id else None
    if model_id is None or model_id < config.vocab_size:
        return model_id
    return tokenizer_id


def _has_plain_head(network: Network) -> bool:
    """Whether the logits are exactly the output of the output layer for the last hidden states. Some
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
    """Replaces GPT-2's GELU, which `transformers` computes in six steps, by the GELU of torch with
    equal formula."""
    import torch

    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child).__name__ == "NewGELUActivation":
                setattr(module, name, torch.nn.GELU(approximate="tanh"))


def length_normalised(means: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns ``exp(mean) ** (1 / length)`` for (N,) mean log-likelihoods and token counts; 0 for
    texts of fewer than two tokens.

    It is the term of XMoverScore's variant `release`. It divides by the length a second time, so that it
    approaches 1 for long texts, even for unlikely ones.
    """
    return np.where(lengths > 1, np.exp(means / np.maximum(lengths, 1)), 0.0)
