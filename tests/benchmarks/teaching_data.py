"""Makes outputs of other sources to label: ``teaching_data.py --parallel FILE ... --model MBART
--out FILE``.

The files are parallel text into one language (JSON Lines with source, target and origin), named by
their language pair. A target that has a source in the model's language gets two outputs: its
translation, greedy or sampled, and the target itself with some words replaced by those that the
model would have said there, and now and then a span left out. Each is written beside sources of up
to two languages that share the target, as rows for ``mtmetrics train labels``. So the outputs of other
sources were made from which `esim-mini` learned."""

import json
import random
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mtmetrics.artifacts.models import model_folder
from mtmetrics.io.atomic import atomic_text
from mtmetrics.io.tables import jsonl_rows
from mtmetrics.models.translator import generation_config, open_mbart, target_prefix
from mtmetrics.training.corpus import origin_matches

_BATCH, _PIECES = 64, 128
_TOP, _TEMPERATURE = 12, 0.8


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the rows, and prints how many there are."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--parallel", nargs="+", required=True, metavar="FILE", help="such as de-en.jsonl.gz"
    )
    parser.add_argument(
        "--exclude-origin", nargs="*", default=[], metavar="ORIGIN", help="may end in *"
    )
    parser.add_argument("--model", default="mini-mbart-de-en", help="default: %(default)s")
    parser.add_argument("--lp", default="de-en", help="of the model (default: %(default)s)")
    parser.add_argument(
        "--targets", type=int, default=20_000, help="so many are drawn (default: %(default)s)"
    )
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    source, target = args.lp.split("-")
    sources: dict[str, dict[str, str]] = {}
    for path in args.parallel:
        language = Path(path).name.split("-")[0]
        for _, row in jsonl_rows(path):
            if not origin_matches(row.get("origin", ""), args.exclude_origin):
                sources.setdefault(row["target"], {}).setdefault(language, row["source"])
    there = [text for text, found in sources.items() if source in found and 8 <= len(text) <= 350]
    rng = random.Random(args.seed)
    chosen = rng.sample(there, min(args.targets, len(there)))
    torch.manual_seed(args.seed)
    count = 0
    with atomic_text(args.out) as stream:
        for text, output, kind in outputs(chosen, sources, source, args):
            languages = sorted(sources[text])
            for language in rng.sample(languages, min(2, len(languages))):
                row = {
                    "lp": f"{language}-{target}",
                    "source": sources[text][language],
                    "reference": text,
                }
                stream.write(
                    json.dumps(row | {"translation": output, "system": kind}, ensure_ascii=False)
                    + "\n"
                )
                count += 1
    print(count)
    return 0


@torch.inference_mode()
def outputs(
    texts: Sequence[str], sources: Mapping[str, Mapping[str, str]], language: str, args: Any
) -> Iterator[tuple[str, str, str]]:
    """Each text with its outputs and what they are: ``greedy`` or ``sampled``, and ``replaced``."""
    tokenizer, network = open_mbart(model_folder(args.model), args.lp)
    network.eval()
    plain = generation_config(network.config, target_prefix(tokenizer, network.config.eos_token_id))
    sampled = generation_config(
        network.config, target_prefix(tokenizer, network.config.eos_token_id)
    )
    sampled.do_sample, sampled.top_k = True, _TOP
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    inside = np.array([piece.startswith("##") for piece in pieces])
    words = np.array([piece.isalpha() for piece in pieces])
    generator = np.random.default_rng(args.seed)
    options = {"truncation": True, "max_length": _PIECES, "padding": True, "return_tensors": "pt"}
    for number, first in enumerate(range(0, len(texts), _BATCH)):
        batch = texts[first : first + _BATCH]
        given = tokenizer([sources[text][language] for text in batch], **options)
        read = {name: given[name] for name in ("input_ids", "attention_mask")}
        kind, how = ("sampled", sampled) if number % 3 == 2 else ("greedy", plain)
        written = tokenizer.batch_decode(
            network.generate(**read, generation_config=how), skip_special_tokens=True
        )
        labels = tokenizer(text_target=list(batch), **options)["input_ids"]
        logits = network(
            **read, labels=labels.masked_fill(labels == tokenizer.pad_token_id, -100)
        ).logits
        said = torch.distributions.Categorical(logits=logits / _TEMPERATURE).sample().numpy()
        said = np.where(generator.random(said.shape) < 0.5, logits.argmax(-1).numpy(), said)
        for text, translation, own, other in zip(batch, written, labels.numpy(), said, strict=True):
            own, other = own[own != tokenizer.pad_token_id], other[own != tokenizer.pad_token_id]
            # Whole words alone: not where the next piece goes on with the word.
            whole = (
                words[own]
                & ~inside[own]
                & ~np.append(inside[own[1:]], False)
                & words[other]
                & ~inside[other]
            )
            mixed = np.where(
                whole & (generator.random(len(own)) < generator.uniform(0.05, 0.75)), other, own
            )
            if generator.random() < 0.25 and len(mixed) > 8:
                size = int(generator.integers(2, len(mixed) // 3 + 1))
                begin = int(generator.integers(1, len(mixed) - size))
                mixed = np.delete(mixed, slice(begin, begin + size))
            replaced = tokenizer.decode(mixed, skip_special_tokens=True)
            for output, name in ((translation.strip(), kind), (replaced.strip(), "replaced")):
                if output and output.lower() != text.lower():
                    yield text, output, name


if __name__ == "__main__":
    sys.exit(main())
