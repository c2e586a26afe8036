"""Trains regressors on human judgements: BiLSTM, BiLSTM with attention, ESIM (Mathur et al., 2019)."""

import functools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.files import new_folder
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.evaluation.figures import save_figure
from mtmetrics.evaluation.plots import draw_curves
from mtmetrics.extras import require_extra
from mtmetrics.inputs import choice, positive
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training import loop, recording
from mtmetrics.training.config import RegressorConfig
from mtmetrics.training.corpus import short_name
from mtmetrics.training.layer_store import LayerStore
from mtmetrics.training.regressor_data import JudgedPairs, read_judged_pairs, split, without
from mtmetrics.training.regressor_loop import Examples, predict, summary, train_member

log = logging.getLogger(__name__)
ARCHITECTURES = ("bilstm", "bilstm_attention", "esim")
_PAIRS_PER_FEATURE_BATCH = 256


def train_regressor(
    run: loop.Run,
    judged: Sequence[str | Path],
    encoder: str,
    *,
    valid: Sequence[str | Path] = (),
    seeds: Sequence[int] = (1,),
    vectors: str | Path | None = None,
    config: RegressorConfig | None = None,
) -> Path:
    """Trains one network per seed on the vectors of a frozen encoder; the artifact scores with their mean.

    The encoder runs once: the outputs of all its layers are kept in a file. Unlike in the published code, whose frozen
    encoder keeps its own dropout, a text therefore has the same vectors in every epoch.

    Args:
        run: where the artifact and the checkpoints go.
        judged: files to train on, see `regressor_data.read_judged_pairs`.
        encoder: see `mtmetrics.artifacts.models.model_folder` for its name.
        valid: files that decide when to stop; rows of `judged` that compare with a text of theirs are left out. Without
            them, a share of `judged` is held back.
        seeds: one network is trained with each.
        vectors: folder for the outputs of the encoder, which several runs may share; the work folder if not given.
        config: network and schedule.

    Returns:
        The artifact folder; a plot of the validation against the epoch lies in the work folder.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: the encoder cannot be found or loaded.
    """
    data = TrainingData(
        run, judged, encoder, valid=valid, seeds=seeds, vectors=vectors, config=config or RegressorConfig()
    )
    states, history, alone = [], [], {}
    for seed in seeds:
        state, rows = data.train(seed, np.arange(len(data.train_rows)), f"seed-{seed}")
        states.append(state)
        history += rows
        alone[str(seed)] = max(row["pearson"] for row in rows)
    result: dict[str, Any] = {"seeds": alone}
    if len(seeds) > 1:
        values = np.array(list(alone.values()))
        result["spread"] = {
            "mean": values.mean(),
            "deviation": values.std(ddof=1),
            "lowest": values.min(),
            "highest": values.max(),
        }
    with new_folder(run.output, run.overwrite) as folder:
        network = data.save(folder, states)
        scores = np.mean([predict(member, data.valid_rows) for member in network.members], axis=0)
        result |= summary(scores, data.valid.human, data.valid.groups)
        log.info("validation: Pearson %.4f", result["pearson"])
        recording.write_record(folder, data.record("mtmetrics train regressor", result), history)
    lines = {f"seed {seed}": {row["epoch"]: row["pearson"] for row in history if row["seed"] == seed} for seed in seeds}
    draw(
        lines,
        run.work / "learning_curve.png",
        title=f"{data.config.architecture} on {data.encoder.label}",
        x_label="epoch",
    )
    return run.output


def draw(lines: Mapping[str, Mapping[float, float]], path: Path, *, title: str, x_label: str) -> None:
    """Draws Pearson correlations; without matplotlib, says how to get it and goes on."""
    try:
        require_extra("plot", path.name)
    except MTMetricsError as error:
        log.info("left out: %s", error)
        return
    y_label = "Pearson's r on the validation"
    save_figure(draw_curves(lines, title=title, x_label=x_label, y_label=y_label), path)


class TrainingData:
    """Judged pairs, split and encoded, of a run that was opened.

    Args:
        run: see `train_regressor`, as all the others.
        judged: files.
        encoder: name.
        valid: files.
        seeds: of the networks.
        vectors: folder.
        config: network and schedule.
        settings: what else shapes the result.
    """

    def __init__(
        self,
        run: loop.Run,
        judged: Sequence[str | Path],
        encoder: str,
        *,
        valid: Sequence[str | Path],
        seeds: Sequence[int],
        vectors: str | Path | None,
        config: RegressorConfig,
        settings: dict[str, Any] | None = None,
    ) -> None:
        _check(config)
        self.features = [] if config.features == "none" else config.features.split("+")
        plain = TokenEncoder(encoder)  # tells how many layers there are
        self.feature_layers = _layer_numbers(config.feature_layers, plain.layer) if self.features else []
        if not seeds or len(set(seeds)) < len(seeds):
            raise InputError(f"seeds {list(seeds)}: pass one or several different numbers")
        self.config, self._work, self._device = config, run.work, _device()
        settings = {
            "encoder": f"{plain.label}#{plain.fingerprint}",
            "judged": [str(path) for path in judged],
            "valid": [str(path) for path in valid],
            "seeds": list(seeds),
            **(settings or {}),
        }
        self._settings = run.open(config, settings, [*judged, *valid]) | {"judged": [*map(short_name, judged)]}
        self._settings["valid"] = [*map(short_name, valid)]
        pairs = read_judged_pairs(judged, config.against, standardise=config.standardise)
        if valid:
            self.valid = read_judged_pairs(valid, config.against, standardise=config.standardise)
            self.train_pairs = without(pairs, [self.valid])
        else:
            self.train_pairs, self.valid = split(pairs, config.held_back_per_mille)
        log.info("%d judged translations for training, %d for validation", len(self.train_pairs), len(self.valid))
        self.encoder = TokenEncoder(encoder, mix=np.eye(plain.layer), max_pieces=config.max_pieces, cache_bytes=0)
        both = (self.train_pairs, self.valid)
        texts = list(
            dict.fromkeys(text for part in both for column in (part.others, part.translations) for text in column)
        )
        self._store = LayerStore(Path(vectors) if vectors else run.work / "vectors", self.encoder, texts)
        found = [self._examples(part) for part in both]
        spread = found[0].features.std(0)
        self._mean, self._scale = found[0].features.mean(0), np.where(spread > 0, spread, 1.0).astype(np.float32)
        self.train_rows, self.valid_rows = (self._standardised(part) for part in found)

    def train(self, seed: int, rows: np.ndarray, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Trains a network on some of the training rows; `name` is that of its checkpoint."""
        examples = self.train_rows.take(rows)
        create = functools.partial(self.create, examples)
        return train_member(
            create, examples, self.valid_rows, self.config, seed, self._work / f"{name}.pt", self._device
        )

    def create(self, examples: Examples) -> Any:
        """A new network; the direct way of its features begins as their least-squares fit to the judgements of the
        examples."""
        import torch

        member = self._regressor(1).members[0]
        if self.features:
            mean = examples.human.mean()
            fit, *_ = np.linalg.lstsq(examples.features.astype(np.float64), examples.human - mean, rcond=1e-3)
            with torch.no_grad():
                member.direct.weight.copy_(torch.from_numpy(fit)[None])
                member.outer.bias.fill_(mean)
        return member

    def _regressor(self, members: int) -> Any:
        from mtmetrics.scorers.networks import Regressor

        config, depth = self.config, len(self.encoder.mix) if self.encoder.mix is not None else 1
        return Regressor(
            architecture=config.architecture,
            against=config.against,
            encoder=self.encoder.label,
            encoder_fingerprint=self.encoder.fingerprint,
            depth=depth,
            width=self.encoder.dim // depth,
            hidden=config.hidden,
            members=members,
            dropout=config.dropout,
            max_pieces=config.max_pieces,
            features=self.features,
            feature_layers=self.feature_layers,
            floor=float(self.train_pairs.human.min()),
        )

    def save(self, folder: Path, states: Sequence[dict[str, Any]]) -> Any:
        """Writes the artifact of networks with the given weights and returns it as it will be read."""
        import torch

        from mtmetrics.scorers.networks import Regressor

        network = self._regressor(len(states))
        for member, state in zip(network.members, states, strict=True):
            member.load_state_dict(state)
        if self.features:
            network.feature_mean.copy_(torch.from_numpy(self._mean))
            network.feature_scale.copy_(torch.from_numpy(self._scale))
        network.save_pretrained(folder)
        (folder / "README.md").unlink(
            missing_ok=True
        )  # an empty card: what it should say is known when the artifact was measured
        return Regressor.read(folder)

    def record(self, command: str, result: dict[str, Any]) -> dict[str, Any]:
        """What training.json says."""
        rows = {"train": _counts(self.train_pairs), "validation": _counts(self.valid)}
        return {"kind": "regressor", "command": command, **self._settings, "rows": rows, "result": result}

    def _examples(self, pairs: JudgedPairs) -> Examples:
        from mtmetrics.scorers.learned import pair_features

        others, translations = (
            np.array([self._store.row[text] for text in side]) for side in (pairs.others, pairs.translations)
        )
        kept = (self._store.lengths[others] > 0) & (self._store.lengths[translations] > 0)
        if not kept.all():
            bad = int(np.flatnonzero(~kept)[0])
            raise InputError(
                f"{pairs.groups[bad]}: a text has no word pieces that the encoder knows: {pairs.translations[bad]!r:.60}"
            )
        blocks = []
        for first in range(0, len(others), _PAIRS_PER_FEATURE_BATCH):
            sides = [side[first : first + _PAIRS_PER_FEATURE_BATCH] for side in (others, translations)]
            layers = [self._store.layer(number, np.concatenate(sides)) for number in self.feature_layers]
            blocks.append(pair_features(self.features, layers, *np.arange(2 * len(sides[0])).reshape(2, -1)))
        features = np.concatenate(blocks)
        return Examples(self._store, others, translations, features, pairs.human)

    def _standardised(self, examples: Examples) -> Examples:
        return Examples(
            self._store,
            examples.others,
            examples.translations,
            (examples.features - self._mean) / self._scale,
            examples.human,
        )


def _check(config: RegressorConfig) -> None:
    from mtmetrics.scorers.learned import FEATURES

    choice("architecture", config.architecture, ARCHITECTURES)
    choice("against", config.against, ("reference", "source"))
    for name in ("hidden", "max_pieces", "batch", "epochs", "patience"):
        positive(name, getattr(config, name))
    if not 0 <= config.dropout < 1:
        raise InputError(f"dropout {config.dropout}: must be at least 0 and below 1")
    names = [] if config.features == "none" else config.features.split("+")
    if not set(names) <= set(FEATURES) or len(set(names)) < len(names):
        raise InputError(f"features {config.features!r}: must be none, or some of {', '.join(FEATURES)}, joined by '+'")


def _layer_numbers(text: str, depth: int) -> list[int]:
    names = [str(depth)] if text == "last" else text.split("+")
    if not all(name.isdecimal() and 1 <= int(name) <= depth for name in names) or len(set(names)) < len(names):
        raise InputError(
            f"feature_layers {text!r}: must be last, or different layers from 1 to {depth} joined by '+', such as 1+{depth}"
        )
    return [int(name) for name in names]


def _counts(pairs: JudgedPairs) -> dict[str, int]:
    return {name: pairs.groups.count(name) for name in dict.fromkeys(pairs.groups)}


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
