"""A small MBart that begins with an encoder's word vectors and learns to restore text of which spans are masked (Liu et
al., 2020)."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import new_folder
from mtmetrics.artifacts.models import model_folder, pretrained
from mtmetrics.errors import ArtifactError
from mtmetrics.training import corpus, loop, recording
from mtmetrics.training.config import DenoisingConfig
from mtmetrics.training.encoder.batches import plan_batches

log = logging.getLogger(__name__)
_IGNORED = -100


def small_mbart(folder: Path, config: DenoisingConfig) -> tuple[Any, Any]:
    """The tokenizer of a BERT encoder, and a new MBart of its width whose word vectors are the encoder's.

    It has no language codes: a text is framed by [CLS] and [SEP] on both sides, so one model translates in one
    direction.

    Args:
        folder: of the encoder.
        config: size.

    Raises:
        ArtifactError: the encoder cannot be loaded, or its tokenizer has no [CLS], [SEP], [MASK] or padding.
    """
    import torch
    from transformers import MBartConfig, MBartForConditionalGeneration

    tokenizer, encoder = pretrained("AutoModel", folder, torch.float32)
    special = {name: getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep", "mask")}
    missing = [name for name, number in special.items() if number is None]
    if missing:
        raise ArtifactError(
            f"{folder}: its tokenizer has no {' and no '.join(missing)} token; a BERT encoder is needed"
        )
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


def span_masked(ids: np.ndarray, mask: int, share: float, span: float, rng: np.random.Generator) -> np.ndarray:
    """Token ids with spans replaced by one mask each; the first and the last, which frame the text, stay.

    Args:
        ids: (n,) token ids.
        mask: token id of the mask.
        share: share of the tokens between the ends that go, at least one.
        span: mean length of a span.
        rng: draws the spans.
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


class NoisyBatches:
    """Map-style dataset whose items are whole batches, as the plan has them: masked texts, and the texts to restore.

    Args:
        ids: (T,) token ids of all texts.
        offsets: (n + 1,) where each begins.
        plan: index arrays, one per step.
        tokenizer: of the texts.
        config: how they are masked.
        seed: of the masks.
    """

    def __init__(
        self,
        ids: np.ndarray,
        offsets: np.ndarray,
        plan: list[np.ndarray],
        tokenizer: Any,
        config: DenoisingConfig,
        seed: int,
    ) -> None:
        self.ids, self.offsets, self.plan, self.config, self.seed = ids, offsets, plan, config, seed
        self.mask, self.padding = tokenizer.mask_token_id, tokenizer.pad_token_id

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, step: int) -> dict[str, Any]:
        import torch

        rng = np.random.default_rng((self.seed, step))
        texts = [self.ids[self.offsets[row] : self.offsets[row + 1]] for row in self.plan[step]]
        inputs, mask = pad(
            [span_masked(text, self.mask, self.config.masked, self.config.span, rng) for text in texts], self.padding
        )
        labels, _ = pad(texts, _IGNORED)
        return {
            "input_ids": torch.from_numpy(inputs),
            "attention_mask": torch.from_numpy(mask).long(),
            "labels": torch.from_numpy(labels),
        }


def train_denoising(
    run: loop.Run, mono: Sequence[str], encoder: str | Path, *, config: DenoisingConfig | None = None
) -> Path:
    """Makes a small MBart from an encoder and monolingual text of both languages; `train_translation` goes on from
    there.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        mono: monolingual files of both languages, see `corpus.read_lines`.
        encoder: a BERT encoder; see `mtmetrics.artifacts.models.model_folder` for its name.
        config: size and schedule.

    Returns:
        The artifact folder, weights in float16.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: as `small_mbart`.
    """
    config = config or DenoisingConfig()
    folder = model_folder(encoder)
    settings: dict[str, Any] = {"encoder": recording.pinned(encoder, folder), "mono": list(mono)}
    settings = run.open(config, settings, [corpus.parse_ranges(spec)[0] for spec in mono])
    lines, counts = corpus.read_lines(mono)
    texts = list(dict.fromkeys(text for text, _ in lines))
    counts.left_out["repeated"] += len(lines) - len(texts)
    trainer, tokenizer = _trainer(run, config, folder, texts)
    log.info("%d sentences for training", len(texts))
    history = run.train(trainer)
    record = {
        "kind": "translation model, not trained to translate yet",
        **settings,
        "mono": [corpus.short_name(spec) for spec in mono],
        "started_from": recording.read_record(folder),
        "data": counts.as_dict(),
        "sentences": len(texts),
    }
    with new_folder(run.output, run.overwrite) as temporary:
        recording.save_model(trainer.model, tokenizer, temporary)
        recording.write_record(temporary, record, history)
    return run.output


def _trainer(run: loop.Run, config: DenoisingConfig, folder: Path, texts: list[str]) -> tuple[Any, Any]:
    from torch.utils.data import SequentialSampler
    from transformers import Trainer, set_seed

    from mtmetrics.training.optimizer import MuonAdamW

    class PlannedTrainer(Trainer):
        """Takes whole batches from the plan, in its order."""

        def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
            return SequentialSampler(self.train_dataset)

    set_seed(run.seed)
    tokenizer, network = small_mbart(folder, config)
    ids, offsets = tokenise(texts, tokenizer, config.max_pieces)
    plan = plan_batches({"mono": np.arange(len(texts))}, np.diff(offsets), config.rows_per_step, config.steps, run.seed)
    trainer = PlannedTrainer(
        model=network,
        args=loop.trainer_settings(run.work, config, config.matrix_lr, run.seed),
        train_dataset=NoisyBatches(ids, offsets, plan, tokenizer, config, run.seed),
        data_collator=lambda batches: batches[0],
        optimizers=(MuonAdamW(network, config.matrix_lr, config.other_lr, config.weight_decay), None),
    )
    return trainer, tokenizer
