"""Translation models: an MBart is fine-tuned for a pair; a small one first restores masked text (Liu et al., 2020)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.models import model_folder, pretrained
from mtmetrics.errors import ArtifactError
from mtmetrics.models.translator import generation, open_mbart, own_beams, target_frame
from mtmetrics.training import corpus
from mtmetrics.training.run import Run, pinned, planned_trainer, read_record, save_model, trainer_settings
from mtmetrics.training.settings import DenoisingConfig, TranslationConfig

log = logging.getLogger(__name__)
_IGNORED = -100
_TEXTS_PER_CALL = 20_000


def train_translation(
    run: Run,
    parallel: Sequence[str | Path],
    model: str | Path,
    lang_pair: str,
    *,
    config: TranslationConfig | None = None,
) -> Path:
    """Fine-tunes an MBart on sentence pairs, mined ones for instance (UScore, Sec. 3.1 and App. D).

    Args:
        run: see `mtmetrics.training.run`, as for `config` and what is returned: a folder that
            `mtmetrics.models.translator.Translator` opens.
        parallel: see `corpus.read_pairs`.
        model: mBART-cc25, mBART-50, or a small MBart without language codes.
        lang_pair: such as ``"de-en"``, the direction of the pairs.
    """
    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    config, folder = config or TranslationConfig(), model_folder(model)
    run.open(config, {"parallel": parallel}, model=pinned(model, folder), lp=lang_pair)
    pairs, counts = corpus.read_pairs(parallel)
    options = {"rows": len(pairs), "rows_per_step": config.pairs_per_step, "weight_decay": config.weight_decay}
    settings = trainer_settings(run, config, config.learning_rate, arguments=Seq2SeqTrainingArguments, **options)
    log.info("%d sentence pairs for training, %d steps", len(pairs), settings.max_steps)
    set_seed(run.seed)
    tokenizer, network = open_mbart(folder, lang_pair)
    limit = min(config.max_pieces, network.config.max_position_embeddings)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    encoded = tokenizer(sources, text_target=targets, truncation=True, max_length=limit)
    columns = ("input_ids", "attention_mask", "labels")
    rows = [{name: encoded[name][row] for name in columns} for row in range(len(pairs))]
    collator = DataCollatorForSeq2Seq(tokenizer, model=network)
    run.train(Seq2SeqTrainer(model=network, args=settings, train_dataset=rows, data_collator=collator))
    frame = target_frame(tokenizer, network.config.eos_token_id)
    network.generation_config = generation(network.config, frame, beams=own_beams(network))
    record = {"started_from": read_record(folder), "data": counts.as_dict(), "pairs": len(pairs)}
    record["steps"] = settings.max_steps
    with run.artifact("translation model", "mtmetrics train translation", **record) as temporary:
        save_model(network, tokenizer, temporary)
    return run.output


def train_denoising(
    run: Run, mono: Sequence[str], encoder: str | Path, *, config: DenoisingConfig | None = None
) -> Path:
    """Makes a small MBart from an encoder and monolingual text of both languages; `train_translation` goes on from it.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        mono: monolingual files of both languages, see `corpus.read_lines`.
        encoder: a BERT encoder.
    """
    from transformers import set_seed

    from mtmetrics.training.lm import MuonAdamW

    config, folder = config or DenoisingConfig(), model_folder(encoder)
    files = [corpus.parse_ranges(spec)[0] for spec in mono]
    names = [corpus.short_name(spec) for spec in mono]
    run.open(config, {"mono": files}, mono=names, encoder=pinned(encoder, folder))
    lines, counts = corpus.read_lines(mono)
    texts = list(dict.fromkeys(text for text, _ in lines))
    counts.left_out["repeated"] += len(lines) - len(texts)
    log.info("%d sentences for training", len(texts))
    set_seed(run.seed)
    tokenizer, network = small_mbart(folder, config)
    ids: list[np.ndarray] = []
    for begin in range(0, len(texts), _TEXTS_PER_CALL):
        encoded = tokenizer(texts[begin : begin + _TEXTS_PER_CALL], truncation=True, max_length=config.max_pieces)
        ids += [np.array(row, dtype=np.int32) for row in encoded["input_ids"]]
    lengths = np.array([len(row) for row in ids])
    steps = config.steps * run.processes
    plan = corpus.plan_batches(["mono"] * len(ids), lengths, config.rows_per_step, steps, run.seed)
    trainer = planned_trainer()(
        model=network,
        args=trainer_settings(run, config, config.matrix_lr),
        train_dataset=NoisyBatches(ids, plan, tokenizer, config, run.seed),
        optimizers=(MuonAdamW(network, config.matrix_lr, config.other_lr, config.weight_decay), None),
    )
    run.train(trainer)
    record = {"started_from": read_record(folder), "data": counts.as_dict(), "sentences": len(texts)}
    with run.artifact("translation model, not trained to translate yet", **record) as temporary:
        save_model(trainer.model, tokenizer, temporary)
    return run.output


def small_mbart(folder: Path, config: DenoisingConfig) -> tuple[Any, Any]:
    """The tokenizer of a BERT encoder, and a new MBart of its width whose word vectors are the encoder's.

    It has no language codes: a text is framed by [CLS] and [SEP] on both sides, so one model translates in one
    direction. An ArtifactError says what the tokenizer lacks.
    """
    import torch
    from transformers import MBartConfig, MBartForConditionalGeneration

    tokenizer, encoder = pretrained("AutoModel", folder, torch.float32)
    special = special_tokens(folder, tokenizer)
    vectors = encoder.get_input_embeddings().weight
    network = MBartForConditionalGeneration(
        MBartConfig(
            vocab_size=len(vectors),
            d_model=vectors.shape[1],
            max_position_embeddings=encoder.config.max_position_embeddings,
            encoder_layers=config.layers,
            decoder_layers=config.layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.inner,
            decoder_ffn_dim=config.inner,
            dropout=config.dropout,
            pad_token_id=special["pad"],
            bos_token_id=special["cls"],
            eos_token_id=special["sep"],
            decoder_start_token_id=special["sep"],
            forced_eos_token_id=special["sep"],
        )
    )
    with torch.no_grad():
        network.get_input_embeddings().weight.copy_(vectors)
    return tokenizer, network


def special_tokens(folder: Path, tokenizer: Any) -> dict[str, int]:
    """The numbers of the tokens that `small_mbart` needs; an ArtifactError says which an encoder's tokenizer lacks."""
    special = {name: getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep", "mask")}
    if missing := " and no ".join(name for name, number in special.items() if number is None):
        raise ArtifactError(f"{folder}: its tokenizer has no {missing} token; a BERT encoder is needed")
    return special


def span_masked(ids: np.ndarray, mask: int, share: float, span: float, rng: np.random.Generator) -> np.ndarray:
    """(n,) token ids with spans replaced by one mask each; the first and the last, which frame the text, stay.

    At least one token goes, else that share of those between the ends; a span has a mean length of `span`.
    """
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
class NoisyBatches:
    """Map-style dataset whose items are whole batches, as the plan has them: masked texts, and the texts to restore."""

    texts: list[np.ndarray]
    plan: list[np.ndarray]
    tokenizer: Any
    config: DenoisingConfig
    seed: int

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, step: int) -> dict[str, Any]:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        rng = np.random.default_rng((self.seed, step))
        texts = [self.texts[row] for row in self.plan[step]]
        noise = (self.tokenizer.mask_token_id, self.config.masked, self.config.span, rng)
        noisy = [span_masked(text, *noise) for text in texts]
        padding = self.tokenizer.pad_token_id
        inputs, mask, labels = (
            pad_sequence([torch.from_numpy(row).long() for row in rows], batch_first=True, padding_value=value)
            for rows, value in ((noisy, padding), ([np.ones(len(row)) for row in noisy], 0), (texts, _IGNORED))
        )
        return {"input_ids": inputs, "attention_mask": mask, "labels": labels}
