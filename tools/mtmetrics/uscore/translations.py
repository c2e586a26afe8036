"""Pseudo-references: a translation model learns from mined pairs (Sec. 3.1)."""

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtmetrics.mining.selection import write_pairs
from mtmetrics.mining.word_level import mine_words
from mtmetrics.training.run import Run
from mtmetrics.training.settings import DenoisingConfig, TranslationConfig
from mtmetrics.training.translation import synthetic_pairs, train_denoising, train_translation
from mtmetrics.uscore.job import SENTENCES, Job, keep_pairs, pairs_file
from mtmetrics.uscore.sentences import MODEL
from mtmetrics.uscore.stages import Finished
from mtmetrics.uscore.start import chosen, known_by
from mtmetrics.uscore.words import remapping, word_settings

SMALL = "small"


def translation_model(job: Job, maps: Finished, kind: str) -> Finished:
    """The stage that trained the translation model, after the last round."""
    pairs = [
        job.stages.run(
            "translation-pairs",
            functools.partial(_mine, job=job, maps=maps, kind=kind),
            settings={
                **chosen(job.config, "train_sentences", "translation_candidates", "translation_share"),
                **word_settings(job),
                "kind": kind,
            },
            after=[*job.texts, maps],
        )
    ]
    start = _start(job)
    model = translator_trained(job, "translation-model", pairs, start)
    for number in range(2, job.config.translation_rounds + 1):
        pairs.append(
            job.stages.run(
                f"translation-{number}-pairs",
                functools.partial(_translate, job=job, model=model),
                settings={**chosen(job.config, "train_sentences"), "seed": job.seed},
                after=[*job.texts, model],
            )
        )
        model = translator_trained(job, f"translation-{number}-model", pairs, start)
    return model


def translator_trained(job: Job, name: str, pairs: Sequence[Finished], start: str | Finished) -> Finished:
    """The stage that trains a translation model on pairs.

    Args:
        job: the production.
        name: of the stage.
        pairs: the stages that hold them.
        start: the model that the training starts from, or the stage that made it.
    """
    model = str(start.folder / MODEL) if isinstance(start, Finished) else start
    return job.stages.run(
        name,
        functools.partial(_train, job=job, pairs=pairs, start=model),
        settings={
            **chosen(job.config, "translation_epochs", "translation_batch", "translation_learning_rate"),
            "seed": job.seed,
            "start": known_by(model),
        },
        after=pairs,
    )


def _start(job: Job) -> str | Finished:
    if job.start.translation != SMALL:
        return str(job.start.translation)
    model = job.start.encoder
    return job.stages.run(
        "translation-start",
        functools.partial(_make_small, job=job),
        settings={
            **chosen(job.config, "denoising"),
            "seed": job.seed,
            "encoder": known_by(model["model"], model.get("revision")),
        },
        after=job.texts,
    )


def _mine(folder: Path, *, job: Job, maps: Finished, kind: str) -> dict[str, Any]:
    config = job.config
    mined = mine_words(
        *job.encoded(config.train_sentences),
        remapping(job, maps, kind),
        k=config.translation_candidates,
        share=config.translation_share,
        threads=job.threads,
        wrap=job.wrap("mining"),
    )
    return keep_pairs(folder, job.lang_pair, mined)


def _translate(folder: Path, *, job: Job, model: Finished) -> dict[str, Any]:
    sources, _ = job.sentences(job.config.train_sentences)
    pairs = synthetic_pairs(job.pool.translator(str(model.folder / MODEL), lang_pair=job.lang_pair), sources)
    write_pairs(pairs_file(folder, job.lang_pair), pairs, "translated")
    return {"sources": len(sources), "kept": len(pairs)}


def _make_small(folder: Path, *, job: Job) -> dict[str, Any]:
    run = Run(folder / MODEL, seed=job.seed, work=folder / "checkpoints")
    steps = job.config.denoising_steps
    config = DenoisingConfig(steps=steps, warmup_steps=steps // 20, decay_steps=3 * steps // 10, checkpoint_every=steps)
    train_denoising(
        run, [str(text.folder / SENTENCES) for text in job.texts], job.start.encoder["model"], config=config
    )
    shutil.rmtree(run.work)
    return {}


def _train(folder: Path, *, job: Job, pairs: Sequence[Finished], start: str) -> dict[str, Any]:
    run = Run(folder / MODEL, seed=job.seed, work=folder / "checkpoints")
    config = TranslationConfig(
        epochs=job.config.translation_epochs,
        pairs_per_step=job.config.translation_batch,
        learning_rate=job.config.translation_learning_rate,
    )
    train_translation(
        run, [pairs_file(stage.folder, job.lang_pair) for stage in pairs], start, job.lang_pair, config=config
    )
    shutil.rmtree(run.work)
    return {}
