"""Cuts the part of the golden files that this repository holds: ``python tests/parity/cut_goldens.py GOLDENS``.

Kept are inputs that were made by hand (no sentence of a corpus), numbers, and the encoder `tiny-mbert` with the pieces
of those inputs and the places of short texts, which gives the same vectors. See data/README.md.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

OUT = Path(__file__).parent / "data"
PLACES = 64
ENCODER = Path("models", "tiny-mbert")
# File -> its cases that need no corpus, no language model and no other encoder.
CASES = {
    "xmoverscore": [0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, *range(23, 32), *range(34, 40)],
    "bertr": [0, 1, 2, 3],
    "bertscore": [0, 3, 4],
    "uscore_wrd": [0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16],
    "uscore_snt": [4, 5, 6, 9],
    "mining": [0, 1, 2, 3],
    "esim": [0, 2],
}
OTHERS = ["mapping_clp_32.npy", "mapping_umd_32.npy", "mining.dev.npz"]


def cut(document: dict[str, Any], numbers: list[int]) -> dict[str, Any]:
    """The cases of a file, with the inputs made by hand and the outputs of these."""
    inputs = document["inputs"] if isinstance(document["inputs"], list) else []
    rows = [number for number, row in enumerate(inputs) if _by_hand(row["id"])]

    def kept(values: Any) -> Any:
        of_inputs = isinstance(values, list) and len(values) == len(inputs)
        return [values[row] for row in rows] if of_inputs else values

    cases = []
    for number in numbers:
        case = document["cases"][number]
        if case.keys() & {"subset", "pairs"}:
            sys.exit(f"case {number} has inputs of a corpus")
        for name in case.keys() & {"outputs", "outputs_batch_size_1"}:
            case[name] = {output: kept(values) for output, values in case[name].items()}
        cases.append(case)
    return {**document, "inputs": [inputs[row] for row in rows], "cases": cases}


def _by_hand(name: str) -> bool:
    # The identical sentences could be a corpus's.
    return name.startswith("edge-") and name != "edge-identical"


def cut_encoder(goldens: Path, texts: list[str]) -> None:
    """The encoder with fewer pieces and places; greedy matching finds the same pieces among the remaining ones."""
    tokenizer = AutoTokenizer.from_pretrained(goldens / ENCODER)
    ids = tokenizer(texts)["input_ids"]
    if max(map(len, ids)) > PLACES:
        sys.exit(f"a text has more than {PLACES} pieces")
    pieces = sorted({*tokenizer.all_special_ids, *(number for row in ids for number in row)})
    names = tokenizer.convert_ids_to_tokens(pieces)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["model"]["vocab"] = {name: number for number, name in enumerate(names)}
    for token in state["added_tokens"]:
        token["id"] = names.index(token["content"])
    for token in state["post_processor"]["special_tokens"].values():
        token["ids"] = [names.index(name) for name in token["tokens"]]
    special = {name: getattr(tokenizer, name) for name in ("pad_token", "unk_token", "cls_token", "sep_token")}
    own = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)), **special)
    own.model_max_length = PLACES
    folder = OUT / ENCODER
    own.save_pretrained(folder)
    about = folder / "tokenizer_config.json"  # under the name that transformers 4 knows, too
    about.write_text(about.read_text().replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'))
    if [own.convert_ids_to_tokens(row) for row in own(texts)["input_ids"]] != [
        tokenizer.convert_ids_to_tokens(row) for row in ids
    ]:
        sys.exit("the smaller tokenizer gives other pieces")

    tensors = load_file(goldens / ENCODER / "model.safetensors")
    for name in [name for name in tensors if name.startswith("pooler.")]:
        del tensors[name]
    tensors["embeddings.word_embeddings.weight"] = tensors["embeddings.word_embeddings.weight"][pieces]
    tensors["embeddings.position_embeddings.weight"] = tensors["embeddings.position_embeddings.weight"][:PLACES]
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()}, folder / "model.safetensors")
    config = json.loads((goldens / ENCODER / "config.json").read_text(encoding="utf-8"))
    config |= {"vocab_size": len(pieces), "max_position_embeddings": PLACES}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def main(goldens: Path) -> None:
    """Writes the part anew."""
    texts = set()
    for kind, numbers in CASES.items():
        document = json.loads((goldens / f"{kind}.dev.json").read_text(encoding="utf-8"))
        part = cut(document, numbers)
        if "weights" in part["model"]:
            part["model"]["weights"] = f"{kind}.part.safetensors"
            tensors = load_file(goldens / document["model"]["weights"].replace(".part.", ".dev."))
            save_file(
                {name: values for name, values in tensors.items() if "text_model" not in name},
                OUT / f"{kind}.part.safetensors",
            )
        rows = [*part["inputs"], *(case["single"] for case in part["cases"] if "single" in case)]
        texts.update(row[side] for row in rows for side in ("source", "hypothesis", "reference"))
        text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        (OUT / f"{kind}.part.json").write_text(text + "\n", encoding="utf-8")
    for name in OTHERS:
        shutil.copyfile(goldens / name, OUT / name)
    cut_encoder(goldens, sorted(texts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
