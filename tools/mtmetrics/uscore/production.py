"""Makes a UScore preset: prepares text, mines, remaps, trains, measures, and puts the folder together."""

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mtmetrics.checks import choice, language_pair, number, positive
from mtmetrics.errors import InputError, require_extra
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.io.languages import language_identifier
from mtmetrics.io.lines import iter_lines
from mtmetrics.io.tables import iter_table
from mtmetrics.judgements.judged import read_judged_segments
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name, map_meta
from mtmetrics.mining.clean_text import prepare
from mtmetrics.mining.kept_pairs import write_pairs
from mtmetrics.mining.sentences import mine_sentences
from mtmetrics.mining.sides import encode_side
from mtmetrics.mining.word_level import mine_words, vectors_from_sentences
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.uscore import UScore
from mtmetrics.training.corpus import read_pairs, text_key
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import train_contrastive
from mtmetrics.training.settings import ContrastiveConfig, DenoisingConfig, TranslationConfig
from mtmetrics.training.translation import train_denoising, train_translation
from mtmetrics.uscore import UScoreConfig
from mtmetrics.uscore.preset import assembled, check_models, install, read_start
from mtmetrics.uscore.production_report import agreement, described, precision
from mtmetrics.uscore.stages import MODEL, SENTENCES, SMALL, Finished, Production, Stages, known_by

WORK, LOG = "work", "log.jsonl"
log = logging.getLogger("mtmetrics")
_MAPS = ("clp", "umd")
_HELD_BACK = 1000


@dataclasses.dataclass(frozen=True)
class ProductionTexts:
    """The files of a production: text of both languages, one sentence per line; sentences and their translations to
    learn from at the end (Appendix C of the paper), and 1,000 others to measure precision on; judged segments."""

    source_text: str | Path
    target_text: str | Path
    parallel: str | Path | None = None
    held_back: str | Path | None = None
    judged: Sequence[str | Path] = ()


def produce_uscore(
    out: str | Path,
    lang_pair: str,
    material: ProductionTexts,
    preset: str,
    *,
    without: Sequence[str] = (),
    translation: str | None = None,
    lm: str | None = None,
    config: UScoreConfig | None = None,
    seed: int = 1,
    identify: bool = True,
    pool: ModelPool | None = None,
    threads: int = 1,
    licence: str | None = None,
    progress: Callable[..., Any] = lambda iterable, **_: iterable,
) -> Path:
    """Makes a folder with a ``preset.toml`` that the metric ``uscore`` loads.

    The stages are kept in ``OUT/work``, where the same call goes on after it was stopped, at any point; a changed
    setting or file repeats just the stages that depend on it. Mined and translated text lies there alone.

    Args:
        out: the folder to make.
        lang_pair: such as ``"de-en"``.
        material: text to learn from and to measure with.
        preset: preset of uscore whose models the production starts from.
        without: what is not made: ``"sentences"``, ``"translation"``.
        translation: translation model to start from instead of the preset's, or ``"small"``.
        lm: language model of the target language instead of the preset's, or ``"none"``.
        config: settings.
        seed: of everything random.
        identify: leave out sentences that seem to be of another language.
        pool: loaded models to share, and how they are run.
        threads: threads that look for pairs, and processes that solve transport.
        licence: of the weights, as the Hub calls it, for the card; None leaves it to be filled in.
        progress: wraps an iteration, with a description.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: a model cannot be found or loaded.
        MTMetricsError: the folder cannot be written, or is in use; finished stages are kept. Or a package is missing.
    """
    config = config or UScoreConfig()
    _check_settings(config, lang_pair)
    require_extra("mining", "UScore's mining")
    if {"sentences", "translation"} - {*without}:
        require_extra("train", "training UScore's models")
    for path in (material.source_text, material.target_text):
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
    for path in material.judged:
        if (found := read_judged_segments(path).lang_pair) != lang_pair:
            raise InputError(f"{path}: its language pair is {found}, not {lang_pair}")
    pool = pool or ModelPool()
    start = read_start(preset, lang_pair, without, translation, lm, local_files_only=pool.local_files_only)
    check_models(start, lang_pair, pool)
    held_back = _pairs(material.held_back)[:_HELD_BACK] if material.held_back else []
    files = [path for path in (material.source_text, material.target_text, material.parallel) if path]
    out = Path(out)
    make_folder(out)
    with contextlib.closing(Stages(out / WORK, out / LOG)) as stages:
        names = tuple(Path(path).name for path in files)
        job = Production(stages, lang_pair, start, config, seed, pool, names, threads, progress)
        parallel = _parallel_pairs(job, material.parallel) if material.parallel else None
        job.texts = _prepared(job, material, held_back, identify)
        preset = _made(job, parallel)
        measured = {}
        if held_back:
            measured["precision"] = precision(job, held_back)
        if material.judged:
            metric = UScore.from_preset(str(preset.folder), lang_pair=lang_pair, pool=job.pool, workers=threads)
            measured["agreement"] = agreement(job, metric, material.judged, preset)
        card = described(job, preset, measured, licence)
        install([preset, card], out, stages.work)
    return out


def _check_settings(config: UScoreConfig, lang_pair: str) -> None:
    source, target = language_pair(lang_pair)
    if source == target:
        raise InputError(f"language pair {lang_pair}: two different languages are needed")
    choice("map", config.map, _MAPS)
    for name, value in dataclasses.asdict(config).items():
        if isinstance(value, int) and (name, value) != ("beams", 0):
            positive(name, value)
        elif isinstance(value, float) and not 0.0 < number(name, value) <= 1.0:
            raise InputError(f"{name} {value}: must be above 0 and at most 1")


def _pairs(path: str | Path) -> list[tuple[str, str]]:
    return [(row.source, row.target) for row in read_pairs([path])[0]]


def _parallel_pairs(job: Production, path: str | Path) -> Finished:
    def keep(folder: Path) -> dict[str, int]:
        pairs = _pairs(path)
        write_pairs(job.pairs_file(folder), pairs, "parallel")
        return {"kept": len(pairs)}

    return job.stages.run("parallel-pairs", keep, settings={"lp": job.lang_pair}, files=[path])


def _prepared(
    job: Production, material: ProductionTexts, held_back: list[tuple[str, str]], identify: bool
) -> tuple[Finished, ...]:
    languages = language_pair(job.lang_pair)
    if identify:
        for language in languages:
            language_identifier(language)  # refuses the second language before the work on the first
    files = (material.source_text, material.target_text)
    held = [[pair[side] for pair in held_back] for side in (0, 1)]
    return tuple(_clean(job, *side, identify) for side in zip(files, languages, held, strict=True))


def _clean(job: Production, file: str | Path, language: str, held_back: Sequence[str], identify: bool) -> Finished:
    def clean(folder: Path) -> dict[str, int]:
        lines = job.progress(iter_lines(file), desc=f"preparing {language}", unit=" lines")
        found = prepare(lines, language, name=str(file), identify=identify)
        keys = {text_key(sentence) for sentence in held_back}
        sentences = [sentence for sentence in found.sentences if text_key(sentence) not in keys]
        write_atomic(folder / SENTENCES, "".join(f"{sentence}\n" for sentence in sentences))
        return {**found.counts, "held back": len(found.sentences) - len(sentences), "kept": len(sentences)}

    settings = {"language": language, "identify": identify, "held_back": sorted(held_back)}
    return job.stages.run(f"prepare-{language}", clean, settings=settings, files=[file])


def _made(job: Production, parallel: Finished | None) -> Finished:
    job.maps = _word_rounds(job)
    job.models = _sentence_rounds(job) if job.start.sentences else []
    maps, kind, sentences, translation = job.maps[-1], job.config.map, next(reversed(job.models), None), None
    if job.start.translation:
        translation = _translation_rounds(job, maps)
    if parallel:
        maps, kind = _fitted(job, "parallel-maps", parallel, job.files[-1]), "clp"
        if sentences:
            start = str(sentences.folder / MODEL)
            sentences = _sentence_model(job, "parallel-sentences-model", parallel, start)
        if translation:
            start = str(translation.folder / MODEL)
            translation = _translation_model(job, "parallel-translation-model", [parallel], start)
    return assembled(job, maps, kind, sentences, translation)


def _word_rounds(job: Production) -> list[Finished]:
    """Pairs are mined, maps are fitted on their words, and the better metric mines again (Fig. 3 of the paper)."""
    maps: list[Finished] = []
    for turn in range(1, job.config.remap_rounds + 1):
        pairs = _word_pairs(job, f"words-{turn}-pairs", maps[-1:], "remap_sentences", "remap")
        maps.append(_fitted(job, f"words-{turn}-maps", pairs, f"mined, round {turn}"))
    return maps


def _word_pairs(job: Production, name: str, maps: Sequence[Finished], sentences: str, use: str) -> Finished:
    names = sentences, f"{use}_candidates", f"{use}_share"
    size, k, share = (getattr(job.config, setting) for setting in names)

    def mine(folder: Path) -> dict[str, Any]:
        options = {"k": k, "share": share, "threads": job.threads, "wrap": job.wrap("mining")}
        mined = mine_words(*job.encoded(size), job.remapping(maps), **options)
        return job.keep_pairs(folder, mined)

    settings = {**job.settings(*names, *(["map"] if maps else [])), **job.word_settings()}
    return job.stages.run(name, mine, settings=settings, after=[*job.texts, *maps])


def _fitted(job: Production, name: str, pairs: Finished, corpus: str) -> Finished:
    def fit(folder: Path) -> dict[str, Any]:
        sentences = list(map(tuple, iter_table(job.pairs_file(pairs.folder), ("source", "target"))))
        wrap = job.wrap("aligning")
        languages = language_pair(job.lang_pair)
        source, target = vectors_from_sentences(sentences, job.encoder, job.aligner, languages, wrap=wrap)
        meta = map_meta(job.encoder, job.lang_pair, corpus=corpus, sentences=str(len(sentences)))
        for kind in _MAPS:
            Remapping.fit(kind, source, target, meta).save(folder / map_file_name(job.lang_pair, kind))
        return {"sentences": len(sentences), "word_pairs": len(source)}

    settings = {**job.word_settings(), "aligner_layer": job.aligner.layer, "corpus": corpus}
    return job.stages.run(name, fit, settings=settings, after=[pairs])


def _trained(
    job: Production,
    name: str,
    after: Sequence[Finished],
    settings: dict[str, Any],
    train: Callable[..., Path],
    *given: Any,
) -> Finished:
    """The stage that trains a model from what is given besides the run; the last of it is the configuration."""

    def produce(folder: Path) -> dict[str, Any]:
        run = Run(folder / MODEL, seed=job.seed, work=job.stages.unfinished, device=job.pool.device)
        train(run, *given[:-1], config=given[-1])
        return {}

    return job.stages.run(name, produce, settings={**settings, "seed": job.seed}, after=after)


def _sentence_rounds(job: Production) -> list[Finished]:
    """Pairs are mined with one encoder, and a fresh one learns from them (Sec. 3.2 of the paper)."""
    models: list[Finished] = []
    for turn in range(1, job.config.contrastive_rounds + 1):
        settings = job.settings("train_sentences", "contrastive_neighbours", "contrastive_pairs")
        settings |= {"dtype": job.pool.dtype, "seed": job.seed, "start": known_by(job.start.sentences)}
        mine = functools.partial(_mine_sentences, job=job, encoder=job.sentence_encoder(models))
        after = [*job.texts, *models[-1:]]
        pairs = job.stages.run(f"sentences-{turn}-pairs", mine, settings=settings, after=after)
        models.append(_sentence_model(job, f"sentences-{turn}-model", pairs, str(job.start.sentences)))
    return models


def _mine_sentences(folder: Path, *, job: Production, encoder: str) -> dict[str, Any]:
    model, options = job.pool.sentence_encoder(encoder), {"folder": job.stages.work, "wrap": job.wrap("encoding")}
    texts = zip(job.sentences(job.config.train_sentences), language_pair(job.lang_pair), strict=True)
    sides = [encode_side(side, model, language=language, **options) for side, language in texts]
    k, limit = job.config.contrastive_neighbours, job.config.contrastive_pairs
    return job.keep_pairs(folder, mine_sentences(*sides, k=k, limit=limit, wrap=job.wrap("mining")))


def _sentence_model(job: Production, name: str, pairs: Finished, start: str) -> Finished:
    batch, rate = job.config.contrastive_batch, job.config.contrastive_learning_rate
    config = ContrastiveConfig(pairs_per_step=batch, learning_rate=rate)
    settings = {**job.settings("contrastive_batch", "contrastive_learning_rate"), "start": known_by(start)}
    files = [job.pairs_file(pairs.folder)]
    return _trained(job, name, [pairs], settings, train_contrastive, files, start, config)


def _translation_rounds(job: Production, maps: Finished) -> Finished:
    """Learns from mined pairs, then from its own translations too (Sec. 3.1 of the paper)."""
    pairs = [_word_pairs(job, "translation-pairs", [maps], "train_sentences", "translation")]
    start = str(job.start.translation)
    if start == SMALL:
        start = str(_small_translator(job).folder / MODEL)
    model = _translation_model(job, "translation-model", pairs, start)
    for turn in range(2, job.config.translation_rounds + 1):
        translate = functools.partial(_translate, job=job, model=model)
        settings = {**job.settings("train_sentences", "beams"), "seed": job.seed}
        name = f"translation-{turn}"
        translated = job.stages.run(f"{name}-pairs", translate, settings=settings, after=[*job.texts, model])
        if not translated.counts["kept"]:
            log.warning("%s: nothing was translated, or only copied, so the model of the round before stays", name)
            break
        pairs.append(translated)
        model = _translation_model(job, f"{name}-model", pairs, start)
    return model


def _small_translator(job: Production) -> Finished:
    """A small model from the encoder, which learns to restore sentences of both languages."""
    encoder, steps = job.start.encoder_folder, job.config.denoising_steps
    config = DenoisingConfig(steps=steps, warmup_steps=steps // 20, decay_steps=3 * steps // 10)
    texts = {
        language: text.folder / SENTENCES
        for language, text in zip(language_pair(job.lang_pair), job.texts, strict=True)
    }
    settings = {**job.settings("denoising"), "encoder": known_by(encoder)}
    return _trained(job, "translation-start", job.texts, settings, train_denoising, texts, encoder, config)


def _translate(folder: Path, *, job: Production, model: Finished) -> dict[str, Any]:
    """Keeps what the model translates; what has no translation, or equals it, is left out."""
    sources, _ = job.sentences(job.config.train_sentences)
    options = {"beams": job.config.beams} if job.config.beams else {}
    translator = job.pool.translator(str(model.folder / MODEL), lang_pair=job.lang_pair, **options)
    found = [(text, made.text) for text, made in zip(sources, translator.translate(sources), strict=True)]
    pairs = [(text, translation) for text, translation in found if translation and translation != text]
    write_pairs(job.pairs_file(folder), pairs, "translated")
    return {"sources": len(sources), "blank or copied": len(sources) - len(pairs), "kept": len(pairs)}


def _translation_model(job: Production, name: str, pairs: Sequence[Finished], start: str) -> Finished:
    epochs, batch, rate = (getattr(job.config, f"translation_{name}") for name in ("epochs", "batch", "learning_rate"))
    config = TranslationConfig(epochs=epochs, pairs_per_step=batch, learning_rate=rate)
    files = [job.pairs_file(stage.folder) for stage in pairs]
    settings = job.settings("translation_epochs", "translation_batch", "translation_learning_rate")
    settings["start"] = known_by(start)
    return _trained(job, name, pairs, settings, train_translation, files, start, job.lang_pair, config)
