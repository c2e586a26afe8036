"""The preset that a production starts from, whose models have to load, and the folder of the one
that it makes."""

import dataclasses
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from mtmetrics.artifacts.adapters import BASE, ENCODER_BESIDE, bind, is_adapter, read_adapter
from mtmetrics.artifacts.models import (
    base_folder,
    loading,
    model_config,
    model_folder,
    model_size,
    pretrained_tokenizer,
    require_one_vocabulary,
)
from mtmetrics.artifacts.presets import load_preset, preset_toml
from mtmetrics.checks import choice, for_language
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.io.atomic import write_atomic, write_json
from mtmetrics.io.checksums import sha256_file
from mtmetrics.matching.remapping_files import map_file_name
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.translator import require_mbart
from mtmetrics.scorers.preset_tables import user_language_model_table
from mtmetrics.training.adapters import check_start
from mtmetrics.training.run import versions
from mtmetrics.uscore import Request
from mtmetrics.uscore.common import MODEL, SMALL, ModelTable, Production, Start, fingerprint
from mtmetrics.uscore.stages import Counts, Finished

_MADE = ("sentences", "translation")
_PRESET, _CARD, _CARD_SUM = "preset.toml", "README.md", "README.sha256"
log = logging.getLogger("mtmetrics")
# What an earlier production with other settings may have left, and this one does not replace.
_OPTIONAL = ("encoder", "language_model", *_MADE, "precision.png", "agreement-*.png")


def read_start(request: Request, *, local_files_only: bool = False) -> Start:
    """Reads the models to start from, and fetches those that are not there yet.

    The preset of a request names them in ``[encoder]``, ``[language_models.LANGUAGE]`` and
    ``[start]``; the request may name another translation model and language model. A model of
    ``[start]`` is a name, or a table with ``model`` and ``revision``, and of the sentence encoder
    ``adapter_rank``, where adapters are trained and not the whole encoder.

    Raises:
        InputError: `without` names something else.
        ArtifactError: the preset names no model, or one cannot be found.
    """
    preset, without = request.preset, request.without
    for name in without:
        choice("--without", name, _MADE)
    bundle = load_preset("uscore", preset, local_files_only=local_files_only)

    def folder(table: ModelTable) -> str:
        name, revision = bundle.path(table["model"]), table.get("revision")
        return str(model_folder(name, revision=revision, local_files_only=local_files_only))

    start = bundle.settings.get("start", {})
    encoder = bundle.settings.get("encoder", {})
    if "model" not in encoder:
        raise ArtifactError(
            f"preset {preset}: names no model in its [encoder] table", option="preset"
        )
    to_train = {
        "sentences": start.get("sentences"),
        "translation": request.translation or start.get("translation"),
    }
    tables: dict[str, ModelTable] = {}
    for name, model in to_train.items():
        if name in without:
            continue
        if model is None:
            advice = f"choose another preset, or do --without {name}"
            raise ArtifactError(
                f"preset {preset}: [start] names no model for {name!r}; {advice}", option="preset"
            )
        tables[name] = _start_table(preset, name, model)
    folders = {
        name: SMALL if table["model"] == SMALL else folder(table) for name, table in tables.items()
    }
    language_models = bundle.settings.get("language_models", {})
    language_model = for_language(language_models, request.languages[1]) or {}
    if request.lm == "none":
        language_model = {}
    elif request.lm is not None:
        language_model = user_language_model_table(request.lm, language_model)

    def resolved(table: ModelTable) -> ModelTable:
        """The table with the path of its model; empty where it has none."""
        return {**table, "model": bundle.path(table["model"])} if "model" in table else {}

    score = bundle.settings.get("score", {})
    return Start(
        preset=str(preset),
        encoder=resolved(encoder),
        aligner_layer=start.get("aligner_layer"),
        language_model=resolved(language_model),
        encoder_folder=folder(encoder),
        sentences=folders.get("sentences"),
        adapter_rank=tables.get("sentences", {}).get("adapter_rank", 0),
        translation=folders.get("translation"),
        score={name: score[name] for name in ("pieces", "masses") if name in score},
    )


def _start_table(preset: str, name: str, model: str | ModelTable) -> ModelTable:
    """Reads a model to train from ``[start]``: a table, or made of its name."""
    table = model if isinstance(model, dict) else {"model": model}
    needed, allowed = "a name, or a table of model and revision", {"model", "revision"}
    rank = table.get("adapter_rank", 1)
    if name == "sentences":
        needed += " (and adapter_rank, a number of at least 1)"
        allowed.add("adapter_rank")
    is_rank = type(rank) is int and rank >= 1
    if "model" not in table or table.keys() - allowed or not is_rank:
        raise ArtifactError(f"preset {preset}: {name} in [start] must be {needed}", option="preset")
    return table


def check_models(start: Start, lang_pair: str, pool: ModelPool) -> None:
    """Refuses models of a production that a later stage could not load, or make its part from.

    Raises:
        InputError: the translation model has no code for a language.
        ArtifactError: a model cannot be found, is damaged, has no such layer, or cannot be trained;
            or the translation model is no MBart.
    """
    from safetensors import safe_open

    folders = {start.encoder_folder: "AutoModel"}
    _require_layers(start)
    if start.sentences:
        _require_trainable(start)
        folders[start.sentences] = "AutoModel"
    if table := start.language_model:
        folder = model_folder(
            table["model"],
            revision=table.get("revision"),
            local_files_only=pool.local_files_only,
        )
        model_config(folder, "AutoModelForCausalLM")
        pretrained_tokenizer(folder)
        folders[str(folder)] = "AutoModelForCausalLM"
    if start.translation == SMALL:
        pretrained_tokenizer(Path(start.encoder_folder))
    elif start.translation:
        require_mbart(Path(start.translation), lang_pair)
        folders[start.translation] = "AutoModelForSeq2SeqLM"
    for folder, kind in folders.items():
        with loading(Path(folder), kind):
            weights = [
                *Path(folder).glob("*.safetensors"),
                *Path(folder).glob("?_*/*.safetensors"),
            ]
            for path in weights:
                with safe_open(path, "np"):  # reads the header alone
                    pass


def _require_trainable(start: Start) -> None:
    """Refuses a sentence encoder that contrastive learning could not begin with."""
    folder = Path(str(start.sentences))
    try:
        if start.adapter_rank:
            check_start(folder, start.adapter_rank)
        else:
            require_one_vocabulary(folder)
    except (ArtifactError, InputError) as error:
        mend = (
            "name an encoder as sentences in [start] of the preset, or a table of model and "
            "adapter_rank; or pass --without sentences"
        )
        raise ArtifactError(f"sentences: {error}: {mend}") from error


def _require_layers(start: Start) -> None:
    """Refuses a layer of words that the encoder does not have."""
    _, depth = model_size(Path(start.encoder_folder))
    layers = {
        "layer in [encoder]": start.encoder.get("layer"),
        "aligner_layer": start.aligner_layer,
    }
    for name, layer in layers.items():
        if layer is not None and not 0 <= layer <= depth:
            raise ArtifactError(
                f"preset {start.preset}: {name} is {layer}, and {start.encoder['model']} has the "
                f"layers 0 to {depth}",
                option="preset",
            )


def assembled(
    production: Production,
    maps: Finished,
    kind: str,
    *,
    sentences: Finished | None,
    translation: Finished | None,
) -> Finished:
    """The stage that puts together all of the preset but its card.

    Args:
        production: the production.
        maps: the stage that fitted maps.
        kind: the kind of map to use.
        sentences: the stage that trained a sentence encoder; None if there is none.
        translation: the stage that trained a translation model; None if there is none.
    """
    pair, start, request = production.lang_pair, production.start, production.request
    trained = {"sentences": sentences, "translation": translation}
    models = {name: stage for name, stage in trained.items() if stage is not None}
    provenance = {
        "config": dataclasses.asdict(request.config),
        "seed": request.seed,
        "text": request.learnt_from,
    }

    def assemble(folder: Path) -> Counts:
        name = map_file_name(pair, kind)
        (folder / "maps").mkdir()
        shutil.copyfile(maps.folder / name, folder / "maps" / name)
        for model, stage in models.items():
            shutil.copytree(stage.folder / MODEL, folder / model)
        tables = _tables(production, folder, kind, list(models))
        description = (
            f"UScore for {pair}, made by `mtmetrics train uscore` from preset {start.preset}."
        )
        head = {"metric": "uscore", "description": description, "lang_pair": pair}
        write_atomic(folder / _PRESET, preset_toml(head, tables))
        config = {
            "kind": "preset",
            "metric": "uscore",
            "lang_pair": pair,
            "preset": tables,
            "start": start.record,
            **provenance,
            "counts": production.stages.counts,
            "versions": versions(),
        }
        write_json(folder / "config.json", config, sort_keys=True)
        return {}

    tables = [start.encoder, start.language_model]
    copied = [table["model"] for table in tables if table and Path(table["model"]).is_dir()]
    settings = {
        "kind": kind,
        "start": [start.record, *tables, start.aligner_layer, start.score],
        "copied": [fingerprint(folder) for folder in copied],
        **provenance,
    }
    after = [*production.texts, maps, *models.values()]
    return production.stages.run("preset", assemble, settings=settings, after=after)


def install(stages: Sequence[Finished], out: Path, work: Path) -> None:
    """Copies the files of stages to `out`; preset.toml comes last, so that it never stands for half
    a preset. A card that somebody wrote or changed since the last time stays."""
    paths = [path for stage in stages for path in sorted(stage.folder.iterdir())]
    try:
        (out / _PRESET).unlink(missing_ok=True)
        for pattern in _OPTIONAL:
            for old in out.glob(pattern):
                _remove(old)
        for path in sorted(paths, key=lambda path: path.name == _PRESET):
            target = out / path.name
            if path.is_dir():
                _remove(target)
                shutil.copytree(path, target)
            elif path.name == _CARD and _was_changed(target, work / _CARD_SUM):
                log.warning("%s was changed, so it stays; the new card is %s", target, path)
            else:
                write_atomic(target, path.read_bytes())
                if path.name == _CARD:
                    write_atomic(work / _CARD_SUM, sha256_file(target))
    except OSError as error:
        raise MTMetricsError(
            f"cannot write {out}: {error.strerror or error}; finished stages are kept"
        ) from error


def _was_changed(card: Path, checksum: Path) -> bool:
    """Whether somebody wrote or changed a card since it was installed."""
    if not card.exists():
        return False
    return not checksum.exists() or checksum.read_text(encoding="utf-8") != sha256_file(card)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _tables(
    production: Production,
    folder: Path,
    kind: str,
    models: Sequence[str],
) -> dict[str, ModelTable]:
    start = production.start
    tables: dict[str, ModelTable] = {
        "encoder": _copied(folder, "encoder", start.encoder),
        "maps": {"artifact": "maps", "kind": kind},
        **{model: {"model": model} for model in models},
    }
    if "translation" in models and production.config.beams:
        tables["translation"]["beams"] = production.config.beams
    _take_base_along(folder)
    without = [name for name in _MADE if name not in tables]
    if start.language_model:
        target = production.request.languages[1]
        tables[f"language_models.{target}"] = _copied(
            folder,
            "language_model",
            start.language_model,
        )
    else:
        without.append("language_model")
    score: dict[str, object] = dict(start.score)
    if without:
        score["without"] = without
    return {**tables, "score": score} if score else tables


def _copied(folder: Path, name: str, table: ModelTable) -> ModelTable:
    """The table of a model; one that lies in a folder of the user's is copied, so that the preset
    can be moved."""
    model = str(table["model"])
    if not Path(model).is_dir():
        return dict(table)
    shutil.copytree(model_folder(model), folder / name)
    return {**table, "model": name}


def _take_base_along(folder: Path) -> None:
    """Lets the adapters of a preset find their encoder in its folder, where it was one of the
    user's."""
    adapters = folder / "sentences"
    if not is_adapter(adapters):
        return
    base, copied = base_folder(adapters), folder / "encoder"
    if copied.is_dir() and fingerprint(str(copied)) == fingerprint(str(base)):
        bind(adapters, ENCODER_BESIDE)
    elif Path(read_adapter(adapters).base).is_absolute():
        shutil.copytree(base, adapters / BASE)
        bind(adapters, BASE)
