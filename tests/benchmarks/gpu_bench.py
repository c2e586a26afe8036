"""Measures pairs a second on a GPU: ``gpu_bench.py [--device NAME ...] [--pairs N] [--tiny] [--json
OUT]``.

For `mini` without its language model, and for untrained encoders of the shapes of BERT-base and
XLM-R-large, each in float32, bfloat16 and float16: the package with transport, the share of time
that transport takes, and `bert-score` at the same encoder, layer and format (left out where it is
absent; of `mini` it knows the tokenizer of other languages alone). With two devices, the package on
both together, too. ``--device cpu --tiny`` rehearses it all with small shapes. Sentences are made
up. Exit code 0 whatever the numbers say."""

import importlib.util
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import Report, alternating, machine, options
from workload import build_encoder, made_pairs

from mtmetrics.artifacts.models import model_folder
from mtmetrics.matching.transport import word_mover_distances
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.xmoverscore import XMoverScore

SHAPES = {"BERT-base": (768, 12, 12), "XLM-R-large": (1024, 24, 16)}
TINY = {"tiny": (64, 2, 4)}
FORMATS = ("float32", "bfloat16", "float16")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__)
    parser.add_argument(
        "--device", nargs="+", default=["cuda"], help="one or several (default: cuda)"
    )
    parser.add_argument(
        "--pairs", type=int, default=5000, help="pairs of sentences (default: %(default)s)"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="a small shape instead of the real ones"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="turns of each contender (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    sources, predictions = made_pairs(args.pairs)
    report = Report()
    print(f"{machine()}; {', '.join(map(_card, args.device))}")
    places = [args.device[0], *([",".join(args.device)] if len(args.device) > 1 else [])]
    with tempfile.TemporaryDirectory() as temporary:
        encoders = {"mini": (model_folder("mini-encoder"), 4)}
        for name, (width, layers, heads) in (TINY if args.tiny else SHAPES).items():
            shape = {"hidden": width, "layers": layers, "heads": heads}
            folder = build_encoder(Path(temporary, name), [*sources, *predictions], **shape)
            encoders[name] = (folder, max(1, layers * 3 // 4))
        for (name, (folder, layer)), dtype, place in itertools.product(
            encoders.items(), FORMATS, places
        ):
            contenders = _contenders(folder, layer, dtype, place, (sources, predictions))
            _measure(report, f"{name}, {dtype} on {place}", contenders, len(sources), args.repeats)
    report.finish(args.json, pairs=args.pairs)
    return 0


def _contenders(
    model: Path, layer: int, dtype: str, device: str, texts: tuple[list[str], list[str]]
) -> dict[str, Callable[[], object]]:
    sources, predictions = texts
    encoder = TokenEncoder(model, layer=layer, device=device, dtype=dtype, cache_bytes=0)
    scorer = XMoverScore(encoder, lang_pair="de-en", pieces="all")
    columns = encoder.encode(
        [*sources, *predictions], ["de"] * len(sources) + ["en"] * len(predictions)
    )
    packed = [side.normalized() for side in columns.split(len(sources))]
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: scorer.score(predictions, sources=sources),
        "transport": lambda: word_mover_distances(*packed, workers=scorer.workers),
    }
    if importlib.util.find_spec("bert_score") and "," not in device:
        import torch
        from bert_score import BERTScorer

        setting = {
            "num_layers": layer,
            "batch_size": 64,
            "device": device,
            "use_fast_tokenizer": True,
        }
        other = BERTScorer(model_type=str(model), **setting)
        other._model.to(getattr(torch, dtype))
        contenders["bert-score"] = lambda: other.score(sources, sources=predictions)
    return contenders


def _measure(
    report: Report, name: str, contenders: dict[str, Callable[[], object]], pairs: int, repeats: int
) -> None:
    seconds = alternating(contenders, repeats)
    report.add(f"{name}: ours", pairs / seconds["ours"], "pairs/s")
    report.add(
        f"{name}: transport alone, share of the time", seconds["transport"] / seconds["ours"]
    )
    if "bert-score" in seconds:
        report.add(f"{name}: bert-score", pairs / seconds["bert-score"], "pairs/s")


def _card(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


if __name__ == "__main__":
    sys.exit(main())
