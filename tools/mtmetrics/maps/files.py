"""Finds the remapping of a language pair: a file, an artifact, or what the authors of XMoverScore published."""

import logging
from collections.abc import Collection
from pathlib import Path

from mtmetrics.artifacts.catalog import CatalogEntry, catalog
from mtmetrics.artifacts.download import assets_folder, http_client, is_offline
from mtmetrics.artifacts.hub import download_file, hub_source, is_on_hub, local_places, places_in_words
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import choice
from mtmetrics.maps.published import PublishedMap, published_maps
from mtmetrics.maps.remapping import LEVELS, Level, Remapping
from mtmetrics.models.packed import Encoder

log = logging.getLogger("mtmetrics")


def map_file_name(lang_pair: str, kind: str, level: Level = "word") -> str:
    """File name inside a map artifact: ``de-en.clp.safetensors``, ``de-en.sentence-clp.safetensors``."""
    return f"{lang_pair}.{_tag(kind, level)}.safetensors"


def map_meta(encoder: Encoder, lang_pair: str, *, level: Level = "word", **about: str) -> dict[str, str]:
    """What a map says of itself, see `mtmetrics.maps.remapping.Remapping`."""
    return {
        "encoder": encoder.label,
        "encoder_fingerprint": encoder.fingerprint,
        "layer": "none" if encoder.layer is None else str(encoder.layer),
        "level": level,
        "lp": lang_pair,
        **about,
    }


def layered_file(folder: Path, published: PublishedMap) -> Path:
    """Where a published map lies in a folder that holds several layers, such as ``layer-12/de-en.clp.safetensors``."""
    return folder / f"layer-{published.layer}" / map_file_name(published.lang_pair, published.kind)


def cache_folder(entry: CatalogEntry) -> Path:
    """Where the maps of an artifact that is not on the Hub are kept: the assets cache of `huggingface_hub`."""
    return assets_folder(entry.name, entry.origin.commit if entry.origin else "main")


def load_map(
    artifact: str | Path,
    lang_pair: str,
    kind: str,
    encoder: Encoder,
    *,
    level: Level = "word",
    local_files_only: bool = False,
) -> Remapping:
    """Loads the map of a language pair and checks that it was fitted for the encoder.

    Args:
        artifact: a map file, a folder of maps (or of folders such as ``layer-12`` with maps), the name of an artifact
            in the catalog, or a Hub repository ``ORG/NAME``. A published map is fetched and converted on first use.
        lang_pair: such as ``"de-en"``.
        kind: one of `mtmetrics.maps.remapping.KINDS`.
        encoder: the encoder in use.
        level: what is mapped, vectors of words or of sentences.
        local_files_only: never ask the network.

    Raises:
        InputError: `artifact` is no path or name, or an unknown level.
        ArtifactError: there is no such map, it is damaged, cannot be fetched, or is made for another encoder, layer or
            level.
    """
    if not isinstance(artifact, str | Path):
        raise InputError(f"maps {artifact!r}: a file, a folder or the name of a map artifact is needed")
    path = _find(artifact, lang_pair, kind, encoder, choice("level", level, LEVELS), local_files_only)
    remapping = Remapping.load(path)
    if (remapping.kind, remapping.meta.get("lp")) != (kind, lang_pair):
        found = f"a {remapping.kind} map for {remapping.meta.get('lp')}"
        raise ArtifactError(f"map {path}: {found}, not {kind} for {lang_pair}")
    remapping.require_encoder(path, encoder.label, encoder.fingerprint, encoder.layer, level)
    return remapping


def mapped_pairs(artifact: str | Path, kind: str, level: Level = "word") -> list[str]:
    """The language pairs that an artifact has maps for, sorted, as far as this machine knows."""
    tag = _tag(kind, level)
    entry = catalog().get(str(artifact))
    names = [path.name for folder in local_places(artifact) for path in folder.glob(f"*.{tag}.safetensors")]
    names += [file for file in (entry.files if entry else ()) if file.endswith(f".{tag}.safetensors")]
    published = published_maps(entry) if entry and entry.origin and level == "word" else ()
    pairs = {Path(name).name.split(".")[0] for name in names}
    return sorted(pairs | {pair for _, pair, of_kind in published if of_kind == kind})


def is_local(artifact: str | Path) -> bool:
    """Whether maps of an artifact are on this machine, in a folder or in the cache."""
    entry = catalog().get(str(artifact))
    return any(place.exists() for place in [*local_places(artifact), *([cache_folder(entry)] if entry else [])])


def _find(artifact: str | Path, lang_pair: str, kind: str, encoder: Encoder, level: Level, offline: bool) -> Path:
    name = map_file_name(lang_pair, kind, level)
    there = [folder / at / name for folder in local_places(artifact) for at in ("", f"layer-{encoder.layer}")]
    for path in (Path(artifact), *there):
        if path.is_file():
            return path
    entry = catalog().get(str(artifact))
    if entry and entry.origin:
        published = published_maps(entry).get((encoder.layer, lang_pair, kind)) if level == "word" else None
        if published:
            return _fetched(entry, published, offline)
    elif name in entry.files if entry else is_on_hub(str(artifact), "maps"):
        return download_file(hub_source(artifact), name, local_files_only=offline)
    raise ArtifactError(_missing(artifact, entry, lang_pair, kind, encoder, level))


def _fetched(entry: CatalogEntry, published: PublishedMap, local_files_only: bool) -> Path:
    path = layered_file(cache_folder(entry), published)
    if published.is_at(path):
        return path
    lacking = (
        f"{published.file} ({published.kind} map for {published.lang_pair}, layer {published.layer}) is not in the "
        f"folder {entry.name}, not bundled, and {'damaged' if path.exists() else 'not'} in the cache ({path})"
    )
    pull = f"where there is a network, 'mtmetrics artifacts pull {entry.name} --lp {published.lang_pair}' fetches it"
    if is_offline(local_files_only):
        raise ArtifactError(f"{lacking}; the network was not asked (HF_HUB_OFFLINE or local_files_only); {pull}")
    try:
        with http_client() as client:
            size = published.fetch(client, path)
    except ArtifactError as error:
        raise ArtifactError(f"{lacking}; {error}; {pull}") from error
    what = f"{published.file} ({size / 1000:.0f} kB) from {published.url}"
    log.warning("fetched the published map %s; kept as %s", what, path)
    return path


def _missing(
    artifact: str | Path, entry: CatalogEntry | None, lang_pair: str, kind: str, encoder: Encoder, level: Level
) -> str:
    tag = _tag(kind, level)
    known = mapped_pairs(artifact, kind, level)
    there = f"; it has {tag} for: {', '.join(known)}" if known else ""
    if entry and entry.origin:
        there = f"; {_offer(published_maps(entry), encoder.layer)}"
    places = places_in_words() + (" and in the catalog" if entry else "")
    source, _, target = lang_pair.partition("-")
    options = "" if encoder.layer is None else f" --layer {encoder.layer}"
    options += " --level sentence" if level == "sentence" else ""
    return (
        f"no {tag} map for language pair {lang_pair} in {artifact}{there}; looked {places}; "
        f"build one from parallel text: mtmetrics remap --encoder {encoder.name}{options} --lp {lang_pair} "
        f"--map {kind} --parallel PAIRS.tsv --out {source}-{target}-maps, then pass maps={source}-{target}-maps "
        "(or map=none to do without)"
    )


def _offer(maps: Collection[tuple[int, str, str]], layer: int | None) -> str:
    pairs: dict[str, list[str]] = {}
    for _, pair, kind in sorted(key for key in maps if key[0] == layer):
        pairs.setdefault(kind, []).append(pair)
    if not pairs:
        return f"word maps were published for the layers {', '.join(map(str, sorted({key[0] for key in maps})))}"
    known = "; ".join(f"{kind} for {' '.join(of_kind)}" for kind, of_kind in pairs.items())
    return f"for layer {layer} word maps were published: {known}"


def _tag(kind: str, level: Level) -> str:
    return kind if level == "word" else f"{level}-{kind}"
