"""Presets: named bundles of models, layers, maps and weights, one set per metric."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.places import hub_source, is_on_hub, local_folder
from mtmetrics.errors import ArtifactError, InputError

# Of the tables [agreement.SIDE], see `mtmetrics.reports.human_agreement`.
AGREEMENT_KEYS = {
    "signature",
    "data",
    "pairs",
    "comparisons",
    "isotonic",
    "difference",
    "agreement",
    "low",
    "high",
}
# In any table, these name a model or maps.
MODEL_KEYS = frozenset({"model", "words", "sentences", "artifact"})
_FOLDER = Path(__file__).parent / "presets"


@dataclasses.dataclass(frozen=True)
class Preset:
    """A preset as read from its TOML file.

    Attributes:
        name: of it, or its folder.
        metric: that it is for.
        folder: where the paths in it start.
        settings: its tables, see the metric's card; those of a preset that it extends included.
        options: options of the metric that it sets, as `mtmetrics.load` takes them.
    """

    name: str
    metric: str
    folder: Path
    settings: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def path(self, name: str) -> str:
        """A model or map named in the preset: a path inside its folder where there is one, else the
        name itself."""
        inside = self.folder / name
        return str(inside) if inside.exists() else name

    def refuse_unknown(self, tables: dict[str, set[str]]) -> None:
        """Refuses keys that nothing reads, so that a misspelt setting does not pass silently.

        Args:
            tables: the keys that each table of the metric may hold; ``NAME.*`` stands for one table
                per language or side, ``NAME.*.*`` for tables in these.

        Raises:
            ArtifactError: there is another table or key.
        """
        known = {
            "metric",
            "description",
            "languages",
            "lang_pair",
            *(name.partition(".*")[0] for name in tables),
        }
        self._refuse_others("table or key", "", self.settings, known)
        for name, value in self.settings.items():
            if name in tables:
                self._refuse_others("key", name, value, tables[name])
            elif f"{name}.*" in tables:
                for key, table in value.items():
                    inner = tables.get(f"{name}.*.*") if isinstance(table, dict) else None
                    languages = (
                        [other for other, own in table.items() if isinstance(own, dict)]
                        if inner
                        else []
                    )
                    self._refuse_others(
                        "key", f"{name}.{key}", table, tables[f"{name}.*"].union(languages)
                    )
                    for language in languages:
                        self._refuse_others(
                            "key", f"{name}.{key}.{language}", table[language], inner or set()
                        )

    def _refuse_others(self, what: str, name: str, table: Any, known: set[str]) -> None:
        if not isinstance(table, dict):
            raise ArtifactError(
                f"preset {self.name}: {name} must be a table, [{name}]", option="preset"
            )
        for key in table:
            if key not in known:
                place = f" in [{name}]" if name else ""
                listed = ", ".join(sorted(known))
                raise ArtifactError(
                    f"preset {self.name}: unknown {what} {key!r}{place}; known are: {listed}",
                    option="preset",
                )


def preset_names(metric: str) -> list[str]:
    """Names of the presets of a metric, sorted: its own, and those of bundled artifacts."""
    own = [path.stem for path in (_FOLDER / metric).glob("*.toml")]
    bundled = [
        entry.name for entry in catalog().values() if entry.kind == "preset" and entry.bundled
    ]
    return sorted([*own, *(name for name in bundled if _metric_of(name) == metric)])


def _metric_of(artifact: str) -> str | None:
    folder = local_folder(artifact, "preset.toml")
    return None if folder is None else _read(folder / "preset.toml").get("metric")


def load_preset(metric: str, preset: str | Path, *, local_files_only: bool = False) -> Preset:
    """Reads a preset, or an artifact that holds a ``preset.toml``, found in the order of
    `mtmetrics.artifacts.places`.

    With ``extends = "NAME"`` a preset is another one with some keys of its own. Its table
    ``[options]`` holds options of the metric by their names.

    Args:
        metric: name of the metric.
        preset: name of a preset, a folder, the name of an artifact, or a Hub repository
            ``ORG/NAME``.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        InputError: no such preset; the message lists what there is.
        ArtifactError: the file is no valid TOML or belongs to another metric; what it extends is
            missing, or extends another one, too; or the repository cannot be fetched.
    """
    name = str(preset)
    own = _FOLDER / metric / f"{name}.toml"
    if own.is_file():
        return Preset(name, metric, _FOLDER, _read(own))
    folder = local_folder(preset, "preset.toml")
    if folder is None and is_on_hub(name, "preset"):
        folder = download(hub_source(name), local_files_only=local_files_only)
    path = (folder or Path(preset)) / "preset.toml"
    if not path.is_file():
        there = (
            f"there are: {', '.join(preset_names(metric))}; or pass a folder that holds a "
            "preset.toml"
        )
        raise InputError(f"unknown preset {name!r} for metric {metric}; {there}")
    settings = _read(path)
    if settings.get("metric", metric) != metric:
        raise ArtifactError(f"{path}: a preset for metric {settings['metric']!r}, not {metric!r}")
    options = settings.pop("options", {})
    if not isinstance(options, dict):
        raise ArtifactError(f"{path}: options must be a table, [options]")
    if "extends" not in settings:
        return Preset(name, metric, path.parent, settings, options)
    return _extended(name, metric, path, settings, options, local_files_only)


def _extended(
    name: str,
    metric: str,
    path: Path,
    settings: dict[str, Any],
    options: dict[str, Any],
    local_files_only: bool,
) -> Preset:
    named = settings.pop("extends")
    if not isinstance(named, str):
        raise ArtifactError(f"{path}: extends must name a preset")
    inside = path.parent / named
    try:
        base = load_preset(
            metric, inside if inside.is_dir() else named, local_files_only=local_files_only
        )
    except InputError as error:
        raise ArtifactError(f"{path}: extends {named!r}: {error}") from None
    if base.options:
        why = "which extends another preset; extend that one, and repeat the options here"
        raise ArtifactError(f"{path}: extends {named!r}, {why}")
    merged = dict(base.settings)
    for key, value in settings.items():
        under = merged.get(key)
        merged[key] = (
            under | value if isinstance(value, dict) and isinstance(under, dict) else value
        )
    return Preset(name, metric, base.folder, merged, options)


def extending(metric: str, base: str | None, description: str) -> dict[str, str]:
    """The head of a preset that extends another one, by its name or its folder; or, of a metric
    that needs none, no other one."""
    if base is None:
        return {"metric": metric, "description": description}
    named = str(Path(base).resolve()) if Path(base).is_dir() else base
    return {"metric": metric, "description": description, "extends": named}


def preset_toml(head: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """A preset as it stands in its file: strings, numbers, truth values and lists of strings, which
    JSON writes alike."""
    blocks = []
    for title, table in {"": head, **tables}.items():
        lines = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in table.items()
        ]
        blocks.append((f"[{title}]\n" if title else "") + "".join(lines))
    return "\n".join(blocks)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArtifactError(f"{path}: not a readable TOML file ({error})") from error
