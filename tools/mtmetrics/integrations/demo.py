"""The demo app of a metric: scores text or a file in the browser, and shows what was matched with what."""

import contextlib
import dataclasses
import functools
import html
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.artifacts.presets import preset_names
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.evaluation.figures import label_fonts
from mtmetrics.evaluation.heatmap import draw_alignment
from mtmetrics.evaluation.significance import Interval, bootstrap_interval
from mtmetrics.inputs import check
from mtmetrics.layout import metric_path
from mtmetrics.scorers.base import MetricResult, Scorer, chunked
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.textio import iter_table

if TYPE_CHECKING:
    import gradio

MAX_ROWS = 2000
MAX_BYTES = 4_000_000
_CHUNK = 32
_HOUR = 3600
_FILE_TYPES = [".tsv", ".txt", ".jsonl"]
_WIDTHS = ["80px", "90px", "400px", "400px", *["110px"] * 8]
_NOTHING_YET = "Results appear here."


@dataclasses.dataclass(frozen=True)
class ScoredRows:
    """What one press of a button gave.

    Attributes:
        rows: the texts of each segment.
        lang_pair: as it was asked for.
        preset: as it was asked for.
        result: scores of the segments.
        interval: 95 % bootstrap interval of the system score.
    """

    rows: list[list[str]]
    lang_pair: str
    preset: str
    result: MetricResult
    interval: Interval


class DemoBackend:
    """What the buttons of a demo do. Models are loaded when they are first needed, and kept.

    Args:
        metric: name of the metric.
        fields: what the two texts of a row are.
        options: of the metric, the same for all requests.
    """

    def __init__(
        self, metric: str, fields: tuple[str, str] = ("source", "translation"), options: Mapping[str, Any] | None = None
    ) -> None:
        self.fields = fields
        self._metric = metric
        self._options = dict(options or {})
        self._pool = ModelPool()
        self._scorer: Callable[[str, str], Scorer] = functools.lru_cache(maxsize=32)(self._load)

    def rows_of_text(self, first: str, second: str) -> list[list[str]]:
        """Rows of two texts with a segment per line; empty lines at the end do not count.

        Raises:
            InputError: nothing there, unequally many lines, or too much.
        """
        columns = [text.rstrip("\r\n").split("\n") if text.strip() else [] for text in (first, second)]
        check(**dict(zip(self.fields, columns, strict=True)))
        return _bounded([line.removesuffix("\r") for line in row] for row in zip(*columns, strict=True))

    def rows_of_file(self, path: str | None) -> list[list[str]]:
        """Rows of an uploaded file, read as the command line reads it.

        Raises:
            InputError: no file, nothing in it, too much of it, or as `mtmetrics.textio.iter_table`.
        """
        if path is None:
            raise InputError("no file: choose one first")
        try:
            rows = _bounded(iter_table(path, self.fields))
        except InputError as error:
            raise InputError(str(error).replace(path, Path(path).name)) from None
        if not rows:
            raise InputError(f"{Path(path).name}: empty; there is nothing to score")
        return rows

    def score(
        self, rows: list[list[str]], lang_pair: str, preset: str, report: Callable[[int, int], Any] | None = None
    ) -> ScoredRows:
        """Scores rows.

        Args:
            rows: the two texts of each segment.
            lang_pair: such as ``de-en``.
            preset: name of a preset.
            report: is called with the number of rows that were scored, and of all, while the work goes on.

        Raises:
            MTMetricsError: as the metric.
        """
        scorer = self._scorer(lang_pair.strip(), preset)

        def reported() -> Iterator[list[list[str]]]:
            for number, chunk in enumerate(chunked(rows, _CHUNK)):
                if report is not None:
                    report(number * _CHUNK, len(rows))
                yield chunk

        [result] = scorer.score_stream(reported())
        return ScoredRows(rows, lang_pair.strip(), preset, result, bootstrap_interval(result.segments))

    def draw(self, scored: ScoredRows, number: int) -> tuple[np.ndarray, str] | None:
        """The heatmap of a segment, and what is to be said about it.

        Args:
            scored: what was scored.
            number: of the segment, from 1 up.

        Returns:
            (height, width, 3) uint8, and a line or an empty string; None where the metric, as it is set up, matches no
            words.

        Raises:
            InputError: there is no such segment.
        """
        if not 1 <= number <= len(scored.rows):
            raise InputError(f"segment {number}: there are {len(scored.rows)}")
        first, second = scored.rows[number - 1]
        try:
            [alignment] = self._scorer(scored.lang_pair, scored.preset).align([first], [second])
        except InputError:
            # The texts were scored, so this says that there is nothing to align.
            return None
        figure = draw_alignment(
            alignment, f"Segment {number}: score {scored.result.segments[number - 1]:.4f}", names=self.fields
        )
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())[..., :3], label_fonts(
            [*alignment.source, *alignment.prediction]
        ).advice

    def _load(self, lang_pair: str, preset: str) -> Scorer:
        return load_scorer(self._metric, preset=preset, lang_pair=lang_pair, pool=self._pool, **self._options)


def build_demo(
    metric: str,
    *,
    title: str,
    description: str,
    examples: Sequence[Sequence[str]],
    fields: tuple[str, str] = ("source", "translation"),
    preset: str = "mini",
    options: Mapping[str, Any] | None = None,
) -> "gradio.Blocks":
    """The app of a metric; `launch` starts it. It asks nothing of the network once the models are there.

    Args:
        metric: name of the metric.
        title: of the page.
        description: Markdown under the title.
        examples: rows of both texts and the language pair, for the visitor to choose from.
        fields: what the two texts of a row are: labels of the page, and keys of JSON Lines.
        preset: the one that is chosen at first.
        options: of the metric, the same for all requests, such as ``{"setting": "src-mt"}``.
    """
    import gradio

    backend = DemoBackend(metric, fields, options)
    # One model, one request at a time.
    queue: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}

    def score(
        rows: Callable[[], list[list[str]]], lang_pair: str, preset: str, progress: gradio.Progress
    ) -> tuple[Any, ...]:
        with _messages():
            read = rows()
            progress(0, desc="Loading models")
            scored = backend.score(
                read, lang_pair, preset, lambda done, total: progress((done, total), desc="Scoring", unit="segments")
            )
        return _table(scored, fields), _summary(scored), scored.result.signature, 1, gradio.Column(visible=True), scored

    def score_text(
        first: str,
        second: str,
        lang_pair: str,
        preset: str,
        progress: gradio.Progress = gradio.Progress(),  # noqa: B008
    ) -> tuple[Any, ...]:
        """Scores text with a segment per line."""
        return score(lambda: backend.rows_of_text(first, second), lang_pair, preset, progress)

    def score_file(
        path: str | None,
        lang_pair: str,
        preset: str,
        progress: gradio.Progress = gradio.Progress(),  # noqa: B008
    ) -> tuple[Any, ...]:
        """Scores the rows of a file."""
        return score(lambda: backend.rows_of_file(path), lang_pair, preset, progress)

    def heatmap(scored: ScoredRows | None, number: float | None) -> tuple[np.ndarray | None, Any]:
        """The alignment of a segment of what was scored last."""
        if scored is None or number is None:
            return None, gradio.Column(visible=True)
        with _messages():
            drawn = backend.draw(scored, int(number))
        if drawn is None:
            return None, gradio.Column(visible=False)
        image, advice = drawn
        if advice:
            gradio.Warning(html.escape(advice, quote=False))
        return image, gradio.Column(visible=True)

    def clicked(event: gradio.SelectData) -> int:
        """The number in the row that was clicked, wherever sorting has put it."""
        return int(event.row_value[0])

    with gradio.Blocks(title=title, analytics_enabled=False, delete_cache=(_HOUR, _HOUR)) as app:
        gradio.Markdown(f"# {title}\n{description}")
        with gradio.Row():
            lang_pair = gradio.Textbox(examples[0][2], label="Languages", info="two codes and a hyphen", min_width=280)
            chosen = gradio.Dropdown(
                preset_names(metric), value=preset, label="Preset", info="the models behind the metric", min_width=280
            )
        with gradio.Tab("Text"):
            with gradio.Row():
                first, second = (
                    gradio.Textbox(label=field.capitalize(), info="one segment per line", lines=4, min_width=280)
                    for field in fields
                )
            text_button = gradio.Button("Score", variant="primary")
            gradio.Examples([list(example) for example in examples], [first, second, lang_pair])
        with gradio.Tab("File"):
            file = gradio.File(
                label=f"Rows of {fields[0]} TAB {fields[1]} without a header, or .jsonl with these keys; at most "
                f"{MAX_ROWS:,} rows",
                file_types=_FILE_TYPES,
            )
            file_button = gradio.Button("Score", variant="primary")
        summary = gradio.Markdown(_NOTHING_YET, container=True, min_height=110)
        scored = gradio.State()
        with gradio.Column(visible=False) as results:
            table = gradio.Dataframe(
                label="Segments",
                interactive=False,
                wrap=True,
                max_height=360,
                column_widths=_WIDTHS,
            )
            with gradio.Column() as picture:
                number = gradio.Number(
                    1,
                    label="Heatmap of segment",
                    info="a number and Enter, or a click in the table; long segments are best read as a download",
                    precision=0,
                    minimum=1,
                )
                image = gradio.Image(
                    label="Heatmap",
                    show_label=False,
                    format="png",
                    interactive=False,
                    buttons=["download", "fullscreen"],
                )
            signature = gradio.Textbox(label="Signature", info="pins the scores", interactive=False, buttons=["copy"])
        outputs = [table, summary, signature, number, results, scored]
        runs = [
            text_button.click(
                score_text,
                [first, second, lang_pair, chosen],
                outputs,
                api_name="score",
                show_progress_on=summary,
                **queue,
            ),
            file_button.click(
                score_file, [file, lang_pair, chosen], outputs, api_name="score_file", show_progress_on=summary, **queue
            ),
        ]
        for run in runs:
            run.success(heatmap, [scored, number], [image, picture], api_visibility="private", **queue)
            run.failure(
                lambda: (_NOTHING_YET, gradio.Column(visible=False)), None, [summary, results], api_visibility="private"
            )
        table.select(clicked, None, number, api_visibility="private").success(
            heatmap, [scored, number], [image, picture], api_visibility="private", **queue
        )
        number.submit(heatmap, [scored, number], [image, picture], api_name="heatmap", **queue)
    return app


def metric_app(name: str) -> "gradio.Blocks":
    """The app that ``metrics/NAME/app.py`` builds.

    Raises:
        InputError: an unknown metric.
        MTMetricsError: gradio is not installed.
    """
    path = Path(metric_path(name)) / "app.py"
    require_extra("app", "a demo")
    return runpy.run_path(str(path))["build"]()


def serve(app: "gradio.Blocks", port: int | None = None) -> "gradio.Blocks":
    """Starts a server for an app and returns at once; ``local_url`` of the app is its address then, ``block_thread()``
    waits for Ctrl-C.

    It listens on loopback, unless ``GRADIO_SERVER_NAME`` says otherwise, as it does in a Space. An upload has a limit,
    and no file but the uploads and the pictures is given out.

    Args:
        app: what `build_demo` returned.
        port: TCP port; None for the first free one from 7860 up.

    Raises:
        MTMetricsError: the port is taken.
    """
    import gradio

    # The bold fonts that gradio brings lack most letters, so that a word would be set in two fonts.
    theme = gradio.themes.Default(font=("system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace"))
    try:
        app.launch(
            server_port=port, max_file_size=MAX_BYTES, theme=theme, share=False, quiet=True, prevent_thread_lock=True
        )
    except OSError as error:
        raise MTMetricsError(
            f"port {port or '7860 and those after it'}: cannot be used ({error}); choose another one"
        ) from error
    return app


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
    characters = 0
    for row in rows:
        read.append(row)
        characters += sum(map(len, row))
        if len(read) > MAX_ROWS or characters > MAX_BYTES:
            most = f"{MAX_ROWS:,} rows or {MAX_BYTES // 10**6} MB"
            raise InputError(
                f"more than {most}, which is the most that this page takes; use the command line, mtmetrics score"
            )
    return read


def _table(scored: ScoredRows, fields: Sequence[str]) -> Any:
    """The segments as a table that shows four decimals and holds all."""
    import pandas

    # The score stands before the texts, where a phone shows it.
    columns: dict[str, Any] = {"segment": range(1, len(scored.rows) + 1), "score": scored.result.segments}
    columns |= dict(zip(fields, zip(*scored.rows, strict=True), strict=True))
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
