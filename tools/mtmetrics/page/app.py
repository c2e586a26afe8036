"""The page that compares systems, as a gradio app: with all metrics, or with a single one.

`build_page` makes the app. Its components are made from top to bottom by `_Page.build`: texts,
metrics, result. `_Page._connect` then says which handler an event of a component calls.
"""

import contextlib
import functools
import html
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import split_pair
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.layout import metric_path
from mtmetrics.page import views
from mtmetrics.page.comparing import Compared, Comparer, Progress
from mtmetrics.page.downloads import FILES, command, write_files
from mtmetrics.page.endpoints import Endpoints
from mtmetrics.page.explaining import coloured, heatmap
from mtmetrics.page.offers import about, chosen, named, offers
from mtmetrics.page.texts import TextInput, Texts, read
from mtmetrics.reports.example import example
from mtmetrics.scorers.side import Column, Side

if TYPE_CHECKING:
    import gradio
    from gradio.components import Component

# Component of gradio -> its value. Handlers take and return such dictionaries.
Values = dict[Any, Any]
# Keywords of a component or of an event.
Keywords = dict[str, Any]

_HOUR = 3600  # seconds for which results and files are kept
# Boxes for pasted systems: how many there are, and how many are shown before a visitor adds one.
_MOST_PASTED = 6
_SHOWN_AT_FIRST = 2
_LANGUAGE_NAMES = {
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
# Side to compare with -> label of its metrics.
_GROUPS = {
    "source": "Against the source, without references",
    "reference": "Against references",
    "both": "Against source and reference together",
}
# Has a click on a translation call the handler with the numbers of its segment and its system.
_CLICKS = """
element.addEventListener('click', event => {
  const output = event.target.closest('[data-segment]');
  if (output) trigger('click', {segment: Number(output.dataset.segment), system: Number(output.dataset.system)});
});
"""


@dataclass(frozen=True)
class _SystemBox:
    """Components for a pasted system: the column on the page, and the boxes in it."""

    column: "gradio.Column"
    name: "gradio.Textbox"
    text: "gradio.Textbox"


@dataclass(frozen=True)
class _MetricGroup:
    """Components for the metrics that compare with one side: the column on the page, and the boxes
    to tick in it."""

    column: "gradio.Column"
    boxes: "gradio.CheckboxGroup"


class _Page:
    """The components of the page, and the handlers of its events.

    The form is all that a visitor fills in: the texts and the ticked metrics. A handler that reads
    it takes a dictionary of components and values, which gradio passes for a set of inputs. A
    handler that changes several components returns such a dictionary. So a new box is made in one
    place, with `_add_input`, and read in one place: `_lang_pair`, `_text_columns` or `_systems`.

    Args:
        metric: the only metric that the page offers; None for all.
        added: names of metrics to offer besides.
    """

    def __init__(self, metric: str | None, added: Sequence[str]) -> None:
        import gradio

        self.gr = gradio
        self.offers = [
            *named(added),
            *(offer for offer in offers() if metric in (None, offer.spec.metric)),
        ]
        self.title, self.head = _TITLE, _HEAD
        self.has_one_metric = metric is not None
        if metric is not None:
            description = about(metric)
            if not self.offers:
                advice = f"mtmetrics list {metric} says what they lack"
                raise MTMetricsError(f"{metric}: none of its presets works here; {advice}")
            self.title = description["title"]
            scale = f"Higher is better; a segment's score is {description['range']}."
            self.head = f"{description['about']} {scale}"
        sides = {offer.side for offer in self.offers}
        # While there are no texts, metrics are shown as if there were these columns.
        self.columns_at_first = next(side for side in Side if side in sides).columns
        self.comparer = Comparer()
        # Components of the texts, see `_add_input`.
        self.inputs: list[Component] = []
        # Keywords of events whose handlers run models: they wait for each other.
        self.queue: Keywords = {
            "concurrency_limit": 1,
            "concurrency_id": "model",
            "api_visibility": "private",
            "show_progress": "hidden",
        }
        # Keywords of events whose handlers are fast.
        self.immediate: Keywords = {"api_visibility": "private", "show_progress": "hidden"}

    def build(self) -> "gradio.Blocks":
        """Makes all components, and connects their events."""
        gr = self.gr
        title = self.title if self.has_one_metric else "mtmetrics: compare"
        with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(_HOUR, _HOUR)) as app:
            gr.HTML(f'<div class="mt-head"><h1>{self.title}</h1><p>{self.head}</p></div>')
            self._build_input()
            self._build_metrics()
            self._build_result()
            gr.HTML(_FOOT)
            self._connect()
            public = self.queue | {"api_visibility": "public"}
            del public["show_progress"]
            Endpoints(self.offers, self.comparer).publish(**public)
        return app

    def _add_input(self, component: "Component") -> Any:
        """Adds a component to the form: its change updates the facts and the metrics, and handlers
        of the form can read it. Returns the component."""
        self.inputs.append(component)
        return component

    def _languages(self) -> list[tuple[str, str]]:
        """Returns label and code of the languages that some metric names."""
        pairs = {pair for offer in self.offers for pair in offer.languages}
        codes = {code for pair in pairs for code in pair.split("-")} - {"any"}
        return sorted((f"{_LANGUAGE_NAMES.get(code, code)} ({code})", code) for code in codes)

    def _build_input(self) -> None:
        gr = self.gr
        languages = self._languages()
        gr.HTML("<h2><span>1</span>Texts</h2>", elem_classes="mt-step")
        with gr.Row():
            style: Keywords = {"allow_custom_value": True, "min_width": 150}
            self.source_language = self._add_input(
                gr.Dropdown(languages, label="From", value="de", **style)
            )
            self.target_language = self._add_input(
                gr.Dropdown(languages, label="Into", value="en", **style)
            )
        with gr.Tab("Upload"), gr.Row():
            style = {"height": 120, "min_width": 240}
            self.source_file = self._add_input(gr.File(label="Source, a segment per line", **style))
            self.system_files = self._add_input(
                gr.File(label="Systems, a file for each", file_count="multiple", **style)
            )
            self.reference_file = self._add_input(
                gr.File(label="References, if there are any", **style)
            )
        with gr.Tab("Paste"):
            with gr.Row():
                style = {"lines": 5, "max_lines": 12, "min_width": 280}
                self.source_text = self._add_input(
                    gr.Textbox(label="Source, a segment per line", **style)
                )
                self.reference_text = self._add_input(
                    gr.Textbox(label="References, if there are any", **style)
                )
            with gr.Row():
                self.system_boxes = [
                    self._system_box(number) for number in range(1, _MOST_PASTED + 1)
                ]
            self.more = gr.Button("Add a system", size="sm")
        self.boxes_shown = gr.State(_SHOWN_AT_FIRST)
        with gr.Row():
            self.facts = gr.HTML(_facts_of(None), elem_classes="mt-facts")
            self.example = gr.Button("Try the example", size="sm", scale=0, min_width=150)

    def _system_box(self, number: int) -> "_SystemBox":
        """Makes the boxes for the name and the translations of a pasted system; systems are numbered
        from 1."""
        gr = self.gr
        with gr.Column(min_width=280, visible=number <= _SHOWN_AT_FIRST) as column:
            name = gr.Textbox(f"system-{number}", label=f"Name of system {number}")
            text = gr.Textbox(label=f"Translations of system {number}", lines=5, max_lines=12)
        return _SystemBox(column, self._add_input(name), self._add_input(text))

    def _build_metrics(self) -> None:
        gr = self.gr
        gr.HTML("<h2><span>2</span>Metrics</h2>", elem_classes="mt-step")
        self.groups: dict[str, _MetricGroup] = {}
        for side, label in _GROUPS.items():
            choices, ticked = self._choices(side, self.columns_at_first, "de-en", [])
            with gr.Column(visible=bool(choices)) as column:
                gr.HTML(f'<p class="mt-group">{label}</p>')
                style = {"show_label": False, "container": False, "elem_classes": "mt-metrics"}
                boxes = gr.CheckboxGroup(choices, value=ticked, **style)
            self.groups[side] = _MetricGroup(column, boxes)
        with gr.Row():
            self.start = gr.Button("Compare", variant="primary", scale=3)
            self.stop = gr.Button("Stop", visible=False, scale=1)
        self.status = gr.HTML("", elem_id="mt-status")
        # A list that the running comparison shares with the button Stop, which fills it.
        self.stop_signal = gr.State([])

    def _build_result(self) -> None:
        gr = self.gr
        # The result, a `Compared`, and the segment whose heatmap is shown, a `views.Opened`.
        self.compared = gr.State(time_to_live=_HOUR)
        self.opened = gr.State()
        with gr.Column(visible=False, elem_classes="mt-result") as self.result:
            gr.HTML("<h2>Result</h2>")
            self.overview = gr.HTML("")
            with gr.Row():
                self.downloads = {
                    name: gr.DownloadButton(label, size="sm", min_width=120)
                    for name, label in FILES.items()
                }
            gr.HTML("<h3>Segments</h3>")
            with gr.Row():
                self.metric = gr.Dropdown(
                    label="By", info="scores, words and heatmaps", min_width=180
                )
                self.order = gr.Dropdown(label="Order", info="what stands first", min_width=240)
                self.page = gr.Number(
                    1, label="Page", info="ten segments each", precision=0, minimum=1, min_width=90
                )
            self.segments = gr.HTML("", js_on_load=_CLICKS, elem_id="mt-segments")
            with gr.Row():
                self.previous = gr.Button("Previous", size="sm")
                self.next = gr.Button("Next", size="sm")
            with gr.Accordion("Signatures, and the same in the shell", open=False):
                self.details = gr.HTML("", elem_classes="mt-signatures")

    def _connect(self) -> None:
        """Has the events of the components call their handlers."""
        self._connect_form()
        self._connect_comparison()
        self._connect_segments()

    def _connect_form(self) -> None:
        gr = self.gr
        changes = []
        for component in self.inputs:
            is_text = isinstance(component, gr.Textbox)
            changes.append(component.blur if is_text else component.change)
        columns = [group.column for group in self.groups.values()]
        outputs = [self.facts, *columns, *self._checkboxes()]
        gr.on(changes, self._update_form, self._form(), outputs, **self.immediate)

        columns = [box.column for box in self.system_boxes]
        self.more.click(
            self._add_system, self.boxes_shown, [self.boxes_shown, *columns], **self.immediate
        )
        outputs = [
            self.source_language,
            self.target_language,
            self.source_file,
            self.reference_file,
            self.system_files,
        ]
        self.example.click(self._show_example, None, outputs, **self.immediate)

    def _connect_comparison(self) -> None:
        outputs = [
            self.status,
            self.result,
            self.start,
            self.stop,
            self.stop_signal,
            self.overview,
            self.metric,
            self.order,
            self.page,
            self.details,
            self.compared,
            self.opened,
            *self.downloads.values(),
        ]
        run = self.start.click(self._run, self._form(), outputs, **self.queue)
        run.success(**self._listing())
        self.stop.click(self._stop, self.stop_signal, self.stop, **self.immediate)

    def _connect_segments(self) -> None:
        listing = self._listing()
        # Another metric or order begins at page 1, without a heatmap.
        for component in (self.metric, self.order):
            outputs = [self.page, self.opened]
            change = component.input(lambda: (1, None), None, outputs, **self.immediate)
            change.then(**listing)
        page_steps = {
            self.page.submit: 0,
            self.page.blur: 0,
            self.previous.click: -1,
            self.next.click: 1,
        }
        for event, step in page_steps.items():
            turn = functools.partial(_turned_page, step=step)
            change = event(turn, [self.page, self.compared], self.page, **self.immediate)
            change.then(**listing)
        inputs = [self.compared, self.metric, self.opened]
        click = self.segments.click(self._open, inputs, self.opened, **self.queue)
        click.then(**listing)

    def _form(self) -> "set[Component]":
        """Returns the components of the form, as inputs of an event."""
        return {*self.inputs, *self._checkboxes()}

    def _checkboxes(self) -> "list[Component]":
        """Returns the boxes of all metrics."""
        return [group.boxes for group in self.groups.values()]

    def _listing(self) -> Keywords:
        """Returns the keywords of an event that shows a page of segments."""
        inputs = [self.compared, self.metric, self.order, self.page, self.opened]
        return {"fn": self._list, "inputs": inputs, "outputs": self.segments, **self.queue}

    def _lang_pair(self, form: Values) -> str:
        """Reads the language pair from the two boxes; underscores keep a code such as zh-CN in one
        piece."""
        codes = [form[self.source_language], form[self.target_language]]
        return "-".join(str(code or "").strip().replace("-", "_") for code in codes)

    def _text_columns(self, form: Values) -> dict[Column, TextInput]:
        """Reads the source and the references; an InputError says that one is both uploaded and
        pasted."""
        source = _uploaded_or_pasted("source", form[self.source_file], form[self.source_text])
        references = _uploaded_or_pasted(
            "reference", form[self.reference_file], form[self.reference_text]
        )
        return {"sources": source, "references": references}

    def _systems(self, form: Values) -> list[TextInput]:
        """Reads the uploaded systems, then the boxes of pasted systems, which may be empty."""
        paths = [Path(path) for path in form[self.system_files] or []]
        stems = [path.stem for path in paths]
        systems = []
        for path in paths:
            is_unique = stems.count(path.stem) == 1
            systems.append(TextInput(path.stem if is_unique else path.name, str(path)))
        for box in self.system_boxes:
            name = (form[box.name] or "").strip() or "system"
            systems.append(TextInput(name, None, form[box.text] or ""))
        return systems

    def _texts(self, form: Values) -> Texts:
        """Reads all texts; an InputError says what is wrong with them."""
        return read(self._lang_pair(form), self._text_columns(form), self._systems(form))

    def _update_form(self, form: Values) -> Values:
        """Shows facts about the texts, or what is wrong with them, and the metrics that can score
        them."""
        texts, problem, columns = None, None, set()
        try:
            inputs = self._text_columns(form)
            columns = {column for column, text in inputs.items() if text.is_there}
            if columns and any(text.is_there for text in self._systems(form)):
                texts = self._texts(form)
        except MTMetricsError as error:
            problem = views.error_problem(error)
        updates = {self.facts: problem or _facts_of(texts)}
        for side, group in self.groups.items():
            choices, ticked = self._choices(
                side, columns or self.columns_at_first, self._lang_pair(form), form[group.boxes]
            )
            updates[group.column] = self.gr.Column(visible=bool(choices))
            updates[group.boxes] = self.gr.CheckboxGroup(choices=choices, value=ticked)
        return updates

    def _choices(
        self, side: str, columns: Collection[Column], lang_pair: str, ticked: Sequence[str]
    ) -> tuple[list[tuple[str, str]], list[str]]:
        """Finds the metrics of one group that can score texts.

        Args:
            side: of the group.
            columns: of text that the visitor gave.
            lang_pair: of the texts.
            ticked: keys of metrics that are ticked now.

        Returns:
            Label and key of each metric that fits; and the keys to tick. Ticked metrics stay ticked.
            If none of them fits, the usual metrics are ticked, or on a page for one metric its
            first preset.
        """
        fitting = [
            offer for offer in self.offers if offer.side == side and offer.fits(columns, lang_pair)
        ]
        fitting.sort(key=lambda offer: not offer.default)
        choices = [(offer.label, offer.key) for offer in fitting]
        still_ticked = [offer.key for offer in fitting if offer.key in ticked]
        usual = [offer.key for offer in fitting if offer.default]
        if not usual and self.has_one_metric:
            usual = [offer.key for offer in fitting[:1]]
        return choices, still_ticked or usual

    def _add_system(self, shown: int) -> Values:
        """Shows the boxes of one more system."""
        shown = min(shown + 1, _MOST_PASTED)
        updates: Values = {self.boxes_shown: shown}
        for number, box in enumerate(self.system_boxes):
            updates[box.column] = self.gr.Column(visible=number < shown)
        return updates

    def _run(self, form: Values) -> Iterator[Values]:
        """Compares the systems of the form. Yields the values that show the progress, then those of
        the result."""
        gr = self.gr
        ticked = [key for group in self.groups.values() for key in form[group.boxes]]
        stop_signal: list[bool] = []
        buttons = {
            self.start: gr.Button(interactive=True),
            self.stop: gr.Button("Stop", visible=False, interactive=True),
        }
        # Values of components after a comparison without a result, and at the beginning of one.
        ended = {self.result: gr.Column(visible=False), **buttons}
        begun = {
            self.result: gr.Column(visible=False),
            self.start: gr.Button(interactive=False),
            self.stop: gr.Button(visible=True),
            self.stop_signal: stop_signal,
        }
        try:
            texts = self._texts(form)
            metrics = chosen(self.offers, ticked, texts.columns, texts.lang_pair)
            for state in self.comparer.compare(texts, metrics):
                if stop_signal:
                    yield {self.status: "Stopped.", **ended}
                    return
                if isinstance(state, Progress):
                    yield {self.status: views.progress(state), **begun}
                    begun = {}  # the buttons change once
                else:
                    with _shown_files() as folder:
                        results = self._result_values(state, folder)
                        visible = {self.result: gr.Column(visible=True)}
                        yield {self.status: "", **visible, **buttons, **results}
        except MTMetricsError as error:
            yield {self.status: views.error_problem(error), **ended}

    def _stop(self, stop_signal: list[bool]) -> "gradio.Button":
        """Has the comparison end at its next step, so that it leaves the queue like every other."""
        stop_signal.append(True)
        return self.gr.Button("Stopping", interactive=False)

    def _result_values(self, compared: Compared, folder: Path) -> Values:
        """Returns the values of all components of the result; writes the files into a folder."""
        gr = self.gr
        titles = [(metric.offer.title, number) for number, metric in enumerate(compared.metrics)]
        orders = compared.orders()
        pages = _pages(compared)
        signatures = []
        for metric in compared.metrics:
            first_result = next(iter(metric.results.values()))
            signatures.append(f"<code>{html.escape(first_result.signature)}</code>")
        values: Values = {
            self.overview: views.overview(compared),
            self.metric: gr.Dropdown(choices=titles, value=0),
            self.order: gr.Dropdown(choices=orders, value=orders[0][1]),
            self.page: gr.Number(1, maximum=pages, label=f"Page, of {pages:,}"),
            self.details: f"{''.join(signatures)}<code>{html.escape(command(compared))}</code>",
            self.compared: compared,
            self.opened: None,
        }
        write_files(compared, folder)
        for name, button in self.downloads.items():
            values[button] = gr.DownloadButton(value=str(folder / name))
        return values

    def _show_example(self) -> Iterator[Values]:
        """Fills in the form with the bundled example, as uploaded files."""
        texts = example()
        source, target = split_pair(texts.lang_pair)
        with _shown_files() as folder:
            systems = []
            for name, lines in texts.systems.items():
                systems.append(_written(folder / f"{name}.en", lines))
            yield {
                self.source_language: source,
                self.target_language: target,
                self.source_file: _written(folder / "source.de", texts.sources),
                self.reference_file: _written(folder / "reference.en", texts.references),
                self.system_files: systems,
            }

    def _list(
        self,
        compared: Compared | None,
        metric: int,
        order: str,
        page: float | None,
        opened: views.Opened | None,
    ) -> str:
        """Returns a page of segments as HTML.

        Args:
            compared: the result; None if it was dropped, after an hour.
            metric: place of the metric whose scores order the segments.
            order: one of `Compared.orders`.
            page: number of the page, from 1.
            opened: the segment whose heatmap is shown.
        """
        if compared is None:
            return views.problem(
                "The scores are not here any more: they are kept for an hour. Press Compare again."
            )
        first = (_turned_page(page, compared) - 1) * views.PAGE
        rows = compared.order(metric, order)[first : first + views.PAGE].tolist()
        return views.segments(compared, metric, rows, _words(compared, metric, rows), opened)

    def _open(
        self,
        compared: Compared | None,
        metric: int,
        opened: views.Opened | None,
        event: "gradio.EventData",
    ) -> views.Opened | None:
        """Returns the heatmap of the translation that was clicked; None to close the open one."""
        segment, system = int(event.segment), int(event.system)
        is_open = opened is not None and (opened.segment, opened.system) == (segment, system)
        if compared is None or is_open:
            return None
        scored, names = compared.metrics[metric], list(compared.texts.systems)
        columns = {name: [texts[segment]] for name, texts in compared.texts.columns.items()}
        result, text = scored.results[names[system]], compared.texts.systems[names[system]][segment]
        return views.Opened(segment, system, heatmap(scored.scorer, columns, text, result, segment))


def build_page(metric: str | None = None, added: Sequence[str] = ()) -> "gradio.Blocks":
    """Makes the page that compares systems, for `mtmetrics.page.theme.serve`. It offers the metrics
    that work here without a network.

    Args:
        metric: the only metric to offer, one of `mtmetrics.layout.metric_names`; None for all.
        added: metrics to offer besides, by their names on the command line.

    Raises:
        InputError: an unknown metric.
        MissingExtraError: gradio or matplotlib is not installed.
        MTMetricsError: none of the metric's presets works here.
    """
    if metric is not None:
        metric_path(metric)  # refuses an unknown metric
    require_extra("app", "the page")
    require_extra("plot", "the page")
    # Gradio looks up the types of the handlers' arguments, such as ``gradio.EventData``, here.
    import gradio

    globals()["gradio"] = gradio
    return _Page(metric, added).build()


def _uploaded_or_pasted(name: str, path: str | None, text: str | None) -> TextInput:
    """Returns a column of text from a file or from a box; an InputError says that it is in both."""
    if path is None:
        return TextInput(name, None, text or "")
    if (text or "").strip():
        raise InputError(f"{name}: uploaded and pasted; remove one of the two")
    return TextInput(Path(path).name, path)


def _facts_of(texts: Texts | None) -> str:
    """Describes the texts in HTML; asks for some where there are none."""
    if texts is None:
        return (
            "Upload or paste a source or references, and the translations of two or more systems."
        )
    columns = " and ".join(texts.columns)
    names = ", ".join(map(html.escape, texts.systems))
    count = f"{len(texts.systems)} system{'s' if len(texts.systems) > 1 else ''}"
    return f"<b>{texts.segments:,}</b> segments with {columns}, <b>{count}</b>: {names}."


@contextlib.contextmanager
def _shown_files() -> Iterator[Path]:
    """Makes a folder for files that a handler yields.

    Gradio copies them for the visitor before it resumes the handler, and keeps the copies for the
    time of ``delete_cache``.
    """
    with tempfile.TemporaryDirectory(prefix="mtmetrics-page-") as folder:
        yield Path(folder)


def _written(path: Path, lines: Sequence[str]) -> str:
    """Writes lines to a file, and returns its path."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def _words(compared: Compared, metric: int, rows: Sequence[int]) -> dict[tuple[int, int], str]:
    """Returns the coloured translations of some segments, by segment and place of the system; empty
    where the metric blames no words."""
    scored, systems = compared.metrics[metric], list(compared.texts.systems.values())
    places = [(row, place) for row in rows for place in range(len(systems))]
    columns = {
        name: [texts[row] for row, _ in places] for name, texts in compared.texts.columns.items()
    }
    outputs = [systems[place][row] for row, place in places]
    texts = coloured(scored.scorer, columns, outputs)
    return dict(zip(places, texts, strict=False))


def _pages(compared: Compared) -> int:
    """Returns the number of pages of segments."""
    return -(-compared.texts.segments // views.PAGE)


def _turned_page(page: float | None, compared: Compared | None, step: int = 0) -> int:
    """Returns the number of the page that lies `step` pages further, from 1 to the last."""
    last = 1 if compared is None else _pages(compared)
    return min(max(int(page or 1) + step, 1), last)
