"""Multilingual distillation: a student learns an English teacher's sentence vectors from parallel text (Reimers and
Gurevych, 2020)."""

import json
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import atomic_path, new_folder, write_atomic
from mtmetrics.artifacts.models import model_folder, sentence_model
from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.data import read_judged_segments
from mtmetrics.evaluation.judged import JudgedSegments
from mtmetrics.matching.sentences import cosines
from mtmetrics.training import corpus, loop, recording
from mtmetrics.training.config import DistilConfig
from mtmetrics.training.encoder.batches import plan_batches
from mtmetrics.training.encoder.train import LANGUAGE

log = logging.getLogger(__name__)
_TEXTS_PER_SAVE = 2048
_PAIRS_FOR_PROJECTION = 10_000


def train_distil(
    run: loop.Run,
    parallel: Sequence[str | Path],
    teacher: str | Path,
    student: str | Path,
    *,
    judged: Sequence[str | Path] = (),
    exclude: Sequence[str] = (),
    caps: dict[str, int] | None = None,
    config: DistilConfig | None = None,
) -> Path:
    """Trains a student whose vectors of a sentence and of its translation both equal the teacher's vector of the
    English side.

    The loss is the mean squared error, over both sides. Where the student's vectors have another width than the
    teacher's, a linear projection is learnt with it and becomes part of the model; it begins as the least-squares map
    from the student's own vectors. The artifact is a sentence-transformers folder, weights in float16.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: see `corpus.read_pairs`; each file's name begins with its language pair, of which one is English
            (``en``).
        teacher: a sentence-transformers model for English; see `mtmetrics.artifacts.models.model_folder` for its name.
        student: an encoder, which is mean-pooled, or a sentence-transformers model.
        judged: segments with human judgements, see `mtmetrics.evaluation.data`: the Pearson correlation of the cosine
            of source and translation is part of every evaluation. Pairs that share a text with them are left out of
            training.
        exclude: origins to leave out.
        caps: at most that many rows per file of an origin.
        config: schedule.

    Returns:
        The artifact folder.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: a model cannot be found or loaded.
    """
    config = config or DistilConfig()
    folders = {"teacher": model_folder(teacher), "student": model_folder(student)}
    settings = {
        "teacher": recording.pinned(teacher, folders["teacher"]),
        "student": recording.pinned(student, folders["student"]),
        "parallel": [str(path) for path in parallel],
        "judged": [str(path) for path in judged],
        "exclude": sorted(exclude),
        "caps": caps or {},
    }
    settings = run.open(config, settings, [*parallel, *judged])
    tests = [_judged(path) for path in judged]
    pairs, counts = corpus.read_pairs(parallel, exclude, caps, run.seed)
    pairs = _without_judged(pairs, tests, counts)
    train, words, held = corpus.training_split(pairs, config.held_back_per_mille, config.held_back_per_pair, run.seed)
    log.info("%d sentence pairs and %d word pairs for training, %d held back", len(train), len(words), len(held))
    train += words

    rows = {text: row for row, text in enumerate(dict.fromkeys(english(pair) for pair in [*train, *held]))}
    vectors = _teacher_vectors(run.work, folders["teacher"], list(rows))
    trainer = _trainer(run, config, folders["student"], train, held, tests, rows, vectors)
    model, limit = trainer.model, trainer.model.max_seq_length
    model.max_seq_length = min(config.max_pieces, limit)
    before = run.once("before", trainer.evaluate)
    history = run.train(trainer)
    result = trainer.evaluate()
    model.max_seq_length = limit
    record = {
        "kind": "sentence encoder",
        "command": "mtmetrics train distil",
        **settings,
        "parallel": [corpus.short_name(path) for path in parallel],
        "judged": [corpus.short_name(path) for path in judged],
        "started_from": recording.read_record(folders["student"]),
        "data": counts.as_dict(),
        "pairs": {"train": len(train) - len(words), "words": len(words), "held_back": len(held)},
        "before_training": before,
        "result": result,
    }
    _write(run, model, record, history)
    return run.output


def english(pair: corpus.Pair) -> str:
    """The English side of a pair.

    Raises:
        InputError: the name of its file says that neither side is English.
    """
    languages = pair.group.removesuffix(".words").split("-")
    if len(languages) != 2 or LANGUAGE not in languages:
        raise InputError(
            f"--parallel {pair.group}: the teacher reads English, so each file's name begins with a language pair of it, e.g. de-en.jsonl"
        )
    return pair.source if languages[0] == LANGUAGE else pair.target


def _judged(path: str | Path) -> JudgedSegments:
    test = read_judged_segments(path)
    if reason := pearson(np.arange(len(test)), test.human).reason:
        raise InputError(f"--judged {path}: no correlation is defined, {reason}")
    return test


def _without_judged(
    pairs: list[corpus.Pair], tests: Sequence[JudgedSegments], counts: corpus.Counts
) -> list[corpus.Pair]:
    texts = {
        text
        for test in tests
        for column in (test.sources, test.predictions, test.references)
        for text in column
        if text
    }
    keys = {corpus.text_key(text) for text in texts}
    kept = [pair for pair in pairs if keys.isdisjoint((corpus.text_key(pair.source), corpus.text_key(pair.target)))]
    counts.left_out["judged"] += len(pairs) - len(kept)
    return kept


def _teacher_vectors(work: Path, folder: Path, texts: list[str]) -> np.ndarray:
    """(n, d) float32 vectors of the texts, in a file of the work folder; an interrupted computation goes on where it
    was."""
    path, progress = work / "teacher.npy", work / "teacher.json"
    done = json.loads(progress.read_text(encoding="utf-8")) if progress.exists() else 0
    if done < len(texts):
        teacher = sentence_model(folder, _device())
        if done:
            vectors = np.load(path, mmap_mode="r+", allow_pickle=False)
        else:
            vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(texts), _width(teacher)))
        for first in range(done, len(texts), _TEXTS_PER_SAVE):
            part = slice(first, first + _TEXTS_PER_SAVE)
            vectors[part] = _encode(teacher, texts[part])
            vectors.flush()
            write_atomic(progress, json.dumps(min(part.stop, len(texts))))
            log.info("teacher: %d of %d texts", min(part.stop, len(texts)), len(texts))
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _trainer(
    run: loop.Run,
    config: DistilConfig,
    folder: Path,
    train: Sequence[corpus.Pair],
    held: Sequence[corpus.Pair],
    tests: Sequence[JudgedSegments],
    rows: dict[str, int],
    vectors: np.ndarray,
) -> Any:
    import torch
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import set_seed

    class DistilTrainer(SentenceTransformerTrainer):
        """Takes its batches from the plan, and evaluates on held-back pairs and judged segments."""

        def get_batch_sampler(self, *args: Any, **kwargs: Any) -> Any:
            return [batch.tolist() for batch in plan]

        def add_model_card_callback(self, *args: Any, **kwargs: Any) -> None:
            """The card that it would write quotes the training text."""

        def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            found = evaluate_student(self.model, held, np.array(vectors[[rows[english(pair)] for pair in held]]), tests)
            self.log({f"eval_{name}": value for name, value in found.items()})
            return found

    class TeacherLoss(torch.nn.Module):
        """Mean squared error of both sides; the labels are rows of the teacher's vectors, which stay on disk."""

        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any, labels: torch.Tensor) -> torch.Tensor:
            wanted = torch.from_numpy(vectors[labels.cpu().numpy()]).to(labels.device)
            errors = [
                torch.nn.functional.mse_loss(self.model(side)["sentence_embedding"].float(), wanted)
                for side in features
            ]
            return torch.stack(errors).mean()

    set_seed(run.seed)
    student = _student(run, folder, train, rows, vectors)
    groups = {name: np.flatnonzero([pair.group == name for pair in train]) for name in {pair.group for pair in train}}
    lengths = np.array([len(pair.source) + len(pair.target) for pair in train])
    plan = plan_batches(groups, lengths, config.pairs_per_step, config.steps, run.seed, config.words)
    matrices = [parameter for parameter in student.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in student.parameters() if parameter.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=config.learning_rate,
    )
    return DistilTrainer(
        model=student,
        args=loop.trainer_settings(
            run.work,
            config,
            config.learning_rate,
            run.seed,
            evaluate_every=config.evaluate_every,
            rows_per_step=config.pairs_per_step,
            arguments=SentenceTransformerTrainingArguments,
        ),
        train_dataset=_dataset(train, rows),
        eval_dataset=_dataset(held, rows),
        loss=TeacherLoss(student),
        optimizers=(optimizer, None),
    )


def _dataset(pairs: Sequence[corpus.Pair], rows: dict[str, int]) -> Any:
    from datasets import Dataset

    columns: dict[str, list[Any]] = {name: [getattr(pair, name) for pair in pairs] for name in ("source", "target")}
    return Dataset.from_dict(columns | {"label": [rows[english(pair)] for pair in pairs]})


def _student(
    run: loop.Run, folder: Path, train: Sequence[corpus.Pair], rows: dict[str, int], vectors: np.ndarray
) -> Any:
    """The student, with a linear projection at its end where its vectors have another width than the teacher's."""
    import torch
    from sentence_transformers.base.modules import Dense

    student = sentence_model(folder, _device())
    own, width = _width(student), vectors.shape[1]
    if own == width:
        return student
    path = run.work / "projection.npz"
    if not path.exists():
        # A random map would have the first steps drag the student away from all that it knows.
        sample = random.Random(run.seed).sample(train, min(len(train), _PAIRS_FOR_PROJECTION))
        wanted = vectors[[rows[english(pair)] for pair in sample]]
        found = _encode(student, [pair.source for pair in sample] + [pair.target for pair in sample])
        weight, bias = least_squares_map(found, np.concatenate([wanted, wanted]))
        with atomic_path(path) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, weight=weight, bias=bias)
    with np.load(path, allow_pickle=False) as saved:
        start = {name: torch.from_numpy(saved[name]).float() for name in ("weight", "bias")}
    projection = Dense(
        own, width, activation_function=torch.nn.Identity(), init_weight=start["weight"], init_bias=start["bias"]
    )
    student.append(projection.to(student.device))
    return student


def least_squares_map(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The affine map ``x W' + b`` from (n, s) vectors to (n, d) ones with the least squared error, slightly
    regularised.

    Returns:
        W (d, s) and b (d,), float64.
    """
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    centre, aim = found.mean(0), wanted.mean(0)
    centred = found - centre
    covariance = centred.T @ centred
    covariance += np.eye(len(covariance)) * (1e-4 * np.trace(covariance) / len(covariance))
    weight = np.linalg.solve(covariance, centred.T @ (wanted - aim)).T
    return weight, aim - weight @ centre


def evaluate_student(
    student: Any, held: Sequence[corpus.Pair], vectors: np.ndarray, tests: Sequence[JudgedSegments] = ()
) -> dict[str, float]:
    """Judges a sentence encoder on held-back pairs and on segments with human judgements.

    Args:
        student: a sentence-transformers model.
        held: n held-back pairs.
        vectors: (n, d) vectors of the teacher for their English sides.
        tests: judged segments.

    Returns:
        `mse`, the loss on the pairs; `pooled_p1`, the share of texts whose nearest neighbour on the other side is their
        translation, mean of both directions and of the language pairs, and those of each pair; `pearson`, the mean over
        `tests` of the correlation of the cosine of source and translation with the judgements, and those of each file,
        where it is defined.
    """
    sides = [_encode(student, [getattr(pair, name) for pair in held]) for name in ("source", "target")]
    result = {"mse": float(np.mean([np.square(side - vectors).mean() for side in sides]))}
    groups = np.array([pair.group for pair in held])
    for name in np.unique(groups):
        source, target = (side[groups == name] for side in sides)
        similarity = _units(source) @ _units(target).T
        truth = np.arange(len(similarity))
        result[f"pooled_p1_{name}"] = float(
            ((similarity.argmax(1) == truth).mean() + (similarity.argmax(0) == truth).mean()) / 2
        )
    result["pooled_p1"] = _mean(result, "pooled_p1_")
    for test in tests:
        similarity = cosines(_encode(student, test.sources), _encode(student, test.predictions))
        correlation = pearson(similarity, test.human)
        if correlation.reason:
            log.warning("%s: no correlation, %s", test.file, correlation.reason)
        else:
            result[f"pearson_{corpus.short_name(test.file)}"] = correlation.value
    if any(name.startswith("pearson_") for name in result):
        result["pearson"] = _mean(result, "pearson_")
    return {name: round(value, 6) for name, value in result.items()}


def _write(run: loop.Run, model: Any, record: dict[str, Any], history: list[dict[str, Any]]) -> None:
    with new_folder(run.output, run.overwrite) as folder:
        recording.save_sentence_encoder(model, folder)
        recording.write_record(folder, record, history)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _encode(model: Any, texts: Sequence[str]) -> np.ndarray:
    return model.encode(list(texts), show_progress_bar=False)


def _width(model: Any) -> int:
    return _encode(model, ["a"]).shape[1]


def _units(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def _mean(result: dict[str, float], prefix: str) -> float:
    return float(np.mean([value for name, value in result.items() if name.startswith(prefix)]))
