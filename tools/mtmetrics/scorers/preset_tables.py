"""A preset that a metric is made from: what its tables name; and the line that pins a score: its
signature."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from mtmetrics._version import __version__
from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, for_language, language_of, language_pair, names_of_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import KINDS, Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder, Level
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.side import Side, resolve_side

# How scores with several references become one.
_BEST_REFERENCE = "combine:max"
# How a language model scores texts; a preset says it beside the model.
_LM_OPTIONS = ("start_token", "end_token", "length_power")


@dataclasses.dataclass
class Opened:
    """A preset, and what the user says besides it; `mtmetrics.scorers.base.Scorer.from_preset`
    makes a metric of it.

    Attributes:
        bundle: the preset.
        pool: its models come from here.
        given: options of the user, and those that the preset sets as the user would.
        chosen: the settings of the metric: what is given, else what the preset says, else the
            default.
        lang_pair: such as ``"de-en"``, where it is given.
        against: the side that is asked for by this option; None where it is not.
        pair: the languages of source and translation, where `lang_pair` is given.

    Raises:
        InputError: the preset does not know a language, or was made for another pair.
    """

    bundle: Preset
    pool: ModelPool
    given: dict[str, Any]
    chosen: Any
    lang_pair: str | None = None
    against: str | None = None
    pair: tuple[str, str] | None = dataclasses.field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.lang_pair is None:
            return
        self.pair = language_pair(self.lang_pair)
        preset, where = self.bundle, f"language pair {self.lang_pair}"
        only, known = preset.settings.get("lang_pair"), preset.settings.get("languages")
        if only is not None and not names_of_pair(self.lang_pair, [only]):
            raise InputError(f"{where}: preset {preset.name} was made for {only} only")
        for wanted in self.pair:
            if known is not None and wanted not in map(language_of, known):
                raise InputError(
                    f"{where}: preset {preset.name} knows the languages {' '.join(known)}, not "
                    f"{wanted!r}"
                )

    def keywords(self) -> dict[str, Any]:
        """The keywords of the metric's class besides its models and `against`."""
        return {"lang_pair": self.lang_pair, **self.chosen.of_class()}

    def needed_pair(self) -> tuple[str, str]:
        """The languages of source and translation; an `InputError` where no pair is given."""
        if self.pair is None:
            raise InputError(
                "language pair None: pass lang_pair=, such as 'de-en'", mentions=["lang_pair="]
            )
        return self.pair

    def wanted_side(self) -> Side:
        """The side to compare with, see `resolve_side`."""
        metric = METRICS[self.bundle.metric]
        options = {"against": self.against, "setting": self.given.get("setting")}
        preset_side = metric.preset_side(self.bundle.settings)
        return resolve_side(metric, metric.requested_side(options), preset_side, None)

    def side(self) -> Side:
        """The side to compare with; an `InputError` where the preset is made for another one."""
        side = self.wanted_side()
        preset_side = METRICS[self.bundle.metric].preset_side(self.bundle.settings)
        if preset_side not in (None, side):
            problem = f"preset {self.bundle.name} compares with the {preset_side.label} only"
            raise InputError(
                f"against {side.value!r}: {problem}; choose another preset", option="against"
            )
        return side

    def encoder_table(self, target: str | None = None) -> dict[str, Any]:
        """Model, layer and revision of the encoder: the user's own, else those of the table
        ``[encoders.LANGUAGE]`` of the target, else of ``[encoder]``."""
        own, tables = self.given.get("encoder"), self.bundle.settings.get("encoders", {})
        if own:
            table = {"model": own}
        elif tables and target is None:
            why = f"preset {self.bundle.name} chooses its encoder by the target language"
            raise InputError(f"lang_pair is missing; {why}", option="lang_pair")
        else:
            table = self.model_table(
                "encoder", for_language(tables, target) or self.bundle.settings.get("encoder", {})
            )
        layer = self.given.get("layer")
        return {"revision": None, **table, "layer": table.get("layer") if layer is None else layer}

    def model_table(self, name: str, table: Mapping[str, Any]) -> dict[str, Any]:
        """A table of the preset that names a model, with the place of that model; an
        `ArtifactError` if it names none."""
        if "model" not in table:
            raise ArtifactError(
                f"preset {self.bundle.name}: names no model in its [{name}] table", option="preset"
            )
        return {**table, "model": self.bundle.path(table["model"])}

    def remapping(self, encoder: Encoder, level: Level = "word") -> Remapping | None:
        """The map of the source side that the user or the preset asks for."""
        table = self.bundle.settings.get("maps", {})
        chosen = choice("map", self.given.get("map") or table.get("kind", "none"), ("none", *KINDS))
        if chosen == "none":
            return None
        language_pair(self.lang_pair)
        options: dict[str, Any] = {"level": level, "local_files_only": self.pool.local_files_only}
        own = self.given.get("maps")
        if not own:
            options["revision"] = table.get("revision")
            # Of one map: that of the preset's kind.
            options["fingerprint"] = (
                table.get("fingerprint") if chosen == table.get("kind") else None
            )
        artifact = own or self.bundle.path(table.get("artifact", "."))
        return load_map(artifact, str(self.lang_pair), chosen, encoder, **options)

    def language_model(self) -> tuple[LanguageModel | None, float]:
        """The language model of the target language, the user's own or that of a preset of
        XMoverScore, and its weight."""
        target, own = self.needed_pair()[1], self.given.get("lm")
        table = for_language(self.bundle.settings.get("language_models", {}), target) or {}
        named: dict[str, Any] = (
            self.model_table(f"language_models.{target}", table) if table else {"model": "none"}
        )
        weight: float = named.pop("weight", 0.1)
        if own:
            named = own_language_model(own, table)
        return (None if named["model"] == "none" else self.pool.language_model(**named)), weight


def own_language_model(model: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a user's language model, which scores texts in the way of the preset's own one
    (`table`)."""
    return {"model": model} | {name: table[name] for name in _LM_OPTIONS if name in table}


class Pinned(Protocol):
    """A model that a signature names by its label and the 8 hexadecimal digits that pin its
    numbers."""

    label: str
    fingerprint: str


def signature(metric: str, fields: Mapping[str, object]) -> str:
    """``metric|key:value|...|v:VERSION``; fields whose value is None are left out.

    Example:
        >>> signature("xmoverscore", {"lp": "de-en", "layer": 12, "drop": None}).rsplit("|", 1)[0]
        'xmoverscore|lp:de-en|layer:12'
    """
    shown = [f"{key}:{value}" for key, value in fields.items() if value is not None]
    return "|".join([metric, *shown, f"v:{__version__}"])


def extended(line: str, *fields: str) -> str:
    """A signature with more fields, before the version."""
    head, _, version = line.rpartition("|v:")
    return "|".join([head, *fields, f"v:{version}"])


def with_references(line: str, counts: Collection[int]) -> str:
    """A signature that says how many references the segments have, and that the best one counts;
    unchanged where none has several. Replaces what it said before.

    Args:
        line: the signature; sacrebleu's own key for the number is ``nrefs``.
        counts: how many references a segment has, each number once; ``var`` stands for several
            numbers.

    Example:
        >>> with_references("bertr|layer:8|v:2.0.0", {2}), with_references("chrf|nrefs:1|v:2.0.0", {1, 2})
        ('bertr|layer:8|refs:2|combine:max|v:2.0.0', 'chrf|nrefs:var|combine:max|v:2.0.0')
    """
    if {*counts} <= {1}:
        return line
    number = str(*counts) if len(counts) == 1 else "var"
    fields = [field for field in line.split("|") if field != _BEST_REFERENCE]
    places = [place for place, field in enumerate(fields) if field.startswith(("refs:", "nrefs:"))]
    if places:
        [place] = places
        fields[place] = f"{fields[place].partition(':')[0]}:{number}"
    else:
        place = len(fields) - 1  # before the version
        fields.insert(place, f"refs:{number}")
    fields.insert(place + 1, _BEST_REFERENCE)
    return "|".join(fields)


def model_name(model: Pinned | None) -> str | None:
    """Label and fingerprint of a model; None where there is none."""
    return None if model is None else f"{model.label}#{model.fingerprint}"


def map_name(remapping: Remapping | None) -> str:
    """Kind and fingerprint of a map, or ``none``."""
    return "none" if remapping is None else f"{remapping.kind}#{remapping.fingerprint}"
