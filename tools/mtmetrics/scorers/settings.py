"""Settings of metrics. An option is one field, which holds its type, default and help, and its keys
in presets and in the signature; all that shows or reads options takes them from there."""

import dataclasses
import inspect
import os
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
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
ENCODER_HELP = "another encoder than the preset's"
LAYER_HELP = "hidden state of the encoder, 0 = embeddings"
MAP_HELP = "kind of linear map between the languages: none, clp, umd, clp+umd or umd+clp"
MAPS_HELP = "a map file, a folder of maps, or the name of a map artifact"
LANGUAGE_MODEL_HELP = "language model of the target language, or none"
WORKERS_HELP = "threads that solve transport or match words (default: one per core, at most 4)"


def option(
    default: Any,
    text: str,
    *,
    usage: str | None = None,
    choices: tuple[str, ...] = (),
    preset: str | None = None,
    signed: str | None = None,
    weighs: bool = False,
) -> Any:
    """A field of `Settings`.

    Args:
        default: its value where neither the user nor the preset says another one.
        text: its help on the command line, and its documentation as a keyword.
        usage: placeholder of its value in help; by default its name in capitals.
        choices: the values that it may have, besides the default.
        preset: key under which the table ``[score]`` of a preset may hold it; None where a preset
            cannot set it.
        signed: key under which the signature shows values other than the default; None where the
            metric's own `signature_fields` shows them, or where it changes no score.
        weighs: whether it changes only how the parts are combined into a score, see
            `Scorer.combine_parts`, so that tuning it computes no part again.
    """
    metadata = {
        "help": text,
        "usage": usage,
        "choices": choices,
        "preset": preset,
        "signed": signed,
        "weighs": weighs,
        "loads": False,
    }
    return dataclasses.field(default=default, metadata=metadata)


def loading_option(text: str, *, usage: str | None = None, preset: str | None = None) -> Any:
    """A field of `Settings` that says what ``from_preset`` loads, such as a model; None where the
    preset says it. A scorer that is made from loaded objects does not take it.

    Args:
        text, usage, preset: as of `option`.
    """
    metadata = {
        "help": text,
        "usage": usage,
        "choices": (),
        "preset": preset,
        "signed": None,
        "weighs": False,
        "loads": True,
    }
    return dataclasses.field(default=None, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a metric: language pair, side, and its own options.

    A subclass has one field, made by `option`, for each option. From it come the option of the
    command line, the keyword of `mtmetrics.load` and of the `evaluate` module with its
    documentation, the key of presets, and that of the signature.

    Attributes:
        lang_pair: such as ``"de-en"``; None where it is not given.
        against: the side that the user asks for; None where nobody asks.
        requested: names of the options that the user set; all others are as the preset has them, or
            defaults.

    Raises:
        InputError: a value is none of its `choices`, or no number where one is needed.
    """

    lang_pair: str | None = None
    against: str | None = None
    set_by_user: frozenset[str] = dataclasses.field(default=frozenset(), repr=False, compare=False)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Turns annotations that are text, as ``from __future__ import annotations`` makes them,
        into types, so that fields know these. Raises a `NameError` where one names something that
        is not defined yet."""
        super().__init_subclass__(**keywords)
        hints = typing.get_type_hints(cls)
        cls.__annotations__ = {name: hints[name] for name in inspect.get_annotations(cls)}

    def __post_init__(self) -> None:
        for name, field in self.options().items():
            value = getattr(self, name)
            if value is None or isinstance(value, bool):
                continue
            if field.metadata["choices"]:
                choice(name, value, field.metadata["choices"])
            elif plain_types(field) in ({float}, {int, float}):
                number(name, value)
            elif plain_types(field) == {int} and name != "layer":
                positive(name, value)

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """The fields of options by their names."""
        return {field.name: field for field in dataclasses.fields(cls) if "help" in field.metadata}

    @classmethod
    def non_loading_options(cls) -> list[str]:
        """Names of the options that a scorer takes which is made from loaded objects."""
        return [name for name, field in cls.options().items() if not field.metadata["loads"]]

    @classmethod
    def preset_keys(cls) -> set[str]:
        """The keys of the table ``[score]`` of a preset."""
        return {field.metadata["preset"] for field in cls.options().values()} - {None}

    @classmethod
    def of_preset(
        cls,
        preset: Preset,
        requested: Mapping[str, Any],
        *,
        lang_pair: str | None,
        against: str | None,
    ) -> Self:
        """Settings as the user wants them, else as the preset says, else the defaults.

        Raises:
            InputError: there is no such option, or as the class.
        """
        refuse_unknown_options(requested, list(cls.options()))
        score_table = preset.settings.get("score", {})
        values = {
            name: score_table[field.metadata["preset"]]
            for name, field in cls.options().items()
            if field.metadata["preset"] in score_table
        }
        return cls(
            **values | dict(requested),
            lang_pair=lang_pair,
            against=against,
            set_by_user=frozenset(requested),
        )

    def without_preset_values(self, names: Collection[str]) -> Self:
        """Settings in which some options have their defaults, unless the user set them."""
        options = self.options()
        defaults: dict[str, Any] = {
            name: options[name].default for name in names if name not in self.set_by_user
        }
        return dataclasses.replace(self, **defaults)

    def signature_fields(self) -> dict[str, object]:
        """Returns the options with a key of the signature that differ from their defaults: key ->
        value."""
        fields: dict[str, object] = {}
        for name, field in self.options().items():
            value, key = getattr(self, name), field.metadata["signed"]
            if key is not None and value != field.default:
                fields[key] = "yes" if value is True else value
        return fields


def refuse_unknown_options(names: Iterable[str], options: Sequence[str]) -> None:
    """Raises an `InputError` at the first name that is no option."""
    for name in names:
        if name not in options:
            raise InputError(f"unknown option {name!r}; there are: {', '.join(options) or 'none'}")


def plain_types(field: dataclasses.Field[Any]) -> set[type]:
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


def parse_value(possible: Collection[type], text: str) -> bool | int | float | str:
    """The value that a text stands for, of the first type that fits: a truth value, a number, text.

    Raises:
        InputError: it stands for none of the possible types.

    Example:
        >>> parse_value({int, str}, "3"), parse_value({str}, "3")
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
    """Checks a number of workers; None means one per core, at most 4: more bring nothing, since one
    process feeds them all."""
    return positive("workers", min(os.cpu_count() or 1, 4) if workers is None else workers)
