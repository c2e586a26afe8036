"""Finds the remapping of a language pair: a file, an artifact, or a matrix that the authors of
XMoverScore published, which is fetched and converted."""

import dataclasses
import io
import logging
import re
import tokenize
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.catalog import CatalogEntry, catalog
from mtmetrics.artifacts.download import assets_folder, fetch, http_client, is_offline
from mtmetrics.artifacts.hub import download_file, is_cached
from mtmetrics.artifacts.places import (
    HubSource,
    hub_source,
    in_namespace,
    is_on_hub,
    local_places,
    places_in_words,
)
from mtmetrics.checks import PAIR_IN_NAMES, choice, language_pair, names_of_pair, warn
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import make_folder
from mtmetrics.io.checksums import git_blob_sha1
from mtmetrics.matching.remapping import LEVELS, Remapping
from mtmetrics.models.packed import Encoder, Level

log = logging.getLogger("mtmetrics")

ENCODER = "google-bert/bert-base-multilingual-cased"
_SUFFIXES = {".BAM": "clp", ".GBDD": "umd"}
_PUBLISHED = re.compile(
    rf"(?P<corpus>.+)\.(?P<lp>{PAIR_IN_NAMES})\.(?P<sentences>[0-9]+k?)\.(?P<layer>[0-9]+)"
)
_OPTIONS = {"layer": "--layer N", "lp": "--lp XX-YY", "encoder": "--encoder MODEL"}


def map_file_name(lang_pair: str, kind: str, level: Level = "word") -> str:
    """File name inside a map artifact: ``de-en.clp.safetensors``,
    ``de-en.sentence-clp.safetensors``."""
    return f"{lang_pair}.{_tag(kind, level)}.safetensors"


def _tag(kind: str, level: Level) -> str:
    return kind if level == "word" else f"{level}-{kind}"


def map_meta(
    encoder: Encoder, lang_pair: str, *, level: Level = "word", **about: str
) -> dict[str, str]:
    """The description that a map file holds, see `mtmetrics.matching.remapping.Remapping`."""
    layer = "none" if encoder.layer is None else str(encoder.layer)
    return {
        "encoder": encoder.label,
        "encoder_fingerprint": encoder.fingerprint,
        "layer": layer,
        "level": level,
        "lp": lang_pair,
        **about,
    }


@dataclasses.dataclass(frozen=True)
class PublishedMap:
    """A matrix of the catalog; `git_blob` is git's hash of its content, and `meta` that of the map
    that is made of it, with repository, commit, licence and git's hash."""

    layer: int
    lang_pair: str
    kind: str
    url: str
    git_blob: str
    meta: dict[str, str]

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    def is_at(self, path: Path) -> bool:
        """Whether a file is this map, whole."""
        try:
            remapping = Remapping.load(path)
        except ArtifactError:
            return False
        return remapping.kind == self.kind and remapping.meta == self.meta

    def has_numbers_of(self, remapping: Remapping) -> bool:
        """Whether a map holds the matrix: written as its authors did, it has the hash of their
        file."""
        for array in (remapping.source[0], remapping.source[0][None]):
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, version=(1, 0))
            if git_blob_sha1(stream.getvalue()) == self.git_blob:
                return True
        return False


def published_maps(entry: CatalogEntry) -> dict[tuple[int | None, str, str], PublishedMap]:
    """The published matrices of an artifact by layer, language pair and kind; none where it is of
    another sort."""
    origin = entry.origin
    if origin is None or entry.kind != "maps":
        return {}
    maps: dict[tuple[int | None, str, str], PublishedMap] = {}
    for file, git_blob in entry.files.items():
        meta = meta_of_name(file)
        if not meta:
            why = "which is not named like a published matrix"
            raise ArtifactError(f"artifact {entry.name}: the catalog lists {file}, {why}")
        layer, pair, kind = int(meta["layer"]), meta["lp"], _SUFFIXES[Path(file).suffix]
        meta |= {
            "origin": origin.url,
            "commit": origin.commit,
            "licence": origin.licence,
            "git_blob": git_blob,
        }
        maps[layer, pair, kind] = PublishedMap(
            layer, pair, kind, f"{origin.url}/{origin.commit}/{file}", git_blob, meta
        )
    return maps


def meta_of_name(path: str | Path) -> dict[str, str]:
    """The metadata that a name such as ``europarl-v7.de-en.2k.8.BAM`` gives; empty if it is not of
    that pattern."""
    path = Path(path)
    match = _PUBLISHED.fullmatch(path.stem)
    if match is None or path.suffix not in _SUFFIXES:
        return {}
    return {
        "encoder": ENCODER,
        **match.groupdict(),
        "sentences": match["sentences"].replace("k", "000"),
    }


def convert(data: bytes, name: str | Path, kind: str, meta: dict[str, str]) -> Remapping:
    """The map that a ``.BAM`` (clp) or ``.GBDD`` (umd) file, a numpy array, is; `name` is for
    messages."""
    try:
        # What `np.load` calls for a .npy file; it would also open archives.
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise ArtifactError(f"{name}: not a whole numpy file ({error})") from error
    if array.dtype.kind != "f":
        raise ArtifactError(
            f"{name}: a numpy array of floating-point numbers is needed, got {array.dtype}"
        )
    try:
        return Remapping(kind, (array,), meta=meta)
    except InputError as error:
        raise ArtifactError(f"{name}: {error}") from error


def layered_file(folder: Path, published: PublishedMap) -> Path:
    """Where a published map lies in a folder that holds several layers, such as
    ``layer-12/de-en.clp.safetensors``."""
    return folder / f"layer-{published.layer}" / map_file_name(published.lang_pair, published.kind)


def cache_folder(entry: CatalogEntry) -> Path:
    """Where the maps of an artifact that is not on the Hub are kept: the assets cache of
    `huggingface_hub`."""
    return assets_folder(entry.name, entry.origin.commit if entry.origin else "main")


def load_map(
    artifact: str | Path,
    lang_pair: str,
    kind: str,
    encoder: Encoder,
    *,
    level: Level = "word",
    revision: str | None = None,
    fingerprint: str | None = None,
    local_files_only: bool = False,
) -> Remapping:
    """Loads the map of a language pair and checks that it was fitted for the encoder.

    Args:
        artifact: a map file, a folder of maps (or of folders such as ``layer-12`` with maps), the
            name of an artifact in the catalog, or a Hub repository ``ORG/NAME``. A published map is
            fetched and converted on first use. A composition that the artifact does not hold is
            made of its two steps. A map for the opposite direction is reversed, unless the authors
            of XMoverScore published it.
        lang_pair: such as ``"de-en"``.
        kind: one of `mtmetrics.matching.remapping.KINDS`.
        encoder: the encoder in use.
        level: what is mapped, vectors of words or of sentences.
        revision: of a Hub repository; None for the one that the catalog pins, or the main branch.
        fingerprint: of the map, where it is pinned.
        local_files_only: never ask the network.

    Raises:
        InputError: `artifact` is no path or name, or an unknown level.
        ArtifactError: there is no such map, it is damaged, cannot be fetched, is another one than
            the pinned one, or is made for another encoder, layer or level.
    """
    if not isinstance(artifact, str | Path):
        raise InputError(
            f"maps {artifact!r}: a file, a folder or the name of a map artifact is needed",
            option="maps",
        )
    choice("level", level, LEVELS)
    wanted_pair, lang_pair = lang_pair, _pair_of_map(artifact, lang_pair, kind, encoder, level)
    if not _holds(artifact, lang_pair, kind, encoder, level):
        options: dict[str, Any] = {
            "level": level,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        steps = kind.split("+")
        if len(steps) == 2 and all(
            _holds(artifact, lang_pair, step, encoder, level)
            or _holds_reverse(artifact, lang_pair, step, encoder, level)
            for step in steps
        ):
            first, second = (
                load_map(artifact, lang_pair, step, encoder, **options) for step in steps
            )
            meta = first.meta | {"composed": "of separate steps"}
            return Remapping(kind, (*first.source, *second.source), meta=meta)
        if _holds_reverse(artifact, lang_pair, kind, encoder, level):
            opposite_pair = _opposite(lang_pair)
            return load_map(artifact, opposite_pair, kind, encoder, **options).reverse()
    path = _find(artifact, lang_pair, kind, encoder, level, revision, local_files_only)
    remapping = Remapping.load(path)
    if fingerprint not in (None, remapping.fingerprint):
        pinned = f"its fingerprint is {remapping.fingerprint}, but the preset pins {fingerprint}"
        raise ArtifactError(
            f"map {path}: {pinned}; fetch the pinned one, or leave fingerprint out of [maps]",
            option="map",
        )
    fitted_pair = remapping.meta.get("lp")
    if (
        remapping.kind != kind
        or fitted_pair is None
        or not names_of_pair(wanted_pair, [fitted_pair])
    ):
        raise ArtifactError(
            f"map {path}: a {remapping.kind} map for {fitted_pair}, not {kind} for {wanted_pair}",
            option="map",
        )
    remapping.require_encoder(path, encoder.label, encoder.fingerprint, encoder.layer, level)
    return remapping


def _pair_of_map(
    artifact: str | Path, lang_pair: str, kind: str, encoder: Encoder, level: Level
) -> str:
    """The name under which an artifact has the map of a language pair: as it is written, else
    another of the same languages."""
    standard = "-".join(language_pair(lang_pair))
    names = [lang_pair, standard, *names_of_pair(lang_pair, mapped_pairs(artifact, kind, level))]
    local = (
        name for name in names if _local_map(artifact, map_file_name(name, kind, level), encoder)
    )
    return next(local, standard)


def _holds(artifact: str | Path, lang_pair: str, kind: str, encoder: Encoder, level: Level) -> bool:
    """Whether an artifact has a map for exactly this pair and kind: on this machine, in the catalog,
    or published by the authors of XMoverScore."""
    name = map_file_name(lang_pair, kind, level)
    if _local_map(artifact, name, encoder) is not None:
        return True
    entry = catalog().get(str(artifact))
    if entry is None:
        return False
    is_published = level == "word" and (encoder.layer, lang_pair, kind) in published_maps(entry)
    return is_published or name in entry.files


def _holds_reverse(
    artifact: str | Path, lang_pair: str, kind: str, encoder: Encoder, level: Level
) -> bool:
    """Whether an artifact has the map of the opposite direction, and it may be reversed.

    A composition has no reverse. A published map is used as it was published."""
    entry = catalog().get(str(artifact))
    return (
        "+" not in kind
        and not (entry and entry.origin)
        and _holds(artifact, _opposite(lang_pair), kind, encoder, level)
    )


def _opposite(lang_pair: str) -> str:
    """The language pair of the opposite direction: ``en-de`` for ``de-en``."""
    source_language, target_language = language_pair(lang_pair)
    return f"{target_language}-{source_language}"


def _local_map(artifact: str | Path, name: str, encoder: Encoder) -> Path | None:
    """A map file that is here: the artifact itself, or in its folders."""
    candidates = [Path(artifact)]
    for folder in local_places(artifact):
        candidates += [folder / name, folder / f"layer-{encoder.layer}" / name]
    return next((path for path in candidates if path.is_file()), None)


def mapped_pairs(artifact: str | Path, kind: str, level: Level = "word") -> list[str]:
    """The language pairs that an artifact has maps for, sorted, as far as this machine knows."""
    suffix = f".{_tag(kind, level)}.safetensors"
    entry = catalog().get(str(artifact))
    names = [path.name for folder in local_places(artifact) for path in folder.glob(f"*{suffix}")]
    names += [Path(file).name for file in (entry.files if entry else ()) if file.endswith(suffix)]
    published = published_maps(entry) if entry and level == "word" else ()
    return sorted(
        {name.split(".")[0] for name in names}
        | {pair for _, pair, of_kind in published if of_kind == kind}
    )


def is_local(artifact: str | Path) -> bool:
    """Whether maps of an artifact are on this machine, in a folder or in a cache."""
    if any(place.exists() for place in local_places(artifact)):
        return True
    entry = catalog().get(str(artifact))
    if entry is None:
        return False
    files = list(entry.files)
    if entry.origin:
        if any(cache_folder(entry).rglob("*.safetensors")):
            return True
        maps = published_maps(entry).values()
        files = [layered_file(Path(), published).as_posix() for published in maps]
    repository = entry.repository or entry.mirror
    if repository is None:
        return False
    source = HubSource(in_namespace(repository), entry.revision, {})
    return any(is_cached(source, file) for file in files)


def _find(
    artifact: str | Path,
    lang_pair: str,
    kind: str,
    encoder: Encoder,
    level: Level,
    revision: str | None,
    offline: bool,
) -> Path:
    name = map_file_name(lang_pair, kind, level)
    path = _local_map(artifact, name, encoder)
    if path is not None:
        return path
    entry = catalog().get(str(artifact))
    if entry and entry.origin:
        published = (
            published_maps(entry).get((encoder.layer, lang_pair, kind)) if level == "word" else None
        )
        if published:
            return _fetched(entry, published, offline)
    elif name in entry.files if entry else is_on_hub(str(artifact), "maps"):
        try:
            return download_file(hub_source(artifact, revision), name, local_files_only=offline)
        except ArtifactError as error:
            absent = error
        try:
            return download_file(
                hub_source(artifact, revision),
                f"layer-{encoder.layer}/{name}",
                local_files_only=offline,
            )
        except ArtifactError:
            raise absent from None
    pairs = mapped_pairs(artifact, kind, level)
    offered = f"; it has {_tag(kind, level)} for: {', '.join(pairs)}" if pairs else ""
    if entry and entry.origin:
        offered = f"; {_offer(entry, encoder.layer)}"
    places = places_in_words() + (" and in the catalog" if entry else "")
    out = f"{lang_pair}-maps"
    options = "" if encoder.layer is None else f" --layer {encoder.layer}"
    options += " --level sentence" if level == "sentence" else ""
    raise ArtifactError(
        f"no {_tag(kind, level)} map for language pair {lang_pair} in {artifact}{offered}; "
        f"looked {places}; build one from parallel text: mtmetrics train maps --encoder "
        f"{encoder.name}{options} --lp {lang_pair} --map {kind} --parallel PAIRS.tsv --out "
        f"{out}, then pass maps={out} (or map=none to do without)",
        mentions=[f"maps={out}", "map=none"],
    )


def _mirrored(repository: str, published: PublishedMap, local_files_only: bool) -> Path:
    """The map in the Hub repository that holds all of them; an ArtifactError where it is not there,
    or another."""
    source = HubSource(in_namespace(repository), None, {})
    name = layered_file(Path(), published).as_posix()
    path = download_file(source, name, local_files_only=local_files_only)
    if not (published.is_at(path) and published.has_numbers_of(Remapping.load(path))):
        raise ArtifactError(f"{name} of {source} is not the map that is made of {published.url}")
    return path


def _fetched(entry: CatalogEntry, published: PublishedMap, local_files_only: bool) -> Path:
    path = layered_file(cache_folder(entry), published)
    missed = ""
    if entry.mirror and not published.is_at(path):
        try:
            return _mirrored(entry.mirror, published, local_files_only)
        except ArtifactError as error:
            missed = f"; not from the Hub ({error})"
    if size := pull_maps(entry, [published], local_files_only=local_files_only)[path]:
        what = f"{published.file} ({size / 1000:.0f} kB) from {published.url}"
        log.warning("fetched the published map %s; kept as %s%s", what, path, missed)
    return path


def pull_maps(
    entry: CatalogEntry,
    maps: Sequence[PublishedMap],
    out: Path | None = None,
    *,
    local_files_only: bool = False,
    wrap: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> dict[Path, int]:
    """Fetches published maps that are not in a folder yet, by default the cache, and converts them.

    Returns where each lies -> how many bytes came, 0 for those that were there. An `InputError`
    says that `out` holds another file in the place of a map, an `ArtifactError` that one cannot be
    fetched; in the cache, what is damaged is replaced."""
    folder = out or cache_folder(entry)
    sizes = {layered_file(folder, item): 0 for item in maps}
    missing = [(path, item) for path, item in zip(sizes, maps, strict=True) if not item.is_at(path)]
    for path, _ in missing if out else ():
        if path.exists():
            raise InputError(
                f"{path} exists already and is not the published map, or damaged; remove it or "
                "choose another --out"
            )
    if not missing:
        return sizes
    path, item = missing[0]
    try:
        if is_offline(local_files_only):
            raise ArtifactError("the network was not asked (HF_HUB_OFFLINE or local_files_only)")
        with http_client() as client:
            for path, item in wrap(missing):
                data = fetch(client, item.url, item.git_blob)
                make_folder(path.parent)
                convert(data, item.url, item.kind, item.meta).save(path)
                sizes[path] = len(data)
    except ArtifactError as error:
        lacking = (
            f"{item.file} ({item.kind} map for {item.lang_pair}, layer {item.layer}) is not in "
            f"the folder {entry.name}, not bundled, and {'damaged' if path.exists() else 'not'} "
            f"at {path}"
        )
        pull = (
            f"where there is a network, 'mtmetrics artifacts pull {entry.name} --lp "
            f"{item.lang_pair}' fetches it"
        )
        raise ArtifactError(f"{lacking}; {error}; {pull}") from error
    return sizes


def _offer(entry: CatalogEntry, layer: int | None) -> str:
    """The maps that the authors published for a layer, or the layers for which they did."""
    maps = published_maps(entry)
    pairs: dict[str, list[str]] = {}
    for _, pair, kind in sorted(key for key in maps if key[0] == layer):
        pairs.setdefault(kind, []).append(pair)
    if not pairs:
        layers = sorted({published.layer for published in maps.values()})
        return f"word maps were published for the layers {', '.join(map(str, layers))}"
    kinds = "; ".join(f"{kind} for {' '.join(of_kind)}" for kind, of_kind in pairs.items())
    return f"for layer {layer} word maps were published: {kinds}"


def import_map(path: Path, given: dict[str, str]) -> Remapping:
    """Reads a ``.BAM`` or ``.GBDD`` file from anywhere, or binds a map that was made of one to a
    model.

    A file that the catalog knows by its content is recorded with its origin. Of any other the name
    says what it is, where it has the authors' pattern.

    Args:
        path: the file.
        given: metadata that replaces what content and name say: ``layer``, ``lp``, ``encoder``,
            ``encoder_fingerprint``.

    Raises:
        InputError: no such file, a file of another kind, or something that is said nowhere; the
            message names the option.
        ArtifactError: the content is not what it should be.
    """
    if path.suffix == ".safetensors":
        bound = Remapping.load(path)
        if "encoder_fingerprint" in bound.meta or not _OPTIONS.keys() <= bound.meta.keys():
            raise InputError(
                f"{path}: not made of a published matrix, so it cannot be bound to a model"
            )
        if "encoder_fingerprint" not in given:
            raise InputError(
                f"{path}: a map already; --encoder MODEL must be given, the model to bind it to"
            )
        return dataclasses.replace(bound, meta=bound.meta | given)
    if path.suffix not in _SUFFIXES:
        wanted = "*.BAM (CLP matrix), *.GBDD (UMD direction) or *.safetensors (a map made of one)"
        raise InputError(f"{path}: a file named {wanted} is needed")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    git_blob = git_blob_sha1(data)
    catalog_maps = [
        published for entry in catalog().values() for published in published_maps(entry).values()
    ]
    same = [published for published in catalog_maps if published.git_blob == git_blob]
    meta = (same[0].meta if same else meta_of_name(path) | {"git_blob": git_blob}) | given
    lacking = [option for key, option in _OPTIONS.items() if key not in meta]
    if lacking:
        form = f"CORPUS.XX-YY.2k.LAYER{path.suffix}"
        raise InputError(
            f"{path}: its name does not have the form {form}, so {' and '.join(lacking)} must be "
            "given"
        )
    remapping = convert(data, path, _SUFFIXES[path.suffix], meta)
    if not same and path.name in {published.file for published in catalog_maps}:
        warn(f"{path}: not the file that the authors published under this name; imported as it is")
    return remapping
