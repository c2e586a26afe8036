"""The word level: pairs are mined, maps are fitted on their words, and the better metric mines again (Fig. 3)."""

import functools
from pathlib import Path
from typing import Any

from mtmetrics.maps.files import load_map, map_file_name
from mtmetrics.maps.remapping import Remapping
from mtmetrics.mining.remapping import fit_maps
from mtmetrics.mining.word_level import mine_words
from mtmetrics.uscore.job import Job, keep_pairs, pairs_file, read_pairs
from mtmetrics.uscore.stages import Finished
from mtmetrics.uscore.start import chosen, known_by


def word_rounds(job: Job) -> list[Finished]:
    """The stage that fitted the maps, of each round."""
    maps: list[Finished] = []
    for number in range(1, job.config.remap_rounds + 1):
        pairs = job.stages.run(
            f"words-{number}-pairs",
            functools.partial(_mine, job=job, maps=maps[-1] if maps else None),
            settings={
                **chosen(job.config, "remap_sentences", "remap_candidates", "remap_share", *(["map"] if maps else [])),
                **word_settings(job),
            },
            after=[*job.texts, *maps[-1:]],
        )
        maps.append(fitted(job, f"words-{number}-maps", pairs, f"mined, round {number}"))
    return maps


def fitted(job: Job, name: str, pairs: Finished, corpus: str) -> Finished:
    """The stage that fits both maps on the words of pairs."""
    aligner = job.start.aligner(job.pool)
    return job.stages.run(
        name,
        functools.partial(_fit, job=job, pairs=pairs, corpus=corpus),
        settings={**word_settings(job), "aligner_layer": aligner.layer, "corpus": corpus},
        after=[pairs],
    )


def word_settings(job: Job) -> dict[str, Any]:
    """By what a stage knows the word encoder, and the draw of its sentences."""
    model = job.start.encoder
    return {
        "encoder": known_by(model["model"], model.get("revision")),
        "layer": job.encoder.layer,
        "dtype": job.pool.dtype,
        "seed": job.seed,
    }


def remapping(job: Job, maps: Finished, kind: str) -> Remapping:
    """A map of a round."""
    return load_map(maps.folder, job.lang_pair, kind, job.encoder)


def _mine(folder: Path, *, job: Job, maps: Finished | None) -> dict[str, Any]:
    config = job.config
    mined = mine_words(
        *job.encoded(config.remap_sentences),
        remapping(job, maps, config.map) if maps else None,
        k=config.remap_candidates,
        share=config.remap_share,
        threads=job.threads,
        wrap=job.wrap("mining"),
    )
    return keep_pairs(folder, job.lang_pair, mined)


def _fit(folder: Path, *, job: Job, pairs: Finished, corpus: str) -> dict[str, Any]:
    sentences = read_pairs(pairs_file(pairs.folder, job.lang_pair))
    maps = fit_maps(
        sentences, job.encoder, job.start.aligner(job.pool), job.lang_pair, corpus=corpus, wrap=job.wrap("aligning")
    )
    for kind, found in maps.items():
        found.save(folder / map_file_name(job.lang_pair, kind))
    return {"sentences": len(sentences), "word_pairs": int(next(iter(maps.values())).meta.get("pairs", 0))}
