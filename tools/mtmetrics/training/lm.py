"""Trains a small causal language model whose mean log-likelihood judges the fluency of a translation.

`pack` fills the rows of a batch with whole sentences (`PackedTexts`), and `MuonAdamW` is the
optimiser.
"""

import logging
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.optim import AdamW, Muon, Optimizer
from torch.utils.data import DataLoader

from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.training import corpus
from mtmetrics.training.configs import LMConfig
from mtmetrics.training.run import Run, save_model
from mtmetrics.training.trainers import decay_groups, trainer_settings
from mtmetrics.training.vocabulary import as_pretrained, token_ids, train_bpe

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, Trainer

log = logging.getLogger(__name__)
# The label of a token that has no part in the loss.
_IGNORED = -100
# Rows that `pack` may still add texts to.
_OPEN_ROWS = 32
# Rows that `perplexity` computes together.
_ROWS_PER_EVALUATION = 32


def train_lm(
    run: Run,
    mono: Sequence[str] = (),
    parallel: Sequence[str] = (),
    *,
    side: str = "target",
    exclude: Sequence[str] = (),
    weights: dict[str, int] | None = None,
    config: LMConfig,
) -> Path:
    """Trains a language model of the GPT-2 architecture with a lower-casing vocabulary and writes
    its artifact folder.

    Every sentence is one text ``<s> sentence </s>``: packed rows hold several, but none sees
    another, and positions begin at zero with each, exactly as when a sentence is scored alone.

    Args:
        run: the folder, the seed and the device, see `mtmetrics.training.run`.
        mono: monolingual files, see `corpus.read_lines`.
        parallel: parallel files of which one side is used, see `corpus.read_pairs`.
        side: that side, ``"source"`` or ``"target"``.
        exclude: origins to leave out, see `corpus.origin_matches`.
        weights: origin, or pattern of origins -> how often its sentences occur per epoch, see
            `corpus.number_for`; 1 for all others.
        config: the options of the training.
    """
    weights = weights or {}
    choice("side", side, ("source", "target"))
    files = {"mono": [corpus.parse_ranges(spec)[0] for spec in mono], "parallel": parallel}
    # Files are known by their content, so a moved one belongs to the same training.
    mono_names = [
        Path(path).name + spec.removeprefix(path)
        for spec, path in zip(mono, files["mono"], strict=True)
    ]
    run.open(config, files, mono=mono_names, side=side, exclude=sorted(exclude), weights=weights)
    sentences, counts = _read(mono, parallel, side, exclude)
    train, held = _split(sentences, config.held_back, run.seed)
    log.info("%d sentences for training, %d held back", len(train), len(held))

    def make_tokenizers() -> "dict[str, PreTrainedTokenizerFast]":
        vocabulary = train_bpe([text for text, _ in train], config.vocabulary)
        return {"lm": as_pretrained(vocabulary, config.context)}

    tokenizer = run.tokenizers(make_tokenizers)["lm"]
    repeated: list[str] = []
    for text, origin in train:
        repeated += [text] * corpus.number_for(origin, weights, 1)
    random.Random(run.seed).shuffle(repeated)
    packed = pack(tokenizer, repeated, config.context)
    packed_held = pack(tokenizer, held, config.context)
    log.info("%d tokens per epoch in %d rows", packed.tokens, len(packed.rows))

    trainer = _trainer(run, config, tokenizer, packed, packed_held)
    run.train(trainer)
    result = perplexity(trainer.model, packed_held, sum(len(text) for text in held))
    log.info("held back: %s", result)
    trainer.model.config.use_cache = True
    record = {
        "data": counts.as_dict(),
        "sentences": {
            "train": len(train),
            "train_with_weights": len(repeated),
            "held_back": len(held),
        },
        "tokens_per_epoch": packed.tokens,
        "cut_at_context": packed.cut,
        "result": result,
    }
    with run.artifact("causal language model", "mtmetrics train lm", **record) as folder:
        save_model(trainer.model, tokenizer, folder)
    return run.output


def _read(
    mono: Sequence[str],
    parallel: Sequence[str],
    side: str,
    exclude: Sequence[str],
) -> tuple[list[tuple[str, str]], corpus.Counts]:
    """Reads the distinct sentences with their origins, sorted; and counts the lines that are used and
    left out.

    Args:
        mono: monolingual files.
        parallel: parallel files.
        side: the side of parallel files to read.
        exclude: origins to leave out.
    """
    if not mono and not parallel:
        raise InputError("no text was given; pass --mono or --parallel files")
    lines, counts = corpus.read_lines(mono, exclude)
    if parallel:
        pairs, pair_counts = corpus.read_pairs(parallel, exclude)
        counts.used |= pair_counts.used
        counts.left_out += pair_counts.left_out
        lines += [(getattr(pair, side), pair.origin) for pair in pairs]
    # Reversed, so that a sentence has the origin of its first line.
    origin_of_sentence = dict(reversed(lines))
    counts.left_out["repeated"] += len(lines) - len(origin_of_sentence)
    if not origin_of_sentence:
        raise InputError(
            "the files hold no sentence that may be used; check --exclude-origin and the line "
            "ranges"
        )
    return sorted(origin_of_sentence.items()), counts


def _split(
    sentences: list[tuple[str, str]],
    held_back: int,
    seed: int,
) -> tuple[list[tuple[str, str]], list[str]]:
    """Splits sentences into those to train on, with their origins, and `held_back` others, which share
    no `corpus.text_key` with them."""
    keys = [corpus.text_key(text) for text, _ in sentences]
    shuffled_keys = sorted(set(keys))
    if held_back >= len(shuffled_keys):
        raise InputError(
            f"{len(shuffled_keys)} sentences are too few to hold back {held_back}; lower --held-back"
        )
    random.Random(seed).shuffle(shuffled_keys)
    held_keys = set(shuffled_keys[:held_back])
    train: list[tuple[str, str]] = []
    # One text for each key.
    held: dict[str, str] = {}
    for (text, origin), key in zip(sentences, keys, strict=True):
        if key in held_keys:
            held[key] = text
        else:
            train.append((text, origin))
    return train, list(held.values())


class PackedTexts(NamedTuple):
    """Rows of tokens, each filled with whole texts.

    Attributes:
        rows: ``input_ids``, ``labels`` and ``position_ids``, the positions of the tokens in their
            texts, of each row.
        tokens: the number of tokens, padding not counted.
        cut: the number of texts that were cut.
    """

    rows: "Dataset"
    tokens: int
    cut: int


def pack(tokenizer: "PreTrainedTokenizerFast", texts: Sequence[str], context: int) -> PackedTexts:
    """Fills rows of `context` tokens with ``<s> text </s>``, first fit among the latest open rows.

    Texts longer than a row are cut. No text of a row sees another: without an attention mask and a
    cache of keys, `transformers` finds the begin of each where the positions begin again at 0.
    """
    from datasets import Dataset

    start, end, pad = tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id
    rows: list[dict[str, list[int]]] = []
    # The rows that texts are still added to.
    open_rows: list[dict[str, list[int]]] = []
    tokens, cut = 0, 0
    for text_ids in token_ids(texts, tokenizer, add_special_tokens=False):
        ids = [start, *text_ids, end]
        if len(ids) > context:
            cut += 1
            ids = ids[:context]
        room = context - len(ids)
        row = next((row for row in open_rows if len(row["input_ids"]) <= room), None)
        if row is None:
            row = {"input_ids": [], "position_ids": []}
            rows.append(row)
            open_rows = [*open_rows, row][-_OPEN_ROWS:]
        row["input_ids"] += ids
        row["position_ids"] += range(len(ids))
        tokens += len(ids)
    for row in rows:
        padding = context - len(row["input_ids"])
        row["input_ids"] += [pad] * padding
        row["position_ids"] += range(padding)
        row["labels"] = [_IGNORED if token in (start, pad) else token for token in row["input_ids"]]
    return PackedTexts(Dataset.from_list(rows).with_format("torch"), tokens, cut)


def _trainer(
    run: Run,
    config: LMConfig,
    tokenizer: "PreTrainedTokenizerFast",
    train: PackedTexts,
    held: PackedTexts,
) -> "Trainer":
    """The trainer of a new model of the GPT-2 architecture, on packed texts."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, set_seed

    set_seed(run.seed)
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
    return Trainer(
        model=model,
        # The optimiser has learning rates of its own, so the one of these settings is not used.
        args=trainer_settings(run, config, config.matrix_lr, rows_per_step=config.rows_per_step),
        train_dataset=train.rows,
        eval_dataset=held.rows,
        optimizers=(MuonAdamW(model, config.matrix_lr, config.other_lr, config.weight_decay), None),
    )


class MuonAdamW(Optimizer):
    """Two optimisers as one, so that one schedule and one checkpoint serve both: Muon for matrices,
    AdamW for vectors and for the tables of embeddings, which the output layer shares.

    Args:
        model: has the parameters.
        matrix_lr: learning rate of Muon.
        other_lr: learning rate of AdamW.
        weight_decay: of matrices.

    Attributes:
        parts: Muon and AdamW.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        matrix_lr: float,
        other_lr: float,
        weight_decay: float = 0.01,
    ) -> None:
        table_ids = {
            id(module.weight)
            for module in model.modules()
            if isinstance(module, torch.nn.Embedding)
        }
        learnt = [values for values in model.parameters() if values.requires_grad]
        tables = [values for values in learnt if id(values) in table_ids]
        no_tables = [values for values in learnt if id(values) not in table_ids]
        matrices, vectors = decay_groups(no_tables, weight_decay)
        self.parts: list[Optimizer] = [
            Muon([matrices], lr=matrix_lr, adjust_lr_fn="match_rms_adamw"),
            AdamW(
                [{"params": tables, "weight_decay": 0.0}, vectors],
                lr=other_lr,
                betas=(0.9, 0.98),
            ),
        ]
        # The groups are those of the parts, not copies, so a schedule changes both.
        super().__init__([group for part in self.parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = closure() if closure is not None else None
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, list[dict[str, object]]]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, list[dict[str, object]]]) -> None:
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        # Loading replaced the groups that both share with this optimiser.
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def perplexity(model: "PreTrainedModel", texts: PackedTexts, characters: int) -> dict[str, float]:
    """Perplexity per token (the end of a text counts) and bits per character, in float32.

    Args:
        model: the language model; it is in float32 and in evaluation mode afterwards.
        texts: packed texts.
        characters: number of characters of the texts, before any was cut.
    """
    model = model.float().eval()
    total_loss, tokens = 0.0, 0
    with torch.no_grad():
        for rows in DataLoader(texts.rows, batch_size=_ROWS_PER_EVALUATION):
            batch = {name: values.to(model.device) for name, values in rows.items()}
            labels = batch.pop("labels")[:, 1:]
            logits = model(**batch, use_cache=False).logits[:, :-1].flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(
                logits,
                labels.flatten(),
                ignore_index=_IGNORED,
                reduction="sum",
            )
            total_loss += loss.item()
            tokens += int((labels != _IGNORED).sum())
    return {
        "perplexity": round(math.exp(total_loss / tokens), 3),
        "bits_per_character": round(total_loss / math.log(2) / characters, 4),
        "tokens": tokens,
    }
