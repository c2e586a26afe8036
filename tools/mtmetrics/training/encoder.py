"""Trains one multilingual encoder from an English sentence encoder and parallel text."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mtmetrics.artifacts.models import model_folder, pretrained
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.judgements.judged import Judged
from mtmetrics.training import corpus, vocabulary
from mtmetrics.training.configs import EncoderConfig
from mtmetrics.training.objective import Distillation, SentenceBatches, encode, paired_token_similarity, pooled
from mtmetrics.training.run import Run, pinned, save_model
from mtmetrics.training.trainers import Judging, decay_groups, planned_trainer, trainer_settings

_TEXTS_PER_BATCH = 64


def train_encoder(
    run: Run,
    text: corpus.ParallelText,
    teacher: str | Path,
    *,
    judged: Sequence[str | Path] = (),
    config: EncoderConfig,
) -> Path:
    """Trains an encoder that reads many languages as an English one reads their translations, and writes its folder.

    The body of the English encoder and the vectors of its usual pieces are kept; pieces of the other languages, which
    English does not share, join them, and begin as means of the vectors of English pieces that occur in the same
    sentences (`vocabulary.two_tokenizers`, `vocabulary.counted_vectors`). Then the frozen original teaches token and
    sentence vectors of one layer (`objective.Distillation`). The folder has a tokenizer of its own for English.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        text: see `corpus.read_distillation`, as for `judged`; each file's name begins with its language pair, whose
            target is English, e.g. ``de-en.jsonl.gz``.
        teacher: an English sentence encoder of the BERT architecture with a lower-casing WordPiece vocabulary.

    Raises:
        MTMetricsError: the training diverged, or as all trainings.
    """
    folder = model_folder(teacher)
    run.open(config, {"parallel": text.files, "judged": judged}, teacher=pinned(teacher, folder), **text.chosen)
    original, model = _load_teacher(folder, config.layer)
    data = corpus.read_distillation(text, judged, config, seed=run.seed, processes=run.processes)
    for group in sorted({pair.group for pair in [*data.train, *data.held]}):
        if not group.removesuffix(".words").endswith("-en"):
            rule = "so each file's name begins with a pair into it, such as de-en.jsonl"
            raise InputError(f"--parallel {group}: the teacher reads English, {rule}")
    sizes = (config.vocabulary, config.english_pieces, config.characters)
    tokenizers = run.tokenizers(lambda: vocabulary.two_tokenizers(data.train, original, *sizes, run.seed))
    tokenizers["teacher"] = original
    student = _student(run, data.train, tokenizers, model)
    top = list(student.encoder.layer[config.layer :])
    for network in (student, model):
        network.encoder.layer = network.encoder.layer[: config.layer]
    trainer = _trainer(run, config, student, model, tokenizers, data)
    record = data.record() | run.train_and_judge(trainer)
    student.encoder.layer.extend(top)
    with run.artifact("multilingual encoder", "mtmetrics train encoder", **record) as temporary:
        save_model(student, tokenizers["others"], temporary)
        vocabulary.save_tokenizer(tokenizers["english"], temporary / "languages" / "en")
    return run.output


def _load_teacher(folder: Path, layer: int) -> tuple[Any, Any]:
    from transformers import AutoConfig

    kind = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if kind.model_type != "bert":
        needed = "an encoder of the BERT architecture is needed"
        raise InputError(f"--teacher {folder}: {needed}, this is {kind.model_type}")
    if layer > kind.num_hidden_layers:
        raise InputError(f"layer {layer}: the teacher has the layers 1 to {kind.num_hidden_layers}")
    tokenizer, model = pretrained("BertModel", folder, torch.float32)
    model.pooler = None  # no part of token vectors or their mean
    # On CPUs, the gradient of the fused attention is slow for texts as short as these.
    model.set_attn_implementation("eager")
    return tokenizer, model


def _student(run: Run, train: Sequence[corpus.Pair], tokenizers: dict[str, Any], teacher: Any) -> Any:
    """A copy of the teacher with counted word vectors for the new vocabulary, and without dropout."""
    tokenizer = tokenizers["others"]
    old = teacher.embeddings.word_embeddings.weight.detach().numpy()
    readers = [tokenizers[name] for name in ("others", "english", "teacher")]
    vectors = run.array("vectors", lambda: vocabulary.counted_vectors(train, *readers, old))
    student = copy.deepcopy(teacher)
    student.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    student.config.pad_token_id = student.embeddings.word_embeddings.padding_idx = tokenizer.pad_token_id
    for module in student.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    student.config.hidden_dropout_prob = student.config.attention_probs_dropout_prob = 0.0
    with torch.no_grad():
        student.embeddings.word_embeddings.weight.copy_(torch.from_numpy(vectors))
    return student


def _trainer(
    run: Run,
    config: EncoderConfig,
    student: Any,
    teacher: Any,
    tokenizers: dict[str, Any],
    data: corpus.DistillationText,
) -> Any:
    from transformers import set_seed

    class PairTrainer(Judging, planned_trainer()):
        """Evaluates on held-back pairs and judged segments."""

        def judge(self) -> dict[str, float]:
            model = self.model.eval()
            device = next(model.parameters()).device
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
                return evaluate(model, held_back, data.tests, tokenizers, config.max_pieces)

    set_seed(run.seed)
    read = (tokenizers, config.max_pieces, run.seed)
    names = np.array([pair.group for pair in data.held])
    plan = [np.flatnonzero(names == name) for name in np.unique(names)]
    held_back = SentenceBatches(plan, data.held, *read)
    table = student.embeddings.word_embeddings.weight
    body = (values for values in student.parameters() if values is not table)
    groups = [
        {"params": [table], "lr": config.vector_lr, "weight_decay": 0.0},
        *decay_groups(body, config.weight_decay, lr=config.body_lr),
    ]
    return PairTrainer(
        model=Distillation(student, teacher, config.temperature, config.distance_weight, config.candidates),
        args=trainer_settings(run, config, config.body_lr),
        train_dataset=SentenceBatches(data.plan, data.train, *read, config.english, config.worsened),
        eval_dataset=held_back,
        optimizers=(torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True), None),
    )


def evaluate(
    model: Any, held: Any, tests: Sequence[Judged], tokenizers: dict[str, Any], max_pieces: int
) -> dict[str, float]:
    """Judges an `objective.Distillation`: its mean loss on held-back `SentenceBatches`, and on judged segments
    correlations of the mean of the tokens' greatest cosines, and of the cosine of the mean vectors."""
    device = next(model.parameters()).device
    batches = ({name: value.to(device) for name, value in held[number].items()} for number in range(len(held)))
    loss = float(np.mean([model(**batch)["loss"].item() for batch in batches]))
    if not np.isfinite(loss):
        what_to_do = "begin again with --restart and lower --vector-lr and --body-lr"
        raise MTMetricsError(f"the loss is no longer finite; {what_to_do}")
    result = {"held_back_loss": loss}
    found = [_similarities(model.student, segments, tokenizers, max_pieces) for segments in tests]
    for kind, values in zip(("token_r", "sentence_r"), zip(*found, strict=True), strict=False):
        result |= corpus.correlations(kind, values, tests)
    return {name: round(value, 4) for name, value in result.items()}


def _similarities(student: Any, segments: Judged, tokenizers: dict[str, Any], max_pieces: int) -> np.ndarray:
    """Of tokens and of sentence vectors, `(2, segments)`."""
    device = next(student.parameters()).device
    order = np.argsort([len(text) for text in segments.sources], kind="stable")
    result = np.zeros((2, len(segments)))
    for begin in range(0, len(order), _TEXTS_PER_BATCH):
        rows = order[begin : begin + _TEXTS_PER_BATCH]
        sides = []
        for reader, column in (("others", segments.sources), ("english", segments.predictions)):
            texts = [column[row] for row in rows]
            found = tokenizers[reader](texts, truncation=True, max_length=max_pieces, padding=True, return_tensors="pt")
            mask = found["attention_mask"].bool().to(device)
            sides += [encode(student, found["input_ids"].to(device), mask), mask]
        sentences = (pooled(*sides[:2]) * pooled(*sides[2:])).sum(-1)
        result[:, rows] = torch.stack([paired_token_similarity(*sides).float(), sentences]).cpu().numpy()
    return result
