"""One optimiser for small transformers: Muon for the weight matrices of the layers, AdamW for everything else."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import AdamW, Muon, Optimizer


class MuonAdamW(Optimizer):
    """Steps Muon, for two-dimensional parameters but those of embeddings and the output layer, and AdamW together, so
    that one schedule and one checkpoint serve both."""

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
        loss = closure() if closure is not None else None
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        # Loading replaced the groups that both share with this optimiser.
        self.param_groups = [group for part in self.parts for group in part.param_groups]
