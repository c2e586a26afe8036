"""Trains regressors on human judgements: BiLSTM, BiLSTM with attention, ESIM (Mathur et al., 2019).

`train_regressor` reads and encodes the judged translations (`TrainingData`), then trains one network
per seed, or, for a learning curve, one per number of instances and seed.
"""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from mtmetrics.checks import choice
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.row_writer import write_rows
from mtmetrics.models.networks import FEATURES, Member
from mtmetrics.models.regressor import Regressor, RegressorSettings
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

# The weights of a network by name.
Weights = dict[str, torch.Tensor]


def train_regressor(
    run: Run,
    files: JudgedFiles,
    encoder: str,
    *,
    seeds: Sequence[int] = (1,),
    vectors: str | Path | None = None,
    curve: Sequence[int] | None = None,
    curve_means: Sequence[int] = (),
    config: RegressorConfig,
) -> Path:
    """Trains one network per seed on the vectors of a frozen encoder; the artifact scores with
    their mean.

    The encoder runs once: the outputs of all its layers are kept in a file. Unlike in the published
    code, whose frozen encoder keeps its own dropout, a text therefore has the same vectors in every
    epoch.

    With `curve`, a network is trained per number of instances and seed instead (Mathur et al.,
    2019, Fig. 1). The instances of a seed are drawn at random, and the larger draws hold the
    smaller ones; all networks have the same validation. With `curve_means` too, further networks
    learn from all translations, each with the mean of some of its judgements, which are rows of
    their own: the crosses of the figure beside its circles.

    Args:
        run: see `mtmetrics.training.run`, as for `config`.
        files: to train on, and to decide when to stop.
        encoder: its name.
        seeds: one network is trained with each.
        vectors: folder for the outputs of the encoder, which several runs may share; the work
            folder if not given.
        curve: numbers of instances; those above what there is are refused.
        curve_means: numbers of judgements of each translation; a translation with fewer has the
            mean of all of its own. Numbers above what any translation has are refused.

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
    if curve_means:
        settings["curve_means"] = sorted(set(curve_means))
    data = TrainingData(run, config, encoder, files, vectors, **settings)
    if curve is None:
        return _train_members(run, data, seeds)
    return _train_curve(run, data, seeds, curve, curve_means)


def _train_members(run: Run, data: "TrainingData", seeds: Sequence[int]) -> Path:
    """Trains a network per seed, and writes them as one artifact with their validation."""
    weights_of_members: list[Weights] = []
    # Name of a seed -> epoch -> Pearson's r on the validation.
    lines: dict[str, dict[float, float]] = {}
    run.history = []
    for seed in seeds:
        weights, epochs = data.train(seed, data.train_rows, f"seed-{seed}")
        weights_of_members.append(weights)
        run.history += epochs
        lines[f"seed {seed}"] = {row["epoch"]: row["pearson"] for row in epochs}
    best = [max(line.values()) for line in lines.values()]
    result: dict[str, object] = {"seeds": dict(zip(map(str, seeds), best, strict=True))}
    if len(seeds) > 1:
        result["spread"] = {
            "mean": np.mean(best),
            "deviation": np.std(best, ddof=1),
            "lowest": min(best),
            "highest": max(best),
        }
    with run.artifact(
        "regressor",
        "mtmetrics train regressor",
        rows=counts(data.train_pairs, data.valid),
        result=result,
    ) as folder:
        network = data.save(folder, weights_of_members)
        scores = np.mean([predict(member, data.valid_rows) for member in network.members], axis=0)
        # The record, which is written when the block ends, holds these numbers too.
        result |= agreement(scores, data.valid, [pair.group for pair in data.valid])
        overall = pearson(scores, data.valid_rows.human)
        if overall.reason is None:
            result["pearson"] = round(overall.value, 6)
            log.info("validation: Pearson %.4f", overall.value)
    draw(lines, run.work / "learning_curve.png", title=data.title, x_label="epoch")
    return run.output


class _Draw(NamedTuple):
    """Drawn instances that a network of a learning curve learns from.

    Attributes:
        name: of the network.
        examples: the instances; the judgement of each is the mean of those that were drawn.
        judgements: number of judgements that were drawn.
    """

    name: str
    examples: Examples
    judgements: int


def _train_curve(
    run: Run,
    data: "TrainingData",
    seeds: Sequence[int],
    sizes: Sequence[int],
    means: Sequence[int],
) -> Path:
    """Trains a network per size and seed, and per number of judgements and seed; writes Pearson's r
    of each as a table and a plot."""
    most = len(data.train_rows)
    if not sizes or min(sizes) < 2 or max(sizes) > most:
        raise InputError(
            f"curve {list(sizes)}: pass numbers from 2 to {most}, the translations that there are "
            "to train on",
            option="curve",
        )
    most_each = max(map(len, _rows_of_translations(data)))
    if means and not 1 <= min(means) <= max(means) <= most_each:
        raise InputError(
            f"curve_means {list(means)}: pass numbers from 1 to {most_each}, the most judgements "
            "that a translation has (a row each)",
            option="curve_means",
        )
    points: list[dict[str, float]] = []
    lines: dict[str, dict[float, float]] = {}
    result: dict[str, float] = {}
    # Name, line of the plot, and what is drawn with each seed.
    draws: list[tuple[str, str, list[_Draw]]] = []
    for size in sorted(set(sizes)):
        drawn_singles = [_draw_singles(data, size, seed) for seed in seeds]
        draws.append((str(size), "single judgements", drawn_singles))
    for each in sorted(set(means)):
        drawn_means = [_draw_means(data, each, seed) for seed in seeds]
        draws.append((f"mean of {each}", "means of judgements", drawn_means))
    for key, line, drawn_of_seeds in draws:
        points_of_count = []
        for seed, drawn in zip(seeds, drawn_of_seeds, strict=True):
            _, epochs = data.train(seed, drawn.examples, drawn.name)
            instances = len(drawn.examples)
            point = {"instances": instances, "judgements": drawn.judgements, "seed": seed}
            run.history += [{**point, **row} for row in epochs]
            points_of_count.append({**point, "pearson": max(row["pearson"] for row in epochs)})
            log.info("%s, seed %d: Pearson %.4f", key, seed, points_of_count[-1]["pearson"])
        points += points_of_count
        result[key] = float(np.mean([point["pearson"] for point in points_of_count]))
        # Every seed draws as many judgements.
        lines.setdefault(line, {})[points_of_count[0]["judgements"]] = result[key]
    with run.artifact(
        "regressor",
        "mtmetrics train regressor --curve",
        rows=counts(data.train_pairs, data.valid),
        result=result,
    ) as folder:
        write_rows(folder / "curve.csv", points, "csv")
        label = "mean of the seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
        title = f"{data.title}, {label}"
        draw(lines, folder / "curve.png", title=title, x_label="judgements to train on")
    return run.output


def _draw_singles(data: "TrainingData", size: int, seed: int) -> _Draw:
    """Draws rows at random, with the judgement of each."""
    # One permutation for every size, so that larger draws hold the smaller ones.
    rows = np.sort(np.random.default_rng(seed).permutation(len(data.train_rows))[:size])
    return _Draw(f"curve-{size}-seed-{seed}", data.train_rows.take(rows), size)


def _draw_means(data: "TrainingData", each: int, seed: int) -> _Draw:
    """Draws some judgements of each translation at random, and takes their mean."""
    generator = np.random.default_rng(seed)
    rows: list[int] = []
    human: list[float] = []
    judgements = 0
    for rows_of_translation in _rows_of_translations(data):
        # One permutation for every number, as above.
        drawn = generator.permutation(rows_of_translation)[:each]
        rows.append(rows_of_translation[0])
        human.append(float(data.train_rows.human[drawn].mean()))
        judgements += len(drawn)
    examples = data.train_rows.take(np.array(rows))
    examples = dataclasses.replace(examples, human=np.array(human))
    return _Draw(f"curve-means-{each}-seed-{seed}", examples, judgements)


def _rows_of_translations(data: "TrainingData") -> list[list[int]]:
    """The rows of each translation: those with the same texts in the same languages."""
    rows: dict[tuple[tuple[str, str | None], ...], list[int]] = {}
    for number, pair in enumerate(data.train_pairs):
        rows.setdefault(tuple(pair_texts(pair)), []).append(number)
    return list(rows.values())


def draw(
    lines: Mapping[str, Mapping[float, float]],
    path: Path,
    *,
    title: str,
    x_label: str,
) -> None:
    """Draws Pearson correlations; without matplotlib, logs how to get it.

    Args:
        lines: name of a line -> x -> Pearson's r.
        path: the picture.
        title: of the plot.
        x_label: of the x axis.
    """
    try:
        require_extra("plot", path.name)
    except MTMetricsError as error:
        log.info("left out: %s", error)
        return
    y_label = "Pearson's r on the validation"
    save_figure(draw_curves(lines, title=title, x_label=x_label, y_label=y_label), path)


class TrainingData:
    """Judged pairs, split and encoded, and the networks that learn from them.

    Args:
        run: is opened.
        config: network and schedule.
        encoder: its name.
        files: the pairs.
        vectors: folder for the outputs of the encoder; the work folder if not given.
        **settings: further settings that shape the result.

    Attributes:
        config: network and schedule.
        encoder: the encoder, which returns the outputs of all its layers.
        features: names of the features that a network reads beside the vectors.
        feature_layers: numbers of the layers that features are computed from.
        train_pairs: the pairs to train on.
        valid: the pairs that decide when to stop.
        train_rows: the pairs to train on, as networks read them.
        valid_rows: the pairs for validation, as networks read them.
        title: of plots.
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
        # Its last layer is its number of layers.
        last_layer_encoder = TokenEncoder(encoder, cache_bytes=0)
        depth = last_layer_encoder.layer
        self.feature_layers: list[int] = []
        if self.features:
            self.feature_layers = _layer_numbers(config.feature_layers, depth)
        self.config = config
        self._work = run.work
        self._device = run.device
        label = f"{last_layer_encoder.label}#{last_layer_encoder.fingerprint}"
        files.open(run, config, encoder=label, **settings)
        self.train_pairs, self.valid = files.read(config)
        # With the identity as mix, a vector is the outputs of all layers one behind the other.
        self.encoder = last_layer_encoder.at(mix=np.eye(depth), max_pieces=config.max_pieces)
        self.title = f"{config.architecture} on {self.encoder.label}"
        folder = Path(vectors) if vectors else run.work / "vectors"
        self._store = LayerStore(folder, self.encoder, self._distinct_texts())
        train = self._examples(self.train_pairs)
        valid = self._examples(self.valid)
        deviation = train.features.std(0)
        self._mean = train.features.mean(0)
        self._scale = np.where(deviation > 0, deviation, 1.0).astype(np.float32)
        self.train_rows = self._standardised(train)
        self.valid_rows = self._standardised(valid)

    def _distinct_texts(self) -> list[tuple[str, str | None]]:
        """All texts with their languages: those to compare with, then the translations. So texts
        that are read together lie together in the file."""
        texts: dict[tuple[str, str | None], None] = {}
        for pairs in (self.train_pairs, self.valid):
            for side in zip(*map(pair_texts, pairs), strict=True):
                texts |= dict.fromkeys(side)
        return list(texts)

    def _standardised(self, examples: Examples) -> Examples:
        """The examples with features of mean 0 and deviation 1 over those to train on."""
        features = (examples.features - self._mean) / self._scale
        return dataclasses.replace(examples, features=features)

    def train(
        self,
        seed: int,
        examples: Examples,
        name: str,
    ) -> tuple[Weights, list[dict[str, float]]]:
        """Trains a network on some of the training rows, see `regressor_loop.train_member`.

        Args:
            seed: of the network.
            examples: the rows.
            name: of the checkpoint.
        """
        torch.manual_seed(seed)
        return train_member(
            self.create(examples),
            examples,
            self.valid_rows,
            self.config,
            seed,
            checkpoint=self._work / f"{name}.pt",
            device=self._device,
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
        """A new regressor of so many networks."""
        depth = len(self.encoder.mix)
        shape = RegressorSettings(
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

    def save(self, folder: Path, weights_of_members: Sequence[Weights]) -> Regressor:
        """Writes the artifact of networks with these weights, and returns it as it will be read."""
        network = self._regressor(len(weights_of_members))
        for member, weights in zip(network.members, weights_of_members, strict=True):
            member.load_state_dict(weights)
        if self.features:
            network.feature_mean.copy_(torch.from_numpy(self._mean))
            network.feature_scale.copy_(torch.from_numpy(self._scale))
        network.save(folder)
        return Regressor.read(folder)

    def _examples(self, pairs: Sequence[JudgedPair]) -> Examples:
        """The pairs as networks read them, their features not standardised yet; an InputError for a
        text without pieces."""
        store = self._store
        text_rows = [[store.row[text] for text in pair_texts(pair)] for pair in pairs]
        # (m + 1, n): the m texts to compare with, and last the translations.
        sides = np.array(text_rows).T
        has_empty_text = (store.lengths[sides] == 0).any(0)
        if has_empty_text.any():
            pair = pairs[int(has_empty_text.argmax())]
            raise InputError(
                f"{pair.group}: a text has no word pieces that the encoder knows: "
                f"{pair.translation!r:.60}"
            )
        features = []
        for first in range(0, len(pairs), _PAIRS_PER_FEATURE_BATCH):
            part = sides[:, first : first + _PAIRS_PER_FEATURE_BATCH]
            layers = [store.layer(number, part.ravel()) for number in self.feature_layers]
            numbers = np.arange(part.size).reshape(part.shape)
            features.append(pair_features(self.features, layers, numbers[0], numbers[-1]))
        human = np.array([pair.human for pair in pairs])
        return Examples(store, sides[:-1].T, sides[-1], np.concatenate(features), human)


def _feature_names(text: str) -> list[str]:
    """The names of features that are joined by ``+``; none for ``none``."""
    names = [] if text == "none" else text.split("+")
    if not set(names) <= set(FEATURES) or len(set(names)) < len(names):
        raise InputError(
            f"features {text!r}: must be none, or some of {', '.join(FEATURES)}, joined by '+'",
            option="features",
        )
    return names


def _layer_numbers(text: str, depth: int) -> list[int]:
    """The numbers of layers that are joined by ``+``, of an encoder with `depth` of them."""
    names = [str(depth)] if text == "last" else text.split("+")
    has_layers = all(name.isdecimal() and 1 <= int(name) <= depth for name in names)
    if not has_layers or len(set(names)) < len(names):
        raise InputError(
            f"feature_layers {text!r}: must be last, or different layers from 1 to {depth} joined "
            f"by '+', such as 1+{depth}",
            option="feature_layers",
        )
    return [int(name) for name in names]
