"""Presets: TOML files that name the models, layers, maps and weights of a metric.

`load_preset` finds and reads one; a `Preset` refuses keys that its metric does not read.
"""

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.places import hub_source, is_on_hub, local_folder
from mtmetrics.errors import ArtifactError, InputError

Table = dict[str, Any]  # of TOML
# Keys of the tables [agreement.SIDE], see `mtmetrics.reports.human_agreement`.
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
# Keys that name a model or maps, in any table.
MODEL_KEYS = frozenset({"model", "words", "sentences", "artifact"})
_FOLDER = Path(__file__).parent / "presets"


@dataclasses.dataclass(frozen=True)
class Preset:
    """A preset as read from its TOML file.

    Attributes:
        name: of the preset, or its folder.
        metric: for which it is made.
        folder: in which relative paths of the preset lie.
        base_folders: the folder of the preset that it extends, for the paths that come from there;
            then that of the preset which that one extends, and so on.
        settings: its tables, see the metric's card, and those of the preset that it extends.
        options: options of the metric, with the names that `mtmetrics.load` takes.
    """

    name: str
    metric: str
    folder: Path
    settings: Table
    options: Table = dataclasses.field(default_factory=dict)
    base_folders: tuple[Path, ...] = ()

    def path(self, name: str) -> str:
        """Finds a model or map that the preset names: the path in its folder, or in one of the
        `base_folders`, if there is one; else the name itself."""
        for folder in (self.folder, *self.base_folders):
            if (folder / name).exists():
                return str(folder / name)
        return name

    def refuse_unknown(self, tables: dict[str, set[str]]) -> None:
        """Refuses keys that nothing reads, so that a misspelt setting does not pass silently.

        Args:
            tables: name of a table of the metric -> the keys that it may hold. ``NAME.*`` stands for
                the tables in the table NAME, one for each language or side; ``NAME.*.*`` for the
                tables in these.

        Raises:
            ArtifactError: there is another table or key.
        """
        table_names = {name.partition(".*")[0] for name in tables}
        top_keys = {"metric", "description", "languages", "lang_pair", *table_names}
        self._refuse_other_keys("table or key", "", self.settings, top_keys)
        for name, value in self.settings.items():
            if name in tables:
                self._refuse_other_keys("key", name, value, tables[name])
            elif f"{name}.*" in tables:
                self._require_table(name, value)
                for key, table in value.items():
                    self._refuse_unknown_in(f"{name}.{key}", table, name, tables)

    def _refuse_unknown_in(
        self, place: str, table: object, name: str, tables: dict[str, set[str]]
    ) -> None:
        """Refuses unknown keys of a table ``NAME.*``, and of the tables in it."""
        inner_keys = tables.get(f"{name}.*.*")
        inner_tables = {}
        if inner_keys and isinstance(table, dict):
            inner_tables = {key: value for key, value in table.items() if isinstance(value, dict)}
        self._refuse_other_keys("key", place, table, tables[f"{name}.*"].union(inner_tables))
        for key, inner_table in inner_tables.items():
            self._refuse_other_keys("key", f"{place}.{key}", inner_table, inner_keys or set())

    def _require_table(self, name: str, value: object) -> None:
        if not isinstance(value, dict):
            raise ArtifactError(
                f"preset {self.name}: {name} must be a table, [{name}]", option="preset"
            )

    def _refuse_other_keys(self, kind: str, name: str, table: Any, keys: set[str]) -> None:
        self._require_table(name, table)
        for key in table:
            if key not in keys:
                place = f" in [{name}]" if name else ""
                raise ArtifactError(
                    f"preset {self.name}: unknown {kind} {key!r}{place}; known are: "
                    f"{', '.join(sorted(keys))}",
                    option="preset",
                )


def preset_names(metric: str) -> list[str]:
    """Returns the names of the presets of a metric that the package brings along, sorted."""
    return sorted(path.stem for path in (_FOLDER / metric).glob("*.toml"))


def load_preset(metric: str, preset: str | Path, *, local_files_only: bool = False) -> Preset:
    """Reads a preset of this package, or the ``preset.toml`` of an artifact.

    Artifacts are looked for in the order of `mtmetrics.artifacts.places`. A ``preset.toml`` with
    ``extends = "NAME"`` takes all keys of the preset NAME that it does not hold itself; a table in a
    table, such as ``[bounds.src-mt]``, counts as one key. Its table ``[options]`` holds options of the
    metric by their names.

    Args:
        metric: name of the metric.
        preset: name of a preset, a folder, the name of an artifact, or a Hub repository
            ``ORG/NAME``.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        InputError: no such preset; the message lists what there is.
        ArtifactError: the file is no valid TOML or belongs to another metric; what it extends is
            missing, has options, or extends this preset; or the repository cannot be fetched.
    """
    return _load(metric, preset, local_files_only, ())


def _load(
    metric: str, preset: str | Path, local_files_only: bool, extending_files: tuple[Path, ...]
) -> Preset:
    """Reads a preset, see `load_preset`. `extending_files` are the files that lead to it, each by
    extending the next one."""
    name = str(preset)
    if name in preset_names(metric):
        return Preset(name, metric, _FOLDER, _read(_FOLDER / metric / f"{name}.toml"))
    folder = local_folder(preset, "preset.toml")
    if folder is None and is_on_hub(name, "preset"):
        folder = download(hub_source(name), local_files_only=local_files_only)
    path = (folder or Path(preset)) / "preset.toml"
    if not path.is_file():
        raise InputError(
            f"unknown preset {name!r} for metric {metric}; there are: "
            f"{', '.join(preset_names(metric))}; or pass a folder that holds a preset.toml"
        )
    settings = _read(path)
    if settings.get("metric", metric) != metric:
        raise ArtifactError(f"{path}: a preset for metric {settings['metric']!r}, not {metric!r}")
    options = settings.pop("options", {})
    if not isinstance(options, dict):
        raise ArtifactError(f"{path}: options must be a table, [options]")
    preset_of_file = Preset(name, metric, path.parent, settings, options)
    if "extends" in settings:
        return _extended(preset_of_file, local_files_only, (*extending_files, path.resolve()))
    return preset_of_file


def _extended(preset: Preset, local_files_only: bool, extending_files: tuple[Path, ...]) -> Preset:
    """Returns a preset with the keys of the one that it extends. `extending_files` as in `_load`; the
    last one is the preset's own."""
    path = preset.folder / "preset.toml"
    if path.resolve() in extending_files[:-1]:
        raise ArtifactError(f"{path}: the preset extends itself")
    settings = dict(preset.settings)
    base_name = settings.pop("extends")
    if not isinstance(base_name, str):
        raise ArtifactError(f"{path}: extends must name a preset")
    folder = path.parent / base_name
    try:
        base_place = folder if folder.is_dir() else base_name
        base = _load(preset.metric, base_place, local_files_only, extending_files)
    except InputError as error:
        raise ArtifactError(f"{path}: extends {base_name!r}: {error}") from None
    if base.options:
        reason = "which has options; copy its keys here instead"
        if base.base_folders:
            reason = "which extends another preset; extend that one, and repeat the options here"
        raise ArtifactError(f"{path}: extends {base_name!r}, {reason}")
    merged = dict(base.settings)
    for key, value in settings.items():
        base_value = merged.get(key)
        if isinstance(value, dict) and isinstance(base_value, dict):
            value = base_value | value
        merged[key] = value
    return dataclasses.replace(
        preset, base_folders=(base.folder, *base.base_folders), settings=merged
    )


def extending(metric: str, base: str | None, description: str) -> dict[str, str]:
    """Returns the keys at the head of a preset that extends another one.

    Args:
        metric: for which the preset is made.
        base: name or folder of the preset that it extends; None for a metric without presets, so
            that it extends none.
        description: of the preset.
    """
    head = {"metric": metric, "description": description}
    if base is not None:
        # As in `load_preset`, a preset of this package comes before a folder of the same name.
        is_folder = base not in preset_names(metric) and Path(base).is_dir()
        head["extends"] = str(Path(base).resolve()) if is_folder else base
    return head


def require_extendable(metric: str, preset: str, *, local_files_only: bool) -> None:
    """Refuses a preset that no other can extend, because it has options of its own.

    Args:
        metric: name of the metric.
        preset: name or folder of the preset.
        local_files_only: see `load_preset`.

    Raises:
        InputError: the preset has options, or as `load_preset`.
    """
    if load_preset(metric, preset, local_files_only=local_files_only).options:
        raise InputError(
            f"preset {preset}: has options, so no preset can extend it; pass the preset that it "
            "extends, and its options",
            option="preset",
        )


def preset_toml(head: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> str:
    """Writes a preset as TOML. Values are strings, numbers, truth values and lists of strings, all
    of which look alike in JSON."""
    blocks = []
    for title, table in {"": head, **tables}.items():
        lines = [f"[{title}]\n"] if title else []
        for name, value in table.items():
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}\n")
        blocks.append("".join(lines))
    return "\n".join(blocks)


def _read(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArtifactError(f"{path}: not a readable TOML file ({error})") from error
