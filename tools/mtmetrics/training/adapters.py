"""Low-rank adapters of an encoder (LoRA; Hu et al., 2022), which learn from sentence pairs while
the encoder stays as it is."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.adapters import WEIGHTS, is_adapter, read_adapter, write_settings
from mtmetrics.artifacts.catalog import REPOSITORY_NAME_PATTERN
from mtmetrics.artifacts.models import (
    base_folder,
    language_tokenizers,
    loading,
    model_fingerprint,
    pretrained_tokenizer,
    require_adaptable,
    transformers_network,
)
from mtmetrics.artifacts.pickles import save_tensors
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.atomic import write_atomic
from mtmetrics.training.configs import ContrastiveConfig
from mtmetrics.training.corpus import Pair, languages_of

if TYPE_CHECKING:
    import torch
    from peft import PeftModel
    from transformers import Trainer, TrainingArguments

# alpha / r, the weight of the product of the two matrices.
_SCALE = 2
_SIDES = ("source", "target")
# `input_ids`, `attention_mask` and perhaps `token_type_ids` of the texts of one side, (B, T).
Batch = dict[str, "torch.Tensor"]
# A loss of a model and of the batches of both sides, as those of `mtmetrics.training.sentence`.
Loss = Callable[[Callable[[Batch], Batch], Sequence[Batch], None], "torch.Tensor"]


def mean_pooled(network: "torch.nn.Module") -> Callable[[Batch], Batch]:
    """The function that gives a batch the means of its token vectors, (B, d), as
    ``sentence_embedding``; it is called as a sentence-transformers model is."""

    def encode(batch: Batch) -> Batch:
        mask = batch["attention_mask"]
        states = network(**batch).last_hidden_state
        weights = mask[..., None].to(states.dtype)
        return {"sentence_embedding": (states * weights).sum(1) / weights.sum(1)}

    return encode


def check_start(start: Path, rank: int) -> None:
    """Refuses a model on which adapters of a rank cannot be trained.

    Args:
        start: folder of an encoder, or of adapters of one, which then learn on.
        rank: of the adapters.

    Raises:
        ArtifactError: the model is a pipeline of sentence-transformers.
        InputError: the adapters have another rank.
        MissingExtraError: peft is not installed.
    """
    require_extra("train", "training adapters")
    if not is_adapter(start):
        require_adaptable(start)
    elif read_adapter(start).rank != rank:
        raise InputError(
            f"adapter_rank {rank}: {start} holds adapters of rank {read_adapter(start).rank}; "
            "pass that",
            option="adapter_rank",
        )


def adapter_trainer(
    start: Path,
    pairs: Sequence[Pair],
    loss: Loss,
    settings: "TrainingArguments",
    config: ContrastiveConfig,
) -> "Trainer":
    """Makes a trainer of adapters on all linear layers of an encoder.

    Each side is read with the encoder's tokenizer for its language, where it has several.

    Args:
        start: see `check_start`.
        pairs: the sentence pairs.
        loss: of a step.
        settings: of the trainer.
        config: the rank, and where texts are cut.

    Raises:
        InputError: the encoder has tokenizers of single languages, and a file's name does not begin
            with its language pair.
    """
    from transformers import Trainer

    class AdapterTrainer(Trainer):
        def compute_loss(
            self,
            model: "PeftModel",
            inputs: dict[str, Batch],
            *args: object,
            **kwargs: object,
        ) -> "torch.Tensor":
            return loss(mean_pooled(model), [inputs[side] for side in _SIDES], None)

        def floating_point_ops(self, inputs: dict[str, Batch]) -> int:
            """Zero: nobody asks for them, and texts are not where they would be counted."""
            return 0

    settings.label_names = []
    return AdapterTrainer(
        model=_with_new_adapters(start, config.adapter_rank),
        args=settings,
        train_dataset=pairs,
        data_collator=_collator(start, pairs, config.max_pieces),
    )


def _with_new_adapters(start: Path, rank: int) -> "PeftModel":
    """The frozen encoder, with adapters that change nothing yet, or with those in a folder."""
    import torch
    from peft import LoraConfig, TaskType, get_peft_model, set_peft_model_state_dict
    from safetensors.torch import load_file

    network = transformers_network("AutoModel", base_folder(start), torch.float32)
    network.pooler = None  # of BERT and its kin: no part of a mean over tokens
    linear = [
        name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)
    ]
    settings = LoraConfig(
        r=rank,
        lora_alpha=_SCALE * rank,
        target_modules=linear,
        task_type=TaskType.FEATURE_EXTRACTION,
    )
    with loading(start, "adapters"):
        model = get_peft_model(network, settings)
        if is_adapter(start):
            set_peft_model_state_dict(model, load_file(start / WEIGHTS))
    return model


def _collator(
    start: Path,
    pairs: Sequence[Pair],
    pieces: int,
) -> Callable[[list[Pair]], dict[str, Batch]]:
    """The function that makes a batch of either side of some of the pairs: their texts cut at a
    number of pieces, and padded on the right."""
    from transformers import DataCollatorWithPadding

    tokenizer = pretrained_tokenizer(start)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:
        tokenizer.pad_token_id = 0  # any token will do, since attention is masked there
    readers = language_tokenizers(start)
    limit = min(pieces, tokenizer.model_max_length)
    groups = dict.fromkeys(pair.group for pair in pairs)
    languages = {group: _languages(group, list(readers)) for group in groups}
    pad = DataCollatorWithPadding(tokenizer)

    def collate(batch: list[Pair]) -> dict[str, Batch]:
        sides = {}
        for number, side in enumerate(_SIDES):
            encoded = []
            for pair in batch:
                reader = readers.get(languages[pair.group][number], tokenizer)
                text = getattr(pair, side)
                # Token types belong to encoders with a tokenizer for English; many others have none.
                encoded.append(
                    reader(
                        text,
                        truncation=True,
                        max_length=limit,
                        return_token_type_ids=bool(readers),
                    )
                )
            sides[side] = dict(pad(encoded))
        return sides

    return collate


def _languages(group: str, own: Sequence[str]) -> tuple[str, str]:
    """The languages of a file of pairs; two blanks where the encoder reads all languages alike."""
    if not own:
        return "", ""
    rule = (
        f"the encoder reads {' '.join(own)} with a vocabulary of its own, so each file's name "
        "begins with its language pair, e.g. de-en.jsonl"
    )
    return languages_of(group, rule)


def save_adapters(model: "PeftModel", start: Path, pairs: Sequence[Pair], folder: Path) -> None:
    """Saves trained adapters in the layout of peft, with weights in float16, and a card.

    Args:
        model: the encoder with the adapters.
        start: see `check_start`.
        pairs: what they learnt from, whose languages the card names.
        folder: to fill.

    Raises:
        MTMetricsError: the weights are not finite in half precision.
    """
    from peft import get_peft_model_state_dict

    stored = get_peft_model_state_dict(model)
    tensors = {name: tensor.detach().cpu().half() for name, tensor in sorted(stored.items())}
    bad = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
    if bad:
        raise MTMetricsError(
            f"{len(bad)} weights are not finite in half precision, the first is {bad[0]}; begin "
            "again with --restart and a lower --learning-rate"
        )
    save_tensors(tensors, folder / WEIGHTS)
    settings = model.peft_config["default"].to_dict()
    settings |= {
        "inference_mode": True,
        "target_modules": sorted(settings["target_modules"]),
    }
    base = base_folder(start)
    write_settings(folder, settings, base, model_fingerprint(base))
    write_atomic(folder / "README.md", _card(folder, _card_languages(pairs)))


def _card_languages(pairs: Sequence[Pair]) -> list[str]:
    """The languages that the names of the files tell, else ``multilingual``."""
    languages: dict[str, None] = {}
    for group in dict.fromkeys(pair.group for pair in pairs):
        try:
            languages |= dict.fromkeys(languages_of(group, "a language pair is needed"))
        except InputError:
            return ["multilingual"]
    return list(languages)


def _card(folder: Path, languages: Sequence[str]) -> str:
    import yaml

    adapter = read_adapter(folder)
    data = {
        "library_name": "peft",
        "language": list(languages),
        "tags": ["mtmetrics", "machine-translation", "evaluation", "sentence-similarity", "lora"],
        "base_model": [adapter.base] if REPOSITORY_NAME_PATTERN.fullmatch(adapter.base) else [],
        "datasets": [],
        "metrics": [],
    }
    name = Path(adapter.base).name
    return (
        f"---\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}---\n\n"
        f"# Sentence vectors by adapters on {name}\n\n"
        f"Low-rank adapters (rank {adapter.rank}) that were trained on sentence pairs by "
        f"`mtmetrics train contrastive`; settings and data are in `training.json`. They belong to "
        f"the encoder `{name}#{adapter.base_fingerprint}`, which stayed as it is, and are refused "
        "on any other. A text's vector is the mean of its token vectors.\n\n"
        '```toml\n[sentences]\nmodel = "DIR"\n```\n\n'
        "in the preset of a metric loads them, where `DIR` is this folder. `mtmetrics artifacts "
        "convert DIR --out MERGED` makes a model of its own for sentence-transformers.\n"
    )
