"""Trains a small causal language model whose mean log-likelihood judges the fluency of a translation."""

import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import new_folder
from mtmetrics.errors import InputError
from mtmetrics.training import corpus, loop, recording
from mtmetrics.training.config import LMConfig

log = logging.getLogger(__name__)
IGNORED = -100


def train_lm(
    run: loop.Run,
    mono: Sequence[str] = (),
    parallel: Sequence[str] = (),
    *,
    side: str = "target",
    exclude: Sequence[str] = (),
    weights: dict[str, int] | None = None,
    config: LMConfig | None = None,
) -> Path:
    """Trains a language model of the GPT-2 architecture with a lower-casing vocabulary and writes its artifact folder.

    Every sentence is one text ``<s> sentence </s>``: packed rows hold several, but none sees another, and positions
    begin at zero with each, exactly as when a sentence is scored alone.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        mono: monolingual files, see `corpus.read_lines`.
        parallel: parallel files of which one side is used, see `corpus.read_pairs`.
        side: that side, ``"source"`` or ``"target"``.
        exclude: origins to leave out.
        weights: how often the sentences of an origin occur per epoch (1 if not named).
        config: size and schedule.

    Returns:
        The artifact folder.

    Raises:
        InputError: files or settings cannot be used.
    """
    config = config or LMConfig()
    if side not in ("source", "target"):
        raise InputError(f"side must be source or target, not {side!r}")
    settings = {
        "mono": list(mono),
        "parallel": list(parallel),
        "side": side,
        "exclude": sorted(exclude),
        "weights": weights or {},
    }
    settings = run.open(config, settings, [corpus.parse_ranges(spec)[0] for spec in mono] + list(parallel))
    work, seed = run.work, run.seed
    sentences, counts = _read(mono, parallel, side, exclude)
    train, held = _split(sentences, config.held_back, seed)
    log.info("%d sentences for training, %d held back", len(train), len(held))
    tokenizer = _vocabulary(work, train, config)
    rng = random.Random(seed)
    repeated = [text for text, origin in train for _ in range(_weight(origin, weights))]
    rng.shuffle(repeated)
    packed = pack(tokenizer, repeated, config.context)
    packed_held = pack(tokenizer, [text for text, _ in held], config.context)
    log.info("%d tokens per epoch in %d rows", packed.tokens, len(packed))

    trainer = _trainer(config, tokenizer, packed, packed_held, work, seed)
    history = run.train(trainer)
    result = perplexity(trainer.model, tokenizer, [text for text, _ in held], config)
    log.info("held back: %s", result)
    record = {
        "kind": "causal language model",
        "command": "mtmetrics train lm",
        **settings,
        "mono": [_without_folder(spec) for spec in mono],
        "parallel": [corpus.short_name(path) for path in parallel],
        "data": counts.as_dict(),
        "sentences": {"train": len(train), "train_with_weights": len(repeated), "held_back": len(held)},
        "tokens_per_epoch": packed.tokens,
        "cut_at_context": packed.cut,
        "result": result,
    }
    _write(run, trainer.model, tokenizer, record, history)
    return run.output


def _without_folder(spec: str) -> str:
    path = corpus.parse_ranges(spec)[0]
    return Path(path).name + spec.removeprefix(path)


def _read(
    mono: Sequence[str], parallel: Sequence[str], side: str, exclude: Sequence[str]
) -> tuple[list[tuple[str, str]], corpus.Counts]:
    if not mono and not parallel:
        raise InputError("no text was given; pass --mono or --parallel files")
    lines, counts = corpus.read_lines(mono, exclude)
    if parallel:
        pairs, pair_counts = corpus.read_pairs(parallel, exclude)
        counts.used |= pair_counts.used
        counts.left_out += pair_counts.left_out
        lines += [(getattr(pair, side), pair.origin) for pair in pairs]
    unique = dict(reversed(lines))
    counts.left_out["repeated"] += len(lines) - len(unique)
    if not unique:
        raise InputError("the files hold no sentence that may be used; check --exclude-origin and the line ranges")
    return sorted(unique.items()), counts


def _split(
    sentences: list[tuple[str, str]], held_back: int, seed: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Holds back `held_back` sentences that share no letters-and-digits form with the rest."""
    if held_back >= len(sentences):
        raise InputError(f"{len(sentences)} sentences are too few to hold back {held_back}; lower --held-back")
    keys = [corpus.text_key(text) for text, _ in sentences]
    order = sorted(set(keys))
    random.Random(seed).shuffle(order)
    chosen = set(order[:held_back])
    train = [row for row, key in zip(sentences, keys, strict=True) if key not in chosen]
    held = {key: row for row, key in zip(sentences, keys, strict=True) if key in chosen}
    return train, list(held.values())


def _weight(origin: str, weights: dict[str, int] | None) -> int:
    number = corpus.number_for(origin, weights or {})
    return 1 if number is None else number


def _vocabulary(work: Path, train: list[tuple[str, str]], config: LMConfig) -> Any:
    from transformers import PreTrainedTokenizerFast

    from mtmetrics.training import vocabulary

    folder = work / "tokenizer"
    if not folder.exists():
        trained = vocabulary.train_bpe((text for text, _ in train), config.vocabulary)
        with new_folder(folder) as temporary:
            vocabulary.save_tokenizer(vocabulary.as_pretrained(trained, config.context), temporary)
    return PreTrainedTokenizerFast.from_pretrained(folder)


class PackedTexts:
    """Rows of `context` tokens, each filled with whole texts; a `torch` map-style dataset.

    Attributes:
        tokens: number of tokens that are not padding.
        cut: number of texts cut at the context length.
    """

    def __init__(self, rows: list[list[list[int]]], context: int, start: int, pad: int) -> None:
        import numpy as np

        self.ids = np.full((len(rows), context), pad, dtype=np.int32)
        self.positions = np.zeros((len(rows), context), dtype=np.int16)
        self.start = start
        self.tokens = 0
        self.cut = 0
        for number, row in enumerate(rows):
            place = 0
            for text in row:
                self.ids[number, place : place + len(text)] = text
                self.positions[number, place : place + len(text)] = range(len(text))
                place += len(text)
            self.positions[number, place:] = range(context - place)
            self.tokens += place
        self.pad = pad

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        import torch

        ids = torch.from_numpy(self.ids[index]).long()
        labels = ids.masked_fill((ids == self.start) | (ids == self.pad), IGNORED)
        return {"input_ids": ids, "position_ids": torch.from_numpy(self.positions[index]).long(), "labels": labels}


def pack(tokenizer: Any, texts: Sequence[str], context: int) -> PackedTexts:
    """Fills rows of `context` tokens with ``<s> text </s>``, first fit among the latest open rows.

    Texts longer than a row are cut and counted. The model tells the texts of a row apart by their positions.
    """
    start, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    rows: list[list[list[int]]] = []
    room: list[int] = []
    opened: list[int] = []
    cut = 0
    for begin in range(0, len(texts), 10_000):
        encoded = tokenizer(list(texts[begin : begin + 10_000]), add_special_tokens=False)["input_ids"]
        for text_ids in encoded:
            ids = [start, *text_ids, end]
            if len(ids) > context:
                ids = ids[:context]
                cut += 1
            place = next((row for row in opened if room[row] >= len(ids)), None)
            if place is None:
                place = len(rows)
                rows.append([])
                room.append(context)
                opened.append(place)
                del opened[:-32]
            rows[place].append(ids)
            room[place] -= len(ids)
    packed = PackedTexts(rows, context, start, tokenizer.pad_token_id)
    packed.cut = cut
    return packed


def _trainer(config: LMConfig, tokenizer: Any, train: PackedTexts, held: PackedTexts, work: Path, seed: int) -> Any:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, set_seed

    from mtmetrics.training.optimizer import MuonAdamW

    set_seed(seed)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=config.context,
            n_embd=config.width,
            n_layer=config.layers,
            n_head=config.heads,
            resid_pdrop=config.dropout,
            embd_pdrop=config.dropout,
            attn_pdrop=config.dropout,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=False,
        )
    )
    arguments = loop.trainer_settings(
        work, config, config.matrix_lr, seed, evaluate_every=config.checkpoint_every, rows_per_step=config.rows_per_step
    )
    optimizer = MuonAdamW(model, config.matrix_lr, config.other_lr, config.weight_decay)

    def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=held,
        data_collator=collate,
        optimizers=(optimizer, None),
    )


def perplexity(model: Any, tokenizer: Any, texts: Sequence[str], config: LMConfig) -> dict[str, float]:
    """Perplexity per token (end-of-text included) and bits per character of held-back sentences, in float32."""
    import math

    import torch

    packed = pack(tokenizer, texts, config.context)
    model = model.float().eval()
    total, number = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(packed), 32):
            rows = [packed[i] for i in range(begin, min(begin + 32, len(packed)))]
            batch = {name: torch.stack([row[name] for row in rows]).to(model.device) for name in rows[0]}
            labels = batch.pop("labels")[:, 1:]
            logits = model(**batch, use_cache=False).logits[:, :-1]
            total += torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
            ).item()
            number += int((labels != IGNORED).sum())
    characters = sum(len(text) for text in texts)
    return {
        "perplexity": round(math.exp(total / number), 3),
        "bits_per_character": round(total / math.log(2) / characters, 4),
        "tokens": number,
    }


def _write(run: loop.Run, model: Any, tokenizer: Any, record: dict[str, Any], history: list[dict[str, Any]]) -> None:
    with new_folder(run.output, run.overwrite) as folder:
        model.config.use_cache = True
        recording.save_model(model, tokenizer, folder)
        recording.write_record(folder, record, history)
