"""The options of a metric, each said once: its type, default and help, its key in a preset and in
the signature."""

import dataclasses
import inspect
import os
import re
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any, Self

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, number, positive
from mtmetrics.errors import InputError

_PLAIN = (bool, int, float, str)
# How plain values are written on the command line, and what they are called.
_WORDS = {"true": True, "false": False}
_WHOLE, _NUMBER = (
    re.compile(r"[+-]?[0-9]+"),
    re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
)
_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
# Help that several metrics share, so that the command line says it once.
ENCODER = "another encoder than the preset's"
LAYER = "hidden state of the encoder, 0 = embeddings"
MAP = "none, clp, umd, clp+umd or umd+clp"
MAPS = "a map file, a folder of maps, or the name of a map artifact"
LANGUAGE_MODEL = "language model of the target language, or none"
WORKERS = "threads that solve transport or match words (default: one per core, at most 4)"


def option(
    default: Any,
    text: str,
    *,
    usage: str | None = None,
    choices: tuple[str, ...] = (),
    preset: str | None = None,
    signed: str | None = None,
    opens: bool = False,
    weighs: bool = False,
) -> Any:
    """A field of `Settings`.

    Args:
        default: its value where neither the user nor the preset says another one.
        text: its help on the command line, and its documentation as a keyword.
        usage: what help calls its value; by default its name in capitals.
        choices: the values that it may have, besides the default.
        preset: key of the table ``[score]`` of a preset that may hold it.
        signed: key of the signature, which names values other than the default; None where
            `Scorer.signature_fields` of the metric says more than the value, or nothing.
        opens: it chooses what ``from_preset`` loads, so the class itself does not take it.
        weighs: it changes nothing but how the parts of a score become one, see `Scorer.combined`.
    """
    told: dict[str, Any] = {
        "help": text,
        "usage": usage,
        "choices": choices,
        "preset": preset,
        "signed": signed,
    }
    told |= {"opens": opens, "weighs": weighs}
    return dataclasses.field(default=default, metadata=told)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a metric, besides its language pair and the side that it compares with.

    A subclass has one field, made by `option`, for each. From it come the option of the command
    line, the keyword of `mtmetrics.load` and of the `evaluate` module with its documentation, the
    key of presets, and that of the signature.

    Raises:
        InputError: a value is none of its `choices`, or no number where one is needed.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Reads annotations that are text, as ``from __future__ import annotations`` makes them,
        before they become fields; a `NameError` where one names something that is not defined
        yet."""
        super().__init_subclass__(**keywords)
        hints = typing.get_type_hints(cls)
        cls.__annotations__ = {name: hints[name] for name in inspect.get_annotations(cls)}

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None or isinstance(value, bool):
                continue
            if field.metadata["choices"]:
                choice(field.name, value, field.metadata["choices"])
            elif kinds(field) in ({float}, {int, float}):
                number(field.name, value)
            elif kinds(field) == {int} and field.name != "layer":
                positive(field.name, value)

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """The fields by their names."""
        return {field.name: field for field in dataclasses.fields(cls)}

    @classmethod
    def preset_keys(cls) -> set[str]:
        """The keys of the table ``[score]`` of a preset."""
        return {field.metadata["preset"] for field in dataclasses.fields(cls)} - {None}

    @classmethod
    def chosen(cls, preset: Preset, asked: Mapping[str, Any]) -> Self:
        """Settings as the user `asked` for them; what is missing or None there is as the preset says,
        else the default.

        Raises:
            InputError: there is no such option, or as the class.
        """
        score = preset.settings.get("score", {})
        keys = {name: field.metadata["preset"] for name, field in cls.options().items()}
        said = {name: score[key] for name, key in keys.items() if key in score}
        return cls.of(said | {name: value for name, value in asked.items() if value is not None})

    @classmethod
    def of(cls, given: Mapping[str, Any], *, opened: bool = False) -> Self:
        """Settings from keywords.

        Args:
            given: option -> its value.
            opened: refuse the options that choose what ``from_preset`` loads; the class itself is
                given its models.

        Raises:
            InputError: there is no such option, or as the class.
        """
        known = [
            name
            for name, field in cls.options().items()
            if not (opened and field.metadata["opens"])
        ]
        for name in given:
            if name not in known:
                raise InputError(
                    f"unknown option {name!r}; there are: {', '.join(known) or 'none'}"
                )
        return cls(**given)

    def signature_fields(self) -> dict[str, object]:
        """Returns the options with a key of the signature that differ from their defaults: key ->
        value."""
        fields: dict[str, object] = {}
        for name, field in self.options().items():
            value, key = getattr(self, name), field.metadata["signed"]
            if key is not None and value != field.default:
                fields[key] = "yes" if value is True else value
        return fields

    def of_class(self) -> dict[str, Any]:
        """The keywords of the metric's class: all options but those that choose what ``from_preset``
        loads."""
        return {
            name: getattr(self, name)
            for name, field in self.options().items()
            if not field.metadata["opens"]
        }


def kinds(field: dataclasses.Field[Any]) -> set[type]:
    """The types of plain values that an option may have."""
    return _members(field.type) & {*_PLAIN}


def _members(annotation: Any) -> set[Any]:
    """The types that are joined in an annotation."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return {member for argument in arguments for member in _members(argument)}
    if origin is typing.Literal:
        return {type(value) for value in arguments}
    return {annotation}


def plain_value(possible: Collection[type], text: str) -> bool | int | float | str:
    """The value that a text stands for, of the first type that fits: a truth value, a number, text.

    Raises:
        InputError: it stands for none of the possible types.

    Example:
        >>> plain_value({int, str}, "3"), plain_value({str}, "3")
        (3, '3')
    """
    if bool in possible and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if int in possible and _WHOLE.fullmatch(text):
        return int(text)
    if float in possible and _NUMBER.fullmatch(text):
        return float(text)
    if str in possible:
        return text
    raise InputError(
        f"{' or '.join(name for kind, name in _KINDS.items() if kind in possible)} is needed"
    )


def worker_count(workers: int | None) -> int:
    """A checked number of workers; if None that of the cores, at most 4, which take all that a
    process can give them."""
    return positive("workers", min(os.cpu_count() or 1, 4) if workers is None else workers)
