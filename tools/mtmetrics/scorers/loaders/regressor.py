"""BiLSTM, BiLSTM with attention, and ESIM from a preset."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.models import loading, model_fingerprint, model_folder, model_label
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import choice
from mtmetrics.models.device import pick_devices
from mtmetrics.scorers.loaders.common import languages
from mtmetrics.scorers.naming import AGAINST
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.regressor import RegressorScore

if TYPE_CHECKING:
    from mtmetrics.regressors.regressor import Regressor

# A preset has one table for each of what its networks compare translations with: [regressors.reference],
# [regressors.source].
_TABLES: dict[str, set[str]] = {"regressors.*": {"model", "revision"}}


def load_regressor(
    metric: str,
    preset: str = "paper",
    lang_pair: str | None = None,
    pool: ModelPool | None = None,
    *,
    against: Any = None,
    regressor: str | None = None,
    encoder: str | None = None,
    threads: int | None = None,
) -> RegressorScore:
    """A learned metric as a preset describes it.

    Args:
        metric: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        preset: name of a preset, or a folder with a preset.toml.
        lang_pair: such as ``"de-en"``; recorded in the signature.
        pool: loaded models to share.
        against: ``"reference"`` or ``"source"``; chooses among the regressors of a preset. One regressor can do one of
            them only.
        regressor: folder, bundled artifact or Hub repository of another regressor than the preset's.
        encoder: where the regressor's encoder lies, if not under the name that the regressor records; it must be the
            same one.
        threads: threads that share the computation of features.

    Raises:
        InputError: an unknown preset, pair or option; or the regressor compares with something else than asked.
        ArtifactError: the regressor or its encoder cannot be loaded, or is of another kind.
    """
    pool = pool or ModelPool()
    bundle = load_preset(metric, preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    languages(bundle, lang_pair)
    known = bundle.settings.get("regressors", {})
    wanted = choice("against", against or (next(iter(known)) if len(known) == 1 else "reference"), tuple(AGAINST))
    table = {"model": regressor} if regressor else known.get(wanted, {})
    if "model" not in table:
        # A preset for one side cannot be asked for the other; one without any lacks a model.
        kind = InputError if known else ArtifactError
        raise kind(
            f"preset {bundle.name}: holds no network that compares with the {wanted}; train one with 'mtmetrics train regressor', and pass "
            f"its folder as regressor=DIR (on the command line --regressor DIR)"
        )
    name = bundle.path(table["model"])
    folder = model_folder(name, revision=table.get("revision"), local_files_only=pool.local_files_only)
    network = read_regressor(folder)
    if network.architecture != metric:
        raise ArtifactError(f"regressor {name}: it is of the metric {network.architecture}, not {metric}")
    if against is not None and against != network.against:
        column = AGAINST[network.against]
        raise InputError(
            f"against={against!r}: regressor {name} compares with {column}; pass {column}, or another regressor"
        )
    try:
        model = pool.encoder(encoder or network.encoder, mix=network.mixes(), max_pieces=network.max_pieces)
    except ArtifactError as error:
        hint = "" if encoder else "; where its encoder lies elsewhere, pass encoder=DIR"
        raise ArtifactError(f"regressor {name}: {error}{hint}") from error
    return RegressorScore(
        model,
        network,
        fingerprint=model_fingerprint(folder),
        label=model_label(name),
        lang_pair=lang_pair,
        device=pick_devices(pool.device)[0],
        threads=threads,
    )


def read_regressor(folder: Path) -> "Regressor":
    """Reads a regressor's folder.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    from mtmetrics.regressors.regressor import Regressor

    if not (folder / "model.safetensors").is_file():
        raise ArtifactError(f"{folder}: no model.safetensors, so it is no regressor")
    with loading(folder, "regressor"):
        try:
            return Regressor.read(folder)
        except TypeError as error:
            raise ArtifactError(f"{folder}: its config.json is not that of a regressor ({error})") from error
