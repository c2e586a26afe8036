"""Scores that another program computes: a metric that needs an environment of its own, a language
model that judges."""

import dataclasses
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, number, positive
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.io.visible_text import is_blank
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers import settings
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.foreign import ForeignMetric
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import loading_option
from mtmetrics.scorers.side import FIELD_OF_COLUMN, Options, Side
from mtmetrics.scorers.stored import read_scores

_FILE = "commands.toml"
_INPUTS = ("jsonl", "tsv")
_OUTPUTS = ("txt", "tsv", "csv", "json", "jsonl")
_PLACES = re.compile(r"\{(source|translation|reference|rows|scores)\}")
_SHOWN = 200


@dataclasses.dataclass(frozen=True)
class Command:
    """A table of a file of commands.

    Attributes:
        command: the program and its arguments; ``{source}``, ``{translation}`` and ``{reference}``
            stand for files with a text per line, ``{rows}`` for one of all rows, ``{scores}`` for
            the file that it writes. Where it names no file to read, rows come on its standard
            input.
        columns: what it reads of each row, ``translation`` and one or both of ``source`` and
            ``reference``; or a table of these names and of those that the program knows them by.
        input: how rows are written: ``jsonl`` or ``tsv``, without a header.
        output: what its output is: ``txt`` (a number per line), ``tsv``, ``csv``, ``json`` or
            ``jsonl``, each as `mtmetrics.scorers.stored.StoredScores` reads it.
        key: the column or key of its output that is the score.
        lower_is_better: its scores are turned round (multiplied by -1).
        floor: score of a segment of which a side is blank, on its own scale; the program does not
            see it.
        environment: variables, besides those that are set already.
        folder: where it is started; that of the file of commands by default.
        timeout: seconds that a call may take.
        lines: rows that one call is given at most.
        keep: a folder where the scores of finished calls are kept, so that a later run goes on from
            there.
        version: stands in the signature.
    """

    command: list[str] | str
    columns: list[str] | dict[str, str] = dataclasses.field(
        default_factory=lambda: ["source", "translation"]
    )
    input: str = "jsonl"
    output: str = "txt"
    key: str | None = None
    lower_is_better: bool = False
    floor: float = 0.0
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    folder: str = "."
    timeout: float = 86_400.0
    lines: int = 20_000
    keep: str | None = None
    version: str = "1"

    @classmethod
    def read(cls, path: str | Path, name: str | None) -> "Command":
        """The command of a name.

        Raises:
            InputError: there is no such file or table, or the table says something that cannot be.
        """
        path = Path(path)
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            needed = f"a table for each command is needed, such as [{name or 'NAME'}]"
            raise InputError(
                f"commands {path}: no such file; {needed}", option="commands"
            ) from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(
                f"commands {path}: cannot be read as TOML ({error})", option="commands"
            ) from error
        table = tables.get(str(name))
        if not isinstance(table, dict):
            table_names = (
                ", ".join(key for key, value in tables.items() if isinstance(value, dict)) or "none"
            )
            raise InputError(
                f"metric cmd:{name or ''}: {path} has no such table; there are: {table_names}; write "
                "cmd:NAME",
                option="metric",
            )
        fields = {field.name: field for field in dataclasses.fields(cls)}
        try:
            for key, value in table.items():
                if key not in fields:
                    raise InputError(f"unknown key {key!r}; there are: {', '.join(fields)}")
                _check_type(key, value, fields[key].default)
            if not table.get("command"):
                raise InputError("no command")
            command = cls(**table)
            command._check()
        except InputError as error:
            raise InputError(f"commands {path}, [{name}]: {error}") from None
        return dataclasses.replace(command, folder=str(path.resolve().parent / command.folder))

    def _check(self) -> None:
        choice("input", self.input, _INPUTS)
        choice("output", self.output, _OUTPUTS)
        positive("lines", self.lines)
        if self.timeout <= 0:
            raise InputError(f"timeout {self.timeout:g}: must be more than 0 seconds")
        read = set(self.columns) - {"translation"}
        if (
            len(self.columns) != len(read) + 1
            or not read
            or not read <= {*FIELD_OF_COLUMN.values()}
        ):
            raise InputError(
                f"columns {[*self.columns]}: translation and one or both of source and reference "
                "are needed"
            )
        unread = self.places - {*self.columns, "rows", "scores"}
        if unread:
            raise InputError(f"command: names {{{unread.pop()}}}, which columns does not")

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)

    @property
    def places(self) -> set[str]:
        """The files that the command line names."""
        return {place for argument in self.arguments for place in _PLACES.findall(argument)}

    @property
    def side(self) -> Side:
        """The side that it compares with."""
        if len(self.columns) > 2:
            return Side.BOTH
        return Side.SOURCE if "source" in self.columns else Side.REFERENCE

    @property
    def fingerprint(self) -> str:
        """8 hexadecimal digits that pin what decides the scores."""
        decides = [
            self.arguments,
            self.columns,
            self.input,
            self.output,
            self.key,
            self.environment,
            self.version,
        ]
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:8]


def _check_type(key: str, value: object, default: object) -> None:
    if key == "command":
        fits = isinstance(value, str) or _is_texts(value)
    elif key == "columns":
        fits = _is_texts(list(value.values()) if isinstance(value, dict) else value)
    elif key == "environment":
        fits = isinstance(value, dict) and _is_texts(list(value.values()))
    elif isinstance(default, float):
        number(key, value)
        fits = True
    else:
        fits = isinstance(value, str if default is None else type(default))
    if not fits:
        raise InputError(f"{key} {value!r}: not of the kind that is needed")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


class CommandMetric(ForeignMetric):
    """A metric that a program computes, which gets rows of texts and gives a number for each.

    Equal rows are sent once. Line breaks and tabs within a text become spaces, except in JSON
    Lines.

    Args:
        command: how it is run.
        name: of the command, for messages and the signature.
        **options: `lang_pair`, which the program gets as ``MTMETRICS_LANG_PAIR``; and `against`,
            what it compares with, where `command` says the same.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of a command."""

        commands: str | None = loading_option(
            f"the file that says how commands are run (default: {_FILE})",
            usage="FILE",
        )

    settings: Settings

    metric = "cmd"
    sides = tuple(Side)
    usual = Side.BOTH
    usual_preset: ClassVar = "NAME"

    def __init__(
        self,
        command: Command,
        name: str,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        against = self.settings.against
        if against not in (None, command.side):
            reads = ", ".join(command.columns)
            raise InputError(
                f"against {str(against)!r}: the columns of cmd:{name} are {reads}; leave it out",
                option="against",
            )
        self.command, self.name = command, name
        self.lower_is_better, self.floor = command.lower_is_better, command.floor
        self.side = command.side
        self.batch_segments = command.lines

    @classmethod
    def needs_preset(cls) -> bool:
        """True: the name of the command stands where other metrics have a preset."""
        return True

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """The side that a command compares with, whose name stands where other metrics have a preset:
        ``cmd:NAME``; an `InputError` as of `Command.read`."""
        side = Command.read(options.get("commands") or _FILE, preset).side
        return Preset(str(preset), cls.metric, Path(), {"score": {"against": side}})

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """The name of the preset is that of the command."""
        command = Command.read(settings.commands or _FILE, preset.name)
        return cls(command, preset.name, settings=settings)

    @property
    def signature(self) -> str:
        metric, _, rest = super().signature.partition("|")
        return "|".join(
            [metric, f"name:{self.name}#{self.command.fingerprint}", *self._signs, rest]
        )

    def compute(self, batch: Batch) -> list[PartScores]:
        rows_of_systems = [self._rows(batch, predictions) for predictions in batch.predictions]
        # Equal rows are sent once; blank ones keep the floor score.
        rows = dict.fromkeys(row for rows in rows_of_systems for row in rows)
        distinct = [row for row in rows if not any(map(is_blank, row))]
        number_of_row: dict[tuple[str, ...], float] = {}
        for first in range(0, len(distinct), self.command.lines):
            together = distinct[first : first + self.command.lines]
            number_of_row |= zip(together, self._numbers(together), strict=True)
        scores = []
        for rows_of_system in rows_of_systems:
            numbers = [number_of_row.get(row, self.floor) for row in rows_of_system]
            scores.append(self._turned(np.array(numbers, dtype=np.float64)))
        return scores

    def _rows(self, batch: Batch, predictions: Sequence[str]) -> list[tuple[str, ...]]:
        """The texts of each segment in the order of the command's columns."""
        texts = {
            "source": batch.sources,
            "reference": batch.references,
            "translation": predictions,
        }
        columns = [texts[name] or () for name in self.command.columns]
        return list(zip(*columns, strict=True))

    def _numbers(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        """Those of one call, or as a call before left them."""
        if self.command.keep is None:
            return self._run(rows)
        folder = Path(self.command.folder, self.command.keep)
        key = json.dumps([self.name, self.command.fingerprint, self.lang_pair, rows])
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        path = folder / f"{digest}.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        numbers = self._run(rows)
        make_folder(folder)
        write_atomic(path, json.dumps(numbers))
        return numbers

    def _run(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        command = self.command
        with tempfile.TemporaryDirectory(prefix="mtmetrics-") as folder:
            files = {name: str(Path(folder, f"{name}.txt")) for name in command.columns}
            files["scores"] = str(Path(folder, f"scores.{command.output}"))
            for column, texts in zip(command.columns, zip(*rows, strict=True), strict=True):
                Path(files[column]).write_text(
                    "".join(_line(text) + "\n" for text in texts), encoding="utf-8"
                )
            row_lines = "".join(_as_input(command, row) for row in rows)
            files["rows"] = str(Path(folder, f"rows.{command.input}"))
            Path(files["rows"]).write_text(row_lines, encoding="utf-8")
            arguments = [
                _PLACES.sub(lambda place: files[place[1]], argument)
                for argument in command.arguments
            ]
            printed = self._call(arguments, "" if command.places - {"scores"} else row_lines)
            output = Path(files["scores"])
            if "scores" not in command.places:
                output.write_text(printed, encoding="utf-8")
            elif not output.is_file():
                raise MTMetricsError(
                    f"metric cmd:{self.name}: it ended well, but wrote no {{scores}}"
                )
            try:
                systems = read_scores(output, command.key, in_order=True)
            except InputError as error:
                what = str(error).replace(str(output), "its output")
                raise MTMetricsError(f"metric cmd:{self.name}: {what}") from error
        numbers = next(iter(systems.values())) if len(systems) == 1 else []
        if len(numbers) != len(rows):
            raise MTMetricsError(
                f"metric cmd:{self.name}: {len(rows)} numbers are needed, one for each row; its "
                f"output has {len(numbers)}"
            )
        return numbers

    def _call(self, arguments: list[str], rest: str) -> str:
        """Runs the command, and returns what it prints on standard output."""
        pair = {} if self.lang_pair is None else {"MTMETRICS_LANG_PAIR": self.lang_pair}
        try:
            started = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.command.folder,
                env=os.environ | pair | self.command.environment,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that what it starts itself can be ended with it
            )
        except OSError as error:
            what = f"{error.filename or arguments[0]}: {error.strerror or error}"  # the folder, or the program
            raise MTMetricsError(f"metric cmd:{self.name}: cannot be started ({what})") from error
        try:
            printed, complaints = started.communicate(rest, timeout=self.command.timeout)
        except subprocess.TimeoutExpired:
            what = f"not done after {self.command.timeout:g} seconds; raise timeout, or lower lines"
            raise MTMetricsError(f"metric cmd:{self.name}: {what}") from None
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        if started.returncode:
            last = next(
                (line for line in reversed(complaints.splitlines()) if line.strip()),
                "it said nothing",
            )
            raise MTMetricsError(
                f"metric cmd:{self.name}: ended with {started.returncode} ({last.strip()[:_SHOWN]})"
            )
        return printed


def _as_input(command: Command, row: tuple[str, ...]) -> str:
    if command.input == "tsv":
        return "\t".join(map(_line, row)) + "\n"
    names = command.columns.values() if isinstance(command.columns, dict) else command.columns
    return json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n"


def _line(text: str) -> str:
    return re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)
