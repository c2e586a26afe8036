"""The sentence level: pairs are mined with one encoder, and a fresh one learns from them, round after round (Sec.
3.2)."""

import functools
import shutil
from pathlib import Path
from typing import Any

from mtmetrics.mining.sentence_level import mine_sentences
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import train_contrastive
from mtmetrics.training.settings import ContrastiveConfig
from mtmetrics.uscore.job import Job, keep_pairs, pairs_file
from mtmetrics.uscore.stages import Finished
from mtmetrics.uscore.start import chosen, known_by

MODEL = "model"


def sentence_rounds(job: Job) -> list[Finished]:
    """The stage that trained the sentence encoder, of each round."""
    models: list[Finished] = []
    for number in range(1, job.config.contrastive_rounds + 1):
        pairs = job.stages.run(
            f"sentences-{number}-pairs",
            functools.partial(_mine, job=job, encoder=sentence_encoder(job, models)),
            settings={
                **chosen(job.config, "train_sentences", "contrastive_neighbours", "contrastive_pairs"),
                "dtype": job.pool.dtype,
                "seed": job.seed,
                "start": known_by(job.start.sentences),
            },
            after=[*job.texts, *models[-1:]],
        )
        models.append(trained(job, f"sentences-{number}-model", pairs, str(job.start.sentences)))
    return models


def trained(job: Job, name: str, pairs: Finished, start: str) -> Finished:
    """The stage that trains a sentence encoder on pairs.

    Args:
        job: the production.
        name: of the stage.
        pairs: the stage that holds them.
        start: the model that the encoder starts from.
    """
    return job.stages.run(
        name,
        functools.partial(_train, job=job, pairs=pairs, start=start),
        settings={
            **chosen(job.config, "contrastive_batch", "contrastive_learning_rate"),
            "seed": job.seed,
            "start": known_by(start),
        },
        after=[pairs],
    )


def sentence_encoder(job: Job, models: list[Finished]) -> str:
    """The sentence encoder of the last round, at first the one that the rounds start from."""
    return str(models[-1].folder / MODEL) if models else str(job.start.sentences)


def _mine(folder: Path, *, job: Job, encoder: str) -> dict[str, Any]:
    config = job.config
    mined = mine_sentences(
        *job.sentences(config.train_sentences),
        job.pool.sentence_encoder(encoder),
        k=config.contrastive_neighbours,
        limit=config.contrastive_pairs,
        wrap=job.wrap("encoding"),
    )
    return keep_pairs(folder, job.lang_pair, mined)


def _train(folder: Path, *, job: Job, pairs: Finished, start: str) -> dict[str, Any]:
    run = Run(folder / MODEL, seed=job.seed, work=folder / "checkpoints")
    settings = ContrastiveConfig(
        pairs_per_step=job.config.contrastive_batch, learning_rate=job.config.contrastive_learning_rate
    )
    train_contrastive(run, [pairs_file(pairs.folder, job.lang_pair)], start, config=settings)
    shutil.rmtree(run.work)
    return {}
