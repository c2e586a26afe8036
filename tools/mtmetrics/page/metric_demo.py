"""The demo app of a metric: scores text or a file in the browser, and shows what was matched with what."""

import contextlib
import dataclasses
import functools
import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import check
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.lines import iter_table
from mtmetrics.layout import metric_path
from mtmetrics.models.pool import ModelPool
from mtmetrics.page.explaining import heatmap
from mtmetrics.page.offers import MetricChoice, about, offers
from mtmetrics.page.texts import named_without_folder, pasted
from mtmetrics.scorers.base import Scorer, chunked
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.significance import Interval, bootstrap_interval

if TYPE_CHECKING:
    import gradio

MAX_ROWS = 2000
MAX_BYTES = 4_000_000
_CHUNK = 32
_HOUR = 3600
_WIDTHS = ["80px", "90px", "400px", "400px", *["110px"] * 8]
_NOTHING_YET = "Results appear here."
_SIDES = ("source", "reference")
# Source, reference, translation and language pair.
_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "The home is little.", "de-en"],
    ["Das Haus ist klein.", "The house is small.", "The weather was very good yesterday.", "de-en"],
    [
        "Вчера мы ходили в кино.\nФильм был скучный.",
        "We went to the cinema yesterday.\nThe film was boring.",
        "Yesterday we went to the movies.\nThe film was not boring.",
        "ru-en",
    ],
    ["他昨天没有去学校。", "He did not go to school yesterday.", "He did not go to school yesterday.", "zh-en"],
]


@dataclasses.dataclass(frozen=True)
class ScoredRows:
    """What one press of a button gave, with the 95 % bootstrap interval of the system score."""

    rows: list[list[str]]
    scorer: Scorer
    result: MetricResult
    interval: Interval

    @property
    def fields(self) -> tuple[str, str]:
        """What the texts of a row are."""
        return self.scorer.compares.removesuffix("s"), "translation"

    def draw(self, number: int) -> str:
        """The heatmap of a segment, numbered from 1 up, as HTML."""
        if not 1 <= number <= len(self.rows):
            raise InputError(f"segment {number}: there are {len(self.rows)}")
        return heatmap(self.scorer, *self.rows[number - 1], self.result, number - 1)


class DemoBackend:
    """What the buttons of a demo do. Models are loaded when first needed, and kept; no network is asked."""

    def __init__(self) -> None:
        self._pool = ModelPool(local_files_only=True)
        self._scorer: Callable[[MetricChoice, str], Scorer] = functools.lru_cache(maxsize=32)(self._load)

    def score(
        self,
        rows: list[list[str]],
        lang_pair: str,
        offer: MetricChoice,
        report: Callable[[int, int], Any] | None = None,
    ) -> ScoredRows:
        """Scores rows; `report` is called with the number of rows that were scored, and of all."""
        scorer = self._scorer(offer, lang_pair.strip())

        def reported() -> Iterator[list[list[str]]]:
            for number, chunk in enumerate(chunked(rows, _CHUNK)):
                if report is not None:
                    report(number * _CHUNK, len(rows))
                yield chunk

        [result] = scorer.score_stream(reported())
        return ScoredRows(rows, scorer, result, bootstrap_interval(result.segments))

    def _load(self, offer: MetricChoice, lang_pair: str) -> Scorer:
        return offer.spec.load(self._pool, lang_pair)


def rows_of_text(fields: Sequence[str], texts: Sequence[str]) -> list[list[str]]:
    """Rows of texts with a segment per line; empty lines at the end do not count."""
    columns = [pasted(text) for text in texts]
    check(**dict(zip(fields, columns, strict=True)))
    return _bounded(map(list, zip(*columns, strict=True)))


def rows_of_file(fields: Sequence[str], path: str | None) -> list[list[str]]:
    """Rows of an uploaded file, read as the command line reads it."""
    if path is None:
        raise InputError("no file: choose one first")
    with named_without_folder(path):
        rows = _bounded(iter_table(path, fields))
    if not rows:
        raise InputError(f"{Path(path).name}: empty; there is nothing to score")
    return rows


def build_demo(metric: str) -> "gradio.Blocks":
    """The app of a metric; `mtmetrics.page.theme.serve` starts it. It lists the presets that work where it
    runs, and asks nothing of the network.

    Args:
        metric: name of the metric.

    Raises:
        InputError: an unknown metric.
        MTMetricsError: gradio is not installed, or none of its presets works here.
    """
    metric_path(metric)  # refuses what is no metric with a page
    require_extra("app", "a demo")
    import gradio

    backend = DemoBackend()
    here = {offer.key: offer for offer in offers() if offer.spec.metric == metric}
    if not here:
        raise MTMetricsError(f"{metric}: none of its presets works here; mtmetrics list {metric} says what they lack")
    told = about(metric)
    # One model, one request at a time.
    queue: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}
    bar = gradio.Progress()

    def score(
        rows: Callable[[MetricChoice], list[list[str]]], lang_pair: str, key: str, progress: gradio.Progress
    ) -> tuple[Any, ...]:
        def report(done: int, total: int) -> None:
            progress((done, total), desc="Scoring", unit="segments")

        with _messages():
            read = rows(here[key])
            progress(0, desc="Loading models")
            scored = backend.score(read, lang_pair, here[key], report)
        return _table(scored), _summary(scored), scored.result.signature, 1, gradio.Column(visible=True), scored

    def score_text(
        source: str, reference: str, translation: str, lang_pair: str, key: str, progress: gradio.Progress = bar
    ) -> tuple[Any, ...]:
        """Scores text with a segment per line."""
        texts = {"source": source, "reference": reference, "translation": translation}

        def rows(offer: MetricChoice) -> list[list[str]]:
            fields = _fields(offer)
            return rows_of_text(fields, [texts[field] for field in fields])

        return score(rows, lang_pair, key, progress)

    def score_file(path: str | None, lang_pair: str, key: str, progress: gradio.Progress = bar) -> tuple[Any, ...]:
        """Scores the rows of a file."""
        return score(lambda offer: rows_of_file(_fields(offer), path), lang_pair, key, progress)

    def draw(scored: ScoredRows | None, number: float | None) -> str:
        """The alignment of a segment of what was scored last."""
        if scored is None or number is None:
            return ""
        with _messages():
            return scored.draw(int(number))

    def sides(key: str) -> tuple[Any, ...]:
        """The box that a preset needs, and how a file for it looks."""
        side = _fields(here[key])[0]
        return *(gradio.Textbox(visible=side == one) for one in _SIDES), gradio.File(label=_layout(here[key]))

    def cleared() -> tuple[str, Any]:
        return _NOTHING_YET, gradio.Column(visible=False)

    def clicked(event: gradio.SelectData) -> int:
        """The number in the row that was clicked, wherever sorting has put it."""
        return int(event.row_value[0])

    first = next(iter(here.values()))
    with gradio.Blocks(title=told["title"], analytics_enabled=False, delete_cache=(_HOUR, _HOUR)) as app:
        text = f"{told['about']} Higher is better; a segment's score is {told['range']}."
        gradio.HTML(f'<div class="mt-head"><h1>{told["title"]}</h1><p>{text}</p></div>')
        with gradio.Row():
            lang_pair = gradio.Textbox(_EXAMPLES[0][3], label="Languages", info="two codes and a hyphen", min_width=280)
            choices = [(offer.title, key) for key, offer in here.items()]
            presets = {"choices": choices, "value": first.key, "info": "those that work here"}
            chosen = gradio.Dropdown(label="Preset", min_width=280, **presets)
        with gradio.Tab("Text"):
            with gradio.Row():
                look = {"info": "one segment per line", "lines": 4, "min_width": 280}
                boxes = [
                    gradio.Textbox(label=side.capitalize(), visible=side == _fields(first)[0], **look)
                    for side in _SIDES
                ]
                boxes.append(gradio.Textbox(label="Translation", **look))
            text_button = gradio.Button("Score", variant="primary")
            gradio.Examples(_EXAMPLES, [*boxes, lang_pair])
        with gradio.Tab("File"):
            file = gradio.File(label=_layout(first), file_types=[".tsv", ".txt", ".jsonl"])
            file_button = gradio.Button("Score", variant="primary")
        summary = gradio.Markdown(_NOTHING_YET, container=True, min_height=110)
        scored = gradio.State()
        with gradio.Column(visible=False) as results:
            shown = {"label": "Segments", "wrap": True, "max_height": 360, "column_widths": _WIDTHS}
            table = gradio.Dataframe(interactive=False, **shown)
            info = "a number and Enter, or a click in the table"
            number = gradio.Number(1, label="Heatmap of segment", info=info, precision=0, minimum=1)
            picture = gradio.HTML("")
            signature = gradio.Textbox(label="Signature", info="pins the scores", interactive=False, buttons=["copy"])
        outputs = [table, summary, signature, number, results, scored]
        pressed = {"outputs": outputs, "show_progress_on": summary, **queue}
        runs = [
            text_button.click(score_text, [*boxes, lang_pair, chosen], api_name="score", **pressed),
            file_button.click(score_file, [file, lang_pair, chosen], api_name="score_file", **pressed),
        ]
        chosen.change(sides, chosen, [*boxes[:2], file], api_visibility="private", show_progress="hidden")
        drawn = {"fn": draw, "inputs": [scored, number], "outputs": picture, **queue}
        for run in runs:
            run.success(api_visibility="private", **drawn)
            run.failure(cleared, None, [summary, results], api_visibility="private")
        table.select(clicked, None, number, api_visibility="private").success(api_visibility="private", **drawn)
        number.submit(api_name="heatmap", **drawn)
    return app


def _fields(offer: MetricChoice) -> tuple[str, str]:
    return offer.side, "translation"


def _layout(offer: MetricChoice) -> str:
    first, second = _fields(offer)
    return f"Rows of {first} TAB {second} without a header, or .jsonl with these keys; at most {MAX_ROWS:,} rows"


@contextlib.contextmanager
def _messages() -> Iterator[None]:
    """Shows expected errors until the visitor closes them; the browser would take what they quote for markup."""
    import gradio

    try:
        yield
    except MTMetricsError as error:
        raise gradio.Error(html.escape(str(error), quote=False), duration=None, print_exception=False) from None


def _bounded(rows: Iterable[list[str]]) -> list[list[str]]:
    """The rows, if they are not more than the page takes; reads no further than that."""
    read: list[list[str]] = []
    size = 0
    for row in rows:
        read.append(row)
        size += sum(len(text.encode("utf-8", "surrogatepass")) for text in row)
        if len(read) > MAX_ROWS or size > MAX_BYTES:
            most = f"more than {MAX_ROWS:,} rows or {MAX_BYTES // 10**6} MB, which is the most that this page takes"
            raise InputError(f"{most}; use the command line, mtmetrics score")
    return read


def _table(scored: ScoredRows) -> Any:
    """The segments as a table that shows four decimals and holds all."""
    import pandas

    # The score stands before the texts, where a phone shows it.
    columns: dict[str, Any] = {"segment": range(1, len(scored.rows) + 1), "score": scored.result.segments}
    columns |= dict(zip(scored.fields, zip(*scored.rows, strict=True), strict=True))
    columns |= scored.result.parts
    return pandas.DataFrame(columns).style.format(dict.fromkeys(["score", *scored.result.parts], "{:.4f}"))


def _summary(scored: ScoredRows) -> str:
    count, interval, note = len(scored.rows), scored.interval, scored.result.report.note
    lines = [f"### System score: {scored.result.system:.4f}"]
    between = f", 95 % bootstrap interval {interval.low:.4f} to {interval.high:.4f}" if count > 1 else ""
    lines.append(f"mean of {count:,} segment{'s' if count > 1 else ''}{between}")
    if note:
        lines.append(f"⚠ {note}")
    return "\n\n".join(lines)
