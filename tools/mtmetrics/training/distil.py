"""Multilingual distillation of an English teacher's sentence vectors (Reimers and Gurevych, 2020)."""

import dataclasses
import json
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import atomic_path, write_atomic
from mtmetrics.artifacts.models import model_folder, sentence_model
from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import Judged
from mtmetrics.evaluation.probes import precision_at
from mtmetrics.matching.pairs import cosines
from mtmetrics.training import corpus
from mtmetrics.training.run import Run, pinned, read_record
from mtmetrics.training.sentence import (
    pair_columns,
    save_sentence_encoder,
    sentence_settings,
    sentence_trainer,
    texts_cut,
)
from mtmetrics.training.settings import DistilConfig

log = logging.getLogger(__name__)
_LANGUAGE = "en"
_TEXTS_PER_SAVE = 2048
_PAIRS_FOR_PROJECTION = 10_000


def train_distil(
    run: Run,
    parallel: Sequence[str | Path],
    teacher: str | Path,
    student: str | Path,
    *,
    judged: Sequence[str | Path] = (),
    exclude: Sequence[str] = (),
    caps: dict[str, int] | None = None,
    config: DistilConfig | None = None,
) -> Path:
    """Trains a student whose vectors of both sides of a pair equal the teacher's vector of the English side.

    The loss is the mean squared error, over both sides. Where the student's vectors have another width than the
    teacher's, a linear projection is learnt with it and becomes part of the model; it begins as the least-squares map
    from the student's own vectors. The artifact is a sentence-transformers folder, weights in float16.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: see `corpus.read_pairs`; each file's name begins with its language pair, of which one is English
            (``en``).
        teacher: a sentence-transformers model for English; see `mtmetrics.artifacts.models.model_folder` for its name.
        student: an encoder, which is mean-pooled, or a sentence-transformers model.
        judged: segments with human judgements: every evaluation measures the correlation of the cosine of source and
            translation. Pairs that share a text with them are left out of training.
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
    models = {"teacher": pinned(teacher, folders["teacher"]), "student": pinned(student, folders["student"])}
    run.open(config, {"parallel": parallel, "judged": judged}, exclude=sorted(exclude), caps=caps or {}, **models)
    data = corpus.read_distillation(parallel, judged, exclude, caps, config, run.seed)
    rows = {text: row for row, text in enumerate(dict.fromkeys(english(pair) for pair in [*data.train, *data.held]))}
    with run.main_first():
        vectors = _teacher_vectors(run, folders["teacher"], list(rows))
    trainer = _trainer(run, config, folders["student"], data, rows, vectors)
    with texts_cut(trainer.model, config.max_pieces):
        before = run.once("before", trainer.judge)
        run.train(trainer)
        result = trainer.judge()
    record = {"started_from": read_record(folders["student"]), **data.record(), "before_training": before}
    with run.artifact("sentence encoder", "mtmetrics train distil", **record, result=result) as folder:
        save_sentence_encoder(trainer.model, folder)
    return run.output


def _trainer(
    run: Run,
    config: DistilConfig,
    folder: Path,
    data: corpus.DistillationText,
    rows: dict[str, int],
    vectors: np.ndarray,
) -> Any:
    import torch
    from transformers import set_seed

    def loss(model: Any, sides: Sequence[Any], labels: torch.Tensor) -> torch.Tensor:
        # The labels are rows of the teacher's vectors, which stay on disk.
        wanted = torch.from_numpy(vectors[labels.cpu().numpy()]).to(labels.device)
        found = [model(side)["sentence_embedding"].float() for side in sides]
        return torch.stack([torch.nn.functional.mse_loss(side, wanted) for side in found]).mean()

    class DistilTrainer(sentence_trainer(loss)):
        """Takes its batches from the plan, and evaluates on held-back pairs and judged segments."""

        def get_batch_sampler(self, *args: Any, **kwargs: Any) -> Any:
            return [batch.tolist() for batch in plan]

        def judge(self) -> dict[str, float]:
            wanted = vectors[[rows[english(pair)] for pair in data.held]]
            return evaluate_student(self.model, data.held, wanted, data.tests)

        def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            found = self.judge()
            self.log({f"eval_{name}": value for name, value in found.items()})
            return found

    set_seed(run.seed)
    student = _student(run, folder, data.train, rows, vectors)
    plan = data.plan(dataclasses.replace(config, steps=config.steps * run.processes), run.seed)
    matrices = [p for p in student.parameters() if p.ndim > 1]
    others = [p for p in student.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return DistilTrainer(
        model=student,
        args=sentence_settings(run, config, evaluate_every=config.evaluate_every),
        train_dataset=pair_columns(data.train, label=[rows[english(pair)] for pair in data.train]),
        eval_dataset=pair_columns(data.held),
        optimizers=(torch.optim.AdamW(groups, lr=config.learning_rate), None),
    )


def english(pair: corpus.Pair) -> str:
    """The English side of a pair, as the name of its file says; InputError if neither is."""
    languages = pair.group.removesuffix(".words").split("-")
    if len(languages) != 2 or _LANGUAGE not in languages:
        rule = "so each file's name begins with a language pair of it, e.g. de-en.jsonl"
        raise InputError(f"--parallel {pair.group}: the teacher reads English, {rule}")
    return pair.source if languages[0] == _LANGUAGE else pair.target


def _teacher_vectors(run: Run, folder: Path, texts: list[str]) -> np.ndarray:
    """(n, d) float32 vectors of the texts, in a file of the work folder, which is filled step by step."""
    path, progress = run.work / "teacher.npy", run.work / "teacher.json"
    done = json.loads(progress.read_text(encoding="utf-8")) if progress.exists() else 0
    if done < len(texts):
        teacher = sentence_model(folder, run.device)
        if done:
            vectors = np.load(path, mmap_mode="r+", allow_pickle=False)
        else:
            shape = (len(texts), _width(teacher))
            vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        for first in range(done, len(texts), _TEXTS_PER_SAVE):
            part = slice(first, first + _TEXTS_PER_SAVE)
            vectors[part] = _encode(teacher, texts[part])
            vectors.flush()
            write_atomic(progress, json.dumps(min(part.stop, len(texts))))
            log.info("teacher: %d of %d texts", min(part.stop, len(texts)), len(texts))
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _student(run: Run, folder: Path, train: Sequence[corpus.Pair], rows: dict[str, int], vectors: np.ndarray) -> Any:
    """The student, with a linear projection at its end where its vectors have another width than the teacher's."""
    import torch
    from sentence_transformers.base.modules import Dense

    student = sentence_model(folder, run.device)
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
        start = {f"init_{name}": torch.from_numpy(saved[name]).float() for name in ("weight", "bias")}
    student.append(Dense(own, width, activation_function=torch.nn.Identity(), **start).to(student.device))
    return student


def least_squares_map(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The affine map ``x W' + b`` from (n, s) to (n, d) vectors with the least squared error, slightly regularised:
    W (d, s) and b (d,), float64."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    centre, aim = found.mean(0), wanted.mean(0)
    centred = found - centre
    covariance = centred.T @ centred
    covariance += np.eye(len(covariance)) * (1e-4 * np.trace(covariance) / len(covariance))
    weight = np.linalg.solve(covariance, centred.T @ (wanted - aim)).T
    return weight, aim - weight @ centre


def evaluate_student(
    student: Any, held: Sequence[corpus.Pair], vectors: np.ndarray, tests: Sequence[Judged] = ()
) -> dict[str, float]:
    """Judges a sentence encoder on n held-back pairs, whose English sides have the teacher's vectors (n, d), and on
    judged segments.

    Returns:
        `mse`, the loss on the pairs; `pooled_p1`, the share of texts whose nearest neighbour on the other side is their
        translation, mean of both directions and of the language pairs, and those of each pair; `pearson`, see
        `corpus.correlations`, of the cosine of source and translation.
    """
    sides = [_encode(student, [getattr(pair, name) for pair in held]) for name in ("source", "target")]
    result = {"mse": float(np.mean([np.square(side - vectors).mean() for side in sides]))}
    tiny = np.finfo(np.float32).tiny
    units = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), tiny) for side in sides]
    groups = np.array([pair.group for pair in held])
    for name in np.unique(groups):
        similarity = units[0][groups == name] @ units[1][groups == name].T
        found = [precision_at(scores, 1, np.arange(len(scores))) for scores in (similarity, similarity.T)]
        result[f"pooled_p1_{name}"] = float(np.mean(found))
    result["pooled_p1"] = float(np.mean([value for name, value in result.items() if name.startswith("pooled_p1_")]))
    found = [cosines(_encode(student, test.sources), _encode(student, test.predictions)) for test in tests]
    result |= corpus.correlations("pearson", found, tests)
    return {name: round(value, 6) for name, value in result.items()}


def _encode(model: Any, texts: Sequence[str]) -> np.ndarray:
    return model.encode(list(texts), show_progress_bar=False)


def _width(model: Any) -> int:
    return _encode(model, ["a"]).shape[1]
