"""Trains one multilingual encoder from an English sentence encoder and parallel text."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import atomic_path, new_folder
from mtmetrics.artifacts.models import model_folder
from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.data import Judged
from mtmetrics.training import corpus
from mtmetrics.training.run import Run, pinned, save_model, trainer_settings
from mtmetrics.training.settings import EncoderConfig

log = logging.getLogger(__name__)
LANGUAGE = "en"
_TEXTS_PER_BATCH = 64


def train_encoder(
    run: Run,
    parallel: Sequence[str | Path],
    teacher: str | Path,
    *,
    judged: Sequence[str | Path] = (),
    exclude: Sequence[str] = (),
    caps: dict[str, int] | None = None,
    config: EncoderConfig | None = None,
) -> Path:
    """Trains an encoder that reads many languages as an English one reads their translations, and writes its folder.

    The body of the English encoder is kept; its word vectors are replaced by those of a multilingual vocabulary, which
    begin as means of the vectors of English pieces that occur in the same sentences (`start.counted_vectors`). Then the
    frozen original teaches token and sentence vectors of one layer (`objective.Distillation`).

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: JSON Lines of sentence pairs and ``.tsv`` word lists, see `corpus.read_pairs`; each file's name begins
            with its language pair, whose target is English, e.g. ``de-en.jsonl.gz``.
        teacher: an English sentence encoder of the BERT architecture with a lower-casing WordPiece vocabulary; see
            `mtmetrics.artifacts.models.model_folder` for its name.
        judged: segments with human judgements, on which every evaluation measures correlations of source and
            translation. Pairs that share a text with them are left out of training.
        exclude: origins to leave out.
        caps: at most that many rows per file of an origin.
        config: vocabulary and schedule.

    Returns:
        The artifact folder.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: the teacher cannot be found or loaded.
    """
    config = config or EncoderConfig()
    folder = model_folder(teacher)
    files = {"parallel": parallel, "judged": judged}
    run.open(config, files, teacher=pinned(teacher, folder), exclude=sorted(exclude), caps=caps or {})
    tests = corpus.read_tests(judged)
    pairs, counts = corpus.read_pairs(parallel, exclude, caps, run.seed)
    _require_english(pairs)
    pairs = corpus.without_judged(pairs, tests, counts)
    train, words, held = corpus.training_split(pairs, config.held_back_per_mille, config.held_back_per_pair, run.seed)
    log.info("%d sentence pairs and %d word pairs for training, %d held back", len(train), len(words), len(held))
    used = {"train": len(train), "words": len(words), "held_back": len(held)}
    train += words

    original, model = _load_teacher(folder, config.layer)
    tokenizer = _tokenizer(run, train, original, config)
    student = _student(run, train, tokenizer, original, model, config)
    top = _cut(student, config.layer)
    _cut(model, config.layer)
    trainer = _trainer(run, config, student, model, (tokenizer, original), (train, held), tests)
    before = run.once("before", trainer.evaluate)
    run.train(trainer)
    result = trainer.evaluate()
    student.encoder.layer.extend(top)
    student.config.num_hidden_layers = len(student.encoder.layer)
    record = {"data": counts.as_dict(), "pairs": used, "before_training": before, "result": result}
    with run.artifact("multilingual encoder", "mtmetrics train encoder", **record) as temporary:
        save_model(student, tokenizer, temporary)
    return run.output


def _require_english(pairs: Sequence[corpus.Pair]) -> None:
    for group in sorted({pair.group for pair in pairs}):
        if not group.removesuffix(".words").endswith(f"-{LANGUAGE}"):
            raise InputError(
                f"--parallel {group}: the teacher reads English, so each file's name begins with a pair "
                f"into it, such as de-{LANGUAGE}.jsonl"
            )


def _load_teacher(folder: Path, layer: int) -> tuple[Any, Any]:
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertModel

    kind = AutoConfig.from_pretrained(folder, local_files_only=True)
    if kind.model_type != "bert":
        raise InputError(
            f"--teacher {folder}: an encoder of the BERT architecture is needed, this is {kind.model_type}"
        )
    if not 1 <= layer <= kind.num_hidden_layers:
        raise InputError(f"layer {layer}: the teacher has the layers 1 to {kind.num_hidden_layers}")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    # On CPUs, the gradient of the fused attention is slow for texts as short as these.
    options = {"dtype": torch.float32, "add_pooling_layer": False, "attn_implementation": "eager"}
    return tokenizer, BertModel.from_pretrained(folder, local_files_only=True, **options)


def _tokenizer(run: Run, train: Sequence[corpus.Pair], original: Any, config: EncoderConfig) -> Any:
    from transformers import PreTrainedTokenizerFast

    from mtmetrics.training import vocabulary
    from mtmetrics.training.encoder.start import multilingual_tokenizer

    folder = run.work / "tokenizer"
    if not folder.exists():
        made = multilingual_tokenizer(
            train, original, config.vocabulary, config.english_pieces, config.characters, run.seed
        )
        with new_folder(folder) as temporary:
            vocabulary.save_tokenizer(made, temporary)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def _student(
    run: Run, train: Sequence[corpus.Pair], tokenizer: Any, original: Any, teacher: Any, config: EncoderConfig
) -> Any:
    """A copy of the teacher with counted word vectors for the new vocabulary."""
    import copy

    import torch

    from mtmetrics.training.encoder.start import counted_vectors

    path = run.work / "vectors.npy"
    if not path.exists():
        old = teacher.embeddings.word_embeddings.weight.detach().numpy()
        vectors = counted_vectors(train, tokenizer, original, old)
        with atomic_path(path) as temporary, open(temporary, "wb") as stream:
            np.save(stream, vectors)
    student = copy.deepcopy(teacher)
    student.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    student.config.pad_token_id = tokenizer.pad_token_id
    student.embeddings.word_embeddings.padding_idx = tokenizer.pad_token_id
    for module in student.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    student.config.hidden_dropout_prob = student.config.attention_probs_dropout_prob = 0.0
    with torch.no_grad():
        student.embeddings.word_embeddings.weight.copy_(torch.from_numpy(np.load(path, allow_pickle=False)))
    return student


def _cut(model: Any, layer: int) -> list[Any]:
    """Cuts a model off above a layer; returns what was above it."""
    top = list(model.encoder.layer[layer:])
    model.encoder.layer = model.encoder.layer[:layer]
    return top


def _trainer(
    run: Run,
    config: EncoderConfig,
    student: Any,
    teacher: Any,
    tokenizers: tuple[Any, Any],
    pairs: tuple[Sequence[corpus.Pair], Sequence[corpus.Pair]],
    tests: Sequence[Judged],
) -> Any:
    import torch
    from transformers import Trainer, set_seed

    from mtmetrics.training.encoder import batches, objective

    class PairTrainer(Trainer):
        """Takes whole batches from the plan, in its order, and evaluates on held-back pairs and judged segments."""

        def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
            from torch.utils.data import SequentialSampler

            return SequentialSampler(self.train_dataset)

        def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            self.model.eval()
            device = next(self.model.parameters()).device
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
                found = _evaluated(self.model, held_batches, tests, tokenizers[0], config.max_pieces)
            self.log({f"eval_{name}": value for name, value in found.items()})
            return found

    train, held = pairs
    set_seed(run.seed)
    model = objective.Distillation(student, teacher, config.temperature, config.distance_weight, config.candidates)
    lengths = np.array([len(pair.source) + len(pair.target) for pair in train])
    groups = [pair.group for pair in train]
    plan = corpus.plan_batches(groups, lengths, config.pairs_per_step, config.steps, run.seed, config.words)
    data = batches.PairBatches(train, plan, *tokenizers, config.max_pieces, run.seed, config.english, config.worsened)
    names = np.array([pair.group for pair in held])
    held_plan = [np.flatnonzero(names == name) for name in np.unique(names)]
    held_batches = batches.PairBatches(held, held_plan, *tokenizers, config.max_pieces, run.seed)
    tables = list(student.embeddings.word_embeddings.parameters())
    matrices = [p for p in student.parameters() if p.ndim > 1 and p is not tables[0]]
    vectors = [p for p in student.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": tables, "lr": config.vector_lr, "weight_decay": 0.0},
            {"params": matrices, "lr": config.body_lr, "weight_decay": config.weight_decay},
            {"params": vectors, "lr": config.body_lr, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
        fused=True,
    )
    arguments = trainer_settings(run.work, config, config.body_lr, run.seed, evaluate_every=config.evaluate_every)
    return PairTrainer(
        model=model,
        args=arguments,
        train_dataset=data,
        eval_dataset=held_batches,
        data_collator=lambda items: items[0],
        optimizers=(optimizer, None),
    )


def _evaluated(model: Any, held: Any, tests: Sequence[Judged], tokenizer: Any, max_pieces: int) -> dict[str, float]:
    """Mean loss over the held-back batches, and Pearson's r of the similarities of sources and translations.

    Args:
        model: an `objective.Distillation` in evaluation mode.
        held: `batches.PairBatches` of the held-back pairs.
        tests: judged segments.
        tokenizer: of the student.
        max_pieces: texts are cut at that many pieces.

    Returns:
        ``held_back_loss``, and for each test set ``token_r_NAME`` (mean of the greatest cosines of the tokens) and
        ``sentence_r_NAME`` (cosine of the mean vectors); ``token_r`` and ``sentence_r`` are their means.
    """
    device = next(model.parameters()).device
    losses = []
    for number in range(len(held)):
        batch = {name: value.to(device) for name, value in held[number].items()}
        losses.append(model(**batch)["loss"].item())
    result = {"held_back_loss": round(float(np.mean(losses)), 4)}
    names = [corpus.short_name(test.file) for test in tests]
    for name, segments in zip(names, tests, strict=True):
        found = _similarities(model.student, segments, tokenizer, max_pieces)
        for kind, values in zip(("token", "sentence"), found, strict=True):
            result[f"{kind}_r_{name}"] = round(pearson(values, segments.human).value, 4)
    for kind in ("token", "sentence"):
        if tests:
            result[f"{kind}_r"] = round(float(np.mean([result[f"{kind}_r_{name}"] for name in names])), 4)
    return result


def _similarities(student: Any, segments: Judged, tokenizer: Any, max_pieces: int) -> tuple[np.ndarray, np.ndarray]:
    from mtmetrics.training.encoder.objective import encode, paired_token_similarity, pooled

    device = next(student.parameters()).device
    order = np.argsort([len(text) for text in segments.sources], kind="stable")
    tokens, sentences = np.zeros(len(segments)), np.zeros(len(segments))
    for begin in range(0, len(order), _TEXTS_PER_BATCH):
        rows = order[begin : begin + _TEXTS_PER_BATCH]
        sides = []
        for column in (segments.sources, segments.predictions):
            texts = [column[row] for row in rows]
            found = tokenizer(texts, truncation=True, max_length=max_pieces, padding=True, return_tensors="pt")
            mask = found["attention_mask"].bool().to(device)
            sides += [encode(student, found["input_ids"].to(device), mask), mask]
        tokens[rows] = paired_token_similarity(*sides).float().cpu().numpy()
        sentences[rows] = (pooled(*sides[:2]) * pooled(*sides[2:])).sum(-1).float().cpu().numpy()
    return tokens, sentences
