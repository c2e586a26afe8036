"""BERT and GPT-2 by torch alone; `network` opens a model folder with them where that is possible.

They compute what `transformers` computes, but do not import its modelling code. That import takes
longer than anything else between the start of a program and its first score, since torch's compiler
and its distributed tensors come with it.
"""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import torch
from safetensors.torch import load_file
from torch import nn

from mtmetrics.artifacts.adapters import merged
from mtmetrics.artifacts.models import (
    Network,
    NetworkConfig,
    base_folder,
    loading,
    transformers_network,
)

_WEIGHTS = "model.safetensors"
# GPT-2's names of sizes in config.json -> BERT's names, which are used here for both.
_SIZES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
}
# Name of a parameter of `Block` -> its name in a file.
_BERT_BLOCK = {
    "output": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "second_norm": "output.LayerNorm",
}
_GPT2_NORMS = {"first_norm": "ln_1", "second_norm": "ln_2"}
_GPT2_LINEAR = {
    "attended": "attn.c_attn",
    "output": "attn.c_proj",
    "inner": "mlp.c_fc",
    "outer": "mlp.c_proj",
}
_ENDS = ("weight", "bias")
Tensors = dict[str, torch.Tensor]


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Leaves memory as it is: weights are loaded into it."""


class _Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Leaves memory as it is: weights are loaded into it."""


class Block(nn.Module):
    """A transformer layer: self-attention, then a feed-forward part. Each adds its output to its
    input.

    BERT normalises the sums. GPT-2, which is `causal`, normalises the inputs of both parts.

    Args:
        width: numbers in a state.
        heads: of the attention.
        inner: width of the feed-forward part.
        eps: of the normalisation.
        causal: whether a position attends to itself and those before it only.
    """

    def __init__(self, width: int, heads: int, inner: int, eps: float, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.attended, self.output = _Linear(width, 3 * width), _Linear(width, width)
        self.inner, self.outer = _Linear(width, inner), _Linear(inner, width)
        self.activation = nn.GELU("tanh" if causal else "none")
        self.first_norm, self.second_norm = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def forward(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Computes the next (B, T, d) states.

        Args:
            states: (B, T, d).
            mask: (B, 1, 1, T) bool, false at padding; None where there is no padding, or where the
                block is causal: padding stands behind the text.
        """
        if self.causal:
            states = states + self._attention(self.first_norm(states), mask)
            return states + self._feed_forward(self.second_norm(states))
        states = self.first_norm(self._attention(states, mask) + states)
        return self.second_norm(self._feed_forward(states) + states)

    def _attention(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        by_head = self.attended(states).unflatten(-1, (3, self.heads, -1))
        query, key, value = by_head.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=self.causal
        )
        return self.output(attended.transpose(1, 2).flatten(2))

    def _feed_forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.outer(self.activation(self.inner(states)))


class Bert(nn.Module):
    """BERT without its pooler (Devlin et al., 2019).

    Attributes:
        required_values: values that config.json must have, or leave out.
        required_keys: keys that config.json must have, besides sizes.
    """

    required_values: ClassVar = {
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
    }
    required_keys: ClassVar = ()

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.word = _Embedding(config.vocab_size, width)
        self.position = _Embedding(config.max_position_embeddings, width)
        self.token_type = _Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.blocks = _blocks(config, config.intermediate_size, causal=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        """Returns ``last_hidden_state``, (B, T, d).

        Args:
            input_ids: (B, T).
            attention_mask: (B, T), 1 at real tokens.
        """
        states = self.word(input_ids) + self.token_type.weight[0]
        states = self.norm(states + self.position.weight[: input_ids.shape[1]])
        mask = None if attention_mask.all() else attention_mask[:, None, None, :].bool()
        for block in self.blocks:
            states = block(states, mask)
        return SimpleNamespace(last_hidden_state=states)

    @staticmethod
    def parameters_of(stored: Tensors, layers: int) -> Tensors:
        """Returns the tensors of a file by the names of the parameters here.

        Args:
            stored: the tensors of the file, by name.
            layers: how many the model has.

        Raises:
            KeyError: the file holds none of that name.
        """
        stored = {name.removeprefix("bert."): tensor for name, tensor in stored.items()}
        parameters = {
            f"{name}.weight": stored[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "position", "token_type")
        }
        for end in _ENDS:
            parameters[f"norm.{end}"] = stored[f"embeddings.LayerNorm.{end}"]
        for number, end in itertools.product(range(layers), _ENDS):
            stored_block, block = f"encoder.layer.{number}", f"blocks.{number}"
            parts = [
                stored[f"{stored_block}.attention.self.{name}.{end}"]
                for name in ("query", "key", "value")
            ]
            parameters[f"{block}.attended.{end}"] = torch.cat(parts)
            for name, stored_name in _BERT_BLOCK.items():
                parameters[f"{block}.{name}.{end}"] = stored[f"{stored_block}.{stored_name}.{end}"]
        return parameters


class GPT2(nn.Module):
    """GPT-2, whose output layer is its table of words (Radford et al., 2019).

    Padding stands behind a text. The attributes are those of `Bert`.
    """

    required_values: ClassVar = {
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    }
    required_keys: ClassVar = ("bos_token_id", "eos_token_id")

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.base_model = _GPT2States(config)
        self.lm_head = _Linear(config.hidden_size, config.vocab_size, bias=False)

    def get_output_embeddings(self) -> nn.Module:
        """Returns the layer that turns states into logits."""
        return self.lm_head

    def forward(self, **inputs: torch.Tensor | bool) -> SimpleNamespace:
        """Returns ``logits``, (B, T, V); takes the arguments of `base_model`."""
        return SimpleNamespace(logits=self.lm_head(self.base_model(**inputs).last_hidden_state))

    @staticmethod
    def parameters_of(stored: Tensors, layers: int) -> Tensors:
        """Returns the tensors of a file by the names of the parameters here; see
        `Bert.parameters_of`."""
        stored = {name.removeprefix("transformer."): tensor for name, tensor in stored.items()}
        parameters = {"word.weight": stored["wte.weight"], "position.weight": stored["wpe.weight"]}
        for end in _ENDS:
            parameters[f"norm.{end}"] = stored[f"ln_f.{end}"]
        for number, end in itertools.product(range(layers), _ENDS):
            stored_block, block = f"h.{number}", f"blocks.{number}"
            for name, stored_name in _GPT2_LINEAR.items():
                # GPT-2 stores the transpose of a matrix.
                tensor = stored[f"{stored_block}.{stored_name}.{end}"].movedim(-1, 0)
                parameters[f"{block}.{name}.{end}"] = tensor
            for name, stored_name in _GPT2_NORMS.items():
                parameters[f"{block}.{name}.{end}"] = stored[f"{stored_block}.{stored_name}.{end}"]
        base_model = {f"base_model.{name}": tensor for name, tensor in parameters.items()}
        return base_model | {"lm_head.weight": parameters["word.weight"]}


class _GPT2States(nn.Module):
    """GPT-2 up to its last states."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word = _Embedding(config.vocab_size, width)
        self.position = _Embedding(config.max_position_embeddings, width)
        inner = getattr(config, "intermediate_size", None) or 4 * width
        self.blocks = _blocks(config, inner, causal=True)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)

    def forward(self, input_ids: torch.Tensor, **_: object) -> SimpleNamespace:
        """Returns ``last_hidden_state``, (B, T, d), of (B, T) ids."""
        states = self.word(input_ids) + self.position.weight[: input_ids.shape[1]]
        for block in self.blocks:
            states = block(states, None)
        return SimpleNamespace(last_hidden_state=self.norm(states))


def _blocks(config: NetworkConfig, inner: int, *, causal: bool) -> nn.ModuleList:
    return nn.ModuleList(
        Block(
            config.hidden_size,
            config.num_attention_heads,
            inner,
            config.layer_norm_eps,
            causal=causal,
        )
        for _ in range(config.num_hidden_layers)
    )


def network(auto_class: str, folder: Path, dtype: torch.dtype) -> Network:
    """Loads the network of a model folder.

    This module computes a plain BERT or GPT-2. Its weights must be a single file, with the names of
    tensors that `transformers` writes today, not those of old versions. `transformers` computes
    every other model.

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
    """The folder holds a model that this module cannot compute."""


def _plain_network(auto_class: str, folder: Path, dtype: torch.dtype) -> nn.Module:
    base = base_folder(folder)
    values = json.loads((base / "config.json").read_text(encoding="utf-8"))
    kind: type[Bert] | type[GPT2]
    match auto_class, values.get("model_type"):
        case "AutoModel", "bert":
            kind = Bert
        case "AutoModelForCausalLM", "gpt2":
            kind = GPT2
        case _:
            raise _OtherModelError
    required = kind.required_values.items()
    is_plain = all(values.get(key, value) == value for key, value in required)
    if not is_plain or any(key not in values for key in kind.required_keys):
        raise _OtherModelError
    if not (base / _WEIGHTS).is_file():
        raise _OtherModelError
    try:
        config = SimpleNamespace(**{_SIZES.get(key, key): value for key, value in values.items()})
        stored = merged(load_file(base / _WEIGHTS), folder)
        parameters = kind.parameters_of(stored, config.num_hidden_layers)
        model = kind(config)
    except (KeyError, AttributeError) as error:
        raise _OtherModelError from error
    tensors = {name: tensor.to(dtype) for name, tensor in parameters.items()}
    model.load_state_dict(tensors, assign=True)
    return model.requires_grad_(False)
