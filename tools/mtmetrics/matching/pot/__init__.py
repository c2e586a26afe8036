"""POT's compiled network simplex without the rest of POT.

Whoever imports `ot` imports scikit-learn and pandas, too: a second and 100 MB, in every process
that solves transports, for one function. So the compiled module is loaded from its file, as part of
this package, where it finds the module `utils` that it asks for."""

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

_OF_POT = "ot.lp.emd_wrap"  # its own name, by which it is known from then on, also to `ot`


def _compiled() -> Any:
    pot = importlib.util.find_spec("ot")
    folders = [
        str(Path(folder) / "lp") for folder in (pot and pot.submodule_search_locations) or ()
    ]
    solver = PathFinder.find_spec("emd_wrap", folders)
    if _OF_POT in sys.modules or solver is None or solver.origin is None:
        return importlib.import_module(_OF_POT)
    spec = importlib.util.spec_from_file_location(f"{__name__}.lp.emd_wrap", solver.origin)
    if spec is None or spec.loader is None:
        return importlib.import_module(_OF_POT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


emd_c: Callable[..., Any] = _compiled().emd_c
