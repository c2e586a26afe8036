"""The process that a command runs in: its signals, its standard output, and its memory."""

import contextlib
import ctypes
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import IO

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MIB = 2**20
_STANDARD_OUTPUT = "standard output"


class EndedError(BaseException):
    """A signal asked the process to end.

    It is no `Exception`, so that no ``except Exception`` stops it, but every ``finally`` clears up.

    Attributes:
        number: number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Has signals that ask the process to end raise `EndedError`, so that no temporary file
    stays."""
    process = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() == process:
            raise EndedError(number)
        signal.signal(number, signal.SIG_DFL)  # a forked process has nothing to clear up
        os.kill(os.getpid(), number)

    # Only the main thread may set handlers; Windows has no SIGHUP.
    in_main_thread = threading.current_thread() is threading.main_thread()
    names = ("SIGTERM", "SIGHUP") if in_main_thread else ()
    handlers_before = {}
    for number in [getattr(signal, name) for name in names if hasattr(signal, name)]:
        handler = signal.getsignal(number)
        # A signal that is ignored, as `nohup` has SIGHUP ignored, stays so. Python could not put back
        # a handler that it shows as None.
        if handler not in (signal.SIG_IGN, None):
            handlers_before[number] = handler
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)


class _StandardOutput(io.FileIO):
    """Standard output whose errors name it."""

    def write(self, data: bytes) -> int | None:
        """Writes bytes."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _STANDARD_OUTPUT
            raise


@contextlib.contextmanager
def tolerant_output() -> Iterator[None]:
    """Has standard output replace characters that its encoding lacks (see
    `mtmetrics.cli.output.utf8_output`), and name itself in errors."""
    stream = sys.stdout
    before = stream.encoding, stream.errors
    if isinstance(stream, io.TextIOWrapper):
        if isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):
            sys.stdout = _with_name(stream)
        sys.stdout.reconfigure(errors="replace")
    try:
        yield
        sys.stdout.flush()
    except SystemExit:  # after help
        sys.stdout.flush()
        raise
    except OSError:
        for output in (sys.stdout, sys.stderr):
            drop_if_broken(output)
        raise
    finally:
        sys.stdout = stream
        if isinstance(stream, io.TextIOWrapper) and (stream.encoding, stream.errors) != before:
            stream.reconfigure(encoding=before[0], errors=before[1])


def _with_name(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Returns another stream to the same open file, whose errors name it."""
    stream.flush()
    raw = _StandardOutput(stream.fileno(), "wb", closefd=False)
    # With PYTHONUNBUFFERED a stream writes through.
    buffer = raw if stream.write_through else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer,
        encoding=stream.encoding,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def drop_if_broken(stream: IO[str]) -> None:
    """Drops what is left in the buffer of a stream that cannot be written: the interpreter would
    complain about it while it shuts down."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def keep_large_blocks() -> None:
    """Has the C library (where it is glibc) keep blocks of up to 32 MiB when they are freed:
    trainings take and free the same sizes in every step, and asking the system for them anew costs
    a fourth of the time."""
    _set_thresholds({_M_MMAP_THRESHOLD: 32 * _MIB, _M_TRIM_THRESHOLD: 2**31 - 1})


def return_large_blocks() -> None:
    """Has the C library (where it is glibc) give every block of 1 MiB or more back to the system
    when it is freed.

    Otherwise the C library raises this bound by itself, up to 32 MiB. Arrays of that size then leave
    gaps in its heap, and the memory of a run over many chunks keeps growing although nothing is
    kept."""
    _set_thresholds({_M_MMAP_THRESHOLD: _MIB})


def _set_thresholds(sizes: dict[int, int]) -> None:
    with contextlib.suppress(OSError, TypeError, AttributeError):
        for parameter, size in sizes.items():
            ctypes.CDLL(None).mallopt(parameter, size)
