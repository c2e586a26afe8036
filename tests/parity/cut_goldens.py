"""Cuts the part of the golden files that this repository holds: ``python
tests/parity/cut_goldens.py GOLDENS``.

Kept are inputs that were made by hand (no sentence of a corpus), numbers, and models with the
places of short texts and, if they are encoders, the pieces of those inputs alone, which give the
same values. See data/README.md."""

import json
import shutil
import sys
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

OUT = Path(__file__).parent / "data"
# Model -> the places that are kept of it.
MODELS = {"tiny-mbert": 64, "tiny-xlmr": 160, "tiny-gpt2": 160}
WORDS = {"embeddings.word_embeddings.weight", "transformer.wte.weight"}
POSITIONS = {"embeddings.position_embeddings.weight", "transformer.wpe.weight"}
# File -> the cases that are kept of it; they need no corpus and none of the other models.
CASES = {
    "xmoverscore": [*range(14), *range(17, 42)],
    "bertr": [0, 1, 2, 3],
    "bertscore": [0, 2, 3, 4],
    "uscore_wrd": range(17),
    "uscore_snt": [0, *range(4, 10)],
    "sentsim": range(8),
    "mining": [0, 1, 2, 3],
    "esim": [0, 2],
}
# File -> its outputs that belong to the inputs before them; others are of the first input, or of
# all together.
OUTPUTS = {
    "uscore_snt": {"score", "loss", "wrd", "uscore"},
    "sentsim": {
        "raw_cosine",
        "raw_wmd",
        "raw_wmd_exact_lp",
        "raw_bertscore_f1",
        "raw_smd",
        "raises",
    },
}
OTHERS = ["mapping_clp_32.npy", "mapping_umd_32.npy", "mining.dev.npz"]


def cut(
    document: dict[str, Any], numbers: Iterable[int], outputs: Container[str] | None
) -> dict[str, Any]:
    """The cases of a file, with the inputs made by hand and the outputs of these, or those named
    among them."""
    inputs = document["inputs"] if isinstance(document["inputs"], list) else []
    cases = []
    for number in numbers:
        case = document["cases"][number]
        names = case.get("subset", [row["id"] for row in inputs])
        rows = [row for row, name in enumerate(names) if _by_hand(name)]
        if "subset" in case:
            case["subset"] = [names[row] for row in rows]
        if "pairs" in case or case.get("subset") == []:
            sys.exit(f"case {number} has inputs of a corpus")
        for key in case.keys() & {"outputs", "outputs_batch_size_1"}:
            for name, values in [*case[key].items()]:
                if outputs is not None and name not in outputs:
                    del case[key][name]
                elif isinstance(values, list) and len(values) == len(names):
                    case[key][name] = [values[row] for row in rows]
        cases.append(case)
    return {**document, "inputs": [row for row in inputs if _by_hand(row["id"])], "cases": cases}


def _by_hand(name: str) -> bool:
    # The identical sentences could be a corpus's.
    return name.startswith("edge-") and name != "edge-identical"


def cut_model(goldens: Path, name: str, texts: list[str]) -> None:
    """A model with fewer places and, unless its softmax needs all, fewer pieces, which are the same
    of the texts."""
    source, folder, places = goldens / "models" / name, OUT / "models" / name, MODELS[name]
    tokenizer = AutoTokenizer.from_pretrained(source)
    ids = tokenizer(texts)["input_ids"]
    if max(map(len, ids)) > places:
        sys.exit(f"a text has more than {places} pieces")
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    pieces = sorted({*tokenizer.all_special_ids, *(number for row in ids for number in row)})
    if state["model"]["type"] == "BPE":
        pieces = list(range(len(tokenizer)))
    names = tokenizer.convert_ids_to_tokens(pieces)
    own = _tokenizer(state, tokenizer, pieces, names)
    own.model_max_length = places
    own.save_pretrained(folder)
    own.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    about = folder / "tokenizer_config.json"  # under the name that transformers 4 knows, too
    about.write_text(about.read_text().replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'))
    if [own.convert_ids_to_tokens(row) for row in own(texts)["input_ids"]] != [
        tokenizer.convert_ids_to_tokens(row) for row in ids
    ]:
        sys.exit(f"the smaller tokenizer of {name} gives other pieces")

    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    # Position numbers of XLM-R start behind the padding id.
    positions = places + (
        config["pad_token_id"] + 1 if config["model_type"] == "xlm-roberta" else 0
    )
    tensors = load_file(source / "model.safetensors")
    for key in [key for key in tensors if key.startswith("pooler.")]:
        del tensors[key]
    for key in tensors.keys() & WORDS:
        tensors[key] = tensors[key][pieces]
    for key in tensors.keys() & POSITIONS:
        tensors[key] = tensors[key][:positions]
    save_file(
        {key: np.ascontiguousarray(values) for key, values in tensors.items()},
        folder / "model.safetensors",
    )
    config["vocab_size"] = len(pieces)
    config["n_positions" if "n_positions" in config else "max_position_embeddings"] = positions
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _tokenizer(
    state: dict[str, Any], tokenizer: PreTrainedTokenizerFast, pieces: list[int], names: list[str]
) -> PreTrainedTokenizerFast:
    """A tokenizer with some of the pieces, numbered anew."""
    model = state["model"]
    if model["type"] == "Unigram":
        model["vocab"] = [model["vocab"][number] for number in pieces]
        model["unk_id"] = names.index(tokenizer.unk_token)
        # The table of SentencePiece is larger than all else here, and these inputs need none of its
        # own rules.
        state["normalizer"] = {"type": "NFKC"}
    else:
        model["vocab"] = {name: number for number, name in enumerate(names)}
    for token in state["added_tokens"]:
        token["id"] = names.index(token["content"])
    for token in state["post_processor"].get("special_tokens", {}).values():
        token["ids"] = [names.index(name) for name in token["tokens"]]
    special = {
        key: token for key, token in tokenizer.special_tokens_map.items() if key != "mask_token"
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), **special
    )


def main(goldens: Path) -> None:
    """Writes the part anew."""
    texts = set()
    for kind, numbers in CASES.items():
        document = json.loads((goldens / f"{kind}.dev.json").read_text(encoding="utf-8"))
        part = cut(document, numbers, OUTPUTS.get(kind))
        if "weights" in part["model"]:
            part["model"]["weights"] = f"{kind}.part.safetensors"
            tensors = load_file(goldens / document["model"]["weights"].replace(".part.", ".dev."))
            save_file(
                {name: values for name, values in tensors.items() if "text_model" not in name},
                OUT / f"{kind}.part.safetensors",
            )
        if "sentence" in part["model"]:
            part["model"]["sentence"] = part["model"]["word"]  # the same weights
        rows = [*part["inputs"], *(case["single"] for case in part["cases"] if "single" in case)]
        texts.update(row[side] for row in rows for side in ("source", "hypothesis", "reference"))
        text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        (OUT / f"{kind}.part.json").write_text(text + "\n", encoding="utf-8")
    for name in OTHERS:
        shutil.copyfile(goldens / name, OUT / name)
    for name in MODELS:
        cut_model(goldens, name, sorted(texts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
