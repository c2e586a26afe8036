"""Keeps the memory of long runs level."""

import ctypes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_large_blocks() -> None:
    """Has the C library keep blocks of up to 32 MiB when they are freed: trainings take and free the same sizes in
    every step, and asking the system for them anew costs a fourth of the time. Does nothing where there is no glibc."""
    _set(_M_MMAP_THRESHOLD, 2**25)
    _set(_M_TRIM_THRESHOLD, 2**31 - 1)


def return_large_blocks() -> None:
    """Has the C library give every block of 1 MiB or more back to the system when it is freed.

    glibc raises that bound by itself up to 32 MiB; arrays of that size then leave gaps in its heap, and the memory of a
    run over many chunks keeps growing although nothing is kept. Does nothing where there is no glibc.
    """
    _set(_M_MMAP_THRESHOLD, 2**20)


def _set(parameter: int, size: int) -> None:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(parameter, size)
