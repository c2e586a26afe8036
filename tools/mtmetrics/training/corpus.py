"""Reads training text with its origins: which rows are used, which are held back, and how many came from where."""

import random
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.textio import iter_jsonl, iter_lines

UNNAMED = "unnamed"
_NO_LETTERS = re.compile(r"[\W_]+")
_RANGES = re.compile(r"(?P<path>.+?):(?P<ranges>\d+-\d+(?:=[^,=:]+)?(?:,\d+-\d+(?:=[^,=:]+)?)*)")


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation; `group` is the name of the file's language pair."""

    source: str
    target: str
    origin: str
    group: str


@dataclass
class Counts:
    """Rows used per file and origin, and rows left out per reason."""

    used: dict[str, Counter] = field(default_factory=dict)
    left_out: Counter = field(default_factory=Counter)

    def add(self, file: str, origin: str, rows: int = 1) -> None:
        """Counts `rows` used rows of `origin` in `file`."""
        self.used.setdefault(file, Counter())[origin] += rows

    def as_dict(self) -> dict[str, dict]:
        """The counts as plain dictionaries, largest origin first."""
        used = {file: dict(counter.most_common()) for file, counter in sorted(self.used.items())}
        return {"used": used, "left_out": dict(sorted(self.left_out.items()))}


def origin_matches(origin: str, patterns: Iterable[str]) -> bool:
    """Tells whether `origin` equals one of the patterns, or starts with one that ends in ``*``."""
    return any(origin.startswith(name[:-1]) if name.endswith("*") else origin == name for name in patterns)


def parse_numbers(specs: Iterable[str], option: str) -> dict[str, int]:
    """Parses ``ORIGIN=NUMBER`` specifications, e.g. the caps and weights of the command line.

    Raises:
        InputError: a specification has another form or its number is negative.
    """
    result = {}
    for spec in specs:
        name, _, number = spec.rpartition("=")
        if not name or not number.isdigit():
            raise InputError(f"{option} needs ORIGIN=NUMBER, got {spec!r}")
        result[name] = int(number)
    return result


def number_for(origin: str, numbers: dict[str, int]) -> int | None:
    """The number given for `origin`; an exact name goes before a pattern, a longer pattern before a shorter one."""
    if origin in numbers:
        return numbers[origin]
    matching = [name for name in numbers if origin_matches(origin, [name])]
    return numbers[max(matching, key=len)] if matching else None


def text_key(text: str) -> str:
    """What counts as the same sentence: compatibility form, lower case, letters and digits only."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).lower()) or text


def read_pairs(
    paths: Sequence[str | Path],
    exclude: Sequence[str] = (),
    caps: dict[str, int] | None = None,
    seed: int = 0,
) -> tuple[list[Pair], Counts]:
    """Reads parallel text: JSON Lines with `source`, `target` and optional `origin`, or ``.tsv`` in this order.

    Args:
        paths: the files; the name of each up to its first dot names the language pair. Files of one name are one pair.
        exclude: origins to leave out, see `origin_matches`.
        caps: at most that many rows per file and origin, drawn at random.
        seed: of the random choice.

    Returns:
        The pairs without exact repetitions within a language pair, and their counts per file and origin.

    Raises:
        InputError: no file, a missing or empty file, or a row without one of its sides.
    """
    if not paths:
        raise InputError("no parallel files were given; pass at least one with --parallel")
    pairs: list[Pair] = []
    counts = Counts()
    seen: set[tuple[str, str, str]] = set()
    for path in paths:
        is_table = ".tsv" in Path(path).name
        group = Path(path).name.split(".")[0] + (".words" if is_table else "")
        by_origin: dict[str, list[Pair]] = {}
        for source, target, origin in _iter_table(path) if is_table else _iter_objects(path):
            if origin_matches(origin, exclude):
                counts.left_out["origin excluded"] += 1
                continue
            key = (group, source, target)
            if key in seen:
                counts.left_out["repeated"] += 1
                continue
            seen.add(key)
            by_origin.setdefault(origin, []).append(Pair(source, target, origin, group))
        for origin, rows in by_origin.items():
            cap = number_for(origin, caps or {})
            if cap is not None and len(rows) > cap:
                counts.left_out["over the cap"] += len(rows) - cap
                rows = random.Random(f"{seed} {Path(path).name} {origin}").sample(rows, cap)
            counts.add(short_name(path), origin, len(rows))
            pairs.extend(rows)
    if not pairs:
        raise InputError("the parallel files hold no row that may be used; check --exclude-origin and --cap")
    return pairs, counts


def read_lines(specs: Sequence[str], exclude: Sequence[str] = ()) -> tuple[list[tuple[str, str]], Counts]:
    """Reads monolingual text, one sentence per line.

    Args:
        specs: ``FILE`` or ``FILE:START-END[=ORIGIN],...`` with 1-based line ranges, ends included.
        exclude: origins to leave out, see `origin_matches`.

    Returns:
        ``(text, origin)`` of every line that is not blank, in file order, and the counts.

    Raises:
        InputError: a missing or empty file, or a range that reaches beyond the file's end.
    """
    lines: list[tuple[str, str]] = []
    counts = Counts()
    for spec in specs:
        path, ranges = parse_ranges(spec)
        number = 0
        position = 0
        for number, line in enumerate(iter_lines(path), 1):
            while position < len(ranges) and number > ranges[position][1]:
                position += 1
            if ranges and (position == len(ranges) or number < ranges[position][0]):
                counts.left_out["outside the ranges"] += 1
                continue
            origin = ranges[position][2] if ranges else UNNAMED
            if origin_matches(origin, exclude):
                counts.left_out["origin excluded"] += 1
            elif line.strip():
                lines.append((line.strip(), origin))
                counts.add(short_name(path), origin)
        if number == 0:
            raise InputError(f"{path} is empty")
        if ranges and ranges[-1][1] > number:
            raise InputError(f"{path} has {number} lines, but the range {ranges[-1][0]}-{ranges[-1][1]} was asked for")
    return lines, counts


def parse_ranges(spec: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Splits ``FILE:START-END[=ORIGIN],...`` into the file and its sorted ranges.

    Raises:
        InputError: a range starts at 0 or after its end, or two ranges overlap.
    """
    match = _RANGES.fullmatch(spec)
    if not match:
        return spec, []
    ranges = []
    for part in match["ranges"].split(","):
        numbers, _, origin = part.partition("=")
        start, end = (int(number) for number in numbers.split("-"))
        ranges.append((start, end, origin or UNNAMED))
    ranges.sort()
    previous = 0
    for start, end, _ in ranges:
        if start <= previous or end < start:
            raise InputError(f"{spec}: line ranges start at 1, end after their start and do not overlap")
        previous = end
    return match["path"], ranges


def held_back(key: str, per_mille: int) -> bool:
    """Tells whether the sentence is held back: a fixed share of all sentences, the same in every run."""
    return zlib.crc32(key.encode("utf-8")) % 1000 < per_mille


def split_pairs(pairs: Sequence[Pair], per_mille: int, per_group: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Splits pairs into those for training and those held back, which share no side (see `text_key`) with the former.

    A pair is held back if its target side is one of the `per_mille` held-back sentences, so that a sentence that occurs
    in several language pairs is held back in all of them. Of each language pair at most `per_group` are returned.
    """
    keys = [(text_key(pair.source), text_key(pair.target)) for pair in pairs]
    chosen = [held_back(target, per_mille) for _, target in keys]
    sides = {side for key, back in zip(keys, chosen, strict=True) if back for side in key}
    train = [p for p, key, back in zip(pairs, keys, chosen, strict=True) if not back and not sides.intersection(key)]
    groups: dict[str, list[Pair]] = {}
    for pair, back in zip(pairs, chosen, strict=True):
        if back:
            groups.setdefault(pair.group, []).append(pair)
    rng = random.Random(seed)
    kept = [pair for name in sorted(groups) for pair in _sample(groups[name], per_group, rng)]
    return train, kept


def training_split(
    pairs: Sequence[Pair], per_mille: int, per_group: int, seed: int
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Sentence pairs to train on, word pairs (which are all trained on), and held-back sentence pairs, see
    `split_pairs`.

    Raises:
        InputError: too few sentence pairs for both.
    """
    words = [pair for pair in pairs if pair.group.endswith(".words")]
    sentences = [pair for pair in pairs if not pair.group.endswith(".words")]
    train, held = split_pairs(sentences, per_mille, per_group, seed)
    if not train or not held:
        raise InputError(f"{len(sentences)} sentence pairs are too few to train on and to hold some back")
    return train, words, held


def grouped(pairs: Sequence[Pair]) -> dict[str, np.ndarray]:
    """Index arrays of the pairs of each language pair."""
    rows: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        rows.setdefault(pair.group, []).append(number)
    return {name: np.array(rows[name]) for name in sorted(rows)}


def _sample(rows: list[Pair], most: int, rng: random.Random) -> list[Pair]:
    return rows if len(rows) <= most else rng.sample(rows, most)


def short_name(path: str | Path) -> str:
    """Folder and name of a file: enough to tell files of one name apart, without saying where they lie."""
    return "/".join(Path(path).parts[-2:]) if len(Path(path).parts) > 1 else str(path)


def _iter_objects(path: str | Path) -> Iterable[tuple[str, str, str]]:
    found = False
    for number, row in iter_jsonl(path):
        found = True
        for name in ("source", "target"):
            if not isinstance(row.get(name), str) or not row[name].strip():
                raise InputError(f"{path}, line {number}: the row needs a text `{name}`")
        yield row["source"].strip(), row["target"].strip(), str(row.get("origin") or UNNAMED)
    if not found:
        raise InputError(f"{path} is empty")


def _iter_table(path: str | Path) -> Iterable[tuple[str, str, str]]:
    found = False
    for number, line in enumerate(iter_lines(path), 1):
        found = True
        cells = line.split("\t")
        if len(cells) < 2 or not cells[0].strip() or not cells[1].strip():
            raise InputError(f"{path}, line {number}: two columns are needed, source and target")
        yield cells[0].strip(), cells[1].strip(), cells[2].strip() if len(cells) > 2 else UNNAMED
    if not found:
        raise InputError(f"{path} is empty")
