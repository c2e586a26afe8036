"""The page that compares systems, with all metrics or with one, as one gradio app."""

import contextlib
import html
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import split_pair
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.layout import metric_path
from mtmetrics.page import views
from mtmetrics.page.comparing import Compared, Comparer, Progress
from mtmetrics.page.downloads import FILES, command, write_files
from mtmetrics.page.explaining import coloured, heatmap
from mtmetrics.page.offers import about, chosen, named, offers
from mtmetrics.page.texts import TextInput, Texts, read
from mtmetrics.reports.example import example
from mtmetrics.scorers.side import Column, Side

if TYPE_CHECKING:
    import gradio

_HOUR = 3600
_MOST_PASTED = 6
_SHOWN_AT_FIRST = 2
_NAMES = {
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "lv": "Latvian",
    "ne": "Nepali",
    "ro": "Romanian",
    "ru": "Russian",
    "si": "Sinhala",
    "tr": "Turkish",
    "zh": "Chinese",
}
_TITLE = "Which translation is better?"
_HEAD = (
    "Compare the translations of several systems, with or without references: scores with "
    "intervals, the differences that are more than chance, and the segments and words that they "
    "come from. Everything is computed where this page is served; nothing is sent elsewhere."
)
_FOOT = (
    '<p class="mt-foot">mtmetrics: evaluation metrics for machine translation. The presets called mini are small '
    "stand-ins that run anywhere; look at the segments before you trust a number.</p>"
)
_GROUPS = {
    "source": "Against the source, without references",
    "reference": "Against references",
    "both": "Against source and reference together",
}
_CLICKS = """
element.addEventListener('click', event => {
  const output = event.target.closest('[data-segment]');
  if (output) trigger('click', {segment: Number(output.dataset.segment), system: Number(output.dataset.system)});
});
"""


class _Page:
    """The parts of the page, and what happens when they are used; `metric` is the only one that it
    offers."""

    def __init__(self, metric: str | None, added: Sequence[str]) -> None:
        import gradio

        self.gr = gradio
        self.offers = [
            *named(added),
            *(offer for offer in offers() if metric in (None, offer.spec.metric)),
        ]
        self.title, self.head, self.lone = _TITLE, _HEAD, metric is not None
        if metric is not None:
            told = about(metric)
            if not self.offers:
                what = f"mtmetrics list {metric} says what they lack"
                raise MTMetricsError(f"{metric}: none of its presets works here; {what}")
            self.title = told["title"]
            self.head = f"{told['about']} Higher is better; a segment's score is {told['range']}."
        sides = [offer.side for offer in self.offers]
        # Shown while nothing is given.
        self.first = next(side for side in Side if side in sides).columns
        self.comparer = Comparer()
        # One model, one request at a time.
        self.queue: dict[str, Any] = {
            "concurrency_limit": 1,
            "concurrency_id": "model",
            "api_visibility": "private",
        }
        self.quick: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}

    def build(self) -> "gradio.Blocks":
        gr = self.gr
        title = self.title if self.lone else "mtmetrics: compare"
        with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(_HOUR, _HOUR)) as app:
            gr.HTML(f'<div class="mt-head"><h1>{self.title}</h1><p>{self.head}</p></div>')
            self._build_input()
            self._build_metrics()
            self._build_result()
            gr.HTML(_FOOT)
            self._connect()
        return app

    def _build_input(self) -> None:
        gr = self.gr
        known = sorted(
            {
                language
                for offer in self.offers
                for pair in offer.languages
                for language in pair.split("-")
            }
        )
        languages = [
            (f"{_NAMES.get(code, code)} ({code})", code) for code in known if code != "any"
        ]
        languages.sort()
        gr.HTML("<h2><span>1</span>Texts</h2>", elem_classes="mt-step")
        with gr.Row():
            look = {"allow_custom_value": True, "min_width": 150, "choices": languages}
            self.source_language = gr.Dropdown(label="From", value="de", **look)
            self.target_language = gr.Dropdown(label="Into", value="en", **look)
        with gr.Tab("Upload"), gr.Row():
            self.source_file = gr.File(
                label="Source, a segment per line", height=120, min_width=240
            )
            label = "Systems, a file for each"
            self.system_files = gr.File(
                label=label, height=120, min_width=240, file_count="multiple"
            )
            self.reference_file = gr.File(
                label="References, if there are any", height=120, min_width=240
            )
        with gr.Tab("Paste"):
            with gr.Row():
                look = {"lines": 5, "max_lines": 12, "min_width": 280}
                self.source_text = gr.Textbox(label="Source, a segment per line", **look)
                self.reference_text = gr.Textbox(label="References, if there are any", **look)
            self.pasted: list[tuple[Any, Any]] = []
            self.boxes = []
            with gr.Row():
                for number in range(1, _MOST_PASTED + 1):
                    with gr.Column(min_width=280, visible=number <= _SHOWN_AT_FIRST) as box:
                        name = gr.Textbox(f"system-{number}", label=f"Name of system {number}")
                        text = gr.Textbox(
                            label=f"Translations of system {number}", lines=5, max_lines=12
                        )
                    self.pasted.append((name, text))
                    self.boxes.append(box)
            self.more = gr.Button("Add a system", size="sm")
        self.count = gr.State(_SHOWN_AT_FIRST)
        with gr.Row():
            self.facts = gr.HTML(_facts_of(None), elem_classes="mt-facts")
            self.example = gr.Button("Try the example", size="sm", scale=0, min_width=150)
        self.inputs = [self.source_language, self.target_language]
        self.inputs += [self.source_file, self.reference_file, self.system_files]
        self.inputs += [
            self.source_text,
            self.reference_text,
            *(part for pair in self.pasted for part in pair),
        ]

    def _build_metrics(self) -> None:
        gr = self.gr
        gr.HTML("<h2><span>2</span>Metrics</h2>", elem_classes="mt-step")
        self.metrics, self.groups = [], []
        for side, label in _GROUPS.items():
            choices, ticked = self._choices(side, self.first, "de-en", [])
            with gr.Column(visible=bool(choices)) as group:
                gr.HTML(f'<p class="mt-group">{label}</p>')
                look = {"show_label": False, "container": False, "elem_classes": "mt-metrics"}
                self.metrics.append(gr.CheckboxGroup(choices, value=ticked, **look))
            self.groups.append(group)
        with gr.Row():
            self.start = gr.Button("Compare", variant="primary", scale=3)
            self.stop = gr.Button("Stop", visible=False, scale=1)
        self.status = gr.HTML("", elem_id="mt-status")
        self.halted = gr.State([])

    def _build_result(self) -> None:
        gr = self.gr
        self.compared = gr.State(time_to_live=_HOUR)
        self.opened = gr.State()
        with gr.Column(visible=False, elem_classes="mt-result") as self.result:
            gr.HTML("<h2>Result</h2>")
            self.overview = gr.HTML("")
            with gr.Row():
                self.files = [
                    gr.DownloadButton(label, size="sm", min_width=120) for label in FILES.values()
                ]
            gr.HTML("<h3>Segments</h3>")
            with gr.Row():
                self.metric = gr.Dropdown(
                    label="By", info="scores, words and heatmaps", min_width=180
                )
                self.order = gr.Dropdown(label="Order", info="what stands first", min_width=240)
                self.page = gr.Number(
                    1, label="Page", info="ten segments each", precision=0, minimum=1, min_width=90
                )
            self.listing = gr.HTML("", js_on_load=_CLICKS, elem_id="mt-segments")
            with gr.Row():
                self.back = gr.Button("Previous", size="sm")
                self.forth = gr.Button("Next", size="sm")
            with gr.Accordion("Signatures, and the same in the shell", open=False):
                self.details = gr.HTML("", elem_classes="mt-signatures")

    def _connect(self) -> None:
        gr = self.gr
        texts = [
            self.source_text,
            self.reference_text,
            *(part for pair in self.pasted for part in pair),
        ]
        changes = [part.change for part in self.inputs[:5]] + [part.blur for part in texts]
        given = {
            "inputs": [*self.inputs, *self.metrics],
            "outputs": [self.facts, *self.groups, *self.metrics],
        }
        gr.on(changes, self._look, **given, **self.quick)
        self.more.click(self._add, self.count, [self.count, *self.boxes], **self.quick)
        filled = [
            self.source_language,
            self.target_language,
            self.source_file,
            self.reference_file,
            self.system_files,
        ]
        self.example.click(_shown_example, None, filled, **self.quick)

        results = [
            self.overview,
            self.metric,
            self.order,
            self.page,
            self.details,
            self.compared,
            self.opened,
        ]
        results += self.files
        outputs = [self.status, self.result, self.start, self.stop, self.halted, *results]
        run = self.start.click(
            self._run, [*self.inputs, *self.metrics], outputs, **self.queue, show_progress="hidden"
        )
        listed = {
            "inputs": [self.compared, self.metric, self.order, self.page, self.opened],
            "outputs": self.listing,
        }
        listing = {"fn": self._list, **listed, **self.queue, "show_progress": "hidden"}
        run.success(**listing)
        self.stop.click(self._halt, self.halted, self.stop, **self.quick)

        for part in (self.metric.input, self.order.input):
            part(lambda: (1, None), None, [self.page, self.opened], **self.quick).then(**listing)
        for part in (self.page.submit, self.page.blur):
            part(_bounded, [self.page, self.compared], self.page, **self.quick).then(**listing)
        for button, step in ((self.back, -1), (self.forth, 1)):
            button.click(
                lambda page, compared, step=step: _bounded((page or 1) + step, compared),
                [self.page, self.compared],
                self.page,
                **self.quick,
            ).then(**listing)
        inputs = [self.compared, self.metric, self.opened]
        self.listing.click(
            self._open, inputs, self.opened, **self.queue, show_progress="hidden"
        ).then(**listing)

    def _look(self, *values: Any) -> list[Any]:
        """What the texts are, and the metrics that can score them."""
        inputs, ticked = values[: -len(_GROUPS)], values[-len(_GROUPS) :]
        texts, problem, columns = None, None, set()
        try:
            columns = {column for column, one in _others(inputs).items() if one.is_there}
            if columns and any(one.is_there for one in _systems(inputs)):
                texts = _read(inputs)
        except MTMetricsError as error:
            problem = str(error)
        groups, boxes = [], []
        for side, before in zip(_GROUPS, ticked, strict=True):
            choices, now = self._choices(side, columns or self.first, _pair(inputs), before)
            groups.append(self.gr.Column(visible=bool(choices)))
            boxes.append(self.gr.CheckboxGroup(choices=choices, value=now))
        return [views.problem(problem) if problem else _facts_of(texts), *groups, *boxes]

    def _choices(
        self, side: str, given: Collection[Column], lang_pair: str, ticked: Sequence[str]
    ) -> tuple[list[tuple[str, str]], list[str]]:
        """What of one group fits, and what of it is ticked: as before, else the usual ones; of a
        page for one metric its first preset."""
        fitting = [
            offer for offer in self.offers if offer.side == side and offer.fits(given, lang_pair)
        ]
        fitting.sort(key=lambda offer: not offer.default)
        kept = [offer.key for offer in fitting if offer.key in ticked]
        usual = [offer.key for offer in fitting if offer.default] or [
            offer.key for offer in fitting if self.lone
        ][:1]
        return [(offer.label, offer.key) for offer in fitting], kept or usual

    def _add(self, count: int) -> list[Any]:
        count = min(count + 1, _MOST_PASTED)
        return [count, *(self.gr.Column(visible=number < count) for number in range(_MOST_PASTED))]

    def _run(self, *values: Any) -> Iterator[list[Any]]:
        """Yields progress, and at last everything."""
        gr = self.gr
        inputs, ticked = (
            values[: -len(_GROUPS)],
            [key for keys in values[-len(_GROUPS) :] for key in keys],
        )
        rest = 7 + len(FILES)
        skipped = [gr.skip()] * rest
        buttons = [gr.Button(interactive=True), gr.Button("Stop", visible=False, interactive=True)]
        hidden, halted = gr.Column(visible=False), []
        try:
            texts = _read(inputs)
            wanted = chosen(self.offers, ticked, texts.others, texts.lang_pair)
            running = [hidden, gr.Button(interactive=False), gr.Button(visible=True), halted]
            for state in self.comparer.compare(texts, wanted):
                if halted:
                    yield ["Stopped.", hidden, *buttons, halted, *skipped]
                    return
                if isinstance(state, Progress):
                    yield [views.progress(state), *running, *skipped]
                    running = [gr.skip()] * 4
                else:
                    with _shown_files() as folder:
                        yield [
                            "",
                            gr.Column(visible=True),
                            *buttons,
                            halted,
                            *self._shown(state, folder),
                        ]
        except MTMetricsError as error:
            yield [views.problem(str(error)), hidden, *buttons, halted, *skipped]

    def _halt(self, halted: list[bool]) -> Any:
        """Has the run end at its next turn, so that it leaves the queue as every run does."""
        halted.append(True)
        return self.gr.Button("Stopping", interactive=False)

    def _shown(self, compared: Compared, folder: Path) -> list[Any]:
        gr = self.gr
        files = write_files(compared, folder)
        titles = [(metric.offer.title, number) for number, metric in enumerate(compared.metrics)]
        orders = compared.orders()
        signatures = "".join(
            f"<code>{html.escape(next(iter(metric.results.values())).signature)}</code>"
            for metric in compared.metrics
        )
        return [
            views.overview(compared),
            gr.Dropdown(choices=titles, value=0),
            gr.Dropdown(choices=orders, value=orders[0][1]),
            gr.Number(1, maximum=_pages(compared), label=f"Page, of {_pages(compared):,}"),
            f"{signatures}<code>{html.escape(command(compared))}</code>",
            compared,
            None,
            *(gr.DownloadButton(value=str(path)) for path in files),
        ]

    def _list(
        self,
        compared: Compared | None,
        metric: int,
        order: str,
        page: float | None,
        opened: views.Opened | None,
    ) -> str:
        """A page of segments."""
        if compared is None:
            return views.problem(
                "The scores are not here any more: they are kept for an hour. Press Compare again."
            )
        first = (_bounded(page, compared) - 1) * views.PAGE
        rows = compared.order(metric, order)[first : first + views.PAGE].tolist()
        return views.segments(compared, metric, rows, _words(compared, metric, rows), opened)

    def _open(
        self,
        compared: Compared | None,
        metric: int,
        opened: views.Opened | None,
        event: "gradio.EventData",
    ) -> views.Opened | None:
        """The heatmap of the output that was clicked; none where it is open already."""
        segment, system = int(event.segment), int(event.system)
        if compared is None or (
            opened is not None and (opened.segment, opened.system) == (segment, system)
        ):
            return None
        scored, names = compared.metrics[metric], list(compared.texts.systems)
        columns = {name: [texts[segment]] for name, texts in compared.texts.others.items()}
        result, text = scored.results[names[system]], compared.texts.systems[names[system]][segment]
        return views.Opened(segment, system, heatmap(scored.scorer, columns, text, result, segment))


def build_page(metric: str | None = None, added: Sequence[str] = ()) -> "gradio.Blocks":
    """The page that compares systems, for `mtmetrics.page.theme.serve`; it offers what works here,
    without a network.

    Args:
        metric: offer this one alone, one of those of `mtmetrics.layout.metric_names`.
        added: metrics to offer besides, named as on the command line.

    Raises:
        InputError: an unknown metric.
        MissingExtraError: gradio or matplotlib is not installed.
        MTMetricsError: none of the metric's presets works here.
    """
    if metric is not None:
        metric_path(metric)  # refuses what is no metric with a page
    require_extra("app", "the page")
    require_extra("plot", "the page")
    # Event handlers are typed by names that gradio resolves when the page is built.
    import gradio

    globals()["gradio"] = gradio
    return _Page(metric, added).build()


def _others(inputs: Sequence[Any]) -> dict[Column, TextInput]:
    found: dict[Column, TextInput] = {}
    columns: tuple[Column, Column] = ("sources", "references")
    for column, path, text in zip(columns, inputs[2:4], inputs[5:7], strict=True):
        name = column.removesuffix("s")
        if path is not None and (text or "").strip():
            raise InputError(f"{name}: uploaded and pasted; remove one of the two")
        found[column] = TextInput(Path(path).name if path else name, path, text or "")
    return found


def _systems(inputs: Sequence[Any]) -> list[TextInput]:
    paths = [Path(path) for path in inputs[4] or []]
    stems = [path.stem for path in paths]
    found = [
        TextInput(path.stem if stems.count(path.stem) == 1 else path.name, str(path))
        for path in paths
    ]
    pasted = zip(inputs[7::2], inputs[8::2], strict=True)
    return found + [
        TextInput((name or "").strip() or "system", None, text or "") for name, text in pasted
    ]


def _pair(inputs: Sequence[Any]) -> str:
    """The language pair of the two boxes; underscores keep a code such as zh-CN in one piece."""
    return "-".join(str(code or "").strip().replace("-", "_") for code in inputs[:2])


def _read(inputs: Sequence[Any]) -> Texts:
    return read(_pair(inputs), _others(inputs), _systems(inputs))


def _facts_of(texts: Texts | None) -> str:
    if texts is None:
        return (
            "Upload or paste a source or references, and the translations of two or more systems."
        )
    given = " and ".join(texts.others)
    names = ", ".join(map(html.escape, texts.systems))
    many = f"{len(texts.systems)} system{'s' if len(texts.systems) > 1 else ''}"
    return f"<b>{texts.segments:,}</b> segments with {given}, <b>{many}</b>: {names}."


@contextlib.contextmanager
def _shown_files() -> Iterator[Path]:
    """A folder for files that a handler yields: gradio copies them, for the visitor who asked,
    before it resumes the handler, and keeps the copies for as long as ``delete_cache`` says."""
    with tempfile.TemporaryDirectory(prefix="mtmetrics-page-") as folder:
        yield Path(folder)


def _shown_example() -> Iterator[list[Any]]:
    with _shown_files() as folder:
        yield _example_files(folder)


def _example_files(folder: Path) -> list[Any]:
    """The bundled example, as a visitor would upload it."""
    known = example()
    paths = {}
    for name, column in {
        "source.de": known.sources,
        "reference.en": known.references,
        **known.systems,
    }.items():
        paths[name] = folder / (name if "." in name else f"{name}.en")
        paths[name].write_text("\n".join(column) + "\n", encoding="utf-8")
    source, reference, *systems = map(str, paths.values())
    return [*split_pair(known.lang_pair), source, reference, systems]


def _words(compared: Compared, metric: int, rows: Sequence[int]) -> dict[tuple[int, int], str]:
    """The coloured texts of all systems in some segments."""
    scored, systems = compared.metrics[metric], list(compared.texts.systems.values())
    places = [(row, place) for row in rows for place in range(len(systems))]
    columns = {
        name: [texts[row] for row, _ in places] for name, texts in compared.texts.others.items()
    }
    outputs = [systems[place][row] for row, place in places]
    texts = coloured(scored.scorer, columns, outputs)
    return dict(zip(places, texts, strict=False))


def _pages(compared: Compared) -> int:
    return -(-compared.texts.segments // views.PAGE)


def _bounded(page: float | None, compared: Compared | None) -> int:
    return min(max(int(page or 1), 1), _pages(compared) if compared else 1)
