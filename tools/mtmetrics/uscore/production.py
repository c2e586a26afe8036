"""Makes a UScore preset: prepares text, mines, remaps, trains, measures, and puts the folder
together."""

import contextlib
import functools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
from mtmetrics.training.configs import ContrastiveConfig, DenoisingConfig, TranslationConfig
from mtmetrics.training.corpus import ParallelText, read_pairs, text_key
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import train_contrastive
from mtmetrics.training.translation import train_denoising, train_translation
from mtmetrics.uscore import MAPS, Request
from mtmetrics.uscore.common import MODEL, SENTENCES, SMALL, Production, known_by
from mtmetrics.uscore.preset import assembled, check_models, install, read_start
from mtmetrics.uscore.production_report import agreement, described, precision
from mtmetrics.uscore.stages import Finished, Stages

WORK, LOG = "work", "log.jsonl"
log = logging.getLogger("mtmetrics")
_HELD_BACK = 1000


def produce_uscore(
    out: str | Path,
    request: Request,
    *,
    pool: ModelPool | None = None,
    threads: int = 1,
    progress: Callable[..., Any] = lambda iterable, **_: iterable,
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
        found = read_judged_segments(path).lang_pair
        if not names_of_pair(request.lang_pair, [found]):
            raise InputError(f"{path}: its language pair is {found}, not {request.lang_pair}")
    pool = pool or ModelPool()
    start = read_start(request, local_files_only=pool.local_files_only)
    check_models(start, request.lang_pair, pool)
    if start.kept_sentences:
        log.warning(
            "the sentence encoder %s stays as it is, without contrastive learning: preset %s "
            "names none to train; sentences in [start] of a preset of your own does, --without "
            "sentences leaves the sentence level out",
            start.kept_sentences["model"],
            request.preset,
        )
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
            metric = UScore.from_preset(
                str(preset.folder), lang_pair=request.lang_pair, pool=pool, workers=threads
            )
            measured["agreement"] = agreement(production, metric, preset)
        install([preset, described(production, preset, measured)], out, stages.work)
    return out


def _pairs(path: str | Path) -> list[tuple[str, str]]:
    return [(row.source, row.target) for row in read_pairs([path])[0]]


class _ProductionStages(Production):
    """The stages of a production."""

    def make(self, held_back: list[tuple[str, str]]) -> Finished:
        """The preset without its card, after all stages that it needs; the text is without what is
        held back."""
        parallel = self._parallel_pairs(self.request.parallel) if self.request.parallel else None
        self.texts = self._prepared(held_back)
        self.maps = self._word_rounds()
        self.models = self._sentence_rounds() if self.start.sentences else []
        maps, kind, sentences = self.maps[-1], self.config.map, next(reversed(self.models), None)
        translation = self._translation_rounds(maps) if self.start.translation else None
        if parallel:
            maps, kind = (
                self._fitted("parallel-maps", parallel, self.request.learnt_from[-1]),
                "clp",
            )
            if sentences:
                start = str(sentences.folder / MODEL)
                sentences = self._sentence_model("parallel-sentences-model", parallel, start)
            if translation:
                start = str(translation.folder / MODEL)
                translation = self._translation_model(
                    "parallel-translation-model", [parallel], start
                )
        return assembled(self, maps, kind, sentences, translation)

    def _parallel_pairs(self, path: str | Path) -> Finished:
        def keep(folder: Path) -> dict[str, int]:
            pairs = _pairs(path)
            write_pairs(self.pairs_file(folder), pairs, "parallel")
            return {"kept": len(pairs)}

        return self.stages.run(
            "parallel-pairs", keep, settings={"lp": self.lang_pair}, files=[path]
        )

    def _prepared(self, held_back: list[tuple[str, str]]) -> tuple[Finished, ...]:
        request = self.request
        if request.identify:
            for language in request.languages:
                language_identifier(
                    language
                )  # refuses the second language before the work on the first
        files = (request.source_text, request.target_text)
        held = [[pair[side] for pair in held_back] for side in (0, 1)]
        return tuple(
            self._clean(*side) for side in zip(files, request.languages, held, strict=True)
        )

    def _clean(self, file: str | Path, language: str, held_back: Sequence[str]) -> Finished:
        identify = self.request.identify

        def clean(folder: Path) -> dict[str, int]:
            lines = self.progress(
                iter_lines(file, "segments"), desc=f"preparing {language}", unit=" lines"
            )
            found = prepare(lines, language, name=str(file), identify=identify)
            keys = {text_key(sentence) for sentence in held_back}
            sentences = [sentence for sentence in found.sentences if text_key(sentence) not in keys]
            write_atomic(folder / SENTENCES, "".join(f"{sentence}\n" for sentence in sentences))
            return {
                **found.counts,
                "held back": len(found.sentences) - len(sentences),
                "kept": len(sentences),
            }

        settings = {"language": language, "identify": identify, "held_back": sorted(held_back)}
        return self.stages.run(f"prepare-{language}", clean, settings=settings, files=[file])

    def _word_rounds(self) -> list[Finished]:
        """Pairs are mined, maps are fitted on their words, and the better metric mines again (Fig.
        3 of the paper)."""
        maps: list[Finished] = []
        for turn in range(1, self.config.remap_rounds + 1):
            pairs = self._word_pairs(f"words-{turn}-pairs", maps[-1:], "remap_sentences", "remap")
            maps.append(self._fitted(f"words-{turn}-maps", pairs, f"mined, round {turn}"))
        return maps

    def _word_pairs(
        self, name: str, maps: Sequence[Finished], sentences: str, use: str
    ) -> Finished:
        names = sentences, f"{use}_candidates", f"{use}_share"
        size, k, share = (getattr(self.config, setting) for setting in names)

        def mine(folder: Path) -> dict[str, Any]:
            options = {"k": k, "share": share, "threads": self.threads, "wrap": self.wrap("mining")}
            mined = mine_words(*self.encoded(size), self.remapping(maps), **options)
            return self.keep_pairs(folder, mined)

        settings = {**self.settings(*names, *(["map"] if maps else [])), **self.word_settings()}
        return self.stages.run(name, mine, settings=settings, after=[*self.texts, *maps])

    def _fitted(self, name: str, pairs: Finished, corpus: str) -> Finished:
        def fit(folder: Path) -> dict[str, Any]:
            rows = jsonl_rows(self.pairs_file(pairs.folder))
            sentences = [(row.fields["source"], row.fields["target"]) for row in rows]
            wrap = self.wrap("aligning")
            languages = self.request.languages
            self.encoder.forget()  # after an interruption, the batches shall be those of an unbroken run
            source, target = vectors_from_sentences(
                sentences, self.encoder, self.aligner, languages, wrap=wrap
            )
            meta = map_meta(
                self.encoder, self.lang_pair, corpus=corpus, sentences=str(len(sentences))
            )
            for kind in MAPS:
                Remapping.fit(kind, source, target, meta).save(
                    folder / map_file_name(self.lang_pair, kind)
                )
            return {"sentences": len(sentences), "word_pairs": len(source)}

        settings = {**self.word_settings(), "aligner_layer": self.aligner.layer, "corpus": corpus}
        return self.stages.run(name, fit, settings=settings, after=[pairs])

    def _trained(
        self,
        name: str,
        after: Sequence[Finished],
        settings: dict[str, Any],
        train: Callable[..., Path],
        *given: Any,
    ) -> Finished:
        """The stage that trains a model from what is given besides the run; the last of it is the
        configuration."""

        def produce(folder: Path) -> dict[str, Any]:
            place = {"work": self.stages.unfinished, "device": self.pool.device}
            run = Run(folder / MODEL, seed=self.request.seed, **place)
            train(run, *given[:-1], config=given[-1])
            return {}

        return self.stages.run(
            name, produce, settings={**settings, "seed": self.request.seed}, after=after
        )

    def _sentence_rounds(self) -> list[Finished]:
        """Pairs are mined with one encoder, and a fresh one learns from them (Sec. 3.2 of the
        paper)."""
        models: list[Finished] = []
        for turn in range(1, self.config.contrastive_rounds + 1):
            settings = self.settings(
                "train_sentences", "contrastive_neighbours", "contrastive_pairs"
            )
            settings |= {
                "dtype": self.pool.dtype,
                "seed": self.request.seed,
                "start": known_by(self.start.sentences),
            }
            mine = functools.partial(self._mine_sentences, encoder=self.sentence_encoder(models))
            after = [*self.texts, *models[-1:]]
            pairs = self.stages.run(f"sentences-{turn}-pairs", mine, settings=settings, after=after)
            models.append(
                self._sentence_model(f"sentences-{turn}-model", pairs, str(self.start.sentences))
            )
        return models

    def _mine_sentences(self, folder: Path, encoder: str) -> dict[str, Any]:
        model, options = (
            self.pool.sentence_encoder(encoder),
            {"folder": self.stages.work, "wrap": self.wrap("encoding")},
        )
        texts = zip(
            self.sentences(self.config.train_sentences), self.request.languages, strict=True
        )
        sides = [encode_side(side, model, language=language, **options) for side, language in texts]
        k, limit = self.config.contrastive_neighbours, self.config.contrastive_pairs
        return self.keep_pairs(
            folder, mine_sentences(*sides, k=k, limit=limit, wrap=self.wrap("mining"))
        )

    def _sentence_model(self, name: str, pairs: Finished, start: str) -> Finished:
        batch, rate = self.config.contrastive_batch, self.config.contrastive_learning_rate
        config = ContrastiveConfig(pairs_per_step=batch, learning_rate=rate)
        settings = {
            **self.settings("contrastive_batch", "contrastive_learning_rate"),
            "start": known_by(start),
        }
        files = [self.pairs_file(pairs.folder)]
        return self._trained(name, [pairs], settings, train_contrastive, files, start, config)

    def _translation_rounds(self, maps: Finished) -> Finished:
        """Learns from mined pairs, then from its own translations too (Sec. 3.1 of the paper)."""
        pairs = [self._word_pairs("translation-pairs", [maps], "train_sentences", "translation")]
        start = str(self.start.translation)
        if start == SMALL:
            start = str(self._small_translator().folder / MODEL)
        model = self._translation_model("translation-model", pairs, start)
        for turn in range(2, self.config.translation_rounds + 1):
            translate = functools.partial(self._translate, model=model)
            settings = {**self.settings("train_sentences", "beams"), "seed": self.request.seed}
            name = f"translation-{turn}"
            translated = self.stages.run(
                f"{name}-pairs", translate, settings=settings, after=[*self.texts, model]
            )
            if not translated.counts["kept"]:
                log.warning(
                    (
                        "%s: nothing was translated, or only copied, so the model of the round "
                        "before stays"
                    ),
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
        settings = {**self.settings("denoising"), "encoder": known_by(encoder)}
        return self._trained(
            "translation-start", self.texts, settings, train_denoising, texts, encoder, config
        )

    def _translate(self, folder: Path, model: Finished) -> dict[str, Any]:
        """Keeps what the model translates; what has no translation, or equals it, is left out."""
        sources, _ = self.sentences(self.config.train_sentences)
        options = {"beams": self.config.beams} if self.config.beams else {}
        translator = self.pool.translator(
            str(model.folder / MODEL), lang_pair=self.lang_pair, **options
        )
        found = [
            (text, made.text)
            for text, made in zip(sources, translator.translate(sources), strict=True)
        ]
        pairs = [
            (text, translation)
            for text, translation in found
            if translation and translation != text
        ]
        write_pairs(self.pairs_file(folder), pairs, "translated")
        return {
            "sources": len(sources),
            "blank or copied": len(sources) - len(pairs),
            "kept": len(pairs),
        }

    def _translation_model(self, name: str, pairs: Sequence[Finished], start: str) -> Finished:
        settings = self.settings(
            "translation_epochs", "translation_batch", "translation_learning_rate"
        )
        epochs, batch, rate = settings.values()  # in the order of the fields
        config = TranslationConfig(epochs=epochs, pairs_per_step=batch, learning_rate=rate)
        settings["start"] = known_by(start)
        text = ParallelText([self.pairs_file(stage.folder) for stage in pairs])
        return self._trained(
            name, pairs, settings, train_translation, text, start, self.lang_pair, config
        )
