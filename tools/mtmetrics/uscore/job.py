"""What all stages of a production share: models, prepared text, and how text and pairs are kept."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import write_atomic
from mtmetrics.inputs import language_pair
from mtmetrics.mining.languages import language_identifier
from mtmetrics.mining.monolingual import draw, prepare
from mtmetrics.mining.selection import MinedPairs, write_pairs
from mtmetrics.mining.token_store import EncodedSide, encode_side
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.textio import iter_jsonl, iter_lines
from mtmetrics.training.corpus import read_pairs as read_parallel
from mtmetrics.training.corpus import text_key
from mtmetrics.uscore.settings import UScoreConfig
from mtmetrics.uscore.stages import Finished, Stages
from mtmetrics.uscore.start import Start

SENTENCES = "sentences.txt"


@dataclasses.dataclass(frozen=True)
class Job:
    """A production.

    Attributes:
        stages: where results are kept.
        lang_pair: such as ``"de-en"``.
        start: models.
        config: settings.
        seed: of everything random.
        pool: loaded models.
        texts: the prepared sentences of either side.
        files: names of the files that the production learns from.
        threads: solver threads.
        progress: wraps an iteration, with a description.
    """

    stages: Stages
    lang_pair: str
    start: Start
    config: UScoreConfig
    seed: int
    pool: ModelPool
    texts: tuple[Finished, Finished]
    files: tuple[str, ...]
    threads: int
    progress: Callable[..., Any]

    @property
    def encoder(self) -> TokenEncoder:
        """The encoder of the word level."""
        return self.start.word_encoder(self.pool)

    def sentences(self, size: int) -> list[list[str]]:
        """At most `size` sentences of either side, drawn at random."""
        return [draw(list(iter_lines(text.folder / SENTENCES)), size, self.seed) for text in self.texts]

    def encoded(self, size: int) -> tuple[EncodedSide, EncodedSide]:
        """The words of `sentences`, which are encoded once however many stages ask for them."""
        return self._encoded(min(size, max(text.counts["kept"] for text in self.texts)))

    @functools.lru_cache(maxsize=1)  # noqa: B019 (a job lives as long as its production)
    def _encoded(self, size: int) -> tuple[EncodedSide, EncodedSide]:
        source, target = (
            encode_side(side, self.encoder, folder=self.stages.work, wrap=self.wrap("encoding"))
            for side in self.sentences(size)
        )
        return source, target

    def wrap(self, description: str) -> Callable[[Iterable[Any]], Any]:
        """A progress bar over blocks."""
        return functools.partial(self.progress, desc=description, unit=" blocks")

    __hash__ = object.__hash__


def prepared(
    stages: Stages,
    lang_pair: str,
    files: Sequence[str | Path],
    held_back: Sequence[tuple[str, str]],
    *,
    identify: bool,
    progress: Callable[..., Any],
) -> tuple[Finished, Finished]:
    """The stages that clean the text of either side, see `mtmetrics.mining.monolingual.prepare`.

    Args:
        stages: where they are kept.
        lang_pair: such as ``"de-en"``.
        files: text of the source language and of the target language.
        held_back: sentences and their translations, which must not occur in the text.
        identify: remove sentences of other languages.
        progress: wraps an iteration, with a description.

    Raises:
        InputError: a file cannot be read or used, or a language cannot be identified.
    """
    if identify:
        for language in language_pair(lang_pair):
            language_identifier(language)  # refuses the second language before the work on the first
    source, target = (
        stages.run(
            f"prepare-{language}",
            functools.partial(
                _prepare,
                file=file,
                language=language,
                held_back=[pair[side] for pair in held_back],
                identify=identify,
                progress=progress,
            ),
            settings={
                "language": language,
                "identify": identify,
                "held_back": sorted(pair[side] for pair in held_back),
            },
            files=[file],
        )
        for side, (language, file) in enumerate(zip(language_pair(lang_pair), files, strict=True))
    )
    return source, target


def _prepare(
    folder: Path,
    *,
    file: str | Path,
    language: str,
    held_back: Sequence[str],
    identify: bool,
    progress: Callable[..., Any],
) -> dict[str, int]:
    lines = progress(iter_lines(file), desc=f"preparing {language}", unit=" lines")
    found = prepare(lines, language, name=str(file), identify=identify)
    keys = {text_key(sentence) for sentence in held_back}
    sentences = [sentence for sentence in found.sentences if text_key(sentence) not in keys]
    write_atomic(folder / SENTENCES, "".join(f"{sentence}\n" for sentence in sentences))
    return {**found.counts, "held back": len(found.sentences) - len(sentences), "kept": len(sentences)}


def keep_parallel(stages: Stages, lang_pair: str, path: str | Path) -> Finished:
    """The stage that keeps parallel text as pairs, see `mtmetrics.training.corpus.read_pairs`."""

    def keep(folder: Path) -> dict[str, int]:
        rows, _ = read_parallel([path])
        write_pairs(pairs_file(folder, lang_pair), [(row.source, row.target) for row in rows], "parallel")
        return {"kept": len(rows)}

    return stages.run("parallel-pairs", keep, settings={"lp": lang_pair}, files=[path])


def pairs_file(folder: Path, lang_pair: str) -> Path:
    """Where a stage keeps its pairs: JSON Lines see `mtmetrics.mining.selection.write_pairs`."""
    return folder / f"{lang_pair}.jsonl"


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """What `mtmetrics.mining.selection.write_pairs` wrote."""
    return [(row["source"], row["target"]) for _, row in iter_jsonl(path)]


def keep_pairs(folder: Path, lang_pair: str, mined: MinedPairs) -> dict[str, Any]:
    """Writes mined pairs into the folder of a stage, and returns what it counts."""
    mined.write(pairs_file(folder, lang_pair))
    return {**mined.counts, "best": round(float(mined.scores[0]), 6), "worst": round(float(mined.scores[-1]), 6)}
