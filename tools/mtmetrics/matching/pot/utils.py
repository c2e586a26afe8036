"""Functions that POT's compiled solver imports from the `utils` of the package that it lies in."""

from typing import Any


def dist(*args: Any, **options: Any) -> Any:
    """``ot.utils.dist``: distances of samples, for functions of POT that are not called here."""
    from ot.utils import dist as of_pot

    return of_pot(*args, **options)
