"""Finds the remapping of a language pair: a file, a folder, a bundled artifact, the Hub's cache, or the Hub."""

from pathlib import Path

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.encoders.token_encoder import TokenEncoder
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import bundled_artifacts
from mtmetrics.remap import Remapping


def map_file_name(lang_pair: str, kind: str, level: str = "word") -> str:
    """File name of the map of a language pair inside a map artifact, such as ``de-en.clp.safetensors``."""
    return f"{lang_pair}.{'' if level == 'word' else 'sentence-'}{kind}.safetensors"


def load_map(
    artifact: str | Path, lang_pair: str, kind: str, encoder: TokenEncoder, *, level: str = "word", local_files_only: bool = False
) -> Remapping:
    """Loads the map of a language pair and checks that it was fitted for the encoder.

    Args:
        artifact: a map file, a folder of maps, or the name of an artifact in the catalog.
        lang_pair: such as ``"de-en"``.
        kind: one of `mtmetrics.remap.KINDS`.
        encoder: the encoder in use.
        local_files_only: never ask the Hub.

    Raises:
        InputError: `artifact` is no path or name.
        ArtifactError: there is no such map, it is damaged, or made for another encoder or layer.
    """
    if not isinstance(artifact, str | Path):
        raise InputError(f"maps {artifact!r}: a file, a folder or the name of a map artifact is needed")
    path = _find(artifact, lang_pair, kind, level, local_files_only)
    if path is None:
        raise ArtifactError(_missing(artifact, lang_pair, kind, encoder))
    remapping = Remapping.load(path)
    if (remapping.kind, remapping.meta.get("lp")) != (kind, lang_pair):
        raise ArtifactError(f"map {path}: a {remapping.kind} map for {remapping.meta.get('lp')}, not {kind} for {lang_pair}")
    remapping.require_encoder(path, name=encoder.name, fingerprint=encoder.fingerprint, layer=encoder.layer, level=level)
    return remapping


def _find(artifact: str | Path, lang_pair: str, kind: str, level: str, local_files_only: bool) -> Path | None:
    if Path(artifact).is_file():
        return Path(artifact)
    name = map_file_name(lang_pair, kind, level)
    for folder in (Path(artifact), bundled_artifacts() / artifact):
        if (folder / name).is_file():
            return folder / name
    entry = catalog().get(str(artifact))
    if entry is None or entry.bundled:
        return None
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(entry.repository, name, revision=entry.revision, local_files_only=local_files_only))
    except (OSError, ValueError):
        return None


def _missing(artifact: str | Path, lang_pair: str, kind: str, encoder: TokenEncoder) -> str:
    entry = catalog().get(str(artifact))
    hub = f" and the Hub repository {entry.repository} (revision {entry.revision})" if entry and not entry.bundled else ""
    folders = (Path(artifact), bundled_artifacts() / artifact)
    known = sorted({path.name.split(".")[0] for folder in folders for path in folder.glob(f"*.{kind}.safetensors")})
    there = f"; it has {kind} for: {', '.join(known)}" if known else ""
    source, _, target = lang_pair.partition("-")
    return (
        f"no {kind} map for language pair {lang_pair} in {artifact}{there}; looked in the folder of that name, the bundled artifacts{hub}; "
        f"build one from parallel text: mtmetrics remap --encoder {encoder.name} --layer {encoder.layer} --lp {lang_pair} --map {kind} "
        f"--parallel PAIRS.tsv --out {source}-{target}-maps, then pass --maps {source}-{target}-maps (or --map none to do without)"
    )
