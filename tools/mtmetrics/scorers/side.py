"""Side: the texts that translations are compared with (the source, a reference or both), and how it
is chosen."""

import enum
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from mtmetrics.checks import choice
from mtmetrics.errors import InputError

Column = Literal["sources", "references"]
# Options as a user passes them, by their names.
Options = Mapping[str, Any]
# A table of a preset, or a whole preset, which is a table of tables.
Table = Mapping[str, Any]
# Name of a column -> name of the field that holds its text in one row.
FIELD_OF_COLUMN: dict[Column, str] = {"sources": "source", "references": "reference"}


class Side(enum.StrEnum):
    """The texts that a metric compares translations with."""

    SOURCE = "source"
    REFERENCE = "reference"
    BOTH = "both"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that translations are compared with."""
        if self is Side.SOURCE:
            return ("sources",)
        if self is Side.REFERENCE:
            return ("references",)
        return ("sources", "references")

    @property
    def fields(self) -> list[str]:
        """The fields of a row that translations are compared with."""
        return [FIELD_OF_COLUMN[column] for column in self.columns]

    @property
    def label(self) -> str:
        """The side in a sentence, behind "the"."""
        return "source and the reference" if self is Side.BOTH else self.value


# The paper of SentSim calls the side a setting. Name of a setting -> the side.
SIDE_OF_SETTING = {"src-mt": Side.SOURCE, "mt-ref": Side.REFERENCE}
SETTING_OF_SIDE = {side: setting for setting, side in SIDE_OF_SETTING.items()}


class SideChoice(NamedTuple):
    """The sides that a metric offers, and its default.

    Attributes:
        metric: name of the metric.
        sides: the sides that it can compare with.
        usual: the default side, if sources and references are given and the user does not choose;
            None if the user has to.
    """

    metric: str
    sides: Sequence[Side]
    usual: Side | None

    def sides_of_preset(self, tables: Table) -> list[Side]:
        """Returns the sides that a preset with these tables is made for, as far as the metric offers
        them; all sides of the metric if there are none."""
        score_table = tables.get("score", {})
        if "against" in score_table:
            preset_sides = {score_table["against"]}
        else:
            # Presets of learned metrics have a network for each side.
            preset_sides = {*tables.get("regressors", {})}
            # Presets of SentSim have models for a setting, [mt-ref], or for the setting in each
            # target language, [mt-refs.en].
            for side, setting in SETTING_OF_SIDE.items():
                if {setting, f"{setting}s"} & tables.keys():
                    preset_sides.add(side)
        matching_sides = [side for side in self.sides if side in preset_sides]
        return matching_sides or list(self.sides)

    def preset_side(self, tables: Table) -> Side | None:
        """Returns the one side that a preset with these tables is made for. Returns None if the
        preset leaves the choice open, or the metric has only one side."""
        sides = self.sides_of_preset(tables)
        return sides[0] if len(sides) == 1 and len(self.sides) > 1 else None


def requested_side(options: Options) -> str | None:
    """Returns the side that options ask for, by `against` or by SentSim's alias `setting`; None if
    they ask for none.

    Raises:
        InputError: an unknown setting, or one that contradicts `against`.
    """
    against, setting = options.get("against"), options.get("setting")
    if setting is None:
        return against
    choice("setting", setting, tuple(SIDE_OF_SETTING))
    side = SIDE_OF_SETTING[setting]
    if against not in (None, side):
        raise InputError(
            f"against {str(against)!r} and setting {setting!r} contradict; pass one of them",
            option="against",
        )
    return side


def resolve_side(
    side_choice: SideChoice,
    requested: str | None,
    preset_side: Side | None,
    given_columns: Collection[str] | None,
) -> Side:
    """Returns the side that a metric is to compare with.

    The user's request decides; without one the preset, if it is made for one side and the texts of
    that side are given; then the columns that are given; then the default of the metric.

    Args:
        side_choice: the sides that the metric offers, and its default.
        requested: the side that the user asks for, see `requested_side`.
        preset_side: the only side that the preset is made for; None if it is made for several.
        given_columns: the columns of texts that the user passed; None if they are not known yet.

    Raises:
        InputError: the metric cannot compare with that side, its texts are not given, or nothing
            says which side counts.
    """
    available_sides = [
        side
        for side in side_choice.sides
        if given_columns is None or {*side.columns} <= {*given_columns}
    ]
    if requested is not None:
        return _checked_request(side_choice, requested, available_sides)
    if not available_sides:
        columns = _columns_label(side_choice.sides)
        raise InputError(
            f"{side_choice.metric} compares predictions with {columns}; pass {columns}",
            mentions=["sources", "references"],
        )
    if preset_side is not None and preset_side in available_sides:
        return preset_side
    if len(available_sides) == 1:
        return available_sides[0]
    if side_choice.usual is not None:
        return side_choice.usual
    if given_columns is None:
        labels = " or ".join(f"the {side.label}" for side in available_sides)
        problem = f"{side_choice.metric} compares with {labels}"
    else:
        problem = f"{side_choice.metric}: both sources and references are given"
    ways = [f"against={side.value!r}" for side in available_sides]
    raise InputError(f"{problem}: pass {' or '.join(ways)}", mentions=ways)


def _checked_request(
    side_choice: SideChoice, requested: str, available_sides: Collection[Side]
) -> Side:
    """Returns the side that the user asks for. Raises the errors of `resolve_side`."""
    choice("against", requested, tuple(Side))
    side = Side(requested)
    if side not in side_choice.sides:
        wrong = "both" if side is Side.BOTH else f"a {side}"
        columns = _columns_label(side_choice.sides)
        raise InputError(f"{side_choice.metric} compares with {columns} only, not with {wrong}")
    if side not in available_sides:
        needed = " and ".join(side.columns)
        raise InputError(
            f"against={side.value!r} compares with {needed}; pass {needed}",
            option="against",
            mentions=[f"against={side.value!r}", *side.columns],
        )
    return side


def _columns_label(sides: Sequence[Side]) -> str:
    """Returns the columns of sides, such as ``sources or references, or both``."""
    if len(sides) == 1:
        return " and ".join(sides[0].columns)
    label = " or ".join(side.columns[0] for side in sides if side is not Side.BOTH)
    return f"{label}, or both" if Side.BOTH in sides else label
