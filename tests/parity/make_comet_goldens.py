"""Makes the goldens of COMET: tiny checkpoints with random weights, and what the published package
says of them.

It needs an environment of its own, since that package goes together with older libraries than ours:

    python -m venv comet && comet/bin/pip install unbabel-comet==2.2.7 'setuptools<81'
    comet/bin/python tests/parity/make_comet_goldens.py tests/parity/comet

`tests/parity/test_comet_parity.py` converts the checkpoints and compares.
"""

import argparse
import json
import os
import random
from pathlib import Path

import torch
import transformers
from comet.models import str2model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

WORDS = [
    "das",
    "haus",
    "ist",
    "klein",
    "der",
    "hund",
    "schläft",
    "nicht",
    "the",
    "house",
    "is",
    "small",
    "dog",
    "sleeps",
    "a",
    "tree",
    "3",
    "!",
    "?",
    "maison",
    "été",
]
SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
REGRESSION = {"hidden_sizes": [6, 4], "activations": "Tanh", "layer": "mix", "pool": "avg"}
UNIFIED = {
    "hidden_sizes": [6, 4],
    "activations": "Tanh",
    "sent_layer": "mix",
    "input_segments": ["mt", "src", "ref"],
}
# Name -> class, encoder, and settings.
MODELS = {
    "regression": (
        "regression_metric",
        "XLM-RoBERTa",
        REGRESSION | {"layer_transformation": "softmax"},
    ),
    "regression-cls": (
        "regression_metric",
        "BERT",
        REGRESSION | {"layer_transformation": "sparsemax", "layer_norm": False, "pool": "cls"},
    ),
    "regression-max": (
        "regression_metric",
        "XLM-RoBERTa",
        REGRESSION | {"layer": 1, "pool": "max", "final_activation": "Sigmoid"},
    ),
    "regression-default": ("regression_metric", "MiniLM", REGRESSION | {"pool": "default"}),
    "referenceless": ("referenceless_regression_metric", "XLM-RoBERTa", REGRESSION),
    "unified-source": (
        "unified_metric",
        "XLM-RoBERTa",
        UNIFIED
        | {
            "input_segments": ["mt", "src"],
            "layer_norm": False,
            "layer_transformation": "sparsemax",
        },
    ),
    "unified-words": (
        "unified_metric",
        "XLM-RoBERTa",
        UNIFIED | {"word_level_training": True, "word_layer": 2, "layer_transformation": "softmax"},
    ),
    "unified-bert": ("unified_metric", "BERT", UNIFIED | {"sent_layer": 2}),
    "unified-rembert": ("unified_metric", "RemBERT", UNIFIED),
    "xcomet": ("xcomet_metric", "XLM-RoBERTa-XL", {"hidden_sizes": [6, 4], "word_layer": 2}),
}


def sentences(number: int, longest: int) -> list[str]:
    return [" ".join(random.choices(WORDS, k=random.randint(1, longest))) for _ in range(number)]


def segments() -> list[dict[str, str]]:
    columns = [sentences(24, longest) for longest in (9, 9, 9)]
    rows = [
        dict(zip(("src", "mt", "ref"), texts, strict=True)) for texts in zip(*columns, strict=True)
    ]
    # Longer than a text may be, longer than all three together may be, and one that comes twice.
    for keys, length in (
        (["mt"], 60),
        (["src", "ref"], 60),
        (["src", "mt", "ref"], 14),
        (["src", "mt", "ref"], 90),
    ):
        rows.append(
            {key: sentences(1, length)[0] for key in rows[0]}
            | {key: " ".join(random.choices(WORDS, k=length)) for key in keys}
        )
    return [*rows, rows[0], {"src": "zu ß 漢字", "mt": "x", "ref": "der   Hund\u00a0!"}]


def save_tokenizer(folder: Path, kind: str) -> None:
    """A tokenizer of the classes that COMET opens by name."""
    texts = sentences(400, 9)
    if kind == "BERT":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer.train_from_iterator(
            texts, trainers.WordPieceTrainer(vocab_size=70, special_tokens=special)
        )
        ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
        )
        made = transformers.BertTokenizerFast(tokenizer_object=tokenizer)
    else:
        rembert = kind == "RemBERT"
        cls, sep = ("[CLS]", "[SEP]") if rembert else ("<s>", "</s>")
        special = (
            ["<pad>", "<unk>", cls, sep, "[MASK]"]
            if rembert
            else [cls, "<pad>", sep, "<unk>", "<mask>"]
        )
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        )
        trainer = trainers.UnigramTrainer(vocab_size=70, special_tokens=special, unk_token="<unk>")
        tokenizer.train_from_iterator(texts, trainer)
        ids = [(name, tokenizer.token_to_id(name)) for name in (cls, sep)]
        between = sep if rembert else f"{sep} {sep}"
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=f"{cls} $A {between} $B {sep}", special_tokens=ids
        )
        opened = (
            transformers.RemBertTokenizerFast if rembert else transformers.XLMRobertaTokenizerFast
        )
        made = opened(tokenizer_object=tokenizer)
    made.save_pretrained(folder)


def save_encoder(folder: Path, kind: str) -> None:
    save_tokenizer(folder, kind)
    size = len(transformers.AutoTokenizer.from_pretrained(folder))
    config = {
        "BERT": transformers.BertConfig,
        "MiniLM": transformers.BertConfig,
        "RemBERT": transformers.RemBertConfig,
        "XLM-RoBERTa": transformers.XLMRobertaConfig,
        "XLM-RoBERTa-XL": transformers.XLMRobertaXLConfig,
    }[kind]
    own = {"input_embedding_size": 6, "output_embedding_size": 6} if kind == "RemBERT" else {}
    padding = 0 if kind in ("BERT", "RemBERT") else 1
    config(vocab_size=size, pad_token_id=padding, **SIZES, **own).save_pretrained(folder)


def randomise(model: torch.nn.Module) -> None:
    """Weights that are large enough for every part to show in the scores."""
    with torch.no_grad():
        for name, values in model.named_parameters():
            if name.endswith(("LayerNorm.weight", "layer_norm.weight", "gamma")):
                values.uniform_(0.7, 1.3)
            elif "scalar_parameters" in name:
                values.normal_(0, 0.5)
            else:
                values.normal_(0, 0.6 if values.ndim > 1 else 0.2)


def plain(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(out)
    random.seed(8)
    torch.manual_seed(8)
    data = segments()
    kinds = sorted({kind for _, kind, _ in MODELS.values()})
    for kind in kinds:
        save_encoder(Path("encoders", kind), kind)
    # COMET opens this tokenizer for MiniLM, whatever the encoder.
    Path("xlm-roberta-base").symlink_to(Path("encoders", "MiniLM"))
    found = {"data": data, "models": {}}
    for name, (identifier, kind, settings) in MODELS.items():
        given = {
            "encoder_model": kind,
            "pretrained_model": f"encoders/{kind}",
            "load_pretrained_weights": False,
        }
        model = str2model[identifier](**given, **settings)
        randomise(model)
        folder = Path("models", name)
        (folder / "checkpoints").mkdir(parents=True)
        told = dict(model.hparams) | {"class_identifier": identifier}
        (folder / "hparams.yaml").write_text(
            "".join(f"{key}: {json.dumps(value)}\n" for key, value in told.items())
        )
        # As Lightning writes them: more than tensors lies beside the weights.
        around = {
            "epoch": 1,
            "callbacks": {transformers.TrainerCallback: {"best": 0.5}},
            "hyper_parameters": told,
        }
        torch.save(
            {"state_dict": model.state_dict(), **around}, folder / "checkpoints" / "model.ckpt"
        )
        sides = (
            ["source"]
            if identifier.startswith("referenceless") or name == "unified-source"
            else ["both"]
        )
        if identifier in ("xcomet_metric", "unified_metric") and name != "unified-source":
            sides += ["source", "reference"]
        cases = {}
        for side in sides:
            keys = {
                "both": ("src", "mt", "ref"),
                "source": ("src", "mt"),
                "reference": ("mt", "ref"),
            }[side]
            rows = [{key: row[key] for key in keys} for row in data]
            options = {
                "length_batching": side != "reference",
                "num_workers": 1,
                "progress_bar": False,
                "gpus": 0,
            }
            if side == "reference":
                with torch.no_grad():  # `predict` needs sources to know the lengths
                    said = model.eval().predict_step(model.prepare_sample(rows, stage="predict"))
            else:
                said = model.predict(rows, batch_size=7, **options)
            cases[side] = {"scores": plain(said["scores"])}
            cases[side] |= {
                key: plain(value) for key, value in (said.get("metadata") or {}).items()
            }
        found["models"][name] = cases
    Path("xlm-roberta-base").unlink()
    Path("goldens.json").write_text(json.dumps(found), encoding="utf-8")
    for path in Path().rglob("*"):
        if path.name in ("special_tokens_map.json", "vocab.txt"):  # tokenizer.json says the same
            path.unlink()
        elif path.suffix == ".json":
            whole = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(json.dumps(whole, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
