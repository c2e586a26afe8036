"""Training text: the rows that are used, the rows that are held back, and the rows that meet in a
batch.

`read_pairs` and `read_lines` read files; `training_split` holds pairs back; `plan_batches` and
`plan_epochs` plan the steps of a training; `read_distillation` does all of it for a training with an
English teacher. The origin of a row is the name of the collection that it comes from.
"""

import dataclasses
import logging
import random
import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines, short_name
from mtmetrics.io.tables import jsonl_rows, word_pair_rows
from mtmetrics.judgements.judged import Judged, read_judged_segments
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training.configs import DistilConfig, EncoderConfig

log = logging.getLogger(__name__)
# The origin of rows that name none.
UNNAMED = "unnamed"
# Groups of pairs of single words, and not of sentences, end so.
WORD_LISTS = ".words"
_NO_LETTERS = re.compile(r"[\W_]+")
_RANGES = re.compile(r"(?P<path>.+?):(?P<ranges>\d+-\d+(?:=[^,=:]+)?(?:,\d+-\d+(?:=[^,=:]+)?)*)")
# `plan_batches` sorts so many batches together by length: more save padding, fewer mix better.
_BATCHES_SORTED_TOGETHER = 24


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        source: the sentence.
        target: its translation.
        origin: the collection that the pair comes from.
        group: name of the language pair of its file, such as ``de-en``; ``de-en.words`` for pairs
            of single words.
    """

    source: str
    target: str
    origin: str
    group: str


@dataclass
class Counts:
    """Numbers of rows.

    Attributes:
        used: file -> origin -> number of rows that are used.
        left_out: reason -> number of rows that are left out.
    """

    used: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    left_out: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, dict[str, object]]:
        """The counts as plain data, largest origin first."""
        used = {file: dict(counter.most_common()) for file, counter in sorted(self.used.items())}
        return {"used": used, "left_out": dict(sorted(self.left_out.items()))}


@dataclass(frozen=True)
class ParallelText:
    """Parallel files to learn from.

    Attributes:
        files: of `read_pairs`.
        exclude: origins to leave out.
        caps: origin -> its largest number of rows per file.
    """

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
    test_keys: set[str] = set()
    for test in tests:
        for column in (test.sources, test.predictions, test.references):
            test_keys.update(text_key(text) for text in column if text)
    if not test_keys:  # the keys of all pairs would be made for nothing
        return pairs
    return [
        pair
        for pair in pairs
        if test_keys.isdisjoint((text_key(pair.source), text_key(pair.target)))
    ]


def judged_segments(path: str | Path) -> Judged:
    """The segments of a file that have a judgement."""
    segments = read_judged_segments(path)
    return dataclasses.replace(segments, rows=segments.judgements.reset_index(drop=True))


def correlations(
    name: str,
    similarities: Sequence[np.ndarray],
    tests: Sequence[Judged],
) -> dict[str, float]:
    """`mean_correlation` of similarities with the judgements of tests.

    Args:
        name: of the measure.
        similarities: for each test the (n,) similarities of its segments.
        tests: the judged segments.
    """
    parts = {}
    for values, test in zip(similarities, tests, strict=True):
        parts[short_name(test.file)] = (values, test.human)
    return mean_correlation(name, parts)


def mean_correlation(
    name: str,
    parts: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> dict[str, float]:
    """Pearson's r of values and judgements.

    Args:
        name: of the measure.
        parts: name of a part -> (n,) values, and (n,) judgements.

    Returns:
        ``NAME_PART`` -> r, for each part where it is defined; and ``NAME`` -> their mean, where
        there is one.
    """
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
    """Whether `origin` equals one of the patterns, or begins as one that ends in ``*``."""
    return any(
        origin == pattern or (pattern.endswith("*") and origin.startswith(pattern[:-1]))
        for pattern in patterns
    )


def parse_numbers(specs: Iterable[str], option: str, *, whole: bool = True) -> dict[str, float]:
    """Parses ``NAME=NUMBER`` specifications.

    Args:
        specs: the texts.
        option: of the command line, for the error.
        whole: whether the numbers are whole ones; otherwise they may have a decimal point.

    Returns:
        Name -> its number, which is at least 0.

    Raises:
        InputError: a text of another form.
    """
    numbers: dict[str, float] = {}
    for spec in specs:
        name, _, number = spec.rpartition("=")
        digits = number if whole else number.replace(".", "", 1)
        if not name or not digits.isdecimal():
            raise InputError(f"{option} needs NAME=NUMBER, got {spec!r}")
        numbers[name] = int(number) if whole else float(number)
    return numbers


def number_for(origin: str, numbers: Mapping[str, int], default: int) -> int:
    """The number for an origin: that of its exact name, else that of the longest pattern that it
    matches (see `origin_matches`), else the default."""
    matching = [pattern for pattern in numbers if origin_matches(origin, [pattern])]
    if not matching:
        return default
    return numbers[max(matching, key=lambda pattern: (pattern == origin, len(pattern)))]


def text_key(text: str) -> str:
    """A key that two texts share if they differ only in case, punctuation, spaces and compatible
    characters; the text itself where it has no letters or digits."""
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
        file_name = Path(path).name
        group = file_name.split(".")[0] + (WORD_LISTS if ".tsv" in file_name else "")
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
                rows = random.Random(f"{seed} {file_name} {origin}").sample(rows, cap)
            counts.used[short_name(path)][origin] += len(rows)
            pairs.extend(rows)
    if not pairs:
        raise InputError(
            "the parallel files hold no row that may be used; check --exclude-origin and --cap"
        )
    return pairs, counts


def languages_of(group: str, rule: str) -> tuple[str, str]:
    """The languages of a group of pairs, as its name says; an InputError with the rule for names
    where it names none."""
    try:
        return language_pair(group.removesuffix(WORD_LISTS))
    except InputError as error:
        raise InputError(f"--parallel {group}: {rule} ({error})") from None


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
        number = 0
        for number, line in enumerate(iter_lines(path, "segments"), 1):
            line_range = next((each for each in ranges if each.start <= number <= each.end), None)
            if ranges and line_range is None:
                counts.left_out["outside the ranges"] += 1
                continue
            origin = UNNAMED if line_range is None else line_range.origin
            if origin_matches(origin, exclude):
                counts.left_out["origin excluded"] += 1
            elif line.strip():
                lines.append((line.strip(), origin))
                counts.used[short_name(path)][origin] += 1
        if number == 0:
            raise InputError(f"{path} is empty")
        if ranges and ranges[-1].end > number:
            raise InputError(
                f"{path} has {number} lines, but the range {ranges[-1].start}-{ranges[-1].end} was "
                "asked for"
            )
    return lines, counts


class LineRange(NamedTuple):
    """Lines of a file, from 1, both ends included, and their origin."""

    start: int
    end: int
    origin: str


def parse_ranges(spec: str) -> tuple[str, list[LineRange]]:
    """Splits ``FILE:START-END[=ORIGIN],...`` into the file and its sorted ranges; none stand for the
    whole file.

    Raises:
        InputError: ranges overlap, or end before their start.
    """
    match = _RANGES.fullmatch(spec)
    if not match:
        return spec, []
    ranges = []
    for part in match["ranges"].split(","):
        numbers, _, origin = part.partition("=")
        start, end = (int(number) for number in numbers.split("-"))
        ranges.append(LineRange(start, end, origin or UNNAMED))
    ranges.sort()
    previous_end = 0
    for line_range in ranges:
        if line_range.start <= previous_end or line_range.end < line_range.start:
            raise InputError(
                f"{spec}: line ranges start at 1, end after their start and do not overlap"
            )
        previous_end = line_range.end
    return match["path"], ranges


def held_back(key: str, per_mille: int) -> bool:
    """Whether the sentence of a key (`text_key`) is held back; in every run the same
    `per_mille` of thousand sentences are."""
    return zlib.crc32(key.encode("utf-8")) % 1000 < per_mille


def training_split(
    pairs: Sequence[Pair],
    per_mille: int,
    per_group: int,
    seed: int,
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Splits pairs into three lists: sentence pairs to train on, word pairs to train on, and
    held-back sentence pairs.

    Args:
        pairs: all pairs.
        per_mille: a sentence pair is held back if `held_back` holds for its target, in all
            language pairs. Sentence pairs that share a side with such a pair are left out.
        per_group: at most so many held-back pairs of a language pair are returned, drawn at random.
        seed: of the draw.

    Raises:
        InputError: no pair is left to train on, or none is held back.
    """
    words: list[Pair] = []
    candidates: list[tuple[Pair, tuple[str, str]]] = []
    held_keys: set[str] = set()
    held_by_group: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.group.endswith(WORD_LISTS):
            words.append(pair)
            continue
        keys = (text_key(pair.source), text_key(pair.target))
        if held_back(keys[1], per_mille):
            held_by_group.setdefault(pair.group, []).append(pair)
            held_keys.update(keys)
        else:
            candidates.append((pair, keys))
    train = [pair for pair, keys in candidates if held_keys.isdisjoint(keys)]
    rng = random.Random(seed)
    held: list[Pair] = []
    for _, group in sorted(held_by_group.items()):
        held += group if len(group) <= per_group else rng.sample(group, per_group)
    if not train or not held:
        count = len(pairs) - len(words)
        raise InputError(f"{count} sentence pairs are too few to train on and to hold some back")
    return train, words, held


def _iter_rows(path: str | Path, counts: Counts) -> Iterator[tuple[str, str, str]]:
    """Yields source, target and origin of every row; counts rows that have no reference."""
    row = None
    rows = word_pair_rows(path) if ".tsv" in Path(path).name else jsonl_rows(path)
    for row in rows:
        fields = row.values
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
    """Plans the rows of every step. The rows of a step are of one group and of similar length, so
    that they are hard to tell apart.

    Each step draws a group, with a probability proportional to its size to the power 0.7, and goes
    on through its rows, which are in random order, again and again. A shorter plan is the beginning
    of a longer one.

    Args:
        groups: of each of the n rows.
        lengths: (n,) lengths of the rows.
        size: number of rows of a step.
        steps: number of steps.
        seed: of everything random.
        words: factor of the probability of word lists, whose names end in ``.words``.
    """
    rng = np.random.default_rng(seed)
    names, numbers = np.unique(np.asarray(groups), return_inverse=True)
    rows_of_groups = [np.flatnonzero(numbers == number) for number in range(len(names))]
    weights = []
    for name, rows in zip(names, rows_of_groups, strict=True):
        factor = words if name.endswith(WORD_LISTS) else 1.0
        weights.append(len(rows) ** 0.7 * factor)
    probabilities = np.array(weights) / np.sum(weights)
    # For each group the batches of its present pass that are still to come.
    waiting: list[list[np.ndarray]] = [[] for _ in names]
    plan = []
    for _ in range(steps):
        drawn = rng.choice(len(names), p=probabilities)
        if not waiting[drawn]:
            waiting[drawn] = _one_pass(rows_of_groups[drawn], lengths, size, rng)
        plan.append(waiting[drawn].pop())
    return plan


def plan_epochs(lengths: np.ndarray, size: int, epochs: int, seed: int) -> list[np.ndarray]:
    """Plans the rows of every step of several epochs. An epoch has all rows, in random order, rows
    of similar length together."""
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
    """The batches of one pass over rows, in random order.

    Args:
        rows: the rows.
        lengths: of all rows, also of other ones.
        size: number of rows of a batch.
        rng: of the order.
        smaller: whether batches that are not full are kept; else only where there is no full one.
    """
    order = rng.permutation(rows)
    batches = []
    chunk_size = size * _BATCHES_SORTED_TOGETHER
    for begin in range(0, len(order), chunk_size):
        chunk = order[begin : begin + chunk_size]
        by_length = chunk[np.argsort(lengths[chunk], kind="stable")]
        parts = [by_length[i : i + size] for i in range(0, len(by_length), size)]
        batches += [part for part in parts if smaller or len(part) == size or len(parts) == 1]
    rng.shuffle(batches)
    return batches
