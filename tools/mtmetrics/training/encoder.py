"""Trains one small multilingual encoder from a large one and parallel text.

`train_encoder` cuts the vocabulary and the layers of the large encoder, its original, and trains the
rest by `mtmetrics.training.objective.Distillation`; `evaluate` judges it at every evaluation.
"""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from mtmetrics.artifacts.models import language_tokenizers, model_folder, pretrained
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.judgements.judged import Judged
from mtmetrics.training import corpus, labels, vocabulary
from mtmetrics.training.configs import EncoderConfig
from mtmetrics.training.objective import (
    Distillation,
    SentenceBatches,
    encode,
    token_similarity,
    unit_means,
)
from mtmetrics.training.run import Run, pinned, save_model
from mtmetrics.training.trainers import (
    Judging,
    decay_groups,
    planned_trainer,
    train_and_judge,
    trainer_settings,
)

if TYPE_CHECKING:
    from transformers import BertModel, PreTrainedTokenizerFast

# Texts that are encoded together in an evaluation.
_TEXTS_PER_BATCH = 64


def train_encoder(
    run: Run,
    text: corpus.ParallelText,
    begin: str | Path,
    *,
    judged: Sequence[str | Path] = (),
    outputs: Sequence[str | Path] = (),
    student: str | Path | None = None,
    config: EncoderConfig,
) -> Path:
    """Cuts a multilingual encoder to the languages of parallel text, trains it, and writes its
    folder.

    The student has the lowest layers of the original, and the pieces that the text needs
    (`vocabulary.cut_tokenizers`). The frozen original reads the English sides. It teaches the
    student which vectors the pieces of both sides have (`objective.Distillation`). The folder has a
    tokenizer of its own for English.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        text: see `corpus.read_distillation`, as for `judged`. Each file's name begins with its
            language pair; one side is English, e.g. ``de-en.jsonl.gz``.
        begin: a multilingual encoder of the BERT architecture with a Unigram vocabulary, such as
            intfloat/multilingual-e5-small.
        outputs: files of outputs of systems with their references, see `labels.read_outputs`. Those
            of judged sources are left out.
        student: an encoder that an earlier call made of the same original. It is trained further, in
            place of the original's lowest layers.

    Raises:
        InputError: a pair without English, another architecture, or fewer layers than are asked
            for.
        MTMetricsError: the training diverged, or as all trainings.
    """
    folder = model_folder(begin)
    student_folder = None if student is None else model_folder(student)
    run.open(
        config,
        {"parallel": text.files, "judged": judged, "outputs": outputs},
        begin=pinned(begin, folder),
        student=None if student_folder is None else pinned(str(student), student_folder),
        **text.chosen,
    )
    tokenizer, original = _load_original(begin, folder, config)
    data = corpus.read_distillation(text, judged, config, seed=run.seed, processes=run.processes)
    data = dataclasses.replace(data, train=_into_english(data.train), held=_into_english(data.held))

    def cut_tokenizers() -> "dict[str, PreTrainedTokenizerFast]":
        if student_folder is not None:
            others, _ = pretrained("BertModel", student_folder, torch.float32)
            return {"others": others, "english": language_tokenizers(student_folder)["en"]}
        return vocabulary.cut_tokenizers(
            _texts_by_language(data.train),
            tokenizer,
            config.vocabulary,
            config.english_pieces,
            config.characters,
            run.seed,
        )

    tokenizers = run.tokenizers(cut_tokenizers)
    teacher = _with_vocabulary(original, tokenizers["others"], tokenizer)
    network = copy.deepcopy(teacher)
    network.encoder.layer = network.encoder.layer[: config.layers]
    network.config.num_hidden_layers = config.layers
    if student_folder is not None:
        _, trained = pretrained("BertModel", student_folder, torch.float32)
        trained.pooler = None
        network.load_state_dict(trained.state_dict())
    teacher.encoder.layer = teacher.encoder.layer[: config.target_layer]
    if not config.vector_lr:
        network.embeddings.word_embeddings.requires_grad_(False)
    outputs_by_pair = _outputs_by_pair(outputs, data.tests)
    trainer = _trainer(run, config, network, teacher, tokenizers, data, outputs_by_pair)
    record = data.record() | train_and_judge(run, trainer)
    with run.artifact("multilingual encoder", "mtmetrics train encoder", **record) as temporary:
        save_model(network, tokenizers["others"], temporary)
        vocabulary.save_tokenizer(tokenizers["english"], temporary / "languages" / "en")
    return run.output


def _outputs_by_pair(
    files: Sequence[str | Path],
    tests: Sequence[Judged],
) -> dict[str, list[list[labels.Output]]]:
    """Reads outputs: language pair -> for each source its outputs, without sources of the judged
    segments."""
    judged_sources = {corpus.text_key(text) for segments in tests for text in segments.sources}
    by_source: dict[tuple[str, str], list[labels.Output]] = {}
    for output in labels.read_outputs(files) if files else []:
        if corpus.text_key(output.source) not in judged_sources:
            by_source.setdefault((output.pair, output.source), []).append(output)
    by_pair: dict[str, list[list[labels.Output]]] = {}
    for (pair, _), outputs_of_source in by_source.items():
        by_pair.setdefault(pair, []).append(outputs_of_source)
    return by_pair


def _load_original(
    begin: str | Path,
    folder: Path,
    config: EncoderConfig,
) -> "tuple[PreTrainedTokenizerFast, BertModel]":
    """The tokenizer and the network of the original, without dropout.

    Args:
        begin: the original as the user named it.
        folder: the folder where it lies.
        config: names the layers that are needed of it.
    """
    from transformers import AutoConfig

    about = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if about.model_type != "bert":
        raise InputError(
            f"{begin}: an encoder of the BERT architecture is needed, this is {about.model_type}"
        )
    for option in ("layers", "target_layer"):
        number = getattr(config, option)
        if number > about.num_hidden_layers:
            raise InputError(
                f"{option} {number}: {begin} has the layers 1 to {about.num_hidden_layers}"
            )
    tokenizer, network = pretrained("BertModel", folder, torch.float32)
    network.pooler = None  # no part of token vectors or their mean
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    network.config.hidden_dropout_prob = network.config.attention_probs_dropout_prob = 0.0
    # On CPUs, the gradient of the fused attention is slow for texts as short as these.
    network.set_attn_implementation("eager")
    return tokenizer, network


def _into_english(pairs: Sequence[corpus.Pair]) -> list[corpus.Pair]:
    """The pairs with English as their target; sides are exchanged where it is the source."""
    into_english = []
    for pair in pairs:
        # The group of word pairs has an ending: de-en.words.
        languages, dot, ending = pair.group.partition(".")
        first, _, second = languages.partition("-")
        if second == "en":
            into_english.append(pair)
        elif first == "en":
            group = f"{second}-en{dot}{ending}"
            into_english.append(corpus.Pair(pair.target, pair.source, pair.origin, group))
        else:
            raise InputError(
                f"--parallel {pair.group}: one side must be English, and the name begins with the "
                "pair, such as de-en.jsonl"
            )
    return into_english


def _texts_by_language(pairs: Sequence[corpus.Pair]) -> dict[str, list[str]]:
    """Distinct texts of every language, in order of first appearance."""
    texts: dict[str, dict[str, None]] = {"en": {}}
    for pair in pairs:
        texts["en"][pair.target] = None
        texts.setdefault(pair.group.partition("-")[0], {})[pair.source] = None
    return {language: list(distinct) for language, distinct in texts.items()}


def _with_vocabulary(
    original: "BertModel",
    tokenizer: "PreTrainedTokenizerFast",
    original_tokenizer: "PreTrainedTokenizerFast",
) -> "BertModel":
    """Cuts the word vectors of a network to those of the pieces of `tokenizer`, in place, and
    returns the network."""
    rows = torch.from_numpy(vocabulary.original_numbers(tokenizer, original_tokenizer))
    vectors = original.embeddings.word_embeddings.weight.detach()[rows].clone()
    table = torch.nn.Embedding(*vectors.shape, padding_idx=tokenizer.pad_token_id)
    table.weight = torch.nn.Parameter(vectors)
    original.embeddings.word_embeddings = table
    original.config.vocab_size = len(tokenizer)
    for name in ("pad", "bos", "eos"):
        setattr(original.config, f"{name}_token_id", getattr(tokenizer, f"{name}_token_id"))
    return original


def _trainer(
    run: Run,
    config: EncoderConfig,
    student: "BertModel",
    teacher: "BertModel",
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]",
    data: corpus.DistillationText,
    outputs: Mapping[str, Sequence[Sequence[labels.Output]]],
) -> Judging:
    """The trainer of a student, which evaluates on held-back pairs and judged segments. Word vectors
    have a learning rate of their own."""
    from transformers import set_seed

    class PairTrainer(Judging, planned_trainer()):
        """Evaluates on held-back pairs and judged segments."""

        def judge(self) -> dict[str, float]:
            model = self.model.eval()
            device = next(model.parameters()).device
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
                judgement = evaluate(model, held_back, data.tests, tokenizers, config.max_pieces)
            model.train()
            return judgement

    set_seed(run.seed)
    names = np.array([pair.group for pair in data.held])
    # One batch per language pair.
    held_plan = [np.flatnonzero(names == name) for name in np.unique(names)]
    held_back = SentenceBatches(held_plan, data.held, tokenizers, config.max_pieces, run.seed)
    word_vectors = student.embeddings.word_embeddings.weight
    other_weights = [values for values in student.parameters() if values is not word_vectors]
    groups = decay_groups(other_weights, config.weight_decay, lr=config.learning_rate)
    if config.vector_lr:
        groups.append({"params": [word_vectors], "lr": config.vector_lr, "weight_decay": 0.0})
    return PairTrainer(
        model=Distillation(
            student,
            teacher,
            temperature=config.temperature,
            distance_weight=config.distance_weight,
            english_weight=config.english_weight,
            negatives=config.negatives,
            start=copy.deepcopy(student) if outputs else None,
        ),
        args=trainer_settings(run, config, config.learning_rate),
        train_dataset=SentenceBatches(
            data.plan,
            data.train,
            tokenizers,
            config.max_pieces,
            run.seed,
            config.english,
            config.worsened,
            outputs,
            config.outputs_share,
        ),
        eval_dataset=held_back,
        optimizers=(torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True), None),
    )


def evaluate(
    model: Distillation,
    held: SentenceBatches,
    tests: Sequence[Judged],
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]",
    max_pieces: int,
) -> dict[str, float]:
    """Judges a student on held-back pairs and judged segments.

    Args:
        model: the student with its loss.
        held: batches of held-back pairs.
        tests: judged segments.
        tokenizers: of ``english`` texts and of ``others``.
        max_pieces: texts are cut there.

    Returns:
        Name of a measure -> its value:

        - ``held_back_loss``: the mean loss of the batches.
        - ``token_r``, ``token_r_FILE``: see `corpus.correlations`, of the mean of the tokens'
          nearest cosines.
        - ``sentence_r``, ``sentence_r_FILE``: of the cosine of the mean vectors.
    """
    device = next(model.parameters()).device
    losses = []
    for number in range(len(held)):
        batch = {name: value.to(device) for name, value in held[number].items()}
        losses.append(model(**batch)["loss"].item())
    loss = float(np.mean(losses))
    if not np.isfinite(loss):
        raise MTMetricsError(
            "the loss is no longer finite; begin again with --restart and a lower --learning-rate"
        )
    result = {"held_back_loss": loss}
    similarities = [
        _similarities(model.student, segments, tokenizers, max_pieces) for segments in tests
    ]
    result |= corpus.correlations("token_r", [by_token for by_token, _ in similarities], tests)
    result |= corpus.correlations("sentence_r", [by_mean for _, by_mean in similarities], tests)
    return {name: round(value, 4) for name, value in result.items()}


def _similarities(
    student: "BertModel",
    segments: Judged,
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]",
    max_pieces: int,
) -> np.ndarray:
    """(2, n) similarities of the sources and English translations of n segments: by tokens, and by
    mean vectors."""
    by_length = np.argsort([len(text) for text in segments.sources], kind="stable")
    similarities = np.zeros((2, len(segments)))
    for begin in range(0, len(by_length), _TEXTS_PER_BATCH):
        rows = by_length[begin : begin + _TEXTS_PER_BATCH]
        source = _encoded(student, tokenizers["others"], segments.sources, rows, max_pieces)
        english = _encoded(student, tokenizers["english"], segments.predictions, rows, max_pieces)
        similarities[0, rows] = token_similarity(*source, *english).float().cpu().numpy()
        similarities[1, rows] = (unit_means(*source) * unit_means(*english)).sum(-1).cpu().numpy()
    return similarities


def _encoded(
    student: "BertModel",
    tokenizer: "PreTrainedTokenizerFast",
    texts: Sequence[str],
    rows: np.ndarray,
    max_pieces: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, t, d) token vectors of the n texts in some rows; and (n, t) bool, tokens that are no
    padding."""
    device = next(student.parameters()).device
    encoded = tokenizer(
        [texts[row] for row in rows],
        truncation=True,
        max_length=max_pieces,
        padding=True,
        return_tensors="pt",
    )
    mask = encoded["attention_mask"].bool().to(device)
    return encode(student, encoded["input_ids"].to(device), mask), mask
