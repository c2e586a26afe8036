"""Runs another program as a metric, for instance a metric that needs an environment of its own, or a
language model that judges translations."""

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
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.foreign import ForeignMetric
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.settings import loading_option
from mtmetrics.scorers.side import FIELD_OF_COLUMN, Options, Side
from mtmetrics.scorers.stored import read_scores

_DEFAULT_FILE = "commands.toml"
_INPUT_FORMATS = ("jsonl", "tsv")
_OUTPUT_FORMATS = ("txt", "tsv", "csv", "json", "jsonl")
_PLACEHOLDER = re.compile(r"\{(source|translation|reference|rows|scores)\}")
_MAX_ERROR_CHARACTERS = 200
_MAX_TIMEOUT = 2_147_483  # seconds; the system counts milliseconds in 31 bits


@dataclasses.dataclass(frozen=True)
class Command:
    """How to run one external metric: a table of the file of commands.

    A row is one segment: the texts of some columns.

    Attributes:
        command: the program and its arguments, with placeholders: ``{source}``, ``{translation}``
            and ``{reference}`` for a file with one text per line, ``{rows}`` for a file with all
            rows, ``{scores}`` for the file that the program writes. If the command names no file to
            read, the program gets the rows on standard input. Without ``{scores}``, its standard
            output is read.
        columns: the columns of a row in their order: ``translation``, and one or both of ``source``
            and ``reference``; or a table that maps these names to the program's own names.
        input: format of the rows: ``jsonl``, or ``tsv`` without a header.
        output: format of the output: ``txt`` (a number per line), ``tsv``, ``csv``, ``json`` or
            ``jsonl``, each as `mtmetrics.scorers.stored.StoredScores` reads it.
        key: the column or key of the score in the output.
        lower_is_better: whether the scores have to be negated (multiplied by -1).
        floor: number of a segment with a blank text, on the scale of the program (before it is
            negated). The program does not get such segments.
        environment: environment variables to add.
        folder: the working directory; in the file relative to the folder of this file, absolute
            after `read`.
        timeout: seconds that a call may take, at most 2,147,483 (24 days).
        lines: maximum number of rows per call.
        keep: a folder that keeps the scores of finished calls, so that a broken run goes on from
            there; relative to `folder`. None to keep none.
        version: version of the program; a new one changes the fingerprint.
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
        """Reads the command with a name from a file of commands.

        Raises:
            InputError: there is no such file or table, or the table is invalid.
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
        choice("input", self.input, _INPUT_FORMATS)
        choice("output", self.output, _OUTPUT_FORMATS)
        positive("lines", self.lines)
        if self.timeout <= 0:
            raise InputError(f"timeout {self.timeout:g}: must be more than 0 seconds")
        if self.timeout > _MAX_TIMEOUT:
            raise InputError(f"timeout {self.timeout:g}: must be at most {_MAX_TIMEOUT} seconds")
        if not self.arguments:
            raise InputError("no command")
        names = {*self.columns}
        known_names = {"translation", *FIELD_OF_COLUMN.values()}
        has_each_once = len(names) == len(self.columns)
        if not (
            has_each_once and "translation" in names and len(names) > 1 and names <= known_names
        ):
            raise InputError(
                f"columns {[*self.columns]}: translation and one or both of source and reference "
                "are needed"
            )
        if isinstance(self.columns, dict) and len({*self.columns.values()}) < len(names):
            raise InputError(f"columns {self.columns}: two have the same name in the rows")
        missing_columns = self.placeholders - {*self.columns, "rows", "scores"}
        if missing_columns:
            raise InputError(f"command: names {{{missing_columns.pop()}}}, which columns does not")

    @property
    def arguments(self) -> list[str]:
        """The program and its arguments, with placeholders.

        Raises:
            InputError: a quote in `command` is not closed.
        """
        if not isinstance(self.command, str):
            return list(self.command)
        try:
            return shlex.split(self.command)
        except ValueError as error:
            raise InputError(f"command {self.command!r}: {error}") from None

    @property
    def placeholders(self) -> set[str]:
        """The names of the placeholders in the arguments."""
        return {name for argument in self.arguments for name in _PLACEHOLDER.findall(argument)}

    @property
    def reads_files(self) -> bool:
        """Whether the program reads its rows from files, not from standard input."""
        return bool(self.placeholders - {"scores"})

    @property
    def side(self) -> Side:
        """The side that the program compares translations with."""
        if len(self.columns) > 2:
            return Side.BOTH
        return Side.SOURCE if "source" in self.columns else Side.REFERENCE

    @property
    def fingerprint(self) -> str:
        """8 hexadecimal digits of the fields that may change the numbers of the program."""
        relevant = [
            self.arguments,
            self.columns,
            self.input,
            self.output,
            self.key,
            self.environment,
            self.version,
        ]
        return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()[:8]


def _check_type(key: str, value: object, default: object) -> None:
    items = list(value.values()) if isinstance(value, dict) else value
    if key == "command":
        fits = isinstance(value, str) or _is_list_of_texts(value)
    elif key == "columns":
        fits = _is_list_of_texts(items)
    elif key == "environment":
        fits = isinstance(value, dict) and _is_list_of_texts(items)
    elif isinstance(default, float):
        number(key, value)
        fits = True
    else:
        fits = isinstance(value, str if default is None else type(default))
    if not fits:
        raise InputError(f"{key} {value!r}: not of the kind that is needed")


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class CommandMetric(ForeignMetric):
    """A metric that another program computes. The program gets rows of texts, and returns a number
    for each row.

    The program gets equal rows once. Line breaks and tabs within a text become spaces, except in
    JSON Lines.

    Args:
        command: how to run the program.
        name: name of the command, for messages and the signature.
        **options: `lang_pair`, which the program gets as ``MTMETRICS_LANG_PAIR``; and `against`,
            which can only repeat the side of `command`.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of a command."""

        commands: str | None = loading_option(
            f"the file that says how commands are run (default: {_DEFAULT_FILE})",
            usage="FILE",
        )

    settings: Settings

    metric = "cmd"
    sides = tuple(Side)
    usual = Side.BOTH
    usual_preset: ClassVar = "NAME"  # for help texts: the user writes cmd:NAME

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
        """True: the name of the command takes the place of the name of a preset."""
        return True

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Returns a preset that holds only the side of a command. The name of the command takes the
        place of the name of a preset: ``cmd:NAME``.

        Raises:
            InputError: as `Command.read`.
        """
        side = Command.read(options.get("commands") or _DEFAULT_FILE, preset).side
        return Preset(str(preset), cls.metric, Path(), {"score": {"against": side}})

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Reads the command; the preset has its name."""
        command = Command.read(settings.commands or _DEFAULT_FILE, preset.name)
        return cls(command, preset.name, settings=settings)

    @property
    def signature(self) -> str:
        metric, _, rest = super().signature.partition("|")
        return "|".join(
            [metric, f"name:{self.name}#{self.command.fingerprint}", *self._signs, rest]
        )

    def compute(self, batch: Batch) -> list[PartScores]:
        rows_of_systems = [self._rows(batch, predictions) for predictions in batch.predictions]
        distinct_rows = dict.fromkeys(row for rows in rows_of_systems for row in rows)
        filled_rows = [row for row in distinct_rows if not any(map(is_blank, row))]
        score_of_row: dict[tuple[str, ...], float] = {}
        for first in range(0, len(filled_rows), self.command.lines):
            chunk = filled_rows[first : first + self.command.lines]
            score_of_row |= zip(chunk, self._scores_of_chunk(chunk), strict=True)
        results = []
        for rows in rows_of_systems:
            scores = [score_of_row.get(row, self.floor) for row in rows]
            results.append(self._turned(np.array(scores, dtype=np.float64)))
        return results

    def _rows(self, batch: Batch, predictions: Sequence[str]) -> list[tuple[str, ...]]:
        """The texts of each segment in the order of the command's columns."""
        texts = {
            "source": batch.sources,
            "reference": batch.references,
            "translation": predictions,
        }
        columns = [texts[name] or () for name in self.command.columns]
        return list(zip(*columns, strict=True))

    def _scores_of_chunk(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        """Returns the numbers of rows, from one call of the program or as an earlier call kept
        them."""
        if self.command.keep is None:
            return self._run(rows)
        folder = Path(self.command.folder, self.command.keep)
        key = json.dumps([self.name, self.command.fingerprint, self.lang_pair, rows])
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        path = folder / f"{digest}.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        scores = self._run(rows)
        make_folder(folder)
        write_atomic(path, json.dumps(scores))
        return scores

    def _run(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        """Scores rows in one call of the program.

        Raises:
            MTMetricsError: the program fails, or its output is not one number per row.
        """
        command = self.command
        row_lines = "".join(_input_line(command, row) for row in rows)
        with tempfile.TemporaryDirectory(prefix="mtmetrics-") as folder:
            files = _write_input(command, rows, row_lines, Path(folder))
            output_file = Path(folder, f"scores.{command.output}")
            files["scores"] = output_file
            arguments = [
                _PLACEHOLDER.sub(lambda match: str(files[match[1]]), argument)
                for argument in command.arguments
            ]
            printed = self._call(arguments, "" if command.reads_files else row_lines)
            if "scores" not in command.placeholders:
                output_file.write_text(printed, encoding="utf-8")
            elif not output_file.is_file():
                raise MTMetricsError(
                    f"metric cmd:{self.name}: it ended well, but wrote no {{scores}}"
                )
            scores = self._read_output(output_file)
        if len(scores) != len(rows):
            raise MTMetricsError(
                f"metric cmd:{self.name}: {len(rows)} numbers are needed, one for each row; its "
                f"output has {len(scores)}"
            )
        return scores

    def _read_output(self, file: Path) -> list[float]:
        try:
            systems = read_scores(file, self.command.key, in_order=True)
        except InputError as error:
            # The file is a temporary one, whose path would tell the user nothing.
            reason = str(error).replace(str(file), "its output")
            raise MTMetricsError(f"metric cmd:{self.name}: {reason}") from error
        if len(systems) > 1:
            raise MTMetricsError(
                f"metric cmd:{self.name}: its output has the scores of {len(systems)} systems; the "
                "scores of one are needed"
            )
        [scores] = systems.values()
        return scores

    def _call(self, arguments: list[str], standard_input: str) -> str:
        """Runs the program. Returns its standard output."""
        pair = {} if self.lang_pair is None else {"MTMETRICS_LANG_PAIR": self.lang_pair}
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.command.folder,
                env=os.environ | pair | self.command.environment,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that the processes that it starts can be ended, too
            )
        except OSError as error:
            missing = error.filename or arguments[0]  # the folder or the program
            reason = f"{missing}: {error.strerror or error}"
            raise MTMetricsError(f"metric cmd:{self.name}: cannot be started ({reason})") from error
        timeout = self.command.timeout
        try:
            standard_output, standard_error = process.communicate(standard_input, timeout=timeout)
        except subprocess.TimeoutExpired:
            reason = f"not done after {timeout:g} seconds; raise timeout, or lower lines"
            raise MTMetricsError(f"metric cmd:{self.name}: {reason}") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode:
            error_lines = [line.strip() for line in standard_error.splitlines() if line.strip()]
            reason = error_lines[-1] if error_lines else "it said nothing"
            raise MTMetricsError(
                f"metric cmd:{self.name}: ended with {process.returncode} "
                f"({reason[:_MAX_ERROR_CHARACTERS]})"
            )
        return standard_output


def _write_input(
    command: Command, rows: Sequence[tuple[str, ...]], row_lines: str, folder: Path
) -> dict[str, Path]:
    """Writes the files that a command may name. Returns placeholder -> file."""
    files = {"rows": folder / f"rows.{command.input}"}
    files["rows"].write_text(row_lines, encoding="utf-8")
    for column, texts in zip(command.columns, zip(*rows, strict=True), strict=True):
        files[column] = folder / f"{column}.txt"
        lines = [_as_one_line(text) + "\n" for text in texts]
        files[column].write_text("".join(lines), encoding="utf-8")
    return files


def _input_line(command: Command, row: tuple[str, ...]) -> str:
    """Returns a row in the input format of the command."""
    if command.input == "tsv":
        return "\t".join(map(_as_one_line, row)) + "\n"
    names = command.columns.values() if isinstance(command.columns, dict) else command.columns
    return json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n"


def _as_one_line(text: str) -> str:
    return re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)
