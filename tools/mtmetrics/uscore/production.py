"""Makes a UScore preset: prepares text, mines, remaps, trains, measures, and puts the folder together."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import make_folder
from mtmetrics.artifacts.models import model_folder
from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged_segments
from mtmetrics.extras import require_extra
from mtmetrics.inputs import choice, language_pair, number, positive
from mtmetrics.mining.remapping import FITTED
from mtmetrics.models.translator import require_mbart
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.uscore import UScore
from mtmetrics.training.corpus import read_pairs
from mtmetrics.uscore.folder import assembled, described, install
from mtmetrics.uscore.job import Job, keep_parallel, prepared
from mtmetrics.uscore.measures import Rounds, agreement, precision
from mtmetrics.uscore.sentences import sentence_encoder, sentence_rounds, trained
from mtmetrics.uscore.settings import UScoreConfig
from mtmetrics.uscore.stages import Finished, Stages
from mtmetrics.uscore.start import read_start
from mtmetrics.uscore.translations import SMALL, translation_model, translator_trained
from mtmetrics.uscore.words import fitted, word_rounds

WORK, LOG = "work", "log.jsonl"
_HELD_BACK = 1000


@dataclasses.dataclass(frozen=True)
class Material:
    """The files of a production.

    Attributes:
        source_text: sentences of the source language, one per line.
        target_text: sentences of the target language.
        parallel: sentences and their translations, to learn from at the end (Appendix C of the paper), or None.
        held_back: sentences and their translations, to measure precision on; 1,000 are used, and what the text shares
            with them is left out of it. None measures nothing.
        judged: segments with human judgements, to measure the agreement with.
    """

    source_text: str | Path
    target_text: str | Path
    parallel: str | Path | None = None
    held_back: str | Path | None = None
    judged: Sequence[str | Path] = ()


def produce_uscore(
    out: str | Path,
    lang_pair: str,
    material: Material,
    preset: str,
    *,
    without: Sequence[str] = (),
    translation: str | None = None,
    config: UScoreConfig | None = None,
    seed: int = 1,
    identify: bool = True,
    pool: ModelPool | None = None,
    threads: int = 1,
    progress: Callable[..., Any] = lambda iterable, **_: iterable,
) -> Path:
    """Makes a folder with a ``preset.toml`` that the metric ``uscore`` loads.

    The stages are kept in ``OUT/work``, where the same call goes on after it was stopped, at any point; a changed
    setting or file repeats just the stages that depend on it. Mined and translated text lies there alone.

    Args:
        out: the folder to make.
        lang_pair: such as ``"de-en"``.
        material: text to learn from and to measure with.
        preset: preset of uscore whose models the production starts from, see `mtmetrics.uscore.start.read_start`.
        without: what is not made: ``"sentences"``, ``"translation"``.
        translation: translation model to start from instead of the preset's, or ``"small"``.
        config: settings.
        seed: of everything random.
        identify: leave out sentences that seem to be of another language.
        pool: loaded models to share, and how they are run.
        threads: solver threads.
        progress: wraps an iteration, with a description.

    Returns:
        The folder.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: a model cannot be found or loaded.
        MTMetricsError: the folder cannot be written, or is in use; finished stages are kept. Or a package is missing.
    """
    config = config or UScoreConfig()
    source, target = language_pair(lang_pair)
    if source == target:
        raise InputError(f"language pair {lang_pair}: two different languages are needed")
    _check_settings(config)
    require_extra("mining", "UScore's mining")
    start = read_start(preset, lang_pair, tuple(without), translation)
    if start.sentences or start.translation:
        require_extra("train", "training UScore's models")
    if start.translation and start.translation != SMALL:
        require_mbart(model_folder(start.translation), lang_pair)
    _check_text(material.source_text, material.target_text)
    held_back = _pairs(material.held_back)[:_HELD_BACK] if material.held_back else []
    _check_judged(material.judged, lang_pair)
    out = Path(out)
    make_folder(out)
    with contextlib.closing(Stages(out / WORK, out / LOG)) as stages:
        parallel = keep_parallel(stages, lang_pair, material.parallel) if material.parallel else None
        texts = prepared(
            stages,
            lang_pair,
            (material.source_text, material.target_text),
            held_back,
            identify=identify,
            progress=progress,
        )
        learnt_from = (material.source_text, material.target_text, *([material.parallel] if material.parallel else []))
        files = tuple(Path(path).name for path in learnt_from)
        job = Job(stages, lang_pair, start, config, seed, pool or ModelPool(), texts, files, threads, progress)
        preset, rounds = _made(job, parallel)
        measured = {}
        if held_back:
            measured["precision"] = precision(job, rounds, held_back)
        if material.judged:
            metric = UScore.from_preset(str(preset.folder), lang_pair=lang_pair, pool=job.pool, threads=threads)
            measured["agreement"] = agreement(job, rounds, metric, material.judged, [preset])
        card = described(job, preset, measured)
        stages.forget_others()
        install([preset, card], out)
    return out


def _made(job: Job, parallel: Finished | None) -> tuple[Finished, Rounds]:
    """The stage that put the preset together, and the rounds before it."""
    maps = word_rounds(job)
    sentences = sentence_rounds(job) if job.start.sentences else []
    rounds = Rounds(list(maps), list(sentences), job.config.map)
    last, kind, translation = maps[-1], job.config.map, None
    if job.start.translation:
        translation = translation_model(job, last, kind)
    if parallel:
        last, kind = fitted(job, "parallel-maps", parallel, job.files[-1]), "clp"
        if sentences:
            sentences.append(trained(job, "parallel-sentences-model", parallel, sentence_encoder(job, sentences)))
        if translation:
            translation = translator_trained(job, "parallel-translation-model", [parallel], translation)
    return assembled(job, last, kind, sentences[-1] if sentences else None, translation), rounds


def _pairs(path: str | Path) -> list[tuple[str, str]]:
    return [(row.source, row.target) for row in read_pairs([path])[0]]


def _check_settings(config: UScoreConfig) -> None:
    choice("map", config.map, FITTED)
    for name, value in dataclasses.asdict(config).items():
        if isinstance(value, int):
            positive(name, value)
        elif isinstance(value, float) and not 0.0 < number(name, value) <= 1.0:
            raise InputError(f"{name} {value}: must be above 0 and at most 1")


def _check_text(*paths: str | Path) -> None:
    for path in paths:
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")


def _check_judged(paths: Sequence[str | Path], lang_pair: str) -> None:
    """Refuses before the work what could not be used after it."""
    for path in paths:
        found = read_judged_segments(path).lang_pair
        if found != lang_pair:
            raise InputError(f"{path}: its language pair is {found}, not {lang_pair}")
