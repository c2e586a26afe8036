"""Training text and its origins: which rows are used, which are held back, and which of them meet
in a batch."""

import dataclasses
import logging
import random
import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines, short_name
from mtmetrics.io.tables import jsonl_rows, word_rows
from mtmetrics.judgements.judged import Judged, read_judged_segments
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training.configs import DistilConfig, EncoderConfig

log = logging.getLogger(__name__)
UNNAMED = "unnamed"
# Groups of pairs of single words, and not of sentences, end so.
WORD_LISTS = ".words"
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

    used: defaultdict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    left_out: Counter = field(default_factory=Counter)

    def as_dict(self) -> dict[str, dict]:
        """The counts, largest origin first."""
        used = {file: dict(counter.most_common()) for file, counter in sorted(self.used.items())}
        return {"used": used, "left_out": dict(sorted(self.left_out.items()))}


@dataclass(frozen=True)
class ParallelText:
    """Parallel files to learn from; see `read_pairs` for the fields."""

    files: Sequence[str | Path]
    exclude: Sequence[str] = ()
    caps: Mapping[str, int] = field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, object]:
        """The choice of rows, as a run records it."""
        return {"exclude": sorted(self.exclude), "caps": dict(self.caps)}

    def read(self, seed: int) -> tuple[list[Pair], Counts]:
        """The pairs, drawn with that seed, and the counts."""
        return read_pairs(self.files, self.exclude, self.caps, seed)


@dataclass
class DistillationText:
    """Parallel text to distil an English teacher with.

    Attributes:
        train: pairs to train on; word pairs come last.
        words: the number of word pairs.
        plan: the rows of each step, see `plan_batches`.
        held: held-back sentence pairs.
        tests: judged segments.
        counts: rows that were used and left out.
    """

    train: list[Pair]
    words: int
    plan: list[np.ndarray]
    held: list[Pair]
    tests: list[Judged]
    counts: Counts

    def record(self) -> dict[str, object]:
        """The sizes and counts, for training.json."""
        sizes = {
            "train": len(self.train) - self.words,
            "words": self.words,
            "held_back": len(self.held),
        }
        return {"data": self.counts.as_dict(), "pairs": sizes}


def read_distillation(
    text: ParallelText,
    judged: Sequence[str | Path],
    config: EncoderConfig | DistilConfig,
    *,
    seed: int,
    processes: int,
) -> DistillationText:
    """Reads what a distillation needs.

    Args:
        text: the pairs.
        judged: segments with human judgements, on which every evaluation measures the correlation
            of the similarity of source and translation; those whose judgement is null do not count.
            Pairs that share a text with them are left out.
        config: of the steps, and of what is held back.
        seed: of the choice and the order of the pairs.
        processes: that share a step.
    """
    tests = [judged_segments(path) for path in judged]
    for test in tests:
        if reason := pearson(np.arange(len(test)), test.human).reason:
            raise InputError(f"--judged {test.file}: no correlation is defined, {reason}")
    pairs, counts = text.read(seed)
    kept = _without_texts_of(tests, pairs)
    counts.left_out["judged"] += len(pairs) - len(kept)
    train, words, held = training_split(
        kept,
        config.held_back_per_mille,
        config.held_back_per_pair,
        seed,
    )
    log.info(
        "%d sentence pairs and %d word pairs for training, %d held back",
        len(train),
        len(words),
        len(held),
    )
    train += words
    plan = plan_batches(
        groups=[pair.group for pair in train],
        lengths=np.array([len(pair.source) + len(pair.target) for pair in train]),
        size=config.pairs_per_step,
        steps=config.steps * processes,
        seed=seed,
        words=config.words,
    )
    return DistillationText(train, len(words), plan, held, tests, counts)


def _without_texts_of(tests: Sequence[Judged], pairs: list[Pair]) -> list[Pair]:
    """The pairs that share no text with judged segments."""
    keys: set[str] = set()
    for test in tests:
        for column in (test.sources, test.predictions, test.references):
            keys.update(text_key(text) for text in column if text)
    if not keys:  # the keys of all pairs would be made for nothing
        return pairs
    kept = []
    for pair in pairs:
        if keys.isdisjoint((text_key(pair.source), text_key(pair.target))):
            kept.append(pair)
    return kept


def judged_segments(path: str | Path) -> Judged:
    """The segments of a file that have a judgement."""
    segments = read_judged_segments(path)
    return dataclasses.replace(segments, rows=segments.judgements.reset_index(drop=True))


def correlations(
    name: str,
    similarities: Sequence[np.ndarray],
    tests: Sequence[Judged],
) -> dict[str, float]:
    """`mean_correlation` of similarities with the judgements of each test."""
    parts = {}
    for values, test in zip(similarities, tests, strict=True):
        parts[short_name(test.file)] = (values, test.human)
    return mean_correlation(name, parts)


def mean_correlation(
    name: str,
    parts: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> dict[str, float]:
    """Pearson's r of the values and judgements of each part where it is defined, `NAME_PART`, and
    their mean, `NAME`, where there is one."""
    numbers = {}
    for part, (values, human) in parts.items():
        correlation = pearson(values, human)
        if correlation.reason:
            log.warning("%s: no correlation, %s", part, correlation.reason)
        else:
            numbers[f"{name}_{part}"] = correlation.value
    if numbers:
        numbers[name] = float(np.mean(list(numbers.values())))
    return numbers


def origin_matches(origin: str, patterns: Iterable[str]) -> bool:
    """Whether `origin` equals one of the patterns, or starts with one that ends in ``*``."""
    return any(
        origin.startswith(name[:-1]) if name.endswith("*") else origin == name for name in patterns
    )


def parse_numbers(specs: Iterable[str], option: str, *, whole: bool = True) -> dict[str, float]:
    """Parses ``NAME=NUMBER`` specifications of numbers from 0 up, `whole` ones or not; an
    InputError names the option."""
    result: dict[str, float] = {}
    for spec in specs:
        name, _, number = spec.rpartition("=")
        if not name or not (number if whole else number.replace(".", "", 1)).isdecimal():
            raise InputError(f"{option} needs NAME=NUMBER, got {spec!r}")
        result[name] = int(number) if whole else float(number)
    return result


def number_for(origin: str, numbers: Mapping[str, int], otherwise: int) -> int:
    """The number given for `origin`; an exact name goes before a pattern, a longer pattern before a
    shorter one."""
    matching = [name for name in numbers if origin_matches(origin, [name])]
    if not matching:
        return otherwise
    return numbers[max(matching, key=lambda name: (name == origin, len(name)))]


def text_key(text: str) -> str:
    """The form in which equal sentences are equal: compatibility form, lower case, letters and
    digits only."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).lower()) or text


def read_pairs(
    paths: Sequence[str | Path],
    exclude: Sequence[str] = (),
    caps: Mapping[str, int] | None = None,
    seed: int = 0,
) -> tuple[list[Pair], Counts]:
    """Reads parallel text: JSON Lines with `source`, `target` and optional `origin`, or ``.tsv`` in
    this order.

    JSON Lines with outputs of systems serve, too: `reference` is the target, `set` the origin, and
    rows whose reference is null are left out. Exact repetitions within a language pair are left
    out.

    Args:
        paths: the files; the name of each up to its first dot names the language pair. Files of one
            name are one pair.
        exclude: origins to leave out, see `origin_matches`.
        caps: at most that many rows per file and origin, drawn at random.
        seed: of the random choice.

    Raises:
        InputError: no file, a missing or empty file, or a row without one of its sides.
    """
    if not paths:
        raise InputError("no parallel files were given; pass at least one with --parallel")
    pairs: list[Pair] = []
    counts = Counts()
    seen: set[tuple[str, str, str]] = set()
    for path in paths:
        group = Path(path).name.split(".")[0] + (WORD_LISTS if ".tsv" in Path(path).name else "")
        by_origin: dict[str, list[Pair]] = {}
        for source, target, origin in _iter_rows(path, counts):
            key = (group, source, target)
            if origin_matches(origin, exclude):
                counts.left_out["origin excluded"] += 1
            elif key in seen:
                counts.left_out["repeated"] += 1
            else:
                seen.add(key)
                by_origin.setdefault(origin, []).append(Pair(source, target, origin, group))
        for origin, rows in by_origin.items():
            cap = number_for(origin, caps or {}, len(rows))
            if len(rows) > cap:
                counts.left_out["over the cap"] += len(rows) - cap
                rows = random.Random(f"{seed} {Path(path).name} {origin}").sample(rows, cap)
            counts.used[short_name(path)][origin] += len(rows)
            pairs.extend(rows)
    if not pairs:
        raise InputError(
            "the parallel files hold no row that may be used; check --exclude-origin and --cap"
        )
    return pairs, counts


def read_lines(
    specs: Sequence[str],
    exclude: Sequence[str] = (),
) -> tuple[list[tuple[str, str]], Counts]:
    """Reads monolingual text, one sentence per line.

    Args:
        specs: ``FILE`` or ``FILE:START-END[=ORIGIN],...`` with 1-based line ranges, ends included.
        exclude: origins to leave out, see `origin_matches`.

    Returns:
        ``(text, origin)`` of every line that is not blank, and the counts.

    Raises:
        InputError: a missing or empty file, or a range that reaches beyond the file's end.
    """
    lines: list[tuple[str, str]] = []
    counts = Counts()
    for spec in specs:
        path, ranges = parse_ranges(spec)
        number = position = 0
        for number, line in enumerate(iter_lines(path, "segments"), 1):
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
                counts.used[short_name(path)][origin] += 1
        if number == 0:
            raise InputError(f"{path} is empty")
        if ranges and ranges[-1][1] > number:
            raise InputError(
                f"{path} has {number} lines, but the range {ranges[-1][0]}-{ranges[-1][1]} was "
                "asked for"
            )
    return lines, counts


def parse_ranges(spec: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Splits ``FILE:START-END[=ORIGIN],...`` into the file and its sorted ranges, which may not
    overlap."""
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
            raise InputError(
                f"{spec}: line ranges start at 1, end after their start and do not overlap"
            )
        previous = end
    return match["path"], ranges


def held_back(key: str, per_mille: int) -> bool:
    """Whether the sentence is held back: a fixed share of all sentences, the same in every run."""
    return zlib.crc32(key.encode("utf-8")) % 1000 < per_mille


def training_split(
    pairs: Sequence[Pair],
    per_mille: int,
    per_group: int,
    seed: int,
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Splits pairs into sentence pairs to train on, word pairs (all to train on), and held-back
    sentence pairs.

    A sentence pair is held back if its target side is one of the `per_mille` held-back sentences,
    in all language pairs; at most `per_group` of each pair are returned. What shares a side with
    them (see `text_key`) is left out."""
    words: list[Pair] = []
    rest: list[tuple[Pair, tuple[str, str]]] = []
    sides: set[str] = set()
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.group.endswith(WORD_LISTS):
            words.append(pair)
            continue
        key = (text_key(pair.source), text_key(pair.target))
        if held_back(key[1], per_mille):
            groups.setdefault(pair.group, []).append(pair)
            sides.update(key)
        else:
            rest.append((pair, key))
    train = [pair for pair, key in rest if sides.isdisjoint(key)]
    rng = random.Random(seed)
    held: list[Pair] = []
    for name in sorted(groups):
        group = groups[name]
        held += group if len(group) <= per_group else rng.sample(group, per_group)
    if not train or not held:
        few = len(pairs) - len(words)
        raise InputError(f"{few} sentence pairs are too few to train on and to hold some back")
    return train, words, held


def _iter_rows(path: str | Path, counts: Counts) -> Iterable[tuple[str, str, str]]:
    """Source, target and origin of every row."""
    row = None
    rows = word_rows(path) if ".tsv" in Path(path).name else jsonl_rows(path)
    for row in rows:
        fields = row.fields
        if "target" not in fields and "reference" in fields:
            fields = {"target": fields["reference"], "origin": fields.get("set"), **fields}
            if fields["target"] is None:
                counts.left_out["no reference"] += 1
                continue
        for name in ("source", "target"):
            if not isinstance(fields.get(name), str) or not fields[name].strip():
                raise InputError(f"{row.where}: the row needs a text `{name}`")
        origin = fields.get("origin")
        yield fields["source"].strip(), fields["target"].strip(), str(origin or UNNAMED)
    if row is None:
        raise InputError(f"{path} is empty")


def plan_batches(
    groups: Sequence[str],
    lengths: np.ndarray,
    size: int,
    steps: int,
    seed: int,
    words: float = 1.0,
) -> list[np.ndarray]:
    """The rows of every step: all of one group and of similar length, so that they are hard to tell
    apart.

    Each group is drawn with a probability proportional to its size to the power 0.7 (word lists,
    whose names end in ``.words``, `words` times that) and gone through in random order, again and
    again. A shorter plan is the beginning of a longer one."""
    rng = np.random.default_rng(seed)
    names, numbers = np.unique(np.asarray(groups), return_inverse=True)
    members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    weights = [words if name.endswith(WORD_LISTS) else 1.0 for name in names]
    factors = [len(rows) ** 0.7 for rows in members]
    share = np.array([a * b for a, b in zip(factors, weights, strict=True)])
    waiting: list[list[np.ndarray]] = [[] for _ in names]
    plan = []
    for _ in range(steps):
        drawn = rng.choice(len(names), p=share / share.sum())
        if not waiting[drawn]:
            waiting[drawn] = _one_pass(members[drawn], lengths, size, rng)
        plan.append(waiting[drawn].pop())
    return plan


def plan_epochs(lengths: np.ndarray, size: int, epochs: int, seed: int) -> list[np.ndarray]:
    """The rows of every step of so many passes over all rows, each in random order, rows of similar
    length together."""
    rng = np.random.default_rng(seed)
    rows = np.arange(len(lengths))
    plan = []
    for _ in range(epochs):
        plan += _one_pass(rows, lengths, size, rng, smaller=True)
    return plan


def _one_pass(
    rows: np.ndarray,
    lengths: np.ndarray,
    size: int,
    rng: np.random.Generator,
    *,
    smaller: bool = False,
) -> list[np.ndarray]:
    """The batches of one pass, in random order; `smaller` keeps those that are not full."""
    order = rng.permutation(rows)
    batches = []
    for begin in range(0, len(order), size * 24):
        chunk = order[begin : begin + size * 24]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        parts = [chunk[i : i + size] for i in range(0, len(chunk), size)]
        batches += [part for part in parts if smaller or len(part) == size or len(parts) == 1]
    rng.shuffle(batches)
    return batches
