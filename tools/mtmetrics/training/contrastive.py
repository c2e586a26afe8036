"""Contrastive sentence encoder."""

import torch


def contrastive_loss(first, second, *, temperature=0.05, margin=0.0, symmetric=True):
    similarity = torch.nn.functional.normalize(first, dim=-1) @ torch.nn.functional.normalize(second, dim=-1).T
    scores = (similarity - margin * torch.eye(len(similarity), device=similarity.device)) / temperature
    truth = torch.arange(len(scores), device=scores.device)
    loss = torch.nn.functional.cross_entropy(scores, truth)
    return loss + torch.nn.functional.cross_entropy(scores.T, truth) if symmetric else loss
