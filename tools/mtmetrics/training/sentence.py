"""Trains sentence encoders: from sentence pairs alone (`train_contrastive`; UScore, Sec. 3.2), or from
an English teacher (`train_distil`; Reimers and Gurevych, 2020)."""

import contextlib
import functools
import logging
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.artifacts.models import (
    model_folder,
    read_record,
    require_one_vocabulary,
    sentence_model,
)
from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged
from mtmetrics.matching.pairs import cosines
from mtmetrics.models.vector_files import append_rows
from mtmetrics.probes.probing import distinct_pairs, precision_at
from mtmetrics.training import corpus
from mtmetrics.training.adapters import adapter_trainer, check_start, save_adapters
from mtmetrics.training.configs import ContrastiveConfig, DistilConfig
from mtmetrics.training.run import Run, pinned, save_model
from mtmetrics.training.trainers import (
    Judging,
    decay_groups,
    train_and_judge,
    trainer_settings,
)

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from transformers import TrainingArguments

# The texts of one side of a batch, as a sentence encoder reads them: tensors such as `input_ids` by
# name, and values that are no tensors.
Batch = dict[str, object]
log = logging.getLogger(__name__)
# Texts that `sentence_vectors` encodes together.
_ROWS_TOGETHER = 32
# The language that a teacher reads.
_LANGUAGE = "en"
_TEXTS_PER_SAVE = 2048
# The projection to the teacher's width begins as a least-squares fit to so many pairs.
_PAIRS_FOR_PROJECTION = 10_000


def train_contrastive(
    run: Run,
    parallel: Sequence[str | Path],
    model: str | Path,
    *,
    config: ContrastiveConfig,
) -> Path:
    """Trains a sentence encoder on sentence pairs, with the other pairs of a step as negatives.

    Training always begins with `model`: successive rounds of UScore each begin with the same one.

    Args:
        run: see `mtmetrics.training.run`, as for `config` and what is returned: a
            sentence-transformers folder, or with an `adapter_rank` one of adapters.
        parallel: see `corpus.read_pairs`. A pair of which a sentence occurred before is left out,
            since it would be its own negative.
        model: an encoder, which is mean-pooled; or, without adapters, a sentence-transformers
            model.
    """
    from transformers import set_seed

    start = model_folder(model)
    if config.adapter_rank:
        check_start(start, config.adapter_rank)
    else:
        require_one_vocabulary(start)
    run.open(config, {"parallel": parallel}, model=pinned(model, start))
    pairs, counts = corpus.read_pairs(parallel)
    train = distinct_pairs(_sides(pairs))
    counts.left_out["sentence repeated"] += len(pairs) - len(train)

    def loss(model: "SentenceTransformer", sides: Sequence[Batch], _: None) -> "torch.Tensor":
        first, second = (sentence_vectors(model, side) for side in sides)
        return contrastive_loss(first, second, temperature=config.temperature)

    set_seed(run.seed)
    steps = math.ceil(len(train) / (config.pairs_per_step * run.processes)) * config.epochs
    settings = _settings(run, config, steps)
    log.info("%d sentence pairs for training, %d steps", len(train), steps)
    if config.adapter_rank:
        by_texts = {(pair.source, pair.target): pair for pair in reversed(pairs)}
        kept = [by_texts[texts] for texts in train]
        trainer = adapter_trainer(start, kept, loss, settings, config)
        run.train(trainer)
    else:
        trainer = _trainer_class(loss)(
            model=sentence_model(start, run.device),
            args=settings,
            train_dataset=_columns(train),
        )
        with _texts_cut(trainer.model, config.max_pieces):
            run.train(trainer)
    record = {
        "started_from": read_record(start),
        "data": counts.as_dict(),
        "pairs": len(train),
        "steps": steps,
    }
    kind = "adapters of a sentence encoder" if config.adapter_rank else "sentence encoder"
    with run.artifact(kind, "mtmetrics train contrastive", **record) as folder:
        if config.adapter_rank:
            save_adapters(trainer.model, start, pairs, folder)
        else:
            _save(trainer.model, folder)
    return run.output


def train_distil(
    run: Run,
    text: corpus.ParallelText,
    teacher: str | Path,
    student: str | Path,
    *,
    judged: Sequence[str | Path] = (),
    config: DistilConfig,
) -> Path:
    """Trains a student whose vectors of both sides of a pair equal the teacher's vector of the
    English side.

    The loss is the mean squared error, over both sides. Where the student's vectors have another
    width than the teacher's, a linear projection is learnt with it and becomes part of the model;
    it begins as the least-squares map from the student's own vectors.

    Args:
        run: see `mtmetrics.training.run`, as for `config` and what is returned: a
            sentence-transformers folder.
        text: see `corpus.read_distillation`, as for `judged`; each file's name begins with its
            language pair, of which one is English (``en``).
        teacher: a sentence-transformers model for English.
        student: an encoder, which is mean-pooled, or a sentence-transformers model.
    """
    import torch
    from transformers import set_seed

    teacher_folder = model_folder(teacher)
    student_folder = model_folder(student)
    require_one_vocabulary(teacher_folder)
    require_one_vocabulary(student_folder)
    run.open(
        config,
        {"parallel": text.files, "judged": judged},
        **text.chosen,
        teacher=pinned(teacher, teacher_folder),
        student=pinned(student, student_folder),
    )
    data = corpus.read_distillation(text, judged, config, seed=run.seed, processes=run.processes)
    english_texts = list(dict.fromkeys(english(pair) for pair in [*data.train, *data.held]))
    row_of_text = {text: row for row, text in enumerate(english_texts)}
    with run.main_first():
        vectors = _teacher_vectors(run, teacher_folder, english_texts)

    def taught(pairs: Sequence[corpus.Pair]) -> np.ndarray:
        """The teacher's vectors of the English sides of n pairs, (n, d)."""
        return vectors[[row_of_text[english(pair)] for pair in pairs]]

    def loss(
        model: "SentenceTransformer",
        sides: Sequence[Batch],
        labels: torch.Tensor,
    ) -> torch.Tensor:
        # The labels are rows of the teacher's vectors, which stay on disk.
        teacher_vectors = torch.from_numpy(vectors[labels.cpu().numpy()]).to(labels.device)
        losses = []
        for side in sides:
            student_vectors = model(side)["sentence_embedding"].float()
            losses.append(torch.nn.functional.mse_loss(student_vectors, teacher_vectors))
        return torch.stack(losses).mean()

    class DistilTrainer(Judging, _trainer_class(loss)):
        """Takes its batches from the plan."""

        def get_batch_sampler(self, *args: object, **kwargs: object) -> list[list[int]]:
            return [batch.tolist() for batch in data.plan]

    def judge(model: "SentenceTransformer") -> dict[str, float]:
        return evaluate_student(model, data.held, taught(data.held), data.tests)

    set_seed(run.seed)
    learner = sentence_model(student_folder, run.device)
    _fit_width(learner, run.seed, data.train, taught)
    groups = decay_groups(learner.parameters(), config.weight_decay)
    labels = [row_of_text[english(pair)] for pair in data.train]
    trainer = DistilTrainer(
        judge,
        model=learner,
        args=_settings(run, config),
        train_dataset=_columns(_sides(data.train), label=labels),
        eval_dataset=_columns(_sides(data.held)),
        optimizers=(torch.optim.AdamW(groups, lr=config.learning_rate), None),
    )
    with _texts_cut(learner, config.max_pieces):
        judgement = train_and_judge(run, trainer)
    record = {"started_from": read_record(student_folder), **data.record(), **judgement}
    with run.artifact("sentence encoder", "mtmetrics train distil", **record) as folder:
        _save(learner, folder)
    return run.output


def contrastive_loss(
    first: "torch.Tensor",
    second: "torch.Tensor",
    *,
    temperature: float = 0.05,
    margin: float = 0.0,
    symmetric: bool = True,
) -> "torch.Tensor":
    """Mean of ``-log softmax(cos(x_i, y_j) / temperature)`` at ``j = i``, as the published code of
    UScore has it.

    Eq. 4 of the paper leaves the pair itself out of the denominator; the code, like the works that
    the equation follows, keeps it. (The losses of sentence-transformers take the mean of the two
    directions, and know no margin.)

    Args:
        first: (n, d) vectors x.
        second: (n, d) vectors y; row i belongs to row i of `first`.
        temperature: divides the cosines.
        margin: is subtracted from the cosine of a pair before that.
        symmetric: add the loss of the other direction, from y to x (a sum, not a mean).
    """
    import torch
    from torch.nn.functional import cross_entropy, normalize

    similarity = normalize(first, dim=-1) @ normalize(second, dim=-1).T
    identity = torch.eye(len(similarity), device=similarity.device)
    scores = (similarity - margin * identity) / temperature
    truth = torch.arange(len(scores), device=scores.device)
    loss = cross_entropy(scores, truth)
    return loss + cross_entropy(scores.T, truth) if symmetric else loss


def sentence_vectors(model: "SentenceTransformer", batch: Batch) -> "torch.Tensor":
    """(n, d) float32 vectors of a batch that is padded on the right.

    Texts of about the same length are encoded together, which saves padding."""
    import torch

    lengths = batch["attention_mask"].sum(1)
    by_length = lengths.argsort(stable=True)
    vectors = []
    for rows in by_length.split(_ROWS_TOGETHER):
        longest = int(lengths[rows].max())
        part: Batch = {}
        for name, value in batch.items():
            part[name] = value[rows, :longest] if torch.is_tensor(value) else value
        vectors.append(model(part)["sentence_embedding"].float())
    return torch.cat(vectors)[by_length.argsort()]


def english(pair: corpus.Pair) -> str:
    """The English side of a pair, as the name of its file says; InputError if neither is."""
    rule = (
        "the teacher reads English, so each file's name begins with a language pair of it, e.g. "
        "de-en.jsonl"
    )
    languages = corpus.languages_of(pair.group, rule)
    if _LANGUAGE not in languages:
        raise InputError(f"--parallel {pair.group}: {rule}")
    return pair.source if languages[0] == _LANGUAGE else pair.target


def _teacher_vectors(run: Run, folder: Path, texts: list[str]) -> np.ndarray:
    """(n, d) float32 vectors of the texts, in a file of the work folder, which is filled step by
    step."""
    path = run.work / "teacher-texts.vectors"  # an older teacher.json is of another form
    teacher = functools.cache(lambda: sentence_model(folder, run.device))

    def vectors(part: slice) -> list[np.ndarray]:
        return [np.float32(_encode(teacher(), texts[part]))]

    append_rows([path], len(texts), _TEXTS_PER_SAVE, vectors)
    return np.memmap(path, dtype=np.float32, mode="r").reshape(len(texts), -1)


def _fit_width(
    student: "SentenceTransformer",
    seed: int,
    train: Sequence[corpus.Pair],
    taught: Callable[[Sequence[corpus.Pair]], np.ndarray],
) -> None:
    """Adds a linear projection to a student whose vectors have another width than the teacher's.

    Args:
        student: gets the projection as its last module.
        seed: of the choice of the pairs from which it is fitted.
        train: the pairs to train on.
        taught: returns the teacher's vectors of pairs.
    """
    import torch

    try:
        from sentence_transformers.base.modules import Dense
    except ImportError:  # before sentence-transformers 6
        from sentence_transformers.models import Dense

    student_width, width = _encode(student, ["a"]).shape[1], taught(train[:1]).shape[1]
    if student_width == width:
        return

    # A random map would have the first steps drag the student away from all that it knows.
    sample = random.Random(seed).sample(train, min(len(train), _PAIRS_FOR_PROJECTION))
    texts = [pair.source for pair in sample] + [pair.target for pair in sample]
    # Both sides of a pair have the teacher's vector of the English side as their target.
    targets = np.tile(taught(sample), (2, 1))
    weight, bias = least_squares_map(_encode(student, texts), targets)
    projection = Dense(
        student_width,
        width,
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(weight, dtype=torch.float32),
        init_bias=torch.tensor(bias, dtype=torch.float32),
    )
    student.append(projection.to(student.device))


def least_squares_map(inputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The affine map ``x W' + b`` from (n, s) to (n, d) vectors with the least squared error,
    slightly regularised: W (d, s) and b (d,), float64."""
    inputs, targets = inputs.astype(np.float64), targets.astype(np.float64)
    input_mean, target_mean = inputs.mean(0), targets.mean(0)
    centred = inputs - input_mean
    covariance = centred.T @ centred
    covariance += np.eye(len(covariance)) * (1e-4 * np.trace(covariance) / len(covariance))
    weight = np.linalg.solve(covariance, centred.T @ (targets - target_mean)).T
    return weight, target_mean - weight @ input_mean


def evaluate_student(
    student: "SentenceTransformer",
    held: Sequence[corpus.Pair],
    vectors: np.ndarray,
    tests: Sequence[Judged] = (),
) -> dict[str, float]:
    """Judges a sentence encoder.

    Args:
        student: the encoder.
        held: n held-back pairs.
        vectors: (n, d) the teacher's vectors of their English sides.
        tests: judged segments.

    Returns:
        Name of a measure -> its value:

        - ``mse``: the loss on the pairs.
        - ``pooled_p1_GROUP``: the share of texts of a language pair whose nearest neighbour on the
          other side is their translation, mean of both directions; ``pooled_p1``: their mean.
        - ``pearson``, ``pearson_FILE``: see `corpus.correlations`, of the cosine of source and
          translation.
    """
    from sentence_transformers.util import cos_sim

    source_vectors = _encode(student, [pair.source for pair in held])
    target_vectors = _encode(student, [pair.target for pair in held])
    losses = [np.square(side - vectors).mean() for side in (source_vectors, target_vectors)]
    result = {"mse": float(np.mean(losses))}
    groups = np.array([pair.group for pair in held])
    precisions = []
    for name in np.unique(groups):
        is_in_group = groups == name
        similarity = cos_sim(source_vectors[is_in_group], target_vectors[is_in_group]).numpy()
        truth = np.arange(len(similarity))
        both = [precision_at(scores, 1, truth) for scores in (similarity, similarity.T)]
        precisions.append(float(np.mean(both)))
        result[f"pooled_p1_{name}"] = precisions[-1]
    result["pooled_p1"] = float(np.mean(precisions))
    similarities = [
        cosines(_encode(student, test.sources), _encode(student, test.predictions))
        for test in tests
    ]
    result |= corpus.correlations("pearson", similarities, tests)
    return {name: round(value, 6) for name, value in result.items()}


def _encode(model: "SentenceTransformer", texts: Sequence[str]) -> np.ndarray:
    """(n, d) float32 vectors of texts."""
    return model.encode(list(texts), show_progress_bar=False)


def _trainer_class(
    loss: Callable[["SentenceTransformer", Sequence[Batch], object], "torch.Tensor"],
) -> "type[SentenceTransformerTrainer]":
    """The class of trainers of sentence encoders with a loss, which is called with the model, the
    batches of both sides, and the labels."""
    from sentence_transformers import SentenceTransformerTrainer

    class Trainer(SentenceTransformerTrainer):
        def add_model_card_callback(self, *args: object, **kwargs: object) -> None:
            """Adds nothing: the card that the library would write quotes the training text."""

        def compute_loss(
            self,
            model: "SentenceTransformer",
            inputs: Batch,
            *args: object,
            **kwargs: object,
        ) -> "torch.Tensor":
            return loss(model, *self.collect_features(inputs))

    return Trainer


def _settings(
    run: Run,
    config: ContrastiveConfig | DistilConfig,
    steps: int = 0,
) -> "TrainingArguments":
    """The settings of a trainer of sentence encoders; `steps` is their number in all epochs, where
    the config does not name it."""
    from sentence_transformers import SentenceTransformerTrainingArguments

    return trainer_settings(
        run,
        config,
        config.learning_rate,
        steps=steps,
        rows_per_step=config.pairs_per_step,
        arguments=SentenceTransformerTrainingArguments,
    )


def _sides(pairs: Sequence[corpus.Pair]) -> list[tuple[str, str]]:
    """The source and the target of each pair."""
    return [(pair.source, pair.target) for pair in pairs]


def _columns(pairs: Sequence[tuple[str, str]], **columns: list[int]) -> "Dataset":
    """A data set of sources and targets, with further columns by name."""
    from datasets import Dataset

    sources, targets = map(list, zip(*pairs, strict=True))
    return Dataset.from_dict({"source": sources, "target": targets, **columns})


@contextlib.contextmanager
def _texts_cut(model: "SentenceTransformer", pieces: int) -> Iterator[None]:
    """Cuts texts at so many pieces inside the block; then the model has its old limit again, which
    the artifact keeps."""
    limit = model.max_seq_length
    model.max_seq_length = min(pieces, limit)
    yield
    model.max_seq_length = limit


def _save(model: "SentenceTransformer", folder: Path) -> None:
    """Saves a model whose first module is a transformer, with its weights in float16."""
    model.save_pretrained(str(folder), create_model_card=False)
    network = model[0].auto_model
    network.pooler = None  # of BERT and its kin: no part of a mean over tokens, and not trained
    # The library has written the weights in float32.
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    save_model(network, model.tokenizer, folder)
