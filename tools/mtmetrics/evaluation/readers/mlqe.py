"""MLQE-PE as sheffieldnlp/mlqe-pe publishes it: ``SPLIT.XXYY.df.short.tsv``, alone or inside ``XX-YY-SPLIT.tar.gz``.

Source: Fomicheva et al., MLQE-PE: A Multilingual Quality Estimation and Post-Editing Dataset, 2020.
"""

import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from mtmetrics.errors import InputError
from mtmetrics.evaluation.readers import table
from mtmetrics.evaluation.readers.rows import Row
from mtmetrics.textio import decoded_lines, iter_lines

SUFFIX = ".df.short.tsv"
_NAME = re.compile(rf".*\.(?P<source>[a-z]{{2}})(?P<target>[a-z]{{2}}){re.escape(SUFFIX)}")


def rows(path: str | Path) -> Iterator[tuple[str, Row]]:
    """Yields place and content of every row of a ``*.df.short.tsv`` file; the language pair is that of its name.

    The judgement is ``z_mean``, the mean of the annotators' z-scores; ``mean`` is the raw judgement, 0-100. There are
    no references.

    Raises:
        InputError: the name holds no language pair; or as `table.rows`.
    """
    return _with_pair(path, Path(path).name, iter_lines(path))


def archive_rows(path: str | Path) -> Iterator[tuple[str, Row]]:
    """Yields the rows of the one ``*.df.short.tsv`` file in a tar archive; nothing is unpacked to disk.

    Raises:
        InputError: not a tar archive, or one with none or several such files; or as `rows`.
    """
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive if member.isfile() and member.name.endswith(SUFFIX)]
            if len(members) != 1:
                raise InputError(
                    f"{path}: holds {len(members)} files *{SUFFIX}, one is needed; unpack it and pass the files"
                )
            stream = archive.extractfile(members[0])
            yield from _with_pair(
                f"{path}:{members[0].name}", members[0].name, decoded_lines(stream, f"{path}:{members[0].name}")
            )
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{path}: cannot be read as a tar archive ({error})") from None


def _with_pair(path: str | Path, name: str, lines: Iterable[str]) -> Iterator[tuple[str, Row]]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{path}: a name such as dev.ende{SUFFIX} is needed, which says the language pair")
    pair = f"{match['source']}-{match['target']}"
    return ((where, {**row, "lp": pair}) for where, row in table.parsed(path, lines))
