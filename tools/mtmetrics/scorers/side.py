"""Sides: translations are compared with the source, a reference or both; how one is chosen."""

import enum
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from mtmetrics.checks import choice
from mtmetrics.errors import InputError

Column = Literal["sources", "references"]
# Options as a user passes them, by their names.
Options = Mapping[str, Any]
# A table of a preset, as TOML gives it.
Table = Mapping[str, Any]
# Column of texts -> the field of a row that holds one of them.
FIELD_OF_COLUMN: dict[Column, str] = {"sources": "source", "references": "reference"}


class Side(enum.StrEnum):
    """The texts that a metric compares translations with."""

    SOURCE = "source"
    REFERENCE = "reference"
    BOTH = "both"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of texts that are compared with."""
        if self is Side.SOURCE:
            return ("sources",)
        if self is Side.REFERENCE:
            return ("references",)
        return ("sources", "references")

    @property
    def fields(self) -> list[str]:
        """The fields of a row that are compared with."""
        return [FIELD_OF_COLUMN[column] for column in self.columns]

    @property
    def label(self) -> str:
        """The side as a sentence names it."""
        return "source and the reference" if self is Side.BOTH else self.value


# Setting, as the paper of SentSim calls it -> the side.
SIDE_OF_SETTING = {"src-mt": Side.SOURCE, "mt-ref": Side.REFERENCE}
SETTING_OF_SIDE = {side: setting for setting, side in SIDE_OF_SETTING.items()}


class SideChoice(NamedTuple):
    """The choice that a metric leaves of what to compare with.

    Attributes:
        metric: name of the metric.
        sides: the sides that it can compare with.
        usual: the side where texts of both are given and nobody chooses; None if that is an error.
    """

    metric: str
    sides: Sequence[Side]
    usual: Side | None

    def sides_of_preset(self, tables: Table) -> list[Side]:
        """Returns the sides that a preset with these tables is made for; all where it names
        none."""
        named_side = tables.get("score", {}).get("against")
        if named_side is not None:
            preset_sides = {named_side}
        else:
            preset_sides = {*tables.get("regressors", {})}
            for side, setting in SETTING_OF_SIDE.items():
                if {setting, f"{setting}s"} & tables.keys():
                    preset_sides.add(side)
        return [side for side in self.sides if side in preset_sides] or [*self.sides]

    def preset_side(self, tables: Table) -> Side | None:
        """Returns the one side that a preset with these tables is made for; None where it leaves
        the choice."""
        sides = self.sides_of_preset(tables)
        return sides[0] if len(sides) == 1 and len(self.sides) > 1 else None


def requested_side(options: Options) -> str | None:
    """Returns the side that options ask for, by `against` or by SentSim's alias `setting`; None
    where they ask for none.

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
    choices: SideChoice,
    requested: str | None,
    preset_side: Side | None,
    given_columns: Collection[str] | None,
) -> Side:
    """Returns the side that a metric is to compare with.

    The user's request decides; without one the preset, where it is made for one side; then the
    columns that are given; then what is usual for the metric.

    Args:
        choices: what the metric can compare with, and what is usual.
        requested: the side that the user asks for, see `requested_side`.
        preset_side: the only side that the preset is made for.
        given_columns: the columns of texts that the user passed; None where they are not known.

    Raises:
        InputError: the metric cannot compare with that side, its texts are not given, or nothing
            says which side counts.
    """
    possible = [
        side
        for side in choices.sides
        if given_columns is None or {*side.columns} <= {*given_columns}
    ]
    if requested is not None:
        return _checked_request(choices, requested, possible)
    if not possible:
        columns = _columns_label(choices.sides)
        raise InputError(
            f"{choices.metric} compares predictions with {columns}; pass {columns}",
            mentions=["sources", "references"],
        )
    if preset_side is not None and preset_side in possible:
        return preset_side
    if len(possible) == 1:
        return possible[0]
    if choices.usual is not None:
        return choices.usual
    problem = f"{choices.metric}: both sources and references are given"
    if given_columns is None:
        problem = f"{choices.metric} compares with the source or the reference"
    raise InputError(
        f"{problem}: pass against='source' or against='reference'",
        mentions=["against='source'", "against='reference'"],
    )


def _checked_request(choices: SideChoice, requested: str, possible: Collection[Side]) -> Side:
    """Returns the side that the user asks for; raises as `resolve_side`."""
    choice("against", requested, tuple(Side))
    side = Side(requested)
    if side not in choices.sides:
        wrong = "both" if side is Side.BOTH else f"a {side}"
        columns = _columns_label(choices.sides)
        raise InputError(f"{choices.metric} compares with {columns} only, not with {wrong}")
    if side not in possible:
        needed = " and ".join(side.columns)
        raise InputError(
            f"against={side.value!r} compares with {needed}; pass {needed}",
            option="against",
            mentions=[f"against={side.value!r}", *side.columns],
        )
    return side


def _columns_label(sides: Sequence[Side]) -> str:
    """The columns of some sides, such as ``sources or references, or both``."""
    if len(sides) == 1:
        return " and ".join(sides[0].columns)
    label = " or ".join(side.columns[0] for side in sides if side is not Side.BOTH)
    return f"{label}, or both" if Side.BOTH in sides else label
