"""Settings of metrics. An option is one field of a dataclass, with its type, default and help, and its
keys in presets and in the signature. Everything that shows or reads options takes them from this
field.

A preset is a folder with a preset.toml. Its table ``[score]`` holds values of options; most other tables
name the models of the metric."""

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

# Help texts that several metrics share.
ENCODER_HELP = "another encoder: a folder, the name of a bundled model, or a Hub repository"
LAYER_HELP = "layer of the encoder whose vectors are read; 0 is the embedding layer"
MAP_HELP = (
    "linear map that brings the two languages closer: none, clp (rotates the vectors), umd (removes "
    "one direction), clp+umd or umd+clp"
)
MAPS_HELP = "the map: a file, or a folder of maps, by its path or name"
LANGUAGE_MODEL_HELP = "language model of the target language, or none to score without it"
WORKERS_HELP = "threads that match words (default: one per core, at most 4)"

# How a value is written on the command line, see `parse_value`.
_TRUTH_VALUES = {"true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TYPE_LABELS = {bool: "true or false", int: "a whole number", float: "a number"}


def option(
    default: Any,
    help_text: str,
    *,
    usage: str | None = None,
    choices: tuple[str, ...] = (),
    preset: str | None = None,
    signed: str | None = None,
    weighs: bool = False,
) -> Any:
    """Makes a field of `Settings`.

    Args:
        default: the value of the option if neither the user nor the preset sets one.
        help_text: help on the command line, and documentation of the keyword.
        usage: placeholder of the value in help (`metavar` in argparse); by default the name of the
            option in capitals.
        choices: the allowed values, besides a default of None; empty if any value of the type is
            allowed.
        preset: key of the option in the table ``[score]`` of a preset; None if a preset cannot set
            it.
        signed: key of the option in the signature, which shows values other than the default; None
            if the metric's `signature_fields` shows the option, or if it changes no score.
        weighs: whether the option weighs the parts of a score, such as a similarity and the
            likelihood of a language model, and changes nothing else; see `Scorer.combine_parts`.
            Such an option can be tuned without recomputing the parts.
    """
    metadata = {
        "help": help_text,
        "usage": usage,
        "choices": choices,
        "preset": preset,
        "signed": signed,
        "weighs": weighs,
        "loads": False,
    }
    return dataclasses.field(default=default, metadata=metadata)


def loading_option(help_text: str, *, usage: str | None = None, preset: str | None = None) -> Any:
    """Makes a field of `Settings` for something that `from_preset` loads, such as a model. Its default
    is None: the preset decides. A scorer that is made from loaded objects does not take it.

    Args:
        help_text, usage, preset: as for `option`.
    """
    field = option(None, help_text, usage=usage, preset=preset)
    return dataclasses.field(default=None, metadata={**field.metadata, "loads": True})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a metric: language pair, side, and its options.

    A subclass has one field for each option, made by `option` or `loading_option`. Like this class, it
    has to be decorated with ``@dataclasses.dataclass(frozen=True, kw_only=True)``. Everything else is
    derived from the field: the option of the command line, the keyword of `mtmetrics.load` and of the
    Hugging Face `evaluate` module with its documentation, and, if the field names them, the keys in
    presets and in the signature.

    Attributes:
        lang_pair: such as ``"de-en"``; None if the user names none.
        against: the side that the user asks for: the texts that translations are compared with
            (``"source"``, ``"reference"`` or ``"both"``). None if the user asks for none.
        set_by_user: names of the options that the user set. All others have the value of the preset
            or the default. Only `from_preset` fills it.

    Raises:
        InputError: a value is not one of the `choices`; is not a finite number, or not a whole number
            of at least 1, where the option takes only these; or is not a bool where the option takes
            only True and False. Other values are not checked here, nor are None and the option
            `layer`.
    """

    lang_pair: str | None = None
    against: str | None = None
    set_by_user: frozenset[str] = dataclasses.field(default=frozenset(), repr=False, compare=False)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Resolves string annotations, such as those made by ``from __future__ import annotations``,
        so that the fields hold types. Raises a `NameError` if an annotation names something that is
        not defined yet."""
        super().__init_subclass__(**keywords)
        hints = typing.get_type_hints(cls)
        cls.__annotations__ = {name: hints[name] for name in inspect.get_annotations(cls)}

    def __post_init__(self) -> None:
        """Checks the values of options. Raises the errors of the class."""
        for name, field in self.options().items():
            value = getattr(self, name)
            if value is None:
                continue
            types_of_option = plain_types(field)
            if field.metadata["choices"]:
                choice(name, value, field.metadata["choices"])
            elif types_of_option == {bool}:
                choice(name, value, (True, False))
            elif types_of_option in ({float}, {int, float}):
                number(name, value)
            elif types_of_option == {int} and name != "layer":
                # Whole numbers are counts and seeds, from 1 up. The exception is a layer: it may be 0,
                # and the encoder checks it.
                positive(name, value)

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """The field of each option, by name."""
        return {field.name: field for field in dataclasses.fields(cls) if "help" in field.metadata}

    @classmethod
    def non_loading_options(cls) -> list[str]:
        """Names of the options that a scorer made from loaded objects takes."""
        return [name for name, field in cls.options().items() if not field.metadata["loads"]]

    @classmethod
    def preset_keys(cls) -> set[str]:
        """The keys that the table ``[score]`` of a preset may have."""
        return {field.metadata["preset"] for field in cls.options().values()} - {None}

    @classmethod
    def from_preset(
        cls,
        preset: Preset,
        user_options: Mapping[str, Any],
        *,
        lang_pair: str | None,
        against: str | None,
    ) -> Self:
        """Makes settings. Options of the user override values of the preset, which override the
        defaults.

        Args:
            preset: its table ``[score]`` holds values of options.
            user_options: the options that the user sets. None is a value like any other, so an option
                that the user leaves open must be left out.
            lang_pair, against: see the class.

        Raises:
            InputError: an option is unknown, or a value is wrong, see the class.
        """
        refuse_unknown_options(user_options, list(cls.options()))
        score_table = preset.settings.get("score", {})
        values: dict[str, Any] = {}
        for name, field in cls.options().items():
            key = field.metadata["preset"]
            if key is not None and key in score_table:
                values[name] = score_table[key]
        values |= user_options
        return cls(
            **values,
            lang_pair=lang_pair,
            against=against,
            set_by_user=frozenset(user_options),
        )

    def without_preset_values(self, names: Collection[str]) -> Self:
        """Returns a copy in which these options have their defaults, unless the user set them."""
        options = self.options()
        defaults: dict[str, Any] = {
            name: options[name].default for name in names if name not in self.set_by_user
        }
        return dataclasses.replace(self, **defaults)

    def signature_fields(self) -> dict[str, object]:
        """Returns the options that have a key in the signature and differ from their default: key ->
        value."""
        fields: dict[str, object] = {}
        for name, field in self.options().items():
            value, key = getattr(self, name), field.metadata["signed"]
            if key is not None and value != field.default:
                fields[key] = "yes" if value is True else value
        return fields


def refuse_unknown_options(names: Iterable[str], options: Sequence[str]) -> None:
    """Raises an `InputError` if a name is not an option."""
    for name in names:
        if name not in options:
            raise InputError(f"unknown option {name!r}; there are: {', '.join(options) or 'none'}")


def plain_types(field: dataclasses.Field[Any]) -> set[type]:
    """Returns which of the types bool, int, float and str an option accepts."""
    return _members(field.type) & {bool, int, float, str}


def _members(annotation: Any) -> set[Any]:
    """Returns the members of a union, the types of the values of a literal, or else the annotation
    itself."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return {member for argument in arguments for member in _members(argument)}
    if origin is typing.Literal:
        return {type(value) for value in arguments}
    return {annotation}


def parse_value(allowed_types: Collection[type], text: str) -> bool | int | float | str:
    """Parses a value from the command line. Tries the allowed types in the order bool, int, float, str.

    Raises:
        InputError: the text fits none of the allowed types. The message names only these types; the
            caller adds the name of the option.

    Example:
        >>> parse_value({int, str}, "3"), parse_value({str}, "3")
        (3, '3')
    """
    if bool in allowed_types and text.lower() in _TRUTH_VALUES:
        return _TRUTH_VALUES[text.lower()]
    if int in allowed_types and _INTEGER.fullmatch(text):
        return int(text)
    if float in allowed_types and _NUMBER.fullmatch(text):
        return float(text)
    if str in allowed_types:
        return text
    needed = [label for type_, label in _TYPE_LABELS.items() if type_ in allowed_types]
    raise InputError(f"{' or '.join(needed)} is needed")


def worker_count(workers: int | None) -> int:
    """Returns the value of an option `workers`; None means one per core, at most 4. More workers do
    not help, since one process prepares the work for all of them."""
    return min(os.cpu_count() or 1, 4) if workers is None else workers
