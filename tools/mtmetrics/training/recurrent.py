"""Trains regressors on human judgements: BiLSTM, BiLSTM with attention, ESIM (Mathur et al.,
2019)."""

import dataclasses
import functools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mtmetrics.checks import choice
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.row_writer import write_rows
from mtmetrics.models.networks import FEATURES, Member
from mtmetrics.models.regressor import Regressor, RegressorShape
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.plots import draw_curves
from mtmetrics.scorers.learned import pair_features
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training.configs import RegressorConfig
from mtmetrics.training.judged_pairs import JudgedFiles, JudgedPair, agreement, counts, pair_texts
from mtmetrics.training.regressor_loop import Examples, LayerStore, predict, train_member
from mtmetrics.training.run import Run

log = logging.getLogger(__name__)
ARCHITECTURES = ("bilstm", "bilstm_attention", "esim")
_PAIRS_PER_FEATURE_BATCH = 256


def train_regressor(
    run: Run,
    files: JudgedFiles,
    encoder: str,
    *,
    seeds: Sequence[int] = (1,),
    vectors: str | Path | None = None,
    curve: Sequence[int] | None = None,
    config: RegressorConfig,
) -> Path:
    """Trains one network per seed on the vectors of a frozen encoder; the artifact scores with
    their mean.

    The encoder runs once: the outputs of all its layers are kept in a file. Unlike in the published
    code, whose frozen encoder keeps its own dropout, a text therefore has the same vectors in every
    epoch.

    With `curve`, a network is trained per number of instances and seed instead (Mathur et al.,
    2019, Fig. 1). The instances of a seed are drawn at random, and the larger draws hold the
    smaller ones; all networks have the same validation.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        files: to train on, and to decide when to stop.
        encoder: its name.
        seeds: one network is trained with each.
        vectors: folder for the outputs of the encoder, which several runs may share; the work
            folder if not given.
        curve: numbers of instances; those above what there is are refused.

    Returns:
        The artifact folder; a plot of the validation lies in the work folder. With `curve`, a
        folder with curve.csv, curve.png (where matplotlib is installed) and the record and log of a
        training.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(
            f"seeds {list(seeds)}: pass one or several different numbers", option="seeds"
        )
    settings: dict[str, object] = {"seeds": list(seeds)}
    if curve is not None:
        settings["curve"] = sorted(set(curve))
    data = TrainingData(run, config, encoder, files, vectors, **settings)
    if curve is None:
        return _train_members(run, data, seeds)
    return _train_curve(run, data, seeds, curve)


def _train_members(run: Run, data: "TrainingData", seeds: Sequence[int]) -> Path:
    all_rows = np.arange(len(data.train_rows))
    states = []
    lines: dict[str, dict[float, float]] = {}
    run.history = []
    for seed in seeds:
        state, epochs = data.train(seed, all_rows, f"seed-{seed}")
        states.append(state)
        run.history += epochs
        lines[f"seed {seed}"] = {row["epoch"]: row["pearson"] for row in epochs}
    best = [max(line.values()) for line in lines.values()]
    result: dict[str, Any] = {"seeds": dict(zip(map(str, seeds), best, strict=True))}
    if len(seeds) > 1:
        moments = {"mean": np.mean(best), "deviation": np.std(best, ddof=1)}
        result["spread"] = moments | {"lowest": min(best), "highest": max(best)}
    with run.artifact(
        "regressor",
        "mtmetrics train regressor",
        rows=counts(data.train_pairs, data.valid),
        result=result,
    ) as folder:
        network = data.save(folder, states)
        scores = np.mean([predict(member, data.valid_rows) for member in network.members], axis=0)
        result |= agreement(scores, data.valid, [pair.group for pair in data.valid])
        overall = pearson(scores, data.valid_rows.human)
        if overall.reason is None:
            result["pearson"] = round(overall.value, 6)
            log.info("validation: Pearson %.4f", overall.value)
    draw(lines, run.work / "learning_curve.png", title=data.title, x_label="epoch")
    return run.output


def _train_curve(
    run: Run,
    data: "TrainingData",
    seeds: Sequence[int],
    sizes: Sequence[int],
) -> Path:
    most = len(data.train_rows)
    if not sizes or min(sizes) < 2 or max(sizes) > most:
        there = "the translations that there are to train on"
        raise InputError(
            f"curve {list(sizes)}: pass numbers from 2 to {most}, {there}", option="curve"
        )
    sizes = sorted(set(sizes))
    points = []
    means = {}
    for size in sizes:
        correlations = []
        for seed in seeds:
            rows = np.random.default_rng(seed).permutation(most)[:size]
            _, epochs = data.train(seed, np.sort(rows), f"curve-{size}-seed-{seed}")
            run.history += [{"instances": size, **row} for row in epochs]
            best = max(row["pearson"] for row in epochs)
            correlations.append(best)
            points.append({"instances": size, "seed": seed, "pearson": best})
            log.info("%d instances, seed %d: Pearson %.4f", size, seed, best)
        means[size] = float(np.mean(correlations))
    name = "mean of the seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
    result = {str(size): value for size, value in means.items()}
    with run.artifact(
        "regressor",
        "mtmetrics train regressor --curve",
        rows=counts(data.train_pairs, data.valid),
        result=result,
    ) as folder:
        write_rows(folder / "curve.csv", points, "csv")
        draw({name: means}, folder / "curve.png", title=data.title, x_label="training instances")
    return run.output


def draw(
    lines: Mapping[str, Mapping[float, float]],
    path: Path,
    *,
    title: str,
    x_label: str,
) -> None:
    """Draws Pearson correlations; without matplotlib, logs how to get it."""
    try:
        require_extra("plot", path.name)
    except MTMetricsError as error:
        log.info("left out: %s", error)
        return
    y_label = "Pearson's r on the validation"
    save_figure(draw_curves(lines, title=title, x_label=x_label, y_label=y_label), path)


class TrainingData:
    """Judged pairs, split and encoded.

    Args:
        run: is opened.
        config: network and schedule.
        encoder: its name.
        files: the pairs.
        vectors: folder for the outputs of the encoder; the work folder if not given.
        **settings: further settings that shape the result.

    Attributes:
        train_pairs: the pairs to train on.
        valid: the pairs that decide when to stop.
        train_rows: the pairs to train on, as networks read them.
        valid_rows: the pairs for validation, alike.
    """

    def __init__(
        self,
        run: Run,
        config: RegressorConfig,
        encoder: str,
        files: JudgedFiles,
        vectors: str | Path | None = None,
        **settings: object,
    ) -> None:
        choice("architecture", config.architecture, ARCHITECTURES)
        choice("against", config.against, ("reference", "source", "both"))
        self.features = _feature_names(config.features)
        if self.features and config.against == "both":
            raise InputError(
                f"features {config.features!r}: are of two texts; pass none where against is both",
                option="features",
            )
        plain = TokenEncoder(encoder, cache_bytes=0)  # tells how many layers there are
        self.feature_layers = (
            _layer_numbers(config.feature_layers, plain.layer) if self.features else []
        )
        self.config = config
        self._work = run.work
        self._device = run.device
        files.open(run, config, encoder=f"{plain.label}#{plain.fingerprint}", **settings)
        self.train_pairs, self.valid = files.read(config)
        self.encoder = plain.at(mix=np.eye(plain.layer), max_pieces=config.max_pieces)
        self.title = f"{config.architecture} on {self.encoder.label}"
        # Side by side, so that texts that are read together lie together in the file.
        texts: dict[tuple[str, str | None], None] = {}
        for pairs in (self.train_pairs, self.valid):
            for side in zip(*map(pair_texts, pairs), strict=True):
                texts |= dict.fromkeys(side)
        folder = Path(vectors) if vectors else run.work / "vectors"
        self._store = LayerStore(folder, self.encoder, list(texts))
        train, valid = self._examples(self.train_pairs), self._examples(self.valid)
        deviation = train.features.std(0)
        self._mean = train.features.mean(0)
        self._scale = np.where(deviation > 0, deviation, 1.0).astype(np.float32)
        self.train_rows, self.valid_rows = self._standardised(train), self._standardised(valid)

    def _standardised(self, examples: Examples) -> Examples:
        features = (examples.features - self._mean) / self._scale
        return dataclasses.replace(examples, features=features)

    def train(
        self,
        seed: int,
        rows: np.ndarray,
        name: str,
    ) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
        """Trains a network on some of the training rows; `name` is that of its checkpoint."""
        examples = self.train_rows.take(rows)
        checkpoint = self._work / f"{name}.pt"
        create = functools.partial(self.create, examples)
        return train_member(
            create,
            examples,
            self.valid_rows,
            self.config,
            seed,
            checkpoint,
            self._device,
        )

    def create(self, examples: Examples) -> Member:
        """A new network, whose direct way of the features begins as their least-squares fit to the
        judgements."""
        member = self._regressor(1).members[0]
        if self.features:
            mean = examples.human.mean()
            fit, *_ = np.linalg.lstsq(
                examples.features.astype(np.float64),
                examples.human - mean,
                rcond=1e-3,
            )
            with torch.no_grad():
                member.direct.weight.copy_(torch.from_numpy(fit)[None])
                member.outer.bias.fill_(mean)
        return member

    def _regressor(self, members: int) -> Regressor:
        depth = len(self.encoder.mix)
        shape = RegressorShape(
            architecture=self.config.architecture,
            against=self.config.against,
            hidden=self.config.hidden,
            dropout=self.config.dropout,
            max_pieces=self.config.max_pieces,
            encoder=self.encoder.label,
            encoder_fingerprint=self.encoder.fingerprint,
            depth=depth,
            width=self.encoder.dim // depth,
            members=members,
            features=self.features,
            feature_layers=self.feature_layers,
            floor=min(pair.human for pair in self.train_pairs),
        )
        return Regressor(shape)

    def save(self, folder: Path, states: Sequence[dict[str, torch.Tensor]]) -> Regressor:
        """Writes the artifact of networks with the given weights and returns it as it will be
        read."""
        network = self._regressor(len(states))
        for member, state in zip(network.members, states, strict=True):
            member.load_state_dict(state)
        if self.features:
            network.feature_mean.copy_(torch.from_numpy(self._mean))
            network.feature_scale.copy_(torch.from_numpy(self._scale))
        network.save(folder)
        return Regressor.read(folder)

    def _examples(self, pairs: Sequence[JudgedPair]) -> Examples:
        store = self._store
        sides = np.array([[store.row[text] for text in pair_texts(pair)] for pair in pairs]).T
        bad = (store.lengths[sides] == 0).any(0)
        if bad.any():
            pair = pairs[int(bad.argmax())]
            raise InputError(
                f"{pair.group}: a text has no word pieces that the encoder knows: "
                f"{pair.translation!r:.60}"
            )
        blocks = []
        for first in range(0, len(pairs), _PAIRS_PER_FEATURE_BATCH):
            part = sides[:, first : first + _PAIRS_PER_FEATURE_BATCH]
            layers = [store.layer(number, part.ravel()) for number in self.feature_layers]
            numbers = np.arange(part.size).reshape(part.shape)
            blocks.append(pair_features(self.features, layers, numbers[0], numbers[-1]))
        human = np.array([pair.human for pair in pairs])
        return Examples(store, sides[:-1].T, sides[-1], np.concatenate(blocks), human)


def _feature_names(text: str) -> list[str]:
    names = [] if text == "none" else text.split("+")
    if not set(names) <= set(FEATURES) or len(set(names)) < len(names):
        raise InputError(
            f"features {text!r}: must be none, or some of {', '.join(FEATURES)}, joined by '+'",
            option="features",
        )
    return names


def _layer_numbers(text: str, depth: int) -> list[int]:
    names = [str(depth)] if text == "last" else text.split("+")
    if not all(name.isdecimal() and 1 <= int(name) <= depth for name in names) or len(
        set(names)
    ) < len(names):
        allowed = (
            f"must be last, or different layers from 1 to {depth} joined by '+', such as 1+{depth}"
        )
        raise InputError(f"feature_layers {text!r}: {allowed}", option="feature_layers")
    return [int(name) for name in names]
