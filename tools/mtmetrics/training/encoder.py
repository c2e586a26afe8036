"""Trains a small multilingual encoder, the student, from a large one and parallel text.

`train_encoder` cuts the vocabulary and the layers of the large encoder, the original, and trains the
rest by `mtmetrics.training.objective.Distillation`. `evaluate` measures the student during training.
"""

import copy
import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from mtmetrics.artifacts.models import language_tokenizers, model_config, model_folder, pretrained
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.judgements.judged import Judged
from mtmetrics.training import corpus, labels, vocabulary
from mtmetrics.training.configs import EncoderConfig
from mtmetrics.training.objective import (
    Distillation,
    SentenceBatches,
    encode,
    token_similarity,
    tokenised,
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

# Number of texts that are encoded together in an evaluation.
_TEXTS_PER_BATCH = 64
# Length by which the vector of the type of English tokens differs from the usual one, relative to the
# mean length of the word vectors. The token vectors of the original have a cosine of 0.99 with those
# that come out then.
_ENGLISH_SHIFT = 0.3


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

    The student has the lowest layers of the original, and the subwords that the text needs
    (`vocabulary.cut_tokenizers`). The frozen original is the teacher: it reads the English sides, and
    its vectors are the goals of the tokens of both sides (`objective.Distillation`). The folder has a
    separate tokenizer for English.

    Args:
        run: the folder, seed and device of the training, see `mtmetrics.training.run`.
        text: the parallel text, see `corpus.read_distillation`. The name of each file begins with its
            language pair; one side is English, e.g. ``de-en.jsonl.gz``.
        begin: the original: a multilingual encoder of the BERT architecture with a Unigram vocabulary,
            such as intfloat/multilingual-e5-small.
        judged: files of judged segments for the evaluation, see `corpus.read_distillation`.
        outputs: files of outputs of translation systems with their references, see
            `labels.read_outputs`. Outputs of judged sources are left out.
        student: an encoder that an earlier call made from the same original. It is trained further, in
            place of the original's lowest layers.
        config: the options of the training.

    Returns:
        The folder of the student.

    Raises:
        InputError: a language pair without English, an original of another architecture, or one with
            too few layers.
        MTMetricsError: the loss or a weight is not finite, or a checkpoint cannot be written.
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
            config.characters,
            run.seed,
        )

    tokenizers = run.tokenizers(cut_tokenizers)
    teacher = _with_vocabulary(original, tokenizers["others"], tokenizer)
    network = _with_english_type(copy.deepcopy(teacher))
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
        save_model(
            network, tokenizers["others"], temporary, float8=["embeddings.word_embeddings.weight"]
        )
        vocabulary.save_tokenizer(tokenizers["english"], temporary / "languages" / "en")
    return run.output


def _outputs_by_pair(
    files: Sequence[str | Path],
    tests: Sequence[Judged],
) -> dict[str, list[list[labels.Output]]]:
    """Reads outputs of translation systems: language pair -> for each source its outputs.

    Sources of the judged segments are left out.
    """
    judged_sources = {corpus.text_key(text) for segments in tests for text in segments.sources}
    by_pair: defaultdict[str, defaultdict[str, list[labels.Output]]]
    by_pair = defaultdict(lambda: defaultdict(list))
    for output in labels.read_outputs(files) if files else []:
        if corpus.text_key(output.source) not in judged_sources:
            by_pair[output.pair][output.source].append(output)
    return {pair: list(by_source.values()) for pair, by_source in by_pair.items()}


def _load_original(
    begin: str | Path,
    folder: Path,
    config: EncoderConfig,
) -> "tuple[PreTrainedTokenizerFast, BertModel]":
    """Loads the tokenizer and the network of the original, and turns dropout off.

    Args:
        begin: the original as the user named it.
        folder: its folder.
        config: the options of the training, with the layers that the original must have.
    """
    original_config = model_config(folder, "BertModel")
    if original_config.model_type != "bert":
        raise InputError(
            f"{begin}: an encoder of the BERT architecture is needed, this is "
            f"{original_config.model_type}"
        )
    depth = original_config.num_hidden_layers
    for option in ("layers", "target_layer"):
        layer = getattr(config, option)
        if layer > depth:
            raise InputError(f"{option} {layer}: {begin} has the layers 1 to {depth}")
    tokenizer, network = pretrained("BertModel", folder, torch.float32)
    network.pooler = None  # token vectors and their mean do not depend on it
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    network.config.hidden_dropout_prob = network.config.attention_probs_dropout_prob = 0.0
    # On CPUs, the gradient of the fused attention is slow for texts as short as these.
    network.set_attn_implementation("eager")
    return tokenizer, network


def _into_english(pairs: Sequence[corpus.Pair]) -> list[corpus.Pair]:
    """Makes English the target of all pairs. Swaps the sides of pairs with an English source."""
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
    """Returns language -> its distinct texts, in order of first appearance."""
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
    """Cuts the embeddings of a network to the vocabulary of `tokenizer`, in place. Returns the
    network."""
    rows = torch.from_numpy(vocabulary.original_numbers(tokenizer, original_tokenizer))
    vectors = original.embeddings.word_embeddings.weight.detach()[rows].clone()
    embeddings = torch.nn.Embedding(*vectors.shape, padding_idx=tokenizer.pad_token_id)
    embeddings.weight = torch.nn.Parameter(vectors)
    original.embeddings.word_embeddings = embeddings
    original.config.vocab_size = len(tokenizer)
    for name in ("pad", "bos", "eos"):
        setattr(original.config, f"{name}_token_id", getattr(tokenizer, f"{name}_token_id"))
    return original


def _with_english_type(network: "BertModel") -> "BertModel":
    """Gives a network, in place, a vector for the tokens of English texts: that of all other tokens,
    moved a little in a random direction. Returns the network."""
    embeddings = network.embeddings
    width = network.config.hidden_size
    direction = torch.randn(width, generator=torch.Generator().manual_seed(0))
    norm = embeddings.word_embeddings.weight.norm(dim=1).mean()
    usual = embeddings.token_type_embeddings.weight.detach()[0]
    moved = usual + _ENGLISH_SHIFT * norm * functional.normalize(direction, dim=0)
    embeddings.token_type_embeddings = torch.nn.Embedding(2, width)
    embeddings.token_type_embeddings.weight = torch.nn.Parameter(torch.stack([usual, moved]))
    network.config.type_vocab_size = 2
    return network


def _trainer(
    run: Run,
    config: EncoderConfig,
    student: "BertModel",
    teacher: "BertModel",
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]",
    data: corpus.DistillationText,
    outputs: Mapping[str, Sequence[Sequence[labels.Output]]],
) -> Judging:
    """Makes the trainer of a student. It evaluates on held-back pairs and judged segments. Word
    embeddings have a separate learning rate."""
    from transformers import set_seed

    def judge(model: Distillation) -> dict[str, float]:
        device = student.device.type
        with torch.autocast(device, torch.bfloat16, enabled=config.bf16):
            return evaluate(model, held_back, data.tests, tokenizers, config.max_pieces)

    set_seed(run.seed)
    # The held-back pairs of each group are one batch.
    groups_of_held = np.array([pair.group for pair in data.held])
    held_plan = [np.flatnonzero(groups_of_held == group) for group in np.unique(groups_of_held)]
    held_back = SentenceBatches(held_plan, data.held, tokenizers, config.max_pieces, run.seed)
    word_vectors = student.embeddings.word_embeddings.weight
    other_weights = [values for values in student.parameters() if values is not word_vectors]
    parameter_groups = decay_groups(other_weights, config.weight_decay, lr=config.learning_rate)
    if config.vector_lr:
        parameter_groups.append(
            {"params": [word_vectors], "lr": config.vector_lr, "weight_decay": 0.0}
        )
    return planned_trainer(
        judge,
        model=Distillation(
            student,
            teacher,
            config,
            start=copy.deepcopy(student) if outputs else None,
        ),
        args=trainer_settings(run, config, config.learning_rate),
        train_dataset=SentenceBatches(
            data.plan,
            data.train,
            tokenizers,
            config.max_pieces,
            run.seed,
            english_only_share=config.english,
            worsened_share=config.worsened,
            outputs=outputs,
            outputs_share=config.outputs_share,
        ),
        eval_dataset=held_back,
        optimizers=(torch.optim.AdamW(parameter_groups, betas=(0.9, 0.98), fused=True), None),
    )


def evaluate(
    model: Distillation,
    held: SentenceBatches,
    tests: Sequence[Judged],
    tokenizers: "Mapping[str, PreTrainedTokenizerFast]",
    max_pieces: int,
) -> dict[str, float]:
    """Measures a student on held-back pairs and judged segments.

    Args:
        model: the student with its loss.
        held: batches of held-back pairs.
        tests: judged segments, one item per file.
        tokenizers: see `SentenceBatches`.
        max_pieces: texts are truncated to this many tokens.

    Returns:
        Name of a measure -> its value:

        - ``held_back_loss``: the mean loss of the batches.
        - ``token_r``, ``token_r_FILE``: correlations of `token_similarity` with the judgements, see
          `corpus.correlations`.
        - ``sentence_r``, ``sentence_r_FILE``: correlations of the cosine of mean vectors with the
          judgements.

    Raises:
        MTMetricsError: the loss is not finite.
    """
    device = next(model.parameters()).device
    losses = []
    for step in range(len(held)):
        batch = {name: value.to(device) for name, value in held[step].items()}
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
    """Compares the sources of n segments with their English translations.

    Returns:
        (2, n) similarities: `token_similarity`, and the cosine of mean vectors.
    """
    by_length = np.argsort([len(text) for text in segments.sources], kind="stable")
    similarities = np.zeros((2, len(segments)))
    for begin in range(0, len(by_length), _TEXTS_PER_BATCH):
        rows = by_length[begin : begin + _TEXTS_PER_BATCH]
        sources = [segments.sources[row] for row in rows]
        predictions = [segments.predictions[row] for row in rows]
        source = tokenised(tokenizers["others"], sources, max_pieces)
        english = tokenised(tokenizers["english"], predictions, max_pieces)
        source_tokens = encode(student, source.to(student.device))
        english_tokens = encode(student, english.to(student.device))
        by_token = token_similarity(source_tokens, english_tokens)
        by_mean = (unit_means(source_tokens) * unit_means(english_tokens)).sum(-1)
        similarities[0, rows] = by_token.float().cpu().numpy()
        similarities[1, rows] = by_mean.cpu().numpy()
    return similarities
