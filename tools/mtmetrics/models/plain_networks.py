"""BERT and GPT-2 in plain PyTorch; `load_network` loads a model folder with them if it can.

They compute what `transformers` computes, but do not import its modelling code. That import takes
longer than anything else between the start of a program and its first score, because it also imports
torch's compiler and distributed tensors.
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
# Key of a size in the config.json of GPT-2 -> the key of BERT, which this module uses for both.
_SIZES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
}
# Name of a layer in `Block` -> its name in the checkpoint. BERT stores queries, keys and values as
# three layers, see `Bert.convert_tensors`.
_BERT_BLOCK = {
    "attention_output": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "second_norm": "output.LayerNorm",
}
_GPT2_NORMS = {"first_norm": "ln_1", "second_norm": "ln_2"}
_GPT2_LINEAR = {
    "qkv": "attn.c_attn",
    "attention_output": "attn.c_proj",
    "inner": "mlp.c_fc",
    "outer": "mlp.c_proj",
}
_SUFFIXES = ("weight", "bias")
Tensors = dict[str, torch.Tensor]


def load_network(auto_class: str, folder: Path, dtype: torch.dtype) -> Network:
    """Loads the network of a model folder: `Bert` or `GPT2`, or else a model of `transformers`.

    `Bert` and `GPT2` need all weights in a single file, with the names that `transformers` writes
    today; checkpoints of 2018 have other names.

    Args:
        auto_class: ``"AutoModel"`` or ``"AutoModelForCausalLM"``.
        folder: folder with config.json and the weights as safetensors.
        dtype: number format of the loaded weights.

    Raises:
        ArtifactError: a file is missing or damaged, or the folder holds another kind of model.
    """
    with loading(folder, auto_class):
        plain_network = _load_plain(auto_class, folder, dtype)
    if plain_network is not None:
        return plain_network
    return transformers_network(auto_class, folder, dtype)


def _load_plain(auto_class: str, folder: Path, dtype: torch.dtype) -> nn.Module | None:
    """Loads a `Bert` or a `GPT2`. Returns None if the folder holds another model."""
    # An adapter has only changes to the weights of another model, its base.
    base_model_folder = base_folder(folder)
    values = json.loads((base_model_folder / "config.json").read_text(encoding="utf-8"))
    network_class: type[Bert] | type[GPT2]
    match auto_class, values.get("model_type"):
        case "AutoModel", "bert":
            network_class = Bert
        case "AutoModelForCausalLM", "gpt2":
            network_class = GPT2
        case _:
            return None
    required = network_class.required_values.items()
    has_values = all(values.get(key, value) == value for key, value in required)
    has_keys = all(key in values for key in network_class.required_keys)
    weights_file = base_model_folder / _WEIGHTS
    if not has_values or not has_keys or not weights_file.is_file():
        return None
    config = SimpleNamespace(**{_SIZES.get(key, key): value for key, value in values.items()})
    try:
        checkpoint = merged(load_file(weights_file), folder)
        parameters = network_class.convert_tensors(checkpoint, config.num_hidden_layers)
        network = network_class(config)
    except (KeyError, AttributeError):
        # A tensor is missing from the checkpoint, or a size from config.json.
        return None
    cast_parameters = {name: tensor.to(dtype) for name, tensor in parameters.items()}
    network.load_state_dict(cast_parameters, assign=True)
    return network.requires_grad_(False)


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Skips the initialisation: the weights are loaded later."""


class _Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Skips the initialisation: the weights are loaded later."""


class Block(nn.Module):
    """A transformer layer: self-attention, then feed-forward layers, both with a residual connection.

    Args:
        width: dimensions of a hidden state.
        heads: number of attention heads.
        inner_width: width of the inner feed-forward layer.
        eps: epsilon of the layer normalisations.
        is_gpt2: True for a layer of GPT-2: attention is causal (a position attends only to itself
            and earlier positions), the inputs of attention and feed-forward layers are normalised
            (pre-norm), and GELU is the tanh approximation. False for a layer of BERT: a position
            attends to all positions, the sums after the residual connections are normalised
            (post-norm), and GELU is exact.
    """

    def __init__(
        self, width: int, heads: int, inner_width: int, eps: float, *, is_gpt2: bool
    ) -> None:
        super().__init__()
        self.heads = heads
        self.is_gpt2 = is_gpt2
        # Projection to queries, keys and values.
        self.qkv = _Linear(width, 3 * width)
        self.attention_output = _Linear(width, width)
        # The feed-forward layers.
        self.inner = _Linear(width, inner_width)
        self.outer = _Linear(inner_width, width)
        self.activation = nn.GELU("tanh" if is_gpt2 else "none")
        self.first_norm = nn.LayerNorm(width, eps)
        self.second_norm = nn.LayerNorm(width, eps)

    def forward(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Computes the next (B, T, d) states.

        Args:
            states: (B, T, d).
            mask: (B, 1, 1, T) bool, false at padding. None without padding, and for GPT-2: padding
                follows the text, so no token of the text attends to it.
        """
        if self.is_gpt2:
            states = states + self._attention(self.first_norm(states), mask)
            return states + self._feed_forward(self.second_norm(states))
        states = self.first_norm(self._attention(states, mask) + states)
        return self.second_norm(self._feed_forward(states) + states)

    def _attention(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        by_head = self.qkv(states).unflatten(-1, (3, self.heads, -1))
        query, key, value = by_head.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=self.is_gpt2
        )
        return self.attention_output(attended.transpose(1, 2).flatten(2))

    def _feed_forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.outer(self.activation(self.inner(states)))


class Bert(nn.Module):
    """BERT without its pooler (Devlin et al., 2019).

    Attributes:
        required_values: key of config.json -> the only value that this class supports. It is also
            the default for a missing key.
        required_keys: other keys, besides the sizes, that config.json must have.
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
        self.word_embeddings = _Embedding(config.vocab_size, width)
        self.position_embeddings = _Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = _Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.blocks = _blocks(config, config.intermediate_size, is_gpt2=False)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """Returns ``last_hidden_state``, (B, T, d).

        Args:
            input_ids: (B, T).
            attention_mask: (B, T), 1 at real tokens.
            token_type_ids: (B, T); None for 0 everywhere.
        """
        types = self.token_type_embeddings
        type_vectors = types.weight[0] if token_type_ids is None else types(token_type_ids)
        states = self.word_embeddings(input_ids) + type_vectors
        states = self.norm(states + self.position_embeddings.weight[: input_ids.shape[1]])
        mask = None if attention_mask.all() else attention_mask[:, None, None, :].bool()
        for block in self.blocks:
            states = block(states, mask)
        return SimpleNamespace(last_hidden_state=states)

    @staticmethod
    def convert_tensors(checkpoint: Tensors, layers: int) -> Tensors:
        """Renames the tensors of a checkpoint to the parameters of this class.

        Args:
            checkpoint: name -> tensor.
            layers: number of layers of the model.

        Raises:
            KeyError: a tensor is missing from the checkpoint.
        """
        stored = {name.removeprefix("bert."): tensor for name, tensor in checkpoint.items()}
        parameters = {
            f"{name}.weight": stored[f"embeddings.{name}.weight"]
            for name in ("word_embeddings", "position_embeddings", "token_type_embeddings")
        }
        for suffix in _SUFFIXES:
            parameters[f"norm.{suffix}"] = stored[f"embeddings.LayerNorm.{suffix}"]
        for number, suffix in itertools.product(range(layers), _SUFFIXES):
            prefix, stored_prefix = f"blocks.{number}", f"encoder.layer.{number}"
            query_key_value = [
                stored[f"{stored_prefix}.attention.self.{name}.{suffix}"]
                for name in ("query", "key", "value")
            ]
            parameters[f"{prefix}.qkv.{suffix}"] = torch.cat(query_key_value)
            for name, stored_name in _BERT_BLOCK.items():
                tensor = stored[f"{stored_prefix}.{stored_name}.{suffix}"]
                parameters[f"{prefix}.{name}.{suffix}"] = tensor
        return parameters


class GPT2(nn.Module):
    """GPT-2 (Radford et al., 2019), with tied input and output embeddings.

    Padding has to follow the text. The attributes are those of `Bert`. `base_model`,
    `get_output_embeddings` and `forward` are the parts of the interface of `transformers` that
    callers use.
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
        self.base_model = _GPT2Base(config)
        self.lm_head = _Linear(config.hidden_size, config.vocab_size, bias=False)

    def get_output_embeddings(self) -> nn.Module:
        """Returns the layer that turns hidden states into logits."""
        return self.lm_head

    def forward(self, input_ids: torch.Tensor, **_: object) -> SimpleNamespace:
        """Returns ``logits``, (B, T, V), of (B, T) ids.

        Other arguments of `transformers`, including ``attention_mask``, are accepted and ignored.
        """
        return SimpleNamespace(logits=self.lm_head(self.base_model(input_ids).last_hidden_state))

    @staticmethod
    def convert_tensors(checkpoint: Tensors, layers: int) -> Tensors:
        """Renames the tensors of a checkpoint to the parameters of this class, see
        `Bert.convert_tensors`."""
        stored = {name.removeprefix("transformer."): tensor for name, tensor in checkpoint.items()}
        parameters = {
            "word_embeddings.weight": stored["wte.weight"],
            "position_embeddings.weight": stored["wpe.weight"],
        }
        for suffix in _SUFFIXES:
            parameters[f"norm.{suffix}"] = stored[f"ln_f.{suffix}"]
        for number, suffix in itertools.product(range(layers), _SUFFIXES):
            prefix, stored_prefix = f"blocks.{number}", f"h.{number}"
            for name, stored_name in _GPT2_LINEAR.items():
                # GPT-2 stores the transpose of a matrix; a bias, of one dimension, stays as it is.
                tensor = stored[f"{stored_prefix}.{stored_name}.{suffix}"].movedim(-1, 0)
                parameters[f"{prefix}.{name}.{suffix}"] = tensor
            for name, stored_name in _GPT2_NORMS.items():
                tensor = stored[f"{stored_prefix}.{stored_name}.{suffix}"]
                parameters[f"{prefix}.{name}.{suffix}"] = tensor
        base_parameters = {f"base_model.{name}": tensor for name, tensor in parameters.items()}
        return base_parameters | {"lm_head.weight": parameters["word_embeddings.weight"]}


class _GPT2Base(nn.Module):
    """GPT-2 without the output layer."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = _Embedding(config.vocab_size, width)
        self.position_embeddings = _Embedding(config.max_position_embeddings, width)
        inner_width = getattr(config, "intermediate_size", None) or 4 * width
        self.blocks = _blocks(config, inner_width, is_gpt2=True)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)

    def forward(self, input_ids: torch.Tensor, **_: object) -> SimpleNamespace:
        """Returns ``last_hidden_state``, (B, T, d), of (B, T) ids.

        Other arguments of `transformers`, including ``attention_mask``, are accepted and ignored.
        """
        positions = self.position_embeddings.weight[: input_ids.shape[1]]
        states = self.word_embeddings(input_ids) + positions
        for block in self.blocks:
            states = block(states, None)
        return SimpleNamespace(last_hidden_state=self.norm(states))


def _blocks(config: NetworkConfig, inner_width: int, *, is_gpt2: bool) -> nn.ModuleList:
    return nn.ModuleList(
        Block(
            config.hidden_size,
            config.num_attention_heads,
            inner_width,
            config.layer_norm_eps,
            is_gpt2=is_gpt2,
        )
        for _ in range(config.num_hidden_layers)
    )
