"""Makes a UScore preset: prepares text, mines, remaps, trains, measures, and puts the folder together.

`produce_uscore` is the production; its stages are methods of `_ProductionStages`, and `make` calls
them in their order. A stage is a function that fills a folder, run by
`mtmetrics.uscore.stages.Stages.run`.
"""

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mtmetrics.checks import names_of_pair
from mtmetrics.errors import InputError, require_extra
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.io.languages import language_identifier
from mtmetrics.io.lines import iter_lines
from mtmetrics.io.tables import jsonl_rows
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
from mtmetrics.training.configs import (
    ContrastiveConfig,
    DenoisingConfig,
    Schedule,
    TranslationConfig,
)
from mtmetrics.training.corpus import ParallelText, read_pairs, text_key
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import train_contrastive
from mtmetrics.training.translation import train_denoising, train_translation
from mtmetrics.uscore import MAPS, Request
from mtmetrics.uscore.common import MODEL, SENTENCES, SMALL, Production, fingerprint
from mtmetrics.uscore.preset import assembled, check_models, install, read_start
from mtmetrics.uscore.production_report import agreement, described, precision
from mtmetrics.uscore.stages import Counts, Finished, Stages

# The folder of the stages, and the log, in the folder of the preset.
WORK, LOG = "work", "log.jsonl"
log = logging.getLogger("mtmetrics")
# Held-back pairs that are read.
_HELD_BACK = 1000
# Of contrastive learning, where the request leaves it open.
_LEARNING_RATE, _ADAPTER_LEARNING_RATE = 5e-5, 1e-3


def produce_uscore(
    out: str | Path,
    request: Request,
    *,
    pool: ModelPool | None = None,
    threads: int = 1,
    progress: Callable[..., Iterable[object]] = lambda iterable, **_: iterable,
) -> Path:
    """Makes a folder with a ``preset.toml`` that the metric ``uscore`` loads.

    The stages are kept in ``OUT/work``, where the same call goes on after it was stopped, at any
    point; a changed setting or file repeats just the stages that depend on it. Mined and translated
    text lies there alone.

    Args:
        out: the folder to make.
        request: text, models to start from, and settings.
        pool: loaded models to share, and how they are run.
        threads: threads that look for pairs, and processes that solve transport.
        progress: wraps an iteration, with a description.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: a model cannot be found or loaded.
        MTMetricsError: the folder cannot be written, or is in use; finished stages are kept. Or a
            package is missing.
    """
    request.check()
    require_extra("mining", "UScore's mining")
    if {"sentences", "translation"} - {*request.without}:
        require_extra("train", "training UScore's models")
    for path in request.judged:
        pair = read_judged_segments(path).lang_pair
        if not names_of_pair(request.lang_pair, [pair]):
            raise InputError(f"{path}: its language pair is {pair}, not {request.lang_pair}")
    pool = pool or ModelPool()
    start = read_start(request, local_files_only=pool.local_files_only)
    check_models(start, request.lang_pair, pool)
    held_back = _pairs(request.held_back)[:_HELD_BACK] if request.held_back else []
    out = Path(out)
    make_folder(out)
    with contextlib.closing(Stages(out / WORK, out / LOG)) as stages:
        production = _ProductionStages(stages, request, start, pool, threads, progress)
        preset = production.make(held_back)
        measured = {}
        if held_back:
            measured["precision"] = precision(production, held_back)
        if request.judged:
            metric = UScore.load(
                str(preset.folder),
                lang_pair=request.lang_pair,
                pool=pool,
                workers=threads,
            )
            measured["agreement"] = agreement(production, metric, preset)
        install([preset, described(production, preset, measured)], out, stages.work)
    return out


def _pairs(path: str | Path) -> list[tuple[str, str]]:
    """The sources and targets of a file of parallel text."""
    return [(row.source, row.target) for row in read_pairs([path])[0]]


class _ProductionStages(Production):
    """The stages of a production."""

    def make(self, held_back: list[tuple[str, str]]) -> Finished:
        """Runs all stages but those that measure and describe; returns the one that puts the preset
        together.

        Args:
            held_back: pairs whose sentences are left out of the text.
        """
        parallel = None
        if self.request.parallel:
            parallel = self._parallel_pairs(self.request.parallel)
        self.texts = self._prepared(held_back)
        self.maps = self._word_rounds()
        maps, kind = self.maps[-1], self.config.map
        sentences = translation = None
        if self.start.sentences:
            self.models = self._sentence_rounds()
            sentences = self.models[-1]
        if self.start.translation:
            translation = self._translation_rounds(maps)
        if parallel:
            # Training on mined pairs goes on with parallel ones.
            maps = self._fitted("parallel-maps", parallel, self.request.learnt_from[-1])
            kind = "clp"
            if sentences:
                start = str(sentences.folder / MODEL)
                sentences = self._sentence_model("parallel-sentences-model", parallel, start)
            if translation:
                start = str(translation.folder / MODEL)
                name = "parallel-translation-model"
                translation = self._translation_model(name, [parallel], start)
        return assembled(self, maps, kind, sentences=sentences, translation=translation)

    def _parallel_pairs(self, path: str | Path) -> Finished:
        """Runs the stage that keeps the pairs of a parallel file."""

        def keep(folder: Path) -> dict[str, int]:
            pairs = _pairs(path)
            write_pairs(self.pairs_file(folder), pairs, "parallel")
            return {"kept": len(pairs)}

        return self.stages.run(
            "parallel-pairs",
            keep,
            settings={"lp": self.lang_pair},
            files=[path],
        )

    def _prepared(self, held_back: list[tuple[str, str]]) -> tuple[Finished, ...]:
        """Runs the stages that prepare the text of both sides."""
        request = self.request
        source, target = request.languages
        if request.identify:
            # Refuses the second language before the work on the first.
            language_identifier(source)
            language_identifier(target)
        return (
            self._clean(request.source_text, source, [pair[0] for pair in held_back]),
            self._clean(request.target_text, target, [pair[1] for pair in held_back]),
        )

    def _clean(self, file: str | Path, language: str, held_back: Sequence[str]) -> Finished:
        """Runs the stage that prepares the text of a side, without held-back sentences."""
        identify = self.request.identify

        def clean(folder: Path) -> dict[str, int]:
            lines = self.progress(
                iter_lines(file, "segments"),
                desc=f"preparing {language}",
                unit=" lines",
            )
            clean_text = prepare(lines, language, name=str(file), identify=identify)
            keys = {text_key(sentence) for sentence in held_back}
            kept = [text for text in clean_text.sentences if text_key(text) not in keys]
            write_atomic(folder / SENTENCES, "".join(f"{sentence}\n" for sentence in kept))
            left_out = len(clean_text.sentences) - len(kept)
            return {**clean_text.counts, "held back": left_out, "kept": len(kept)}

        settings = {"language": language, "identify": identify, "held_back": sorted(held_back)}
        return self.stages.run(f"prepare-{language}", clean, settings=settings, files=[file])

    def _word_rounds(self) -> list[Finished]:
        """Runs the stages of remapping, round by round: pairs are mined, maps are fitted on their
        words, and the better metric mines again (Fig. 3 of the paper). Returns the stages that
        fitted maps."""
        maps: list[Finished] = []
        config = self.config
        for turn in range(1, config.remap_rounds + 1):
            pairs = self._word_pairs(
                f"words-{turn}-pairs",
                maps[-1:],
                sentences=config.remap_sentences,
                candidates=config.remap_candidates,
                share=config.remap_share,
            )
            maps.append(self._fitted(f"words-{turn}-maps", pairs, f"mined, round {turn}"))
        return maps

    def _word_pairs(
        self,
        name: str,
        maps: Sequence[Finished],
        *,
        sentences: int,
        candidates: int,
        share: float,
    ) -> Finished:
        """Runs the stage that mines pairs by their words, with the last of the maps if there is
        one.

        Args:
            name: of the stage.
            maps: the stages that fitted maps so far.
            sentences: sentences of each side.
            candidates: candidates of each source.
            share: share of the sources whose pairs are kept.
        """

        def mine(folder: Path) -> dict[str, float]:
            mined = mine_words(
                *self.encoded(sentences),
                self.remapping(maps),
                k=candidates,
                share=share,
                threads=self.threads,
                wrap=self.wrap("mining"),
            )
            return self.keep_pairs(folder, mined)

        settings = {
            "sentences": sentences,
            "candidates": candidates,
            "share": share,
            **self.word_settings(),
        }
        if maps:
            settings["map"] = self.config.map
        return self.stages.run(name, mine, settings=settings, after=[*self.texts, *maps])

    def _fitted(self, name: str, pairs: Finished, corpus: str) -> Finished:
        """Runs the stage that fits maps on the words of pairs; the maps record the name of the
        corpus."""

        def fit(folder: Path) -> dict[str, int]:
            rows = jsonl_rows(self.pairs_file(pairs.folder))
            sentences = [(row.values["source"], row.values["target"]) for row in rows]
            # After an interruption, the batches shall be those of an unbroken run.
            self.encoder.clear_cache()
            source, target = vectors_from_sentences(
                sentences,
                self.encoder,
                self.aligner,
                self.request.languages,
                wrap=self.wrap("aligning"),
            )
            meta = map_meta(
                self.encoder,
                self.lang_pair,
                corpus=corpus,
                sentences=str(len(sentences)),
            )
            for kind in MAPS:
                remapping = Remapping.fit(kind, source, target, meta)
                remapping.save(folder / map_file_name(self.lang_pair, kind))
            return {"sentences": len(sentences), "word_pairs": len(source)}

        settings = {**self.word_settings(), "aligner_layer": self.aligner.layer, "corpus": corpus}
        return self.stages.run(name, fit, settings=settings, after=[pairs])

    def _trained(
        self,
        name: str,
        after: Sequence[Finished],
        config: Schedule,
        start: str,
        train: Callable[[Run], Path],
    ) -> Finished:
        """Runs the stage in which a function trains a model, in a run that outlives interruptions.

        Args:
            name: of the stage.
            after: the stages that it reads.
            config: of the training.
            start: the folder of the model that the training begins with.
            train: the function.
        """

        def produce(folder: Path) -> Counts:
            run = Run(
                folder / MODEL,
                seed=self.request.seed,
                work=self.stages.unfinished,
                device=self.pool.device,
            )
            train(run)
            return {}

        settings = {
            "config": dataclasses.asdict(config),
            "start": fingerprint(start),
            "seed": self.request.seed,
        }
        return self.stages.run(name, produce, settings=settings, after=after)

    def _sentence_rounds(self) -> list[Finished]:
        """Pairs are mined with one encoder, and a fresh one learns from them (Sec. 3.2 of the
        paper)."""
        start = str(self.start.sentences)
        settings = {
            **self.settings("train_sentences", "contrastive_neighbours", "contrastive_pairs"),
            "dtype": self.pool.dtype,
            "seed": self.request.seed,
            "start": fingerprint(start),
        }
        models: list[Finished] = []
        for turn in range(1, self.config.contrastive_rounds + 1):
            mine = functools.partial(self._mine_sentences, encoder=self.sentence_encoder(models))
            after = [*self.texts, *models[-1:]]
            pairs = self.stages.run(f"sentences-{turn}-pairs", mine, settings=settings, after=after)
            models.append(self._sentence_model(f"sentences-{turn}-model", pairs, start))
        return models

    def _mine_sentences(self, folder: Path, encoder: str) -> dict[str, float]:
        model = self.pool.sentence_encoder(encoder)
        texts = self.sentences(self.config.train_sentences)
        sources, targets = (
            encode_side(
                sentences,
                model,
                language=language,
                folder=self.stages.work,
                wrap=self.wrap("encoding"),
            )
            for sentences, language in zip(texts, self.request.languages, strict=True)
        )
        mined = mine_sentences(
            sources,
            targets,
            k=self.config.contrastive_neighbours,
            limit=self.config.contrastive_pairs,
            wrap=self.wrap("mining"),
        )
        return self.keep_pairs(folder, mined)

    def _sentence_model(self, name: str, pairs: Finished, start: str) -> Finished:
        """The stage that trains a sentence encoder on pairs."""
        rank = self.start.adapter_rank
        learning_rate = self.config.contrastive_learning_rate or (
            _ADAPTER_LEARNING_RATE if rank else _LEARNING_RATE
        )
        config = ContrastiveConfig(
            pairs_per_step=self.config.contrastive_batch,
            learning_rate=learning_rate,
            adapter_rank=rank,
        )
        files = [self.pairs_file(pairs.folder)]

        def train(run: Run) -> Path:
            return train_contrastive(run, files, start, config=config)

        return self._trained(name, [pairs], config, start, train)

    def _translation_rounds(self, maps: Finished) -> Finished:
        """Learns from mined pairs, then from its own translations too (Sec. 3.1 of the paper)."""
        config = self.config
        mined = self._word_pairs(
            "translation-pairs",
            [maps],
            sentences=config.train_sentences,
            candidates=config.translation_candidates,
            share=config.translation_share,
        )
        pairs = [mined]
        start = str(self.start.translation)
        if start == SMALL:
            start = str(self._small_translator().folder / MODEL)
        model = self._translation_model("translation-model", pairs, start)
        for turn in range(2, config.translation_rounds + 1):
            translate = functools.partial(self._translate, model=model)
            settings = {**self.settings("train_sentences", "beams"), "seed": self.request.seed}
            name = f"translation-{turn}"
            translated = self.stages.run(
                f"{name}-pairs",
                translate,
                settings=settings,
                after=[*self.texts, model],
            )
            if not translated.counts["kept"]:
                log.warning(
                    "%s: nothing was translated, or only copied, so the model of the round "
                    "before stays",
                    name,
                )
                break
            pairs.append(translated)
            model = self._translation_model(f"{name}-model", pairs, start)
        return model

    def _small_translator(self) -> Finished:
        """A small model from the encoder, which learns to restore sentences of both languages."""
        encoder, steps = self.start.encoder_folder, self.config.denoising_steps
        config = DenoisingConfig(steps=steps, warmup_steps=steps // 20, decay_steps=3 * steps // 10)
        files = [text.folder / SENTENCES for text in self.texts]
        texts = dict(zip(self.request.languages, files, strict=True))

        def train(run: Run) -> Path:
            return train_denoising(run, texts, encoder, config=config)

        return self._trained("translation-start", self.texts, config, encoder, train)

    def _translate(self, folder: Path, model: Finished) -> dict[str, int]:
        """Keeps the sources with their translations by the model; a source without a translation,
        or equal to it, is left out."""
        sources, _ = self.sentences(self.config.train_sentences)
        options = {"beams": self.config.beams} if self.config.beams else {}
        translator = self.pool.translator(
            str(model.folder / MODEL),
            lang_pair=self.lang_pair,
            **options,
        )
        pairs = []
        for source, translation in zip(sources, translator.translate(sources), strict=True):
            if translation.text and translation.text != source:
                pairs.append((source, translation.text))
        write_pairs(self.pairs_file(folder), pairs, "translated")
        return {
            "sources": len(sources),
            "blank or copied": len(sources) - len(pairs),
            "kept": len(pairs),
        }

    def _translation_model(self, name: str, pairs: Sequence[Finished], start: str) -> Finished:
        """The stage that trains a translation model on the pairs of some stages."""
        config = TranslationConfig(
            epochs=self.config.translation_epochs,
            pairs_per_step=self.config.translation_batch,
            learning_rate=self.config.translation_learning_rate,
        )
        text = ParallelText([self.pairs_file(stage.folder) for stage in pairs])

        def train(run: Run) -> Path:
            return train_translation(run, text, start, self.lang_pair, config=config)

        return self._trained(name, pairs, config, start, train)
