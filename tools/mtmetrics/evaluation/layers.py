"""Layer study: how a metric agrees with people at each layer of its encoder (Fig. 3 and 4 of Song et al., 2021)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.evaluation.agreement import Agreement, mean_agreement
from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.report import shown
from mtmetrics.evaluation.table_styles import STYLES, rounded


def chosen_layers(text: str, depth: int | None) -> list[int]:
    """The layers that a user names: ``all``, or numbers joined by commas.

    Args:
        text: what the user passed.
        depth: number of layers of the encoder, None where there is no choice.

    Raises:
        InputError: not of that form, or no such layers.

    Example:
        >>> chosen_layers("all", 2)
        [0, 1, 2]
        >>> chosen_layers("2,1", 2)
        [1, 2]
    """
    if depth is None:
        raise InputError("--layers: the encoder of this metric leaves no choice of layer")
    if text == "all":
        return list(range(depth + 1))
    try:
        layers = sorted({int(number) for number in text.split(",")})
    except ValueError:
        layers = []
    if not layers or layers[0] < 0 or layers[-1] > depth:
        raise InputError(f"--layers {text!r}: 'all' or numbers from 0 to {depth} joined by commas are needed")
    return layers


def render_layers(
    studies: Mapping[int, Sequence[Agreement]],
    about: Mapping[str, str],
    style: str,
    *,
    parts: bool,
    coefficient: str = "pearson",
) -> str:
    """The agreement at each layer, without a final line end.

    Args:
        studies: layer -> its agreement on each file.
        about: what was judged and how, for JSON alone.
        style: ``json``, or one of the styles of tables, which have a row per measure and layer, a column per file, and
            their mean.
        parts: show the parts of the score too.
        coefficient: what the numbers are, for JSON alone.
    """
    lines = curves(studies, parts=parts)
    files = [f"{agreement.file} ({agreement.lang_pair})" for agreement in next(iter(studies.values()))]
    if style == "json":
        names = [*files, "mean"]
        rows: list[dict[str, Any]] = [
            {
                "measure": name,
                "layer": layer,
                coefficient: dict(zip(names, [value.known for value in values], strict=True)),
            }
            for name, layers in lines.items()
            for layer, values in layers.items()
        ]
        return json.dumps({**about, "layers": rows}, indent=2, ensure_ascii=False, allow_nan=False)
    table = [["measure", "layer", *files, "mean"]]
    table += [
        [name, str(layer), *map(rounded, values)] for name, layers in lines.items() for layer, values in layers.items()
    ]
    return STYLES[style](table, range(1, len(table[0])))


def curves(studies: Mapping[int, Sequence[Agreement]], *, parts: bool) -> dict[str, dict[int, list[Correlation]]]:
    """Measure -> layer -> the correlation on each file, and last their mean."""
    names = shown(mean_agreement(next(iter(studies.values()))), parts)
    return {
        name: {
            layer: [*(agreement.correlations[name] for agreement in agreements), mean_agreement(agreements)[name]]
            for layer, agreements in studies.items()
        }
        for name in names
    }
