"""How well a regressor agrees with people against the number of instances that it was trained on (Mathur et al., 2019,
Fig. 1)."""

import csv
import io
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mtmetrics.artifacts.files import new_folder, write_atomic
from mtmetrics.errors import InputError
from mtmetrics.training import loop, recording
from mtmetrics.training.config import RegressorConfig
from mtmetrics.training.regressor import TrainingData, draw

log = logging.getLogger(__name__)


def train_curve(
    run: loop.Run,
    judged: Sequence[str | Path],
    encoder: str,
    sizes: Sequence[int],
    *,
    valid: Sequence[str | Path] = (),
    seeds: Sequence[int] = (1,),
    vectors: str | Path | None = None,
    config: RegressorConfig | None = None,
) -> Path:
    """Trains a network per number of instances and seed, and writes how each agrees with the validation.

    The instances of a seed are drawn at random, and the larger draws hold the smaller ones. All networks have the same
    validation.

    Args:
        run: where the table, the plot and the checkpoints go.
        judged: see `mtmetrics.training.regressor.train_regressor`, as what follows.
        encoder: name.
        sizes: numbers of instances; those above what there is are refused.
        valid: files.
        seeds: for each number of instances, one network is trained with each.
        vectors: folder.
        config: network and schedule.

    Returns:
        A folder with curve.csv, curve.png (where matplotlib is installed) and the record and log of a training.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: the encoder cannot be found or loaded.
    """
    settings = {"curve": sorted(set(sizes))}
    data = TrainingData(
        run,
        judged,
        encoder,
        valid=valid,
        seeds=seeds,
        vectors=vectors,
        config=config or RegressorConfig(),
        settings=settings,
    )
    if not sizes or min(sizes) < 2 or max(sizes) > len(data.train_rows):
        raise InputError(
            f"curve {list(sizes)}: pass numbers from 2 to {len(data.train_rows)}, the translations that there are to train on"
        )
    found: list[dict[str, float]] = []
    history = []
    for size in settings["curve"]:
        for seed in seeds:
            rows = np.random.default_rng(seed).permutation(len(data.train_rows))[:size]
            _, epochs = data.train(seed, np.sort(rows), f"curve-{size}-seed-{seed}")
            history += [{"instances": size, **row} for row in epochs]
            found.append({"instances": size, "seed": seed, "pearson": max(row["pearson"] for row in epochs)})
            log.info("%d instances, seed %d: Pearson %.4f", *found[-1].values())
    means = {
        str(size): float(np.mean([row["pearson"] for row in found if row["instances"] == size]))
        for size in settings["curve"]
    }
    with new_folder(run.output, run.overwrite) as folder:
        write_atomic(folder / "curve.csv", _table(found))
        recording.write_record(folder, data.record("mtmetrics train regressor --curve", means), history)
        line = {
            "mean of the seeds" if len(seeds) > 1 else f"seed {seeds[0]}": {
                float(size): value for size, value in means.items()
            }
        }
        draw(
            line,
            folder / "curve.png",
            title=f"{data.config.architecture} on {data.encoder.label}",
            x_label="training instances",
        )
    return run.output


def _table(rows: Sequence[Mapping[str, float]]) -> str:
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue()
