"""Translation models: an MBart is fine-tuned for a pair; a small one first restores masked text
(Liu et al., 2020)."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.models import (
    loading,
    model_folder,
    own_tokenizers,
    pretrained,
    read_record,
)
from mtmetrics.checks import language_pair
from mtmetrics.models.translator import generation, open_mbart, own_beams, target_frame
from mtmetrics.training import corpus
from mtmetrics.training.configs import DenoisingConfig, TranslationConfig
from mtmetrics.training.run import Run, pinned, save_model
from mtmetrics.training.trainers import PlannedBatches, planned_trainer, trainer_settings
from mtmetrics.training.vocabulary import as_pretrained, balanced, piece_counts, train_wordpiece

log = logging.getLogger(__name__)
_IGNORED = -100
_TEXTS_PER_CALL = 20_000
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
    from transformers import AutoConfig, DataCollatorForSeq2Seq, set_seed

    from mtmetrics.training.lm import MuonAdamW

    folder, languages = model_folder(model), language_pair(lang_pair)
    with loading(folder, "AutoConfig"):
        is_mbart = AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        ).is_encoder_decoder
    run.open(
        config, {"parallel": text.files}, model=pinned(model, folder), lp=lang_pair, **text.chosen
    )
    pairs, counts = text.read(run.seed)
    steps = math.ceil(math.ceil(len(pairs) / config.pairs_per_step) / run.processes) * config.epochs
    settings = trainer_settings(run, config, config.learning_rate, steps=steps)
    log.info("%d sentence pairs for training, %d steps", len(pairs), steps)
    set_seed(run.seed)
    texts = [pair.source for pair in pairs], [pair.target for pair in pairs]
    optimizer = None
    if is_mbart:
        tokenizer, network = open_mbart(folder, lang_pair)
    else:
        log.info("%s is no MBart: a new small one begins with its word vectors", model)
        tokenizer, network = small_mbart(
            run, folder, dict(zip(languages, texts, strict=True)), _NEW
        )
        optimizer = MuonAdamW(
            network, config.learning_rate, config.learning_rate / 3, config.weight_decay
        )
    limit = min(config.max_pieces, network.config.max_position_embeddings)
    encoded = tokenizer(texts[0], text_target=texts[1], truncation=True, max_length=limit)
    columns = ("input_ids", "attention_mask", "labels")
    rows = [{name: encoded[name][row] for name in columns} for row in range(len(pairs))]
    lengths = np.array([len(row["input_ids"]) + len(row["labels"]) for row in rows])
    plan = corpus.plan_epochs(lengths, config.pairs_per_step, config.epochs, run.seed)
    planned = PaddedBatches(plan, rows, DataCollatorForSeq2Seq(tokenizer, model=network))
    run.train(
        planned_trainer()(
            model=network, args=settings, train_dataset=planned, optimizers=(optimizer, None)
        )
    )
    frame = target_frame(tokenizer, network.config.eos_token_id)
    network.generation_config = generation(network.config, frame, beams=own_beams(network))
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
    collate: Callable[[list[dict[str, list[int]]]], dict[str, Any]]

    def __getitem__(self, step: int) -> dict[str, Any]:
        return dict(self.collate([dict(self.rows[row]) for row in self.plan[step]]))


def train_denoising(
    run: Run, mono: Mapping[str, str | Path], encoder: str | Path, *, config: DenoisingConfig
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
        config, {"mono": list(mono.values())}, encoder=pinned(encoder, folder), languages=list(mono)
    )
    texts, left_out = {}, 0
    counts = corpus.Counts()
    for language, file in mono.items():
        lines, found = corpus.read_lines([str(file)])
        counts.used |= found.used
        texts[language] = list(dict.fromkeys(text for text, _ in lines))
        left_out += len(lines) - len(texts[language])
    counts.left_out["repeated"] += left_out
    sentences = [text for found in texts.values() for text in found]
    log.info("%d sentences for training", len(sentences))
    set_seed(run.seed)
    tokenizer, network = small_mbart(run, folder, texts, config)
    ids: list[np.ndarray] = []
    for begin in range(0, len(sentences), _TEXTS_PER_CALL):
        encoded = tokenizer(
            sentences[begin : begin + _TEXTS_PER_CALL],
            truncation=True,
            max_length=config.max_pieces,
        )
        ids += [np.array(row, dtype=np.int32) for row in encoded["input_ids"]]
    lengths = np.array([len(row) for row in ids])
    steps = config.steps * run.processes
    plan = corpus.plan_batches(["mono"] * len(ids), lengths, config.rows_per_step, steps, run.seed)
    trainer = planned_trainer()(
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
    run: Run, encoder: Path, texts: Mapping[str, Sequence[str]], config: DenoisingConfig
) -> tuple[Any, Any]:
    """A lower-casing tokenizer of two languages, and a new MBart of an encoder's width whose word
    vectors begin as its.

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

    own, model = pretrained("AutoModel", encoder, torch.float32)
    length = model.config.max_position_embeddings

    def made() -> dict[str, Any]:
        drawn = balanced(
            {language: list(found) for language, found in texts.items()}, _CHARACTERS, run.seed
        )
        return {"small": as_pretrained(train_wordpiece(drawn, config.vocabulary), length)}

    tokenizer = run.tokenizers(made)["small"]
    readers = dict.fromkeys(texts, own) | own_tokenizers(encoder)
    vectors = piece_vectors(
        tokenizer, texts, readers, model.get_input_embeddings().weight.detach().numpy()
    )
    network = MBartForConditionalGeneration(
        MBartConfig(
            vocab_size=len(tokenizer),
            d_model=vectors.shape[1],
            max_position_embeddings=length,
            encoder_layers=config.layers,
            decoder_layers=config.layers,
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
    tokenizer: Any,
    texts: Mapping[str, Sequence[str]],
    readers: Mapping[str, Any],
    vectors: np.ndarray,
) -> np.ndarray:
    """(V, d) float32 vectors for the V pieces of a WordPiece tokenizer, out of those that other
    tokenizers number.

    A piece has the vector that the reader of a language gives it, or the mean of the pieces that it
    reads it as, and of several languages their mean, weighted by how often they use it. One that no
    text has gets the mean of all.

    Args:
        tokenizer: of the pieces.
        texts: of each language.
        readers: of each language, a tokenizer that numbers the rows of `vectors`.
        vectors: (W, d).
    """
    total, uses = np.zeros((len(tokenizer), vectors.shape[1])), np.zeros(len(tokenizer))
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    for language, found in texts.items():
        counts, known = piece_counts(found, tokenizer), readers[language].get_vocab()
        for number in np.flatnonzero(counts):
            piece = pieces[number]
            bare = piece.removeprefix("##")
            ids = (
                [known[piece]]
                if piece in known
                else readers[language](bare, add_special_tokens=False)["input_ids"]
            )
            if ids:
                total[number] += counts[number] * vectors[ids].mean(0)
                uses[number] += counts[number]
    total[uses == 0], uses[uses == 0] = vectors.mean(0), 1.0
    return (total / uses[:, None]).astype(np.float32)


def span_masked(
    ids: np.ndarray, mask: int, share: float, span: float, rng: np.random.Generator
) -> np.ndarray:
    """(n,) token ids with spans replaced by one mask each; the first and the last, which frame the
    text, stay.

    At least one token goes, else that share of those between the ends; a span has a mean length of
    `span`."""
    inner = ids[1:-1]
    gone = np.zeros(len(inner), dtype=bool)
    wanted = max(1, round(share * len(inner)))
    for start in rng.permutation(len(inner)):
        if (room := wanted - int(gone.sum())) <= 0:
            break
        gone[start : start + min(1 + int(rng.poisson(span - 1)), room)] = True
    begins = gone & ~np.concatenate([[False], gone])[:-1]
    return np.concatenate([ids[:1], np.where(begins, mask, inner)[~gone | begins], ids[-1:]])


@dataclass(eq=False, repr=False)
class NoisyBatches(PlannedBatches):
    """Batches of masked texts, and the texts to restore."""

    texts: list[np.ndarray]
    tokenizer: Any
    config: DenoisingConfig
    seed: int

    def __getitem__(self, step: int) -> dict[str, Any]:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        rng = np.random.default_rng((self.seed, step))
        texts = [self.texts[row] for row in self.plan[step]]
        noise = (self.tokenizer.mask_token_id, self.config.masked, self.config.span, rng)
        noisy = [span_masked(text, *noise) for text in texts]
        padding = self.tokenizer.pad_token_id
        inputs, mask, labels = (
            pad_sequence(
                [torch.from_numpy(row).long() for row in rows],
                batch_first=True,
                padding_value=value,
            )
            for rows, value in (
                (noisy, padding),
                ([np.ones(len(row)) for row in noisy], 0),
                (texts, _IGNORED),
            )
        )
        return {"input_ids": inputs, "attention_mask": mask, "labels": labels}
