"""A folder of Parquet with a file for each finished block of rows.

A file is written whole or not at all. ``part-00002-000000016384.parquet`` is the block of the third input
file that begins at its row 16,384; its metadata hold the summary of the block. ``_run.json`` says
what the folder is for. Bad rows lie in ``errors``. Names that begin with a dot belong to blocks that
are being worked on. (Those who read a folder of Parquet leave out names that begin with _ or a dot.)
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mtmetrics.cluster.row_files import readable, resolve
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import JsonObject, first_difference, json_line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

# Summary of a block: ``file``, ``first``, ``rows``, ``bad`` and ``last``, see
# `mtmetrics.cluster.engine.map_blocks`, and the entries of its worker.
Summary = JsonObject
_PLAN = "_run.json"
_SUMMARY_KEY = b"mtmetrics"


class BlockFolder:
    """A folder that blocks are written to.

    Args:
        out: path or URI, shared by all processes that use it.
    """

    def __init__(self, out: str) -> None:
        self._out = out
        self._system, self._inner = resolve(out)

    def claim(self, plan: JsonObject) -> None:
        """Makes the folder for a plan, or checks that its finished blocks were made by the same
        plan.

        Args:
            plan: what the blocks depend on, JSON.

        Raises:
            InputError: the folder holds something else, or blocks of another plan.
            MTMetricsError: the folder cannot be used.
        """
        try:
            self._system.create_dir(self._inner, recursive=True)
            names = self._names()
            if names and _PLAN not in names:
                raise InputError(
                    f"--out {self._out}: not empty, and not of a run that could go on; choose "
                    "another folder"
                )
            if not self.parts():
                self._write_file(_PLAN, json.dumps(plan, indent=1).encode())
                return
            with self._system.open_input_stream(f"{self._inner}/{_PLAN}") as stream:
                old_plan = json.loads(stream.read())
        except OSError as error:
            reason = str(error).splitlines()[0]
            raise MTMetricsError(f"--out {self._out}: cannot be used ({reason})") from error
        difference = first_difference(old_plan, json.loads(json.dumps(plan)))
        if difference:
            raise InputError(
                f"--out {self._out}: made with {difference}; repeat the first call to finish it, "
                "or choose another folder"
            )

    def refuse_claimed(self) -> None:
        """Raises an InputError if the blocks of another run lie in the folder."""
        if self._system.get_file_info(f"{self._inner}/{_PLAN}").is_file:
            raise InputError(
                f"--out {self._out}: holds the blocks of another run; choose another folder"
            )

    def sweep(self) -> None:
        """Deletes the files of blocks whose processes were killed."""
        from pyarrow import fs

        for info in self._system.get_file_info(fs.FileSelector(self._inner, recursive=True)):
            if info.is_file and info.base_name.startswith("."):
                self._system.delete_file(info.path)

    def parts(self) -> list[str]:
        """Returns the names of the finished blocks, in the order of the input."""
        return sorted(name for name in self._names() if name.startswith("part-"))

    def summaries(self) -> list[JsonObject]:
        """Returns the summaries of the finished blocks, in the order of the input."""
        from pyarrow import parquet

        summaries = []
        for name in self.parts():
            with (
                readable(f"{self._out}/{name}"),
                self._system.open_input_file(f"{self._inner}/{name}") as stream,
            ):
                metadata = parquet.read_schema(stream).metadata
                summaries.append(json.loads(metadata[_SUMMARY_KEY]))
        return summaries

    def tables(self, columns: list[str] | None = None) -> "Iterator[tuple[str, pyarrow.Table]]":
        """Yields name and rows of each finished block, in the order of the input, with all or some
        of the columns."""
        from pyarrow import parquet

        for name in self.parts():
            path = f"{self._inner}/{name}"
            yield name, parquet.read_table(path, columns=columns, filesystem=self._system)

    def column(self, name: str) -> "np.ndarray":
        """Returns the (n,) values of a column, in the order of the input."""
        import numpy as np

        return np.concatenate([table[name].to_numpy() for _, table in self.tables([name])])

    def begin(self, summary: Summary) -> int:
        """Notes that a process begins a block.

        Returns:
            The number of processes that began it before and did not finish, since the last `sweep`.
        """
        file = self._begun_file(summary)
        attempts: int = self._system.get_file_info(file).size or 0
        with self._system.open_output_stream(file) as stream:
            stream.write(b"." * (attempts + 1))
        return attempts

    def finish(self, summary: Summary, table: "pyarrow.Table", bad: Sequence[JsonObject]) -> None:
        """Writes the rows of a block, and its bad rows.

        Args:
            summary: of the block.
            table: the rows.
            bad: an object of JSON for each bad row.
        """
        name = _part_name(summary)
        if bad:
            self._system.create_dir(f"{self._inner}/errors", recursive=True)
            file = "_" + name.replace(".parquet", ".jsonl")
            lines = "".join(map(json_line, bad)).encode("utf-8", "backslashreplace")
            self._write_file(f"errors/{file}", lines)
        self.write(name, table, {_SUMMARY_KEY: json.dumps(summary).encode()})
        self._system.delete_file(self._begun_file(summary))

    def write(
        self, name: str, table: "pyarrow.Table", metadata: Mapping[bytes, bytes] | None = None
    ) -> None:
        """Writes a file of rows, whole or not at all, with this metadata alone."""
        import pyarrow
        from pyarrow import parquet

        stream = pyarrow.BufferOutputStream()
        parquet.write_table(table.replace_schema_metadata(metadata), stream)
        self._write_file(name, stream.getvalue())

    def _write_file(self, name: str, data: "bytes | pyarrow.Buffer") -> None:
        """Writes a file, whole or not at all."""
        folder, _, base_name = f"{self._inner}/{name}".rpartition("/")
        temporary = f"{folder}/.{base_name}.{os.getpid()}-{os.urandom(4).hex()}"
        with self._system.open_output_stream(temporary) as stream:
            stream.write(data)
        self._system.move(temporary, f"{folder}/{base_name}")

    def _names(self) -> list[str]:
        from pyarrow import fs

        infos = self._system.get_file_info(fs.FileSelector(self._inner))
        return [info.base_name for info in infos]

    def _begun_file(self, summary: Summary) -> str:
        return f"{self._inner}/.begun-{_part_name(summary)}"


def _part_name(summary: Summary) -> str:
    """Returns the name of a block's file."""
    return f"part-{summary['file']:05}-{summary['first']:012}.parquet"
