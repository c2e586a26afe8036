"""Translation models: an MBart is fine-tuned for a pair; a small one first restores masked text
(Liu et al., 2020)."""

import itertools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.artifacts.models import (
    language_tokenizers,
    model_config,
    model_folder,
    pretrained,
    read_record,
)
from mtmetrics.checks import language_pair
from mtmetrics.models.translator import (
    configured_beams,
    generation_config,
    open_mbart,
    target_prefix,
)
from mtmetrics.training import corpus
from mtmetrics.training.configs import DenoisingConfig, TranslationConfig
from mtmetrics.training.run import Run, pinned, save_model
from mtmetrics.training.trainers import PlannedBatches, planned_trainer, trainer_settings
from mtmetrics.training.vocabulary import (
    as_pretrained,
    balanced,
    piece_counts,
    pieces_by_number,
    token_ids,
    train_wordpiece,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

log = logging.getLogger(__name__)
_IGNORED = -100
_CHARACTERS = 10_000_000
# A new small model that learns from pairs right away sees them a few times only.
_NEW = DenoisingConfig(dropout=0.0)


def train_translation(
    run: Run,
    text: corpus.ParallelText,
    model: str | Path,
    lang_pair: str,
    *,
    config: TranslationConfig,
) -> Path:
    """Trains an MBart on sentence pairs, mined ones for instance (UScore, Sec. 3.1 and App. D).

    Args:
        run: see `mtmetrics.training.run`, as for `config` and what is returned: a folder that
            `mtmetrics.models.translator.Translator` opens.
        text: the pairs.
        model: mBART-cc25, mBART-50, or a small MBart without language codes; or an encoder, with
            whose word vectors a new one begins, see `small_mbart`, trained by Muon.
        lang_pair: such as ``"de-en"``, the direction of the pairs.
    """
    from transformers import DataCollatorForSeq2Seq, set_seed

    from mtmetrics.training.lm import MuonAdamW

    folder = model_folder(model)
    source, target = language_pair(lang_pair)
    is_mbart = model_config(folder, "AutoConfig").is_encoder_decoder
    run.open(
        config,
        {"parallel": text.files},
        model=pinned(model, folder),
        lp=lang_pair,
        **text.chosen,
    )
    pairs, counts = text.read(run.seed)
    steps = math.ceil(math.ceil(len(pairs) / config.pairs_per_step) / run.processes) * config.epochs
    settings = trainer_settings(run, config, config.learning_rate, steps=steps)
    log.info("%d sentence pairs for training, %d steps", len(pairs), steps)
    set_seed(run.seed)
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    optimizer = None
    if is_mbart:
        tokenizer, network = open_mbart(folder, lang_pair)
    else:
        log.info("%s is no MBart: a new small one begins with its word vectors", model)
        tokenizer, network = small_mbart(run, folder, {source: sources, target: targets}, _NEW)
        optimizer = MuonAdamW(
            network,
            config.learning_rate,
            config.learning_rate / 3,
            config.weight_decay,
        )
    limit = min(config.max_pieces, network.config.max_position_embeddings)
    encoded = tokenizer(sources, text_target=targets, truncation=True, max_length=limit)
    columns = ("input_ids", "attention_mask", "labels")
    rows = [{name: encoded[name][row] for name in columns} for row in range(len(pairs))]
    lengths = np.array([len(row["input_ids"]) + len(row["labels"]) for row in rows])
    plan = corpus.plan_epochs(lengths, config.pairs_per_step, config.epochs, run.seed)
    planned = PaddedBatches(plan, rows, DataCollatorForSeq2Seq(tokenizer, model=network))
    run.train(
        planned_trainer(
            model=network,
            args=settings,
            train_dataset=planned,
            optimizers=(optimizer, None),
        )
    )
    prefix = target_prefix(tokenizer, network.config.eos_token_id)
    network.generation_config = generation_config(
        network.config, prefix, beams=configured_beams(network)
    )
    record = {
        "started_from": read_record(folder),
        "data": counts.as_dict(),
        "pairs": len(pairs),
        "steps": steps,
    }
    with run.artifact("translation model", "mtmetrics train translation", **record) as temporary:
        save_model(network, tokenizer, temporary)
    return run.output


@dataclass(eq=False, repr=False)
class PaddedBatches(PlannedBatches):
    """Batches of tokenised pairs, which a function pads."""

    rows: list[dict[str, list[int]]]
    collate: "Callable[[list[dict[str, list[int]]]], dict[str, torch.Tensor]]"

    def __getitem__(self, step: int) -> "dict[str, torch.Tensor]":
        return dict(self.collate([dict(self.rows[row]) for row in self.plan[step]]))


def train_denoising(
    run: Run,
    mono: Mapping[str, str | Path],
    encoder: str | Path,
    *,
    config: DenoisingConfig,
) -> Path:
    """Makes a small MBart from an encoder and monolingual text of both languages;
    `train_translation` goes on from it.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        mono: of each language, by its code, a file with a sentence per line.
        encoder: see `small_mbart`.
    """
    from transformers import set_seed

    from mtmetrics.training.lm import MuonAdamW

    folder = model_folder(encoder)
    run.open(
        config,
        {"mono": list(mono.values())},
        encoder=pinned(encoder, folder),
        languages=list(mono),
    )
    texts, left_out = {}, 0
    counts = corpus.Counts()
    for language, file in mono.items():
        lines, file_counts = corpus.read_lines([str(file)])
        counts.used |= file_counts.used
        texts[language] = list(dict.fromkeys(text for text, _ in lines))
        left_out += len(lines) - len(texts[language])
    counts.left_out["repeated"] += left_out
    sentences = list(itertools.chain.from_iterable(texts.values()))
    log.info("%d sentences for training", len(sentences))
    set_seed(run.seed)
    tokenizer, network = small_mbart(run, folder, texts, config)
    options = {"truncation": True, "max_length": config.max_pieces}
    ids = [np.array(row, dtype=np.int32) for row in token_ids(sentences, tokenizer, **options)]
    lengths = np.array([len(row) for row in ids])
    steps = config.steps * run.processes
    plan = corpus.plan_batches(["mono"] * len(ids), lengths, config.rows_per_step, steps, run.seed)
    trainer = planned_trainer(
        model=network,
        args=trainer_settings(run, config, config.matrix_lr),
        train_dataset=NoisyBatches(plan, ids, tokenizer, config, run.seed),
        optimizers=(
            MuonAdamW(network, config.matrix_lr, config.other_lr, config.weight_decay),
            None,
        ),
    )
    run.train(trainer)
    record = {
        "started_from": read_record(folder),
        "data": counts.as_dict(),
        "sentences": len(sentences),
    }
    with run.artifact("translation model, not trained to translate yet", **record) as temporary:
        save_model(trainer.model, tokenizer, temporary)
    return run.output


def small_mbart(
    run: Run,
    encoder: Path,
    texts: Mapping[str, Sequence[str]],
    config: DenoisingConfig,
) -> "tuple[PreTrainedTokenizerFast, PreTrainedModel]":
    """A tokenizer of two languages, and a new MBart of an encoder's width whose word vectors begin
    as the encoder's.

    There are no language codes: a text is framed by [CLS] and [SEP] on both sides, so one model
    translates in one direction.

    Args:
        run: keeps the tokenizer.
        encoder: folder of an encoder.
        texts: of each language, by its code.
        config: of the sizes.
    """
    import torch
    from transformers import MBartConfig, MBartForConditionalGeneration

    encoder_tokenizer, model = pretrained("AutoModel", encoder, torch.float32)

    def make_tokenizers() -> "dict[str, PreTrainedTokenizerFast]":
        lists = {language: list(sentences) for language, sentences in texts.items()}
        drawn = balanced(lists, _CHARACTERS, run.seed)
        wordpieces = train_wordpiece(drawn, config.vocabulary)
        return {"small": as_pretrained(wordpieces, config.positions)}

    tokenizer = run.tokenizers(make_tokenizers)["small"]
    readers = dict.fromkeys(texts, encoder_tokenizer) | language_tokenizers(encoder)
    encoder_vectors = model.get_input_embeddings().weight.detach().numpy()
    vectors = piece_vectors(tokenizer, texts, readers, encoder_vectors)
    network = MBartForConditionalGeneration(
        MBartConfig(
            vocab_size=len(tokenizer),
            d_model=vectors.shape[1],
            max_position_embeddings=config.positions,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.inner,
            decoder_ffn_dim=config.inner,
            dropout=config.dropout,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            decoder_start_token_id=tokenizer.sep_token_id,
            forced_eos_token_id=tokenizer.sep_token_id,
            # Of short texts on a processor it takes half as long as the fused one.
            attn_implementation="eager",
        )
    )
    with torch.no_grad():
        network.get_input_embeddings().weight.copy_(torch.from_numpy(vectors))
    return tokenizer, network


def piece_vectors(
    tokenizer: "PreTrainedTokenizerFast",
    texts: Mapping[str, Sequence[str]],
    readers: "Mapping[str, PreTrainedTokenizerFast]",
    vectors: np.ndarray,
) -> np.ndarray:
    """(V, d) float32 vectors for the V pieces of a WordPiece tokenizer, from those of an encoder.

    A piece has the vector that the reader of a language has for it, or the mean over the pieces
    into which the reader splits it. Of several languages it has their mean, weighted by how often
    they use it. A piece that no text has gets the mean of all vectors.

    Args:
        tokenizer: of the pieces.
        texts: of each language.
        readers: of each language, a tokenizer that numbers the rows of `vectors`.
        vectors: (W, d).
    """
    total = np.zeros((len(tokenizer), vectors.shape[1]))
    uses = np.zeros(len(tokenizer))
    pieces = pieces_by_number(tokenizer)
    for language, sentences in texts.items():
        reader = readers[language]
        reader_pieces = reader.get_vocab()
        counts = piece_counts(sentences, tokenizer)
        for number in np.flatnonzero(counts):
            piece = pieces[number]
            if piece in reader_pieces:
                ids = [reader_pieces[piece]]
            else:
                ids = reader(piece.removeprefix("##"), add_special_tokens=False)["input_ids"]
            if ids:
                total[number] += counts[number] * vectors[ids].mean(0)
                uses[number] += counts[number]
    total[uses == 0] = vectors.mean(0)
    uses[uses == 0] = 1.0
    return (total / uses[:, None]).astype(np.float32)


def span_masked(
    ids: np.ndarray,
    mask: int,
    share: float,
    span: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Replaces spans of token ids by one mask each.

    Args:
        ids: (n,); the first and the last, which frame the text, stay.
        mask: the id of a mask.
        share: the share of the tokens between the ends that go, at least one token.
        span: the mean length of a span.
        rng: draws places and lengths.
    """
    inner = ids[1:-1]
    is_masked = np.zeros(len(inner), dtype=bool)
    total = max(1, round(share * len(inner)))
    for start in rng.permutation(len(inner)):
        left = total - int(is_masked.sum())
        if left <= 0:
            break
        length = min(1 + int(rng.poisson(span - 1)), left)
        is_masked[start : start + length] = True
    begins_span = is_masked & ~np.concatenate([[False], is_masked])[:-1]
    with_masks = np.where(begins_span, mask, inner)[~is_masked | begins_span]
    return np.concatenate([ids[:1], with_masks, ids[-1:]])


@dataclass(eq=False, repr=False)
class NoisyBatches(PlannedBatches):
    """Batches of masked texts, and the texts to restore."""

    texts: list[np.ndarray]
    tokenizer: "PreTrainedTokenizerFast"
    config: DenoisingConfig
    seed: int

    def __getitem__(self, step: int) -> "dict[str, torch.Tensor]":
        import torch
        from torch.nn.utils.rnn import pad_sequence

        rng = np.random.default_rng((self.seed, step))
        texts = [self.texts[row] for row in self.plan[step]]
        mask_id, share, span = self.tokenizer.mask_token_id, self.config.masked, self.config.span
        noisy = [span_masked(text, mask_id, share, span, rng) for text in texts]

        def padded(rows: list[np.ndarray], value: int) -> torch.Tensor:
            tensors = [torch.from_numpy(row).long() for row in rows]
            return pad_sequence(tensors, batch_first=True, padding_value=value)

        return {
            "input_ids": padded(noisy, self.tokenizer.pad_token_id),
            "attention_mask": padded([np.ones(len(row)) for row in noisy], 0),
            "labels": padded(texts, _IGNORED),
        }
