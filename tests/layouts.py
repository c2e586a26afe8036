"""Tiny random models in the layouts of public repositories: files, names of tensors, and what is
absent."""

import json
import os
from pathlib import Path
from typing import Any

import torch
import transformers
from conftest import WORDS
from tokenizers import Tokenizer
from tokenizers.decoders import Metaspace as MetaspaceDecoder
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace, Sequence, WhitespaceSplit

_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
_PIECES = [(piece, 0.0) for piece in _SPECIAL] + [
    (f"▁{word}", -1.0) for word in dict.fromkeys(WORDS)
]
_PIECES += [
    (letter, -6.0)
    for letter in ["▁", *"abcdefghijklmnopqrstuvwxyzäöüß"]
    if (letter, -1.0) not in _PIECES
]
_SMALL = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}


def mbart_tokenizer(kind: str, pieces: list[tuple[str, float]]) -> Any:
    """A tokenizer of MBart, such as ``"MBart50Tokenizer"``, with these pieces."""
    languages = {"src_lang": "en_XX", "tgt_lang": "ro_RO"}
    if int(transformers.__version__.partition(".")[0]) > 4:
        return getattr(transformers, kind)(vocab=pieces, **languages)
    whole = Tokenizer(Unigram(pieces, unk_id=3))
    whole.pre_tokenizer = Sequence([WhitespaceSplit(), Metaspace()])
    whole.decoder = MetaspaceDecoder()
    return getattr(transformers, f"{kind}Fast")(tokenizer_object=whole, **languages)


def _configured(
    folder: Path, config: transformers.PretrainedConfig, tokenizer: object, **more: object
) -> Path:
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    return folder


def mbart_cc25(folder: Path) -> Path:
    """facebook/mbart-large-cc25: a pickle whose word vectors are shared under three names, beams in
    config.json, and neither tokenizer_config.json nor generation_config.json."""
    tokenizer = mbart_tokenizer("MBartTokenizer", _PIECES)
    sides = {
        f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in _SIDE.items()
    }
    config = transformers.MBartConfig(
        vocab_size=len(tokenizer), d_model=8, max_position_embeddings=64, init_std=0.5, **sides
    )
    config.architectures = ["MBartForConditionalGeneration"]
    torch.manual_seed(3)
    weights = transformers.MBartForConditionalGeneration(config).state_dict()
    del weights["lm_head.weight"]
    _configured(folder, config, tokenizer, num_beams=5, max_length=1024)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    torch.save(weights, folder / "pytorch_model.bin")
    return folder


_SIDE = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}


def bert_multilingual(folder: Path, tokenizer: Path, layers: int = 12) -> Path:
    """google-bert/bert-base-multilingual-cased before its conversion: weights and biases of
    LayerNorm are called gamma and beta, and the head of the language model shares the word
    vectors."""
    made = transformers.AutoTokenizer.from_pretrained(tokenizer)
    config = transformers.BertConfig(
        vocab_size=len(made), num_hidden_layers=layers, initializer_range=0.3, **_SMALL
    )
    config.architectures = ["BertForMaskedLM"]
    torch.manual_seed(1)
    weights = transformers.BertForPreTraining(config).state_dict()
    for name in list(weights):
        if "LayerNorm" in name:
            weights[
                name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                    "LayerNorm.bias", "LayerNorm.beta"
                )
            ] = weights.pop(name)
    _configured(folder, config, made)
    torch.save(weights, folder / "pytorch_model.bin")
    return folder


def xlm_roberta(folder: Path) -> Path:
    """FacebookAI/xlm-roberta-base: a language model, of which the encoder is used."""
    tokenizer = transformers.XLMRobertaTokenizer(vocab=_PIECES)
    sizes = {"num_hidden_layers": 2, "max_position_embeddings": 66, "pad_token_id": 1}
    config = transformers.XLMRobertaConfig(
        vocab_size=len(tokenizer), initializer_range=0.3, **sizes, **_SMALL
    )
    torch.manual_seed(2)
    transformers.XLMRobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def gpt2(folder: Path, model: Path) -> Path:
    """openai-community/gpt2: the pickle of a GPT-2 without the prefix `transformer` and without the
    head, in the old format that is no zip file, with the masks that it held."""
    made = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.GPT2LMHeadModel.from_pretrained(model)
    weights = {
        f"h.{number}.attn.bias": torch.ones(1, 1, 4, 4) for number in range(network.config.n_layer)
    }
    weights |= network.transformer.state_dict()
    _configured(folder, network.config, made)
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    return folder


class Attack:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple:
        return os.system, (self.command,)
