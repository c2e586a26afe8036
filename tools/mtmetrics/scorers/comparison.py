"""What each metric compares translations with: sources, references, or either, and the option that says which."""

import dataclasses
from collections.abc import Collection
from typing import Any, Literal

from mtmetrics.errors import InputError

Column = Literal["sources", "references"]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The choice that a metric leaves.

    Attributes:
        values: column -> value of the option that asks for it, None where there is no option.
        option: name of the option, or None.
        usual: the column where both are given and the option is not; None if that is an error.
    """

    values: dict[Column, str | None]
    option: str | None = None
    usual: Column | None = None

    def choose(self, metric: str, given: Collection[str], asked: Any = None) -> tuple[Column, dict[str, Any]]:
        """The column to compare with.

        Args:
            metric: name of the metric, for messages.
            given: the columns that the user passed.
            asked: value of the option, or None.

        Returns:
            The column, and the option that says so to the metric's loader.

        Raises:
            InputError: the column is missing, or both are there and nothing says which one counts.
        """
        if asked is not None:
            wanted = [column for column, value in self.values.items() if value == asked]
            if not wanted:
                raise InputError(f"{self.option} {asked!r}: must be one of {', '.join(map(str, self.values.values()))}")
            if wanted[0] not in given:
                raise InputError(f"{self.option}={asked!r} compares with {wanted[0]}; pass {wanted[0]}")
            return wanted[0], {self.option or "": asked}
        found = [column for column in self.values if column in given]
        if not found:
            raise InputError(
                f"{metric} compares predictions with {' or '.join(self.values)}; pass {' or '.join(self.values)}"
            )
        if len(found) == 2 and self.usual is None:
            raise InputError(
                f"both sources and references are given: pass {' or '.join(f'{self.option}={value!r}' for value in self.values.values())}"
            )
        column = found[0] if len(found) == 1 or self.usual is None else self.usual
        return column, {} if self.option is None else {self.option: self.values[column]}


COMPARISONS: dict[str, Comparison] = {
    "xmoverscore": Comparison({"sources": None}),
    "sentsim": Comparison({"sources": "src-mt", "references": "mt-ref"}, "setting"),
    "distilscore": Comparison({"sources": "source", "references": "reference"}, "against", "sources"),
    "uscore": Comparison({"sources": None}),
    "bertr": Comparison({"sources": "source", "references": "reference"}, "against", "references"),
    "bilstm": Comparison({"sources": "source", "references": "reference"}, "against", "references"),
    "bilstm_attention": Comparison({"sources": "source", "references": "reference"}, "against", "references"),
    "esim": Comparison({"sources": "source", "references": "reference"}, "against", "references"),
    "source_length": Comparison({"sources": None}),
    "prediction_length": Comparison({"sources": None}),
    "fluency": Comparison({"sources": None}),
    "random": Comparison({"sources": None}),
    "sentbleu": Comparison({"references": None}),
    "chrf": Comparison({"references": None}),
    "chrfpp": Comparison({"references": None}),
    "ter": Comparison({"references": None}),
}
