"""Pairs a second of COMET, here and by the published package, on the same checkpoint with random
weights of the size of `mini-encoder`: ``comet_bench.py FOLDER --data OUTPUTS``, twice: first by a
Python that has `unbabel-comet`, which makes the checkpoint in FOLDER, then by one that has this
package.

Several systems are scored on the same sources and references. Models are loaded before; batches as
each takes them."""

import argparse
import gzip
import importlib.util
import json
import time
from pathlib import Path

ENCODER = Path(__file__).resolve().parents[2] / "hub_artifacts" / "mini-encoder"
FAMILIES = {"regression": "regression_metric", "unified": "unified_metric"}


def rows(path: str) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def published(
    folder: Path, systems: dict[str, list[str]], sources: list[str], references: list[str]
) -> None:
    """Makes the checkpoints, and times the package that publishes them."""
    import torch
    from comet.models import str2model

    torch.set_num_threads(1)
    for name, identifier in FAMILIES.items():
        torch.manual_seed(1)
        given = {
            "encoder_model": "BERT",
            "pretrained_model": str(ENCODER),
            "load_pretrained_weights": False,
        }
        model = str2model[identifier](**given, hidden_sizes=[384, 128])
        made = folder / name / "checkpoints"
        made.mkdir(parents=True, exist_ok=True)
        told = dict(model.hparams) | {"class_identifier": identifier}
        (made.parent / "hparams.yaml").write_text(
            "".join(f"{key}: {json.dumps(told[key])}\n" for key in told)
        )
        torch.save(
            {"state_dict": model.state_dict(), "hyper_parameters": told}, made / "model.ckpt"
        )
        data = [
            {"src": source, "mt": text, "ref": reference}
            for texts in systems.values()
            for source, reference, text in zip(sources, references, texts, strict=True)
        ]
        started = time.perf_counter()
        model.predict(data, batch_size=16, gpus=0, num_workers=1, progress_bar=False)
        print(
            (
                f"{name}: {len(data) / (time.perf_counter() - started):.1f} pairs/s by the published "
                "package"
            ),
            flush=True,
        )


def own(
    folder: Path, systems: dict[str, list[str]], sources: list[str], references: list[str]
) -> None:
    """Times the same checkpoints here."""
    from mtmetrics.artifacts.convert import convert_model
    from mtmetrics.scorers.registry import load_scorer

    for name in FAMILIES:
        convert_model(folder / name, folder / f"{name}-converted", encoder=ENCODER, overwrite=True)
        scorer = load_scorer("comet", str(folder / f"{name}-converted"), against="both")
        started = time.perf_counter()
        scorer.score_systems(systems, sources=sources, references=references)
        pairs = len(sources) * len(systems)
        print(f"{name}: {pairs / (time.perf_counter() - started):.1f} pairs/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--data", required=True, help="outputs of systems, as shared tasks are stored here"
    )
    parser.add_argument("--systems", type=int, default=11)
    parser.add_argument("--segments", type=int, default=100)
    args = parser.parse_args()
    first = rows(args.data)[: args.segments]
    systems = {
        name: [row["outputs"][name] for row in first]
        for name in [*first[0]["outputs"]][: args.systems]
    }
    run = published if importlib.util.find_spec("comet") else own
    run(args.folder, systems, [row["source"] for row in first], [row["reference"] for row in first])


if __name__ == "__main__":
    main()
