"""One optimiser for small transformers: Muon for the weight matrices of the layers, AdamW for everything else."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import AdamW, Muon, Optimizer


class MuonAdamW(Optimizer):
    """Steps Muon and AdamW together, so that one schedule and one checkpoint serve both.

    Args:
        model: its two-dimensional parameters outside the embeddings and the output layer go to Muon.
        matrix_lr: learning rate of Muon.
        other_lr: learning rate of AdamW.
        weight_decay: of both, but not of biases and normalisation weights.
    """

    def __init__(self, model: torch.nn.Module, matrix_lr: float, other_lr: float, weight_decay: float = 0.01) -> None:
        embedded = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
        matrices, tables, vectors = [], [], []
        for parameter in model.parameters():
            if not parameter.requires_grad:
                continue
            kind = vectors if parameter.ndim < 2 else tables if id(parameter) in embedded else matrices
            kind.append(parameter)
        groups = [{"params": tables, "weight_decay": 0.0}, {"params": vectors, "weight_decay": 0.0}]
        self.parts: list[Optimizer] = [
            Muon(matrices, lr=matrix_lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"),
            AdamW(groups, lr=other_lr, betas=(0.9, 0.98)),
        ]
        super().__init__([group for part in self.parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Steps both parts."""
        loss = closure() if closure is not None else None
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """The state of both parts."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores both parts; the shared parameter groups are linked again, since loading replaces them."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
