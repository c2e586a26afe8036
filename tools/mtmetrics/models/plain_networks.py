"""BERT and GPT-2 by torch alone, where a model is one of these and nothing else.

They compute what `transformers` computes, but do not import its modelling code, which takes longer
than anything else between the start of a program and its first score (torch's compiler and its
distributed tensors come with it)."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from safetensors.torch import load_file
from torch import nn

from mtmetrics.artifacts.adapters import merged
from mtmetrics.artifacts.models import base_folder, loading, transformers_network

_WEIGHTS = "model.safetensors"
# GPT-2's names of sizes -> those of all others.
_SIZES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
}
_EMBEDDED = ("word", "position", "token_type")
_ATTENDED = ("query", "key", "value")


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Leaves memory as it is: weights are loaded into it."""


class _Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Leaves memory as it is: weights are loaded into it."""


class Block(nn.Module):
    """A transformer layer: self-attention and a feed-forward part, each added to what it reads.
    Layers are normalised behind the sum (BERT), or, where the model is `causal`, before each part
    (GPT-2)."""

    def __init__(self, width: int, heads: int, inner: int, eps: float, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.attended, self.output = _Linear(width, 3 * width), _Linear(width, width)
        self.inner, self.outer = _Linear(width, inner), _Linear(inner, width)
        self.activation = nn.GELU("tanh" if causal else "none")
        self.first_norm, self.second_norm = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def forward(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """(B, T, d) states of (B, T, d) states; `mask` (B, 1, 1, T) is true at what may be attended
        to, None where all of it may. A causal layer needs none: padding stands behind the text."""
        if self.causal:
            states = states + self._attention(self.first_norm(states), mask)
            return states + self._feed_forward(self.second_norm(states))
        states = self.first_norm(self._attention(states, mask) + states)
        return self.second_norm(self._feed_forward(states) + states)

    def _attention(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        query, key, value = (
            self.attended(states).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        )
        attend = nn.functional.scaled_dot_product_attention
        attended = attend(query, key, value, attn_mask=mask, is_causal=self.causal)
        return self.output(attended.transpose(1, 2).flatten(2))

    def _feed_forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.outer(self.activation(self.inner(states)))


class Bert(nn.Module):
    """BERT without its pooler (Devlin et al., 2019).

    Attributes:
        says: what its configuration says, if it speaks of it at all.
        needs: what its configuration has to speak of, besides sizes.
    """

    says: ClassVar = {
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
    }
    needs: ClassVar = ()

    def __init__(self, config: Any) -> None:
        super().__init__()
        width, self.config = config.hidden_size, config
        sizes = config.vocab_size, config.max_position_embeddings, config.type_vocab_size
        self.word, self.position, self.token_type = (_Embedding(size, width) for size in sizes)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        shape = width, config.num_attention_heads, config.intermediate_size, config.layer_norm_eps
        self.blocks = nn.ModuleList(
            Block(*shape, causal=False) for _ in range(config.num_hidden_layers)
        )

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        """``last_hidden_state``, (B, T, d), of (B, T) ids and a mask that is 1 at real tokens."""
        states = self.word(input_ids) + self.token_type.weight[0]
        states = self.norm(states + self.position.weight[: input_ids.shape[1]])
        mask = None if attention_mask.all() else attention_mask[:, None, None, :].bool()
        for block in self.blocks:
            states = block(states, mask)
        return SimpleNamespace(last_hidden_state=states)

    @staticmethod
    def named(stored: dict[str, torch.Tensor], layers: int) -> dict[str, torch.Tensor]:
        """The parameters by their names here, of those that a file stores; a `KeyError` where one
        is not there."""
        stored = {name.removeprefix("bert."): tensor for name, tensor in stored.items()}
        renamed = {
            f"{name}.weight": stored[f"embeddings.{name}_embeddings.weight"] for name in _EMBEDDED
        }
        for end in ("weight", "bias"):
            renamed[f"norm.{end}"] = stored[f"embeddings.LayerNorm.{end}"]
            for number in range(layers):
                own, block = f"encoder.layer.{number}.", f"blocks.{number}."
                parts = [stored[f"{own}attention.self.{name}.{end}"] for name in _ATTENDED]
                renamed[f"{block}attended.{end}"] = torch.cat(parts)
                renamed[f"{block}output.{end}"] = stored[f"{own}attention.output.dense.{end}"]
                renamed[f"{block}first_norm.{end}"] = stored[
                    f"{own}attention.output.LayerNorm.{end}"
                ]
                renamed[f"{block}inner.{end}"] = stored[f"{own}intermediate.dense.{end}"]
                renamed[f"{block}outer.{end}"] = stored[f"{own}output.dense.{end}"]
                renamed[f"{block}second_norm.{end}"] = stored[f"{own}output.LayerNorm.{end}"]
        return renamed


class GPT2(nn.Module):
    """GPT-2, whose output layer is its table of words (Radford et al., 2019); attributes as those
    of `Bert`. Padding stands behind a text."""

    says: ClassVar = {
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    }
    needs: ClassVar = ("bos_token_id", "eos_token_id")

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.base_model = _GPT2States(config)
        self.lm_head = _Linear(config.hidden_size, config.vocab_size, bias=False)

    def get_output_embeddings(self) -> nn.Module:
        """Returns the layer that turns states into logits."""
        return self.lm_head

    def forward(self, **given: Any) -> SimpleNamespace:
        """``logits``, (B, T, V); arguments as those of `base_model`."""
        return SimpleNamespace(logits=self.lm_head(self.base_model(**given).last_hidden_state))

    @staticmethod
    def named(stored: dict[str, torch.Tensor], layers: int) -> dict[str, torch.Tensor]:
        """The parameters by their names here, of those that a file stores; a `KeyError` where one
        is not there."""
        stored = {name.removeprefix("transformer."): tensor for name, tensor in stored.items()}
        names = {
            "attended": "attn.c_attn",
            "output": "attn.c_proj",
            "inner": "mlp.c_fc",
            "outer": "mlp.c_proj",
        }
        renamed = {"word.weight": stored["wte.weight"], "position.weight": stored["wpe.weight"]}
        for end in ("weight", "bias"):
            renamed[f"norm.{end}"] = stored[f"ln_f.{end}"]
            for number in range(layers):
                own, block = f"h.{number}.", f"blocks.{number}."
                for name, theirs in names.items():
                    # A matrix of GPT-2 is stored the other way round.
                    renamed[f"{block}{name}.{end}"] = stored[f"{own}{theirs}.{end}"].movedim(-1, 0)
                renamed[f"{block}first_norm.{end}"] = stored[f"{own}ln_1.{end}"]
                renamed[f"{block}second_norm.{end}"] = stored[f"{own}ln_2.{end}"]
        named = {f"base_model.{name}": tensor for name, tensor in renamed.items()}
        return named | {"lm_head.weight": renamed["word.weight"]}


class _GPT2States(nn.Module):
    """GPT-2 up to its last states."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        sizes = config.vocab_size, config.max_position_embeddings
        self.word, self.position = (_Embedding(size, width) for size in sizes)
        shape = (
            width,
            config.num_attention_heads,
            getattr(config, "intermediate_size", None) or 4 * width,
            eps,
        )
        self.blocks = nn.ModuleList(
            Block(*shape, causal=True) for _ in range(config.num_hidden_layers)
        )
        self.norm = nn.LayerNorm(width, eps)

    def forward(self, input_ids: torch.Tensor, **_: Any) -> SimpleNamespace:
        """``last_hidden_state``, (B, T, d), of (B, T) ids."""
        states = self.word(input_ids) + self.position.weight[: input_ids.shape[1]]
        for block in self.blocks:
            states = block(states, None)
        return SimpleNamespace(last_hidden_state=self.norm(states))


def network(auto_class: str, folder: Path, dtype: torch.dtype) -> Any:
    """The network of a model folder: by torch alone where it is a plain BERT or GPT-2 in a single
    file, whose names and sizes are those that `transformers` writes today; else by `transformers`.

    Args:
        auto_class: ``"AutoModel"`` or ``"AutoModelForCausalLM"``.
        folder: holds config.json and the weights, as safetensors.
        dtype: number format to load into.

    Raises:
        ArtifactError: a file is missing, damaged, or not of the kind.
    """
    try:
        with loading(folder, auto_class):
            return _plain_network(auto_class, folder, dtype)
    except _OtherModelError:
        return transformers_network(auto_class, folder, dtype)


class _OtherModelError(Exception):
    """A model that this module does not know."""


def _plain_network(auto_class: str, folder: Path, dtype: torch.dtype) -> nn.Module:
    base = base_folder(folder)
    about = json.loads((base / "config.json").read_text(encoding="utf-8"))
    kinds: dict[Any, Any] = {("AutoModel", "bert"): Bert, ("AutoModelForCausalLM", "gpt2"): GPT2}
    kind = kinds.get((auto_class, about.get("model_type")))
    if kind is None or any(about.get(name, value) != value for name, value in kind.says.items()):
        raise _OtherModelError
    if any(name not in about for name in kind.needs) or not (base / _WEIGHTS).is_file():
        raise _OtherModelError
    try:
        config = SimpleNamespace(**{_SIZES.get(name, name): value for name, value in about.items()})
        stored = merged(load_file(base / _WEIGHTS), folder)
        tensors = kind.named(stored, config.num_hidden_layers)
        made = kind(config)
    except (KeyError, AttributeError) as error:
        raise _OtherModelError from error
    made.load_state_dict({name: tensor.to(dtype) for name, tensor in tensors.items()}, assign=True)
    return made.requires_grad_(False)
