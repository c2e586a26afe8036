"""Runs every table and figure of the papers once with the bundled preset, and says of each what it
did.

    python tests/benchmarks/rehearse_recipes.py SETS OUT [NAME=FILE,FILE...]

SETS is a folder with public sets, as ``mtmetrics data pull NAME --out SETS`` makes it; whole or
only with some rows of each file. NAME=FILE,... is the text that a figure learns from (``--text``).
A recipe without its set or text is left out."""

import contextlib
import io
import sys
import time
from pathlib import Path

from mtmetrics.cli.main import main
from mtmetrics.reports.recipes import read_recipe, recipe_names


def rehearse(sets: Path, out: Path, texts: dict[str, list[str]]) -> None:
    """Prints a line per recipe: seconds, exit code, and the last message of one that failed."""
    for name in recipe_names():
        recipe = read_recipe(name)
        read = [recipe, *(read_recipe(mean.recipe) for mean in recipe.means.values())]
        pulled = [one for table in read for one in table.pull]
        if (
            recipe.missing
            or not any((sets / one).is_dir() for one in pulled)
            or (recipe.text and name not in texts)
        ):
            print(
                f"{name}: left out, {recipe.missing or 'its data or text is not here'}", flush=True
            )
            continue
        words = [
            "evaluate",
            "--recipe",
            name,
            "--preset",
            "mini",
            "--data",
            str(sets),
            "--report",
            str(out),
            "--quiet",
        ]
        words += ["--text", *texts[name]] if recipe.text else []
        said, began = io.StringIO(), time.monotonic()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = main(words)
        last = (said.getvalue().strip().splitlines() or [""])[-1] if code else ""
        print(f"{name}: {time.monotonic() - began:.0f} s, exit {code} {last}", flush=True)


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[3:])
    rehearse(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        {name: files.split(",") for name, files in given.items()},
    )
