"""Reads hidden states of an encoder: one of them, the layers above it dropped, or weighted sums of all."""

from typing import Any

import numpy as np

from mtmetrics.errors import InputError


class LayerTap:
    """Runs a `transformers` encoder up to one layer.

    Hidden state k is the output of block k, as in ``output_hidden_states``; 0 is the input of the first block. Where k
    is the last layer, a closing normalisation of the model is applied, as the model itself would.

    Args:
        network: the model; its blocks above `layer` are removed.
        layer: 0 to the number of blocks.

    Raises:
        InputError: the blocks of the model cannot be found.
    """

    def __init__(self, network: Any, layer: int) -> None:
        import torch

        depth = network.config.num_hidden_layers
        stacks = [
            module
            for module in network.modules()
            if isinstance(module, torch.nn.ModuleList)
            and len(module) == depth
            and not isinstance(module[0], torch.nn.ModuleList)
        ]
        if not stacks:
            raise InputError(f"cannot find the {depth} layers of a {network.config.model_type!r} model")
        blocks = stacks[0]
        self._network = network
        self._state: Any = None
        self._whole = layer == depth
        if layer == 0:
            blocks[0].register_forward_pre_hook(self._keep_input, with_kwargs=True)
        elif not self._whole:
            blocks[layer - 1].register_forward_hook(self._keep_output)
        del blocks[max(layer, 1) :]

    def _keep_input(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._state = args[0] if args else kwargs["hidden_states"]

    def _keep_output(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        self._state = output[0] if isinstance(output, tuple) else output

    def __call__(self, **inputs: Any) -> Any:
        """The (batch, tokens, d) hidden state for the keyword inputs of the model."""
        try:
            result = self._network(**inputs)
            return result.last_hidden_state if self._whole else self._state
        finally:
            self._state = None  # also after an error: where memory ran out, it is needed


class LayerMix:
    """Runs a `transformers` encoder once and returns weighted sums of the outputs of its layers.

    Args:
        network: the model.
        mix: (C, layers) weights; the embeddings are not among the layers.
    """

    def __init__(self, network: Any, mix: np.ndarray) -> None:
        self._network = network
        self._mix = mix.tolist()

    def __call__(self, **inputs: Any) -> Any:
        """The (batch, tokens, C * d) sums, one after the other, for the keyword inputs of the model."""
        import torch

        states = self._network(**inputs, output_hidden_states=True).hidden_states[1:]
        sums = []
        for row in self._mix:
            if row.count(0.0) == len(row) - 1 and 1.0 in row:
                sums.append(states[row.index(1.0)])
                continue
            # One sum grows in place: as tensors of their own, the products would take the memory of all layers again.
            total = torch.zeros_like(states[0])
            for weight, state in zip(row, states, strict=True):
                if weight:
                    total.add_(state, alpha=weight)
            sums.append(total)
        return torch.cat(sums, -1)
