"""Keeps the memory of long runs level."""

import ctypes

_M_MMAP_THRESHOLD = -3
_BYTES = 2**20


def return_large_blocks() -> None:
    """Has the C library give every block of 1 MiB or more back to the system when it is freed.

    glibc raises that bound by itself up to 32 MiB; arrays of that size then leave gaps in its heap, and the memory of a
    run over many chunks keeps growing although nothing is kept. Does nothing where there is no glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _BYTES)
